"""`vexlint.toml`, or `[tool.vexlint]` in pyproject.toml: what a project says about its models."""

from __future__ import annotations

import datetime
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from glob import escape
from pathlib import Path
from typing import Any

from vexlint.files import nearest
from vexlint.values import PROFILES, Severity, VexlintError

TASKS = ("detect", "segment", "pose", "obb", "classify", "other")
PRECISIONS = ("fp32", "fp16", "int8")
# What preprocessing can say in words, the usual first; the others are numbers
PICTURES = {
    "colour": ("RGB", "BGR", "GRAY"),
    "layout": ("NCHW", "NHWC"),
    "fit": ("letterbox", "stretch", "crop"),
    "interpolation": ("linear", "nearest", "area"),
}
PREPROCESSING = (*PICTURES, "pad", "scale", "mean", "std")
NMS = ("layout", "score", "iou", "max_detections")
TOLERANCE = ("iou_drift", "class_match", "centre_px", "score", "relative")
DTYPES = (
    *("float16", "bfloat16", "float32", "float", "float64", "double", "bool", "string", "complex64", "complex128"),
    *(f"{sign}int{bits}" for bits in (2, 4, 8, 16, 32, 64) for sign in ("", "u")),
)
RESIZE_MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


@dataclass(frozen=True, slots=True)
class Input:
    """What the contract says of one model input: a size or a symbol's name for each axis, and the element type."""

    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Smallest, usual and largest shape of one input, as TensorRT's optimization profiles want them."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """One `[[model]]` entry; the empty contract says nothing. `path` is a glob relative to the configuration."""

    path: str = ""
    task: str | None = None
    opset: int | None = None
    precision: str | None = None
    resize: str | None = None
    inputs: Mapping[str, Input] = field(default_factory=dict)
    preprocessing: Mapping[str, Any] | None = None
    nms: Mapping[str, Any] | None = None
    tolerance: Mapping[str, float] | None = None
    profile: Mapping[str, Profile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Waiver:
    """One `[[waive]]` entry: findings of `rule` in the files of the glob `path`, at a node that makes `output` or is
    an `op` (everywhere in the file where neither is said), are set aside until the date `until`."""

    rule: str
    path: str
    reason: str = ""
    output: str | None = None
    op: str | None = None
    until: datetime.date | None = None


@dataclass(frozen=True, slots=True)
class Plugin:
    """One `[[plugin]]` entry: a custom node that ships with the deployment, on these runtimes (all where empty).

    `operator` is written `domain::Op`, or `Op` alone for the default domain.
    """

    operator: str
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnTarget:
    """One `[[target]]` entry: a known target (`extends`) under a name of its own, with operators added, removed or
    limited and the plugins it brings. Operators are written `Op`, or `domain::Op`; `limits` holds raw tables in the
    language of target files (docs/targets.md)."""

    name: str
    extends: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    limits: Mapping[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a project configured; the default says nothing. `folder` is where its globs start.

    `select` names rules, `profile` a set of them (see `values.PROFILES`): one of them at most.
    """

    folder: Path = Path()
    targets: tuple[str, ...] = ()
    fail_on: Severity = Severity.ERROR
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    profile: str = ""
    models: tuple[Contract, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    composites: Mapping[str, str] = field(default_factory=dict)
    own_targets: tuple[OwnTarget, ...] = ()

    def contract(self, path: Path) -> Contract:
        """The entry for this file, the empty contract where there is none. Raises VexlintError where two match."""
        found = [c for c in self.models if self.covers(c.path, path)]
        if len(found) > 1:
            globs = " and ".join(repr(c.path) for c in found)
            raise VexlintError(f"{path}: two [[model]] entries match it, {globs}: make their paths exclude each other")
        return found[0] if found else Contract()

    def covers(self, glob: str, path: Path) -> bool:
        """Whether a glob of the configuration covers the file, under the name it was given or the one that links lead
        to. `**` stands for any number of folders."""
        for real in (os.path.abspath, os.path.realpath):
            pattern = os.path.abspath(Path(escape(real(self.folder)), glob))  # noqa: PTH100  links stay, ".." goes
            if _matches(Path(real(path)).parts, Path(pattern).parts):
                return True
        return False


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def find(start: Path) -> Path | None:
    """The configuration file that holds for a folder: `vexlint.toml`, or a pyproject.toml with `[tool.vexlint]`, in it
    or in the nearest folder above it."""
    for folder in (start, *start.parents):
        if (folder / "vexlint.toml").is_file():
            return folder / "vexlint.toml"
        pyproject = folder / "pyproject.toml"
        if pyproject.is_file() and "vexlint" in _toml(pyproject).get("tool", {}):
            return pyproject
    return None


def load(path: Path) -> Config:
    """Reads a configuration file. Raises VexlintError naming file and key for anything it does not understand."""
    data = _toml(path)
    if path.name == "pyproject.toml":
        data = data.get("tool", {}).get("vexlint", {})
    return parse(data, path)


def parse(data: dict[str, Any], path: Path) -> Config:
    """A configuration from its TOML tables; `path` is the file they come from, for messages and globs."""
    read = _Reader(path)
    known = ["targets", "fail_on", "select", "ignore", "profile", "model", "waive", "plugin", "composites", "target"]
    read.keys(data, known, "")
    if "select" in data and "profile" in data:
        raise read.fail("", "select and profile both say which rules run: leave one of them out")
    return Config(
        folder=path.parent,
        targets=read.strings(data, "targets"),
        fail_on=Severity(read.one_of(data, "fail_on", [s.value for s in Severity]) or "error"),
        select=read.strings(data, "select"),
        ignore=read.strings(data, "ignore"),
        profile=read.one_of(data, "profile", list(PROFILES)) or "",
        models=tuple(_contract(read, e, f"model {i}: ") for i, e in read.tables(data, "model")),
        waivers=tuple(_waiver(read, e, f"waive {i}: ") for i, e in read.tables(data, "waive")),
        plugins=tuple(_plugin(read, e, f"plugin {i}: ") for i, e in read.tables(data, "plugin")),
        composites=_composites(read, data),
        own_targets=tuple(_own_target(read, e, f"target {i}: ") for i, e in read.tables(data, "target")),
    )


def parse_contract(data: dict[str, Any], path: Path) -> Contract:
    """One `[[model]]` table; `path` may be left out of it (a rule page's example has no file)."""
    return _contract(_Reader(path), {"path": "*", **data}, "contract: ")


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise VexlintError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise VexlintError(f"{path}: not TOML: {error}") from None


class _Reader:
    """Typed access to TOML tables; every complaint names the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, where: str, message: str) -> VexlintError:
        return VexlintError(f"{self.path}: {where}{message}")

    def keys(self, table: dict[str, Any], known: list[str], where: str) -> None:
        for key in table:
            if key not in known:
                raise self.fail(where, f"unknown key {key!r}{nearest(key, known)}")

    def value(self, table: dict[str, Any], key: str, kind: type | tuple[type, ...], where: str = "") -> Any:
        found = table.get(key)
        if found is not None and (not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool)):
            wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
            raise self.fail(where, f"{key} should be {wanted}, not {found!r}")
        return found

    def one_of(self, table: dict[str, Any], key: str, allowed: list[str], where: str = "") -> str | None:
        found = self.value(table, key, str, where)
        if found is not None and found not in allowed:
            raise self.fail(where, f"{key} = {found!r} is none of {', '.join(allowed)}{nearest(found, allowed)}")
        return str(found) if found is not None else None

    def strings(self, table: dict[str, Any], key: str, where: str = "") -> tuple[str, ...]:
        found = self.value(table, key, list, where) or []
        if not all(isinstance(x, str) for x in found):
            raise self.fail(where, f"{key} should be a list of strings")
        return tuple(found)

    def tables(self, data: dict[str, Any], key: str) -> list[tuple[int, dict[str, Any]]]:
        found = self.value(data, key, list) or []
        if not all(isinstance(x, dict) for x in found):
            raise self.fail("", f"{key} should be an array of tables, [[{key}]]")
        return list(enumerate(found, 1))

    def text(self, table: dict[str, Any], key: str, where: str) -> str:
        found = self.value(table, key, str, where)
        if not found:
            raise self.fail(where, f"{key} is missing")
        return str(found)

    def shape(self, table: dict[str, Any], key: str, kinds: tuple[type, ...], where: str) -> tuple[Any, ...] | None:
        found = self.value(table, key, list, where)
        if found is None:
            return None
        if any(
            not isinstance(d, kinds) or isinstance(d, bool) or not d or (isinstance(d, int) and d < 0) for d in found
        ):
            what = "sizes of 1 or more" + (" or names" if str in kinds else "")
            raise self.fail(where, f"{key} should be a list of {what}, not {found!r}")
        return tuple(found)


def _contract(read: _Reader, table: dict[str, Any], where: str) -> Contract:
    read.keys(table, [f.name for f in fields(Contract)], where)
    opset = read.value(table, "opset", int, where)
    if opset is not None and opset < 1:
        raise read.fail(where, f"opset should be 1 or more, not {opset}")
    inputs = {k: _input(read, v, f"{where}inputs.{k}: ") for k, v in _subtables(read, table, "inputs", where)}
    profile = {k: _profile(read, v, f"{where}profile.{k}: ") for k, v in _subtables(read, table, "profile", where)}
    for name, span in profile.items():
        _within(read, name, inputs.get(name, Input()).shape, span, where)
    return Contract(
        path=read.text(table, "path", where),
        task=read.one_of(table, "task", list(TASKS), where),
        opset=opset,
        precision=read.one_of(table, "precision", list(PRECISIONS), where),
        resize=read.one_of(table, "resize", list(RESIZE_MODES), where),
        inputs=inputs,
        preprocessing=_preprocessing(read, table, where),
        nms=_nms(read, table, where),
        tolerance=_settings(read, table, "tolerance", TOLERANCE, where),
        profile=profile,
    )


def _subtables(read: _Reader, table: dict[str, Any], key: str, where: str) -> list[tuple[str, dict[str, Any]]]:
    found = read.value(table, key, dict, where) or {}
    for name, entry in found.items():
        if not isinstance(entry, dict):
            raise read.fail(where, f"{key}.{name} should be a table")
    return list(found.items())


def _settings(
    read: _Reader, table: dict[str, Any], key: str, known: tuple[str, ...], where: str
) -> dict[str, Any] | None:
    found: dict[str, Any] | None = read.value(table, key, dict, where)
    if found is not None:
        read.keys(found, list(known), f"{where}{key}: ")
    return found


def _preprocessing(read: _Reader, table: dict[str, Any], where: str) -> dict[str, Any] | None:
    found = _settings(read, table, "preprocessing", PREPROCESSING, where)
    for key, known in PICTURES.items():
        read.one_of(found or {}, key, list(known), f"{where}preprocessing: ")
    return found


def _nms(read: _Reader, table: dict[str, Any], where: str) -> dict[str, Any] | None:
    found = _settings(read, table, "nms", NMS, where)
    inside = f"{where}nms: "
    read.value(found or {}, "layout", str, inside)
    for key in ("score", "iou"):
        number = read.value(found or {}, key, (int, float), inside)
        if number is not None and not 0 <= number <= 1:
            raise read.fail(inside, f"{key} should lie in 0..1, not {number}")
    most = read.value(found or {}, "max_detections", int, inside)
    if most is not None and most < 1:
        raise read.fail(inside, f"max_detections should be 1 or more, not {most}")
    return found


def _input(read: _Reader, table: dict[str, Any], where: str) -> Input:
    read.keys(table, ["shape", "dtype"], where)
    return Input(read.shape(table, "shape", (int, str), where), read.one_of(table, "dtype", list(DTYPES), where))


def _profile(read: _Reader, table: dict[str, Any], where: str) -> Profile:
    read.keys(table, ["min", "opt", "max"], where)
    shapes = [read.shape(table, key, (int,), where) for key in ("min", "opt", "max")]
    low, usual, high = shapes
    if low is None or usual is None or high is None:
        raise read.fail(where, "min, opt and max are all needed")
    ordered = all(a <= b <= c for a, b, c in zip(low, usual, high, strict=False))
    if not len(low) == len(usual) == len(high) or not ordered:
        raise read.fail(where, "min <= opt <= max must hold for every axis")
    return Profile(low, usual, high)


def _within(read: _Reader, name: str, shape: tuple[int | str, ...] | None, span: Profile, where: str) -> None:
    """What `inputs` fixes, a profile cannot leave open."""
    for axis, (size, low, high) in enumerate(zip(shape or (), span.min, span.max, strict=False)):
        if isinstance(size, int) and (low, high) != (size, size):
            raise read.fail(
                where,
                f"inputs.{name}.shape fixes axis {axis} to {size}, profile.{name} has it from {low} to {high}: "
                'name the axis in shape ("batch"), or leave the profile out',
            )


def _waiver(read: _Reader, table: dict[str, Any], where: str) -> Waiver:
    read.keys(table, [f.name for f in fields(Waiver)], where)
    until = read.value(table, "until", datetime.date, where)
    return Waiver(
        rule=read.text(table, "rule", where),
        path=read.text(table, "path", where),
        reason=read.value(table, "reason", str, where) or "",
        output=read.value(table, "output", str, where),
        op=read.value(table, "op", str, where),
        until=until.date() if isinstance(until, datetime.datetime) else until,
    )


def _composites(read: _Reader, data: dict[str, Any]) -> dict[str, str]:
    found: dict[str, Any] = read.value(data, "composites", dict) or {}
    for operator, name in found.items():
        if "::" not in operator or not isinstance(name, str):
            raise read.fail("composites: ", f'should be "domain::Op" = "Name", not {operator!r} = {name!r}')
    return found


def _plugin(read: _Reader, table: dict[str, Any], where: str) -> Plugin:
    read.keys(table, ["operator", "targets"], where)
    return Plugin(read.text(table, "operator", where), read.strings(table, "targets", where))


def _own_target(read: _Reader, table: dict[str, Any], where: str) -> OwnTarget:
    read.keys(table, ["name", "extends", "add", "remove", "plugins", "limit"], where)
    limits: dict[str, tuple[dict[str, Any], ...]] = {}
    for number, limit in read.tables(table, "limit"):
        op = read.text(limit, "op", f"{where}limit {number}: ")
        rest = {key: value for key, value in limit.items() if key != "op"}
        limits[op] = (*limits.get(op, ()), rest)
    name = read.text(table, "name", where)
    if "@" in name:
        raise read.fail(where, f"name = {name!r}: '@' is for versions of known runtimes; choose another name")
    return OwnTarget(
        name=name,
        extends=read.text(table, "extends", where),
        add=read.strings(table, "add", where),
        remove=read.strings(table, "remove", where),
        plugins=read.strings(table, "plugins", where),
        limits=limits,
    )
