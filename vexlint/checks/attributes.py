"""Attributes that an operator does not have at the opset a file imports, and values outside their closed sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vexlint.checks.context import Context
from vexlint.checks.faults import grouped, written
from vexlint.files import nearest
from vexlint.model import schemas
from vexlint.model.attributes import attribute_type, attribute_value
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.values import Hit, Severity

if TYPE_CHECKING:
    from onnx import AttributeProto

# Values of a later or earlier version of the operator that ONNX Runtime or OpenVINO run all the same (seen with
# ONNX Runtime 1.32 and OpenVINO 2026.4.1): outside the standard, but not refused everywhere
TOLERATED = {
    ("Resize", "mode", "cubic"),
    ("Upsample", "mode", "cubic"),
    ("Resize", "coordinate_transformation_mode", "tf_half_pixel_for_nn"),
    ("Resize", "coordinate_transformation_mode", "half_pixel_symmetric"),
    ("Pad", "mode", "wrap"),
    ("ScatterND", "reduction", "max"),
    ("ScatterND", "reduction", "min"),
    ("ScatterElements", "reduction", "max"),
    ("ScatterElements", "reduction", "min"),
}
MEANINGLESS = ("consumed_inputs",)  # of opset 1, a hint for memory: readers that go by names look past it
INTERNAL = "__"  # names that onnx.checker lets pass on every operator


def unknown_attribute(model: Model, context: Context) -> Iterator[Hit]:
    """VEX106: an attribute, or a value of one, that the operator's schema at this opset does not have."""
    old = Severity.WARNING if context.lenient else None
    hits = _hits(model)
    yield from grouped(replace(hit, severity=old) if hit.data["attribute"] in MEANINGLESS else hit for hit in hits)


def _hits(model: Model) -> Iterator[Hit]:
    for operator in model.operators:
        if operator not in model.functions:
            yield from written(model, operator, _flaws)


def _flaws(node: Node) -> Iterator[Hit]:
    if node.schema is None:
        return  # another rule speaks of it
    for attribute in node.proto.attribute:
        if (hit := _flaw(node, node.schema, attribute)) is not None:
            yield hit


def _flaw(node: Node, schema: schemas.Operator, attribute: AttributeProto) -> Hit | None:
    known = schema.attributes.get(attribute.name)
    if known is None:
        return None if attribute.name.startswith(INTERNAL) else _name_hit(node, schema, attribute)
    if attribute_type(attribute) != known.type:
        return _type_hit(node, known, attribute)
    return _value_hit(node, known, attribute) if known.values else None


def _name_hit(node: Node, schema: schemas.Operator, attribute: AttributeProto) -> Hit:
    name, opset = attribute.name, node.graph.opsets[node.domain]
    formals = [f.name for f in schema.inputs]
    if name in formals and any(_had(node, name, v) for v in schemas.versions(node.domain, node.op)):
        message = f"{name} is an input of {node.op} since opset {schema.since}, here it is an attribute (opset {opset})"
        way_out = "some runtimes refuse the node, others ignore the attribute and use the default: export again"
    else:
        message = f"{node.op} has no attribute {name!r} at opset {opset}{nearest(name, list(schema.attributes))}"
        way_out = "correct the name, or export at the opset that has it"
    return Hit(node.place, message, way_out, data={"attribute": name, "opset": opset})


def _had(node: Node, name: str, version: int) -> bool:
    schema = schemas.operator(node.domain, node.op, version)
    return schema is not None and name in schema.attributes


def _type_hit(node: Node, known: schemas.Attribute, attribute: AttributeProto) -> Hit:
    opset, written = node.graph.opsets[node.domain], attribute_type(attribute)
    message = f"{known.name} of {node.op} takes {known.type} at opset {opset}, here it is {written or 'nothing'}"
    way_out = "runtimes refuse the node: correct the type, or export at the opset that has it"
    return Hit(node.place, message, way_out, data={"attribute": known.name, "type": written, "opset": opset})


def _value_hit(node: Node, known: schemas.Attribute, attribute: AttributeProto) -> Hit | None:
    if attribute.ref_attr_name or (known.name == "nearest_mode" and node.attribute("mode") != "nearest"):
        return None  # what a caller passes is unknown here; nearest_mode means nothing in the other modes
    value: Any = attribute_value(attribute)
    wrong = [v for v in (value if isinstance(value, list) else [value]) if v is not None and v not in known.values]
    if not wrong:
        return None
    opset = node.graph.opsets[node.domain]
    allowed = ", ".join(map(str, known.values))
    close = nearest(wrong[0], list(known.values)) if isinstance(wrong[0], str) else ""
    tolerated = (node.op, known.name, wrong[0]) in TOLERATED
    return Hit(
        node.place,
        f"{known.name} = {wrong[0]!r} is none of the values of {node.op} at opset {opset}: {allowed}{close}",
        "outside the standard at this opset, though some runtimes run it: export at the opset that has it"
        if tolerated
        else "a runtime refuses it or silently takes another value: write one of these",
        severity=Severity.WARNING if tolerated else None,
        data={"attribute": known.name, "value": wrong[0], "opset": opset},
    )
