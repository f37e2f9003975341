"""Scratch folders and repositories for tests that run vexlint, git, pre-commit and the steps of a job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import onnx

from tests.support import DETECTOR, ROOT
from vexlint.values import Finding, Place, Severity

MISH = DETECTOR / "custom_mish.onnx"
CLEAN = DETECTOR / "clean.onnx"
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


def vexlint(*words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """This checkout's program in a folder."""
    return run(sys.executable, "-m", "vexlint", *words, folder=folder, **{"PYTHONPATH": str(ROOT), **more})


def exported_again(path: Path) -> None:
    """The same network under other names, a node in front of it: what another exporter's version makes."""
    model = onnx.load(path)
    kept = {v.name for v in (*model.graph.input, *model.graph.output)}
    for node in model.graph.node:
        node.name = f"node_{node.name}"
        for names in (node.input, node.output):
            names[:] = [n if n in kept or not n else f"val_{n}" for n in names]
    for named in (*model.graph.initializer, *model.graph.value_info):
        named.name = f"val_{named.name}"
    front = onnx.helper.make_node("Identity", ["images"], ["val_front"], "front")
    for node in model.graph.node:
        node.input[:] = ["val_front" if n == "images" else n for n in node.input]
    model.graph.node.insert(0, front)
    onnx.save(model, path)


def some(
    code: str = "VEX301", place: str = "a", count: int = 1, severity: str = "warning", op: str = "Resize"
) -> Finding:
    """A finding at a node that makes a tensor of its own name."""
    where = Place("node", "graph", 1, "", op, place, place)
    mark = f"{code}||::{op}|{place}|0"
    return Finding(code, "x", Severity(severity), None, None, "m", count, where, (), {}, "none", "", mark)
