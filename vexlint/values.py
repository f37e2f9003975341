"""The values that pass between the rooms of vexlint. Imports nothing of vexlint; every value is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

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


Outcome = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step a runtime takes with a model (load; parse and build; read and compile), with the seconds it took.

    `said` is why it did not pass, in the runtime's own words. Undecided: something of this machine, not of the model,
    stood in the way.
    """

    name: str
    outcome: Outcome
    seconds: float
    said: str = ""


@dataclass(frozen=True, slots=True)
class ProbedOutput:
    """A model output as the runtime sees it and as the file declares it: element types as numpy names them, shapes as
    in ONNX text ("[1,7,n]", "?" for a size that is not known). `agrees` is False where both know and contradict."""

    name: str
    dtype: str
    shape: str
    declared: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """What one installed runtime said of one file.

    `target` is what was asked for, `version` what is installed. `placement` counts nodes by provider or device; empty
    where the runtime does not say. `reason` is why there is no whole answer, "" where there is one; `skipped` is True
    where nothing was asked, because the runtime is not here and nobody named it.
    """

    runtime: str
    target: str
    version: str = ""
    device: str = ""
    stages: tuple[Stage, ...] = ()
    placement: Mapping[str, int] = field(default_factory=dict)
    outputs: tuple[ProbedOutput, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    skipped: bool = False


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


@dataclass(frozen=True, slots=True)
class Ran:
    """What really computed: a runtime, its version, and the device or execution provider that took the nodes.

    `detail` says what matters for the numbers: the precision that was forced, nodes that went elsewhere.
    """

    runtime: str
    version: str
    device: str
    detail: str = ""

    def __str__(self) -> str:
        name = f"{self.runtime} {self.version}".rstrip()
        return ", ".join(part for part in (name, self.device, self.detail) if part)


@dataclass(frozen=True, slots=True)
class Drift:
    """How far one output tensor of the candidate lies from the reference's, over all samples.

    `max_abs` is the largest difference, in the output's unit; `max_rel` the largest one divided by the reference's
    value, or by `floor` where that is smaller (see `verify.compare`); `limit` is what `max_rel` may be. `nonfinite`
    counts NaN and infinite elements on either side, which always fail. `worst` is the sample of `max_rel`. `note` says
    why nothing could be compared, else "".
    """

    output: str
    max_abs: float
    max_rel: float
    limit: float
    nonfinite: int
    worst: str
    passed: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shift:
    """Detections whose larger side is in [low, high) px: how many found a partner and how many did not (threshold
    flips left out), and the centre shift of the pairs, median and largest, in px of the model's input."""

    low: float
    high: float
    matched: int
    unmatched: int
    median: float
    largest: float

    def __str__(self) -> str:
        if self.low == 0:
            return f"under {self.high:g} px"
        return f"{self.low:g} px and more" if self.high == float("inf") else f"{self.low:g}-{self.high:g} px"


@dataclass(frozen=True, slots=True)
class SetLimits:
    """What detections may drift: 1 - IoU, px, score in 0..1, and the share (0..1) of all detections that must find a
    partner of their class. `band` is the distance in score (or, for IoU, from the NMS threshold) within which an
    unmatched detection counts as a threshold flip instead."""

    iou_drift: float
    centre_px: float
    score: float
    class_match: float
    band: float


@dataclass(frozen=True, slots=True)
class SetDrift:
    """How far the candidate's detections lie from the reference's, matched one to one within each picture.

    `iou_drift` is the largest 1 - IoU of a pair, `centre_px` the largest distance of centres in px of the model's
    input, `score` the largest difference of scores; `class_match` the share of detections, threshold flips left out,
    that have a partner of the same class. `class_flips` counts pairs whose classes differ, `missing` and `extra`
    what only the reference or only the candidate detects, `threshold_flips` those of them that lie so close to a
    threshold that rounding decides. `vacuous` says why the sets prove nothing, else "".
    """

    matched: int
    iou_drift: float
    centre_px: float
    score: float
    class_match: float
    class_flips: int
    missing: int
    extra: int
    threshold_flips: int
    limits: SetLimits
    sizes: tuple[Shift, ...]
    worst: str
    passed: bool
    vacuous: str = ""


ProofStatus = Literal["proven", "drifts", "not proven"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The candidate on one runtime against the reference.

    `samples` counts what was compared; `ran` is None where the runtime did not run, and `reason` then says why; it
    also says why a comparison that ran proves nothing. Where there are `sets` they decide, and `drifts` inform.
    """

    runtime: str
    status: ProofStatus
    ran: Ran | None
    samples: int
    drifts: tuple[Drift, ...] = ()
    sets: SetDrift | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of comparing a candidate with a reference, one comparison a runtime.

    `reference` and `candidate` are paths as they were given; `ran` is what computed the reference (for a recording,
    what it says of itself); `unit` is what a sample is ("image", "noise sample", "recorded input"), `origin` where
    they come from (a folder, a file, "seed 0").
    """

    reference: str
    candidate: str
    ran: Ran | None
    unit: str
    origin: str
    comparisons: tuple[Comparison, ...]

    @property
    def status(self) -> ProofStatus:
        """The worst of the comparisons: what could not be proven outweighs drift; no comparison proves nothing."""
        found = {c.status for c in self.comparisons} or {"not proven"}
        return next(s for s in ("not proven", "drifts", "proven") if s in found)


@dataclass(frozen=True, slots=True)
class StageProof:
    """What is proven of one stage of a repair: `text` in a sentence, `proof` where numbers were compared.

    Status "on purpose": numbers or interface change because a person asked for it; the text says by how much, and that
    nothing else differs.
    """

    stage: str
    status: Literal["proven", "on purpose", "not proven"]
    text: str
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class FixReport:
    """What `fix` did to one file. `output` is None where nothing was written; `reason` then says why.

    `remaining` are the findings that the written file still has.
    """

    path: str
    output: str | None
    changes: tuple[Change, ...]
    proofs: tuple[StageProof, ...]
    remaining: FileReport | None
    reason: str | None = None
