"""The values that pass between the rooms of vexlint. Every value is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from vexlint.outcomes import Probe

PlaceKind = Literal["node", "input", "output", "initializer", "import", "metadata", "file"]
Verdict = Literal["refuses", "differs", "falls-back", "needs-plugin", "unknown"]
FixSafety = Literal["safe", "unsafe", "none"]
Status = Literal["checked", "incomplete"]
PROFILES = ("desktop", "board", "release")  # sets of rules; each has the rules of those before it


class VexlintError(Exception):
    """A mistake a user can mend: the message says what happened, where, and what to do. Exit code 2."""


class Severity(StrEnum):
    """How much a finding matters; `rank` orders them, the highest first to fail a gate."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return {"error": 3, "warning": 2, "info": 1}[self.value]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something is.

    `graph` is the path from the model's main graph through subgraphs and functions, e.g. `graph` or
    `graph/node[7]/then_branch`; `index` the node's index in it; `domain` as the file writes it ("" is ai.onnx);
    `value` the tensor concerned; `axis` the axis of an input or output.
    """

    kind: PlaceKind
    graph: str = ""
    index: int | None = None
    domain: str = ""
    op: str = ""
    name: str = ""
    value: str = ""
    axis: int | None = None

    def __str__(self) -> str:
        if self.kind == "file":
            return "file"
        if self.kind == "node":
            operator = f"{self.domain}::{self.op}" if self.domain else self.op
            label = self.name or self.value
            return f"{self.graph}/node[{self.index}] {operator}" + (f' "{label}"' if label else "")
        prefix = f"{self.graph}/" if self.graph not in ("", "graph") else ""
        axis = "" if self.axis is None else f" axis {self.axis}"
        return f"{prefix}{self.kind} {self.name}{axis}"


@dataclass(frozen=True, slots=True)
class Hit:
    """What a check yields: one cause in one file, before the engine gives it a code and a severity.

    `severity` is left None unless the rule's page says that the check decides it; `contract` is True where the
    hit contradicts the model's contract (the engine makes that an error); `target` and `verdict` go together: which
    runtime does what; `fix` is "none" where the rule's fix cannot help with this one; `data` holds the numbers behind
    the message (px, axis, limit), `more` the other places of the same cause, `count` how many there are with the first.
    """

    place: Place
    message: str
    help: str = ""
    target: str | None = None
    verdict: Verdict | None = None
    severity: Severity | None = None
    contract: bool = False
    fix: FixSafety | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    more: tuple[Place, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """A hit with its rule's code and name, the severity it has in this run, and a fingerprint that outlives a
    re-export (see `engine.fingerprint`)."""

    code: str
    name: str
    severity: Severity
    target: str | None
    verdict: Verdict | None
    message: str
    count: int
    place: Place
    more: tuple[Place, ...]
    data: Mapping[str, Any]
    fix: FixSafety
    help: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Change:
    """One edit of a fix: the rule it answers, where, and the few words that stood there before and stand there now."""

    code: str
    place: Place
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Waived:
    """A finding that a waiver of the configuration sets aside, with the reason given there."""

    finding: Finding
    reason: str
    until: str


@dataclass(frozen=True, slots=True)
class FileReport:
    """What was found in one file. `status` is "incomplete" where a check could not be carried out; `reason` is why.

    `waived` and `baselined` are set aside: by a waiver of the configuration, and because the baseline has them.
    `probes` is what installed runtimes said, where they were asked.
    """

    path: str
    status: Status
    findings: tuple[Finding, ...]
    waived: tuple[Waived, ...] = ()
    reason: str | None = None
    sha256: str | None = None
    probes: tuple[Probe, ...] = ()
    baselined: tuple[Finding, ...] = ()

    def count(self, severity: Severity) -> int:
        return sum(f.severity is severity for f in self.findings)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run: one entry a file, in the order given, and the targets that were judged."""

    files: tuple[FileReport, ...]
    targets: tuple[str, ...]

    def count(self, severity: Severity) -> int:
        return sum(f.count(severity) for f in self.files)

    @property
    def incomplete(self) -> int:
        return sum(f.status == "incomplete" for f in self.files)
