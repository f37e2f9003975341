"""Markdown for the comment of a merge request: a table, the worst first, then what to do about each line of it.

Names come from foreign files, so nothing of a message is markup, and no @name calls a person.
"""

from __future__ import annotations

import re
from itertools import groupby

from vexlint.report.gate import KNOWN, Gate, Told, from_root, sentences, title, told, unsaid, worst_first
from vexlint.report.text import many
from vexlint.values import Report, Severity

ROWS = 50  # of the table
LONGEST = 300  # characters of a cell
FITS = 60_000  # characters in all: GitHub takes 65,536 in a comment
SIGNS = {Severity.ERROR: "🔴 error", Severity.WARNING: "🟠 warning", Severity.INFO: "🔵 info"}


def render(report: Report, gate: Gate) -> str:
    """The comment, at most `FITS` characters; what does not fit is counted."""
    entries = worst_first(told(report, gate))
    parts = [f"### vexlint: {_head(report)}\n"]
    unjudged = [(from_root(f.path, gate.root), reason) for f in report.files if (reason := unsaid(f))]
    parts += [f"- ⚫ {code(path)} {escaped(reason)}\n" for path, reason in unjudged[:ROWS]]
    parts += [f"\n{len(unjudged) - ROWS} more could not be judged\n"] if len(unjudged) > ROWS else []
    if entries:
        parts.append("\n| | rule | file | what |\n|---|---|---|---|\n" + "".join(map(_row, entries[:ROWS])))
    if len(entries) > ROWS:
        parts.append(f"\nand {many(len(entries) - ROWS, 'more finding')}\n")
    parts += _details(entries[:ROWS], FITS - 2000 - sum(map(len, parts)))
    parts += _aside(report, gate)
    parts.append(f"\njudged for {code(', '.join(report.targets))}\n")
    return "".join(parts)


def _head(report: Report) -> str:
    counts = [many(report.count(s), s.value) for s in Severity]
    text = f"{', '.join(counts)} in {many(len(report.files), 'file')}"
    return text + (f"; {report.incomplete} could not be judged" if report.incomplete else "")


def _row(entry: Told) -> str:
    finding = entry.finding
    what = f"{escaped(finding.message)}<br>at {code(str(finding.place))}"
    more = f" and {finding.count - 1} more" if finding.count > 1 else ""
    return f"| {SIGNS[finding.severity]} | {title(finding)} | {code(entry.path)} | {what}{more} |\n"


def _details(entries: list[Told], room: int) -> list[str]:
    """A folded block a file with what to do; as many as there is room for."""
    blocks: list[str] = []
    for path, group in groupby(sorted(entries, key=lambda t: t.path), lambda t: t.path):
        lines = [f"**{title(e.finding)}**\n{_fenced(sentences(e))}" for e in group]
        block = f"\n<details><summary>{code(path)}</summary>\n\n" + "\n".join(lines) + "\n</details>\n"
        if len(block) > room:
            return [*blocks, "\nThe details of more files do not fit here.\n"]
        room -= len(block)
        blocks.append(block)
    return blocks


def _aside(report: Report, gate: Gate) -> list[str]:
    aside = [t for t in told(report, gate, aside=True) if t.reason]
    if not aside:
        return []
    known = sum(len(f.baselined) for f in report.files)
    counts = [f"{len(aside) - known} waived"] if len(aside) > known else []
    counts += [f"{known} in the baseline"] if known else []
    lines = [f"- {t.finding.code} {code(t.path)}: {escaped(t.reason)}\n" for t in aside[:ROWS] if t.reason != KNOWN]
    return [f"\n<details><summary>{', '.join(counts)}</summary>\n\n", *lines, "\n</details>\n"]


def _fenced(lines: list[str]) -> str:
    """Lines word for word, in a fence that none of them can close."""
    text = "\n".join(line if len(line) <= 2 * LONGEST else line[: 2 * LONGEST] + "…" for line in lines)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}text\n{text}\n{fence}\n"


def escaped(text: str) -> str:
    """Text that stays text, also in a cell of a table: nothing in it is markup, a link or a mention."""
    line = " ".join(_short(text).split())
    line = re.sub(r"([\\`*_{}\[\]<>()#+!|~$&-])", r"\\\1", line)
    return re.sub(r"(?<!\w)@(?=\w)", "@\u200b", line).replace("://", ":\u200b//")


def code(text: str) -> str:
    """A name as code; no character of it ends the code or the cell."""
    return f"<code>{_html(_short(text))}</code>"


def _html(text: str) -> str:
    """Text inside HTML of a Markdown line: what either would take for markup is an entity."""
    return re.sub(r"[^\w\s./,:=-]|_", lambda m: f"&#{ord(m[0])};", " ".join(text.split()))


def _short(text: str) -> str:
    from vexlint.report.text import printable

    shown = printable(text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 60]}…{shown[-59:]}"
