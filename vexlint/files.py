"""Where vexlint's own files lie."""

from __future__ import annotations

from pathlib import Path

from vexlint.values import VexlintError


def rules_folder() -> Path:
    """`rules/`: inside the package in an installed wheel, beside it in a checkout or an editable install."""
    package = Path(__file__).resolve().parent
    inside = package / "rules"
    return inside if inside.is_dir() else package.parent / "rules"


def check_regular(path: Path) -> None:
    """Raises VexlintError where a path is taken by what is no file: writing beside it and renaming would put a file in
    the place of a device or a pipe."""
    if path.is_dir() or (path.exists() and not path.is_file()):
        what = "it is a folder" if path.is_dir() else "it is no regular file"
        raise VexlintError(f"{path}: cannot be written: {what}")


def one_of(option: str, value: str, known: list[str]) -> None:
    """Raises VexlintError with the nearest name for a value that an option does not know; "" is an option left out."""
    if value and value not in known:
        raise VexlintError(f"{option} {value!r} is none of {', '.join(known)}{nearest(value, known)}")


def nearest(name: str, known: list[str]) -> str:
    """ "; did you mean X?" where one of the known names is close, else "": the end of an error message."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
