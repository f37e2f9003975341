"""QuantizeLinear, DequantizeLinear and their relatives: scales and zero points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.model.graph import Node, Value
from vexlint.model.model import Model
from vexlint.model.shapes import Shape
from vexlint.values import Hit, Place, Severity, Verdict

PAIR = ("QuantizeLinear", "DequantizeLinear")
# Operator -> where its (scale, zero point) pairs are (ONNX operators at every opset that has them)
PARAMETERS: dict[str, tuple[tuple[int, int], ...]] = {
    "QuantizeLinear": ((1, 2),),
    "DequantizeLinear": ((1, 2),),
    "QLinearConv": ((1, 2), (4, 5), (6, 7)),
    "QLinearMatMul": ((1, 2), (4, 5), (6, 7)),
}
COARSE = 1 / 32  # a step with which scores of 0 to 1 keep fewer than 32 values
# What TensorRT takes (NVIDIA, "Working with Quantized Types": symmetric quantization, zero points of 0, signed types)
SYMMETRIC: dict[str, Verdict] = {"tensorrt": "refuses", "tensorrt-rtx": "refuses"}


def qdq_parameters(model: Model, context: Context) -> Iterator[Hit]:
    """VEX604: scales and zero points that no value can be quantized with, or that a target does not take."""
    nodes = [(node, pair) for op, pairs in PARAMETERS.items() for node in model.nodes(op) for pair in pairs]
    yield from hits((fault, node.place) for node, pair in nodes for fault in faults(node, *pair))
    yield from hits(_for_targets(model, context))
    yield from hits(_shared_scales(model))


def faults(node: Node, scale_at: int, zero_at: int) -> Iterator[Fault]:
    scale, zero = node.input(scale_at), node.input(zero_at)
    stated = scale.stated if scale else None
    numbers = (scale.constant if scale else None) or []
    if any(not math.isfinite(n) or n <= 0 for n in numbers):
        wrong = next(n for n in numbers if not math.isfinite(n) or n <= 0)
        yield Fault(
            f"a scale is {wrong:g}: quantized values mean nothing",
            "calibrate again; a tensor that was all zero in calibration needs a scale above 0",
        )
    given = zero.stated if zero else None
    if node.op in PAIR:
        yield from _types(node, given)
        yield from _axis(node, stated)
    if stated is not None and given is not None and stated.dims != given.dims and not _single(stated, given):
        yield Fault(f"scale {stated} and zero point {given} differ in shape", "give both the same shape")


def _single(one: Shape, other: Shape) -> bool:
    """A scalar and a list of one number are told apart by nobody."""
    return one.dims in ((), (1,)) and other.dims in ((), (1,))


def _types(node: Node, zero: Shape | None) -> Iterator[Fault]:
    """The zero point has the quantized type: that of the input of DequantizeLinear, of the output of QuantizeLinear."""
    quantized = _stated(node, "input" if node.op == "DequantizeLinear" else "output")
    if zero is not None and quantized is not None and zero.dtype != quantized.dtype:
        yield Fault(
            f"zero point {zero.dtype} where the quantized values are {quantized.dtype}: runtimes refuse the node",
            "give the zero point the type of the quantized values",
        )


def _stated(node: Node, side: str) -> Shape | None:
    """What the file says of the data that go in or come out; of what a QuantizeLinear makes, its zero point says it."""
    if side == "output":
        return node.graph.stated(node.outputs[0]) if node.outputs else None
    source = node.input(0)
    if source is None:
        return None
    maker = source.producer
    zero = maker.input(2) if maker is not None and (maker.domain, maker.op) == ("", "QuantizeLinear") else None
    typed = zero.stated if zero else None
    return source.stated or (Shape(typed.dtype, ()) if typed else None)


def _axis(node: Node, scale: Shape | None) -> Iterator[Fault]:
    """One scale for each index of the axis, where scales are a list; blocks are left to the runtime."""
    if scale is None or scale.rank != 1 or node.attribute("block_size"):
        return
    axis, count = node.attribute("axis"), scale.size(0)
    source = node.input(0)
    shape = source.stated if source else None
    if axis is None or shape is None or count in (None, 1):
        return
    if not -shape.rank <= axis < shape.rank:
        yield Fault(f"axis {axis} of {shape}, which has {shape.rank}", "name the axis of the channels")
    elif shape.size(axis) not in (None, count):
        right = [str(i) for i in range(shape.rank) if shape.size(i) == count]
        hint = f"; axis {' or '.join(right)} has that many" if right else ""
        yield Fault(
            f"{count} scales for axis {axis} of {shape}, which has {shape.size(axis)}{hint}",
            "one scale for each channel of the axis",
        )


def _for_targets(model: Model, context: Context) -> Iterator[tuple[Fault, Place]]:
    targets = [(str(t), SYMMETRIC[t.runtime]) for t in context.targets if t.runtime in SYMMETRIC]
    for target, verdict in targets:
        for node in model.nodes(*PAIR):
            zero = node.input(2)
            stated = zero.stated if zero else None
            if zero is not None and stated is not None and any(zero.constant or ()):
                text = f"asymmetric {stated.dtype} quantization: {target} takes zero points of 0 only"
                way_out = "calibrate for symmetric int8"
                if stated.dtype == "uint8" and set(zero.constant or ()) == {128}:
                    way_out += "; uint8 at 128 is int8 at 0 exactly"
                yield Fault(text, way_out, target=target, verdict=verdict), node.place
        for node in model.nodes("ConvTranspose"):
            if (maker := _by_inputs(node)) is not None:
                text = f"the weights of a ConvTranspose are scaled by input channel: {target} does not run it as int8"
                fault = Fault(text, "scale them by output channel: axis 1", target=target, verdict="falls-back")
                yield fault, maker.place


def _by_inputs(node: Node) -> Node | None:
    """The DequantizeLinear that scales the weights [inputs, outputs / group, ...] along axis 0."""
    weight = node.input(1)
    maker = weight.producer if weight else None
    if maker is None or (maker.domain, maker.op) != ("", "DequantizeLinear") or node.attribute("group") != 1:
        return None
    scale = maker.input(1)
    stated = scale.stated if scale else None
    listed = stated is not None and stated.rank == 1 and stated.size(0) != 1
    return maker if listed and maker.attribute("axis") == 0 else None


def _shared_scales(model: Model) -> Iterator[tuple[Fault, Place]]:
    """Heads whose boxes, hundreds of pixels, and scores, at most 1, are quantized by one scale."""
    if not model.nodes("QuantizeLinear"):
        return
    for head in model.heads:
        row = model.graph.producers.get(head.output)
        for node in (row, *model.graph.upstream(head.output)) if row else ():
            if node.op == "Concat":
                break
            step = _step(node.input(1)) if (node.domain, node.op) == ("", "QuantizeLinear") else None
            if step is not None and step > COARSE:
                text = f"one scale for boxes and scores of {head.output}: scores move in steps of {step:.3g}"
                way_out = "quantize boxes and scores apart, or leave the last Concat in float"
                yield Fault(text, way_out, severity=Severity.WARNING), node.place
                break


def _step(scale: Value | None) -> float | None:
    numbers: list[Any] | None = scale.constant if scale else None
    return float(numbers[0]) if numbers is not None and len(numbers) == 1 else None
