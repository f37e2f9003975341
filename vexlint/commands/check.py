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
    exit_code,
    render,
    settle,
)
from vexlint.values import FileReport, Report

if TYPE_CHECKING:
    from vexlint.engine import Prober, Settings

MANY = 20  # from this many files on a terminal shows a progress bar


def check(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    target: Targets = [],  # noqa: B006  typer copies it
    select: Select = [],  # noqa: B006
    ignore: Ignore = [],  # noqa: B006
    fail_on: FailOn = "",
    output_format: Format = "text",
    config: ConfigFile = None,
    probe: Annotated[bool, typer.Option("--probe", help="Ask the installed runtimes of the targets, too.")] = False,
) -> None:
    """Say what is wrong with models, without running them."""
    check_format(output_format)
    run = settle(config, target, select, ignore, fail_on)
    prober = _prober(run, target) if probe else None
    report = Report(tuple(_check_all(paths, run, prober)), tuple(map(str, run.targets)))
    sys.stdout.write(render(report, output_format))
    _say_without_contract(report, run)
    raise typer.Exit(exit_code(report, run.config.fail_on))


def _say_without_contract(report: Report, run: Settings) -> None:
    """A contract that does not cover a file judges nothing of it: a misspelt path must not look like a clean model."""
    bare = [f.path for f in report.files if run.config.models and not run.config.contract(Path(f.path)).path]
    if bare:
        more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
        sys.stderr.write(f"vexlint: no contract: no [[model]] of the configuration covers {bare[0]}{more}\n")


def _prober(run: Settings, target: list[str]) -> Prober:
    from vexlint.probes import ask

    return ask.prober(ask.Options(names=tuple(target) or run.config.targets), run.targets)


def _check_all(names: list[str], run: Settings, prober: Prober | None) -> list[FileReport]:
    from vexlint import paths

    files = paths.expand(names)
    if len(files) < MANY or not sys.stderr.isatty():
        return [_check_one(file, run, prober) for file in files]
    with typer.progressbar(files, label="checking", file=sys.stderr) as bar:
        return [_check_one(file, run, prober) for file in bar]


def _check_one(file: Path, run: Settings, prober: Prober | None) -> FileReport:
    from vexlint import engine

    gc.freeze()  # what lives now lives to the end: collecting, here and when Python exits, need not look at it
    report = engine.check_file(file, run, prober=prober)
    gc.collect()  # a model is full of cycles: nothing else lets go of it before the next file
    return report
