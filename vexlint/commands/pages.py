"""`vexlint explain`, `vexlint rules` and `vexlint contract`: what to read and what to write down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vexlint.files import one_of
from vexlint.values import VexlintError


def explain(rule: Annotated[str, typer.Argument(help="A code (VEX301) or a name (resize-align-corners).")]) -> None:
    """Print the page of one rule: what it sees, why it hurts, examples."""
    from vexlint import rulebook

    book = rulebook.load()
    codes = rulebook.named(book, rule.upper() if rule.lower().startswith("vex") else rule)
    if len(codes) > 1:
        raise VexlintError(f"{rule} stands for {len(codes)} rules, explain one of them: {', '.join(codes)}")
    sys.stdout.write(book[codes[0]].page)


def rules(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="RULE", help="Only these: codes, starts of codes (VEX3), names.", show_default=False),
    ] = None,
    severity: Annotated[
        str, typer.Option(help="Only those of this severity: error, warning or info.", show_default=False)
    ] = "",
    fixable: Annotated[bool, typer.Option("--fixable", help="Only those that `vexlint fix` mends.")] = False,
    profile: Annotated[
        str, typer.Option(help="Only those that this profile has: desktop, board or release.", show_default=False)
    ] = "",
) -> None:
    """List the rules: code, severity, the safety of the fix, name, what each sees; from which profile on, or deeper."""
    from vexlint import rulebook
    from vexlint.values import PROFILES, Severity

    one_of("--severity", severity, [s.value for s in Severity])
    one_of("--profile", profile, list(PROFILES))
    book = rulebook.load()
    codes = {code for name in names or ["ALL"] for code in rulebook.named(book, name)}
    held = PROFILES[: PROFILES.index(profile) + 1] if profile else PROFILES
    for rule in book.values():
        if rule.code not in codes or rule.profile not in held or severity not in ("", rule.severity):
            continue
        if fixable and rule.fix_safety == "none":
            continue
        fix = "" if rule.fix_safety == "none" else f"{rule.fix_safety} fix"
        since = f" (from the profile {rule.profile} on)" if rule.profile != PROFILES[0] else ""
        deeper = f" (looks deeper from the profile {rule.thorough} on)" if rule.thorough != PROFILES[0] else ""
        line = f"{rule.code}  {rule.severity.value:<7}  {fix:<10}  {rule.name:<26}  {rule.summary}{since or deeper}\n"
        sys.stdout.write(line)


def contract(path: Annotated[Path, typer.Argument(help="One model.")]) -> None:
    """Draft the [[model]] entry of vexlint.toml from a file."""
    from vexlint import contract as drafting

    sys.stdout.write(drafting.draft(path))
