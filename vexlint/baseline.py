"""The baseline: findings that a project lives with, written down in a file, so that a gate fails on new ones only.

A finding is known by its fingerprint. Where that changed, as after a re-export under other names, counts decide: of one
rule, runtime and operator a file may have as many places as the baseline counts. What became more, or worse, is new.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from vexlint.engine import STANDING
from vexlint.values import FileReport, Finding, Report, Severity, VexlintError

FORMAT = 1


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One finding: how it is known, how bad it was, at how many places."""

    fingerprint: str
    severity: str
    count: int

    @property
    def code(self) -> str:
        return self.fingerprint.partition("|")[0]

    @property
    def kind(self) -> str:
        """The part of the fingerprint that a re-export keeps: code, runtime, operator."""
        return "|".join(self.fingerprint.split("|", 3)[:3])

    def covers(self, other: Entry) -> bool:
        """Whether it is at least as bad."""
        return Severity(self.severity).rank >= Severity(other.severity).rank


@dataclass(frozen=True, slots=True)
class Baseline:
    """Entries by file, the path relative to the baseline's folder, with slashes."""

    path: Path
    files: dict[str, tuple[Entry, ...]] = field(default_factory=dict)

    def name(self, file: str) -> str:
        """A file as the baseline calls it."""
        start = os.path.realpath(self.path.parent)
        return Path(os.path.relpath(Path(os.path.realpath(Path(file).parent), Path(file).name), start)).as_posix()


def load(path: Path) -> Baseline:
    """Reads a baseline. Raises VexlintError where the file is missing or not one that `update` wrote."""
    make = "`vexlint baseline update` makes one"
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise VexlintError(f"{path}: the baseline cannot be read: {error.strerror}; {make}") from None
    except ValueError as error:
        raise VexlintError(f"{path}: not a baseline: {error}; {make}") from None
    if not isinstance(document, dict) or document.get("vexlint-baseline") != FORMAT:
        raise VexlintError(f'{path}: not a baseline of this version: "vexlint-baseline" should be {FORMAT}; {make}')
    try:
        return Baseline(path, {n: tuple(map(_entry, entries)) for n, entries in document["files"].items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VexlintError(f"{path}: a damaged baseline, {type(error).__name__}: {error}; {make}") from None


def _entry(data: dict[str, Any]) -> Entry:
    entry = Entry(**data)
    if not isinstance(entry.fingerprint, str) or not isinstance(entry.count, int):
        raise ValueError(f"{data}")
    Severity(entry.severity)
    return entry


def compare(report: Report, baseline: Baseline, rules: Container[str]) -> tuple[Report, list[str]]:
    """The report with what the baseline knows set aside, and sentences on entries of the rules that ran that nothing
    answers to any more."""
    files, stale = [], []
    for file in report.files:
        name = baseline.name(file.path)
        judged, gone = _compare(file, baseline.files.get(name, ()))
        files.append(judged)
        gone = [entry for entry in gone if entry.code in rules]
        stale += [f"{name}: {entry.fingerprint} is in the baseline and no longer found" for entry in gone]
    there = [baseline.path.parent / name for name in baseline.files]
    stale += [f"{path}: is in the baseline and no longer there" for path in there if not path.exists()]
    return replace(report, files=tuple(files)), stale


def _compare(file: FileReport, entries: Sequence[Entry]) -> tuple[FileReport, list[Entry]]:
    if file.status == "incomplete":  # not all was looked at: nothing can be set aside, nothing is gone
        return file, []
    left = list(entries)
    known = {id(f) for f in file.findings if f.code not in STANDING and _take_same(left, entry_of(f))}
    for finding in file.findings:
        if id(finding) not in known and finding.code not in STANDING and _take_kind(left, entry_of(finding)):
            known.add(id(finding))
    new = tuple(f for f in file.findings if id(f) not in known)
    kinds = {entry_of(f).kind for f in new}
    gone = [entry for entry in left if entry in entries and entry.kind not in kinds]  # what was taken from is not
    return replace(file, findings=new, baselined=tuple(f for f in file.findings if id(f) in known)), gone


def _take_same(left: list[Entry], wanted: Entry) -> bool:
    """Takes the entry of this very fingerprint out, where it has the finding with all its places."""
    for entry in left:
        if entry.fingerprint == wanted.fingerprint and entry.covers(wanted) and entry.count >= wanted.count:
            left.remove(entry)
            return True
    return False


def _take_kind(left: list[Entry], wanted: Entry) -> bool:
    """Takes as many places of the same kind out of what is left, where there are enough."""
    usable = [e for e in left if e.kind == wanted.kind and e.covers(wanted)]
    if sum(e.count for e in usable) < wanted.count:
        return False
    missing = wanted.count
    for entry in usable:
        taken = min(missing, entry.count)
        missing -= taken
        left[left.index(entry)] = replace(entry, count=entry.count - taken)
    return True


def entry_of(finding: Finding) -> Entry:
    """What the baseline writes down of a finding."""
    return Entry(finding.fingerprint, finding.severity.value, finding.count)


def update(report: Report, old: Baseline, rules: Container[str]) -> Baseline:
    """A baseline of what this run found. Entries of other files stay as long as those are there, and so do those of
    rules that did not run.

    Raises VexlintError for a file that could not be judged.
    """
    unjudged = next((f for f in report.files if f.status == "incomplete"), None)
    if unjudged is not None:
        raise VexlintError(f"{unjudged.path}: could not be judged, and the baseline stays as it is: {unjudged.reason}")
    files = {n: e for n, e in old.files.items() if (old.path.parent / n).exists()}
    for file in report.files:
        name = old.name(file.path)
        found = [entry_of(f) for f in file.findings if f.code not in STANDING]
        files[name] = tuple(sorted([*found, *(e for e in files.get(name, ()) if e.code not in rules)]))
    return Baseline(old.path, {name: entries for name, entries in sorted(files.items()) if entries})


def render(baseline: Baseline) -> str:
    """The file's text: sorted, one key a line, so that a diff of it reads."""
    files = {name: [asdict(entry) for entry in entries] for name, entries in baseline.files.items()}
    return json.dumps({"vexlint-baseline": FORMAT, "files": files}, indent=1) + "\n"
