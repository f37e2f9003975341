"""The command line: each command calls one function and prints one report.

stdout carries the result and nothing else; progress and messages go to stderr. Exit codes: 0 clean, 1 findings at or
above --fail-on, 2 could not judge (a file, an option, a configuration).
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vexlint import __version__
from vexlint.values import FileReport, Report, Severity, VexlintError

if TYPE_CHECKING:
    from vexlint.engine import Settings

CLEAN, FINDINGS, NOT_JUDGED = 0, 1, 2
INTERRUPTED = 130  # what typer makes of Ctrl-C, where it does not raise Abort
MANY = 20  # from this many files on a terminal shows a progress bar

app = typer.Typer(
    name="vexlint",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The `vexlint` program. A user's mistake is a sentence on stderr and exit code 2, never a traceback."""
    gc.disable()  # a run is short and its objects live to its end: collecting would cost a third of a large check
    try:
        code = app(standalone_mode=False)
    except VexlintError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted")
    except BrokenPipeError:  # the reader of stdout went away: vexlint check … | head
        sys.stderr.close()
        sys.exit(NOT_JUDGED)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _fail(f"{error.format_message().rstrip('.')}; see vexlint --help")  # typer's own complaints
    if code == INTERRUPTED:
        _fail("interrupted")
    sys.exit(code)


def _fail(message: str) -> None:
    sys.stderr.write(f"vexlint: {message}\n")
    sys.exit(NOT_JUDGED)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"vexlint {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Finds what a runtime will refuse or silently compute differently in an exported ONNX vision model."""


@app.command()
def check(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    target: Annotated[
        list[str], typer.Option(help="Where the model goes, e.g. tensorrt@11.5; repeatable.", show_default=False)
    ] = [],  # noqa: B006  typer copies it
    select: Annotated[
        list[str], typer.Option(help="Only these rules: codes, starts of codes, names.", show_default=False)
    ] = [],  # noqa: B006
    ignore: Annotated[list[str], typer.Option(help="Not these rules.", show_default=False)] = [],  # noqa: B006
    fail_on: Annotated[
        str, typer.Option(help="error, warning or info: exit 1 from this severity on.", show_default="error")
    ] = "",
    output_format: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    config: Annotated[
        Path | None, typer.Option(help="Configuration file.", show_default="vexlint.toml here or above")
    ] = None,
) -> None:
    """Say what is wrong with models, without running them."""
    from vexlint import settings

    printer = _printer(output_format)
    run = settings.settle(config, target, select, ignore, fail_on)
    for note in run.notes:
        sys.stderr.write(f"vexlint: {note}\n")
    report = Report(tuple(_check_all(paths, run)), tuple(map(str, run.targets)))
    sys.stdout.write(printer(report))
    raise typer.Exit(exit_code(report, run.config.fail_on))


@app.command()
def explain(rule: Annotated[str, typer.Argument(help="A code (VEX301) or a name (resize-align-corners).")]) -> None:
    """Print the page of one rule: what it sees, why it hurts, examples."""
    from vexlint import rulebook

    sys.stdout.write(rulebook.find(rulebook.load(), rule).page)


@app.command()
def rules() -> None:
    """List every rule: code, severity, name, what it sees."""
    from vexlint import rulebook

    for rule in rulebook.load().values():
        sys.stdout.write(f"{rule.code}  {rule.severity.value:<7}  {rule.name:<26}  {rule.summary}\n")


@app.command()
def contract(path: Annotated[Path, typer.Argument(help="One model.")]) -> None:
    """Draft the [[model]] entry of vexlint.toml from a file."""
    from vexlint import contract as drafting

    sys.stdout.write(drafting.draft(path))


def exit_code(report: Report, fail_on: Severity) -> int:
    """2 where a file could not be judged, whatever else was found; 1 for findings at or above `fail_on`; else 0."""
    if report.incomplete:
        return NOT_JUDGED
    worst = max((f.severity.rank for file in report.files for f in file.findings), default=0)
    return FINDINGS if worst >= fail_on.rank else CLEAN


def _check_all(names: list[str], run: Settings) -> list[FileReport]:
    from vexlint import engine, paths

    files = paths.expand(names)
    if len(files) < MANY or not sys.stderr.isatty():
        return [engine.check_file(file, run) for file in files]
    with typer.progressbar(files, label="checking", file=sys.stderr) as bar:
        return [engine.check_file(file, run) for file in bar]


def _printer(name: str) -> Callable[[Report], str]:
    from vexlint.files import nearest
    from vexlint.report import json, text

    if name == "text":
        return lambda report: text.render(report, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    if name == "json":
        return json.render
    raise VexlintError(f"unknown format {name!r}{nearest(name, ['text', 'json'])}; known: text, json")
