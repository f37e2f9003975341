"""Ordinary exports, rebuilt node by node as the exporters write them: what a linter must leave in peace.

Widths and depths are cut and weights are noise, for a check reads neither; operators, attributes, names, symbolic
sizes and metadata are those of the real thing. Every builder returns a model that passes the full ONNX check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

INT64_MAX = 2**63 - 1
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Attributes = dict[str, Any]
COCO = {i: f"class{i}" for i in range(80)}
Dims = Sequence[int | str | None]


class Maker:
    """Collects one graph. PyTorch names nodes by module path and keeps weights as initializers; Paddle numbers them
    and keeps weights in Constant nodes. The parent of a subgraph's maker lends it names, so that they stay unique."""

    def __init__(self, style: str = "pytorch", parent: Maker | None = None) -> None:
        self.style = style
        self.nodes: list[Any] = []
        self.weights: list[TensorProto] = []
        self.channels: dict[str, int] = {}
        self.taken: Counter[str] = parent.taken if parent else Counter()
        self.dice = np.random.default_rng(0)

    def _name(self, stem: str) -> str:
        self.taken[stem] += 1
        if self.style == "paddle":
            return f"p2o.{stem.removeprefix('/')}.{self.taken[stem] - 1}"
        return stem if self.taken[stem] == 1 else f"{stem}_{self.taken[stem] - 1}"

    def add(self, op: str, *inputs: str, at: str = "", out: str = "", **attributes: Any) -> str:
        """Adds a node of one output and returns the output's name (`out` where it has to be a certain one)."""
        return self.several(op, *inputs, at=at, outs=[out] if out else None, **attributes)[0]

    def several(
        self, op: str, *inputs: str, at: str = "", outs: list[str] | None = None, many: int = 1, **attributes: Any
    ) -> list[str]:
        name = self._name(f"{at}/{op}")
        outputs = outs or [f"{name}_output_{i}" for i in range(many)]
        self.nodes.append(helper.make_node(op, inputs, outputs, name, **attributes))
        return outputs

    def weight(self, *shape: int) -> str:
        return self.constant(self.dice.standard_normal(shape).astype(np.float32) * 0.1)

    def constant(self, value: ArrayLike, dtype: type = np.float32) -> str:
        """A constant in the exporter's way; numbers become float32 unless `dtype` says otherwise."""
        tensor = numpy_helper.from_array(np.asarray(value, dtype), self._name("w"))
        if self.style == "paddle":
            self.nodes.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
        else:
            self.weights.append(tensor)
        return tensor.name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def shape_of(self, value: str, axis: int, at: str = "") -> str:
        """The run-time size of an axis as a scalar, as `x.shape[axis]` is traced."""
        return self.add("Gather", self.add("Shape", value, at=at), self.constant(axis, np.int64), at=at, axis=0)

    def vector(self, *parts: str | int, at: str = "") -> str:
        """Run-time scalars and numbers as one shape tensor."""
        axis = self.ints(0)
        ends = [self.ints(p) if isinstance(p, int) else self.add("Unsqueeze", p, axis, at=at) for p in parts]
        return self.add("Concat", *ends, at=at, axis=0)

    def conv(self, x: str, out: int, kernel: int = 1, stride: int = 1, at: str = "", **attributes: Any) -> str:
        """A convolution with bias; the input's channels are those noted when it was made."""
        group = attributes.setdefault("group", 1)
        attributes |= {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        attributes |= {"dilations": [1, 1]}
        weight = self.weight(out, self.channels[x] // group, kernel, kernel)
        return self.note(self.add("Conv", x, weight, self.weight(out), at=at, **attributes), out)

    def note(self, value: str, channels: int) -> str:
        self.channels[value] = channels
        return value

    def silu(self, x: str, out: int, kernel: int = 1, stride: int = 1, at: str = "") -> str:
        """Convolution and SiLU, which every exporter writes as Sigmoid and Mul."""
        y = self.conv(x, out, kernel, stride, f"{at}/conv")
        return self.note(self.add("Mul", y, self.add("Sigmoid", y, at=f"{at}/act"), at=f"{at}/act"), out)

    def relu(self, x: str, out: int, kernel: int = 1, stride: int = 1, at: str = "") -> str:
        return self.note(self.add("Relu", self.conv(x, out, kernel, stride, at), at=at), out)

    def upsample(self, x: str, scale: float, at: str = "", **attributes: Any) -> str:
        """The nearest Resize of every exporter, or a linear one by attributes; a constant scale on H and W."""
        written: Attributes = {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
        if self.style == "pytorch":
            written["cubic_coeff_a"] = -0.75
        roi = self.constant(np.zeros(0)) if self.style == "paddle" else ""
        scales = self.constant([1, 1, scale, scale])
        return self.note(self.add("Resize", x, roi, scales, at=at, **(written | attributes)), self.channels[x])

    def model(self, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto], opset: int) -> ModelProto:
        producer = {"pytorch": "pytorch", "paddle": ""}[self.style]
        title = {"pytorch": "main_graph", "paddle": "Model from PaddlePaddle."}[self.style]
        graph = helper.make_graph(self.nodes, title, inputs, outputs, self.weights)
        imports = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, producer_name=producer, opset_imports=imports, ir_version=8)


def tensor(name: str, *dims: int | str | None, kind: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def renamed(m: Maker, value: str, name: str) -> str:
    """Gives a value the name of a graph output, where its maker is the last node that wrote it."""
    maker = next(node for node in m.nodes if value in node.output)
    maker.output[list(maker.output).index(value)] = name
    return name


def described(model: ModelProto, **metadata: Any) -> ModelProto:
    """The model with an exporter's metadata: every value as its Python text."""
    helper.set_model_props(model, {key: str(value) for key, value in metadata.items()})
    return model


# --- one-stage detectors -------------------------------------------------------------------------------------------


def c2f(m: Maker, x: str, out: int, repeats: int, shortcut: bool, at: str) -> str:
    """The cross-stage block of YOLOv8: split, bottlenecks on one half, everything concatenated."""
    half = out // 2
    wide = m.silu(x, out, at=f"{at}/cv1")
    parts = m.several("Split", wide, m.ints(half, half), at=at, many=2, axis=1)
    for index in range(repeats):
        inner = f"{at}/m.{index}"
        source = m.note(parts[-1], half)
        y = m.silu(m.silu(source, half, 3, at=f"{inner}/cv1"), half, 3, at=f"{inner}/cv2")
        parts.append(m.add("Add", source, y, at=inner) if shortcut else y)
    joined = m.note(m.add("Concat", *parts, at=at, axis=1), half * len(parts))
    return m.silu(joined, out, at=f"{at}/cv2")


def sppf(m: Maker, x: str, at: str) -> str:
    out = m.channels[x]
    parts = [m.silu(x, out // 2, at=f"{at}/cv1")]
    for _ in range(3):
        pool: Attributes = {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2], "strides": [1, 1], "ceil_mode": 0}
        parts.append(m.add("MaxPool", parts[-1], at=f"{at}/m", **pool))
    joined = m.note(m.add("Concat", *parts, at=at, axis=1), 2 * out)
    return m.silu(joined, out, at=f"{at}/cv2")


def pyramid(m: Maker, images: str) -> list[str]:
    """Backbone and neck: features at strides 8, 16, 32."""
    m.note(images, 3)
    x = m.silu(m.silu(images, 8, 3, 2, "/model.0"), 8, 3, 2, "/model.1")
    x = c2f(m, x, 8, 1, True, "/model.2")
    p3 = c2f(m, m.silu(x, 16, 3, 2, "/model.3"), 16, 2, True, "/model.4")
    p4 = c2f(m, m.silu(p3, 16, 3, 2, "/model.5"), 16, 2, True, "/model.6")
    p5 = c2f(m, m.silu(p4, 32, 3, 2, "/model.7"), 32, 1, True, "/model.8")
    p5 = sppf(m, p5, "/model.9")

    def join(a: str, b: str, at: str) -> str:
        return m.note(m.add("Concat", a, b, at=at, axis=1), m.channels[a] + m.channels[b])

    n4 = c2f(m, join(m.upsample(p5, 2, "/model.10"), p4, "/model.11"), 16, 1, False, "/model.12")
    n3 = c2f(m, join(m.upsample(n4, 2, "/model.13"), p3, "/model.14"), 16, 1, False, "/model.15")
    n4 = c2f(m, join(m.silu(n3, 16, 3, 2, "/model.16"), n4, "/model.17"), 16, 1, False, "/model.18")
    n5 = c2f(m, join(m.silu(n4, 16, 3, 2, "/model.19"), p5, "/model.20"), 32, 1, False, "/model.21")
    return [n3, n4, n5]


HEAD = "/model.22"
STRIDES = (8, 16, 32)


def branch(m: Maker, x: str, out: int, at: str) -> str:
    """Two convolutions and a plain one: the branches for boxes, classes, masks, keypoints and angles."""
    x = m.silu(m.silu(x, 8, 3, at=f"{at}.0"), 8, 3, at=f"{at}.1")
    return m.conv(x, out, at=f"{at}.2")


def rows(m: Maker, levels: Sequence[str], batch: str | int) -> str:
    """Maps of the levels as one [batch, channels, places]."""
    shapes = [
        m.ints(1, m.channels[x], -1) if batch == 1 else m.vector(batch, m.channels[x], -1, at=HEAD) for x in levels
    ]
    flat = [m.add("Reshape", x, s, at=HEAD) for x, s in zip(levels, shapes, strict=True)]
    return m.add("Concat", *flat, at=HEAD, axis=2)


def dfl(m: Maker, distances: str, batch: str | int) -> str:
    """Distribution focal loss: 16 bins a side become one number, by Softmax and a convolution with 0..15."""
    at, places = f"{HEAD}/dfl", -1
    first = m.ints(1, 4, 16, places) if batch == 1 else m.vector(batch, 4, 16, places, at=at)
    last = m.ints(1, 4, places) if batch == 1 else m.vector(batch, 4, places, at=at)
    bins = m.add("Transpose", m.add("Reshape", distances, first, at=at), at=at, perm=[0, 2, 1, 3])
    weight = m.constant(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    mean = m.add("Conv", m.add("Softmax", bins, at=at, axis=1), weight, at=f"{at}/conv", kernel_shape=[1, 1])
    return m.add("Reshape", mean, last, at=at)


def grid(size: tuple[int, int]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Centres [2, places] in cells, and the stride [1, places] of each, as a static export folds them."""
    centres, strides = [], []
    for stride in STRIDES:
        y, x = np.mgrid[: size[0] // stride, : size[1] // stride] + 0.5
        centres.append(np.array([x.ravel(), y.ravel()]))
        strides.append(np.full((1, x.size), stride))
    return np.concatenate(centres, 1)[None].astype(np.float32), np.concatenate(strides, 1).astype(np.float32)


def traced_grid(m: Maker, levels: Sequence[str]) -> tuple[str, str]:
    """The same computed from run-time sizes, as a dynamic export traces it."""
    centres, strides, zero, one = [], [], m.constant(0, np.int64), m.constant(1, np.int64)
    for level, stride in zip(levels, STRIDES, strict=True):
        high, wide = m.shape_of(level, 2, HEAD), m.shape_of(level, 3, HEAD)
        area = m.vector(high, wide, at=HEAD)
        ends = [m.add("Cast", m.add("Range", zero, s, one, at=HEAD), at=HEAD, to=FLOAT) for s in (wide, high)]
        x, y = (m.add("Add", e, m.constant(0.5), at=HEAD) for e in ends)
        y = m.add("Expand", m.add("Unsqueeze", y, m.ints(1), at=HEAD), area, at=HEAD)
        both = [m.add("Unsqueeze", m.add("Expand", v, area, at=HEAD), m.ints(-1), at=HEAD) for v in (x, y)]
        points = m.add("Concat", *both, at=HEAD, axis=-1)
        centres.append(m.add("Reshape", points, m.ints(-1, 2), at=HEAD))
        cells = m.vector(m.add("Mul", high, wide, at=HEAD), 1, at=HEAD)
        value = numpy_helper.from_array(np.array([stride], np.float32))
        strides.append(m.add("ConstantOfShape", cells, at=HEAD, value=value))
    turned = (
        m.add("Transpose", m.add("Concat", *p, at=HEAD, axis=0), at=HEAD, perm=[1, 0]) for p in (centres, strides)
    )
    points, steps = turned
    return m.add("Unsqueeze", points, m.ints(0), at=HEAD), steps


def boxes_of(m: Maker, distances: str, centres: str, strides: str) -> str:
    """Distances to the sides as centre and size in pixels."""
    side, one = [m.ints(0), m.ints(2), m.ints(4)], m.ints(1)
    low = m.add("Slice", distances, side[0], side[1], one, at=HEAD)
    high = m.add("Slice", distances, side[1], side[2], one, at=HEAD)
    first, last = m.add("Sub", centres, low, at=HEAD), m.add("Add", centres, high, at=HEAD)
    middle = m.add("Div", m.add("Add", first, last, at=HEAD), m.constant(2), at=HEAD)
    box = m.add("Concat", middle, m.add("Sub", last, first, at=HEAD), at=HEAD, axis=1)
    return m.add("Mul", box, strides, at=HEAD)


YOLO_EXTRAS = {"detect": 0, "segment": 32, "pose": 51, "obb": 1}


def yolov8(
    task: str = "detect", classes: int = 80, size: tuple[int, int] = (320, 320), dynamic: bool = False
) -> ModelProto:
    """An anchor-free export of opset 17: output0 [1, 4 + classes (+ extras), places], boxes decoded, NMS outside."""
    m = Maker()
    levels = pyramid(m, "images")
    maps = []
    for i, level in enumerate(levels):
        box, score = (
            branch(m, level, 64, f"{HEAD}/cv2.{i}/cv2.{i}"),
            branch(m, level, classes, f"{HEAD}/cv3.{i}/cv3.{i}"),
        )
        maps.append(m.note(m.add("Concat", box, score, at=HEAD, axis=1), 64 + classes))
    batch = m.shape_of(levels[0], 0, HEAD) if dynamic else 1
    distances, logits = m.several("Split", rows(m, maps, batch), m.ints(64, classes), at=HEAD, many=2, axis=1)
    centres, strides = traced_grid(m, levels) if dynamic else (m.constant(part) for part in grid(size))
    boxes = boxes_of(m, dfl(m, distances, batch), centres, strides)
    parts = [boxes, m.add("Sigmoid", logits, at=HEAD)]
    extras = YOLO_EXTRAS[task]
    if extras:
        more = [branch(m, x, extras, f"{HEAD}/cv4.{i}/cv4.{i}") for i, x in enumerate(levels)]
        parts = [m.add("Concat", *parts, at=HEAD, axis=1), extra_rows(m, task, rows(m, more, batch), centres, strides)]
    m.add("Concat", *parts, at=HEAD, out="output0", axis=1)
    wide = 4 + classes + extras
    places = sum((size[0] // s) * (size[1] // s) for s in STRIDES)
    inputs = [tensor("images", *(("batch", 3, "height", "width") if dynamic else (1, 3, *size)))]
    outputs = [tensor("output0", *(("batch", wide, "anchors") if dynamic else (1, wide, places)))]
    if task == "segment":
        outputs.append(prototypes(m, levels[0], [d // 4 for d in size], dynamic))
    metadata = {"description": "detector", "version": "8.3.0", "stride": 32, "task": task, "batch": 1}
    names = {i: f"class{i}" for i in range(classes)}
    return described(m.model(inputs, outputs, 17), **metadata, imgsz=list(size), names=names)


def extra_rows(m: Maker, task: str, raw: str, centres: str, strides: str) -> str:
    """Mask coefficients stay raw, an angle is a scaled Sigmoid, keypoints are decoded to pixels."""
    if task == "obb":
        turn = m.add("Sub", m.add("Sigmoid", raw, at=HEAD), m.constant(0.25), at=HEAD)
        return m.add("Mul", turn, m.constant(np.pi), at=HEAD)
    if task == "pose":
        points = m.add("Reshape", raw, m.ints(1, 17, 3, -1), at=HEAD)
        ends, axis = (m.ints(0), m.ints(2), m.ints(3)), m.ints(2)
        place = m.add("Add", m.add("Slice", points, ends[0], ends[1], axis, at=HEAD), centres, at=HEAD)
        seen = m.add("Sigmoid", m.add("Slice", points, ends[1], ends[2], axis, at=HEAD), at=HEAD)
        joined = m.add("Concat", m.add("Mul", place, strides, at=HEAD), seen, at=HEAD, axis=2)
        return m.add("Reshape", joined, m.ints(1, 51, -1), at=HEAD)
    return raw


def prototypes(m: Maker, level: str, size: list[int], dynamic: bool) -> ValueInfoProto:
    """The second output of a segmenting YOLO: 32 mask prototypes at stride 4."""
    x = m.silu(level, 8, 3, at=f"{HEAD}/proto/cv1")
    up = m.add(
        "ConvTranspose", x, m.weight(8, 8, 2, 2), at=f"{HEAD}/proto/upsample", strides=[2, 2], kernel_shape=[2, 2]
    )
    y = m.conv(m.silu(m.note(up, 8), 8, 3, at=f"{HEAD}/proto/cv2"), 32, at=f"{HEAD}/proto/cv3")
    m.add("Identity", y, at=HEAD, out="output1")
    return tensor("output1", *(("batch", 32, "mask_height", "mask_width") if dynamic else (1, 32, *size)))


def yolov5(classes: int = 80, size: int = 320) -> ModelProto:
    """An anchor-based export: output0 [1, places x 3, 5 + classes], boxes decoded, objectness apart."""
    m, at, wide, flat = Maker(), "/model.24", 5 + classes, []
    for index, (level, stride) in enumerate(zip(pyramid(m, "images"), STRIDES, strict=True)):
        cells = size // stride
        y = m.conv(level, 3 * wide, at=f"{at}/m.{index}")
        y = m.add("Reshape", y, m.ints(1, 3, wide, cells, cells), at=at)
        y = m.add("Sigmoid", m.add("Transpose", y, at=at, perm=[0, 1, 3, 4, 2]), at=at)
        xy, wh, rest = m.several("Split", y, m.ints(2, 2, classes + 1), at=at, many=3, axis=4)
        places = np.moveaxis(np.mgrid[:cells, :cells][::-1], 0, -1) - 0.5
        xy = m.add("Add", m.add("Mul", xy, m.constant(2), at=at), m.constant(np.tile(places, (1, 3, 1, 1, 1))), at=at)
        xy = m.add("Mul", xy, m.constant(stride), at=at)
        wh = m.add("Pow", m.add("Mul", wh, m.constant(2), at=at), m.constant(2), at=at)
        wh = m.add("Mul", wh, m.constant(np.full((1, 3, cells, cells, 2), 4.0 * stride)), at=at)
        joined = m.add("Concat", xy, wh, rest, at=at, axis=4)
        flat.append(m.add("Reshape", joined, m.ints(1, 3 * cells * cells, wide), at=at))
    m.add("Concat", *flat, at=at, out="output0", axis=1)
    total = 3 * sum((size // s) ** 2 for s in STRIDES)
    model = m.model([tensor("images", 1, 3, size, size)], [tensor("output0", 1, total, wide)], 17)
    return described(model, stride=32, names={i: f"class{i}" for i in range(classes)})


# --- PaddleOCR -----------------------------------------------------------------------------------------------------


def batch_norm(m: Maker, x: str) -> str:
    out = m.channels[x]
    scale, bias, mean = (m.weight(out) for _ in range(3))
    y = m.add("BatchNormalization", x, scale, bias, mean, m.constant(np.ones(out)), epsilon=1e-5, momentum=0.9)
    return m.note(y, out)


def hard_swish(m: Maker, x: str) -> str:
    """Below opset 14 Paddle writes Add 3, Clip 0..6, Mul, Div 6."""
    clipped = m.add("Clip", m.add("Add", x, m.constant(3)), m.constant(0), m.constant(6))
    return m.note(m.add("Div", m.add("Mul", x, clipped), m.constant(6)), m.channels[x])


def squeeze_excite(m: Maker, x: str) -> str:
    pooled = m.note(m.add("GlobalAveragePool", x), m.channels[x])
    gate = m.add("HardSigmoid", m.conv(m.relu(pooled, 4), m.channels[x]), alpha=0.2, beta=0.5)
    return m.note(m.add("Add", x, m.add("Mul", x, gate)), m.channels[x])


def text_detector(dims: Dims = (-1, 3, "?", "?"), out: Dims = (-1, 1, -1, -1), mode: str = "nearest") -> ModelProto:
    """PP-OCR's DBNet through paddle2onnx: weights in Constant nodes, N, H and W open, four levels upsampled."""
    m = Maker("paddle")
    x = hard_swish(m, batch_norm(m, m.conv(m.note("x", 3), 8, 3, 2)))
    levels = []
    for _ in range(4):
        x = m.relu(x, 8, 3, 2)
        x = batch_norm(m, m.conv(x, 8, 3, group=8))
        levels.append(squeeze_excite(m, x))
    how: Attributes = (
        {"mode": mode} if mode == "nearest" else {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
    )
    for i in (2, 1, 0):
        levels[i] = m.note(m.add("Add", levels[i], m.upsample(levels[i + 1], 2, **how)), 8)
    same = [squeeze_excite(m, m.conv(level, 8, 3)) for level in levels]
    raised = [m.upsample(y, 2**i, **how) for i, y in zip((3, 2, 1), same[:0:-1], strict=True)]
    joined = m.note(m.add("Concat", *raised, same[0], axis=1), 32)
    y = m.add("Relu", batch_norm(m, m.conv(joined, 8, 3)))
    y = m.add("ConvTranspose", y, m.weight(8, 8, 2, 2), strides=[2, 2], kernel_shape=[2, 2], dilations=[1, 1])
    y = m.add("Relu", batch_norm(m, m.note(y, 8)))
    y = m.add("ConvTranspose", y, m.weight(8, 1, 2, 2), strides=[2, 2], kernel_shape=[2, 2], dilations=[1, 1])
    m.add("Sigmoid", y, out="sigmoid_0.tmp_0")
    return m.model([tensor("x", *dims)], [tensor("sigmoid_0.tmp_0", *out)], 12)


# --- torchvision's two-stage detector --------------------------------------------------------------------------------


def column(m: Maker, x: str, index: int, at: str) -> str:
    """x[:, index]"""
    return m.add("Gather", x, m.constant(index, np.int64), at=at, axis=1)


def stack(m: Maker, parts: Sequence[str], at: str) -> str:
    axis = m.ints(1)
    return m.add("Concat", *(m.add("Unsqueeze", p, axis, at=at) for p in parts), at=at, axis=1)


def number(m: Maker, value: str, at: str) -> str:
    return m.add("Cast", value, at=at, to=FLOAT)


def transform(m: Maker, image: str) -> tuple[str, str]:
    """torchvision's preprocessing inside the graph: normalise, linear Resize to sides of 320 to 640, pad to 32.

    Returns the batch of one and how much larger the image was: [height, width].
    """
    at = "/transform"
    x = m.add("Sub", image, m.constant([[[0.485]], [[0.456]], [[0.406]]]), at=at)
    x = m.add("Div", x, m.constant([[[0.229]], [[0.224]], [[0.225]]]), at=at)
    shape = m.add("Slice", m.add("Shape", x, at=at), m.ints(1), m.ints(3), m.ints(0), at=at)
    least, most = (number(m, m.add(op, shape, at=at, keepdims=0), at) for op in ("ReduceMin", "ReduceMax"))
    least, most = m.add("Div", m.constant(320), least, at=at), m.add("Div", m.constant(640), most, at=at)
    sides = number(m, shape, at)
    ratio = m.add("Min", least, most, at=at)
    target = m.add("Cast", m.add("Floor", m.add("Mul", sides, ratio, at=at), at=at), at=at, to=INT64)
    x = m.add("Unsqueeze", x, m.ints(0), at=at)
    sizes = m.add("Concat", m.ints(1, 3), target, at=at, axis=0)
    how: Attributes = {"coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75, "nearest_mode": "floor"}
    x = m.add("Resize", x, "", "", sizes, at=at, mode="linear", **how)
    steps = m.add("Ceil", m.add("Div", number(m, target, at), m.constant(32), at=at), at=at)
    whole = m.add("Cast", m.add("Mul", steps, m.constant(32), at=at), at=at, to=INT64)
    missing = m.add("Sub", whole, target, at=at)
    pads = m.add("Concat", m.ints(0, 0, 0, 0, 0, 0), missing, at=at, axis=0)
    larger = m.add("Div", sides, number(m, target, at), at=at)
    return m.note(m.add("Pad", x, pads, m.constant(0), at=at, mode="constant"), 3), larger


def fpn(m: Maker, x: str) -> list[str]:
    """Three levels: strides 8 and 16 of the backbone, joined by a nearest Resize to the run-time size, and a pool."""
    at = "/backbone/body"
    x = m.relu(x, 8, 7, 2, f"{at}/conv1")
    x = m.note(m.add("MaxPool", x, at=at, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]), 8)
    c3 = m.relu(x, 16, 3, 2, f"{at}/layer2/layer2.0/conv1")
    c4 = m.relu(c3, 32, 3, 2, f"{at}/layer3/layer3.0/conv1")
    at = "/backbone/fpn"
    p3, p4 = m.conv(c3, 16, at=f"{at}/inner_blocks.0"), m.conv(c4, 16, at=f"{at}/inner_blocks.1")
    wanted = m.vector(1, 16, m.shape_of(p3, 2, at), m.shape_of(p3, 3, at), at=at)
    how: Attributes = {"coordinate_transformation_mode": "asymmetric", "cubic_coeff_a": -0.75, "nearest_mode": "floor"}
    down = m.add("Resize", p4, "", "", wanted, at=at, mode="nearest", **how)
    p3 = m.conv(m.note(m.add("Add", p3, down, at=at), 16), 16, 3, at=f"{at}/layer_blocks.0")
    p4 = m.conv(p4, 16, 3, at=f"{at}/layer_blocks.1")
    return [p3, p4, m.note(m.add("MaxPool", p4, at=at, kernel_shape=[1, 1], strides=[2, 2]), 16)]


def anchors(m: Maker, level: str, stride: int) -> str:
    """Three anchors a cell from the run-time size of a level: [cells * 3, 4] corners."""
    at = "/rpn/anchor_generator"
    high, wide = m.shape_of(level, 2, at), m.shape_of(level, 3, at)
    area, zero, one = m.vector(high, wide, at=at), m.constant(0, np.int64), m.constant(1, np.int64)
    steps = [number(m, m.add("Range", zero, s, one, at=at), at) for s in (wide, high)]
    x, y = (m.add("Mul", s, m.constant(stride), at=at) for s in steps)
    y = m.add("Unsqueeze", y, m.ints(1), at=at)
    flat = [m.add("Reshape", m.add("Expand", v, area, at=at), m.ints(-1), at=at) for v in (x, y)]
    shifts = m.add("Reshape", stack(m, flat * 2, at), m.ints(-1, 1, 4), at=at)
    side = 4.0 * stride
    base = [[[-side * w, -side / w, side * w, side / w] for w in (0.7, 1.0, 1.4)]]
    return m.add("Reshape", m.add("Add", shifts, m.constant(base), at=at), m.ints(-1, 4), at=at)


def decode(m: Maker, deltas: str, boxes: str, at: str) -> str:
    """Offsets [n, 4] on boxes [n, 4] of corners, as torchvision's BoxCoder."""
    x0, y0, x1, y1 = (column(m, boxes, i, at) for i in range(4))
    half = m.constant(0.5)
    found: list[list[str]] = [[], []]
    for low, high, shift, size in ((x0, x1, 0, 2), (y0, y1, 1, 3)):
        side = m.add("Sub", high, low, at=at)
        middle = m.add("Add", low, m.add("Mul", side, half, at=at), at=at)
        middle = m.add("Add", m.add("Mul", column(m, deltas, shift, at), side, at=at), middle, at=at)
        limit = m.add("Clip", column(m, deltas, size, at), "", m.constant(np.log(1000 / 16)), at=at)
        reach = m.add("Mul", m.add("Mul", m.add("Exp", limit, at=at), side, at=at), half, at=at)
        found[0].append(m.add("Sub", middle, reach, at=at))
        found[1].append(m.add("Add", middle, reach, at=at))
    return stack(m, [*found[0], *found[1]], at)


def where(m: Maker, mask: str, at: str) -> str:
    """torch.where(mask)[0]: NonZero, transposed, one column."""
    return column(m, m.add("Transpose", m.add("NonZero", mask, at=at), at=at, perm=[1, 0]), 0, at)


def batched_nms(m: Maker, boxes: str, scores: str, groups: str, iou: float, at: str) -> str:
    """torchvision.ops.batched_nms as scripted into an If: nothing for no box, else the offset trick and NMS with the
    largest int64 as its maximum."""
    empty = m.add("Equal", m.add("Size", boxes, at=at), m.constant(0, np.int64), at=at)
    none = Maker(parent=m)
    nothing = none.add("Constant", at=at, value=numpy_helper.from_array(np.zeros(0, np.int64)))
    some = Maker(parent=m)
    far = some.add("Add", some.add("ReduceMax", boxes, at=at, keepdims=0), some.constant(1), at=at)
    offsets = some.add("Mul", number(some, groups, at), far, at=at)
    moved = some.add("Add", boxes, some.add("Unsqueeze", offsets, some.ints(1), at=at), at=at)
    moved = some.add("Unsqueeze", moved, some.ints(0), at=at)
    ranked = some.add("Unsqueeze", scores, some.ints(0, 1), at=at)
    chosen = some.add("NonMaxSuppression", moved, ranked, some.ints(INT64_MAX), some.constant([iou]), at=at)
    kept = some.add("Gather", chosen, some.constant(2, np.int64), at=at, axis=1)
    branches = {
        name: helper.make_graph(part.nodes, name, [], [tensor(out, None, kind=INT64)], part.weights)
        for name, part, out in (("then_branch", none, nothing), ("else_branch", some, kept))
    }
    return m.add("If", empty, at=at, **branches)


def per_anchor(m: Maker, x: str, numbers: int, at: str) -> str:
    """A map [1, 3 * numbers, h, w] as rows [h * w * 3, numbers]."""
    high, wide = m.shape_of(x, 2, at), m.shape_of(x, 3, at)
    y = m.add("Reshape", x, m.vector(1, 3, numbers, high, wide, at=at), at=at)
    y = m.add("Transpose", y, at=at, perm=[0, 3, 4, 1, 2])
    return m.add("Reshape", y, m.ints(-1, numbers), at=at)


def proposals(m: Maker, levels: Sequence[str]) -> str:
    """The region proposal network: the best boxes of each level, by a TopK whose K is known at run time only."""
    at, parts = "/rpn", []
    for index, (level, stride) in enumerate(zip(levels, (8, 16, 32), strict=True)):
        y = m.relu(level, 16, 3, at=f"{at}/head/conv/conv.0/conv.0.0")
        scores = m.add("Squeeze", per_anchor(m, m.conv(y, 3, at=f"{at}/head/cls_logits"), 1, at), m.ints(1), at=at)
        boxes = decode(m, per_anchor(m, m.conv(y, 12, at=f"{at}/head/bbox_pred"), 4, at), anchors(m, level, stride), at)
        both = m.add("Concat", m.ints(1000), m.add("Shape", scores, at=at), at=at, axis=0)
        k = m.add("ReduceMin", both, at=at, keepdims=1)
        best, places = m.several("TopK", scores, k, at=at, many=2, axis=0, largest=1, sorted=1)
        group = m.add("Expand", m.constant(index, np.int64), m.add("Shape", best, at=at), at=at)
        parts.append((m.add("Gather", boxes, places, at=at, axis=0), best, group))
    boxes, scores, groups = (m.add("Concat", *p, at=at, axis=0) for p in zip(*parts, strict=True))
    wide = m.add("Sub", column(m, boxes, 2, at), column(m, boxes, 0, at), at=at)
    high = m.add("Sub", column(m, boxes, 3, at), column(m, boxes, 1, at), at=at)
    least = m.constant(0.001)
    large = [m.add("GreaterOrEqual", side, least, at=at) for side in (wide, high)]
    keep = where(m, m.add("And", *large, at=at), at)
    boxes, scores, groups = (m.add("Gather", v, keep, at=at, axis=0) for v in (boxes, scores, groups))
    keep = batched_nms(m, boxes, m.add("Sigmoid", scores, at=at), groups, 0.7, at)
    keep = m.add("Slice", keep, m.ints(0), m.ints(1000), m.ints(0), at=at)
    return m.add("Gather", boxes, keep, at=at, axis=0)


def pooled(m: Maker, levels: Sequence[str], rois: str) -> str:
    """Each box from the level of its size: Equal, NonZero, RoiAlign, and a scatter back into one tensor."""
    at = "/roi_heads/box_roi_pool"
    wide = m.add("Sub", column(m, rois, 2, at), column(m, rois, 0, at), at=at)
    high = m.add("Sub", column(m, rois, 3, at), column(m, rois, 1, at), at=at)
    side = m.add("Sqrt", m.add("Mul", wide, high, at=at), at=at)
    level = m.add("Div", m.add("Log", m.add("Div", side, m.constant(64), at=at), at=at), m.constant(np.log(2)), at=at)
    level = m.add("Clip", m.add("Floor", level, at=at), m.constant(0), m.constant(1), at=at)
    level = m.add("Cast", level, at=at, to=INT64)
    places, maps = [], []
    for index, scale in ((0, 1 / 8), (1, 1 / 16)):
        mine = where(m, m.add("Equal", level, m.constant(index, np.int64), at=at), at)
        zero = numpy_helper.from_array(np.zeros(1, np.int64))
        batch = m.add("ConstantOfShape", m.add("Shape", mine, at=at), at=at, value=zero)
        how: Attributes = {"coordinate_transformation_mode": "output_half_pixel", "mode": "avg", "sampling_ratio": 2}
        how |= {"output_height": 7, "output_width": 7, "spatial_scale": scale}
        maps.append(m.add("RoiAlign", levels[index], m.add("Gather", rois, mine, at=at, axis=0), batch, at=at, **how))
        places.append(mine)
    found = m.add("Concat", *maps, at=at, axis=0)
    order = m.add("Reshape", m.add("Concat", *places, at=at, axis=0), m.ints(-1, 1, 1, 1), at=at)
    order = m.add("Expand", order, m.add("Shape", found, at=at), at=at)
    return m.add("ScatterElements", found, order, found, at=at, axis=0)


def linear(m: Maker, x: str, wide: int, out: int, at: str) -> str:
    return m.add("Gemm", x, m.weight(out, wide), m.weight(out), at=at, alpha=1.0, beta=1.0, transB=1)


def faster_rcnn(dynamic: bool = True, classes: int = 91) -> ModelProto:
    """torchvision's Faster R-CNN: a CHW image in, preprocessing and NMS inside, sizes known at run time only."""
    m, at = Maker(), "/roi_heads"
    batch, larger = transform(m, "image")
    levels = fpn(m, batch)
    rois = proposals(m, levels)
    flat = m.add("Flatten", pooled(m, levels, rois), at=f"{at}/box_head", axis=1)
    hidden = m.add("Relu", linear(m, flat, 16 * 49, 32, f"{at}/box_head/fc6"), at=f"{at}/box_head")
    logits = linear(m, hidden, 32, classes, f"{at}/box_predictor/cls_score")
    offsets = linear(m, hidden, 32, 4 * classes, f"{at}/box_predictor/bbox_pred")
    scores = m.add("Softmax", logits, at=at, axis=-1)
    every = m.add("Expand", m.add("Unsqueeze", rois, m.ints(1), at=at), m.ints(1, classes, 1), at=at)
    deltas, starts = (m.add("Reshape", v, m.ints(-1, 4), at=at) for v in (offsets, every))
    boxes = decode(m, deltas, starts, at)
    label = m.constant(np.arange(classes), np.int64)
    label = m.add("Reshape", m.add("Expand", label, m.add("Shape", scores, at=at), at=at), m.ints(-1), at=at)
    score = m.add("Reshape", scores, m.ints(-1), at=at)
    object_ = m.add("Greater", label, m.constant(0, np.int64), at=at)
    keep = where(m, m.add("And", m.add("Greater", score, m.constant(0.05), at=at), object_, at=at), at)
    boxes, score, label = (m.add("Gather", v, keep, at=at, axis=0) for v in (boxes, score, label))
    keep = m.add("Slice", batched_nms(m, boxes, score, label, 0.5, at), m.ints(0), m.ints(100), m.ints(0), at=at)
    m.add("Gather", label, keep, at=at, out="labels", axis=0)
    m.add("Gather", score, keep, at=at, out="scores", axis=0)
    boxes, at = m.add("Gather", boxes, keep, at=at, axis=0), "/transform"
    ratios = [m.add("Gather", larger, m.constant(i, np.int64), at=at, axis=0) for i in (1, 0, 1, 0)]
    sides = [m.add("Mul", column(m, boxes, i, at), ratio, at=at) for i, ratio in enumerate(ratios)]
    renamed(m, stack(m, sides, at), "boxes")
    inputs = [tensor("image", 3, *(("height", "width") if dynamic else (240, 320)))]
    outputs = [tensor("boxes", "Concatboxes_dim_0", 4), tensor("labels", "Gatherlabels_dim_0", kind=INT64)]
    return m.model(inputs, [*outputs, tensor("scores", "Gatherscores_dim_0")], 17)


# --- no detectors --------------------------------------------------------------------------------------------------


def classifier(batch: int | str = 1) -> ModelProto:
    m = Maker()
    x = m.relu(m.note("input", 3), 8, 7, 2, "/conv1")
    x = m.note(m.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]), 8)
    y = m.conv(m.relu(x, 8, 3, at="/layer1/layer1.0/conv1"), 8, 3, at="/layer1/layer1.0/conv2")
    x = m.add("Relu", m.add("Add", y, x, at="/layer1/layer1.0"), at="/layer1/layer1.0")
    x = m.add("Flatten", m.add("GlobalAveragePool", x, at="/avgpool"), axis=1)
    m.add("Gemm", x, m.weight(1000, 8), m.weight(1000), at="/fc", out="output", transB=1)
    return m.model([tensor("input", batch, 3, 224, 224)], [tensor("output", batch, 1000)], 17)


def segmenter(mode: str = "half_pixel", size: int | str = 320) -> ModelProto:
    """torchvision's FCN or DeepLab: logits brought back to the image's size by one linear Resize."""
    m = Maker()
    x = m.relu(m.relu(m.note("input", 3), 8, 3, 2, "/backbone/conv1"), 8, 3, 2, "/backbone/layer1")
    x = m.conv(m.relu(x, 8, 3, at="/classifier/classifier.0"), 21, at="/classifier/classifier.4")
    sizes = m.vector(1, 21, m.shape_of("input", 2), m.shape_of("input", 3)) if size != 320 else m.ints(1, 21, 320, 320)
    how: Attributes = {"coordinate_transformation_mode": mode, "cubic_coeff_a": -0.75, "nearest_mode": "floor"}
    m.add("Resize", x, "", "", sizes, out="out", mode="linear", **how)
    sides = (320, 320) if size == 320 else ("height", "width")
    return m.model([tensor("input", 1, 3, *sides)], [tensor("out", 1, 21, *sides)], 17)


def attention(m: Maker, x: str, wide: int, at: str) -> str:
    """One head of self-attention and its residual."""
    q, k, v = (m.add("MatMul", x, m.weight(wide, wide), at=f"{at}/{part}") for part in ("query", "key", "value"))
    weights = m.add("MatMul", q, m.add("Transpose", k, at=at, perm=[0, 2, 1]), at=at)
    mixed = m.add("MatMul", m.add("Softmax", weights, at=at, axis=-1), v, at=at)
    return m.add("Add", x, m.add("MatMul", mixed, m.weight(wide, wide), at=f"{at}/output"), at=at)


def normed(m: Maker, x: str, wide: int, at: str, out: str = "") -> str:
    """Layer normalisation."""
    weights = m.constant(np.ones(wide)), m.constant(np.zeros(wide))
    return m.add("LayerNormalization", x, *weights, at=at, out=out, axis=-1, epsilon=1e-6)


def transformer(batch: int | str = 1, wide: int = 768) -> ModelProto:
    """A vision transformer's encoder: one row for each of 14 x 14 patches."""
    m = Maker()
    patches = m.weight(wide, 3, 16, 16)
    x = m.add("Conv", "pixel_values", patches, at="/embeddings/projection", kernel_shape=[16, 16], strides=[16, 16])
    shape = m.ints(1, wide, 196) if batch == 1 else m.vector(m.shape_of(x, 0), wide, 196)
    x = m.add("Transpose", m.add("Reshape", x, shape, at="/embeddings"), at="/embeddings", perm=[0, 2, 1])
    x = m.add("Add", x, m.weight(1, 196, wide), at="/embeddings")
    x = attention(m, normed(m, x, wide, "/encoder/layer.0/layernorm_before"), wide, "/encoder/layer.0/attention")
    normed(m, x, wide, "/layernorm", "last_hidden_state")
    return m.model([tensor("pixel_values", batch, 3, 224, 224)], [tensor("last_hidden_state", batch, 196, wide)], 17)


def end_to_end(rows_: int = 300) -> ModelProto:
    """A head that selects by TopK itself (YOLOv10, RT-DETR): output0 [1, 300, 84]."""
    m = Maker()
    maps = [branch(m, level, 84, f"{HEAD}/cv3.{i}/cv3.{i}") for i, level in enumerate(pyramid(m, "images"))]
    flat = m.add("Transpose", rows(m, maps, 1), at=HEAD, perm=[0, 2, 1])
    best = m.add("ReduceMax", flat, at=HEAD, axes=[-1], keepdims=0)
    _, places = m.several("TopK", best, m.ints(rows_), at=HEAD, many=2, axis=-1, largest=1, sorted=1)
    wide = m.add("Expand", m.add("Unsqueeze", places, m.ints(-1), at=HEAD), m.ints(1, rows_, 84), at=HEAD)
    m.add("GatherElements", flat, wide, at=HEAD, out="output0", axis=1)
    model = m.model([tensor("images", 1, 3, 320, 320)], [tensor("output0", 1, rows_, 84)], 17)
    return described(model, task="detect", names=COCO, stride=32)


# --- what looks like a detector head of a known layout and is none ---------------------------------------------------


def flat_maps(m: Maker, levels: Sequence[str], out: int, each: int, at: str, activation: str = "") -> str:
    """A convolution a level, channels last, and all places in one column: [1, places, each]."""
    parts = []
    for level in levels:
        y = m.conv(level, out, at=at)
        y = m.add(activation, y, at=at) if activation else y
        y = m.add("Transpose", y, at=at, perm=[0, 2, 3, 1])
        parts.append(m.add("Reshape", y, m.ints(1, -1, each), at=at))
    return m.add("Concat", *parts, at=at, axis=1)


def retina_face(size: int = 320) -> ModelProto:
    """RetinaFace: boxes, face or not, and five landmarks [1, places x 2, 10], each of its own head, undecoded."""
    m = Maker()
    levels, places = pyramid(m, "input0"), 2 * sum((size // s) ** 2 for s in STRIDES)
    renamed(m, flat_maps(m, levels, 8, 4, "/BboxHead"), "loc")
    m.add("Softmax", flat_maps(m, levels, 4, 2, "/ClassHead"), out="conf", axis=-1)
    renamed(m, flat_maps(m, levels, 20, 10, "/LandmarkHead"), "landms")
    outputs = [tensor(name, 1, places, wide) for name, wide in (("loc", 4), ("conf", 2), ("landms", 10))]
    return m.model([tensor("input0", 1, 3, size, size)], outputs, 17)


def separate_scores(turned: bool = False, size: int = 320) -> ModelProto:
    """PP-YOLOE without NMS (scores [1, classes, places], `turned`) and FCOS or RTMDet (scores [1, places, classes]):
    the boxes are an output of their own."""
    m = Maker()
    levels, places = pyramid(m, "image"), sum((size // s) ** 2 for s in STRIDES)
    renamed(m, flat_maps(m, levels, 4, 4, "/head/reg", "Relu"), "boxes")
    if turned:
        maps = [m.note(m.add("Sigmoid", m.conv(x, 80, at="/head/cls"), at="/head/cls"), 80) for x in levels]
        renamed(m, rows(m, maps, 1), "scores")
    else:
        renamed(m, flat_maps(m, levels, 80, 80, "/head/cls", "Sigmoid"), "scores")
    outputs = [tensor("boxes", 1, places, 4), tensor("scores", 1, *((80, places) if turned else (places, 80)))]
    return m.model([tensor("image", 1, 3, size, size)], outputs, 17)


def boxes_and_scores(size: int = 320) -> ModelProto:
    """PP-YOLOE without post-processing: one output [1, places, 4 + classes], no objectness."""
    m = Maker()
    levels, places = pyramid(m, "image"), sum((size // s) ** 2 for s in STRIDES)
    boxes = flat_maps(m, levels, 4, 4, "/head/reg", "Relu")
    m.add("Concat", boxes, flat_maps(m, levels, 80, 80, "/head/cls", "Sigmoid"), at="/head", out="out", axis=-1)
    return m.model([tensor("image", 1, 3, size, size)], [tensor("out", 1, places, 84)], 17)


def yolox(size: int = 320) -> ModelProto:
    """YOLOX as exported by default: [1, places, 85] with boxes in grid units, offsets and logarithms of sizes."""
    m, maps = Maker(), []
    levels = pyramid(m, "images")
    for i, level in enumerate(levels):
        box = m.conv(level, 4, at=f"/head/reg_preds.{i}")
        raw = [m.conv(level, 1, at=f"/head/obj_preds.{i}"), m.conv(level, 80, at=f"/head/cls_preds.{i}")]
        scores = [m.add("Sigmoid", y, at="/head") for y in raw]
        maps.append(m.note(m.add("Concat", box, *scores, at="/head", axis=1), 85))
    m.add("Transpose", rows(m, maps, 1), at="/head", out="output", perm=[0, 2, 1])
    places = sum((size // s) ** 2 for s in STRIDES)
    return m.model([tensor("images", 1, 3, size, size)], [tensor("output", 1, places, 85)], 17)


def nanodet(size: int = 320) -> ModelProto:
    """NanoDet-Plus: [1, places, classes + 32], the classes first, then the undecoded bins of the distances."""
    m = Maker()
    levels, places = pyramid(m, "data"), sum((size // s) ** 2 for s in STRIDES)
    maps = []
    for i, level in enumerate(levels):
        scores = m.add("Sigmoid", m.conv(level, 80, at=f"/head/gfl_cls.{i}"), at="/head")
        both = m.add("Concat", scores, m.conv(level, 32, at=f"/head/gfl_reg.{i}"), at="/head", axis=1)
        maps.append(m.note(both, 112))
    m.add("Transpose", rows(m, maps, 1), at="/head", out="output", perm=[0, 2, 1])
    return m.model([tensor("data", 1, 3, size, size)], [tensor("output", 1, places, 112)], 17)


# --- what else an honest network may do ------------------------------------------------------------------------------


def pooled_context(mode: str = "align_corners", classes: int = 21) -> ModelProto:
    """The image-level branch of DeepLab's ASPP: one pixel spread over the map, where no coordinate mode matters."""
    m = Maker()
    x = m.relu(m.note("input", 3), 8, 3, 2, "/backbone")
    pool = m.relu(m.note(m.add("GlobalAveragePool", x, at="/aspp"), 8), 8, at="/aspp/pool")
    how: Attributes = {"mode": "linear", "coordinate_transformation_mode": mode}
    spread = m.add("Resize", pool, "", "", m.ints(1, 8, 32, 32), at="/aspp", **how)
    joined = m.note(m.add("Concat", x, spread, at="/aspp", axis=1), 16)
    how["coordinate_transformation_mode"] = "half_pixel"
    y = m.conv(joined, classes, at="/classifier")
    m.add("Resize", y, "", "", m.ints(1, classes, 64, 64), out="out", **how)
    return m.model([tensor("input", 1, 3, 64, 64)], [tensor("out", 1, classes, 64, 64)], 17)


def position_table(wide: int = 8) -> ModelProto:
    """A depth network on a vision transformer of open size: the table of positions is brought to the grid by a cubic
    half_pixel Resize, the features by linear align_corners ones, as it was trained."""
    m = Maker()
    x = m.conv(m.note("image", 3), wide, 14, 14, "/patch_embed")
    grid_size = m.vector(1, wide, m.shape_of(x, 2), m.shape_of(x, 3))
    how: Attributes = {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75}
    table = m.add("Resize", m.weight(1, wide, 37, 37), "", "", grid_size, at="/pos_embed", **how)
    y = m.note(m.add("Add", x, table), wide)
    how = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    for index in range(2):
        y = m.upsample(m.relu(y, wide, 3, at=f"/fusion.{index}"), 2, **how)
    m.add("Identity", m.conv(y, 1, at="/head"), out="depth")
    return m.model([tensor("image", 1, 3, "height", "width")], [tensor("depth", 1, 1, "out_h", "out_w")], 17)


def recurrent() -> ModelProto:
    """A recogniser or tracker whose state comes from outside: [layers, batch, hidden] beside [time, batch, size]."""
    m = Maker()
    how: Attributes = {"hidden_size": 16, "linear_before_reset": 1}
    weights = m.weight(1, 48, 8), m.weight(1, 48, 16), m.weight(1, 96)
    m.several("GRU", "sequence", *weights, "", "state", outs=["features", "next_state"], **how)
    inputs = [tensor("sequence", 20, "batch", 8), tensor("state", 1, "batch", 16)]
    return m.model(inputs, [tensor("features", 20, 1, "batch", 16), tensor("next_state", 1, "batch", 16)], 17)


def plain_head(strides: Sequence[int], size: int = 320, camera: tuple[int, int] | None = None) -> ModelProto:
    """A v8 head on other strides (P2 for small objects, P6 for large ones); with `camera` the picture comes as the
    sensor gives it, [1, height, width, 3] of bytes, and the graph brings it to the network's size."""
    m, levels = Maker(), []
    x = "image"
    if camera:
        x = m.add("Transpose", m.add("Cast", x, at="/prepare", to=FLOAT), at="/prepare", perm=[0, 3, 1, 2])
        how: Attributes = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        x = m.add("Resize", x, "", "", m.ints(1, 3, size, size), at="/prepare", **how)
    m.note(x, 3)
    for stride in (2**i for i in range(1, 8) if 2**i <= max(strides)):
        x = m.silu(x, 8, 3, 2, f"/backbone.{stride}")
        levels += [branch(m, x, 84, f"/head.{stride}")] if stride in strides else []
    boxes, logits = m.several("Split", rows(m, levels, 1), m.ints(4, 80), at=HEAD, many=2, axis=1)
    cells = np.concatenate([np.full((size // s) ** 2, s) for s in strides]).reshape(1, 1, -1)
    boxes = m.add("Mul", boxes, m.constant(cells), at=HEAD)
    m.add("Concat", boxes, m.add("Sigmoid", logits, at=HEAD), at=HEAD, out="output0", axis=1)
    places = sum((size // s) ** 2 for s in strides)
    image = tensor("image", 1, *camera, 3, kind=TensorProto.UINT8) if camera else tensor("image", 1, 3, size, size)
    model = m.model([image], [tensor("output0", 1, 84, places)], 17)
    return described(model, task="detect", names=COCO, stride=max(strides))


def plugin_nms() -> ModelProto:
    """What NVIDIA's own graph-surgery scripts write: the plugin's node in the default domain."""
    m = Maker()
    outs = ["num_detections", "detection_boxes", "detection_scores", "detection_classes"]
    how: Attributes = {"plugin_version": "1", "score_threshold": 0.25, "iou_threshold": 0.45, "max_output_boxes": 100}
    how |= {"background_class": -1, "score_activation": 0, "box_coding": 1}
    m.several("EfficientNMS_TRT", "boxes", "scores", outs=outs, **how)
    inputs = [tensor("boxes", 1, 2100, 4), tensor("scores", 1, 2100, 80)]
    outputs = [tensor(outs[0], 1, 1, kind=TensorProto.INT32), tensor(outs[1], 1, 100, 4), tensor(outs[2], 1, 100)]
    return m.model(inputs, [*outputs, tensor(outs[3], 1, 100, kind=TensorProto.INT32)], 17)


def early_preprocessing() -> ModelProto:
    """A converter of ONNX's first year: ImageScaler, which the standard dropped and ONNX Runtime still has."""
    m = Maker()
    x = m.add("ImageScaler", "image", bias=[0.0, 0.0, 0.0], scale=1 / 255)
    m.add("Relu", x, out="y")
    return m.model([tensor("image", 1, 3, 8, 8)], [tensor("y", 1, 3, 8, 8)], 8)


def quantized(model: ModelProto) -> ModelProto:
    """A model whose output passes a QuantizeLinear and a DequantizeLinear, as static quantization writes it."""
    output = model.graph.output[0].name
    for node in model.graph.node:
        node.output[:] = [f"{name}_float" if name == output else name for name in node.output]
    scale = numpy_helper.from_array(np.array(1.0, np.float32), "scale")
    zero = numpy_helper.from_array(np.array(0, np.uint8), "zero")
    model.graph.initializer.extend([scale, zero])
    pair = (("QuantizeLinear", f"{output}_float", f"{output}_q"), ("DequantizeLinear", f"{output}_q", output))
    model.graph.node.extend(helper.make_node(op, [x, "scale", "zero"], [y], f"{output}_{op}") for op, x, y in pair)
    return model


def runtime_quantized() -> ModelProto:
    """ONNX Runtime's own quantizer in its operator format: com.microsoft nodes that only ONNX Runtime has."""
    m = Maker()
    scale, zero = m.constant(0.1), m.constant(0, np.uint8)
    x, y = (m.add("QuantizeLinear", name, scale, zero) for name in ("a", "b"))
    both = m.add("QLinearAdd", x, scale, zero, y, scale, zero, scale, zero, domain="com.microsoft")
    m.add("DequantizeLinear", both, scale, zero, out="sum")
    model = m.model([tensor(n, 1, 8, 4, 4) for n in ("a", "b")], [tensor("sum", 1, 8, 4, 4)], 17)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model
