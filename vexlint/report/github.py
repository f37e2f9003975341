"""Annotations of a GitHub job: one workflow command a finding, attached to the file (it has no lines: line 1).

GitHub shows the first ten errors, warnings and notices of a step each, so the worst come first. Escapes are those of
actions/toolkit, `core/src/command.ts`.
"""

from __future__ import annotations

from vexlint.report.gate import Gate, from_root, sentences, title, told, unsaid, worst_first
from vexlint.values import Report, Severity

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, gate: Gate) -> str:
    """One line a finding that counts and a file that could not be judged; "" where there is none."""
    lines = [
        _command("error", from_root(file.path, gate.root), "vexlint", reason)
        for file in report.files
        if (reason := unsaid(file))
    ]
    for entry in worst_first(told(report, gate)):
        kind = COMMANDS[entry.finding.severity]
        lines.append(_command(kind, entry.path, title(entry.finding), "\n".join(sentences(entry))))
    return "".join(f"{line}\n" for line in lines)


def _command(kind: str, path: str, head: str, text: str) -> str:
    return f"::{kind} file={_property(path)},line=1,title={_property(head)}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
