"""Makes the models that `speed` measures with: `python -m tests.benchmarks.models FOLDER`.

Everything is made from fixed seeds. Files are written piece by piece in the order in which protobuf writes them, so
that 1.9 GB need no memory; weights are random numbers on the disk (one block of them, over and over), not a hole.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from onnx import TensorProto, helper

IMAGE = 640  # side of the input in pixels
STRIDES = (8, 16, 32)
PLACES = sum((IMAGE // stride) ** 2 for stride in STRIDES)
BINS = 16  # a box side is a distribution over so many distances
NODES = 255  # of every detector
SMALL, COMMON, HUGE = (4, 8, 16, 32, 64), (16, 32, 64, 128, 256), (198, 396, 792, 1584, 3168)  # channels by stride
MANY_NODES, MANY_FILES = 100_000, 200
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
LINEAR = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RAW_DATA, INITIALIZER, GRAPH = b"\x4a", b"\x2a", b"\x3a"  # tags of TensorProto, GraphProto, ModelProto


@dataclass
class Net:
    """A graph in the making: nodes in order, float weights by name with their shapes; no shapes of inner values."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def add(self, op: str, inputs: Sequence[str], name: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """Adds a node named as exporters name them; returns its outputs."""
        names = [f"{name}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=name, **attributes))
        return names

    def one(self, op: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        return self.add(op, inputs, name, **attributes)[0]

    def constant(self, name: str, values: Sequence[float], data_type: int = INT64) -> str:
        tensor = helper.make_tensor("", data_type, [len(values)], values)
        return self.one("Constant", [], f"/{name}/Constant", value=tensor)

    def weight(self, name: str, *dims: int) -> str:
        self.weights[name] = dims
        return name

    def conv(self, name: str, x: str, channels: tuple[int, int], kernel: int = 3, stride: int = 1) -> str:
        """A convolution alone."""
        weight = self.weight(f"{name}.weight", channels[1], channels[0], kernel, kernel)
        bias = self.weight(f"{name}.bias", channels[1])
        sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "dilations": [1, 1]}
        return self.one("Conv", [x, weight, bias], f"/{name}/Conv", group=1, **sizes)

    def layer(self, name: str, x: str, channels: tuple[int, int], kernel: int = 3, stride: int = 1) -> str:
        """A convolution and its SiLU."""
        x = self.conv(f"{name}.conv", x, channels, kernel, stride)
        return self.one("Mul", [x, self.one("Sigmoid", [x], f"/{name}/act/Sigmoid")], f"/{name}/act/Mul")

    def stage(self, name: str, x: str, channels: tuple[int, int], repeats: int = 1, add: bool = True) -> str:
        """The cross-stage block of YOLOv8."""
        half = channels[1] // 2
        x = self.layer(f"{name}.cv1", x, channels, 1)
        sizes = self.constant(name, [half, half])
        parts = self.add("Split", [x, sizes], f"/{name}/Split", 2, axis=1)
        for i in range(repeats):
            y = self.layer(f"{name}.m.{i}.cv1", parts[-1], (half, half))
            y = self.layer(f"{name}.m.{i}.cv2", y, (half, half))
            parts.append(self.one("Add", [parts[-1], y], f"/{name}/m.{i}/Add") if add else y)
        x = self.one("Concat", parts, f"/{name}/Concat", axis=1)
        return self.layer(f"{name}.cv2", x, (half * len(parts), channels[1]), 1)


def backbone(net: Net, widths: Sequence[int]) -> list[str]:
    """The features at strides 8, 16 and 32."""
    x = net.layer("model.0", "images", (3, widths[0]), stride=2)
    features = []
    for i, (pair, repeats) in enumerate(zip(pairwise(widths), (1, 2, 2, 1), strict=True)):
        x = net.layer(f"model.{2 * i + 1}", x, pair, stride=2)
        x = net.stage(f"model.{2 * i + 2}", x, (pair[1], pair[1]), repeats)
        features.append(x)
    pooled = [net.layer("model.9.cv1", x, (widths[4], widths[4] // 2), 1)]
    for i in range(3):
        name = f"/model.9/m_{i}/MaxPool"
        pooled.append(net.one("MaxPool", [pooled[-1]], name, kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    x = net.one("Concat", pooled, "/model.9/Concat", axis=1)
    return [*features[1:3], net.layer("model.9.cv2", x, (widths[4] * 2, widths[4]), 1)]


def neck(net: Net, features: list[str], widths: Sequence[int], resize: dict[str, str]) -> list[str]:
    """Down from stride 32 to 8 and up again, as YOLOv8 does."""
    _, _, low, middle, high = widths
    rising = [features[2]]
    for name, skip, pair in (("model.12", features[1], (high, middle)), ("model.15", features[0], (middle, low))):
        scales = net.constant(f"{name}.up", [1, 1, 2, 2], FLOAT)
        x = net.one("Resize", [rising[-1], "", scales], f"/{name}/Resize", **resize)
        x = net.one("Concat", [x, skip], f"/{name}/up/Concat", axis=1)
        rising.append(net.stage(name, x, (sum(pair), pair[1]), add=False))
    levels = [rising[2]]
    for name, skip, pair in (("model.18", rising[1], (low, middle)), ("model.21", rising[0], (middle, high))):
        x = net.layer(f"{name}.down", levels[-1], (pair[0], pair[0]), stride=2)
        x = net.one("Concat", [x, skip], f"/{name}/down/Concat", axis=1)
        levels.append(net.stage(name, x, (sum(pair), pair[1]), add=False))
    return levels


def head(net: Net, levels: list[str], widths: Sequence[int], classes: int) -> str:
    """Boxes [1,4,PLACES] over class scores [1,classes,PLACES]."""
    rows, flat = 4 * BINS, []
    for i, (x, width) in enumerate(zip(levels, widths[2:], strict=True)):
        parts = []
        for branch, inner, last in (("cv2", widths[2], rows), ("cv3", widths[2] * 5 // 4, classes)):
            name = f"model.22.{branch}.{i}"
            y = net.layer(f"{name}.0", x, (width, inner))
            y = net.layer(f"{name}.1", y, (inner, inner))
            parts.append(net.conv(f"{name}.2", y, (inner, last), 1))
        joined = net.one("Concat", parts, f"/model.22/Concat_{i}", axis=1)
        shape = net.constant(f"model.22/{i}", [1, rows + classes, -1])
        flat.append(net.one("Reshape", [joined, shape], f"/model.22/Reshape_{i}", allowzero=0))
    x = net.one("Concat", flat, "/model.22/Concat_3", axis=2)
    sizes = net.constant("model.22/Split", [rows, classes])
    boxes, scores = net.add("Split", [x, sizes], "/model.22/Split", 2, axis=1)
    boxes = decoded(net, distances(net, boxes))
    scores = net.one("Sigmoid", [scores], "/model.22/Sigmoid")
    return net.one("Concat", [boxes, scores], "/model.22/Concat_5", axis=1)


def distances(net: Net, x: str) -> str:
    """The mean of every side's distribution."""
    name = "model.22/dfl"
    x = net.one("Reshape", [x, net.constant(f"{name}/0", [1, 4, BINS, PLACES])], f"/{name}/Reshape", allowzero=0)
    x = net.one("Transpose", [x], f"/{name}/Transpose", perm=[0, 2, 1, 3])
    x = net.conv("model.22.dfl.conv", net.one("Softmax", [x], f"/{name}/Softmax", axis=1), (BINS, 1), 1)
    return net.one("Reshape", [x, net.constant(f"{name}/1", [1, 4, PLACES])], f"/{name}/Reshape_1", allowzero=0)


def decoded(net: Net, x: str) -> str:
    """Distances from grid places to boxes: centre and size in pixels of the image."""
    name = "/model.22"
    axis = net.constant("model.22/axis", [1])
    near, far = cut(net, x, (0, 2), axis), cut(net, x, (2, 4), axis)
    anchors = net.weight("model.22.anchors", 1, 2, PLACES)
    low = net.one("Sub", [anchors, near], f"{name}/Sub")
    high = net.one("Add", [anchors, far], f"{name}/Add")
    two = net.constant("model.22/two", [2.0], FLOAT)
    centre = net.one("Div", [net.one("Add", [low, high], f"{name}/Add_1"), two], f"{name}/Div")
    x = net.one("Concat", [centre, net.one("Sub", [high, low], f"{name}/Sub_1")], f"{name}/Concat_4", axis=1)
    return net.one("Mul", [x, net.weight("model.22.strides", 1, PLACES)], f"{name}/Mul")


def cut(net: Net, x: str, rows: tuple[int, int], axis: str) -> str:
    """The rows [first, last) of an axis."""
    name = f"model.22/rows_{rows[0]}"
    limits = [net.constant(f"{name}/{i}", [row]) for i, row in enumerate(rows)]
    return net.one("Slice", [x, *limits, axis], f"/{name}/Slice")


def detector(path: Path, widths: Sequence[int], classes: int = 80, align_corners: bool = False) -> None:
    """A YOLOv8-like detector of 255 nodes. `align_corners` makes its two Resizes such that a rule needs shapes."""
    net = Net()
    levels = neck(net, backbone(net, widths), widths, LINEAR if align_corners else NEAREST)
    head(net, levels, widths, classes)
    net.nodes[-1].output[0] = "output0"
    assert len(net.nodes) == NODES, len(net.nodes)
    names = {i: f"class {i}" for i in range(classes)}
    properties = {"task": "detect", "stride": "32", "names": str(names), "imgsz": str([IMAGE, IMAGE])}
    write(path, net, ("images", [1, 3, IMAGE, IMAGE]), ("output0", [1, 4 + classes, PLACES]), properties)


def long_chain(path: Path, declared: bool = False, align_corners: bool = False) -> None:
    """100,000 nodes, two in five with attributes. `declared` writes the shapes of inner values, which exporters leave
    out and simplifiers write; `align_corners` adds a Resize such that a rule needs shapes."""
    net, x, shape, wide = Net(), "images", [1, 8, 32, 32], [1, 8, 64, 64]
    for i in range(MANY_NODES // 5):
        name = f"/layers.{i}"
        gate = net.one("HardSigmoid", [x], f"{name}/gate/HardSigmoid", alpha=1 / 6, beta=0.5)
        y = net.one("Relu", [x], f"{name}/act/Relu")
        y = net.one("Mul", [y, gate], f"{name}/Mul")
        y = net.one("LeakyRelu", [y], f"{name}/leaky/LeakyRelu", alpha=0.1)
        x = net.one("Add", [x, y], f"{name}/Add")
    if align_corners:
        scales = net.constant("up", [1, 1, 2, 2], FLOAT)
        net.one("Resize", [x, "", scales], "/up/Resize", **LINEAR)
    net.nodes[-1].output[0] = "features"
    inner = [(output, shape) for node in net.nodes[:-1] for output in node.output] if declared else []
    write(path, net, ("images", shape), ("features", wide if align_corners else shape), {}, inner)


Declared = tuple[str, list[int]]  # a value's name and shape


def write(
    path: Path, net: Net, given: Declared, made: Declared, properties: dict[str, str], inner: Sequence[Declared] = ()
) -> None:
    """Writes an opset 17 model, the weights streamed."""
    before = onnx.GraphProto(node=net.nodes, name="main_graph").SerializeToString()
    declared = [value(*one) for one in inner]
    after = onnx.GraphProto(input=[value(*given)], output=[value(*made)], value_info=declared).SerializeToString()
    heads = [(tensor_head(name, dims), 4 * prod(dims)) for name, dims in net.weights.items()]
    size = len(before) + len(after) + sum(len(text) + payload for text, payload in heads)
    tail = onnx.ModelProto(opset_import=[helper.make_opsetid("", 17)])
    helper.set_model_props(tail, properties)
    with path.open("wb") as file:
        file.write(onnx.ModelProto(ir_version=8, producer_name="pytorch").SerializeToString())
        file.write(GRAPH + varint(size) + before)
        for text, payload in heads:
            file.write(text)
            write_weights(file, payload)
        file.write(after + tail.SerializeToString())
        os.fsync(file.fileno())  # so that its pages can be dropped from the cache


def value(name: str, dims: list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, dims)


def tensor_head(name: str, dims: tuple[int, ...]) -> bytes:
    """An initializer up to where the bytes of its raw_data begin."""
    payload = 4 * prod(dims)
    head: bytes = TensorProto(dims=dims, data_type=FLOAT, name=name).SerializeToString() + RAW_DATA + varint(payload)
    return INITIALIZER + varint(len(head) + payload) + head


BLOCK = (np.random.default_rng(0).standard_normal(1 << 21, np.float32) * np.float32(0.02)).tobytes()


def write_weights(file: BinaryIO, size: int) -> None:
    file.writelines(BLOCK[: size - start] for start in range(0, size, len(BLOCK)))


def varint(number: int) -> bytes:
    return bytes(_varint(number))


def _varint(number: int) -> Iterator[int]:
    while number > 127:
        yield number & 127 | 128
        number >>= 7
    yield number


def make_all(folder: Path) -> None:
    """Every model that `speed` measures with."""
    detector(folder / "detector.onnx", COMMON)
    detector(folder / "shapes.onnx", COMMON, align_corners=True)
    detector(folder / "huge.onnx", HUGE)
    long_chain(folder / "nodes.onnx")
    long_chain(folder / "nodes_declared.onnx", declared=True)
    long_chain(folder / "nodes_shapes.onnx", align_corners=True)
    for i in range(MANY_FILES):
        place = folder / "many"
        place.mkdir(exist_ok=True)
        detector(place / f"detector_{i:03}.onnx", SMALL, classes=1 + i % 90)


if __name__ == "__main__":
    make_all(Path(sys.argv[1]))
