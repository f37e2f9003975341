"""Scratch repositories for tests that run git, pre-commit and the steps of a job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.support import ROOT

BIN = Path(sys.executable).parent
PACKAGED = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "action.yml", "vexlint", "rules")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """No configuration of git but its own, this environment's programs first, and packages taken from here: pip neither
    downloads nor builds what is installed already."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PIP_", "PRE_COMMIT"))}
    return {
        **kept,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say --no-build-isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        **more,
    }


def run(*words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A program in a folder; the caller looks at the exit code."""
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def git(folder: Path, *words: str) -> str:
    """What git answers; it has to succeed."""
    done = run("git", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(folder: Path, message: str = "a change") -> str:
    """Commits all that there is; the commit's hash. Makes the repository where there is none."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message, "--no-verify")
    return git(folder, "rev-parse", "HEAD").strip()


def package(folder: Path) -> str:
    """A repository of vexlint as this checkout has it, with what its package is made of; the commit's hash."""
    folder.mkdir()
    for name in PACKAGED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return commit(folder)
