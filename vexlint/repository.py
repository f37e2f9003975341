"""What git says: where a repository begins and which models a range of commits changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from vexlint.paths import SUFFIXES
from vexlint.values import VexlintError


def root(folder: Path) -> Path:
    """The folder of the repository that a folder is in, without asking git; the folder itself where it is in none."""
    start = Path(os.path.abspath(folder))  # noqa: PTH100  links stay: paths are compared as they are written
    return next((p for p in (start, *start.parents) if (p / ".git").exists()), start)


def changed(
    since: str, folder: Path, among: Iterable[Path] | None, configuration: Path | None, outright: Iterable[Path] = ()
) -> list[Path]:
    """The models that changed, of `among`, else of the whole repository that `folder` is in; in the order given, else
    by path. They are judged as they lie in the working tree.

    `since` is a commit (compared is the working tree, untracked files with it, from where the branches parted) or a
    range A..B. External data belongs to the models that read it; a change of the configuration concerns every model.
    Of what git is told to ignore nobody can tell whether it changed: those files that are named `outright` are taken.
    Raises VexlintError where git has no answer, and where the working tree has something else than the end of a range.
    """
    if not since or since.startswith("-"):
        raise VexlintError(f"--changed-since {since!r} is no commit: name a branch, a tag, a commit or a range A..B")
    top = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    files = _names(top, _differing(since, top))
    moved = files & _names(top, _moved(since, top))
    if among is None:
        listed = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        among = [_shown(p, folder) for p in sorted(_names(top, listed)) if p.suffix in SUFFIXES]
    _same_here(since, [p for p in among if Path(os.path.realpath(p)) in moved or _reads(p, moved)])
    among = [p for p in among if p.exists()]
    if configuration is not None and Path(os.path.realpath(configuration)) in files:
        return among
    files |= _ignored(top, outright)
    data = {p for p in files if p.suffix not in SUFFIXES}
    return [p for p in among if Path(os.path.realpath(p)) in files or _reads(p, data)]


def _same_here(since: str, moved: list[Path]) -> None:
    if moved:
        raise VexlintError(
            f"--changed-since {since}: {moved[0]} is another in the working tree than at the end of the range, and the "
            "working tree is judged: check that commit out first"
        )


def _ignored(top: Path, paths: Iterable[Path]) -> set[Path]:
    """Those of these files that git is told to ignore."""
    names = [os.path.realpath(p) for p in paths]
    words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--")
    return _names(top, _git(top, *words, *names)) if names else set()


def _differing(since: str, top: Path) -> bytes:
    """The names of the files that differ, each ending in a NUL."""
    names = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff"]
    if ".." in since:
        return _git(top, *names, since, "--")
    untracked = _git(top, "ls-files", "-z", "--others", "--exclude-standard")
    return _git(top, *names, "--merge-base", since, "--") + untracked


def _moved(since: str, top: Path) -> bytes:
    """The names of the files that the working tree has otherwise than the end of a range, or lacks."""
    if ".." not in since:
        return b""
    end = since.rpartition("..")[2] or "HEAD"
    return _git(top, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", end, "--")


def _names(top: Path, listed: bytes) -> set[Path]:
    return {top / os.fsdecode(name) for name in listed.split(b"\0") if name}


def _shown(path: Path, folder: Path) -> Path:
    """As a person in that folder would write it; absolute where it lies above."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _reads(path: Path, data: set[Path]) -> bool:
    """Whether a model has external data among these files. One that cannot be read is taken to: its check says why."""
    folder = Path(os.path.realpath(path.parent))
    if not any(folder in file.parents for file in data):
        return False  # external data lies in the model's folder
    from vexlint.model import native, tensors
    from vexlint.model.read import read
    from vexlint.model.wire import Unreadable, payload_of

    try:
        model = read(path)
    except (Unreadable, native.Stopped):
        return True
    for tensor in tensors.everywhere(model.proto):
        record = tensors.external(tensor)
        if record and not (model.stripped and payload_of(tensor, model.stripped)):
            location = record.get("location", "")
            if "\0" not in location and Path(os.path.realpath(folder / location)) in data:
                return True
    return False


def _git(folder: Path, *words: str) -> bytes:
    """What git answers. Raises VexlintError with git's own words where it refuses."""
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=False)
    except FileNotFoundError:
        raise VexlintError("--changed-since asks git, and there is no git here: install it or name the files") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise VexlintError(
            f"--changed-since: git says {said[0]!r}: run it inside a repository that has the commit and its history "
            "(in CI: a checkout with fetch-depth 0)"
        )
    return done.stdout
