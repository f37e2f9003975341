"""What a node is given: inputs of types that its operator takes."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.checks.faults import grouped, used
from vexlint.model import schemas
from vexlint.model.graph import Node
from vexlint.model.kinds import Use, formals
from vexlint.model.model import Model
from vexlint.values import Hit, Severity


def node_types(model: Model, context: Context) -> Iterator[Hit]:
    """VEX112: an input of a type that the operator does not take, or two that must be of one type and are not."""
    worth = Severity.WARNING if context.lenient else None  # others cast by themselves
    way_out = "runtimes refuse the node: add a Cast, or correct what feeds it"
    yield from grouped(Hit(node.place, text, way_out, severity=worth) for node, text in used(model, type_flaw))


def type_flaw(use: Use) -> str | None:
    """What is wrong with the types of a node's inputs, None where nothing is."""
    schema = use.schema
    if schema is None or (use.node.domain, use.node.op) in use.node.graph.model.functions:
        return None
    bound: dict[str, tuple[int, str, str]] = {}
    where = f"{use.node.op}{at_opset(use.node)}"
    for position, (formal, kind) in enumerate(formals(schema.inputs, [k.type for k in use.inputs])):
        if not kind:
            continue
        if kind not in formal.types:
            takes = ", ".join(map(plain, formal.types[:6])) + (", …" if len(formal.types) > 6 else "")
            return f"input {position} ({formal.name}) is {plain(kind)}; {where} takes {takes} there"
        if not formal.type_var or not formal.homogeneous:
            continue
        other, name, first = bound.setdefault(formal.type_var, (position, formal.name, kind))
        if first != kind:
            return (
                f"input {other} ({name}) is {plain(first)}, input {position} ({formal.name}) {plain(kind)}; {where} "
                "wants one type"
            )
    return None


def at_opset(node: Node) -> str:
    """ " at opset 17"; "" for a domain that the file imports no version of."""
    opset = node.graph.opsets.get(node.domain)
    return f" at opset {opset}" if opset is not None else ""


def plain(kind: str) -> str:
    """ "tensor(float)" as people say it: float."""
    return schemas.element_name(kind) or kind
