"""What a node is given: as many inputs, outputs and attributes as its operator takes, of sizes that go together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vexlint.checks import sizes
from vexlint.checks.context import Context
from vexlint.checks.faults import grouped, written
from vexlint.checks.types import at_opset
from vexlint.model import schemas
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.values import Hit

WITHOUT = "runtimes refuse the file: export again, or write what is missing"


def node_arguments(model: Model, context: Context) -> Iterator[Hit]:
    """VEX111: inputs, outputs or attributes missing or too many, sizes that do not go together; one hit a cause."""
    yield from grouped(_argument_hits(model))
    yield from grouped(sizes.hits(model))


def _argument_hits(model: Model) -> Iterator[Hit]:
    for operator, nodes in model.operators.items():
        if operator in model.functions:
            yield from _call_hits(model, nodes)
        else:
            yield from written(model, operator, _flaws)


def _flaws(node: Node) -> Iterator[Hit]:
    schema = node.form.arguments
    if schema is None or schema.deprecated:
        return  # another rule speaks of it
    given = {a.name for a in node.proto.attribute}
    absent = {a.name for a in schema.attributes.values() if a.required} - given
    text = _input_flaw(node, schema) or _output_flaw(node, schema)
    if text is not None:
        yield Hit(node.place, text, WITHOUT)
    if absent:
        if given <= schema.attributes.keys():  # else it may be a misspelt one
            yield _absent(node, schema, min(absent))
    elif text is None and _complete(node) and node.op in MORE and (text := MORE[node.op](node)) is not None:
        yield Hit(node.place, text, WITHOUT)


def _complete(node: Node) -> bool:
    """Whether no argument is left out."""
    return "" not in node.inputs and "" not in node.outputs


def _absent(node: Node, schema: schemas.Operator, name: str) -> Hit:
    kind = schema.attributes[name].type
    return Hit(
        node.place,
        f"{node.op} lacks its attribute {name!r} ({kind}), which has no default{at_opset(node)}",
        WITHOUT,
        data={"attribute": name},
    )


def _input_flaw(node: Node, schema: schemas.Operator) -> str | None:
    names = node.inputs
    count, where = len(names), f"{node.op}{at_opset(node)}"
    if count > schema.max_inputs:
        return f"{where} takes {_at_most(schema.max_inputs, 'input')}, here it has {count}"
    for position, formal in enumerate(schema.inputs[:count]):
        needed = formal.option == "single" or (formal.option == "variadic" and position == 0)
        if not names[position] and needed:
            return f"{where} needs its input {position} ({formal.name}), here it is left out"
    if count < schema.min_inputs:
        formal = schema.inputs[min(count, len(schema.inputs) - 1)]
        if formal.name in schema.attributes or any(a.name == formal.name for a in node.proto.attribute):
            return None  # written as the attribute it once was: VEX106 says so
        return f"{where} needs its input {count} ({formal.name}), here it is left out"
    return None


def _output_flaw(node: Node, schema: schemas.Operator) -> str | None:
    names = node.outputs
    count, where = len(names), f"{node.op}{at_opset(node)}"
    if count > schema.max_outputs:
        return f"{where} makes {_at_most(schema.max_outputs, 'output')}, here it has {count}"
    for position, formal in enumerate(schema.outputs[:count]):
        if not names[position] and formal.option == "single":
            return f"{where} always makes its output {position} ({formal.name}), here it has no name"
    if count < schema.min_outputs:
        return f"{where} makes at least {schema.min_outputs} outputs, here it has {count}"
    return None


def _at_most(limit: int, word: str) -> str:
    return f"at most {limit} {word}{'' if limit == 1 else 's'}" if limit else f"no {word}"


def _split(node: Node) -> str | None:
    if len(node.outputs) == 1 and node.graph.opsets.get("", 0) < 18:
        return None
    if node.graph.opsets.get("", 0) < 18 or node.input(1) is not None:
        return None
    if any(a.name == "num_outputs" for a in node.proto.attribute):
        return None
    return "Split has neither sizes (input split) nor num_outputs: from opset 18 on it needs one"


def _einsum(node: Node) -> str | None:
    equation = node.attribute("equation")
    if not isinstance(equation, str):
        return None
    terms, given = equation.partition("->")[0].count(",") + 1, len(node.inputs)
    return f"the equation {equation!r} is for {terms} inputs, here Einsum has {given}" if terms != given else None


def _loop(node: Node) -> str | None:
    body = node.attribute("body")
    if body is None:
        return None
    given, made = max(len(node.inputs), 2), len(node.outputs) + 1
    return _body("Loop", len(body.input), given) or _body("Loop", len(body.output), made, "outputs")


def _scan(node: Node) -> str | None:
    return _mapped(node) if node.graph.opsets.get("", 0) >= 9 else None


def _mapped(node: Node) -> str | None:
    """The body takes what the node reads and makes what the node makes."""
    body = node.attribute("body")
    if body is None:
        return None
    return _body(node.op, len(body.input), len(node.inputs)) or _body(
        node.op, len(body.output), len(node.outputs), "outputs"
    )


def _if(node: Node) -> str | None:
    for branch in (node.attribute("then_branch"), node.attribute("else_branch")):
        if branch is not None and (text := _body("If", len(branch.output), len(node.outputs), "outputs")):
            return text
    return None


def _body(op: str, has: int, wanted: int, what: str = "inputs") -> str | None:
    return f"the subgraph of {op} has {has} {what}, the node passes {wanted}" if has != wanted else None


# What the schema cannot say of an operator's arguments
MORE: dict[str, Callable[[Node], str | None]] = {
    "Split": _split,
    "Einsum": _einsum,
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _mapped,
}


def _call_hits(model: Model, nodes: list[Node]) -> Iterator[Hit]:
    """Calls of the model's own functions: more than the function declares. Fewer are allowed: the rest is left out."""
    bodies = {(f.domain, f.name, f.overload): f for f in model.proto.functions}
    for node in nodes:
        body = bodies.get((node.proto.domain, node.op, node.proto.overload))
        if body is None:
            continue
        for word, given, declared in (
            ("input", node.inputs, body.input),
            ("output", node.outputs, body.output),
        ):
            if len(given) > len(declared):
                yield Hit(
                    node.place,
                    f"the file's function {node.op} has {_at_most(len(declared), word).removeprefix('at most ')}, this "
                    f"call {len(given)}",
                    "runtimes refuse the call: correct it, or the function",
                )
