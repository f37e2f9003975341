"""What a target file says: version limits, facts about the runtime, and one line an operator.

`docs/targets.md` describes the format. A file's top level is checked when it is loaded; an operator's line is checked
and understood when somebody asks for that operator, so that loading a table of 190 operators takes a millisecond.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from vexlint.files import nearest, rules_folder
from vexlint.values import VexlintError

Basis = Literal["enforced", "documented", "none", "unknown"]
Status = Literal["runs", "partial", "refuses", "unknown"]
Evidence = Literal["probe", "doc", "configuration"]

ANY = "*"  # every schema version of an operator
DEFAULT_RULE = "VEX207"
SAID: Literal["configuration"] = "configuration"  # evidence that a target of one's own rests on
VERDICTS = ["refuses", "differs", "falls-back", "needs-plugin"]  # what a limit may say


@dataclass(frozen=True, slots=True)
class Limit:
    """A version limit with what it rests on. `min` and `max` are inclusive; None where there is none known.

    basis: "enforced" the runtime refuses beyond it; "documented" its makers say so; "none" it accepts any number;
    "unknown" nobody has said: then `between` may hold the lowest and the highest number that it can be.
    """

    max: int | None
    basis: Basis
    min: int = 1
    between: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Restriction:
    """A condition under which a node is not simply run. Every part that is given has to hold, and to be known to hold.

    versions: schema versions it is about, () for all; opset: the file imports this one or a later one.
    attribute: the attribute (with the schema's default) is one of these; only: it is known and none of these.
    present: the node writes the attribute; ones: the list holds something else than ones; positive: the number is > 0.
    given: these inputs are given; outputs: one of these outputs is asked for.
    varies: of these inputs those that are given depend on what the caller feeds (at least one is given).
    computed: as varies, and sizes that depend on open axes of the file's inputs count, too.
    axis_inside: `axis` is known not to be the last one; shrinks: input 1 is a constant with an element below 1.
    resizes: the first input and output are not known to be of one shape; forks: the branches of an If whose condition
    is no constant give results of different ranks.
    nonzero: the input is a constant with an element other than 0; above: … with a first element larger than this;
    repeats: … with two equal rows along its last axis.
    types, ranks: the input has one of these element types, ranks; ranks_only: its rank is known and none of these.
    verdict: "" is what a lack means for the target (see `Target.lacking`); else "refuses", "differs", "falls-back",
    "needs-plugin". rule: the rule that reports it. why: a phrase for people. seen: how it was observed.
    """

    versions: tuple[int, ...] = ()
    opset: int = 0
    attribute: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    ones: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    given: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    axis_inside: bool = False
    shrinks: bool = False
    resizes: bool = False
    forks: bool = False
    varies: tuple[int, ...] = ()
    computed: tuple[int, ...] = ()
    nonzero: tuple[int, ...] = ()
    above: Mapping[int, int] = field(default_factory=dict)
    repeats: tuple[int, ...] = ()
    types: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    ranks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    ranks_only: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    verdict: str = ""
    rule: str = DEFAULT_RULE
    why: str = ""
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Types:
    """Element types of one type variable: those that were seen to run, those that were tried and refused."""

    run: frozenset[str]
    refused: frozenset[str]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a target. `runs` and so on hold schema versions; `refuses` says why, by version or for `ANY`."""

    runs: frozenset[int] | None  # None: every version
    partial: frozenset[int]
    refuses: Mapping[str, str]
    types: Mapping[int, Mapping[str, Types]]
    limits: tuple[Restriction, ...]
    evidence: Evidence
    note: str = ""

    def status(self, since: int) -> Status:
        """Whether a schema version runs; "partial" where what `limits` tells decides; "unknown" where nobody tried."""
        if self.reason(since) is not None:
            return "refuses"
        if since in self.partial:
            return "partial"
        return "runs" if self.runs is None or since in self.runs else "unknown"

    def reason(self, since: int) -> str | None:
        """Why a schema version is refused, None where it is not."""
        return self.refuses.get(str(since), self.refuses.get(ANY))


@dataclass(frozen=True, slots=True)
class Difference:
    """Something a range of versions of a runtime computes differently, without a word."""

    op: str
    since: str  # first version of the runtime it was seen in
    until: str  # last one
    size: str  # how large, in words or numbers: "1.36", "output shape"
    when: Restriction

    def holds(self, version: str) -> bool:
        """Whether a version of the runtime is among those it was seen in."""
        return numbers(self.since) <= numbers(version) <= numbers(self.until)


@dataclass(frozen=True, slots=True)
class Target:
    """One runtime version. `named` is True where the user named it, False for a default target; `name` is what the
    configuration calls a target of its own. None in a fact means that nobody has said.

    lacking: what happens to an operator the table refuses: "refuses" the model, or "falls-back" to the CPU.
    functions: whether it runs a file's own functions. ignores_domain: it looks at an operator's name only (A `Mish` of
    any domain is Mish). contrib: operators of other domains it runs, as "domain::Op"; with "domain::*" it may run more
    of that domain than anybody listed. element_types: those it has at all, () where unknown. narrows: of these those it
    computes in a narrower type; lacks: those that were tried and that it does not have at all. plugins: operators
    ("domain::Op") its user brings.
    """

    runtime: str
    version: str
    source: str
    evidence: Evidence
    opsets: Mapping[str, Limit]  # domain ("" is ai.onnx) -> limit; a domain that is not in it has none known
    ir: Limit
    dynamic_shapes: Literal["runs", "profile", "static"] | None = None
    lacking: Literal["refuses", "falls-back"] = "refuses"
    functions: bool | None = None
    ignores_domain: bool = False
    duplicate_names: Literal["refuses", "accepts"] | None = None
    unsorted: Literal["refuses", "accepts"] | None = None
    shadowed: Literal["refuses", "accepts"] | None = None
    contrib: frozenset[str] = frozenset()
    element_types: frozenset[str] = frozenset()
    narrows: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    plugins: frozenset[str] = frozenset()
    note: str = ""
    name: str = ""
    named: bool = False
    table: Mapping[str, Any] = field(default_factory=dict, repr=False)
    asked: dict[str, Operator | None] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        if self.name:
            return self.name
        return "onnx" if self.runtime == "onnx" else f"{self.runtime}@{self.version}"

    def operator(self, domain: str, op: str) -> Operator | None:
        """What the table says of an operator, None where it does not list it. Raises VexlintError for a bad entry."""
        key = f"{domain}::{op}" if domain else op
        if key not in self.asked:
            entry = self.table.get(key)
            where = f"target {self}: {key}: "
            self.asked[key] = None if entry is None else _operator(entry, self.evidence, where)
        return self.asked[key]

    def takes(self, domain: str, op: str) -> bool:
        """Whether it may run an operator outside the standard: a list that ends in "domain::*" is not complete."""
        return not self.contrib.isdisjoint((f"{domain}::{op}", f"{domain}::*"))

    def operators(self) -> Iterator[str]:
        """The operators the table lists, as "Op" or "domain::Op"."""
        return iter(self.table)


_FACTS = [f.name for f in fields(Target) if f.name not in ("name", "named", "table", "asked")]
_RESTRICTION = [f.name for f in fields(Restriction)]
_CHOICES = {
    "evidence": ("probe", "doc"),
    "dynamic_shapes": ("runs", "profile", "static", None),
    "lacking": ("refuses", "falls-back"),
    "functions": (True, False, None),
    "ignores_domain": (True, False),
    **dict.fromkeys(("duplicate_names", "unsorted", "shadowed"), ("refuses", "accepts", None)),
}


def load(path: Path, named: bool = False) -> Target:
    """A target file. Raises VexlintError naming the file and the key that is wrong."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise VexlintError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise VexlintError(f"{path}: not JSON: {error}") from None
    return parse(data, f"{path}: ", named)


def parse(data: Any, where: str, named: bool = False) -> Target:
    """A target from a file's content; `where` begins every complaint. Raises VexlintError."""
    _keys(data, [*_FACTS, "operators"], where)
    for key in ("runtime", "version", "source", "evidence", "opsets", "ir"):
        if key not in data:
            raise VexlintError(f"{where}{key} is missing")
    for key, allowed in _CHOICES.items():
        if data.get(key, allowed[0]) not in allowed:
            raise VexlintError(f"{where}{key} = {data[key]!r} is none of {', '.join(map(str, allowed))}")
    facts = {key: value for key, value in data.items() if key != "operators"}
    for key in ("contrib", "element_types", "narrows", "lacks", "plugins"):
        facts[key] = frozenset(_strings(facts.get(key, ()), f"{where}{key}"))
    facts["opsets"] = {d: _limit(v, f"{where}opsets.{d}: ") for d, v in data["opsets"].items()}
    facts["ir"] = _limit(data["ir"], f"{where}ir: ")
    table = data.get("operators", {})
    if not isinstance(table, dict):
        raise VexlintError(f"{where}operators should be a table")
    return Target(**facts, named=named, table=table)


def validate(target: Target) -> None:
    """Understands every operator of a target's table. Raises VexlintError for the first that is wrong."""
    for key in target.operators():
        domain, _, op = key.rpartition("::")
        target.operator(domain, op)


def differences(runtime: str) -> Mapping[str, tuple[Difference, ...]]:
    """Operator -> what versions of this runtime compute differently, from `rules/targets/differences.toml`."""
    return _differences().get(runtime, {})


@cache
def _differences() -> dict[str, dict[str, tuple[Difference, ...]]]:
    """Runtime -> operator -> its differences: the file is read once for all runtimes."""
    path = rules_folder() / "targets" / "differences.toml"
    found: dict[str, dict[str, tuple[Difference, ...]]] = {}
    for number, entry in enumerate(tomllib.loads(path.read_text("utf-8"))["difference"], 1):
        where = f"{path}: difference {number}: "
        _keys(entry, ["op", "runtime", "since", "until", "size", *_RESTRICTION], where)
        own = {k: v for k, v in entry.items() if k not in ("op", "runtime", "since", "until", "size")}
        when = restriction({"verdict": "differs", **own}, where)
        made = Difference(entry["op"], entry["since"], entry["until"], entry["size"], when)
        by_op = found.setdefault(entry["runtime"], {})
        by_op[made.op] = (*by_op.get(made.op, ()), made)
    return found


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers that compare: "1.32.0" -> (1, 32, 0)."""
    return tuple(int(part) for part in version.split("."))


def restriction(entry: Any, where: str) -> Restriction:
    """One limit of an operator. Raises VexlintError for a key or a kind of value it does not know."""
    _keys(entry, _RESTRICTION, where)
    verdict = entry.get("verdict", "")
    if verdict not in ("", *VERDICTS):
        raise VexlintError(f"{where}verdict = {verdict!r} is none of {', '.join(VERDICTS)}{nearest(verdict, VERDICTS)}")
    made: dict[str, Any] = {}
    for key, value in entry.items():
        if key in ("verdict", "rule", "why", "seen", "axis_inside", "shrinks", "resizes", "forks", "opset"):
            made[key] = value
        elif key in ("attribute", "only"):
            made[key] = {name: _listed(v, f"{where}{key}.{name}") for name, v in _table(value, where + key).items()}
        elif key == "above":
            made[key] = {_int(i, where + key): _int(v, where + key) for i, v in _table(value, where + key).items()}
        elif key in ("types", "ranks", "ranks_only"):
            made[key] = {
                _int(i, where + key): _listed(v, f"{where}{key}.{i}") for i, v in _table(value, where + key).items()
            }
        elif key in ("versions", "given", "outputs", "varies", "computed", "nonzero", "repeats"):
            made[key] = tuple(_int(v, where + key) for v in _listed(value, where + key))
        else:
            made[key] = _listed(value, where + key)
    if not set(made) - {"versions", "verdict", "rule", "why", "seen"}:
        raise VexlintError(f"{where}a limit without a condition; say whole versions in 'refuses'")
    return Restriction(**made)


def _operator(entry: Any, evidence: Evidence, where: str) -> Operator:
    _keys(entry, ["runs", "partial", "refuses", "types", "limits", "evidence", "note"], where)
    runs = entry.get("runs", [])
    types: dict[int, dict[str, Types]] = {}
    for versions, variables in _table(entry.get("types", {}), where + "types").items():
        for version in versions.split():
            types[int(version)] = {name: _types(pair, where) for name, pair in variables.items()}
    return Operator(
        runs=None if runs == ANY else frozenset(_listed(runs, where + "runs")),
        partial=frozenset(_listed(entry.get("partial", []), where + "partial")),
        refuses=_table(entry.get("refuses", {}), where + "refuses"),
        types=types,
        limits=tuple(restriction(e, where + "limit: ") for e in _listed(entry.get("limits", []), where + "limits")),
        evidence=entry.get("evidence", evidence),
        note=entry.get("note", ""),
    )


def _types(pair: Any, where: str) -> Types:
    run, refused = _listed(pair, f"{where}types")
    return Types(frozenset(run.split()), frozenset(refused.split()))


def _limit(entry: Any, where: str) -> Limit:
    _keys(entry, [f.name for f in fields(Limit)], where)
    if entry.get("basis") not in ("enforced", "documented", "none", "unknown"):
        raise VexlintError(f"{where}basis should be enforced, documented, none or unknown")
    between = entry.get("between")
    low_high = None if between is None else (int(between[0]), int(between[1]))
    return Limit(entry.get("max"), entry["basis"], entry.get("min", 1), low_high)


def _keys(table: Any, known: list[str], where: str) -> None:
    for key in _table(table, where.rstrip(": ")):
        if key not in known:
            raise VexlintError(f"{where}unknown key {key!r}{nearest(key, known)}")


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise VexlintError(f"{where} should be a table, not {value!r}")
    return value


def _int(value: Any, where: str) -> int:
    """A whole number, as a number or as the key of a table."""
    if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
        return int(value)
    raise VexlintError(f"{where} should be whole numbers, not {value!r}")


def _listed(value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise VexlintError(f"{where} should be a list, not {value!r}")
    return tuple(value)


def _strings(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise VexlintError(f"{where} should be a list of strings")
    return tuple(value)
