"""`vexlint check`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vexlint.commands import output
from vexlint.commands.common import ConfigFile, FailOn, Ignore, Profile, Select, Targets, exit_code, settle
from vexlint.commands.output import Formats
from vexlint.values import FileReport, Report, VexlintError

if TYPE_CHECKING:
    from vexlint.baseline import Baseline
    from vexlint.config import Waiver
    from vexlint.engine import Prober, Settings
    from vexlint.rulebook import Rule
    from vexlint.values import Finding

MANY = 20  # from this many files on a terminal shows a progress bar


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH", help="Files, folders or globs; none with --changed-since: all.", show_default=False
        ),
    ] = None,
    target: Targets = [],  # noqa: B006  typer copies it
    select: Select = [],  # noqa: B006
    ignore: Ignore = [],  # noqa: B006
    profile: Profile = "",
    fail_on: FailOn = "",
    output_format: Formats = ["text"],  # noqa: B006
    statistics: Annotated[bool, typer.Option("--statistics", help="Counts by rule instead of findings.")] = False,
    baseline: Annotated[
        Path | None, typer.Option(help="Set aside what this file knows; fail on what is new.", show_default=False)
    ] = None,
    changed_since: Annotated[
        str | None,
        typer.Option(help="Only models that changed since a commit, or in a range A..B.", show_default=False),
    ] = None,
    config: ConfigFile = None,
    probe: Annotated[bool, typer.Option("--probe", help="Ask the installed runtimes of the targets, too.")] = False,
) -> None:
    """Say what is wrong with models, without running them."""
    outputs = output.parse(output_format, statistics)
    run = settle(config, target, select, ignore, fail_on, profile)
    sources = {rule.source for rule in run.rules.values()}
    if not probe and "probe" in sources and "model" not in sources:
        raise VexlintError("what is selected is what runtimes say: add --probe")
    known = _load(baseline)
    files = choose(paths or [], changed_since, config)
    output.spare(outputs, files, configuration(config), baseline)
    prober = _prober(run, target) if probe else None
    report = check_all(files, run, prober)
    if known:
        report = _without(report, known, run)
    _say_without_contract(report, run)
    _say_idle_waivers(report, run)
    output.write(outputs, report, run, statistics, known is not None)
    raise typer.Exit(exit_code(report, run.config.fail_on))


def choose(paths: list[str], changed_since: str | None, config: Path | None) -> list[Path]:
    """The files that a command line names. Raises VexlintError where it names none."""
    from vexlint.paths import expand

    if changed_since is None:
        if not paths:
            raise VexlintError("Missing argument 'PATH...'; see vexlint check --help")
        return expand(paths)
    from vexlint import repository

    among = expand(paths) if paths else None
    outright = [Path(p) for p in paths if Path(p).is_file()]
    files = repository.changed(changed_since, Path.cwd(), among, configuration(config), outright)
    if not files:
        sys.stderr.write(f"vexlint: no model changed since {changed_since}\n")
    return files


def configuration(config: Path | None) -> Path | None:
    """The configuration file of a run, named or found."""
    from vexlint.config import find

    return config or find(Path.cwd())


def _load(path: Path | None) -> Baseline | None:
    if path is None:
        return None
    from vexlint import baseline

    return baseline.load(path)


def _without(report: Report, known: Baseline, run: Settings) -> Report:
    """What the baseline does not know; what it has and nobody found goes to stderr."""
    from vexlint import baseline

    report, stale = baseline.compare(report, known, run.rules)
    sys.stderr.writelines(f"vexlint: {sentence}\n" for sentence in stale)
    return report


def _say_without_contract(report: Report, run: Settings) -> None:
    """A contract that does not cover a file judges nothing of it: a misspelt path must not look like a clean model."""
    bare = [f.path for f in report.files if run.config.models and not run.config.contract(Path(f.path)).path]
    if bare:
        more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
        sys.stderr.write(f"vexlint: no contract: no [[model]] of the configuration covers {bare[0]}{more}\n")


def _say_idle_waivers(report: Report, run: Settings) -> None:
    """A finding that was mended needs no waiver, and one for a misspelt node waives nothing: told where all files that
    a waiver covers were judged by all that its rule can look at."""
    whole = [r for r in run.rules.values() if r.source == "model" and r.deep and not r.precision]
    for waiver in run.config.waivers:
        covered = [f for f in report.files if run.config.covers(waiver.path, Path(f.path))]
        judged = [f for f in covered if f.status == "checked" and _rule(waiver, whole)]
        lapsed = any(finding.code == "VEX003" for f in covered for finding in f.findings)
        waived = [w.finding for f in covered for w in f.waived if w.reason == waiver.reason]
        used = _rule(waiver, waived)
        if covered and len(judged) == len(covered) and not used and not lapsed:
            sys.stderr.write(f"vexlint: the waiver of {waiver.rule} for {waiver.path} sets nothing aside in this run\n")


def _rule(waiver: Waiver, named: Iterable[Rule | Finding]) -> bool:
    """Whether one of these has the code or name that a waiver is for."""
    return any(waiver.rule.lower() in (one.code.lower(), one.name) for one in named)


def _prober(run: Settings, target: list[str]) -> Prober:
    from vexlint.probes import ask

    return ask.prober(ask.Options(names=tuple(target) or run.config.targets), run.targets)


def check_all(files: list[Path], run: Settings, prober: Prober | None = None) -> Report:
    """One entry a file, in order; a progress bar on a terminal where there are many."""
    gc.freeze()  # what lives now lives to the end: collecting need not look at it
    if len(files) < MANY or not sys.stderr.isatty():
        reports = [_check_one(file, run, prober) for file in files]
    else:
        with typer.progressbar(files, label="checking", file=sys.stderr) as bar:
            reports = [_check_one(file, run, prober) for file in bar]
    return Report(tuple(reports), tuple(map(str, run.targets)))


def _check_one(file: Path, run: Settings, prober: Prober | None) -> FileReport:
    from vexlint import engine

    gc.collect()  # of the model before this one: little is left of it, see `Model.release`
    gc.freeze()
    return engine.check_file(file, run, prober=prober)
