"""What a node is given: as many inputs, outputs and attributes as its operator takes, of the types it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from vexlint.checks.context import Context
from vexlint.checks.faults import grouped
from vexlint.model import schemas
from vexlint.model.kinds import Use, formals
from vexlint.model.model import Model, Node
from vexlint.values import Hit, Severity

WITHOUT = "runtimes refuse the file: export again, or write what is missing"


def node_arguments(model: Model, context: Context) -> Iterator[Hit]:
    """VEX111: inputs, outputs or attributes missing or too many; one hit an operator and cause."""
    yield from grouped(_argument_hits(model))


def _argument_hits(model: Model) -> Iterator[Hit]:
    for (domain, op), nodes in model.operators.items():
        if (domain, op) in model.functions:
            yield from _call_hits(model, nodes)
            continue
        graph = schema = None
        required = set[str]()
        for node in nodes:
            if node.graph is not graph:
                graph, schema = node.graph, node.schema or schemas.contrib(domain, op)
                required = {a.name for a in schema.attributes.values() if a.required} if schema else set()
            if schema is None or schema.deprecated:
                continue  # another rule speaks of it
            names, made = node.proto.input, node.proto.output
            usual = schema.min_inputs <= len(names) <= schema.max_inputs and "" not in names
            usual = usual and schema.min_outputs <= len(made) <= schema.max_outputs and "" not in made
            if not usual and (text := _input_flaw(node, schema) or _output_flaw(node, schema)) is not None:
                yield Hit(node.place, text, WITHOUT)
            if required and (absent := required - {a.name for a in node.proto.attribute}):
                if all(a.name in schema.attributes for a in node.proto.attribute):  # else it may be a misspelt one
                    yield _absent(node, schema, min(absent))
            elif usual and op in MORE and (text := MORE[op](node)) is not None:
                yield Hit(node.place, text, WITHOUT)


def _absent(node: Node, schema: schemas.Operator, name: str) -> Hit:
    kind = schema.attributes[name].type
    return Hit(
        node.place,
        f"{node.op} lacks its attribute {name!r} ({kind}), which has no default{_at(node)}",
        WITHOUT,
        data={"attribute": name},
    )


def _input_flaw(node: Node, schema: schemas.Operator) -> str | None:
    names = node.proto.input
    count, where = len(names), f"{node.op}{_at(node)}"
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
    names = node.proto.output
    count, where = len(names), f"{node.op}{_at(node)}"
    if count > schema.max_outputs:
        return f"{where} makes {_at_most(schema.max_outputs, 'output')}, here it has {count}"
    for position, formal in enumerate(schema.outputs[:count]):
        if not names[position] and formal.option == "single":
            return f"{where} always makes its output {position} ({formal.name}), here it has no name"
    if count < schema.min_outputs:
        return f"{where} makes at least {schema.min_outputs} outputs, here it has {count}"
    return None


def _at(node: Node) -> str:
    opset = node.graph.opsets.get(node.domain)
    return f" at opset {opset}" if opset is not None else ""


def _at_most(limit: int, word: str) -> str:
    return f"at most {limit} {word}{'' if limit == 1 else 's'}" if limit else f"no {word}"


def _split(node: Node) -> str | None:
    if len(node.proto.output) == 1 and node.graph.opsets.get("", 0) < 18:
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
    terms, given = equation.partition("->")[0].count(",") + 1, len(node.proto.input)
    return f"the equation {equation!r} is for {terms} inputs, here Einsum has {given}" if terms != given else None


def _loop(node: Node) -> str | None:
    body = node.attribute("body")
    if body is None:
        return None
    given, made = max(len(node.proto.input), 2), len(node.proto.output) + 1
    return _body("Loop", len(body.input), given) or _body("Loop", len(body.output), made, "outputs")


def _scan(node: Node) -> str | None:
    return _mapped(node) if node.graph.opsets.get("", 0) >= 9 else None


def _mapped(node: Node) -> str | None:
    """The body takes what the node reads and makes what the node makes."""
    body = node.attribute("body")
    if body is None:
        return None
    return _body(node.op, len(body.input), len(node.proto.input)) or _body(
        node.op, len(body.output), len(node.proto.output), "outputs"
    )


def _if(node: Node) -> str | None:
    for branch in (node.attribute("then_branch"), node.attribute("else_branch")):
        if branch is not None and (text := _body("If", len(branch.output), len(node.proto.output), "outputs")):
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
            ("input", node.proto.input, body.input),
            ("output", node.proto.output, body.output),
        ):
            if len(given) > len(declared):
                yield Hit(
                    node.place,
                    f"the file's function {node.op} has {_at_most(len(declared), word).removeprefix('at most ')}, this "
                    f"call {len(given)}",
                    "runtimes refuse the call: correct it, or the function",
                )


def node_types(model: Model, context: Context) -> Iterator[Hit]:
    """VEX112: an input of a type that the operator does not take, or two that must be of one type and are not."""
    worth = Severity.WARNING if context.lenient else None  # others cast by themselves
    yield from grouped(replace(hit, severity=worth) for hit in _type_hits(model))


def _type_hits(model: Model) -> Iterator[Hit]:
    flaws: dict[object, str | None] = {}
    seen: set[tuple[str, int]] = set()  # a function's node is judged for each way it is called
    functions = model.functions
    for use in model.uses:
        node, schema, inputs = use
        if schema is None or (functions and (node.domain, node.op) in functions):
            continue
        key = (id(schema), inputs)
        if key not in flaws:
            flaws[key] = _type_flaw(use, schema)
        if (flaw := flaws[key]) is not None and (node.graph.path, node.index) not in seen:
            seen.add((node.graph.path, node.index))
            yield Hit(node.place, flaw, "runtimes refuse the node: add a Cast, or correct what feeds it")


def _type_flaw(use: Use, schema: schemas.Operator) -> str | None:
    bound: dict[str, tuple[int, str, str]] = {}
    where = f"{use.node.op}{_at(use.node)}"
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


def plain(kind: str) -> str:
    """ "tensor(float)" as people say it: float."""
    return schemas.element_name(kind) or kind
