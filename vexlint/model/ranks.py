"""How many axes a node's outputs have, by the ranks of its inputs. None is unknown; a wrong node has unknown ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vexlint.model.model import Node

Rank = int | None
Ranks = Sequence[Rank]

# The first output has the rank of the first input
KEPT = """
    Abs Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization BitwiseNot Bernoulli Cast CastLike Ceil Celu
    Clip Concat Conv ConvInteger ConvTranspose Cos Cosh CumSum DeformConv DepthToSpace DequantizeLinear Dropout
    DynamicQuantizeLinear Elu Erf Exp EyeLike Floor Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample
    GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN LayerNormalization
    LeakyRelu Log LogSoftmax LpNormalization LpPool MaxPool MeanVarianceNormalization Mish Neg Not PRelu Pad
    QLinearConv QuantizeLinear RMSNormalization RandomNormalLike RandomUniformLike Reciprocal Relu Resize
    ReverseSequence Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Slice Softmax Softplus
    Softsign SpaceToDepth Split Sqrt Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Upsample
"""
SAME = frozenset(KEPT.split())
# All outputs have that rank
ALL_SAME = frozenset(("Split", "TopK", "MaxPool", "Dropout"))
# The largest rank of all inputs: numpy's broadcasting
NUMPY = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod
    Mul Or Pow Sub Sum Where Xor
"""
BROADCAST = frozenset(NUMPY.split())
FIXED = {"Shape": 1, "Size": 0, "NonZero": 2, "Flatten": 2, "Gemm": 2, "NonMaxSuppression": 2, "RoiAlign": 4,
         "MaxRoiPool": 4, "Multinomial": 2, "Range": 1, "Compress": None}  # fmt: skip
# Operators whose ranks follow from those of their inputs and their attributes: no constant has a say
BY_RANKS = SAME | BROADCAST | FIXED.keys() | {"ArgMax", "ArgMin", "Gather", "GatherElements", "MatMul", "OneHot"}


def outputs(node: Node, inputs: Ranks, count: int) -> list[Rank]:
    """The ranks of a standard node's outputs."""
    if not count:
        return []
    op = node.op
    first = inputs[0] if inputs else None
    if op in SAME:
        return [first] * count if op in ALL_SAME else [first, *[None] * (count - 1)]
    if op in BROADCAST:
        known = [rank for rank in inputs if rank is not None]
        return [max(known) if known and len(known) == len(inputs) else None, *[None] * (count - 1)]
    if op in FIXED:
        return [FIXED[op], *[None] * (count - 1)]
    special = SPECIAL.get(op)
    if special is None and op.startswith("Reduce"):
        special = _reduced
    known_inputs = inputs or op in ("RandomNormal", "RandomUniform")
    return [special(node, inputs) if special and known_inputs else None, *[None] * (count - 1)]


def axes(node: Node) -> list[int] | None:
    """The `axes` of a node, attribute or constant input, [] where it writes none; None where unknown."""
    position = {"Slice": 3, "Pad": 3}.get(node.op, 1)
    schema = node.schema
    if schema is not None and "axes" in schema.attributes:
        if any(a.name == "axes" and a.ref_attr_name for a in node.proto.attribute):
            return None
        written = node.attribute("axes")
        return list(written) if isinstance(written, (list, tuple)) else []
    value = node.input(position)
    return [] if value is None else value.constant


def _reduced(node: Node, inputs: Ranks) -> Rank:
    if not inputs or inputs[0] is None:
        return None
    if node.attribute("keepdims") != 0:
        return inputs[0] if node.attribute("keepdims") == 1 else None
    cut = axes(node)
    if cut is None:
        return None
    if not cut:
        return inputs[0] if node.attribute("noop_with_empty_axes") else 0
    return max(inputs[0] - len(cut), 0)


def _arg(node: Node, inputs: Ranks) -> Rank:
    return None if inputs[0] is None else inputs[0] - (node.attribute("keepdims") == 0)


def _unsqueezed(node: Node, inputs: Ranks) -> Rank:
    added = axes(node)
    return None if inputs[0] is None or not added else inputs[0] + len(added)


def _squeezed(node: Node, inputs: Ranks) -> Rank:
    cut = axes(node)
    return None if inputs[0] is None or not cut else max(inputs[0] - len(cut), 0)


def _gathered(node: Node, inputs: Ranks) -> Rank:
    if len(inputs) < 2 or inputs[0] is None or inputs[1] is None:
        return None
    return inputs[0] + inputs[1] - 1


def _product(node: Node, inputs: Ranks) -> Rank:
    a, b = inputs[:2] if len(inputs) > 1 else (None, None)
    return max(a, b) if a is not None and b is not None and a > 1 and b > 1 else None


def _shaped(node: Node, inputs: Ranks) -> Rank:
    """The length of the constant that says the shape."""
    position = {"ConstantOfShape": 0}.get(node.op, 1)
    written = node.attribute("shape")
    if isinstance(written, (list, tuple)):
        return len(written)
    value = node.input(position)
    tensor = value.tensor if value is not None else None
    if tensor is None or len(tensor.dims) != 1:
        return None
    length = int(tensor.dims[0])
    if node.op != "Expand":
        return length
    return None if inputs[0] is None else max(length, inputs[0])


def _one_hot(node: Node, inputs: Ranks) -> Rank:
    return None if inputs[0] is None else inputs[0] + 1


SPECIAL: dict[str, Callable[[Node, Ranks], Rank]] = {
    "ArgMax": _arg, "ArgMin": _arg, "Unsqueeze": _unsqueezed, "Squeeze": _squeezed, "Gather": _gathered,
    "GatherElements": lambda _, inputs: inputs[1] if len(inputs) > 1 else None, "MatMul": _product,
    "MatMulInteger": _product, "Reshape": _shaped, "Expand": _shaped, "ConstantOfShape": _shaped, "OneHot": _one_hot,
    "RandomNormal": _shaped, "RandomUniform": _shaped,
}  # fmt: skip
