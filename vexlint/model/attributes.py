"""Attributes of nodes as Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import AttributeProto

# AttributeProto.AttributeType -> (field, repeated, name)
ATTRIBUTE_FIELDS: dict[int, tuple[str, bool, str]] = {
    1: ("f", False, "FLOAT"), 2: ("i", False, "INT"), 3: ("s", False, "STRING"), 4: ("t", False, "TENSOR"),
    5: ("g", False, "GRAPH"), 6: ("floats", True, "FLOATS"), 7: ("ints", True, "INTS"), 8: ("strings", True, "STRINGS"),
    9: ("tensors", True, "TENSORS"), 10: ("graphs", True, "GRAPHS"), 11: ("sparse_tensor", False, "SPARSE_TENSOR"),
    12: ("sparse_tensors", True, "SPARSE_TENSORS"), 13: ("tp", False, "TYPE_PROTO"),
    14: ("type_protos", True, "TYPE_PROTOS"),
}  # fmt: skip


def attribute_type(attribute: AttributeProto) -> str:
    """The name of an AttributeProto's type: "INT", "FLOATS", …; "" where it is none."""
    return ATTRIBUTE_FIELDS.get(_kind(attribute), ("", False, ""))[2]


def attribute_value(attribute: AttributeProto) -> Any:
    """What an AttributeProto holds: int, float, str, list of those, TensorProto or GraphProto (or lists)."""
    kind = _kind(attribute)
    if kind not in ATTRIBUTE_FIELDS:
        return None
    field, many, _ = ATTRIBUTE_FIELDS[kind]
    value = getattr(attribute, field)
    if field == "s":
        return value.decode("utf-8", "replace")
    if field == "strings":
        return [v.decode("utf-8", "replace") for v in value]
    return list(value) if many else value


def _kind(attribute: AttributeProto) -> int:
    """The type; IR version 1 wrote none: the field that is set says it."""
    if attribute.type:
        return int(attribute.type)
    filled = {field.name for field, _ in attribute.ListFields()}
    return next((kind for kind, (field, _, _) in ATTRIBUTE_FIELDS.items() if field in filled), 0)
