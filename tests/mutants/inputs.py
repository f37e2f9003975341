"""Mistakes in what a node is given."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.mutants.common import (
    TYPES,
    Dice,
    misspelt,
    nodes,
)

EITHER_WAY = ("Sub", "Div", "Pow", "Mod", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Where", "BitShift")


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
    """Two inputs of different types or shapes in each other's place. Two of one type and shape, or of an operator that
    broadcasts either way, leave no trace in the file: nobody could tell."""
    types = _types(model)
    found = []
    for node in (n for n in nodes(model) if n.op_type not in EITHER_WAY):
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
    found = [(node, index) for node in nodes(model) for index in _required(node, _opsets(model))]
    if not found:
        return False
    node, index = dice.choice(found)
    if index == len(node.input) - 1 and dice.random() < 0.7:
        del node.input[-1]
    else:
        node.input[index] = ""
    return True


def _required(node: NodeProto, opsets: Mapping[str, int]) -> list[int]:
    """The inputs of a node that its operator cannot do without."""
    schema = _schema(node, opsets)
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    formals = schema.inputs if schema else []
    return [i for i, formal in enumerate(formals) if formal.option == single and i < len(node.input)]


def extra_input(model: ModelProto, dice: Dice) -> bool:
    """One input more, where an operator does not take any number of them."""
    found = [n for n in nodes(model) if n.input and not _takes_any(n, _opsets(model))]
    if not found:
        return False
    node = dice.choice(found)
    node.input.append(dice.choice([name for name in node.input if name] or [""]))
    return True


def _takes_any(node: NodeProto, opsets: Mapping[str, int]) -> bool:
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    schema = _schema(node, opsets)
    return schema is not None and any(formal.option == variadic for formal in schema.inputs)


def _opsets(model: ModelProto) -> dict[str, int]:
    return {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}


def _schema(node: NodeProto, opsets: Mapping[str, int]) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return None


def dangling_input(model: ModelProto, dice: Dice) -> bool:
    found = [n for n in nodes(model) if any(n.input)]
    if not found:
        return False
    node = dice.choice(found)
    index = dice.choice([i for i, name in enumerate(node.input) if name])
    node.input[index] = misspelt(node.input[index], dice)
    return True
