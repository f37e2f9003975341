"""From what a user writes on the command line to the list of files to check."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from vexlint.files import nearest
from vexlint.values import VexlintError

SUFFIXES = (".onnx", ".onnxtxt", ".onnxtext")


def expand(names: list[str]) -> list[Path]:
    """The files of these paths, folders (walked, hidden folders left out) and globs, each once, in the order given.

    A file named outright is taken whatever its suffix. Raises VexlintError for a path that does not exist and for a
    folder or glob that holds no model: a gate must not pass because it looked at nothing.
    """
    found: dict[Path, None] = {}
    for name in names:
        for path in _files(name):
            found.setdefault(path)
    return list(found)


def _files(name: str) -> list[Path]:
    path = Path(name)
    if not name:
        raise VexlintError("an empty path: a variable that is not set?")  # Path("") is the working directory
    if path.is_dir():
        files = _walk(path)
        if not files:
            raise VexlintError(f"{name}: no model in this folder (looked for {', '.join('*' + s for s in SUFFIXES)})")
        return files
    if path.exists() or path.is_symlink():  # a link that leads nowhere is a file that cannot be read
        return [path]
    if glob.has_magic(name):
        matches = sorted(Path(p) for p in glob.glob(name, recursive=True))  # noqa: PTH207  absolute globs too
        files = [f for m in matches for f in (_walk(m) if m.is_dir() else [m] if m.suffix in SUFFIXES else [])]
        if not files:
            raise VexlintError(f"{name}: no model matches this pattern")
        return files
    beside = [str(p) for p in path.parent.iterdir()] if path.parent.is_dir() else []
    raise VexlintError(f"{name}: no such file or folder{nearest(name, beside)}")


def _walk(folder: Path) -> list[Path]:
    files = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        files += [Path(parent, n) for n in sorted(names) if n.endswith(SUFFIXES)]
    return files
