"""What `fix` did, for people."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.outcomes import FixReport, StageProof
from vexlint.report.text import many, paint, wrap
from vexlint.values import Change, Finding, Severity

COLOURS = {"proven": "32", "on purpose": "33", "not proven": "31"}
# What a fix of the rule waits for, where it did not apply
WAYS = {
    "VEX101": ": known by name only? say it in [composites], or prove it with --expect",
    "VEX301": ": say the right mode in a contract (resize = …)",
    "VEX401": ": say the size with --shape, or in a contract",
    "VEX501": ": vexlint nms inserts it",
}
SAMPLES = 3  # places of one change that are shown


def render(report: FixReport, colour: bool = False) -> str:
    """The whole report, ending in a newline."""
    lines = [paint(report.path, "1", colour)]
    for changes in _grouped(report.changes):
        lines += _changes(changes, colour)
    for proof in report.proofs:
        lines += _proof(proof, colour)
    lines += _outcome(report)
    return "\n".join(lines) + "\n"


def _grouped(changes: tuple[Change, ...]) -> list[list[Change]]:
    """Changes of one rule that say the same, together."""
    groups: dict[tuple[str, str, str, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((change.code, change.place.kind, change.before, change.after), []).append(change)
    return list(groups.values())


def _changes(changes: list[Change], colour: bool) -> Iterator[str]:
    first = changes[0]
    yield from wrap(f"{paint(first.code, '1', colour)} {first.before} -> {first.after}", 2, 2)
    for index, change in enumerate(changes[:SAMPLES]):
        yield from wrap(f"{'at' if not index else '  '} {change.place}", 4, 3)
    if len(changes) > SAMPLES:
        yield f"       and {len(changes) - SAMPLES} more"


def _proof(proof: StageProof, colour: bool) -> Iterator[str]:
    yield from wrap(f"{proof.stage} {paint(proof.status, COLOURS[proof.status], colour)}: {proof.text}", 2, 2)


def _outcome(report: FixReport) -> list[str]:
    if report.output is None:
        return ["", "nothing was written"]
    done = f"{many(len(report.changes), 'change')}, written to {report.output}"
    if not report.changes:
        done = f"no fix applies, an identical copy written to {report.output}"
    elif not report.proofs:
        done += ", not verified"
    left = report.remaining
    if left is None:
        return ["", done]
    said = ", ".join(many(left.count(s), s.value) for s in Severity)
    rows = [row for f in left.findings for row in wrap(f"{f.severity.value} {f.code} {f.name}{_way(f)}", 2, 4)]
    return ["", done, f"{said} remain" + (":" if rows else ""), *rows]


def _way(finding: Finding) -> str:
    """What would let `fix` do more."""
    if finding.fix == "unsafe":
        return ": --unsafe-fixes changes it"
    return WAYS.get(finding.code, "")
