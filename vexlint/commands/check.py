"""`vexlint check`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vexlint.commands.common import (
    ConfigFile,
    FailOn,
    Format,
    Ignore,
    Select,
    Targets,
    check_format,
    colour,
    exit_code,
    settle,
)
from vexlint.values import FileReport, Report

if TYPE_CHECKING:
    from vexlint.engine import Settings

MANY = 20  # from this many files on a terminal shows a progress bar


def check(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    target: Targets = [],  # noqa: B006  typer copies it
    select: Select = [],  # noqa: B006
    ignore: Ignore = [],  # noqa: B006
    fail_on: FailOn = "",
    output_format: Format = "text",
    config: ConfigFile = None,
) -> None:
    """Say what is wrong with models, without running them."""
    from vexlint.report import json, text

    check_format(output_format)
    run = settle(config, target, select, ignore, fail_on)
    report = Report(tuple(_check_all(paths, run)), tuple(map(str, run.targets)))
    sys.stdout.write(json.render(report) if output_format == "json" else text.render(report, colour()))
    raise typer.Exit(exit_code(report, run.config.fail_on))


def _check_all(names: list[str], run: Settings) -> list[FileReport]:
    from vexlint import engine, paths

    files = paths.expand(names)
    if len(files) < MANY or not sys.stderr.isatty():
        return [engine.check_file(file, run) for file in files]
    with typer.progressbar(files, label="checking", file=sys.stderr) as bar:
        return [engine.check_file(file, run) for file in bar]
