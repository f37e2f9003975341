"""The class-offset trick: class * constant is added to boxes, so that one NMS for all classes keeps them apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.model import heads
from vexlint.model.coordinates import NUMBER, Atom, Monomial, Poly, Tracer, selected
from vexlint.model.graph import Node, Value
from vexlint.model.model import Model
from vexlint.model.picks import Pick, fit
from vexlint.values import Hit, Place

MOVING = ("Cast", "Reshape", "Expand", "Unsqueeze", "Squeeze", "Gather", "GatherElements", "GatherND", "Slice",
          "Flatten", "Tile", "Transpose", "Identity")  # fmt: skip
DEEP = 100  # nodes followed on one path
PIXELS = 16  # from here on a constant is one for boxes in px, not in 0..1
# Bits of the fraction and the largest number of what boxes are computed in
FLOATS = {"tensor(float16)": (10, 65504.0), "tensor(bfloat16)": (7, 3.4e38), "tensor(float)": (23, 3.4e38)}
WAY_OUT = "give NonMaxSuppression one plane of scores a class instead: it keeps classes apart without an offset"


@dataclass(frozen=True, slots=True)
class Offset:
    """An Add of boxes and class * `step`. `reach` is the largest coordinate of the boxes, `side` the image's larger
    side in px; None where not known."""

    node: Node
    step: float
    classes: int | None
    reach: float | None
    side: int | None


def class_offset(model: Model, context: Context) -> Iterator[Hit]:
    """VEX504: offsets that leave classes overlapping, overflow, or cost the boxes their precision; one hit a fault."""
    yield from hits(_faults(model, context))


def _faults(model: Model, context: Context) -> Iterator[tuple[Fault, Place]]:
    side = _side(model)
    for node in model.nodes("NonMaxSuppression"):
        scores = node.input(1)
        shape = scores.shape if scores else None
        apart = shape is not None and (shape.size(1) or 0) > 1  # classes have planes of their own already
        for offset in _offsets(node, side):
            fault = None if apart else _small(offset)
            fault = fault or _coarse(offset, context.contract.precision == "fp16")
            if fault is not None:
                yield fault, offset.node.place


def _small(offset: Offset) -> Fault | None:
    if offset.reach is None or offset.step >= offset.reach * (1 - 1e-6):
        return None
    text = f"classes are {offset.step:g} apart, but boxes reach {offset.reach:.4g}: classes suppress each other"
    return Fault(text, f"take more than the largest coordinate as the offset; or {WAY_OUT}")


def _coarse(offset: Offset, planned: bool) -> Fault | None:
    kinds = offset.node.graph.model.reads.get(offset.node, ())
    kind = kinds[0].type if kinds else ""
    half = planned and kind == "tensor(float)"
    bits, largest = FLOATS.get("tensor(float16)" if half else kind, (0, 0.0))
    if not bits:
        return None
    name = "half precision" if half else kind[7:-1]
    most = offset.step * ((offset.classes or 2) - 1) + (offset.reach or 0)
    if most > largest:
        return Fault(f"the class offset reaches {most:g}: infinite in {name}", WAY_OUT)
    spacing = 2.0 ** (math.floor(math.log2(most)) - bits)
    unit = offset.side / offset.reach if offset.side and offset.reach else 1.0 if offset.step >= PIXELS else 0.0
    if spacing * unit < 1:
        return None
    text = f"the class offset reaches {most:g}: in {name} boxes are rounded to steps of {spacing * unit:.3g} px there"
    return Fault(text, WAY_OUT)


def _offsets(node: Node, side: int | None) -> list[Offset]:
    """The Adds before one NonMaxSuppression that move boxes by class; what x and y reach counts, the larger one."""
    tracer = Tracer()
    for column in (0, 1):
        tracer.trace(node.input(0), ((-1, column),))
    found: dict[int, Offset] = {}
    for add, pick in tracer.sums:
        parts = [_operand(tracer, add, i, pick) for i in (0, 1)]
        for moves, boxes in (parts, parts[::-1]):
            step = _step(tracer, moves)
            if step is None or any(_class(tracer, m) is not None for m in boxes):
                continue
            classes = {_many(tracer.atoms[a]) for m in moves if (a := _class(tracer, m)) is not None}
            many = classes.pop() if len(classes) == 1 else None
            reach = [_reach(tracer, boxes, step, side), found[add.index].reach if add.index in found else None]
            if many != 1:
                found[add.index] = Offset(add, step, many, max((r for r in reach if r is not None), default=None), side)
    return list(found.values())


def _operand(tracer: Tracer, node: Node, position: int, pick: Pick) -> Poly:
    value = node.input(position)
    return tracer.trace(value, fit(value, pick)) if value is not None else {}


def _step(tracer: Tracer, poly: Poly) -> float | None:
    """The constant that a class is multiplied by; None where this is no offset, or one that the boxes decide."""
    if len(poly) != 1:
        return None
    ((monomial, factor),) = poly.items()
    return factor if len(monomial) == 1 and _class(tracer, monomial) is not None and factor > 0 else None


def _class(tracer: Tracer, monomial: Monomial) -> int | None:
    """The atom of a term that is the number of a class or of a picture."""
    return next((a for a in monomial if _numbered(tracer.atoms[a]) is not None), None)


def _numbered(atom: Atom) -> Node | Value | None:
    """What gives the numbers: an ArgMax, the index of the best of a TopK, a remainder, a NonZero, an integer input."""
    value: Value | None = None if atom.inverse else atom.value
    for _ in range(DEEP):
        maker = value.producer if value is not None else None
        if value is None or maker is None:
            break
        if maker.op in ("ArgMax", "Mod", "NonZero") and not maker.domain:
            return maker
        if maker.op == "TopK":
            count = maker.attribute("k") or (k.constant if (k := maker.input(1)) else None)
            return maker if maker.outputs.index(value.name) == 1 and count in (1, [1]) else None
        value = maker.input(0) if maker.op in MOVING and not maker.domain else None
    stated = value.stated if value is not None and value.producer is None and not value.is_constant else None
    return value if stated is not None and "int" in stated.dtype else None


def _many(atom: Atom) -> int | None:
    """How many classes an ArgMax or TopK chooses from."""
    source = _numbered(atom)
    if not isinstance(source, Node) or source.op not in ("ArgMax", "TopK"):
        return None
    scores, axis = source.input(0), source.attribute("axis")
    shape = scores.shape if scores else None
    return shape.size(axis) if shape is not None and isinstance(axis, int) else None


def _reach(tracer: Tracer, boxes: Poly, step: float, side: int | None) -> float | None:
    """The largest coordinate of boxes: that of the grid they stand on, else the image's side where they are taken as
    they come and the constant is one in px. None where neither tells."""
    terms = {m: f for m, f in boxes.items() if m != NUMBER}
    places = {m: f for m, f in terms.items() if tracer.constant(m)}
    if places:
        found = [_largest(tracer, m) for m in places]
        return None if None in found else sum(abs(f) * (v or 0) for f, v in zip(places.values(), found, strict=True))
    plain = bool(terms) and all(len(m) == 1 and not tracer.atoms[m[0]].inverse for m in terms)
    known = plain and all((maker := tracer.atoms[m[0]].maker) is None or maker.op not in BOUND for m in terms)
    return max(map(abs, terms.values())) * side if known and side is not None and step >= PIXELS else None


BOUND = ("Sigmoid", "Tanh", "Softplus", "Exp")  # of these a coordinate in px would be a multiple


def _largest(tracer: Tracer, monomial: Monomial) -> float | None:
    """The largest magnitude of a product of constants, element by element."""
    found = [1.0]
    for number in monomial:
        atom = tracer.atoms[number]
        shape, numbers = atom.value.shape, atom.value.constant
        if shape is None or numbers is None or atom.inverse:
            return None
        factor = [abs(float(n)) for n in selected(numbers, list(shape.dims), atom.pick)]
        if not factor or (len(factor) != len(found) and 1 not in (len(factor), len(found))):
            return None
        length = max(len(factor), len(found))
        found = [a * b for a, b in zip(_stretched(found, length), _stretched(factor, length), strict=True)]
    return max(found, default=None)


def _stretched(numbers: list[float], length: int) -> list[float]:
    return numbers if len(numbers) == length else numbers * length


def _side(model: Model) -> int | None:
    """The larger side of the model's image; None where there is none, or it is open."""
    shapes = [s for n in model.graph.inputs if (s := model.graph.shape(n)) is not None and s.rank == 4]
    sizes = [size for s in shapes if {s.size(1), s.size(3)} & {1, 3} and (size := heads.image_size(s)) is not None]
    return max(map(max, sizes), default=None)
