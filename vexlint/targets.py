"""The runtimes a file may go to: `rules/targets/*.json`, and the names people give them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint import tables
from vexlint.files import nearest, rules_folder
from vexlint.tables import Target, numbers
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from vexlint.config import OwnTarget

Name = tuple[str, tuple[int, ...]]  # runtime, version numbers

ALIASES = {
    "ort": "onnxruntime", "onnxruntime-cpu": "onnxruntime", "trt": "tensorrt", "rtx": "tensorrt-rtx", "ov": "openvino",
    "opencv": "opencv-dnn", "coreml-mlprogram": "coreml", "rknn-toolkit2": "rknn", "pnnx": "ncnn",
}  # fmt: skip


def default_names() -> list[str]:
    """The dated list in `rules/targets/default.toml`."""
    names: list[str] = tomllib.loads((rules_folder() / "targets" / "default.toml").read_text("utf-8"))["targets"]
    return names


def resolve(names: list[str], own: tuple[OwnTarget, ...] = ()) -> tuple[tuple[Target, ...], list[str]]:
    """The targets of these names, or the default ones where the list is empty, and notes on versions not known exactly.

    A version may be left out (the newest known), be a prefix (`onnxruntime@1.32`), or lie between known ones (the
    nearest lower one is taken, and a note says so). `own` are the configuration's targets, called by their names alone.
    Raises VexlintError for a runtime that is not known and for a version below the oldest known.
    """
    chosen: list[Target] = []
    notes: list[str] = []
    for name in names or default_names():
        mine = next((o for o in own if o.name == name), None)
        path, note = _find(mine.extends if mine else name, [o.name for o in own])
        target = _load(path, bool(names))
        if mine:
            target = _extended(target, mine)
        if target not in chosen:
            chosen.append(target)
        notes += [note] if note else []
    return tuple(chosen), notes


def split(name: str) -> tuple[str, str]:
    """ "trt@8.6" -> ("tensorrt", "8.6"): the runtime under the name it is known by, and the version, "" where none."""
    runtime, _, version = name.partition("@")
    return ALIASES.get(runtime, runtime), version


def covers(name: str, target: Target) -> bool:
    """Whether a name as a user writes it (an alias, a version's prefix or none) stands for this target."""
    if name == target.name:
        return True
    runtime, version = split(name)
    return runtime == target.runtime and f"{target.version}.".startswith(f"{version}." if version else "")


def known() -> list[str]:
    """Every known target as `runtime@version`, oldest version first."""
    return [f"{runtime}@{text}" for (runtime, _), (text, _) in sorted(_index().items())]


@cache
def _index() -> dict[Name, tuple[str, Path]]:
    found = {}
    for path in (rules_folder() / "targets").glob("*-*.json"):
        runtime, _, version = path.stem.rpartition("-")
        found[runtime, numbers(version)] = (version, path)
    return found


def _find(name: str, own: list[str]) -> tuple[Path, str]:
    runtime, version = split(name)
    versions = sorted(v for r, v in _index() if r == runtime)
    if not versions:
        runtimes = [*own, *sorted({r for r, _ in _index()})]
        raise VexlintError(
            f"unknown target {name!r}{nearest(name if own else runtime, runtimes)}; known: {', '.join(runtimes)}"
        )
    if version and not re.fullmatch(r"\d+(\.\d+)*", version):
        newest = _index()[runtime, versions[-1]][0]
        raise VexlintError(f"target {name!r}: {version!r} is no version; write {runtime}@{newest}")
    wanted = numbers(version) if version else ()
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
    return tables.load(path, named)


def is_runtime(name: str) -> bool:
    """Whether a name is that of a known runtime, or short for one."""
    return split(name)[0] in {runtime for runtime, _ in _index()}


def _key(op: str) -> str:
    """An operator as tables write it: the default domain is left out."""
    return op.removeprefix("ai.onnx::")


def _extended(base: Target, own: OwnTarget) -> Target:
    """A known target with what the configuration changes. Raises VexlintError for an entry that is none."""
    table = dict(base.table)
    said: dict[str, Any] = {"evidence": tables.SAID}
    for op in map(_key, own.remove):
        table[op] = {"refuses": {tables.ANY: f"{own.name} does not have it"}, **said}
    for op in map(_key, own.add):
        table[op] = {"runs": tables.ANY, **said}
    for name, limits in own.limits.items():
        entry = table.get(op := _key(name), {"runs": tables.ANY, **said})
        own_limits = [{"seen": tables.SAID, **limit} for limit in limits]
        table[op] = {**entry, "limits": [*entry.get("limits", []), *own_limits]}
    brought = {*own.plugins, *(op for op in own.add if "::" in op)}
    made = replace(base, name=own.name, plugins=base.plugins | brought, table=table, asked={})
    for op in map(_key, own.limits):
        domain, _, name = op.rpartition("::")
        made.operator(domain, name)
    return made
