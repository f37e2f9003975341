"""Resize: whether its scales, sizes and region belong together, and which axes they change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from vexlint.checks import nearest, tables
from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.checks.resize import COORDINATES
from vexlint.model.graph import Node, Value
from vexlint.model.kinds import UNKNOWN
from vexlint.model.model import Model
from vexlint.values import Hit, Severity

IMAGE = 4  # the rank of a batch of images: what a Resize gets unless something says otherwise
WHOLE = 1e-6  # how far from a whole number a length is that float32 meant as one, relative
ONE_OF = "give either scales or sizes, and leave the other input empty"


def resize_inputs(model: Model, context: Context) -> Iterator[Hit]:
    """VEX305: inputs of Resize and Upsample that contradict each other or the operator; one hit a fault."""
    nodes = [n for n in model.nodes("Resize", "Upsample") if n.input(0) is not None and n.schema is not None]
    yield from hits((fault, node.place) for node in nodes for fault in faults(node, context.lenient))
    yield from hits((fault, node.place) for node in nodes for fault in lengths(node))
    yield from tables.of("VEX305", model, context)


def lengths(node: Node) -> Iterator[Fault]:
    """What factors that are no whole numbers make of lengths that are known."""
    model = node.graph.model
    kind = model.flow.values.get(node.inputs[0], UNKNOWN) if node.graph is model.graph else UNKNOWN
    dims = kind.dims or ()
    factors, wanted = map(_constant, _given(node))
    if node.attribute("axes") is not None or sorted((len(factors), len(wanted))) != [0, len(dims)]:
        return
    if any(not math.isfinite(n) or n <= 0 for n in (*factors, *wanted)):
        return  # `faults` speaks
    known = [(axis, length) for axis, length in enumerate(dims) if length]
    made = {a: (n, n * factors[a] if factors else wanted[a]) for a, n in known}
    cut = [f"{n} to {size:g}" for n, size in made.values() if abs(size - round(size)) > WHOLE * size]
    if cut:
        text = f"lengths become no whole numbers ({', '.join(cut)}): the standard cuts them off, some tools round"
        yield Fault(text, "give sizes, or factors that fit the lengths", Severity.INFO)
    elif node.attribute("mode") == "nearest" and node.op == "Resize":
        yield from _moved(node, {axis: (n, round(size)) for axis, (n, size) in made.items()})


def _moved(node: Node, made: dict[int, tuple[int, int]]) -> Iterator[Fault]:
    for axis, (length, size) in made.items():
        found = nearest.moved(length, size, node.attribute(COORDINATES) or "asymmetric", node.attribute("nearest_mode"))
        if found:
            sample, read, due = found[0]
            yield Fault(
                f"{length} to {size} along axis {axis}, a factor that float32 does not hold: {len(found)} of {size} "
                f"samples read the pixel beside the exact one (sample {sample} reads {read} instead of {due})",
                "resize by a whole factor, or expect the training framework to differ here",
                Severity.WARNING,
            )


def faults(node: Node, lenient: bool) -> Iterator[Fault]:
    """What contradicts the operator; `lenient` targets read some of it all the same."""
    scales, sizes = _given(node)
    modern = _modern(node)
    if modern and _known(scales) and _known(sizes):
        yield Fault("both scales and sizes are given: runtimes refuse the node", ONE_OF)
    if modern and _empty(scales) and _empty(sizes):
        yield Fault("neither scales nor sizes are given: runtimes refuse the node", "give one of the two")
    for label, value in (("scales", scales), ("sizes", sizes)):
        if value is not None and not _empty(value):
            yield from _numbers(node, label, value, lenient)
    if node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        yield from _region(node)


def _given(node: Node) -> tuple[Value | None, Value | None]:
    """scales and sizes, wherever this version of the operator takes them; None where it does not or they are absent."""
    if _modern(node):
        return node.input(2), node.input(3)
    return node.input(1), None


def _modern(node: Node) -> bool:
    """Whether this is Resize as of opset 11, with a region and sizes."""
    return node.op == "Resize" and node.graph.opsets.get("", 0) >= 11


def _empty(value: Value | None) -> bool:
    """Whether an input is left out: no name, or a tensor without elements, as opset 11 wanted it."""
    if value is None:
        return True
    shape = value.stated
    return shape is not None and 0 in shape.dims


def _known(value: Value | None) -> bool:
    """Whether an input has elements for certain: what is computed at run time may turn out empty."""
    return value is not None and (shape := value.stated) is not None and shape.rank == 1 and bool(shape.size(0))


def _numbers(node: Node, label: str, value: Value, lenient: bool) -> Iterator[Fault]:
    stated = value.stated
    wanted = ("float",) if label == "scales" else ("int64",)
    if stated is not None and stated.dtype not in wanted:
        yield Fault(
            f"{label} are {stated.dtype}, not {wanted[0]}: runtimes refuse the node",
            "keep this input out of the conversion to another precision",
            Severity.WARNING if lenient else None,
        )
    if stated is not None and stated.rank == 1 and (count := stated.size(0)) is not None:
        yield from _length(node, label, count)
    numbers = value.constant
    if numbers and any(not math.isfinite(n) or n <= 0 for n in numbers):
        yield Fault(f"{label} {_list(numbers)} are not all above 0", "every axis keeps at least one sample")
    elif numbers and label == "scales" and node.op == "Upsample" and min(numbers) < 1:
        yield Fault(f"scales {_list(numbers)} make an axis smaller, which Upsample cannot", "export as Resize")


def _length(node: Node, label: str, count: int) -> Iterator[Fault]:
    axes = node.attribute("axes")
    needed = _rank(node, count) if axes is None else len(axes)
    if needed is not None and count != needed:
        what = "the input's rank" if axes is None else "the number of axes"
        yield Fault(f"{count} {label} where {what} is {needed}", f"one of the {label} for each axis")


def _rank(node: Node, count: int) -> int | None:
    """The rank of what is resized. Shapes are inferred only where `count` is not the usual one: most files have a
    Resize, and most of them declare no shapes inside."""
    source = node.input(0)
    shape = source.stated if source else None
    if shape is None and source is not None and count != IMAGE:
        shape = source.shape
    return shape.rank if shape else None


def _region(node: Node) -> Iterator[Fault]:
    roi = node.input(1)
    if _empty(roi):
        yield Fault(
            "tf_crop_and_resize without a roi: what part is resized is left to chance",
            "give roi as [start..., end...], or another coordinate_transformation_mode",
        )
        return
    stated = roi.stated if roi else None
    count = stated.size(0) if stated is not None and stated.rank == 1 else None
    axes = node.attribute("axes")
    rank = None if count is None else _rank(node, count // 2) if axes is None else len(axes)
    if count is not None and rank is not None and count != 2 * rank:
        yield Fault(f"roi has {count} numbers where {2 * rank} are due", "a start and an end for each axis")


def channel_axis(model: Model, context: Context) -> Iterator[Hit]:
    """VEX306: Resizes that change the batch or channel axis of NCHW data; one hit a cause."""
    nodes = [n for n in model.nodes("Resize", "Upsample") if n.input(0) is not None]
    yield from hits((fault, node.place) for node in nodes if (fault := _odd(node, context)) is not None)


def _odd(node: Node, context: Context) -> Fault | None:
    changed, rank = _changed(node)
    if rank < IMAGE or not changed & {0, 1}:
        return None  # of fewer axes nobody knows which are the picture's
    if changed == {1, 2} and rank == IMAGE:
        return Fault(
            "resizes axes 1 and 2 of four: height and width where data are NHWC, the channels where they are NCHW",
            "export as NCHW: many targets resize the last two axes only",
        )
    axes = " and ".join(str(a) for a in sorted(changed & {0, 1}))
    said = f"resizes axis {axes}, {'the channels' if 0 not in changed else 'the batch'} of NCHW data"
    refusing = _refusing(node, changed, context)
    if refusing:
        message = f"{said}: {refusing} refuses that in this mode"
        return Fault(message, "resize height and width only", target=refusing, verdict="refuses")
    return Fault(said, "resize height and width only: images do not grow in other directions")


def _changed(node: Node) -> tuple[set[int], int]:
    """The axes that constants say are resized, and the rank; without shape inference."""
    scales, sizes = _given(node)
    source = node.input(0)
    shape = source.stated if source else None
    axes = node.attribute("axes")
    attribute = node.attribute("scales") if scales is None else None
    factors = _constant(scales) or list(attribute or ())
    lengths = [] if factors else _constant(sizes)
    given = factors or lengths
    rank = shape.rank if shape else 0 if axes is not None else len(given)
    if axes is None and len(given) != rank:
        return set(), 0  # VEX305 speaks
    where = list(range(len(given))) if axes is None else [a % rank for a in axes] if rank else []
    pairs = list(zip(where, given, strict=False))
    if factors:
        return {a for a, factor in pairs if factor != 1}, rank
    return {a for a, size in pairs if shape is not None and shape.size(a) not in (size, None)}, rank


def _constant(value: Value | None) -> list[Any]:
    return (value.constant or []) if value is not None else []


def _refusing(node: Node, changed: set[int], context: Context) -> str | None:
    """ONNX Runtime where it does not interpolate over these axes: seen with 1.32, which of four takes the last two or
    the two before the last."""
    if node.attribute("mode") not in ("linear", "cubic") or changed <= {1, 2}:
        return None
    return next((str(t) for t in context.targets if t.runtime == "onnxruntime"), None)


def _list(numbers: list[Any]) -> str:
    return "[" + ",".join(f"{n:g}" for n in numbers) + "]"
