"""Attributes (and constant inputs that say the same) against the ranks, weights and bounds that the standard names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vexlint.checks.context import Context
from vexlint.checks.faults import grouped, used, written
from vexlint.model import reshaping, schemas, signatures, tensors
from vexlint.model.graph import Node
from vexlint.model.kinds import TYPE_ATTRIBUTES, Use
from vexlint.model.model import Model
from vexlint.values import Hit, Severity

Written = dict[str, Any]  # the attributes that a node writes, of the type that the schema wants
Find = Callable[[Use, Written], str | None]

# The least value of an attribute, of each element where it is a list; by operator where a name means other things
LEAST = {
    "blocksize": 1, "dilations": 1, "group": 1, "hidden_size": 1, "kernel_shape": 1, "kv_num_heads": 1,
    "num_groups": 1, "num_outputs": 1, "num_scan_inputs": 1, "offset_group": 1, "output_height": 1, "output_width": 1,
    "max_gram_length": 1, "min_gram_length": 1, "p": 1, "pads": 0,
    "pooled_shape": 1, "q_num_heads": 1, "sample_size": 1, "sampling_ratio": 0, "size": 1, "strides": 1,
    "batch_dims": 0, "new_axis": 0,
}  # fmt: skip
FLAGS = {"align_corners", "allowzero", "ceil_mode", "center_point_box", "count_include_pad", "exclude_outside",
         "exclusive", "fmod", "is_causal", "keepdims", "largest", "noop_with_empty_axes", "reverse",
         "select_last_index", "sorted", "training_mode", "transA", "transB", "upper"}  # fmt: skip
# Operators whose `axis` counts the axes of their first input
WITH_AXIS = ("ArgMax", "ArgMin", "Compress", "Concat", "Gather", "GatherElements", "Hardmax", "LayerNormalization",
             "LogSoftmax", "LpNormalization", "RMSNormalization", "Scatter", "ScatterElements", "Softmax", "Split",
             "SplitToSequence", "TopK", "Unique")  # fmt: skip
WITH_AXES = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
             "ReduceProd", "ReduceSum", "ReduceSumSquare", "Slice", "Squeeze", "Unsqueeze",
             "MeanVarianceNormalization", "Resize", "CenterCropPad")  # fmt: skip
# Operators with a window over the axes after the second -> the input that holds its weights, None where none does
WINDOWS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3, "AveragePool": None,
           "LpPool": None, "MaxPool": None, "MaxUnpool": None}  # fmt: skip
SCALARS_REFUSED = 12  # the version of reductions from which they refuse axes of a scalar
FLOOR_MODULO = 28  # the opset from which Mod takes floats without fmod
WEIGHTED_BY_OUTPUT = ("Conv", "ConvInteger", "QLinearConv", "DeformConv")  # [M, C/group, ...], not [C, M/group, ...]


def attribute_range(model: Model, context: Context) -> Iterator[Hit]:
    """VEX113: an axis, permutation, window, group or size that the inputs' ranks or the standard do not allow."""
    way_out = "runtimes refuse the node, or compute something else: export again"
    yield from grouped(Hit(node.place, text, way_out) for node, text in used(model, flaw))
    yield from grouped(hit for operator in model.operators for hit in written(model, operator, _flags))


def flaw(use: Use) -> str | None:
    """What is wrong with the attributes of a standard node, None where nothing is."""
    node, schema, *_ = use
    if schema is None or schema.domain:
        return None
    given = {name: value for name, value in node.form.written.items() if value is not None}
    return next((text for find in (_least, *FLAWS.get(node.op, ())) if (text := find(use, given)) is not None), None)


def _flags(node: Node) -> Iterator[Hit]:
    """A yes or no that is neither: some runtimes take every number but 0 for a yes, some only 1."""
    schema = node.schema
    for name, value in node.form.written.items() if schema is not None and not schema.domain else ():
        if name in FLAGS and isinstance(value, int) and value not in (0, 1):
            text = f"{name} = {value} of {node.op} is neither 0 nor 1: runtimes read it differently"
            yield Hit(node.place, text, "write 0 or 1", severity=Severity.WARNING)


def _least(use: Use, written: Written) -> str | None:
    for name, value in written.items():
        least = LEAST.get(name)
        if least is None or (use.node.op, name) == ("Pad", "pads"):  # a Pad may cut
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
    if rank is None or not (axes := reshaping.axes(use.node, use.inputs)):
        return None
    op = use.node.op
    if rank == 0 and op.startswith("Reduce") and use.schema is not None and use.schema.since < SCALARS_REFUSED:
        return None  # nothing to reduce: ONNX Runtime hands a scalar on, whatever the axes
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
    channels = _size(use, 1)
    wanted = dims[1] * group if by_output else dims[0]
    if channels is not None and channels != wanted:
        return f"group = {group} of {op} with weights {dims} takes {wanted} channels, the input has {channels}"
    return None


def _weights(use: Use) -> list[int]:
    """The sizes of a window's weights, [] where they are not known or too few."""
    position = WINDOWS.get(use.node.op)
    dims = use.inputs[position].dims if position is not None and position < len(use.inputs) else None
    return [d for d in dims if d is not None] if dims is not None and None not in dims and len(dims) > 2 else []


def _size(use: Use, axis: int) -> int | None:
    """A size of the first input."""
    dims = use.inputs[0].dims if use.inputs else None
    return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None


def _blocks(use: Use, written: Written) -> str | None:
    size, channels = written.get("blocksize", 0), _size(use, 1)
    if size < 1 or channels is None or use.node.op != "DepthToSpace" or channels % (size * size) == 0:
        return None
    return f"blocksize = {size} of DepthToSpace needs channels in multiples of {size * size}, the input has {channels}"


def _parts(use: Use, written: Written) -> str | None:
    """Split: as many sizes as outputs, together the axis."""
    node = use.node
    if (text := _axis(use, written)) is not None:
        return text
    count = len(node.outputs)
    if written.get("num_outputs", count) != count:
        return f"num_outputs = {written['num_outputs']} of Split, which has {count} outputs"
    sizes = written.get("split") or reshaping.whole(use.inputs, 1)
    if not sizes:
        return None
    if len(sizes) != count:
        return f"split = {sizes} has {len(sizes)} sizes for {count} outputs"
    length = _size(use, written.get("axis", 0))
    if length is not None and sum(sizes) != length:
        return f"split = {sizes} adds up to {sum(sizes)}, the axis has {length}"
    return None


def _padding(use: Use, written: Written) -> str | None:
    node, rank = use.node, use.inputs[0].rank if use.inputs else None
    pads = written.get("pads") or written.get("paddings") or reshaping.whole(use.inputs, 1)
    axes = reshaping.axes(node, use.inputs) if len(node.inputs) > 3 else []
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


def _heads(use: Use, written: Written) -> str | None:
    heads, shared = written.get("q_num_heads"), written.get("kv_num_heads")
    if heads is None or shared is None or shared < 1 or heads % shared == 0:
        return None
    return f"q_num_heads = {heads} of {use.node.op} is no multiple of kv_num_heads = {shared}"


def _sequence_parts(use: Use, written: Written) -> str | None:
    sizes = use.inputs[1] if len(use.inputs) > 1 else None
    length = _size(use, written.get("axis", 0))
    if sizes is None or sizes.rank != 1 or sizes.value is None or None in sizes.value or length is None:
        return None
    whole = sum(size or 0 for size in sizes.value)
    return f"the sizes of SplitToSequence add up to {whole}, the axis has {length}" if whole != length else None


def _modulo(use: Use, written: Written) -> str | None:
    kind = schemas.element_name(use.inputs[0].type) if use.inputs else ""
    if not kind.startswith(("float", "double", "bfloat")) or written.get("fmod") == 1:
        return None
    if use.node.graph.opsets[""] >= FLOOR_MODULO:
        return None
    fmod = written.get("fmod", 0)
    return f"fmod = {fmod} of Mod is for whole numbers until opset {FLOOR_MODULO - 1}, here it gets {kind}"


def _recurrent(use: Use, written: Written) -> str | None:
    size, dims = written.get("hidden_size"), use.inputs[2].dims if len(use.inputs) > 2 else None
    if size is None or dims is None or len(dims) != 3 or dims[2] in (size, None):
        return None
    return f"hidden_size = {size} of {use.node.op}, but its recurrence weights are {signatures.show(dims)}"


FLAWS: dict[str, tuple[Find, ...]] = {
    **dict.fromkeys(WITH_AXIS, (_axis,)),
    **dict.fromkeys(WITH_AXES, (_each_axis,)),
    **dict.fromkeys(WINDOWS, (_window,)),
    **dict.fromkeys(TYPE_ATTRIBUTES, (_element_type,)),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), (_recurrent,)),
    **dict.fromkeys(("Attention", "LinearAttention"), (_heads,)),
    "Mod": (_modulo,),
    "SplitToSequence": (_axis, _sequence_parts),
    "QuantizeLinear": (_quantized, _element_type),
    "DequantizeLinear": (_quantized, _element_type),
    "Flatten": (_flatten,),
    "OneHot": (_one_hot,),
    "Transpose": (_perm,),
    "Split": (_parts,),
    "Pad": (_padding,),
    "DepthToSpace": (_blocks,),
}
