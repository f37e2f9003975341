"""Mistakes in what is declared and what is stored."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, ValueInfoProto, numpy_helper

from tests.mutants.common import (
    TYPES,
    Dice,
    graphs,
    nodes,
)

QUANTIZED = {"QuantizeLinear": (1,), "DequantizeLinear": (1,), "QLinearConv": (1, 4, 6), "QLinearMatMul": (1, 4, 6)}


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
