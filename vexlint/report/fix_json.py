"""What `fix` did, for programs: schema 1, see docs/json.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from vexlint import __version__
from vexlint.outcomes import FixReport
from vexlint.report.json import SCHEMA, file_entry


def render(report: FixReport) -> str:
    """The report as one JSON document, ending in a newline."""
    document: dict[str, Any] = {
        "vexlint": __version__,
        "schema": SCHEMA,
        "path": report.path,
        "output": report.output,
        "reason": report.reason,
        "changes": [asdict(c) for c in report.changes],
        "proofs": [{"stage": p.stage, "status": p.status, "text": p.text} for p in report.proofs],
        "remaining": file_entry(report.remaining) if report.remaining else None,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
