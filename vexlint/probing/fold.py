"""From what ran and what was refused to a table, and how well such a table predicts what it has not seen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vexlint import tables
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.model.proto import parse
from vexlint.model.schemas import element_name
from vexlint.probing.corpus import Probe

# How attributes explain a refusal: enumerated ones do, numbers that only came along with them do not
ENUMERATED = frozenset({"to", "dtype", "output_dtype", "p"})
Results = Sequence[str]  # why each probe was refused, "" where it ran


def table(runtime: str, version: str, limits: dict[str, int | None], probes: list[Probe], results: Results) -> Any:
    """A target file's content."""
    groups: dict[str, dict[int, list[tuple[Probe, str]]]] = {}
    for probe, result in zip(probes, results, strict=True):
        if limits["opset"] is None or probe.since <= limits["opset"]:
            groups.setdefault(probe.op, {}).setdefault(probe.since, []).append((probe, result))
    return {
        "runtime": runtime,
        "version": version,
        "source": "vexlint targets probe: the ONNX node tests and a sweep of element types, loaded one by one",
        "evidence": "probe",
        "opsets": {"": {"min": 1, "max": limits["opset"], "basis": "enforced" if limits["opset"] else "none"}},
        "ir": {"max": limits["ir"], "basis": "enforced" if limits["ir"] else "none"},
        "operators": {op: _entry(op, versions) for op, versions in sorted(groups.items())},
    }


def text(data: Any) -> str:
    """A target file: one line an operator."""
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items() if k != "operators"]
    rows = ",\n".join(f"  {json.dumps(op)}: {json.dumps(entry)}" for op, entry in data["operators"].items())
    return "{\n" + ",\n".join([*lines, '"operators": {\n' + rows + "\n}"]) + "\n}\n"


def prediction(runtime: str, version: str, limits: dict[str, int | None], probes: list[Probe], results: Results) -> str:
    """How a table made from two thirds of each operator's node tests judges the last third, in words."""
    from vexlint.checks.support import judge

    kept = [i for i, p in enumerate(probes) if not held_out(p)]
    made = table(runtime, version, limits, [probes[i] for i in kept], [results[i] for i in kept])
    target = tables.parse(made, "the probed table: ")
    counts = {(said, true): 0 for said in (True, False) for true in (True, False)}
    for probe, result in zip(probes, results, strict=True):
        entry = target.operator("", probe.op)
        if held_out(probe) and entry is not None and entry.status(probe.since) != "unknown":
            counts[any(j.verdict == "refuses" for j in judge(_node(probe), target)), bool(result)] += 1
    right, total = counts[True, True] + counts[False, False], max(sum(counts.values()), 1)
    refusals = counts[False, True] + counts[True, True]
    return (
        f"held out {total} probes: {right} judged right ({100 * right / total:.1f} %), "
        f"{counts[True, False]} refused that run, {counts[False, True]} of {refusals} refusals missed"
    )


def held_out(probe: Probe) -> bool:
    """Whether a probe is of the third that the table does not see: by its name, the same in every run."""
    return probe.kind == "test" and hashlib.sha256(probe.name.encode()).digest()[0] % 3 == 0


def _entry(op: str, versions: dict[int, list[tuple[Probe, str]]]) -> dict[str, Any]:
    entry: dict[str, Any] = {"runs": [], "partial": [], "refuses": {}, "types": {}, "limits": []}
    for since, group in sorted(versions.items()):
        refused = [(p, why) for p, why in group if why]
        if len(refused) == len(group):
            entry["refuses"][str(since)] = _short(refused[0][1])
            continue
        tests = [(p, why) for p, why in group if p.kind == "test"]
        entry["partial" if any(why for _, why in tests) else "runs"].append(since)
        if types := _types(group):
            entry["types"][str(since)] = types
        entry["limits"] += [{"versions": [since], **limit} for limit in explain(tests)]
    return {key: value for key, value in entry.items() if value}


def _types(group: list[tuple[Probe, str]]) -> dict[str, list[str]]:
    ran: dict[str, set[str]] = {}
    refused: dict[str, set[str]] = {}
    for probe, why in group:
        if probe.kind == "types":
            (refused if why else ran).setdefault(probe.variable, set()).add(probe.dtype)
        elif not why:  # a test may run a combination of types that the sweep, one variable at a time, did not reach
            for variable, dtype in _declared_types(_node(probe)):
                ran.setdefault(variable, set()).add(dtype)
    return {v: [" ".join(sorted(types)), " ".join(sorted(refused.get(v, set()) - types))] for v, types in ran.items()}


def _declared_types(node: Node) -> Iterator[tuple[str, str]]:
    schema = node.schema
    for position, formal in enumerate(schema.inputs if schema else ()):
        if formal.type_var and node.input(position) is not None:
            yield formal.type_var, element_name(node.graph.model.reads[node][position].type)


def explain(tests: list[tuple[Probe, str]]) -> Iterator[dict[str, Any]]:
    """Limits that hold for refused probes and for none that ran: the fewest that explain, attributes before the rest.

    What they do not explain stays unsaid: a refusal that is predicted wrongly is worse than silence.
    """
    nodes = [(_node(probe), bool(why)) for probe, why in tests]
    left = [node for node, refused in nodes if refused]
    ran = [node for node, refused in nodes if not refused]
    for limits in ([_attributes, _dilations], [_ranks]):
        found = {json.dumps(limit): holds for make in limits for node in left for limit, holds in make(node)}
        usable = {key: holds for key, holds in found.items() if not any(holds(node) for node in ran)}
        while usable and left:
            best = max(sorted(usable), key=lambda key: sum(map(usable[key], left)))
            covered = sum(map(usable[best], left))
            if not covered:
                break
            left = [node for node in left if not usable[best](node)]
            yield {**json.loads(best), "seen": f"{covered} of {len(tests)} probes"}


Guess = tuple[dict[str, Any], Callable[[Node], bool]]


def _attributes(node: Node) -> Iterator[Guess]:
    schema = node.schema
    for attribute in node.proto.attribute:
        declared = schema.attributes.get(attribute.name) if schema else None
        value = node.attribute(attribute.name)
        if declared is None or value == declared.default:
            continue
        word = declared.type == "STRING" and isinstance(value, str) and value.replace("_", "").isalpha()
        flag = declared.type == "INT" and (attribute.name in ENUMERATED or value == 1)
        if word or (flag and attribute.name not in ("axis", "hidden_size", "group", "num_outputs")):
            name = attribute.name
            yield {"attribute": {name: [value]}}, _attribute_is(name, value)


def _attribute_is(name: str, value: Any) -> Callable[[Node], bool]:
    return lambda node: bool(node.attribute(name) == value)


def _dilations(node: Node) -> Iterator[Guess]:
    if any(d != 1 for d in node.attribute("dilations") or ()):
        yield {"ones": ["dilations"]}, lambda other: any(d != 1 for d in other.attribute("dilations") or ())


def _ranks(node: Node) -> Iterator[Guess]:
    if (rank := _rank(node)) is not None and rank > 4:
        yield {"ranks": {"0": [rank]}}, lambda other: _rank(other) == rank


def _rank(node: Node) -> int | None:
    value = node.input(0)
    shape = value.shape if value is not None and value.name in node.graph.inputs else None
    return None if shape is None else shape.rank


def _node(probe: Probe) -> Node:
    return Model(parse(probe.data), Path(probe.name)).graph.nodes[0]


def _short(why: str) -> str:
    """A runtime's complaint in a few words that are the same for every model."""
    known = {"Could not find an implementation": "no kernel for this version", "No conversion rule": "no translation"}
    return next((short for text, short in known.items() if text in why), "rejected")
