"""What commands share: exit codes, formats, colour, the settings that their options and the configuration make."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vexlint.values import Report, Severity, VexlintError

if TYPE_CHECKING:
    from vexlint.engine import Settings

CLEAN, FINDINGS, NOT_JUDGED = 0, 1, 2  # exit codes
FORMATS = ["text", "json"]

Targets = Annotated[
    list[str],
    typer.Option("--target", help="Where the model goes, e.g. tensorrt@11.5; repeatable.", show_default=False),
]
Select = Annotated[
    list[str], typer.Option("--select", help="Only these rules: codes, starts of codes, names.", show_default=False)
]
Ignore = Annotated[list[str], typer.Option("--ignore", help="Not these rules.", show_default=False)]
FailOn = Annotated[
    str, typer.Option("--fail-on", help="error, warning or info: exit 1 from this severity on.", show_default="error")
]
Format = Annotated[str, typer.Option("--format", help="text or json.")]
Profile = Annotated[
    str,
    typer.Option(
        "--profile", help="desktop, board or release: a set of rules, each with those before.", show_default="desktop"
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Configuration file.", show_default="vexlint.toml here or above")
]


def settle(
    config: Path | None, target: list[str], select: list[str], ignore: list[str], fail_on: str, profile: str = ""
) -> Settings:
    """The settings of a run; what the user should know of them goes to stderr."""
    from vexlint import settings

    run = settings.settle(config, target, select, ignore, fail_on, profile)
    for note in run.notes:
        sys.stderr.write(f"vexlint: {note}\n")
    return run


def check_format(name: str, known: list[str] = FORMATS) -> None:
    """Raises VexlintError for a format that there is not; called before any work is done."""
    from vexlint.files import nearest

    if name not in known:
        raise VexlintError(f"unknown format {name!r}{nearest(name, known)}; known: {', '.join(known)}")


def render(report: Report, output_format: str) -> str:
    """What was found, in one of `FORMATS`."""
    if output_format == "json":
        from vexlint.report import json

        return json.render(report)
    from vexlint.report import text

    return text.render(report, colour())


def colour() -> bool:
    """Whether stdout is a terminal whose user has not asked for no colour (no-color.org)."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def exit_code(report: Report, fail_on: Severity) -> int:
    """2 where a file could not be judged, whatever else was found; 1 for findings at or above `fail_on`; else 0."""
    if report.incomplete:
        return NOT_JUDGED
    worst = max((f.severity.rank for file in report.files for f in file.findings), default=0)
    return FINDINGS if worst >= fail_on.rank else CLEAN
