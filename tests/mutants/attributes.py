"""Mistakes in attributes."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, helper, numpy_helper

from tests.mutants.common import (
    Dice,
    graphs,
    misspelt,
    nodes,
)

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
