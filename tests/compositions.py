"""Seeded chains of two to six operators at any opset, as converters and hands compose them: most are in order, some
have an element type, an attribute, an input or an opset stamp that does not go with the operator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from vexlint.model import schemas

OLDEST = 7
MISTAKE = 0.06  # the share of nodes with a mistake of each kind
T = TensorProto
DTYPES = (T.FLOAT,) * 8 + (T.FLOAT16, T.DOUBLE, T.INT64, T.INT32, T.UINT8, T.INT8, T.BOOL, T.BFLOAT16, T.INT16)
SHAPE = (1, 4, 6, 6)
UNARY = (
    "Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Exp", "Sqrt", "Floor", "Ceil", "Erf", "Softplus", "Elu", "LeakyRelu",
    "HardSigmoid", "Identity", "Sign", "Round", "Mish", "HardSwish", "Gelu", "Celu", "Not", "Cos", "Atan", "Sinh",
    "Selu", "ThresholdedRelu", "Softsign", "Log", "Reciprocal", "BitwiseNot", "Swish", "Det", "Shrink",
)  # fmt: skip
BINARY = (
    "Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "And", "Or", "Equal", "Greater", "LessOrEqual",
    "PRelu", "BitShift", "BitwiseAnd", "Less", "Xor", "Sum",
)  # fmt: skip
REDUCE = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp",
    "ReduceSumSquare",
)  # fmt: skip
COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
CONTRIB = ("Gelu", "QuickGelu", "FusedConv", "BiasGelu", "FusedGemm", "Inverse", "NotThere")


@dataclass(slots=True)
class Chain:
    """A graph in the making. `dtype` and `dims` are those of the last value `x`, `dims` None where not followed."""

    opset: int
    dice: random.Random
    given: onnx.ValueInfoProto
    dtype: int
    dims: list[int] | None = field(default_factory=lambda: list(SHAPE))
    x: str = "x"
    nodes: list[Any] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)
    domains: set[str] = field(default_factory=set)

    def constant(self, value: Any, dtype: int | None = None) -> str:
        kind = helper.tensor_dtype_to_np_dtype(dtype or self.dtype)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value).astype(kind), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, T.INT64)

    def add(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        attributes = self._slip(op, domain, attributes)
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{len(self.nodes)}", domain=domain, **attributes))
        self.domains.add(domain)
        self.x = names[0]
        return self.x

    def _slip(self, op: str, domain: str, attributes: dict[str, Any]) -> dict[str, Any]:
        """Now and then an attribute that the operator does not have at this opset, or had."""
        if domain or self.dice.random() > MISTAKE:
            return attributes
        every = {n for v in schemas.versions("", op) for n in schemas.operator("", op, v).attributes}  # type: ignore[union-attr]
        more = self.dice.choice([*sorted(every - {"body", "value"}), "alpha_", "consumed_inputs"])
        return {more: self.dice.choice([0, 1, [0, 1], 0.5, "linear"]), **attributes}

    def chance(self, share: float) -> bool:
        return self.dice.random() < share


def maybe(given: bool, **attributes: Any) -> dict[str, Any]:
    return attributes if given else {}


Step = Callable[[Chain], None]


def unary(c: Chain) -> None:
    op = c.dice.choice(UNARY)
    c.add(op, c.x)


def binary(c: Chain) -> None:
    op = c.dice.choice(BINARY)
    dtype = c.dice.choice(DTYPES) if c.chance(MISTAKE) else c.dtype
    shape = c.dice.choice([(), (1,), tuple(c.dims or ())])
    extra = maybe(op == "BitShift", direction="LEFT") | maybe(op == "Mod" and c.chance(0.5), fmod=1)
    c.add(op, c.x, c.constant(np.ones(shape), dtype), **extra)


def cast(c: Chain) -> None:
    c.add("Cast", c.x, to=c.dice.choice(DTYPES))


def spatial(c: Chain) -> None:
    """An operator over pictures, given whatever rank there is."""
    channels = c.dims[1] if c.dims and len(c.dims) > 1 else 4
    ones = [c.constant(np.ones(channels)) for _ in range(4)]
    way = c.dice.randrange(8)
    if way == 0:
        c.add("Conv", c.x, c.constant(np.ones((4, channels, 1, 1))), kernel_shape=[1, 1])
    elif way == 1:
        c.add("MaxPool", c.x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], **maybe(c.chance(0.2), ceil_mode=1))
    elif way == 2:
        c.add("AveragePool", c.x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    elif way == 3:
        c.add("BatchNormalization", c.x, *ones, epsilon=1e-5)
    elif way == 4:
        c.add("InstanceNormalization", c.x, *ones[:2])
    elif way == 5:
        c.add("ConvTranspose", c.x, c.constant(np.ones((channels, 4, 1, 1))))
    elif way == 6:
        c.add("LRN", c.x, size=3)
    else:
        op = c.dice.choice(["GlobalAveragePool", "GlobalMaxPool", "LpPool"])
        c.add(op, c.x, **maybe(op == "LpPool" or c.chance(0.1), kernel_shape=[1, 1]))


def reduce(c: Chain) -> None:
    op = c.dice.choice(REDUCE)
    moved = 13 if op == "ReduceSum" else 18
    as_input = (c.opset >= moved) != c.chance(2 * MISTAKE)
    if as_input:
        c.add(op, c.x, c.ints(1), keepdims=1)
    else:
        c.add(op, c.x, axes=[1], keepdims=1)


def squeeze(c: Chain) -> None:
    op = c.dice.choice(["Unsqueeze", "Squeeze"])
    axes = [0]
    if (c.opset >= 13) != c.chance(2 * MISTAKE):
        c.add(op, c.x, c.ints(*axes))
    else:
        c.add(op, c.x, axes=axes)


def shaped(c: Chain) -> None:
    """Operators that move elements about."""
    way = c.dice.randrange(10)
    if way == 0:
        c.add("Transpose", c.x, perm=[0, 2, 3, 1])
    elif way == 1:
        c.add("Concat", c.x, c.x, axis=c.dice.choice([1, 1, -1]))
    elif way == 2:
        c.add("Flatten", c.x, axis=1)
    elif way == 3:
        c.add("Reshape", c.x, c.ints(1, -1))
    elif way == 4:
        c.add("Tile", c.x, c.ints(*[1] * 4))
    elif way == 5:
        c.add("Gather", c.x, c.constant([0, 1], c.dice.choice([T.INT64, T.INT32, T.INT64, T.FLOAT])), axis=1)
    elif way == 6:
        c.add("SpaceToDepth", c.x, blocksize=2)
    elif way == 7:
        c.add("DepthToSpace", c.x, blocksize=2, **maybe(c.chance(0.5), mode="CRD"))
    elif way == 8:
        c.add("Expand", c.x, c.ints(1, 1, 1, 1))
    else:
        c.add("Trilu", c.x)
        return


def versioned(c: Chain) -> None:
    """Operators whose attributes became inputs."""
    way = c.dice.randrange(5)
    new = c.chance(1 - 2 * MISTAKE)
    if way == 0:
        late = (c.opset >= 11) == new
        c.add("Clip", c.x, c.constant(0), c.constant(6)) if late else c.add("Clip", c.x, min=0.0, max=6.0)
        return
    if way == 1:
        late = (c.opset >= 11) == new
        pads = [0, 0, 1, 1, 0, 0, 1, 1]
        mode = c.dice.choice(["constant", "reflect", "edge", "wrap"])
        c.add("Pad", c.x, c.ints(*pads), mode=mode) if late else c.add("Pad", c.x, pads=pads, mode=mode)
    elif way == 2:
        late = (c.opset >= 10) == new
        ends = ([0], [2], [1])
        if late:
            c.add("Slice", c.x, *(c.ints(*e) for e in ends))
        else:
            c.add("Slice", c.x, starts=[0], ends=[2], axes=[1])
    elif way == 3:
        late = (c.opset >= 13) == new
        if late:
            c.add("Split", c.x, c.ints(2, 2), outputs=2, axis=1)
        else:
            c.add("Split", c.x, outputs=2, axis=1, split=[2, 2])
    else:
        late = (c.opset >= 10) == new
        c.add("TopK", c.x, c.ints(2), outputs=2, axis=1) if late else c.add("TopK", c.x, outputs=2, axis=1, k=2)


def resized(c: Chain) -> None:
    mode = c.dice.choice(["nearest", "linear", "cubic", "bilinear"])
    scales = c.constant([1, 1, 2, 2], T.FLOAT16 if c.chance(MISTAKE) else T.FLOAT)
    if c.opset < 10 or c.chance(MISTAKE):
        c.add("Upsample", c.x, scales, mode=mode)
    elif c.opset == 10:
        c.add("Resize", c.x, scales, mode=mode)
    else:
        where = c.dice.choice(COORDINATES)
        extra = maybe(c.chance(0.15), antialias=1)
        roi = c.constant(np.zeros(0), T.FLOAT)
        c.add("Resize", c.x, roi, scales, mode=mode, coordinate_transformation_mode=where, **extra)


def counted(c: Chain) -> None:
    """Operators whose result has a type of its own."""
    way = c.dice.randrange(7)
    if way == 0:
        c.add(c.dice.choice(["ArgMax", "ArgMin"]), c.x, axis=1, keepdims=1)
    elif way == 1:
        c.add(c.dice.choice(["Shape", "Size", "NonZero"]), c.x)
    elif way == 2:
        kind = c.dice.choice([T.UINT8, T.INT8, T.UINT8, T.INT16])
        c.add("QuantizeLinear", c.x, c.constant(0.1, T.FLOAT), c.constant(0, kind))
    elif way == 3:
        c.add("DequantizeLinear", c.x, c.constant(0.1, T.FLOAT), c.constant(0, c.dtype))
    elif way == 4:
        c.add(c.dice.choice(["IsNaN", "IsInf"]), c.x)
    elif way == 5:
        c.add("CumSum", c.x, c.constant(1, c.dice.choice([T.INT64, T.INT32])))
    else:
        c.add("Where", c.constant(True, T.BOOL), c.x, c.constant(0))
        return


def soft(c: Chain) -> None:
    op = c.dice.choice(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"])
    c.add(op, c.x, axis=c.dice.choice([1, -1, 1, 9 if c.chance(MISTAKE) else 1]))


def multiplied(c: Chain) -> None:
    way = c.dice.randrange(3)
    width = c.dims[-1] if c.dims else 6
    if way == 0:
        c.add("MatMul", c.x, c.constant(np.ones((width, 6))))
    elif way == 1:
        c.add("Einsum", c.x, equation=c.dice.choice(["bchw->bhwc", "bchw->bc", "...ij->...ji"]))
    else:
        scale = c.constant(np.ones(width))
        c.add("LayerNormalization", c.x, scale, scale)


def foreign(c: Chain) -> None:
    domain = c.dice.choice(["com.microsoft", "com.microsoft", "com.example", "ai.onnx.contrib"])
    c.add(c.dice.choice(CONTRIB), c.x, domain=domain)


STEPS: Sequence[tuple[Step, int]] = (
    (unary, 8), (binary, 6), (cast, 2), (spatial, 6), (reduce, 2), (squeeze, 1), (shaped, 5), (versioned, 5),
    (resized, 2), (counted, 2), (soft, 2), (multiplied, 2), (foreign, 1),
)  # fmt: skip


def composition(seed: int, newest: int) -> ModelProto:
    """The composition of this seed: an opset from 7 to one above `newest` (1 in 30), input x of shape [1, 4, 6, 6]."""
    dice = random.Random(f"composition {seed}")
    opset = newest + 1 if dice.random() < 1 / 30 else dice.randint(OLDEST, newest)
    dtype = dice.choice(DTYPES)
    c = Chain(opset, dice, helper.make_tensor_value_info("x", dtype, SHAPE), dtype)
    steps, weights = zip(*STEPS, strict=True)
    wanted = dice.randint(2, 6)
    while len(c.nodes) < wanted:
        _fitting(c, dice.choices(steps, weights)[0])
    return _finished(c)


def _fitting(c: Chain, step: Step) -> None:
    """Adds the step's node. Where the opset or the value's type and shape do not go with the operator, another one is
    tried, unless this one is to be a mistake."""
    for _ in range(12):
        nodes, weights, x, domains = len(c.nodes), len(c.weights), c.x, set(c.domains)
        step(c)
        try:
            known = _inferred(c, strict=not c.chance(MISTAKE))
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
            del c.nodes[nodes:], c.weights[weights:]
            c.x, c.domains = x, domains
            step = c.dice.choice([s for s, _ in STEPS])
            continue
        if known is not None:
            c.dtype, c.dims = known
        return


def _inferred(c: Chain, strict: bool) -> tuple[int, list[int] | None] | None:
    """Element type and shape of the last value, None where ONNX cannot tell. Where `strict`, raises what the checker or
    inference has against it."""
    imports = [helper.make_opsetid("", c.opset), *(helper.make_opsetid(d, 1) for d in c.domains if d)]
    model = _model(c, onnx.ValueInfoProto(name=c.x), c.given, imports)
    if strict and not any(node.domain for node in c.nodes):
        for node in c.nodes:
            onnx.checker.check_node(node, _checking(c.opset))
    kind = onnx.shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict).graph.output[0].type
    if not kind.tensor_type.elem_type:
        return None
    dims = [d.dim_value for d in kind.tensor_type.shape.dim] if kind.tensor_type.HasField("shape") else []
    return kind.tensor_type.elem_type, dims if dims and all(dims) else None


def _checking(opset: int) -> onnx.checker.C.CheckerContext:
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {"": opset}
    return context


def _model(c: Chain, output: onnx.ValueInfoProto, given: onnx.ValueInfoProto, imports: Sequence[Any]) -> ModelProto:
    graph = helper.make_graph(c.nodes, "chain", [given], [output], c.weights)
    model = helper.make_model(graph, opset_imports=imports, producer_name="composition")
    ir = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = ir if c.chance(0.1) else max(4, ir)  # up to IR 3 an initializer had to be an input too
    return model


def _finished(c: Chain) -> ModelProto:
    """The model, its output declared as inference has it, else as the chain believes."""
    imports = [helper.make_opsetid("", c.opset)]
    imports += [helper.make_opsetid(domain, 1) for domain in sorted(c.domains - {""}) if not c.chance(0.1)]
    return _model(c, helper.make_tensor_value_info(c.x, c.dtype, c.dims), c.given, imports)
