"""Breaks models in the ways that exporters, converters and hands do: one small mistake each, seeded.

A kind is a function `(model, dice) -> bool`: it edits the model in place and says whether there was something to break.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

Dice = random.Random
Mutate = Callable[[ModelProto, Dice], bool]
INT, INTS, FLOAT, FLOATS, STRING = (
    AttributeProto.INT,
    AttributeProto.INTS,
    AttributeProto.FLOAT,
    AttributeProto.FLOATS,
    AttributeProto.STRING,
)
FREE_TEXT = {"equation", "value_string", "pattern", "delimiter"}  # string attributes that name no option
MOVED = {  # operator -> the attributes that an opset made inputs, in the order of the inputs after the data
    **dict.fromkeys(("Squeeze", "Unsqueeze"), ("axes",)),
    **{f"Reduce{what}": ("axes",) for what in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum")},
    **{f"Reduce{what}": ("axes",) for what in ("LogSumExp", "SumSquare")},
    "Clip": ("min", "max"),
    "Pad": ("pads", "value"),
    "Slice": ("starts", "ends", "axes", "steps"),
    "Split": ("split",),
    "TopK": ("k",),
    "Upsample": ("scales",),
    "Reshape": ("shape",),
    "Tile": ("repeats",),
    "Dropout": ("ratio",),
    "CumSum": ("axis",),
}
SINGLE = {"k", "min", "max", "value", "ratio", "axis"}  # of those, the ones that were a number and not a list
WRONG = {  # attribute -> values that are wrong wherever it stands
    **dict.fromkeys(("axis", "axes", "batch_dims"), (-99, 12, 99)),
    **dict.fromkeys(("kernel_shape", "strides", "dilations", "blocksize", "group", "size"), (0, -1, -3)),
    **dict.fromkeys(("to", "dtype", "output_dtype"), (0, -1, 99)),
    **dict.fromkeys(("perm", "split"), (-99, 42, 99)),
    **dict.fromkeys(("pads",), (-9, -2)),
    **dict.fromkeys(("num_heads", "q_num_heads", "kv_num_heads", "num_groups", "num_outputs", "hidden_size"), (0, 97)),
    **dict.fromkeys(("keepdims", "transA", "transB", "ceil_mode", "count_include_pad", "align_corners"), (-1, 2, 7)),
    **dict.fromkeys(("exclusive", "reverse", "largest", "sorted", "select_last_index", "allowzero"), (-1, 2, 7)),
    **dict.fromkeys(("center_point_box", "is_causal", "training_mode", "upper", "fmod"), (-1, 2, 7)),
    **dict.fromkeys(("output_height", "output_width", "min_gram_length", "max_gram_length"), (-1, -4)),
}
QUANTIZED = {"QuantizeLinear": (1,), "DequantizeLinear": (1,), "QLinearConv": (1, 4, 6), "QLinearMatMul": (1, 4, 6)}
TYPES: tuple[int, ...] = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.UINT8,
    TensorProto.INT8,
    TensorProto.BOOL,
)


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all within it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from graphs(inner)


def nodes(model: ModelProto) -> list[NodeProto]:
    return [node for graph in graphs(model.graph) for node in graph.node]


def misspelt(word: str, dice: Dice) -> str:
    """A word with one slip of the hand or another tool's way of writing it."""
    at = dice.randrange(max(1, len(word) - 1))
    slips = [
        word[:at] + word[at + 1 :],
        word[:at] + word[at : at + 1] * 2 + word[at + 1 :],
        word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
        word.swapcase() if len(word) < 3 else word[0].swapcase() + word[1:],
        word.removesuffix("s") if word.endswith("s") else word + "s",
        word.replace("_", "") if "_" in word else word + "_",
    ]
    return dice.choice([slip for slip in slips if slip not in ("", word)] or [word + "x"])


def pick(items: Sequence[object], dice: Dice) -> int | None:
    return dice.randrange(len(items)) if items else None


# --- attributes ----------------------------------------------------------------------------------------------------


def _attributes(model: ModelProto, *types: int) -> list[tuple[NodeProto, AttributeProto]]:
    found = [(n, a) for n in nodes(model) for a in n.attribute if n.op_type != "Constant" and not a.ref_attr_name]
    return [(n, a) for n, a in found if a.type in types] if types else found


def misspelt_attribute(model: ModelProto, dice: Dice) -> bool:
    found = _attributes(model)
    if not found:
        return False
    _, attribute = dice.choice(found)
    attribute.name = misspelt(attribute.name, dice)
    return True


def wrong_attribute_type(model: ModelProto, dice: Dice) -> bool:
    found = _attributes(model, INT, INTS, FLOAT, FLOATS, STRING)
    if not found:
        return False
    _, attribute = dice.choice(found)
    value = helper.get_attribute_value(attribute)
    others: list[object] = {
        INT: [float(value) if attribute.type == INT else 0.0, [value], str(value)],
        INTS: [[float(v) for v in value] or [0.5], value[0] if value else 1] if attribute.type == INTS else [],
        FLOAT: [1, [value], str(value)],
        FLOATS: [[int(v) for v in value] or [1], value[0] if value else 1.0] if attribute.type == FLOATS else [],
        STRING: [0, [value], 1.0],
    }[attribute.type]
    attribute.CopyFrom(helper.make_attribute(attribute.name, dice.choice(others)))
    return True


def attribute_out_of_range(model: ModelProto, dice: Dice) -> bool:
    """A value that the operator's definition rules out: no other reading of the model would want it."""
    found = [(n, a) for n, a in _attributes(model, INT, INTS) if a.name in WRONG and (a.type == INT or a.ints)]
    found = [(n, a) for n, a in found if (n.op_type, a.name) != ("Pad", "pads")]
    if not found:
        return False
    _, attribute = dice.choice(found)
    bad = dice.choice(WRONG[attribute.name])
    if attribute.type == INT:
        attribute.i = bad
    else:
        attribute.ints[dice.randrange(len(attribute.ints))] = bad
    return True


def unknown_enumerated_value(model: ModelProto, dice: Dice) -> bool:
    found = [(n, a) for n, a in _attributes(model, STRING) if a.name not in FREE_TEXT and a.s]
    if not found:
        return False
    _, attribute = dice.choice(found)
    foreign = ["same", "bilinear", "trilinear", "align_corner", "reflection", "SAME", "default"]
    word = attribute.s.decode("utf-8", "replace")
    word = misspelt(word, dice) if dice.random() < 0.6 else dice.choice(foreign)
    attribute.s = word.encode()
    return True


def axes_swapped(model: ModelProto, dice: Dice) -> bool:
    """What is an input at this opset written as an attribute, or the other way round."""
    constants = {t.name: t for graph in graphs(model.graph) for t in graph.initializer}
    found = [(n, i) for n in nodes(model) for i in range(1, len(n.input)) if _moved(n, i) and n.input[i] in constants]
    back = [(n, a) for n, a in _attributes(model, INT, INTS, FLOAT, FLOATS) if a.name in MOVED.get(n.op_type, ())]
    if found and (not back or dice.random() < 0.7):
        node, index = dice.choice(found)
        array = numpy_helper.to_array(constants[node.input[index]])
        name = _moved(node, index)
        value = array.reshape(-1).tolist()
        if not value or (name in SINGLE and len(value) != 1):
            return False
        node.attribute.append(helper.make_attribute(name, value[0] if name in SINGLE else value))
        node.input[index] = ""
        while node.input and not node.input[-1]:
            del node.input[-1]
        return True
    if not back:
        return False
    node, attribute = dice.choice(back)
    value = helper.get_attribute_value(attribute)
    array = np.asarray(value, np.float32 if attribute.type in (FLOAT, FLOATS) else np.int64)
    index = MOVED[node.op_type].index(attribute.name) + 1
    if len(node.input) != index:
        return False
    name = f"{node.output[0]}_{attribute.name}"
    model.graph.initializer.append(numpy_helper.from_array(array, name))
    node.input.append(name)
    node.attribute.remove(attribute)
    return True


def _moved(node: NodeProto, index: int) -> str:
    names = MOVED.get(node.op_type, ())
    return names[index - 1] if 0 < index <= len(names) else ""


# --- operators and imports -----------------------------------------------------------------------------------------


def misspelt_operator(model: ModelProto, dice: Dice) -> bool:
    node = dice.choice(nodes(model))
    node.op_type = misspelt(node.op_type, dice)
    return True


def foreign_domain(model: ModelProto, dice: Dice) -> bool:
    node = dice.choice(nodes(model))
    taken = {entry.domain for entry in model.opset_import}
    node.domain = dice.choice(["com.example.ops", "com.microsoft", "ai.onnx.ml", "ai.onnx.contrib", "mmdeploy"])
    if node.domain not in taken and dice.random() < 0.7:
        model.opset_import.append(helper.make_opsetid(node.domain, 1))
    return True


def dropped_import(model: ModelProto, dice: Dice) -> bool:
    index = pick(model.opset_import, dice)
    if index is None:
        return False
    del model.opset_import[index]
    return True


def import_too_old(model: ModelProto, dice: Dice) -> bool:
    entry = dice.choice(model.opset_import)
    if entry.version <= 1:
        return False
    entry.version = dice.randrange(1, entry.version)
    return True


def import_too_new(model: ModelProto, dice: Dice) -> bool:
    entry = dice.choice(model.opset_import)
    newest = onnx.defs.onnx_opset_version() if entry.domain in ("", "ai.onnx") else 6
    entry.version = dice.choice([newest + 1, newest + 5, 99, *range(entry.version + 1, newest + 1)])
    return True


# --- inputs --------------------------------------------------------------------------------------------------------


def wrong_input_dtype(model: ModelProto, dice: Dice) -> bool:
    """A graph input declared, or an initializer stored, as another type."""
    held = {t.name for t in model.graph.initializer}
    inputs = [v for v in model.graph.input if v.type.HasField("tensor_type") and v.name not in held]
    weights = [t for t in model.graph.initializer if t.data_type in TYPES]
    chosen = dice.choice([*inputs, *weights]) if inputs or weights else None
    if isinstance(chosen, TensorProto):
        kind = dice.choice([t for t in TYPES if t != chosen.data_type])
        array = numpy_helper.to_array(chosen).astype(helper.tensor_dtype_to_np_dtype(kind))
        chosen.CopyFrom(numpy_helper.from_array(array, chosen.name))
    elif chosen is not None:
        kind = chosen.type.tensor_type
        kind.elem_type = dice.choice([t for t in TYPES if t != kind.elem_type])
    return chosen is not None


def swapped_inputs(model: ModelProto, dice: Dice) -> bool:
    """Two inputs of different types or shapes in each other's place. Two of one type and shape leave no trace in the
    file: nobody could tell."""
    types = _types(model)
    found = []
    for node in nodes(model):
        places = [i for i, name in enumerate(node.input) if name]
        pairs = [(a, b) for a in places for b in places if a < b]
        found += [(node, a, b) for a, b in pairs if _differ(types.get(node.input[a]), types.get(node.input[b]))]
    if not found:
        return False
    node, a, b = dice.choice(found)
    node.input[a], node.input[b] = node.input[b], node.input[a]
    return True


def _types(model: ModelProto) -> dict[str, bytes]:
    """Value -> its type and shape, as far as ONNX can tell."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    declared = (*graph.value_info, *graph.input, *graph.output)
    known = {v.name: v.type.SerializeToString(deterministic=True) for v in declared}
    for tensor in graph.initializer:
        kind = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        known[tensor.name] = kind.SerializeToString(deterministic=True)
    return known


def _differ(a: bytes | None, b: bytes | None) -> bool:
    return a is not None and b is not None and a != b


def missing_required_input(model: ModelProto, dice: Dice) -> bool:
    found = [n for n in nodes(model) if n.input]
    if not found:
        return False
    node = dice.choice(found)
    if dice.random() < 0.5:
        del node.input[-1]
    else:
        node.input[dice.randrange(len(node.input))] = ""
    return True


def extra_input(model: ModelProto, dice: Dice) -> bool:
    found = [n for n in nodes(model) if n.input]
    if not found:
        return False
    node = dice.choice(found)
    node.input.append(dice.choice([name for name in node.input if name] or [""]))
    return True


def dangling_input(model: ModelProto, dice: Dice) -> bool:
    found = [n for n in nodes(model) if any(n.input)]
    if not found:
        return False
    node = dice.choice(found)
    index = dice.choice([i for i, name in enumerate(node.input) if name])
    node.input[index] = misspelt(node.input[index], dice)
    return True


# --- names and order -----------------------------------------------------------------------------------------------


def duplicate_value(model: ModelProto, dice: Dice) -> bool:
    """Two makers of one value: a node's output that another node, an input or an initializer has too."""
    graph = dice.choice(list(graphs(model.graph)))
    if not graph.node:
        return False
    victim = dice.choice(graph.node)
    outputs = [name for name in victim.output if name]
    others = [name for node in graph.node if node is not victim for name in node.output if name]
    given = [v.name for v in graph.input] + [t.name for t in graph.initializer]
    if not outputs:
        return False
    way = dice.randrange(3)
    if way == 0 and others:
        victim.output[list(victim.output).index(outputs[0])] = dice.choice(others)
    elif way == 1 and given:
        graph.node.append(helper.make_node("Identity", [outputs[0]], [dice.choice(given)], name="copied"))
    else:
        graph.node.append(helper.make_node("Identity", [outputs[0]], [outputs[0]], name="copied"))
    return True


def duplicate_node_name(model: ModelProto, dice: Dice) -> bool:
    graph = dice.choice(list(graphs(model.graph)))
    if len(graph.node) < 2:
        values = [name for node in graph.node for name in node.output if name]
        if not values:
            return False
        graph.node.append(helper.make_node("Identity", [values[0]], [f"{values[0]}_again"], name="copy"))
    a, b = dice.sample(range(len(graph.node)), 2)
    graph.node[a].name = graph.node[b].name = graph.node[a].name or "node_1"
    return True


def unsorted_nodes(model: ModelProto, dice: Dice) -> bool:
    found = [graph for graph in graphs(model.graph) if len(graph.node) > 1]
    if not found:
        return False
    graph = dice.choice(found)
    order = list(graph.node)
    made = [{name for name in node.output if name} for node in order]
    linked = [(i, j) for i in range(len(order)) for j in range(i) if made[j] & set(order[i].input)]
    if not linked:
        return False
    reader, maker = dice.choice(linked)
    order.insert(maker, order.pop(reader))
    moved = [NodeProto.FromString(node.SerializeToString()) for node in order]
    del graph.node[:]
    graph.node.extend(moved)
    return True


def shadowed_name(model: ModelProto, dice: Dice) -> bool:
    """A value of a subgraph named like one around it."""
    inner = list(graphs(model.graph))[1:]
    around = [v.name for v in model.graph.input] + [t.name for t in model.graph.initializer]
    around += [name for node in model.graph.node for name in node.output]
    made = [(graph, name) for graph in inner for node in graph.node for name in node.output if name]
    if not made or not around:
        return False
    graph, name = dice.choice(made)
    other = dice.choice(around)
    for node in graph.node:
        for names in (node.input, node.output):
            for index, value in enumerate(names):
                if value == name:
                    names[index] = other
    for output in graph.output:
        output.name = other if output.name == name else output.name
    return True


# --- what is declared, what is stored ------------------------------------------------------------------------------


def _declared(model: ModelProto) -> list[ValueInfoProto]:
    found = [*model.graph.output, *model.graph.value_info, *model.graph.input]
    return [v for v in found if v.type.HasField("tensor_type")]


def wrong_declared_shape(model: ModelProto, dice: Dice) -> bool:
    found = [v for v in _declared(model) if v.type.tensor_type.HasField("shape")]
    if not found:
        return False
    shape = dice.choice(found).type.tensor_type.shape
    if not shape.dim or dice.random() < 0.3:
        shape.dim.add().dim_value = dice.choice([1, 2, 7])
    else:
        dim = dice.choice(shape.dim)
        dim.dim_value = dim.dim_value + dice.choice([1, 2, 5])
    return True


def wrong_declared_dtype(model: ModelProto, dice: Dice) -> bool:
    found = [v for v in _declared(model) if v.name not in {i.name for i in model.graph.input}]
    if not found:
        return False
    kind = dice.choice(found).type.tensor_type
    kind.elem_type = dice.choice([t for t in TYPES if t != kind.elem_type])
    return True


def _weights(model: ModelProto) -> list[TensorProto]:
    found = [t for graph in graphs(model.graph) for t in graph.initializer]
    found += [a.t for n in nodes(model) for a in n.attribute if a.type == AttributeProto.TENSOR]
    return [t for t in found if len(t.raw_data) > 1]


def truncated_raw_data(model: ModelProto, dice: Dice) -> bool:
    found = _weights(model)
    if not found:
        return False
    tensor = dice.choice(found)
    tensor.raw_data = tensor.raw_data[: dice.choice([-1, len(tensor.raw_data) // 2, -4])]
    return True


def wrong_dims(model: ModelProto, dice: Dice) -> bool:
    found = [t for t in _weights(model) if t.dims]
    if not found:
        return False
    dims = dice.choice(found).dims
    dims[dice.randrange(len(dims))] += dice.choice([1, 2, 8])
    return True


def zero_scale(model: ModelProto, dice: Dice) -> bool:
    constants = {t.name: t for t in model.graph.initializer}
    named = [n.input[i] for n in nodes(model) for i in QUANTIZED.get(n.op_type, ()) if i < len(n.input)]
    found = [constants[name] for name in named if name in constants]
    if not found:
        return False
    tensor = dice.choice(found)
    array = numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[dice.randrange(array.size)] = 0
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return True


def nan_weight(model: ModelProto, dice: Dice) -> bool:
    kinds = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
    found = [t for t in _weights(model) if t.data_type in kinds]
    if not found:
        return False
    tensor = dice.choice(found)
    array = numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[dice.randrange(array.size)] = dice.choice([np.nan, np.nan, np.inf])
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return True


KINDS: dict[str, Mutate] = {
    "misspelt attribute": misspelt_attribute,
    "wrong attribute type": wrong_attribute_type,
    "attribute out of range": attribute_out_of_range,
    "unknown enumerated value": unknown_enumerated_value,
    "axes as attribute/input swapped": axes_swapped,
    "misspelt operator": misspelt_operator,
    "foreign domain": foreign_domain,
    "dropped import": dropped_import,
    "import too old": import_too_old,
    "import too new": import_too_new,
    "wrong input dtype": wrong_input_dtype,
    "swapped inputs": swapped_inputs,
    "missing required input": missing_required_input,
    "extra input": extra_input,
    "dangling input": dangling_input,
    "duplicate value": duplicate_value,
    "duplicate node name": duplicate_node_name,
    "unsorted nodes": unsorted_nodes,
    "shadowed name in a subgraph": shadowed_name,
    "wrong declared shape": wrong_declared_shape,
    "wrong declared dtype": wrong_declared_dtype,
    "truncated raw data": truncated_raw_data,
    "wrong dims for the data": wrong_dims,
    "zero quantization scale": zero_scale,
    "NaN weight": nan_weight,
}


def mutate(model: ModelProto, kind: str, dice: Dice) -> ModelProto | None:
    """A copy broken in that way, None where there is nothing to break or nothing changed."""
    copy: ModelProto = ModelProto.FromString(model.SerializeToString())
    before = copy.SerializeToString(deterministic=True)
    if not KINDS[kind](copy, dice) or copy.SerializeToString(deterministic=True) == before:
        return None
    return copy
