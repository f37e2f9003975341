"""Text for people: grouped by file, the worst first, at most 80 columns, colour where asked for."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from vexlint.values import FileReport, Finding, Report, Severity

WIDTH = 80
LONGEST = 400  # characters of one word: a file may hold a name of a megabyte
SAMPLES = 3  # other places of one cause that are shown
COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}


def render(report: Report, colour: bool = False) -> str:
    """The whole report, ending in a newline. Files without findings are counted, not listed."""
    blocks = ["\n".join(_file(file, colour)) for file in report.files if _speaks(file)]
    return "\n\n".join([*blocks, _summary(report, colour)]) + "\n"


def statistics(report: Report, colour: bool = False) -> str:
    """One line a rule that found something, the worst and most frequent first; then the summary."""
    found: dict[str, list[Finding]] = {}
    files: dict[str, set[str]] = {}
    for file in report.files:
        for finding in file.findings:
            found.setdefault(finding.code, []).append(finding)
            files.setdefault(finding.code, set()).add(file.path)
    lines = []
    for code, group in sorted(found.items(), key=lambda item: (-_worst(item[1]).rank, -len(item[1]), item[0])):
        worst, fix = _worst(group), group[0].fix
        head = paint(f"{worst.value:<7}", COLOURS[worst], colour)
        where = f"{len(group):>5,} in {many(len(files[code]), 'file')}"
        lines.append(f"{where:<20}  {head}  {code}  {group[0].name}" + ("" if fix == "none" else f"  ({fix} fix)"))
    return "\n".join([*lines, *([""] if lines else []), _summary(report, colour)]) + "\n"


def _worst(findings: list[Finding]) -> Severity:
    return max((f.severity for f in findings), key=lambda s: s.rank)


def _speaks(file: FileReport) -> bool:
    return bool(file.findings or file.waived or file.probes or file.status == "incomplete")


def _file(file: FileReport, colour: bool) -> Iterator[str]:
    yield paint(printable(file.path), "1", colour)
    if file.probes:
        from vexlint.report import probe_text

        for probe in file.probes:
            yield from probe_text.block(probe, colour)
    for finding in file.findings:
        yield from _finding(finding, colour)
    for waived in file.waived:
        until = f", until {waived.until}" if waived.until else ""
        yield from wrap(f"waived {waived.finding.code} at {waived.finding.place}: {waived.reason}{until}", 2)
    if file.status == "incomplete" and not any(f.message == file.reason for f in file.findings):
        yield from wrap(f"incomplete: {file.reason}", 2)


def _finding(finding: Finding, colour: bool) -> Iterator[str]:
    head = paint(finding.severity.value, COLOURS[finding.severity], colour)
    yield f"  {head} {paint(finding.code, '1', colour)} {finding.name}"
    yield from wrap(finding.message, 4)
    if finding.place.kind != "file":
        yield from wrap(f"at {finding.place}", 4, hang=3)
        for place in finding.more[:SAMPLES]:
            yield from wrap(f"   {place}", 4, hang=3)
        hidden = finding.count - 1 - len(finding.more[:SAMPLES])
        if hidden > 0:
            yield f"       and {hidden} more"
    if finding.help:
        yield from wrap(f"-> {finding.help}", 4, hang=3)
    if finding.fix != "none":
        yield "    fix: vexlint fix" + (" --unsafe-fixes" if finding.fix == "unsafe" else "")


def _summary(report: Report, colour: bool) -> str:
    counts = [(report.count(s), s) for s in Severity]
    said = ", ".join(paint(many(n, s.value), COLOURS[s] if n else "", colour) for n, s in counts)
    text = f"{said} in {many(len(report.files), 'file')}"
    if report.incomplete:
        text += f"; {report.incomplete} could not be judged"
    waived = sum(len(f.waived) for f in report.files)
    text += f"; {waived} waived" if waived else ""
    known = sum(len(f.baselined) for f in report.files)
    text += f"; {known} in the baseline" if known else ""
    return "\n".join([text, *wrap(f"judged for {', '.join(report.targets)}", 0)])


def many(count: int, thing: str) -> str:
    """ "1 file", "1,312 files"."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def wrap(text: str, indent: int, hang: int = 0) -> list[str]:
    """Lines of at most WIDTH columns; a word longer than that (a path, a node name) stays whole up to LONGEST."""
    return textwrap.wrap(
        re.sub(rf"(\S{{{LONGEST - 40}}})\S{{40,}}(\S{{40}})", r"\1…\2", printable(text)),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )


def printable(text: str) -> str:
    """The text with escapes in place of what would steer the terminal: names come from foreign files."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def paint(text: str, code: str, colour: bool) -> str:
    """The text in an ANSI colour where colour is wanted."""
    return f"\033[{code}m{text}\033[0m" if colour and code else text
