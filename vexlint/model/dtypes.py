"""Element types without full shape inference: from declarations, from what inference found, else from the schemas."""

from __future__ import annotations

from vexlint.model import tensors
from vexlint.model.graph import Graph, Node, Value
from vexlint.model.schemas import element_name, plain_domain

DEPTH = 1000  # nodes followed upstream before a type counts as unknown


def element_type(value: Value | None, depth: int = DEPTH) -> str:
    """The element type of a value as ONNX text names it ("float", "int64"), "" where it is not known.

    Where neither the file nor inference says it, a node's type variable does: an output has the type of an input with
    the same variable. A custom node is taken to keep the type of its first input: activations do, and what is made of
    that is proven by running it.
    """
    if value is None or depth == 0:
        return ""
    shape = value.shape
    if shape is not None and shape.dtype != tensors.dtype_name(0):
        return shape.dtype
    maker = value.producer
    if maker is not None:
        return _made_type(maker, maker.outputs.index(value.name), depth)
    home = value.home
    return _passed(home, value.name, depth) if home is not None and home.is_function else _declared(value)


def _passed(function: Graph, name: str, depth: int) -> str:
    """The type that every call of a function passes for a parameter, "" where they differ."""
    body = function.proto
    position = list(body.input).index(name)
    calls = function.model.nodes(body.name, domain=plain_domain(body.domain))
    types = {element_type(call.input(position), depth - 1) for call in calls}
    return types.pop() if len(types) == 1 else ""


def _declared(value: Value) -> str:
    home = value.home
    entry = home.declared.get(value.name) if home else None
    known = entry is not None and entry.type.HasField("tensor_type") and entry.type.tensor_type.elem_type
    return tensors.dtype_name(known) if known else ""


def _made_type(node: Node, position: int, depth: int) -> str:
    if node.op == "Cast" and not node.domain:
        return tensors.dtype_name(node.attribute("to") or 0)
    if node.op == "Constant" and not node.domain:
        tensor = node.attribute("value")
        return tensors.dtype_name(tensor.data_type) if tensor is not None else ""
    schema = node.schema
    if schema is None:
        return element_type(node.input(0), depth - 1)
    formal = schema.outputs[min(position, len(schema.outputs) - 1)]
    if not formal.type_var:
        return element_name(formal.types[0]) if len(formal.types) == 1 else ""
    for index in range(len(node.inputs)):
        source = schema.inputs[min(index, len(schema.inputs) - 1)]
        if source.type_var == formal.type_var and (found := element_type(node.input(index), depth - 1)):
            return found
    return ""
