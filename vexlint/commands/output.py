"""The formats of `vexlint check`: one to stdout, any number to files."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vexlint.commands.common import check_format, colour
from vexlint.values import Report, VexlintError

if TYPE_CHECKING:
    from vexlint.engine import Settings

FORMATS = ["text", "json", "sarif", "github", "gitlab", "junit", "markdown"]
Formats = Annotated[
    list[str],
    typer.Option(
        "--format",
        help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}; FORMAT=FILE writes a file. Repeatable.",
        show_default="text",
    ),
]


@dataclass(frozen=True, slots=True)
class Output:
    """A format, and the file it goes to; stdout where there is none."""

    format: str
    file: Path | None


def parse(words: list[str], statistics: bool) -> list[Output]:
    """`sarif`, `sarif=out.sarif` -> what to write. Raises VexlintError for a format that there is not, for two results
    in one place, and for a folder that is not there: before any work is done."""
    outputs = []
    for word in words:
        name, equals, file = word.partition("=")
        check_format(name, FORMATS)
        if equals and not file:
            raise VexlintError(f"--format {word}: no file after the =")
        outputs.append(Output(name, Path(file) if equals else None))
    shown = [o.format for o in outputs if o.file is None]
    if len(shown) > 1:
        raise VexlintError(
            f"stdout takes one result, not {' and '.join(shown)}: write the others to files, --format {shown[1]}=FILE"
        )
    files = [os.path.realpath(o.file) for o in outputs if o.file]
    for file in files:
        if files.count(file) > 1:
            raise VexlintError(f"{file}: two formats cannot go to one file")
        if not Path(file).parent.is_dir():
            raise VexlintError(f"{file}: there is no folder {Path(file).parent}: make it first")
        if Path(file).is_dir():
            raise VexlintError(f"{file}: is a folder, not a file to write")
    if statistics and "text" not in [o.format for o in outputs]:
        raise VexlintError("--statistics counts in text: add --format text")
    return outputs


def spare(outputs: list[Output], models: list[Path], config: Path | None, baseline: Path | None) -> None:
    """Raises VexlintError where a result would be written over what is read: a model, the configuration, a baseline."""
    known = {os.path.realpath(m): "a model that is checked" for m in models}
    known |= {os.path.realpath(config): "the configuration"} if config else {}
    known |= {os.path.realpath(baseline): "the baseline"} if baseline else {}
    for output in outputs:
        if output.file and (what := known.get(os.path.realpath(output.file))):
            raise VexlintError(f"{output.file}: is {what}: write the {output.format} elsewhere")


def write(outputs: list[Output], report: Report, run: Settings, statistics: bool, baseline: bool) -> None:
    """Every format, stdout first; `baseline` says whether there was one.

    Raises VexlintError for a file that cannot be written, when all others are.
    """
    failed = []
    for output in sorted(outputs, key=lambda o: o.file is not None):
        text = _render(output, report, run, statistics, baseline)
        if output.file is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            continue
        try:
            replace(output.file, text)
        except OSError as error:
            failed.append(f"{output.file}: cannot be written: {error.strerror}")
    if failed:
        raise VexlintError("; ".join(failed))


def _render(output: Output, report: Report, run: Settings, statistics: bool, baseline: bool) -> str:
    if output.format == "text":
        from vexlint.report import text

        coloured = output.file is None and colour()
        return text.statistics(report, coloured) if statistics else text.render(report, coloured)
    if output.format == "json":
        from vexlint.report import json

        return json.render(report)
    from importlib import import_module

    from vexlint import repository
    from vexlint.report.gate import Gate

    gate = Gate(repository.root(Path.cwd()), run.rules, run.config.fail_on, baseline)
    rendered: str = import_module(f"vexlint.report.{output.format}").render(report, gate)
    return rendered


def replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all: beside it, then renamed. What is no regular file (/dev/stderr) is written to.

    Raises OSError.
    """
    import tempfile

    if path.exists() and not path.is_file():
        path.write_text(text, "utf-8", "backslashreplace", "\n")
        return
    real = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(prefix=f".{real.name[:100]}.", dir=real.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o666 & ~_umask()
        Path(name).chmod(mode)
        Path(name).replace(real)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
