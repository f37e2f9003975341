"""What vexlint says of a file, in this process, as the measurements count it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from vexlint import engine, rulebook, targets
from vexlint.config import Config
from vexlint.engine import Settings
from vexlint.values import PROFILES, FileReport, Severity

RULES = rulebook.load()


def judged(path: Path, target: str, profile: str = "") -> FileReport:
    """The report on a file for one named target, by the rules of a profile, the default one where it is ""."""
    rules = rulebook.select(RULES, (), (), profile or PROFILES[0])
    return engine.check_file(path, Settings(rules, Config(folder=path.parent), targets.resolve([target])[0]))


def told(report: FileReport) -> Counter[str]:
    """ "CODE severity" -> how many places, of errors and warnings."""
    counts: Counter[str] = Counter()
    for finding in report.findings:
        if finding.severity is not Severity.INFO:
            counts[f"{finding.code} {finding.severity.value}"] += finding.count
    return counts


def errors(report: FileReport) -> tuple[str, ...]:
    """ "CODE message" of each error."""
    return tuple(f"{f.code} {f.message}" for f in report.findings if f.severity is Severity.ERROR)
