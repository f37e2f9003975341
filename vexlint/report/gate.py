"""What the formats for a merge gate share: what they are told besides the report, paths, marks, sentences."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint.report.text import printable
from vexlint.values import FileReport, Finding, Report, Severity

if TYPE_CHECKING:
    from vexlint.rulebook import Rule

KNOWN = "in the baseline"
PLACES = 3  # other places of one cause that are told; the rest is counted


@dataclass(frozen=True, slots=True)
class Gate:
    """`root` is the folder that paths start from, the repository's; `rules` has every page, by code; `fail_on` is the
    severity from which a finding fails the run; `baseline` says whether findings were compared with one."""

    root: Path
    rules: Mapping[str, Rule]
    fail_on: Severity = Severity.ERROR
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A finding with its file as a consumer knows it: the path from the root, and a mark that no other one has.

    `reason` says why it is set aside, "" where it counts.
    """

    path: str
    mark: str
    finding: Finding
    reason: str = ""


def told(report: Report, gate: Gate, aside: bool = False) -> Iterator[Told]:
    """Every finding, in the report's order; with `aside` those that are waived or in the baseline as well.

    A mark is the path and the finding's fingerprint, numbered where two are equal: it outlives a re-export.
    """
    seen: dict[str, int] = {}
    for file in report.files:
        path = from_root(file.path, gate.root)
        for finding, reason in _findings(file, aside):
            mark = f"{path}|{finding.fingerprint}"
            seen[mark] = seen.get(mark, 0) + 1
            yield Told(path, mark if seen[mark] == 1 else f"{mark}|{seen[mark]}", finding, reason)


def _findings(file: FileReport, aside: bool) -> Iterator[tuple[Finding, str]]:
    yield from ((f, "") for f in file.findings)
    if aside:
        yield from ((w.finding, waived(w.reason, w.until)) for w in file.waived)
        yield from ((f, KNOWN) for f in file.baselined)


def waived(reason: str, until: str) -> str:
    """Why a finding is waived, and how long."""
    return printable(f"waived: {reason}" + (f" (until {until})" if until else ""))


def unsaid(file: FileReport) -> str:
    """Why a file could not be judged where no finding says it, else ""."""
    said = any(f.message == file.reason for f in file.findings)
    return "" if file.status == "checked" or said else printable(f"could not be judged: {file.reason}")


def from_root(path: str, root: Path) -> str:
    """A path as the repository knows it: relative to its root, with slashes; absolute where it lies outside."""
    full = Path(os.path.abspath(path))  # noqa: PTH100  links stay: the repository has the link
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else full.as_posix()


def utf8(path: str) -> str:
    """A path as text of a JSON document; file systems have names that are none, and those get escapes."""
    return path.encode("utf-8", "backslashreplace").decode()


def digest(mark: str) -> str:
    """A mark as consumers take it: SHA-256, in hexadecimal digits."""
    return hashlib.sha256(mark.encode("utf-8", "backslashreplace")).hexdigest()


def title(finding: Finding) -> str:
    """ "VEX301 resize-align-corners"."""
    return f"{finding.code} {finding.name}"


def sentences(told: Told) -> list[str]:
    """What there is to read of a finding, one line each: what, where, what to do, which fix."""
    finding = told.finding
    lines = [finding.message]
    if finding.place.kind != "file":
        lines += [f"at {finding.place}", *(f"   {p}" for p in finding.more[:PLACES])]
        hidden = finding.count - 1 - len(finding.more[:PLACES])
        lines += [f"   and {hidden} more"] if hidden > 0 else []
    lines += [f"-> {finding.help}"] if finding.help else []
    lines += [f"fix: {command(told)}"] if finding.fix != "none" else []
    return [printable(line) for line in lines]


def command(told: Told) -> str:
    """The command that mends a finding, "" where none does."""
    if told.finding.fix == "none":
        return ""
    unsafe = " --unsafe-fixes" if told.finding.fix == "unsafe" else ""
    return f"vexlint fix --select {told.finding.code}{unsafe} {_quoted(utf8(told.path))} --in-place"


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)


def worst_first(found: Iterator[Told]) -> list[Told]:
    """Over all files: consumers show the first few."""
    return sorted(found, key=lambda t: -t.finding.severity.rank)
