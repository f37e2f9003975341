"""`vexlint baseline update`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vexlint.commands.check import check_all
from vexlint.commands.common import ConfigFile, Ignore, Profile, Select, Targets, settle
from vexlint.commands.output import replace
from vexlint.values import VexlintError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Findings to live with, written down: `vexlint check --baseline FILE` fails on new ones only."""


@app.command()
def update(
    file: Annotated[Path, typer.Argument(help="The baseline, made where there is none.", show_default=False)],
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    target: Targets = [],  # noqa: B006  typer copies it
    select: Select = [],  # noqa: B006
    ignore: Ignore = [],  # noqa: B006
    profile: Profile = "",
    config: ConfigFile = None,
) -> None:
    """Write down what is found now, as `check` would with the same options."""
    from vexlint import baseline
    from vexlint.paths import expand
    from vexlint.report.text import many

    run = settle(config, target, select, ignore, "", profile)
    old = baseline.load(file) if file.exists() else baseline.Baseline(file)
    report = check_all(expand(paths), run)
    new = baseline.update(report, old, run.rules)
    try:
        replace(file, baseline.render(new))
    except OSError as error:
        raise VexlintError(f"{file}: cannot be written: {error.strerror}") from None
    count = sum(map(len, new.files.values()))
    sys.stdout.write(f"{file}: {many(count, 'finding')} in {many(len(new.files), 'file')}\n")
