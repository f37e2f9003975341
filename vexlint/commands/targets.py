"""`vexlint targets`: what is known of the runtimes a model may go to, and a table for the runtime installed here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vexlint.values import VexlintError

if TYPE_CHECKING:
    from vexlint.tables import Difference, Limit, Operator, Target

WIDTH = 100


def targets(
    target: Annotated[str, typer.Argument(help="One target, e.g. tensorrt@8.6; or `probe`.")] = "",
    operator: Annotated[str, typer.Argument(help="One operator, e.g. Resize; after `probe` a runtime.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where `probe` writes its table.")] = None,
) -> None:
    """List the runtimes known; show one; show what one does with an operator; `probe` the one installed here."""
    if target == "probe":
        raise typer.Exit(_probe(operator, out))
    if out is not None:
        raise VexlintError("-o is for `vexlint targets probe`")
    for line in _lines(target, operator):
        sys.stdout.write(line + "\n")


def _probe(runtime: str, out: Path | None) -> int:
    from vexlint.probing import probe

    if out is None:
        raise VexlintError("say where the table goes: vexlint targets probe onnxruntime -o FILE.json")
    for line in probe(runtime or "onnxruntime", out):
        sys.stderr.write(f"vexlint: {line}\n")
    return 0


def _lines(name: str, operator: str) -> Iterator[str]:
    from vexlint import config, targets

    path = config.find(Path.cwd())
    own = config.load(path).own_targets if path else ()
    if not name:
        for known in (*targets.known(), *(o.name for o in own)):
            yield _row(targets.resolve([known], own)[0][0])
        return
    (chosen,), notes = targets.resolve([name], own)
    for note in notes:
        sys.stderr.write(f"vexlint: {note}\n")
    yield from _operator(chosen, operator) if operator else _target(chosen)


def _row(target: Target) -> str:
    count = len(list(target.operators()))
    opset, ir = _limit(target.opsets[""]), _limit(target.ir)
    listed = f"{count} operators, {target.evidence}" if count else "limits only"
    return f"{target!s:<28}  opset {opset:<24}  IR {ir:<14}  {listed}"


def _limit(limit: Limit) -> str:
    if limit.max is not None:
        low = f"{limit.min}-" if limit.min > 1 else ""
        return f"{low}{limit.max} {limit.basis}"
    if limit.between:
        return f"unknown, {limit.between[0]} to {limit.between[1]}"
    return "any" if limit.basis == "none" else "unknown"


def _target(target: Target) -> Iterator[str]:
    yield _row(target)
    yield f"source: {target.source}"
    if target.note:
        yield f"note: {target.note}"
    for key in ("dynamic_shapes", "lacking", "functions", "duplicate_names", "unsorted", "shadowed"):
        if (value := getattr(target, key)) is not None:
            yield f"{key}: {value if not isinstance(value, bool) else 'yes' if value else 'no'}"
    if target.ignores_domain:
        yield "ignores_domain: yes"
    kinds: dict[str, list[str]] = {"runs": [], "under conditions": [], "refuses": [], "not tried": []}
    for key in target.operators():
        domain, _, op = key.rpartition("::")
        entry = target.operator(domain, op)
        assert entry is not None
        kinds[_kind(entry)].append(key)
    for kind, names in kinds.items():
        yield from _wrapped(kind, names)


def _kind(entry: Operator) -> str:
    if entry.partial or entry.limits:
        return "under conditions"
    if entry.runs is None or entry.runs:
        return "runs"
    return "refuses" if entry.refuses else "not tried"


def _wrapped(kind: str, names: list[str]) -> Iterator[str]:
    import textwrap

    if names:
        yield f"{kind} ({len(names)}):"
        yield from textwrap.wrap(" ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _operator(target: Target, name: str) -> Iterator[str]:
    from vexlint.files import nearest
    from vexlint.tables import differences

    domain, _, op = name.rpartition("::")
    entry = target.operator("" if domain == "ai.onnx" else domain, op)
    changed = [] if domain else [d for d in differences(target.runtime).get(op, ()) if d.holds(target.version)]
    if entry is None and not changed:
        close = nearest(name, list(target.operators()))
        yield f"{target}: {name} is not in its table: nothing is known{close}"
        return
    if entry is not None:
        yield f"{target} {name}  (evidence: {entry.evidence})"
        yield from _versions(entry)
        yield from (f"  {line}" for line in _conditions(entry, target.lacking))
        if entry.note:
            yield f"  note: {entry.note}"
    yield from (f"  differs: {_difference(d)}" for d in changed)


def _versions(entry: Operator) -> Iterator[str]:
    if entry.runs is None:
        yield "  runs: every version"
    elif entry.runs:
        yield f"  runs: {_numbers(entry.runs)}"
    if entry.partial:
        yield f"  under conditions: {_numbers(entry.partial)}"
    for version, reason in entry.refuses.items():
        yield f"  refuses: {'every version' if version == '*' else version}: {reason}"
    for newest, row in sorted(entry.types.items())[-1:]:
        for variable, types in sorted(row.items()):
            refused = f"; refused: {' '.join(sorted(types.refused))}" if types.refused else ""
            yield f"  types of {variable} at {newest}: {' '.join(sorted(types.run))}{refused}"


def _conditions(entry: Operator, lacking: str) -> Iterator[str]:
    from vexlint.checks.support import describe

    for limit in entry.limits:
        at = f" at {_numbers(limit.versions)}" if limit.versions else ""
        seen = f"; {limit.seen}" if limit.seen else ""
        yield f"{limit.verdict or lacking}: {limit.why or describe(limit)}{at}  ({limit.rule}{seen})"


def _difference(difference: Difference) -> str:
    from vexlint.checks.support import describe

    when = difference.when
    at = f" at {_numbers(when.versions)}" if when.versions else ""
    return f"{when.why}{at}; {describe(when)}; by {difference.size}  ({when.rule})"


def _numbers(versions: frozenset[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, sorted(versions)))
