"""`vexlint fix`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vexlint.commands.common import (
    CLEAN,
    FINDINGS,
    NOT_JUDGED,
    ConfigFile,
    FailOn,
    Format,
    Ignore,
    Profile,
    Select,
    Targets,
    check_format,
    colour,
    exit_code,
    settle,
)
from vexlint.values import Report, VexlintError


def fix(
    path: Annotated[Path, typer.Argument(help="One model.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write.", show_default=False)] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write over the source.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what would change, write nothing.")] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="Also fixes that change numbers on purpose.")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify/--no-verify", help="Prove the fixes before writing.")] = True,
    shape: Annotated[
        list[str], typer.Option(help="Freeze an input, e.g. images=1x3x320x320; repeatable.", show_default=False)
    ] = [],  # noqa: B006  typer copies it
    expect: Annotated[
        Path | None, typer.Option(help="Recorded outputs that the fixed model has to give.", show_default=False)
    ] = None,
    target: Targets = [],  # noqa: B006
    select: Select = [],  # noqa: B006
    ignore: Ignore = [],  # noqa: B006
    profile: Profile = "",
    fail_on: FailOn = "",
    output_format: Format = "text",
    config: ConfigFile = None,
) -> None:
    """Repair a model exactly, prove that it computes the same, touch nothing else."""
    from vexlint import repairs
    from vexlint.report import fix_json, fix_text
    from vexlint.verify.inputs import parse_shapes

    check_format(output_format)
    if [output is not None, in_place, diff].count(True) != 1:
        raise VexlintError("say where to write: one of -o FILE, --in-place, --diff")
    if expect is not None and not verify:
        raise VexlintError("--expect asks for a proof and --no-verify for none: say one of them")
    if diff and output_format != "text":
        raise VexlintError("--diff shows text: leave --format out")
    run = settle(config, target, select, ignore, fail_on, profile)
    options = repairs.Options(unsafe_fixes, verify, parse_shapes(shape), expect)
    repair = repairs.plan(path, run, options)
    if diff:
        shown = repairs.difference(repair)
        sys.stdout.write(shown)
        raise typer.Exit(FINDINGS if shown else CLEAN)
    judging = settle(config, target, [], ignore, fail_on, profile) if select else run  # --select is which fixes
    report = repairs.carry_out(repair, output or path, judging, in_place)
    sys.stdout.write(fix_json.render(report) if output_format == "json" else fix_text.render(report, colour()))
    if report.remaining is None:
        raise typer.Exit(NOT_JUDGED)
    raise typer.Exit(exit_code(Report((report.remaining,), ()), run.config.fail_on))
