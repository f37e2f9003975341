"""Where vexlint's own files lie."""

from __future__ import annotations

from pathlib import Path

from vexlint.values import VexlintError


def rules_folder() -> Path:
    """`rules/`: inside the package in an installed wheel, beside it in a checkout or an editable install."""
    package = Path(__file__).resolve().parent
    inside = package / "rules"
    return inside if inside.is_dir() else package.parent / "rules"


def one_of(option: str, value: str, known: list[str]) -> None:
    """Raises VexlintError with the nearest name for a value that an option does not know; "" is an option left out."""
    if value and value not in known:
        raise VexlintError(f"{option} {value!r} is none of {', '.join(known)}{nearest(value, known)}")


def nearest(name: str, known: list[str]) -> str:
    """ "; did you mean X?" where one of the known names is close, else "": the end of an error message."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
