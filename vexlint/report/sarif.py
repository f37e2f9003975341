"""SARIF 2.1.0 (OASIS, errata 01), one run. What is special here:

A model has no lines: a finding's region is line 1, and its logical locations say the node. Fixes cannot be `fix`
objects, which replace text or bytes at known places; the command is in `properties`. `primaryLocationLineHash` is the
finding's mark, so that code scanning neither merges all findings of line 1 nor reopens them after a re-export.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from vexlint import __version__
from vexlint.report.gate import KNOWN, Gate, Told, command, digest, from_root, sentences, told
from vexlint.report.json import finite
from vexlint.report.text import printable
from vexlint.values import Place, Report, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
RELATED = 100  # other places of one cause that are listed


def render(report: Report, gate: Gate) -> str:
    """The report as one SARIF log."""
    entries = list(told(report, gate, aside=True))
    codes = sorted({entry.finding.code for entry in entries})
    run = {
        "tool": {"driver": _driver(codes, gate)},
        "invocations": [_invocation(report, gate)],
        "originalUriBaseIds": {ROOT: {"description": {"text": "the root of the repository"}}},
        "artifacts": [
            {"location": _artifact(path), "roles": ["analysisTarget"]}
            for path in dict.fromkeys(from_root(file.path, gate.root) for file in report.files)
        ],
        "results": [_result(entry, codes, gate) for entry in entries],
        "properties": {"targets": list(report.targets)},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, allow_nan=False) + "\n"


def _driver(codes: list[str], gate: Gate) -> dict[str, Any]:
    return {
        "name": "vexlint",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(gate, code) for code in codes],
    }


def _rule(gate: Gate, code: str) -> dict[str, Any]:
    """A rule with its whole page as help, less the head that is for programs."""
    rule = gate.rules[code]
    page = re.sub(r"^```toml rule\n.*?^```\n+", "", rule.page, flags=re.DOTALL | re.MULTILINE)
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary}."},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"since": rule.since, "fix": rule.fix_safety, "profile": rule.profile},
    }


def _invocation(report: Report, gate: Gate) -> dict[str, Any]:
    """Whether every file could be judged, and what kept one from it."""
    notes = [
        {
            "level": "error",
            "message": {"text": printable(f"could not be judged: {file.reason}")},
            "locations": [_physical(from_root(file.path, gate.root))],
        }
        for file in report.files
        if file.status == "incomplete"
    ]
    return {"executionSuccessful": not notes, "toolExecutionNotifications": notes}


def _result(entry: Told, codes: list[str], gate: Gate) -> dict[str, Any]:
    finding = entry.finding
    location = _physical(entry.path)
    if finding.place.kind != "file":
        location["logicalLocations"] = [_logical(finding.place)]
    properties = {"target": finding.target, "verdict": finding.verdict, "data": finite(dict(finding.data))}
    if fix := command(entry):
        properties |= {"fix": finding.fix, "fixCommand": fix}
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": LEVELS[finding.severity],
        "message": {"text": "\n".join(sentences(entry))},
        "locations": [location],
        "partialFingerprints": {
            "vexlint/v1": finding.fingerprint,
            "primaryLocationLineHash": digest(entry.mark),
        },
        "occurrenceCount": finding.count,
        "properties": properties,
    }
    if finding.more:
        result["relatedLocations"] = [{"logicalLocations": [_logical(p)]} for p in finding.more[:RELATED]]
    if gate.baseline:
        result["baselineState"] = "unchanged" if entry.reason == KNOWN else "new"
    if entry.reason:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": entry.reason}]
    return result


def _physical(path: str) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": {"startLine": 1}}}


def _artifact(path: str) -> dict[str, Any]:
    """Relative to the root; an absolute URI for a file outside it."""
    uri = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": ROOT}


def _logical(place: Place) -> dict[str, Any]:
    label = place.name or place.value
    named = {"name": printable(label)} if label else {}
    return {**named, "fullyQualifiedName": printable(str(place)), "kind": place.kind}
