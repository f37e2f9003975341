"""VEX301: the contract's coordinate mode written into linear and cubic Resizes. Changes numbers on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.checks.resize import canonical
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.values import Change, Finding, Place

if TYPE_CHECKING:
    from onnx import ModelProto

ATTRIBUTE = "coordinate_transformation_mode"
STRING = 3  # AttributeProto.AttributeType


def set_coordinate_mode(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """Sets the attribute on every node of the findings. Resize below opset 11 and Upsample have none to set: they stay.

    A node whose mode the contract calls wrong is left alone without a contract.
    """
    wanted = context.contract.resize
    changes = []
    for place in (p for f in findings for p in (f.place, *f.more)):
        node = model.node_at(place)
        schema = node.schema
        if wanted is None or schema is None or ATTRIBUTE not in schema.attributes:
            continue
        before = canonical(node)
        _write(node, wanted)
        changes.append(Change("VEX301", place, before, wanted))
    return changes


def _write(node: Node, mode: str) -> None:
    for attribute in node.proto.attribute:
        if attribute.name == ATTRIBUTE:
            attribute.s = mode.encode()
            return
    node.proto.attribute.add(name=ATTRIBUTE, type=STRING, s=mode.encode())


def without_modes(model: ModelProto, places: Sequence[Place]) -> bytes:
    """A model's bytes without the coordinate modes of the nodes at some places."""
    copy = type(model)()
    copy.CopyFrom(model)
    view = Model(copy, Path())
    for place in places:
        attributes = view.node_at(place).proto.attribute
        for index, attribute in reversed(list(enumerate(attributes))):
            if attribute.name == ATTRIBUTE:
                del attributes[index]
    data: bytes = copy.SerializeToString()
    return data
