"""What a file says of its shapes, held against what its nodes make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.checks.shapes import axis_kind, named_kind, placed_kind
from vexlint.model import open_axes
from vexlint.model.graph import Graph, Node, value_place
from vexlint.model.model import Model
from vexlint.model.open_axes import CLOSED, Axis, Known
from vexlint.values import Hit, Place

Baked = tuple[str, frozenset[Axis]]  # what a node does, and the open axes that it closes
NOTHING: Baked = ("", CLOSED)
IMAGE = 4
UNRELATED = {"batch", "channels", "height", "width"}
PLACEHOLDERS = ("none", "dynamic", "dyn", "any", "unk", "unknown", "n", "dim", "-1")
REEXPORT = "export with the axis left open where the size is used (no int() on a size in the network), or fix the axis"


def one_symbol(model: Model, context: Context) -> Iterator[Hit]:
    """VEX403: one symbol on axes of an image input that have nothing to do with each other; one hit a symbol.

    Height and width of one name are a square picture, unless the name is a placeholder or says one of the two.
    """
    uses: dict[str, list[tuple[str, int, str]]] = {}
    for name in model.graph.inputs:
        shape = model.graph.stated(name)
        if shape is not None and shape.rank == IMAGE:
            for axis, dim in enumerate(shape.dims):
                if isinstance(dim, str) and (kind := placed_kind(shape, axis)) in UNRELATED:
                    uses.setdefault(dim, []).append((name, axis, kind))
    for symbol, found in uses.items():
        kinds = {kind for _, _, kind in found}
        square = kinds == {"height", "width"} and not named_kind(symbol) and symbol.lower() not in PLACEHOLDERS
        if len(kinds) > 1 and not square:
            where = ", ".join(f"{kind} ({name} axis {axis})" for name, axis, kind in found[:4])
            yield Hit(
                value_place("input", found[0][0]),
                f"one symbol {symbol!r} stands for {where}: the file says that they are always equal",
                "give each axis a name of its own (dynamic_axes, dynamic_shapes)",
                data={"symbol": symbol, "axes": [[name, axis] for name, axis, _ in found]},
            )


def fake_axis(model: Model, context: Context) -> Iterator[Hit]:
    """VEX404: nodes that only fit one size of an axis that the file declares open; one hit a cause."""
    known = open_axes.follow(model.graph)
    if known:
        yield from hits(_baked(model.graph, known))


def _baked(graph: Graph, known: Known) -> Iterator[tuple[Fault, Place]]:
    batched = _batched(graph)
    for node in graph.nodes:
        if node.op not in BAKING or not node.outputs or node.outputs[0] in known:
            continue  # what is followed further closed nothing
        if node.domain or not any(name in known for name in node.inputs):
            continue
        text, axes = BAKING[node.op](node, known, batched)
        if axes:
            yield Fault(f"{text}, but {_axes(graph, axes)} declared open", REEXPORT), node.place


def _axes(graph: Graph, axes: frozenset[Axis]) -> str:
    shown = [f"{name} axis {axis}" for name, axis in sorted(axes)]
    return " and ".join(shown) + (" is" if len(shown) == 1 else " are")


def _batched(graph: Graph) -> bool:
    """Whether every open first axis of an input is a batch of things that have at least two axes."""
    shapes = [s for name in graph.inputs if (s := graph.stated(name)) is not None and s.rank]
    opened = [s for s in shapes if not isinstance(s.dims[0], int)]
    return bool(opened) and all(s.rank > 2 and axis_kind(s, 0) == "batch" for s in opened)


def _reshape(node: Node, known: Known, batched: bool) -> Baked:
    _, lost = open_axes.reshaped(node, known)
    value = node.input(1)
    target = node.attribute("shape") or (value.constant if value else None) or []
    return f"a Reshape to {_list(target)} fits one size only", lost


def _join(node: Node, known: Known, batched: bool) -> Baked:
    found = open_axes.grid(node, known)
    if found is None:
        return NOTHING
    axis, length, met = found
    return f"a constant has {length} entries on axis {axis}, which fits one size only", met


def _squeeze(node: Node, known: Known, batched: bool) -> Baked:
    source = known.get(node.inputs[0], ())
    value = node.input(1)
    axes = node.attribute("axes") or (value.constant if value else None) or []
    closed = [a for a in axes if a in range(-len(source), len(source)) and source[int(a)]]
    return (
        (f"a Squeeze takes away axis {closed[0]}, which must be 1 then", source[int(closed[0])]) if closed else NOTHING
    )


def _gather(node: Node, known: Known, batched: bool) -> Baked:
    """One image taken out of a batch, and nothing else read of it."""
    source = known.get(node.inputs[0], ())
    value = node.input(1)
    place = value.constant if value else None
    if node.attribute("axis") in (0, -len(source)) and place in ([0], [-1]) and batched and source and _alone(node):
        return "a Gather takes one image of the batch and nothing reads the others", source[0]
    return NOTHING


def _slice(node: Node, known: Known, batched: bool) -> Baked:
    source = known.get(node.inputs[0], ())
    given = [(v.constant if (v := node.input(i)) is not None else None) for i in (1, 2, 3)]
    starts, ends, axes = (node.attribute(n) or g for n, g in zip(("starts", "ends", "axes"), given, strict=True))
    axes = axes or list(range(len(starts or [])))
    cuts = dict(zip(axes, zip(starts or [], ends or [], strict=False), strict=False))
    if cuts.get(0) == (0, 1) and batched and source and _alone(node):
        return "a Slice takes one image of the batch and nothing reads the others", source[0]
    return NOTHING


def _alone(node: Node) -> bool:
    """Whether nothing but the size is read of the node's input elsewhere."""
    graph, name = node.graph, node.inputs[0]
    others = [n for n in graph.readers.get(name, ()) if n.index != node.index and n.op not in ("Shape", "Size")]
    return not others and name not in graph.outputs


BAKING: dict[str, Callable[[Node, Known, bool], Baked]] = {
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "Slice": _slice,
    **dict.fromkeys(open_axes.JOINING, _join),
}


def _list(numbers: list[int]) -> str:
    return "[" + ",".join(map(str, numbers)) + "]"
