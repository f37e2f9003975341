"""What running a model gives: what runtimes said of it, how far two models lie apart, what is proven of a repair.

Frozen values like those of `values`, in a module of their own: a check that runs nothing does not pay for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from vexlint.values import Change, FileReport

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
