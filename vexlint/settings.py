"""Command line over configuration over defaults: what one run judges with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vexlint import composites, config, rulebook, targets
from vexlint.engine import Settings
from vexlint.files import nearest
from vexlint.values import Severity, VexlintError


def settle(
    path: Path | None = None,
    target: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: str = "",
) -> Settings:
    """The settings of a run. An option given replaces the configuration's; `ignore` adds to it.

    Raises VexlintError for a name (of a rule, target, severity) that names nothing, in options, configuration and
    waivers, plugins and composites alike.
    """
    found = path or config.find(Path.cwd())
    project = config.load(found) if found else config.Config()
    if fail_on and fail_on not in [s.value for s in Severity]:
        names = [s.value for s in Severity]
        raise VexlintError(f"--fail-on {fail_on!r} is none of {', '.join(names)}{nearest(fail_on, names)}")
    book = rulebook.load()
    for waiver in project.waivers:
        rulebook.find(book, waiver.rule)
    for plugin in project.plugins:
        targets.resolve(list(plugin.targets), project.own_targets)
    if project.composites:
        composites.find("", "", project.composites)
    judged, notes = targets.resolve(list(target or project.targets), project.own_targets)
    return Settings(
        rules=rulebook.select(book, tuple(select) or project.select, (*project.ignore, *ignore)),
        config=replace(project, fail_on=Severity(fail_on) if fail_on else project.fail_on),
        targets=judged,
        notes=tuple(notes),
    )
