"""What a target's table says about one node: the one engine behind every rule that asks.

`judge` knows no rule: each restriction names the rule that reports it, and a rule takes the judgements with its code.
What a table does not tell gives no judgement. A condition that cannot be decided from the file counts as not met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, cast

from vexlint.model import schemas
from vexlint.model.graph import Node, Value
from vexlint.model.kinds import UNKNOWN, Kind
from vexlint.model.model import Model
from vexlint.tables import DEFAULT_RULE, SAID, Operator, Restriction, Target, differences

Verdict = Literal["refuses", "differs", "falls-back", "needs-plugin"]

SEQUENCES = frozenset({
    "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
    "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement",
})  # fmt: skip
QUANTIZED = frozenset({"DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"})
# Operators whose number of output rows depends on the numbers, not the shapes, of their inputs
BY_VALUE = ("NonZero", "NonMaxSuppression", "Unique", "Compress", "StringNormalizer", "StringSplit")
LAYERS = frozenset({
    "Conv", "ConvTranspose", "DeformConv", "Gemm", "GridSample", "GRU", "LSTM", "MatMul", "MaxRoiPool", "QLinearConv",
    "RNN", "RoiAlign",
})  # fmt: skip
WIDE = frozenset({"double", "int64", "uint64", "uint8", "bool"})
SHAPE_READERS = frozenset({"Shape", "Size"})
WALK = 200  # nodes looked at upstream before "does it vary?" stays open


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a target does with a node. `rule` reports it, `why` is a phrase ("antialias is ignored"), `data` holds the
    facts behind it: evidence, version, seen, size."""

    verdict: Verdict
    rule: str
    why: str
    data: Mapping[str, Any] = field(default_factory=dict)


def judge(node: Node, target: Target) -> tuple[Judgement, ...]:
    """The target's verdicts about a node, () where it runs it or nobody knows.

    A function of the file, an operator that the user's plugins bring, and an operator that the standard does not have
    at the file's opset are other rules' business. Shape inference starts only for a limit on a rank
    that the file leaves open, and only where everything else about that limit is met.
    """
    domain = node.domain
    if (domain, node.op) in node.graph.model.functions or f"{domain}::{node.op}" in target.plugins:
        return ()
    if target.ignores_domain and schemas.versions("", node.op):
        domain = ""
    entry = target.operator(domain, node.op)
    schema = schemas.operator(domain, node.op, node.graph.opsets.get(domain, 0))
    since = schema.since if schema else 0
    changed = _changed(node, target, since)
    if entry is None or (schema is None and schemas.versions(domain, node.op)):
        return changed
    if (reason := entry.reason(since)) is not None:
        return (_lacking(node, target, since, reason, entry), *changed)
    met = [_judgement(limit, target, entry, since) for limit in entry.limits if _holds(limit, node, since)]
    found = {(one.rule, one.why): one for one in met}.values()  # several limits may say one thing
    return (*found, *_refused_types(node, target, entry, schema), *changed)


def interesting(model: Model, target: Target) -> Iterator[Node]:
    """The nodes that `judge` could say something about: a look at each operator of the file, not at each node."""
    imports = frozenset((d, opset) for graph in model.graphs for d, opset in graph.opsets.items())
    changed = differences(target.runtime)
    for (domain, op), nodes in model.operators.items():
        plain = "" if target.ignores_domain and schemas.versions("", op) else domain
        versions = _meant(imports, plain, op)
        entry = target.operator(plain, op)
        limits = list(entry.limits) if entry else []
        if not plain and op in changed:
            limits += [d.when for d in changed[op] if d.holds(target.version)]
        read = model.types_read.get((domain, op), set())
        if any(_reachable(limit, versions, read) for limit in limits) or (
            entry is not None and any(entry.reason(v) is not None for v in versions)
        ):
            yield from nodes
        elif entry is not None and (met := _refused(entry, versions) & read):
            yield from (n for n in nodes if any(_element(kind) in met for kind in model.reads.get(n, ())))


@cache
def _meant(imports: frozenset[tuple[str, int]], domain: str, op: str) -> frozenset[int]:
    """The schema versions of an operator that graphs with these imports may mean, 0 where the standard has none."""
    meant = [schemas.operator(domain, op, opset) for d, opset in imports if d == domain]
    return frozenset(schema.since if schema else 0 for schema in meant) or frozenset((0,))


def _reachable(limit: Restriction, versions: Set[int], read: set[str]) -> bool:
    """Whether some node of an operator could meet a condition: by its schema versions, and what its nodes read."""
    at_all = not limit.versions or not versions.isdisjoint(limit.versions)
    return at_all and all(not read.isdisjoint(types) for types in limit.types.values())


def _refused(entry: Operator, versions: Set[int]) -> frozenset[str]:
    """The types that a table refuses of some input at one of these schema versions."""
    return frozenset().union(*(t.refused for v in versions for t in entry.types.get(v, {}).values()))


def _lacking(node: Node, target: Target, since: int, reason: str, entry: Operator) -> Judgement:
    verdict: Verdict = "needs-plugin" if "plugin" in reason else target.lacking
    rule = DEFAULT_RULE
    if node.op in SEQUENCES:
        rule = "VEX110"
    elif node.op in QUANTIZED:
        rule = "VEX605"
    elif node.op == "NonMaxSuppression" and layers_after(node):
        rule = "VEX509"
    elif node.op in BY_VALUE and target.dynamic_shapes == "static":
        rule = "VEX405"
    return Judgement(verdict, rule, reason, {"evidence": entry.evidence, "version": since})


def layers_after(node: Node) -> tuple[str, ...]:
    """The operators that compute with what a node makes, in its graph and those around it: more than a rest of
    sorting and picking that can be left to the application."""
    found: dict[str, None] = {}
    graph, names = node.graph, node.outputs
    while True:
        made = graph.downstream(n for n in names if n)
        found.update((n.op, None) for n in graph.nodes if n.op in LAYERS and not made.isdisjoint(graph.reads(n)))
        owner = graph.owner
        if owner is None or made.isdisjoint(graph.results):
            return tuple(found)
        graph, names = owner.graph, owner.outputs


def _judgement(limit: Restriction, target: Target, entry: Operator, since: int) -> Judgement:
    verdict = cast(Verdict, limit.verdict or target.lacking)
    evidence = SAID if limit.seen == SAID else entry.evidence
    data = {"evidence": evidence, "version": since} | ({"seen": limit.seen} if limit.seen else {})
    return Judgement(verdict, limit.rule, limit.why or describe(limit), data)


def _changed(node: Node, target: Target, since: int) -> tuple[Judgement, ...]:
    """What versions around this one compute differently."""
    if node.domain and not target.ignores_domain:
        return ()
    return tuple(
        Judgement("differs", d.when.rule, d.when.why, {"version": since, "size": d.size})
        for d in differences(target.runtime).get(node.op, ())
        if d.holds(target.version) and _holds(d.when, node, since)
    )


def _refused_types(node: Node, target: Target, entry: Operator, schema: schemas.Operator | None) -> list[Judgement]:
    """One judgement for each type variable whose type was tried and refused."""
    row = entry.types.get(schema.since if schema else 0, {})
    found = {}
    for position, formal in enumerate(schema.inputs if schema else ()):
        refused = row[formal.type_var].refused if formal.type_var in row else frozenset()
        if formal.type_var in found or not refused or node.input(position) is None:
            continue
        dtype = _type(node, position)
        if dtype in refused and schema is not None:
            rule = "VEX601" if dtype in WIDE else DEFAULT_RULE
            why = f"{dtype} {formal.name}" if len(schema.inputs) > 1 else dtype
            data = {"evidence": entry.evidence, "version": schema.since, "type": dtype, "input": position}
            found[formal.type_var] = Judgement(target.lacking, rule, why, data)
    return list(found.values())


def _holds(limit: Restriction, node: Node, since: int) -> bool:
    """Whether every part of a condition is met; the cheap parts first, those that may start inference last."""
    return (
        (not limit.versions or since in limit.versions)
        and node.graph.opsets.get("", 0) >= limit.opset
        and all(node.attribute(name) in values for name, values in limit.attribute.items())
        and all(_other(node.attribute(name), values) for name, values in limit.only.items())
        and all(any(a.name == name for a in node.proto.attribute) for name in limit.present)
        and all(any(x != 1 for x in node.attribute(name) or ()) for name in limit.ones)
        and all((node.attribute(name) or 0) > 0 for name in limit.positive)
        and all(node.input(i) is not None for i in limit.given)
        and (not limit.outputs or any(_asked(node, i) for i in limit.outputs))
        and all(any(x != 0 for x in _constant(node, i)) for i in limit.nonzero)
        and all(_repeats(node, i) for i in limit.repeats)
        and all((_constant(node, i) or [0])[0] > most for i, most in limit.above.items())
        and (not limit.shrinks or any(x < 1 for x in _constant(node, 1)))
        and (not limit.varies or _vary(node, limit.varies))
        and (not limit.computed or _vary(node, limit.computed, True))
        and all(_type(node, i) in types for i, types in limit.types.items())
        and all(_rank(node, i) in ranks for i, ranks in limit.ranks.items())
        and all(_other(_rank(node, i), ranks) for i, ranks in limit.ranks_only.items())
        and (not limit.axis_inside or _inside(node))
        and (not limit.resizes or not _same_shape(node))
        and (not limit.forks or _forks(node))
    )


def _read(node: Node, position: int) -> Kind:
    """The type and the rank of an input, as far as a walk through the file tells."""
    inputs = node.graph.model.reads.get(node, ())
    return inputs[position] if position < len(inputs) else UNKNOWN


def _type(node: Node, position: int) -> str:
    return _element(_read(node, position))


def _element(kind: Kind) -> str:
    return schemas.element_name(kind.type)


def _other(value: Any, allowed: tuple[Any, ...]) -> bool:
    return value is not None and value not in allowed


def _asked(node: Node, position: int) -> bool:
    return position < len(node.outputs) and bool(node.outputs[position])


def _constant(node: Node, position: int) -> list[Any]:
    value = node.input(position)
    return (value.constant or []) if value is not None else []


def _repeats(node: Node, position: int) -> bool:
    """Whether two rows of a constant, along its last axis, are equal."""
    value, numbers = node.input(position), _constant(node, position)
    shape = value.stated if value is not None else None
    width = (shape.size(-1) or 1) if shape is not None and shape.rank else 1
    rows = [tuple(numbers[i : i + width]) for i in range(0, len(numbers), width)]
    return len(set(rows)) < len(rows)


def _rank(node: Node, position: int) -> int | None:
    """Inference is asked only for what the walk could not tell."""
    if (rank := _read(node, position).rank) is not None:
        return rank
    value = node.input(position)
    shape = value.shape if value is not None else None
    return None if shape is None else len(shape.dims)


def _inside(node: Node) -> bool:
    """Whether elements follow the axis: trailing axes of size 1 make no difference to what is one row."""
    axis, value = node.attribute("axis"), node.input(0)
    shape = value.shape if value is not None else None
    if axis is None or shape is None or not shape.dims:
        return False
    return any(size != 1 for size in shape.dims[axis % len(shape.dims) + 1 :])


def _forks(node: Node) -> bool:
    condition = node.input(0)
    branches = [g for g in node.graph.inner if g.owner is node]
    if len(branches) != 2 or condition is None or condition.is_constant:
        return False
    pairs = zip(*([branch.stated(name) for name in branch.results] for branch in branches), strict=False)
    return any(a is not None and b is not None and a.rank != b.rank for a, b in pairs)


def _same_shape(node: Node) -> bool:
    """Whether the first output is surely as large as the first input."""
    before, after = node.input(0), Value(node.graph, node.outputs[0]) if node.outputs else None
    shapes = before.shape if before is not None else None, after.shape if after is not None else None
    return shapes[0] is not None and shapes[0] == shapes[1] and None not in shapes[0].dims


def _vary(node: Node, positions: tuple[int, ...], sizes: bool = False) -> bool:
    given = [v for i in positions if (v := node.input(i)) is not None]
    return bool(given) and all(_depends_on_data(value, node, sizes) for value in given)


def _depends_on_data(value: Value, reader: Node, sizes: bool) -> bool:
    """Whether a value is surely made from what a caller feeds, not from constants and shapes alone; with `sizes` an
    open axis of an input counts as fed."""
    graph, row, seen = value.home, [(value.name, reader)], 0
    if graph is None or graph.is_function or graph.owner is not None:
        return False
    while row and seen < WALK:
        name, reader = row.pop()
        seen += 1
        if name in graph.inputs:
            return True
        maker = graph.producers.get(name)
        if maker is None:
            continue
        if maker.op not in SHAPE_READERS:
            row += [(read, maker) for read in graph.reads(maker)]
        elif sizes and _reads_open_axis(maker, reader):
            return True
    return False


def _reads_open_axis(shape: Node, reader: Node) -> bool:
    """Whether what is read of a Shape is an axis that the file leaves open; False where it does not say."""
    source = shape.input(0)
    stated = source.stated if source is not None else None
    if stated is None:
        return False
    picked = _constant(reader, 1) if reader.op == "Gather" and shape.op == "Shape" else []
    axes = picked if all(-stated.rank <= i < stated.rank for i in picked) else []
    return any(stated.size(i) is None for i in axes or range(stated.rank))


def describe(limit: Restriction) -> str:
    """A condition in words: "mode=cubic", "input 1 is not a constant"."""
    parts = [f"opset {limit.opset} or later"] if limit.opset else []
    parts += [f"{name}={' or '.join(map(str, values))}" for name, values in limit.attribute.items()]
    parts += [f"{name} other than {', '.join(map(str, values))}" for name, values in limit.only.items()]
    parts += [f"{name} is written" for name in limit.present]
    parts += [f"{name} other than 1" for name in limit.ones]
    parts += [f"{name} above 0" for name in limit.positive]
    parts += [f"input {i} is given" for i in limit.given]
    parts += [f"output {' or '.join(map(str, limit.outputs))} is used"] if limit.outputs else []
    parts += [f"input {' and '.join(map(str, limit.varies))} not constant"] if limit.varies else []
    parts += [f"input {' and '.join(map(str, limit.computed))} is computed"] if limit.computed else []
    parts += [f"input {i} is not 0" for i in limit.nonzero]
    parts += [f"input {i} has equal rows" for i in limit.repeats]
    parts += [f"input {i} above {most}" for i, most in limit.above.items()]
    parts += [f"input {i} of type {' or '.join(types)}" for i, types in limit.types.items()]
    parts += [f"input {i} of rank {' or '.join(map(str, ranks))}" for i, ranks in limit.ranks.items()]
    parts += [f"input {i} of a rank other than {', '.join(map(str, r))}" for i, r in limit.ranks_only.items()]
    parts += ["axis is not the last one"] if limit.axis_inside else []
    parts += ["a scale is below 1"] if limit.shrinks else []
    parts += ["the size changes"] if limit.resizes else []
    parts += ["its branches give results of different ranks"] if limit.forks else []
    return ", ".join(parts)
