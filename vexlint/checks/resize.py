"""Resize: which input position each output sample reads, and how far two conventions lie apart.

Formulas: ONNX operator Resize, coordinate_transformation_mode (opset 11 to 19). Upsample and Resize below opset 11
have no such attribute and read as "asymmetric".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from vexlint.checks.context import Context
from vexlint.model.graph import Graph, Node
from vexlint.model.model import Model
from vexlint.values import Hit

# mode -> position in the input of output sample x; length and scale are those of the axis, size is the output's length
MODES: dict[str, Callable[[int, int, int, float], float]] = {
    "half_pixel": lambda x, length, size, scale: (x + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda x, length, size, scale: (x + 0.5) / scale - 0.5 if size > 1 else 0.0,
    "align_corners": lambda x, length, size, scale: x * (length - 1) / (size - 1) if size > 1 else 0.0,
    "asymmetric": lambda x, length, size, scale: x / scale,
}
PLAIN = "half_pixel"  # what every framework computes unless told otherwise
COORDINATES = "coordinate_transformation_mode"
DOUBTFUL = ("align_corners", "asymmetric")  # what no framework computes unless told to, or by an old exporter
INTERPOLATING = ("linear", "cubic")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis that a Resize changes: input length and output size where known, the scale between them."""

    index: int
    length: int | None
    size: int | None
    scale: float


@dataclass(frozen=True, slots=True)
class Shift:
    """How far samples move between two modes: in pixels of the Resize's input, and of the model's input image."""

    input_px: float
    image_px: float | None
    stride: float | None

    def __str__(self) -> str:
        image = "" if self.image_px is None else f" = {self.image_px:.2f} px of the image (stride {self.stride:g})"
        return f"by up to {self.input_px:.3f} px of its input{image}"


def align_corners(model: Model, context: Context) -> Iterator[Hit]:
    """VEX301: linear and cubic Resizes whose mode is not the contract's; without a contract, align_corners, and as a
    remark asymmetric.

    One hit for all nodes of one mode.
    """
    wanted = context.contract.resize
    groups: dict[str, list[Node]] = {}
    for node in interpolating(model):
        mode = canonical(node)
        distance = shift(node, mode, wanted or PLAIN)
        moves = distance is None or distance.input_px > 0
        if mode != (wanted or PLAIN).removeprefix("pytorch_") and (wanted or mode in DOUBTFUL) and moves:
            groups.setdefault(mode, []).append(node)
    for mode, nodes in groups.items():
        against = wanted or PLAIN
        shifts = [(shift(n, mode, against), n) for n in nodes]
        known = [(s, n) for s, n in shifts if s is not None]
        worst, node = max(known, key=lambda k: (k[0].image_px or 0.0, k[0].input_px), default=(None, nodes[0]))
        said = f"{mode} where the contract says {wanted}" if wanted else f"{mode}, where frameworks default to {PLAIN}"
        moved = f": samples move {worst}" if worst else ""
        places = [node.place, *(n.place for n in nodes if n is not node)]
        yield Hit(
            places[0],
            said + moved,
            f"right only if the network was trained so; else export with {_spelling(against)}",
            contract=wanted is not None,
            fix="unsafe" if wanted else "none",
            data={
                "mode": mode,
                "against": against,
                "input_px": round(worst.input_px, 6) if worst else None,
                "image_px": round(worst.image_px, 6) if worst and worst.image_px is not None else None,
            },
            more=tuple(places[1:]),
            count=len(nodes),
        )


def modes_mixed(model: Model, context: Context) -> Iterator[Hit]:
    """VEX302: two coordinate modes among the linear and cubic Resizes behind the first convolution."""
    if context.contract.resize is not None:
        return  # the contract says which is right: VEX301 names the others
    modes = {n: canonical(n) for n in interpolating(model)}
    if len(set(modes.values())) < 2:
        return
    graphs = {n.graph.path: n.graph for n in modes}
    convolved = {path: _convolved(graph) for path, graph in graphs.items()}
    behind = [n for n in modes if n.inputs[0] in convolved[n.graph.path] and any(a.length != 1 for a in axes(n))]
    counts = Counter(modes[n] for n in behind)
    if len(counts) < 2:
        return
    rarest = min(counts, key=lambda m: (counts[m], m == PLAIN))
    odd = [n for n in behind if modes[n] == rarest]
    others = " and ".join(f"{c} {m}" for m, c in counts.most_common() if m != rarest)
    yield Hit(
        odd[0].place,
        f"{rarest} here, beside {others}: one network rarely means both",
        "check the export of this layer against the training code, and say the right mode in the contract (resize = …)",
        data={"modes": dict(counts)},
        more=tuple(n.place for n in odd[1:]),
        count=len(odd),
    )


def _convolved(graph: Graph) -> set[str]:
    """The values of a graph that come from a convolution."""
    return graph.downstream(o for n in graph.nodes if n.op in ("Conv", "ConvTranspose") for o in n.outputs if o)


def interpolating(model: Model) -> list[Node]:
    """The Resize and Upsample nodes in linear or cubic mode, at every depth.

    Those without input or output, and those whose coordinate mode a function's caller gives, are left out.
    """
    nodes = (n for n in model.nodes("Resize", "Upsample") if n.input(0) and n.outputs)
    return [n for n in nodes if n.attribute("mode") in INTERPOLATING and (n.attribute(COORDINATES) or not _has_mode(n))]


def _has_mode(node: Node) -> bool:
    return any(a.name == COORDINATES for a in node.proto.attribute)


def canonical(node: Node) -> str:
    """The node's coordinate mode; pytorch_half_pixel counts as half_pixel, from which it differs only where an output
    axis has size 1."""
    mode: str = node.attribute(COORDINATES) or "asymmetric"
    if mode == "pytorch_half_pixel" and not any(a.size == 1 for a in axes(node)):
        return "half_pixel"
    return mode


def shift(node: Node, mode: str, against: str) -> Shift | None:
    """The largest distance between the positions that two modes read, over every output sample and changed axis.

    Positions are clamped to the input as interpolation does. Where lengths are unknown it is the bound for a long
    axis, |1/2 - 1/(2 scale)|. None where a mode has no formula here or no scale is known.
    """
    if mode not in MODES or against not in MODES:
        return None
    shifts = []
    for axis in axes(node):
        distance = _distance(axis, MODES[mode], MODES[against])
        stride = _stride(node, axis)
        shifts.append(Shift(distance, None if stride is None else distance * stride, stride))
    return max(shifts, key=lambda s: (s.image_px or 0.0, s.input_px), default=None)


def _distance(axis: Axis, one: Callable[..., float], other: Callable[..., float]) -> float:
    if axis.length is None or axis.size is None:
        return abs(0.5 - 0.5 / axis.scale)
    last = axis.length - 1

    def position(mode: Callable[..., float], x: int) -> float:
        return min(max(mode(x, axis.length, axis.size, axis.scale), 0.0), last)

    # every mode is a straight line, clamped: two of them lie farthest apart at an end or beside a bend
    beside = {0, axis.size - 1}
    for mode in (one, other):
        start, step = mode(0, axis.length, axis.size, axis.scale), mode(1, axis.length, axis.size, axis.scale)
        step -= start
        bends = [(bound - start) / step for bound in (0, last)] if step else []
        beside.update(x for bend in bends for x in (math.floor(bend), math.ceil(bend)))
    return max((abs(position(one, x) - position(other, x)) for x in beside if 0 <= x < axis.size), default=0.0)


def axes(node: Node) -> list[Axis]:
    """The axes whose size the node changes, as far as constants and shapes tell."""
    place = {"scales": 2, "sizes": 3} if node.op == "Resize" and node.graph.opsets.get("", 0) >= 11 else {"scales": 1}
    given = {k: _finite(v.constant) for k, i in place.items() if (v := node.input(i)) is not None}
    scales, sizes = given.get("scales") or _finite(node.attribute("scales")), given.get("sizes")
    source, result = node.input(0), node.graph.shape(node.outputs[0])
    shape = source.shape if source else None
    rank = shape.rank if shape else len(scales or sizes or ())
    named = node.attribute("axes")
    found = []
    for position, index in enumerate(range(rank) if named is None else [a % rank for a in named] if rank else []):
        length = shape.size(index) if shape else None
        size = result.size(index) if result and index < result.rank else None
        if size is None and sizes and position < len(sizes):
            size = int(sizes[position])
        scale = float(scales[position]) if scales and position < len(scales) else None
        if size is None and scale is not None and length is not None:
            size = int(length * scale)
        if scale is None and size is not None and length:
            scale = size / length
        if scale is not None and scale > 0 and (scale != 1.0 or (size is not None and size != length)):
            found.append(Axis(index, length, size, scale))
    return found


def _finite(numbers: list[Any] | None) -> list[Any] | None:
    """The numbers, None where one of them is none that a size can be computed with."""
    return numbers if numbers and all(math.isfinite(n) for n in numbers) else None


def _stride(node: Node, axis: Axis) -> float | None:
    """Pixels of the model's image for one pixel of the Resize's input on this axis; None where not known."""
    if not axis.length or node.graph.is_function:
        return None
    for name in node.graph.model.graph.inputs:
        image = node.graph.model.graph.shape(name)
        if image is not None and image.rank == 4 and axis.index < 4:
            side = image.size(axis.index)
            return side / axis.length if side else None
    return None


def _spelling(mode: str) -> str:
    return "align_corners=True" if mode == "align_corners" else f"align_corners=False ({mode})"
