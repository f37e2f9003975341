"""JSON for programs, schema 1: see docs/json.md. Keys are only ever added within a schema."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from vexlint import __version__
from vexlint.values import FileReport, Finding, Report, Severity

SCHEMA = 1


def render(report: Report) -> str:
    """The report as one JSON document, ending in a newline."""
    document = {
        "vexlint": __version__,
        "schema": SCHEMA,
        "files": [file_entry(f) for f in report.files],
        "targets": list(report.targets),
        "summary": {
            "errors": report.count(Severity.ERROR),
            "warnings": report.count(Severity.WARNING),
            "infos": report.count(Severity.INFO),
            "files": len(report.files),
            "incomplete": report.incomplete,
        },
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"  # ASCII: any locale can print it


def file_entry(file: FileReport) -> dict[str, Any]:
    """One file's entry; `probes` only where runtimes were asked."""
    return {
        "path": file.path,
        "sha256": file.sha256,
        "status": file.status,
        "reason": file.reason,
        "findings": [_finding(f) for f in file.findings],
        "waived": [{"finding": _finding(w.finding), "reason": w.reason, "until": w.until or None} for w in file.waived],
        "baselined": [_finding(f) for f in file.baselined],
    } | ({"probes": [asdict(p) for p in file.probes]} if file.probes else {})


def _finding(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "severity": finding.severity.value, "data": finite(dict(finding.data))}


def finite(data: Any) -> Any:
    """The same, with null where a number is NaN or infinite: JSON has no word for those."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
