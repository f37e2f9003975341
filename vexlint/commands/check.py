"""`vexlint check`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
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
    check_format(output_format)
    run = settle(config, target, select, ignore, fail_on)
    report = Report(tuple(_check_all(paths, run)), tuple(map(str, run.targets)))
    sys.stdout.write(_render(report, output_format))
    _say_without_contract(report, run)
    raise typer.Exit(exit_code(report, run.config.fail_on))


def _say_without_contract(report: Report, run: Settings) -> None:
    """A contract that does not cover a file judges nothing of it: a misspelt path must not look like a clean model."""
    bare = [f.path for f in report.files if run.config.models and not run.config.contract(Path(f.path)).path]
    if bare:
        more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
        sys.stderr.write(f"vexlint: no contract: no [[model]] of the configuration covers {bare[0]}{more}\n")


def _render(report: Report, output_format: str) -> str:
    if output_format == "json":
        from vexlint.report import json

        return json.render(report)
    from vexlint.report import text

    return text.render(report, colour())


def _check_all(names: list[str], run: Settings) -> list[FileReport]:
    from vexlint import paths

    files = paths.expand(names)
    if len(files) < MANY or not sys.stderr.isatty():
        return [_check_one(file, run) for file in files]
    with typer.progressbar(files, label="checking", file=sys.stderr) as bar:
        return [_check_one(file, run) for file in bar]


def _check_one(file: Path, run: Settings) -> FileReport:
    from vexlint import engine

    gc.freeze()  # what lives now lives to the end: collecting, here and when Python exits, need not look at it
    report = engine.check_file(file, run)
    gc.collect()  # a model is full of cycles: nothing else lets go of it before the next file
    return report
