"""The runtimes a file may go to: `rules/targets/*.json`, and the names people give them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from vexlint.files import nearest, rules_folder
from vexlint.values import VexlintError

Basis = Literal["enforced", "documented", "none", "unknown"]
Name = tuple[str, tuple[int, ...]]  # runtime, version numbers

ALIASES = {
    "ort": "onnxruntime",
    "onnxruntime-cpu": "onnxruntime",
    "trt": "tensorrt",
    "rtx": "tensorrt-rtx",
    "ov": "openvino",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """A version limit with what it rests on. `min` and `max` are inclusive; None where there is none known.

    basis: "enforced" the runtime refuses beyond it; "documented" its makers say so; "none" it accepts any number;
    "unknown" nobody has said.
    """

    max: int | None
    basis: Basis
    min: int = 1


@dataclass(frozen=True, slots=True)
class Target:
    """One runtime version. `named` is True where the user named it, False for a default target."""

    runtime: str
    version: str
    opsets: Mapping[str, Limit]  # domain ("" is ai.onnx) -> limit; a domain that is not in it has none known
    ir: Limit
    dynamic_shapes: Literal["runs", "profile", "static"]
    source: str
    named: bool = False

    def __str__(self) -> str:
        return "onnx" if self.runtime == "onnx" else f"{self.runtime}@{self.version}"


def default_names() -> list[str]:
    """The dated list in `rules/targets/default.toml`."""
    names: list[str] = tomllib.loads((rules_folder() / "targets" / "default.toml").read_text("utf-8"))["targets"]
    return names


def resolve(names: list[str]) -> tuple[tuple[Target, ...], list[str]]:
    """The targets of these names, or the default ones where the list is empty, and notes on versions not known exactly.

    A version may be left out (the newest known), be a prefix (`onnxruntime@1.32`), or lie between known ones (the
    nearest lower one is taken, and a note says so). Raises VexlintError for a runtime that is not known and for a
    version below the oldest known.
    """
    chosen: list[Target] = []
    notes: list[str] = []
    for name in names or default_names():
        path, note = _find(name)
        target = _load(path, bool(names))
        if target not in chosen:
            chosen.append(target)
        notes += [note] if note else []
    return tuple(chosen), notes


def covers(name: str, target: Target) -> bool:
    """Whether a name as a user writes it (an alias, a version's prefix or none) stands for this target."""
    runtime, _, version = name.partition("@")
    same = ALIASES.get(runtime, runtime) == target.runtime
    return same and f"{target.version}.".startswith(f"{version}." if version else "")


def known() -> list[str]:
    """Every known target as `runtime@version`, oldest version first."""
    return [f"{runtime}@{text}" for (runtime, _), (text, _) in sorted(_index().items())]


@cache
def _index() -> dict[Name, tuple[str, Path]]:
    found = {}
    for path in (rules_folder() / "targets").glob("*.json"):
        runtime, _, version = path.stem.rpartition("-")
        found[runtime, _numbers(version)] = (version, path)
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _find(name: str) -> tuple[Path, str]:
    runtime, _, version = name.partition("@")
    runtime = ALIASES.get(runtime, runtime)
    versions = sorted(v for r, v in _index() if r == runtime)
    if not versions:
        runtimes = sorted({r for r, _ in _index()})
        raise VexlintError(f"unknown target {name!r}{nearest(runtime, runtimes)}; known: {', '.join(runtimes)}")
    if version and not re.fullmatch(r"\d+(\.\d+)*", version):
        newest = _index()[runtime, versions[-1]][0]
        raise VexlintError(f"target {name!r}: {version!r} is no version; write {runtime}@{newest}")
    wanted = _numbers(version) if version else ()
    chosen = next((v for v in reversed(versions) if v[: len(wanted)] == wanted), None)
    note = ""
    if chosen is None:
        lower = [v for v in versions if v < wanted]
        oldest = _index()[runtime, versions[0]][0]
        if not lower:
            raise VexlintError(
                f"target {name!r} is older than the oldest version known, {runtime}@{oldest}; nothing is guessed"
            )
        chosen = lower[-1]
        where = "newer than every version known" if chosen == versions[-1] else "not known"
        note = f"{runtime}@{version} is {where}: judged as {runtime}@{_index()[runtime, chosen][0]}"
    return _index()[runtime, chosen][1], note


@cache
def _load(path: Path, named: bool) -> Target:
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return Target(
        runtime=data["runtime"],
        version=data["version"],
        opsets={d: Limit(**limit) for d, limit in data["opsets"].items()},
        ir=Limit(**data["ir"]),
        dynamic_shapes=data["dynamic_shapes"],
        source=data["source"],
        named=named,
    )
