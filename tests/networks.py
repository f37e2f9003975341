"""Small networks with what vision models are made of, at several opsets; weights are seeded noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from tests.ordinary import Maker, tensor

OPSETS = (11, 13, 17, 20, 22)
BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64


def _start(channels: int = 3) -> Maker:
    m = Maker()
    m.note("x", channels)
    return m


def _axes(m: Maker, op: str, x: str, axes: list[int], opset: int, since: int = 13, **attributes: Any) -> str:
    """An operator whose axes are an input from opset `since` and an attribute before."""
    if opset >= since:
        return m.add(op, x, m.ints(*axes), **attributes)
    return m.add(op, x, axes=axes, **attributes)


def classifier(opset: int) -> ModelProto:
    m = _start()
    y = m.relu("x", 8, 3, 2, "/stem")
    ones = [m.constant(np.abs(np.asarray(m.dice.random(8)) + 0.5)) for _ in range(2)]
    y = m.note(m.add("BatchNormalization", y, ones[0], m.weight(8), m.weight(8), ones[1], epsilon=1e-5, at="/bn"), 8)
    y = m.note(m.add("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2], at="/pool"), 8)
    y = m.silu(y, 16, 3, 1, "/block")
    y = m.add("Add", y, m.silu(y, 16, 1, 1, "/skip"), at="/skip")
    y = m.add("Flatten", m.add("GlobalAveragePool", y, at="/head"), axis=1, at="/head")
    y = m.add("Gemm", y, m.weight(10, 16), m.weight(10), transB=1, alpha=1.0, at="/head")
    m.add("Softmax", y, axis=1, out="y")
    return m.model([tensor("x", 1, 3, 16, 16)], [tensor("y", 1, 10)], opset)


def neck(opset: int) -> ModelProto:
    opset = max(opset, 13)  # a Resize without roi
    m = _start()
    small = m.silu("x", 8, 3, 2, "/down")
    up = m.upsample(small, 2.0, "/up")
    linear = m.upsample(small, 2.0, "/linear", mode="linear", coordinate_transformation_mode="half_pixel")
    both = m.note(m.add("Concat", up, linear, axis=1, at="/cat"), 16)
    y = m.add("LeakyRelu", m.conv(both, 8, 1, at="/out"), alpha=0.1, at="/out")
    y = m.add("Slice", y, m.ints(0), m.ints(6), m.ints(1), m.ints(1), at="/out")
    y = m.add("Pad", y, m.ints(0, 0, 1, 1, 0, 0, 1, 1), m.constant(0.5), mode="constant", at="/out")
    m.add("Clip", y, m.constant(-1.0), m.constant(1.0), out="y")
    return m.model([tensor("x", 1, 3, 16, 16)], [tensor("y", 1, 6, 18, 18)], opset)


def quantized(opset: int) -> ModelProto:
    opset = max(opset, 13)
    m = _start()
    scale, zero = m.constant(0.02), m.constant(0, np.int8)
    q = m.add("QuantizeLinear", "x", scale, zero, at="/q")
    d = m.add("DequantizeLinear", q, scale, zero, at="/q")
    weight = m.constant(m.dice.integers(-100, 100, (16, 3, 3, 3)), np.int8)
    scales = m.constant(m.dice.random(16) * 0.01 + 0.01)
    w = m.add("DequantizeLinear", weight, scales, m.constant(np.zeros(16), np.int8), axis=0, at="/w")
    y = m.add("Relu", m.add("Conv", d, w, m.weight(16), kernel_shape=[3, 3], pads=[1, 1, 1, 1], at="/conv"))
    after = m.constant(0.03), m.constant(3, np.uint8)
    m.add("DequantizeLinear", m.add("QuantizeLinear", y, *after, at="/after"), *after, out="y")
    return m.model([tensor("x", 1, 3, 8, 8)], [tensor("y", 1, 16, 8, 8)], opset)


def reductions(opset: int) -> ModelProto:
    m = _start(8)
    y = m.conv("x", 8, 1, at="/conv")
    mean = _axes(m, "ReduceMean", y, [1], opset, 18, keepdims=1)
    total = _axes(m, "ReduceSum", m.add("Sub", y, mean), [2], opset, keepdims=0)
    flat = _axes(m, "Unsqueeze", total, [3], opset)
    flat = _axes(m, "Squeeze", flat, [0], opset)
    values, where = m.several("TopK", flat, m.ints(3), many=2, axis=0, largest=1, sorted=1)
    if opset >= 13:
        parts = m.several("Split", values, m.ints(1, 2), many=2, axis=0)
    else:
        parts = m.several("Split", values, many=2, axis=0, split=[1, 2])
    m.add("Transpose", m.add("Exp", parts[1]), perm=[1, 0, 2], out="y")
    m.add("Cast", where, to=TensorProto.FLOAT, out="z")
    return m.model([tensor("x", 1, 8, 4, 4)], [tensor("y", 4, 2, 1), tensor("z", 3, 4, 1)], opset)


def attention(opset: int) -> ModelProto:
    m = _start(8)
    q, k, v = (m.add("Add", m.add("MatMul", "x", m.weight(8, 8)), m.weight(8)) for _ in range(3))
    scores = m.add("Div", m.add("MatMul", q, m.add("Transpose", k, perm=[0, 2, 1])), m.constant(2.83))
    y = m.add("MatMul", m.add("Softmax", scores, axis=-1), v)
    if opset >= 17:
        y = m.add("LayerNormalization", y, m.weight(8), m.weight(8), axis=-1, epsilon=1e-5)
    y = m.add("Reshape", y, m.ints(1, 6, 2, 4))
    y = m.add("Gather", y, m.ints(0, 2), axis=1)
    m.add("ArgMax", y, axis=3, keepdims=0, out="z")
    m.add("HardSigmoid", y, alpha=0.2, beta=0.5, out="y")
    return m.model([tensor("x", 1, 6, 8)], [tensor("y", 1, 2, 2, 4), tensor("z", 1, 2, 2, kind=INT64)], opset)


def branches(opset: int) -> ModelProto:
    m = _start(4)
    y = m.relu("x", 4, 3, at="/conv")
    arms = []
    for title, op in (("then", "Sigmoid"), ("else", "Tanh")):
        arm = Maker(parent=m)
        inner = arm.add("Mul", y, arm.constant(2.0), at=f"/{title}")
        out = arm.add(op, arm.add("Neg", inner, at=f"/{title}"), at=f"/{title}")
        arms.append(helper.make_graph(arm.nodes, title, [], [tensor(out, 1, 4, 4, 4)], arm.weights))
    y = m.add("If", "flag", then_branch=arms[0], else_branch=arms[1])
    m.add("Add", y, m.constant(1.0), out="y")
    return m.model([tensor("x", 1, 4, 4, 4), tensor("flag", kind=BOOL)], [tensor("y", 1, 4, 4, 4)], opset)


def repeated(opset: int) -> ModelProto:
    m = _start(4)
    y = m.relu("x", 4, 1, at="/conv")
    body = Maker(parent=m)
    kept = body.add("Identity", "go", at="/loop")
    state = body.add("Mul", body.add("Add", "state", body.constant(0.5), at="/loop"), body.constant(0.9), at="/loop")
    inputs = [tensor("i", kind=INT64), tensor("go", kind=BOOL), tensor("state", 1, 4, 4, 4)]
    outputs = [tensor(kept, kind=BOOL), tensor(state, 1, 4, 4, 4)]
    graph = helper.make_graph(body.nodes, "body", inputs, outputs, body.weights)
    m.add("Abs", m.add("Loop", m.constant(3, np.int64), m.constant(True, np.bool_), y, body=graph), out="y")
    return m.model([tensor("x", 1, 4, 4, 4)], [tensor("y", 1, 4, 4, 4)], opset)


def detector_tail(opset: int) -> ModelProto:
    m = _start(8)
    y = m.conv("x", 9, 1, at="/head")
    y = m.add("Transpose", m.add("Reshape", y, m.ints(1, 9, 16)), perm=[0, 2, 1])
    boxes = m.add("Slice", y, m.ints(0), m.ints(4), m.ints(2))
    scores = m.add("Sigmoid", m.add("Slice", y, m.ints(4), m.ints(9), m.ints(2)))
    scores = m.add("Transpose", scores, perm=[0, 2, 1])
    limits = m.ints(5), m.constant([0.5]), m.constant([0.25])
    m.add("NonMaxSuppression", boxes, scores, *limits, center_point_box=1, out="selected")
    m.add("Identity", boxes, out="y")
    outputs = [tensor("selected", None, 3, kind=INT64), tensor("y", 1, 16, 4)]
    return m.model([tensor("x", 1, 8, 4, 4)], outputs, opset)


def dynamic(opset: int) -> ModelProto:
    m = _start()
    y = m.relu("x", 4, 3, 2, "/conv")
    batch = m.shape_of(y, 0)
    ends = [_axes(m, "Unsqueeze", batch, [0], opset), m.ints(4), m.ints(-1)]
    y = m.add("Reshape", y, m.add("Concat", *ends, axis=0))
    m.add("Mul", y, m.constant(1.5), out="y")
    return m.model([tensor("x", "batch", 3, "height", "width")], [tensor("y", "batch", 4, "places")], opset)


MAKERS: tuple[Callable[[int], ModelProto], ...] = (
    classifier, neck, quantized, reductions, attention, branches, repeated, detector_tail, dynamic,
)  # fmt: skip


def networks() -> dict[str, ModelProto]:
    """Name -> network, every maker at every opset."""
    return {f"{make.__name__}_{opset}": make(opset) for make in MAKERS for opset in OPSETS}
