"""A Code Quality report for GitLab: a JSON list of issues, as its documentation of the artifact describes them."""

from __future__ import annotations

import json
from typing import Any

from vexlint.report.gate import Gate, digest, from_root, sentences, title, told, unsaid, utf8
from vexlint.values import Report, Severity

SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}
BLOCKER = "blocker"  # a file that could not be judged


def render(report: Report, gate: Gate) -> str:
    """One issue a finding that counts and a file that could not be judged."""
    issues = [
        _issue(reason, "incomplete", f"{path}|incomplete", BLOCKER, path)
        for file in report.files
        if (reason := unsaid(file)) and (path := from_root(file.path, gate.root))
    ]
    for entry in told(report, gate):
        finding = entry.finding
        severity = SEVERITIES[finding.severity]
        issue = _issue(sentences(entry)[0], title(finding), entry.mark, severity, entry.path)
        issues.append({**issue, "content": {"body": "\n\n".join(sentences(entry))}})
    return json.dumps(issues, indent=1) + "\n"


def _issue(text: str, name: str, mark: str, severity: str, path: str) -> dict[str, Any]:
    return {
        "description": text,
        "check_name": name,
        "fingerprint": digest(mark),
        "severity": severity,
        "location": {"path": utf8(path), "lines": {"begin": 1}},
    }
