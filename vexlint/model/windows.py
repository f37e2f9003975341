"""The sizes that convolutions and pools make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vexlint.model.signatures import Dims, Misfit, show

if TYPE_CHECKING:
    from vexlint.model.graph import Node
    from vexlint.model.kinds import Kind

WEIGHTS_AT = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3}
BIAS_AT = {"Conv": 2, "ConvTranspose": 2, "DeformConv": 3, "QLinearConv": 8}


def convolved(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """[N, M, ...] of a convolution; its weights are [M, C / group, ...], of a ConvTranspose [C, M / group, ...]."""
    data, weights = inputs[0].dims, _given(inputs, WEIGHTS_AT[node.op])
    if weights is None:
        return [None if data is None else (data[0], *[None] * (len(data) - 1)) if data else None]
    if data is not None and len(data) != len(weights):
        raise Misfit(f"the input of {node.op} is {show(data)}, its weights are {show(weights)}: they differ in rank")
    if len(weights) < 3:
        raise Misfit(f"the weights of {node.op} are {show(weights)}: a window has one axis or more after the first two")
    group = node.attribute("group") or 1
    turned = node.op == "ConvTranspose"
    made = (None if weights[1] is None else weights[1] * group) if turned else weights[0]
    bias = _given(inputs, BIAS_AT.get(node.op, 99))
    if bias is not None and (len(bias) != 1 or (None not in (bias[0], made) and bias[0] != made)):
        raise Misfit(f"the bias of {node.op} is {show(bias)}, its weights {show(weights)} make {made} channels")
    if data is None:
        return [(None, made, *[None] * (len(weights) - 2))]
    kernel = node.attribute("kernel_shape") or weights[2:]
    spatial = _transposed(node, data[2:], kernel) if turned else _slid(node, data[2:], kernel)
    return [(data[0], made, *spatial)]


def pooled(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """[N, C, ...] of a pool, of its indices too."""
    data, kernel = inputs[0].dims, node.attribute("kernel_shape")
    if data is None:
        return [None] * count
    if len(data) < 3:
        raise Misfit(f"the input of {node.op} is {show(data)}: a batch, channels and one axis or more are due")
    spatial = _slid(node, data[2:], kernel) if kernel else (None,) * (len(data) - 2)
    return [(*data[:2], *spatial)] * count


def globally(node: Node, inputs: Sequence[Kind], count: int) -> list[Dims | None]:
    """One number a channel."""
    data = inputs[0].dims
    return [None if data is None else (*data[:2], *[1] * (len(data) - 2))]


def _given(inputs: Sequence[Kind], position: int) -> Dims | None:
    return inputs[position].dims if position < len(inputs) else None


def _numbers(node: Node, name: str, count: int, default: int) -> list[int]:
    """A window's attribute, one number an axis; the default where it is not written, or wrong: VEX113 speaks then."""
    written = node.attribute(name)
    return list(written) if written and len(written) == count else [default] * count


def _slid(node: Node, sizes: Dims, kernel: Sequence[int | None]) -> Dims:
    rank = len(sizes)
    strides, dilations = _numbers(node, "strides", rank, 1), _numbers(node, "dilations", rank, 1)
    pads, auto = _numbers(node, "pads", 2 * rank, 0), node.attribute("auto_pad") or "NOTSET"
    if len(kernel) != rank or min(strides) < 1:
        return (None,) * rank
    made: list[int | None] = []
    for i, (size, window, stride) in enumerate(zip(sizes, kernel, strides, strict=True)):
        if size is None or window is None:
            made.append(None)
        elif auto in ("SAME_UPPER", "SAME_LOWER"):
            made.append(-(-size // stride))
        else:
            padded = size + (pads[i] + pads[i + rank] if auto == "NOTSET" else 0)
            made.append(_steps(padded - dilations[i] * (window - 1) - 1, stride, node.attribute("ceil_mode") == 1))
    return tuple(made)


def _steps(room: int, stride: int, ceil: bool) -> int | None:
    """How often a window goes; None where that is not for certain: the last step of a rounded-up pool may lie in the
    padding, which runtimes count differently."""
    if room < 0 or (ceil and room % stride):
        return None
    return room // stride + 1


def _transposed(node: Node, sizes: Dims, kernel: Sequence[int | None]) -> Dims:
    rank = len(sizes)
    shape, auto = node.attribute("output_shape"), node.attribute("auto_pad") or "NOTSET"
    if shape:
        return tuple(shape[-rank:]) if len(shape) >= rank else (None,) * rank
    if len(kernel) != rank or auto != "NOTSET":
        return (None,) * rank
    strides, dilations = _numbers(node, "strides", rank, 1), _numbers(node, "dilations", rank, 1)
    pads, more = _numbers(node, "pads", 2 * rank, 0), _numbers(node, "output_padding", rank, 0)
    return tuple(
        None
        if size is None or window is None
        else strides[i] * (size - 1) + more[i] + dilations[i] * (window - 1) + 1 - pads[i] - pads[i + rank]
        for i, (size, window) in enumerate(zip(sizes, kernel, strict=True))
    )
