"""`vexlint show`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def show(path: Annotated[Path, typer.Argument(help="One model.")]) -> None:
    """Print a model as text that a diff can read: names in place of indices, digests in place of weights."""
    from vexlint import show as showing

    for line in showing.lines(path):
        sys.stdout.write(line + "\n")
