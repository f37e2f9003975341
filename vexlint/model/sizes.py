"""What sizes a node's outputs have, by those of its inputs. What does not follow is None; sizes that cannot go together
raise Misfit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vexlint.model import reshaping, signatures, windows
from vexlint.model.reshaping import axes, broadcast, single
from vexlint.model.signatures import Dims, Misfit, show

if TYPE_CHECKING:
    from vexlint.model.graph import Node
    from vexlint.model.kinds import Kind

Step = Callable[["Node", Sequence["Kind"], int], list[Dims | None]]

# The first output has the shape of the first input
KEPT = """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Bernoulli Cast CastLike Ceil Celu Cos Cosh Elu Erf EyeLike Exp Floor
    Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LRN LeakyRelu Log LogSoftmax LpNormalization
    MeanVarianceNormalization Mish Neg Not RandomNormalLike RandomUniformLike Reciprocal RegexFullMatch Relu Round Selu
    Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu
"""
SAME = frozenset(KEPT.split())
# numpy's broadcasting of all inputs
NUMPY = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod
    Mul Or Pow StringConcat Sub Sum Where Xor
"""
BROADCAST = frozenset(NUMPY.split())
LATER = ("Sum", "Mean", "Max", "Min")  # from opset 8 on, the others from 7


def outputs(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """The sizes of a standard node's outputs. Raises Misfit."""
    op = node.op
    if op in SAME:
        made: list[Dims | None] = [inputs[0].dims if inputs else None]
    elif op in BROADCAST:
        modern = node.graph.opsets.get("", 0) >= (8 if op in LATER else 7)
        made = [_joined(op, inputs) if modern else inputs[0].dims if inputs else None]
    else:
        signature, special = signatures.TABLE.get(op), SPECIAL.get(op)
        made = signatures.match(op, signature, [kind.dims for kind in inputs], count) if signature else []
        if special and (inputs or op in FREE):
            made = special(node, inputs, count)
    return [*made, *[None] * (count - len(made))][:count]


def _joined(op: str, inputs: Sequence[Kind]) -> Dims | None:
    shapes = [kind.dims for kind in inputs]
    first = shapes[0] if shapes else None
    if first is not None and all(dims == first for dims in shapes):
        return first
    return broadcast(op, shapes)


def _reduced(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    dims, keep, cut = inputs[0].dims, node.attribute("keepdims"), axes(node, inputs)
    if len(inputs) > 1 and (inputs[1].rank or 0) > 1:
        raise Misfit(f"the axes of {node.op} are {show(inputs[1].dims or ())} where a list is due")
    if dims is None or keep not in (0, 1):
        return [None]
    if cut is None:
        return [(None,) * len(dims) if keep else None]
    if not cut and node.attribute("noop_with_empty_axes"):
        return [dims]
    places = {axis % len(dims) for axis in cut if -len(dims) <= axis < len(dims)} if cut else set(range(len(dims)))
    left = [1 if i in places else size for i, size in enumerate(dims) if keep or i not in places]
    return [tuple(left)]


def _arg(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    dims, axis, keep = inputs[0].dims, node.attribute("axis"), node.attribute("keepdims")
    if dims is None or axis is None or keep not in (0, 1) or not -len(dims) <= axis < len(dims):
        return [None]
    return [tuple(1 if i == axis % len(dims) else d for i, d in enumerate(dims) if keep or i != axis % len(dims))]


def _product(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """MatMul as numpy has it; of QLinearMatMul the two matrices are inputs 0 and 3."""
    left, right = ((inputs[i].dims if i < len(inputs) else None) for i in ((0, 3) if "QL" in node.op else (0, 1)))
    if left is None or right is None:
        return [None]
    pair = f"{show(left)} and {show(right)}"
    if not left or not right:
        raise Misfit(f"{node.op} of {pair}: a matrix is due, not a scalar")
    inner, other = left[-1], right[-2] if len(right) > 1 else right[0]
    if None not in (inner, other) and inner != other:
        raise Misfit(f"{node.op} of {pair}: {inner} columns meet {other} rows")
    rest = broadcast(node.op, [left[:-2], right[:-2]])
    return [None if rest is None else (*rest, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))]


def _gemm(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    sides: list[Dims] = []
    for position, name in ((0, "transA"), (1, "transB")):
        dims = inputs[position].dims if position < len(inputs) else None
        if dims is not None and len(dims) != 2:
            raise Misfit(f"input {position} of Gemm is {show(dims)} where a matrix is due")
        dims = (None, None) if dims is None else dims
        sides.append(dims[::-1] if node.attribute(name) else dims)
    (rows, inner), (other, columns) = sides
    if None not in (inner, other) and inner != other:
        raise Misfit(f"Gemm of {show(sides[0])} and {show(sides[1])}: {inner} columns meet {other} rows")
    made: Dims = (rows, columns)
    bias = inputs[2].dims if len(inputs) > 2 and node.graph.opsets.get("", 0) >= 7 else None
    if bias is not None and (len(bias) > 2 or not _within(bias, made)):
        raise Misfit(f"input 2 of Gemm is {show(bias)}, which does not broadcast to the product's {show(made)}")
    return [made]


def _within(dims: Dims, whole: Dims) -> bool:
    """Whether a shape broadcasts to another one that stays as it is."""
    pairs = zip(reversed(dims), reversed(whole), strict=False)
    return len(dims) <= len(whole) and all(a in (1, None) or b is None or a == b for a, b in pairs)


def _normalized(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """LayerNormalization and RMSNormalization: scale and bias broadcast to the data; means keep the axes before."""
    dims, axis = inputs[0].dims, node.attribute("axis")
    if dims is None:
        return [None]
    for position, kind in enumerate(inputs[1:3], 1):
        if kind.dims is not None and not _within(kind.dims, dims):
            raise Misfit(f"input {position} of {node.op} is {show(kind.dims)}, its data are {show(dims)}")
    if axis is None or not -len(dims) <= axis < len(dims):
        return [dims]
    kept = axis % len(dims)
    return [dims, *[(*dims[:kept], *[1] * (len(dims) - kept))] * (count - 1)]


def _quantized(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """QuantizeLinear and DequantizeLinear: one scale, one for each index of an axis, or one a block."""
    dims, scale = inputs[0].dims, inputs[1].dims if len(inputs) > 1 else None
    if dims is not None and scale is not None and len(scale) > 1 and not node.attribute("block_size"):
        raise Misfit(f"the scale of {node.op} is {show(scale)}: one number or a list of them is due")
    axis = node.attribute("axis")
    if dims and scale and len(scale) == 1 and axis is not None and -len(dims) <= axis < len(dims):
        size = dims[axis]
        if None not in (size, scale[0]) and scale[0] not in (1, size):
            raise Misfit(f"{scale[0]} scales of {node.op} for axis {axis} of {show(dims)}")
    return [dims]


def _sloped(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    dims, slope = (inputs[i].dims if i < len(inputs) else None for i in (0, 1))
    if dims is not None and slope is not None and node.graph.opsets.get("", 0) >= 7 and not _within(slope, dims):
        raise Misfit(f"the slopes of PRelu are {show(slope)}, its data are {show(dims)}")
    return [dims]


def _blocks(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """DepthToSpace and SpaceToDepth."""
    dims, size = inputs[0].dims, node.attribute("blocksize")
    if dims is None or not isinstance(size, int) or size < 1:
        return [None]
    if len(dims) != 4:
        raise Misfit(f"the input of {node.op} is {show(dims)} where [N,C,H,W] is due")
    batch, channels, *picture = dims
    if node.op == "DepthToSpace":
        return [(batch, None if channels is None else channels // size**2, *[d and d * size for d in picture])]
    if any(d is not None and d % size for d in picture):
        raise Misfit(f"SpaceToDepth cuts {show(dims)} into blocks of {size}, which does not go")
    return [(batch, channels and channels * size**2, *[d and d // size for d in picture])]


def _sampled(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """GridSample: [N, C, ...] at [N, ..., as many coordinates as the data have axes behind the second]."""
    data, grid = (inputs[i].dims if i < len(inputs) else None for i in (0, 1))
    if data is None or grid is None:
        return [None]
    fits = len(data) == len(grid) > 2 and grid[-1] in (None, len(data) - 2) and (None in (data[0], grid[0]) or
                                                                                  data[0] == grid[0])  # fmt: skip
    if not fits:
        raise Misfit(f"the grid of GridSample is {show(grid)}, its data are {show(data)}")
    return [(*data[:2], *grid[1:-1])]


def _grid(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    size = inputs[1] if len(inputs) > 1 else None
    if size is None or size.dims is None:
        return [None]
    if len(size.dims) != 1 or size.dims[0] not in (None, 4, 5):
        raise Misfit(f"the size of AffineGrid is {show(size.dims)}: [4] is due for a picture, [5] for a volume")
    return [None if size.value is None else (size.value[0], *size.value[2:], len(size.value) - 2)]


def _regions(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    data, rois = (inputs[i].dims if i < len(inputs) else None for i in (0, 1))
    sides = node.attribute("output_height"), node.attribute("output_width")
    return [(rois[0] if rois else None, data[1] if data else None, *sides)]


def _recurrent(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    hidden, gates = node.attribute("hidden_size"), {"RNN": 1, "GRU": 3, "LSTM": 4}[node.op]
    both = 2 if node.attribute("direction") == "bidirectional" else 1
    if not isinstance(hidden, int):
        return [None]
    wide, state = f"{both} {gates * hidden}", f"{both} B {hidden}"
    weights = f"{wide} I, {wide} {hidden}, {both} {2 * gates * hidden}, B"
    if node.attribute("layout"):
        return [None] * count
    more = f"{state}, {state}, {both} {3 * hidden}" if node.op == "LSTM" else state
    signature = f"L B I, {weights}, {more} -> L {both} B {hidden}, {state}, {state}"
    return signatures.match(node.op, signature, [kind.dims for kind in inputs], count)


def _attended(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """Attention with a batch, heads, a sequence and their sizes; of three axes the heads lie in the last one."""
    shapes = [kind.dims for kind in inputs[:3]]
    for position, (dims, name) in enumerate(zip(shapes, ("query", "key", "value"), strict=False)):
        if dims is not None and len(dims) not in (3, 4):
            raise Misfit(f"input {position} ({name}) of Attention is {show(dims)}: 3 or 4 axes are due")
    given = [bool(name) for name in node.inputs[4:6]]
    if given in ([True], [True, False], [False, True]):
        raise Misfit("Attention has a past key without a past value, or the other way round")
    if all(dims is not None and len(dims) == 3 for dims in shapes):
        return signatures.match("Attention", "B S _, B T _, B T _ -> B S ?", shapes, 1)
    if any(dims is None or len(dims) != 4 for dims in shapes):
        return [None]
    every = [kind.dims for kind in inputs]
    made = signatures.match("Attention", "B Q S D, B K T D, B K T V, any, B K P D, B K P V -> B Q S V", every, 1)
    query, key = shapes[0], shapes[1]
    if query and key and query[1] is not None and key[1] and query[1] % key[1]:
        raise Misfit(f"the {query[1]} heads of Attention's query are no multiple of the {key[1]} of its key")
    mask = inputs[3].dims if len(inputs) > 3 else None
    if mask is not None and query and (len(mask) > 4 or not _within(mask[:-1], query[:3])):
        raise Misfit(f"the mask of Attention is {show(mask)}, its query {show(query)}")
    return made


def _lost(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """The losses of classes: [N, C, ...] against the labels [N, ...], with a weight for each class."""
    if any(kind.dims is None for kind in inputs[:2]) or len(inputs) < 2:
        return [None]
    data, labels = inputs[0].dims or (), inputs[1].dims or ()
    turned = (data[0], *data[2:], *data[1:2]) if data else ()
    weight = inputs[2].dims if len(inputs) > 2 else None
    signatures.match(node.op, "... C, ..., C", [turned, labels, weight], 1)
    return [labels if node.attribute("reduction") == "none" else (), *[data] * (count - 1)]


def _summed(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """Einsum of an equation without an ellipsis."""
    equation = node.attribute("equation")
    if not isinstance(equation, str) or "." in equation or "->" not in equation:
        return [None]
    left, _, right = equation.replace(" ", "").partition("->")
    if left.count(",") + 1 != len(inputs):
        return [None]  # VEX111 counts them
    sizes: dict[str, int | None] = {}
    for position, (letters, kind) in enumerate(zip(left.split(","), inputs, strict=True)):
        if kind.dims is not None and len(kind.dims) != len(letters):
            raise Misfit(f"input {position} of Einsum is {show(kind.dims)}, the equation {equation!r} has {letters!r}")
        for letter, size in zip(letters, kind.dims or (), strict=False):
            if None not in (size, sizes.get(letter)) and 1 not in (size, sizes[letter]) and size != sizes[letter]:
                raise Misfit(f"{letter!r} of Einsum's {equation!r} is {sizes[letter]} and {size}")
            sizes[letter] = sizes.get(letter) if sizes.get(letter) not in (None, 1) else size
    return [tuple(sizes.get(letter) for letter in right)]


def _ranged(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    numbers = [single(kind.value) for kind in inputs]
    if len(numbers) != 3 or None in numbers or not numbers[2]:
        return [(None,)]
    start, limit, delta = (number or 0 for number in numbers)
    return [(max(math.ceil((limit - start) / delta), 0),)]


def _hot(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    dims, axis = inputs[0].dims, node.attribute("axis")
    if dims is None or axis is None or not -len(dims) - 1 <= axis <= len(dims):
        return [None]
    at = axis % (len(dims) + 1)
    return [(*dims[:at], single(inputs[1].value) if len(inputs) > 1 else None, *dims[at:])]


def _counted(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    dims, end = inputs[0].dims, node.attribute("end")
    if dims is None:
        return [(None,)]
    return [(len(dims[node.attribute("start") or 0 : len(dims) if end is None else end]),)]


def _found(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    dims = inputs[0].dims
    return [(None if dims is None else max(len(dims), 1), None)]


REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
FREE = ("RandomNormal", "RandomUniform")  # they make their sizes of an attribute
SPECIAL: dict[str, Step] = {
    **reshaping.STEPS,
    **dict.fromkeys((f"Reduce{what}" for what in REDUCTIONS), _reduced),
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv"), windows.convolved),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), windows.pooled),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), windows.globally),
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _product),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _normalized),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantized),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _recurrent),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _lost),
    "AffineGrid": _grid, "ArgMax": _arg, "ArgMin": _arg, "Attention": _attended, "Einsum": _summed, "Gemm": _gemm,
    "GridSample": _sampled, "NonZero": _found, "OneHot": _hot, "PRelu": _sloped, "Range": _ranged,
    "RoiAlign": _regions, "Shape": _counted, "Size": lambda *_: [()],
    "DynamicQuantizeLinear": lambda _, inputs, __: [inputs[0].dims, (), ()],
}  # fmt: skip
BY_CONSTANTS = ("Resize", "Upsample")  # of these numbers count that a kind does not hold
