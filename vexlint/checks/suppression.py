"""What NonMaxSuppression is fed and what is made of its rows: the form of boxes, class offsets, the batch's index."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.model import open_axes
from vexlint.model.coordinates import NUMBER, Atom, Poly, Tracer
from vexlint.model.graph import Graph, Node, Value
from vexlint.model.model import Model
from vexlint.model.picks import numbers
from vexlint.model.shapes import Shape
from vexlint.values import Hit

DEEP = 100  # nodes followed on one path
CORNERS, CENTRES = "corners", "centre and size"
MOVING = ("Transpose", "Slice", "Split", "Gather", "Squeeze", "Unsqueeze", "Identity", "Cast", "Reshape", "Expand")


def box_format(model: Model, context: Context) -> Iterator[Hit]:
    """VEX503: boxes whose arithmetic contradicts center_point_box; one hit each way."""
    yield from hits(
        (fault, node.place) for node in model.nodes("NonMaxSuppression") if (fault := _misread(node)) is not None
    )


def _misread(node: Node) -> Fault | None:
    read_as = {0: CORNERS, 1: CENTRES}.get(node.attribute("center_point_box"))
    if read_as is None:
        return None
    tracer = Tracer()
    columns = tracer.columns(node.input(0))
    form = _form(tracer, columns)
    head = _raw_head(tracer, columns, node) if not form and read_as == CORNERS else ""
    if not head and form in ("", read_as):
        return None
    if form == CORNERS:
        text = "boxes are computed as corners, but center_point_box = 1 reads them as centre and size"
        return Fault(text, "write center_point_box = 0")
    what = f"boxes are the first four rows of {head}" if head else "boxes are computed as centre and size"
    way_out = "make corners of them: x - w/2, y - h/2, x + w/2, y + h/2; or write center_point_box = 1"
    return Fault(f"{what}, but center_point_box = 0 reads them as corners", way_out)


def _form(tracer: Tracer, columns: list[Poly]) -> str:
    """What four numbers are, "" where their arithmetic does not say it. What is added to all four says nothing."""
    common = {m for m in columns[0] if all(_same(columns[0][m], c.get(m)) for c in columns)} | {NUMBER}
    x1, y1, x2, y2 = ({m: f for m, f in c.items() if m not in common} for c in columns)
    forms = {_pair(tracer, x1, x2), _pair(tracer, y1, y2)}
    return forms.pop() if len(forms) == 1 else ""


def _pair(tracer: Tracer, low: Poly, high: Poly) -> str:
    """Corners have the place in common. A size has no place in it; of c = (a + b)/2 and s = b - a it is the double."""
    if not low or not high:
        return ""
    if any(_same(f, high.get(m)) for m, f in low.items()):
        return CORNERS if set(low) ^ set(high) or any(not _same(f, high[m]) for m, f in low.items()) else ""
    placed = any(map(tracer.constant, high))
    halves = [m for m in high if m in low]
    if halves and not placed and all(_same(abs(low[m]) * 2, abs(high[m])) for m in halves):
        return CENTRES
    sized = not placed and "unknown" not in tracer.natures(high)
    return CENTRES if sized and any(map(tracer.constant, low)) else ""


def _same(one: float, other: float | None) -> bool:
    return other is not None and math.isclose(one, other, rel_tol=1e-6)


def _raw_head(tracer: Tracer, columns: list[Poly], node: Node) -> str:
    """The model input whose first four rows are the boxes and whose others are the scores: a head of layout v8, or of
    v5 where an objectness is multiplied in. "" where it is none."""
    atoms = [_only(tracer, c) for c in columns]
    first, scores = atoms[0], node.input(1)
    if first is None or first.maker is not None or first.nature != "network" or scores is None or len(first.pick) != 1:
        return ""
    axis, shape = first.pick[0][0], first.value.shape
    rows = [(a.value.name, a.pick) if a else None for a in atoms]
    if shape is None or shape.rank != 3 or rows != [(first.value.name, ((axis, k),)) for k in range(4)]:
        return ""
    upstream = list(node.graph.upstream(scores.name))
    if not any(first.value.name in n.inputs for n in upstream) or (shape.size(axis) or 5) < 5:
        return ""
    weighed = any(n.op == "Mul" and all(_moved(n.input(i), first.value.name) for i in (0, 1)) for n in upstream)
    layout = "v8" if axis == -2 else "v5" if weighed else ""
    return f"{first.value.name} {shape} (layout {layout}: centre and size)" if layout else ""


def _only(tracer: Tracer, poly: Poly) -> Atom | None:
    """The atom that a polynomial is, None where it is more than that."""
    (monomial, factor), *more = [*poly.items(), (NUMBER, 0.0)]
    return tracer.atoms[monomial[0]] if len(more) == 1 and len(monomial) == 1 and factor == 1 else None


def _moved(value: Value | None, source: str) -> bool:
    """Whether a value is a part of another one, moved about."""
    for _ in range(DEEP):
        if value is None or value.name == source:
            break
        maker = value.producer
        value = maker.input(0) if maker is not None and maker.op in MOVING else None
    return value is not None and value.name == source


def batch_index(model: Model, context: Context) -> Iterator[Hit]:
    """VEX505: selected rows whose first column, the picture's index, nobody reads, though there may be several
    pictures; one hit for each size of the batch."""
    unread = [n for n in model.nodes("NonMaxSuppression") if n.outputs and _unread(n.graph, n.outputs[0])]
    if not unread:
        return
    way_out = "gather boxes and scores by the pairs of columns 0 and 2, or export for one picture"
    follow = open_axes.follow(model.graph)
    found = ((_batch(n, context, follow), n.place) for n in unread)
    yield from hits(
        (Fault(f"column 0 of what is selected, the picture's index, is not read, but {batch}", way_out), place)
        for batch, place in found
        if batch
    )


def _unread(graph: Graph, name: str) -> bool:
    """Whether other columns of the rows are read, and the first is not."""
    columns = _columns(graph, name)
    return columns is not None and bool(columns) and 0 not in columns


def _columns(graph: Graph, name: str) -> set[int] | None:
    """The columns of selected rows that are read; None where all may be."""
    found, seen = set[int](), set[tuple[str, int]]()
    row = [(name, 1)]  # values that hold whole rows, and the axis of the columns in them
    while row:
        value, axis = row.pop()
        if value in graph.results:
            return None
        for node in graph.readers.get(value, ()) if (value, axis) not in seen else ():
            taken = _taken(node, axis) if value in node.inputs[:1] and node.outputs and not node.domain else None
            if taken is None:
                return None
            if isinstance(taken, int):
                row.append((node.outputs[0], taken))
            else:
                found |= taken
        seen.add((value, axis))
    return found


def _taken(node: Node, axis: int) -> set[int] | int | None:
    """The columns that one reader hands on to somebody; where it hands on whole rows, the axis of the columns in them;
    None where nothing tells."""
    if node.op in ("Shape", "Size"):
        return set()
    if node.op in ("Cast", "Identity", "Transpose"):
        turned = node.op == "Transpose" and node.attribute("perm") in (None, [1, 0])
        return 1 - axis if turned else axis
    if node.op == "Split" and (node.attribute("axis") or 0) % 2 == axis and len(node.outputs) == 3:
        return {i for i, o in enumerate(node.outputs) if _is_read(node.graph, o)}
    by_op = {"Gather": _gathered, "Slice": _cut}
    return by_op[node.op](node, axis) if node.op in by_op else None


def _gathered(node: Node, axis: int) -> set[int] | int | None:
    indices = node.input(1)
    if (node.attribute("axis") or 0) % 2 != axis:  # rows, in as many axes as before where the indices are a list
        shape = indices.shape if indices else None
        return axis if shape is not None and shape.rank == 1 else None
    chosen = indices.constant if indices else None
    if chosen is None:
        return None
    return {int(i) % 3 for i in chosen} if _is_read(node.graph, node.outputs[0]) else set()


def _cut(node: Node, axis: int) -> set[int] | int | None:
    starts, ends, axes = numbers(node, "starts", 1), numbers(node, "ends", 2), numbers(node, "axes", 3)
    if axes is None and starts is not None and node.input(3) is None:
        axes = list(range(len(starts)))
    places = [a % 2 for a in axes or ()]
    if axis not in places:
        return None if axes is None else axis
    if starts is None or ends is None or numbers(node, "steps", 4) not in (None, [1] * len(places)):
        return None
    at = places.index(axis)
    if len(starts) != len(places) or len(ends) != len(places):
        return None
    return set(range(3)[starts[at] : ends[at]]) if _is_read(node.graph, node.outputs[0]) else set()


def _is_read(graph: Graph, name: str) -> bool:
    return bool(graph.readers.get(name)) or name in graph.results


def _batch(node: Node, context: Context, known: open_axes.Known) -> str:
    """How many pictures there may be, in words; "" where it is one, or not known."""
    for position in (0, 1):
        value = node.input(position)
        shape = value.shape if value else None
        if value is None or shape is None or shape.rank != 3:
            continue
        size = shape.size(0)
        if size is not None:
            if size > 1:
                return f"the batch is {size}"
            return ""
        name = shape.dims[0]
        inputs = {i for i, s in _inputs(node.graph.model) if name is not None and s.dims[:1] == (name,)}
        inputs |= {i for i, axis in (known.get(value.name) or (open_axes.CLOSED,))[0] if axis == 0}
        fixed = [s[0] for i in inputs if (c := context.contract.inputs.get(i)) and (s := c.shape)]
        if inputs and 1 not in fixed:
            return "the batch is open" + (f" ({name})" if name is not None else "")
    return ""


def _inputs(model: Model) -> list[tuple[str, Shape]]:
    return [(name, s) for name in model.graph.inputs if (s := model.graph.shape(name)) is not None]
