"""`vexlint explain`, `vexlint rules` and `vexlint contract`: what to read and what to write down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def explain(rule: Annotated[str, typer.Argument(help="A code (VEX301) or a name (resize-align-corners).")]) -> None:
    """Print the page of one rule: what it sees, why it hurts, examples."""
    from vexlint import rulebook

    sys.stdout.write(rulebook.find(rulebook.load(), rule).page)


def rules() -> None:
    """List every rule: code, severity, the safety of its fix, name, what it sees."""
    from vexlint import rulebook

    for rule in rulebook.load().values():
        fix = "" if rule.fix_safety == "none" else f"{rule.fix_safety} fix"
        sys.stdout.write(f"{rule.code}  {rule.severity.value:<7}  {fix:<10}  {rule.name:<26}  {rule.summary}\n")


def contract(path: Annotated[Path, typer.Argument(help="One model.")]) -> None:
    """Draft the [[model]] entry of vexlint.toml from a file."""
    from vexlint import contract as drafting

    sys.stdout.write(drafting.draft(path))
