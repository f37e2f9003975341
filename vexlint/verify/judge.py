"""What the samples say of one candidate: collects, then decides.

Where detections are judged, it is proven where their sets are within the limits; not proven where neither side detects
anything, where all scores are one, or where outputs are not as their layout says; else the two drift apart. Where
tensors are judged, it is proven where each is within its limit; not proven where outputs or shapes differ, or where
the reference is one constant; else they drift apart. A NaN or an infinity is drift in either case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vexlint.config import Contract
from vexlint.model.model import Model
from vexlint.outcomes import Comparison, ProofStatus, Ran
from vexlint.values import VexlintError
from vexlint.verify import decoders, detections
from vexlint.verify.boxes import Detections, Thresholds
from vexlint.verify.compare import LIMITS, Tensors
from vexlint.verify.decoders import Decoder, Undecodable
from vexlint.verify.detections import Sets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How both sides' outputs become detections, and with which thresholds."""

    reference: Decoder
    candidate: Decoder
    thresholds: Thresholds


def decoding(
    candidate: Model, contract: Contract, reference: Model | None, recorded: Outputs | None = None
) -> Decoding | None:
    """The decoders of both sides, None where neither side is a detector's that is known. The reference is a model or
    the `recorded` outputs of a sample.

    Raises VexlintError where only one side can be decoded, and where the contract says that this is a detector but no
    layout fits: tensors alone would be a weaker proof than was asked for.
    """
    theirs = decoders.find(candidate, contract)
    if reference is not None:
        ours = decoders.find(reference, contract)
    else:
        shapes = {name: array.shape for name, array in (recorded or {}).items()}
        alike = theirs is not None and all(name in shapes for name in theirs.outputs)
        ours = theirs if alike else decoders.of_recorded(shapes, candidate, contract, "the recorded outputs")
    if ours is not None and theirs is not None:
        return Decoding(ours, theirs, decoders.thresholds(contract))
    if ours is not None or theirs is not None or contract.task == "detect":
        what = "the candidate" if theirs is None else "the reference"
        raise VexlintError(
            f"the outputs of {what} are no detections of a layout that verify knows: name it with nms.layout in the "
            "contract, or compare tensors alone with --raw"
        )
    return None


class Judge:
    """One candidate on one runtime. Feed it with `add`, ask it once with `comparison`."""

    def __init__(self, runtime: str, contract: Contract, decoding: Decoding | None) -> None:
        self.runtime = runtime
        self.ran: Ran | None = None
        self.reason = ""
        self.samples = 0
        self.decoding = decoding
        limit = (contract.tolerance or {}).get("relative", LIMITS[contract.precision or "fp32"])
        self.tensors = Tensors(float(limit))
        self.sets = Sets(detections.limits(contract), decoding.thresholds) if decoding else None

    def add(self, reference: Outputs, candidate: Outputs, pictures: list[str], seen: list[Detections] | None) -> None:
        """Takes in the outputs of one step. `seen` is what the reference detects in each of the pictures; None where
        the tensors decide."""
        self.samples += len(pictures)
        self.tensors.add(reference, candidate, pictures[0])
        if self.sets is None or self.decoding is None or seen is None or self.reason:
            return
        try:
            found = self.decoding.candidate.decode(candidate, self.decoding.thresholds)
        except Undecodable as error:
            self.reason = f"the candidate's outputs: {error}"
            return
        if len(found) != len(seen):
            self.reason = f"the reference has detections for {len(seen)} pictures, the candidate for {len(found)}"
            return
        labels = pictures if len(found) == len(pictures) else [f"{pictures[0]}[{k}]" for k in range(len(found))]
        for a, b, picture in zip(seen, found, labels, strict=True):
            self.sets.add(a, b, picture)

    def comparison(self) -> Comparison:
        """The verdict over everything that was added."""
        drifts = self.tensors.drifts()
        sets = self.sets.drift() if self.sets is not None and self.sets.pictures else None
        reason = self.reason
        if not reason and sets is not None and sets.vacuous:
            reason = f"nothing compared: {sets.vacuous}"
        if not reason and self.sets is None:
            reason = self._unequal()
            if not reason and self.tensors.vacuous and all(d.passed for d in drifts):
                reason = f"nothing compared: {self.tensors.vacuous}"
        status: ProofStatus
        if reason or not self.samples:
            status = "not proven"
        elif any(d.nonfinite for d in drifts) or not (sets.passed if sets else all(d.passed for d in drifts)):
            status = "drifts"
        else:
            status = "proven"
        return Comparison(self.runtime, status, self.ran, self.samples, drifts, sets, reason)

    def _unequal(self) -> str:
        """Why outputs could not be compared at all, "" where they could."""
        notes = [f"{d.output} {d.note}" for d in self.tensors.drifts() if d.note]
        return f"the outputs cannot be compared: {'; '.join(notes)}" if notes else ""
