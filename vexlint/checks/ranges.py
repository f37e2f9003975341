"""Attributes (and constant inputs that say the same) against the ranks, weights and bounds that the standard names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vexlint.checks.context import Context
from vexlint.checks.faults import grouped
from vexlint.model import ranks, tensors
from vexlint.model.attributes import attribute_type, attribute_value
from vexlint.model.kinds import TYPE_ATTRIBUTES, Use
from vexlint.model.model import Model, Value
from vexlint.values import Hit

Written = dict[str, Any]  # the attributes that a node writes, of the type that the schema wants
Flaw = Callable[[Use, Written], str | None]

# The least value of an attribute, of each element where it is a list; by operator where a name means other things
LEAST = {
    "blocksize": 1, "dilations": 1, "group": 1, "hidden_size": 1, "kernel_shape": 1, "kv_num_heads": 0,
    "num_groups": 1, "num_outputs": 1, "num_scan_inputs": 1, "offset_group": 1, "output_height": 1, "output_width": 1,
    "p": 1, "pooled_shape": 1, "q_num_heads": 0, "sample_size": 1, "sampling_ratio": 0, "size": 1, "strides": 1,
    "batch_dims": 0, "new_axis": 0,
}  # fmt: skip
# Operators whose `axis` counts the axes of their first input
WITH_AXIS = ("ArgMax", "ArgMin", "Compress", "Concat", "Gather", "GatherElements", "Hardmax", "LayerNormalization",
             "LogSoftmax", "LpNormalization", "RMSNormalization", "Scatter", "ScatterElements", "Softmax", "Split",
             "SplitToSequence", "TopK", "Unique")  # fmt: skip
WITH_AXES = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
             "ReduceProd", "ReduceSum", "ReduceSumSquare", "Slice", "Squeeze", "Unsqueeze",
             "MeanVarianceNormalization")  # fmt: skip
# Operators with a window over the axes after the second -> the input that holds its weights, None where none does
WINDOWS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3, "AveragePool": None,
           "LpPool": None, "MaxPool": None, "MaxUnpool": None}  # fmt: skip
WEIGHTED_BY_OUTPUT = ("Conv", "ConvInteger", "QLinearConv", "DeformConv")  # [M, C/group, ...], not [C, M/group, ...]


def attribute_range(model: Model, context: Context) -> Iterator[Hit]:
    """VEX113: an axis, permutation, window, group or size that the inputs' ranks or the standard do not allow."""
    yield from grouped(_hits(model))


def _hits(model: Model) -> Iterator[Hit]:
    seen = set[tuple[str, int]]()  # a function's node is judged for each way it is called
    for use in model.uses:
        node, schema, _ = use
        if schema is None or schema.domain or (not schema.attributes and schema.name not in FLAWS):
            continue
        flaws = FLAWS.get(schema.name, ())
        if not flaws and not node.proto.attribute:
            continue
        written = _written(use)
        text = next((t for flaw in (_least, *flaws) if (t := flaw(use, written)) is not None), None)
        if text is not None and (node.graph.path, node.index) not in seen:
            seen.add((node.graph.path, node.index))
            yield Hit(node.place, text, "runtimes refuse the node, or compute something else: export again")


def _written(use: Use) -> Written:
    known = use.schema.attributes if use.schema else {}
    return {
        a.name: attribute_value(a)
        for a in use.node.proto.attribute
        if a.name in known and not a.ref_attr_name and attribute_type(a) == known[a.name].type
    }


def _least(use: Use, written: Written) -> str | None:
    for name, value in written.items():
        least = LEAST.get(name)
        if least is None:
            continue
        numbers = value if isinstance(value, list) else [value]
        if any(isinstance(n, int) and n < least for n in numbers):
            return f"{name} = {value} of {use.node.op} must be {least} or more"
    return None


def _axis(use: Use, written: Written) -> str | None:
    rank = use.inputs[0].rank if use.inputs else None
    return _outside("axis", written.get("axis"), rank, use.node.op)


def _flatten(use: Use, written: Written) -> str | None:
    axis, rank = written.get("axis"), use.inputs[0].rank if use.inputs else None
    if axis is None or rank is None or -rank <= axis <= rank:
        return None
    return f"axis = {axis} is outside [{-rank}, {rank}]: the input of Flatten has {_axes(rank)}"


def _one_hot(use: Use, written: Written) -> str | None:
    rank = use.inputs[0].rank if use.inputs else None
    return _outside("axis", written.get("axis"), None if rank is None else rank + 1, "the output of OneHot")


def _quantized(use: Use, written: Written) -> str | None:
    if len(use.inputs) < 2 or not use.inputs[1].rank:
        return None  # one scale for the whole tensor: the axis means nothing
    return _axis(use, written)


def _each_axis(use: Use, written: Written) -> str | None:
    rank = use.inputs[0].rank if use.inputs else None
    op = use.node.op
    if rank is None or not (axes := ranks.axes(use.node)) or (rank == 0 and op.startswith("Reduce")):
        return None  # runtimes hand a number without axes on, whatever the axes
    room, whose = (rank + len(axes), "the output of Unsqueeze") if op == "Unsqueeze" else (rank, op)
    for axis in axes:
        if (text := _outside("axes", axis, room, whose)) is not None:
            return text
    places = [axis % room for axis in axes] if room else []
    if len(set(places)) < len(places) and op in ("Unsqueeze", "Slice"):
        return f"axes = {axes} of {op} name one axis twice"
    return None


def _outside(name: str, axis: int | None, rank: int | None, whose: str) -> str | None:
    if axis is None or rank is None:
        return None
    room = max(rank, 1)  # runtimes take a scalar for one axis of size 1
    if -room <= axis < room:
        return None
    has = "has" if whose.startswith("the output") else "works on"
    return f"{name} = {axis} is outside [{-room}, {room - 1}]: {whose} {has} {_axes(rank)}"


def _axes(rank: int) -> str:
    return "1 axis" if rank == 1 else f"{rank} axes"


def _perm(use: Use, written: Written) -> str | None:
    perm, rank = written.get("perm"), use.inputs[0].rank if use.inputs else None
    if not perm:
        return None
    if sorted(perm) != list(range(len(perm))):
        return f"perm = {perm} is no permutation of 0 to {len(perm) - 1}"
    return f"perm = {perm} is for {_axes(len(perm))}, the input has {rank}" if rank not in (None, len(perm)) else None


def _window(use: Use, written: Written) -> str | None:
    """Lengths of the window's attributes against the rank, its size against the weights."""
    op = use.node.op
    dims = _weights(use)
    rank = use.inputs[0].rank if use.inputs else None
    spatial = rank - 2 if rank is not None else len(dims) - 2 if dims else None
    kernel = written.get("kernel_shape")
    for name, factor in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 2), ("output_padding", 1)):
        values = written.get(name)
        wanted = spatial if spatial is not None else len(kernel) if kernel else None
        if values and wanted is not None and len(values) != factor * wanted:
            return f"{name} = {values} of {op} has {len(values)} numbers where {factor * wanted} are due"
    if not dims:
        return None
    if kernel and kernel != dims[2:]:
        return f"kernel_shape = {kernel} of {op}, but its weights are {dims}"
    return _group(use, written, dims)


def _group(use: Use, written: Written, dims: list[int]) -> str | None:
    group, op = written.get("group", 1), use.node.op
    by_output = op in WEIGHTED_BY_OUTPUT
    if group < 1:
        return None
    if dims[0] % group:
        return f"group = {group} of {op} does not divide the {dims[0]} channels of its weights {dims}"
    channels = _channels(use)
    wanted = dims[1] * group if by_output else dims[0]
    if channels is not None and channels != wanted:
        return f"group = {group} of {op} with weights {dims} takes {wanted} channels, the input has {channels}"
    return None


def _weights(use: Use) -> list[int]:
    position = WINDOWS.get(use.node.op)
    value = use.node.input(position) if position is not None else None
    tensor = value.tensor if value is not None else None
    return list(tensor.dims) if tensor is not None and len(tensor.dims) > 2 else []


def _channels(use: Use) -> int | None:
    """The size of the first input's axis 1 where the file declares it; inference is not asked."""
    value = use.node.input(0)
    return _declared_size(value, 1) if value is not None else None


def _declared_size(value: Value, axis: int) -> int | None:
    from vexlint.model.shapes import declared_shape

    home = value.home
    entry = (home.inputs.get(value.name) or home.declared.get(value.name)) if home and not home.is_function else None
    shape = declared_shape(entry) if entry is not None else None
    return shape.size(axis) if shape is not None else None


def _blocks(use: Use, written: Written) -> str | None:
    size, channels = written.get("blocksize", 0), _channels(use)
    if size < 1 or channels is None or use.node.op != "DepthToSpace" or channels % (size * size) == 0:
        return None
    return f"blocksize = {size} of DepthToSpace needs channels in multiples of {size * size}, the input has {channels}"


def _parts(use: Use, written: Written) -> str | None:
    """Split: as many sizes as outputs, together the axis."""
    node = use.node
    if (text := _axis(use, written)) is not None:
        return text
    count = len(node.proto.output)
    if written.get("num_outputs", count) != count:
        return f"num_outputs = {written['num_outputs']} of Split, which has {count} outputs"
    value = node.input(1)
    sizes = written.get("split") or (value.constant if value is not None else None)
    if not sizes:
        return None
    if len(sizes) != count:
        return f"split = {sizes} has {len(sizes)} sizes for {count} outputs"
    whole = node.input(0)
    length = _declared_size(whole, written.get("axis", 0)) if whole is not None else None
    if length is not None and sum(sizes) != length:
        return f"split = {sizes} adds up to {sum(sizes)}, the axis has {length}"
    return None


def _padding(use: Use, written: Written) -> str | None:
    node, rank = use.node, use.inputs[0].rank if use.inputs else None
    value = node.input(1)
    pads = written.get("pads") or written.get("paddings") or (value.constant if value is not None else None)
    axes = ranks.axes(node) if len(node.proto.input) > 3 else []
    if pads is None or rank is None or axes is None:
        return None
    wanted = 2 * (len(axes) or rank)
    return f"pads = {pads} of Pad has {len(pads)} numbers where {wanted} are due" if len(pads) != wanted else None


def _element_type(use: Use, written: Written) -> str | None:
    name = TYPE_ATTRIBUTES[use.node.op]
    number = written.get(name)
    if not isinstance(number, int) or use.schema is None or (number == 0 and name.startswith("output_d")):
        return None
    kind = f"tensor({tensors.DTYPES.get(number)})"
    if kind in use.schema.outputs[0].types:
        return None
    what = tensors.DTYPES.get(number, "no element type")
    return f"{name} = {number} ({what}) is no type that {use.node.op} gives"


def _recurrent(use: Use, written: Written) -> str | None:
    size, value = written.get("hidden_size"), use.node.input(2)
    tensor = value.tensor if value is not None else None
    if size is None or tensor is None or len(tensor.dims) != 3 or tensor.dims[2] == size:
        return None
    return f"hidden_size = {size} of {use.node.op}, but its recurrence weights are {list(tensor.dims)}"


FLAWS: dict[str, tuple[Flaw, ...]] = {
    **dict.fromkeys(WITH_AXIS, (_axis,)),
    **dict.fromkeys(WITH_AXES, (_each_axis,)),
    **dict.fromkeys(WINDOWS, (_window,)),
    **dict.fromkeys(TYPE_ATTRIBUTES, (_element_type,)),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), (_recurrent,)),
    "QuantizeLinear": (_quantized, _element_type),
    "DequantizeLinear": (_quantized, _element_type),
    "Flatten": (_flatten,),
    "OneHot": (_one_hot,),
    "Transpose": (_perm,),
    "Split": (_parts,),
    "Pad": (_padding,),
    "DepthToSpace": (_blocks,),
}
