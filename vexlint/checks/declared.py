"""Declared shapes and element types, held against what the nodes make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.model import tensors
from vexlint.model.model import Graph, Model, Node, Value, value_place
from vexlint.model.schemas import Operator, element_name
from vexlint.model.shapes import Shape, declared_shape
from vexlint.values import Hit, Place, Severity

if TYPE_CHECKING:
    from onnx import ValueInfoProto

DEPTH = 32  # nodes followed upstream before a type counts as unknown
AGAIN = "export again, or let ONNX infer shapes anew; a tool changed the network and left the declaration"


def contradiction(model: Model, context: Context) -> Iterator[Hit]:
    """VEX406: declarations that the nodes contradict; one hit an output, and one for all values inside.

    Symbols and unknown sizes contradict nothing. The element types of outputs are followed upstream without inference;
    everything else takes inference over the whole file and waits for a deep check.
    """
    target = next((str(t) for t in context.targets if t.runtime == "onnxruntime"), None)
    derived = model.derived if context.deep else {}
    inside: dict[str, list[Hit]] = {}
    for name, entry in (model.graph.declared if context.deep else model.graph.outputs).items():
        maker = model.graph.producers.get(name)
        if maker is None or not entry.type.HasField("tensor_type"):
            continue
        is_output = name in model.graph.outputs
        place = value_place("output", name) if is_output else maker.place
        for hit in _held(model.graph, name, entry, derived.get(("graph", name)), place, target):
            if is_output:
                yield hit
            else:
                inside.setdefault(hit.verdict or "", []).append(hit)
    for first, *more in inside.values():
        yield replace(first, more=tuple(h.place for h in more), count=1 + len(more))


def _held(
    graph: Graph, name: str, entry: ValueInfoProto, made: Shape | None, place: Place, target: str | None
) -> Iterator[Hit]:
    """What one declaration says against what inference made, and of an output what its nodes make for certain."""
    kind = tensors.dtype_name(entry.type.tensor_type.elem_type)
    real = made.dtype if made is not None else certain_type(Value(graph, name)) if name in graph.outputs else ""
    if real and real != kind and entry.type.tensor_type.elem_type:
        text = f"declared {kind}, but the nodes make {real}"
        text += f": {target} refuses to load the file" if target else ""
        yield Hit(place, text, AGAIN, target, "refuses" if target else None, Severity.ERROR)
    stated = declared_shape(entry)
    if made is not None and stated is not None and _differs(stated, made):
        yield Hit(place, f"declared {stated}, but the nodes make {made}", AGAIN)


def _differs(one: Shape, other: Shape) -> bool:
    if one.rank != other.rank:
        return True
    return any(one.size(i) not in (None, other.size(i)) and other.size(i) is not None for i in range(one.rank))


def certain_type(value: Value, depth: int = DEPTH, seen: set[str] | None = None) -> str:
    """The element type that the nodes give a value of the main graph, "" where that is not certain.

    Declarations count at the graph's inputs and for tensors only; a node outside the standard ends the trail.
    """
    graph, seen = value.graph, set() if seen is None else seen
    if value.name in seen or depth == 0:
        return ""
    seen.add(value.name)
    if value.name in graph.initializers or value.name in graph.inputs:
        stated = graph.stated(value.name)
        return stated.dtype if stated else ""
    maker = graph.producers.get(value.name)
    return "" if maker is None else _made(graph, maker, maker.outputs.index(value.name), depth, seen)


def _made(graph: Graph, maker: Node, position: int, depth: int, seen: set[str]) -> str:
    if (maker.domain, maker.op) == ("", "Cast"):
        wanted = maker.attribute("to")
        return tensors.dtype_name(wanted) if isinstance(wanted, int) and wanted in tensors.DTYPES else ""
    if (maker.domain, maker.op) == ("", "Constant"):
        stated = graph.stated(maker.outputs[position])
        return stated.dtype if stated else ""
    schema = maker.schema
    formal = schema.outputs[min(position, len(schema.outputs) - 1)] if schema and schema.outputs else None
    if schema is None or formal is None or not formal.homogeneous:
        return ""
    if not formal.type_var:
        return element_name(formal.types[0]) if len(formal.types) == 1 else ""
    return _passed(graph, maker, schema, formal.type_var, depth, seen)


def _passed(graph: Graph, maker: Node, schema: Operator, variable: str, depth: int, seen: set[str]) -> str:
    """The type of the first input of the same type variable that has a certain one."""
    for index, name in enumerate(maker.inputs):
        source = schema.inputs[min(index, len(schema.inputs) - 1)]
        if name and source.homogeneous and source.type_var == variable:
            found = certain_type(Value(graph, name), depth - 1, seen)
            if found:
                return found
    return ""
