"""Command line over configuration over defaults: what one run judges with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vexlint import config, rulebook, targets
from vexlint.engine import Settings
from vexlint.files import one_of
from vexlint.values import PROFILES, Severity, VexlintError


def settle(
    path: Path | None = None,
    target: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: str = "",
    profile: str = "",
) -> Settings:
    """The settings of a run. An option given replaces the configuration's; `ignore` adds to it; `select` and `profile`
    each replace both, for both say which rules run.

    Raises VexlintError for a name (of a rule, target, severity) that names nothing, in options, configuration and
    waivers, plugins and composites alike.
    """
    found = path or config.find(Path.cwd())
    project = config.load(found) if found else config.Config()
    one_of("--fail-on", fail_on, [s.value for s in Severity])
    one_of("--profile", profile, list(PROFILES))
    if select and profile:
        raise VexlintError("--select and --profile both say which rules run: leave one of them out")
    book = rulebook.load()
    for waiver in project.waivers:
        rulebook.find(book, waiver.rule)
    if project.plugins or project.own_targets or project.models:
        from vexlint import declarations

        declarations.check(project, book, found)
    if project.composites:
        from vexlint import composites

        composites.find("", "", project.composites)
    judged, notes = targets.resolve(list(target or project.targets), project.own_targets)
    chosen = tuple(select) if select or profile else project.select
    held = profile or ("" if select else project.profile) or PROFILES[0]
    return Settings(
        rules=rulebook.select(book, chosen, (*project.ignore, *ignore), held),
        config=replace(project, fail_on=Severity(fail_on) if fail_on else project.fail_on),
        targets=judged,
        notes=tuple(notes),
    )
