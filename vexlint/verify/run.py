"""One comparison from beginning to end: starts the runtimes, streams the samples, collects the verdicts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.config import Contract
from vexlint.model.model import Model
from vexlint.outcomes import Comparison, Proof, Ran
from vexlint.runtimes.base import Setup
from vexlint.runtimes.child import Child, Failed
from vexlint.values import VexlintError
from vexlint.verify import inputs as feeding
from vexlint.verify import recordings, samples
from vexlint.verify.boxes import Detections
from vexlint.verify.decoders import Undecodable
from vexlint.verify.inputs import Inputs
from vexlint.verify.judge import Decoding, Judge
from vexlint.verify.recordings import Recorder, Recording
from vexlint.verify.samples import Samples
from vexlint.verify.stream import Player, Step, Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Side:
    """A model to run: the view over it, the file that a runtime loads, the folder of its external data ("" for the
    file's own), its name in the report, the inputs it takes."""

    model: Model
    file: Path
    folder: str
    label: str
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class Job:
    """What to compare: a candidate on some runtimes with a reference, which is a model on a runtime or a recording.

    `samples` are made for `inputs`. Without `decoding` the tensors decide. A runtime comes with its device, "" for the
    usual one. `save` is where to record the reference's outputs. `deadline` is in seconds a sample.
    """

    reference: Side | Recording
    candidate: Side
    samples: Samples
    inputs: Inputs
    contract: Contract
    decoding: Decoding | None
    runtimes: Sequence[tuple[str, str]]
    reference_runtime: tuple[str, str]
    save: Path | None
    deadline: float


class Run:
    """Carries out a job, once, with `proof`."""

    def __init__(self, job: Job) -> None:
        self.job = job
        labels = [":".join(filter(None, runtime)) for runtime in job.runtimes]
        self.judges = [Judge(label, job.contract, job.decoding) for label in labels]
        self.recording = None if isinstance(job.reference, Side) else job.reference
        self.ran: Ran | None = self.recording.ran if self.recording else None
        self.failed = ""  # why the reference gives no outputs

    @property
    def _name(self) -> str:
        side = self.job.reference
        return side.label if isinstance(side, Side) else side.origin

    def proof(self) -> Proof:
        """Runs everything. A runtime that fails takes its own comparison down; the reference's takes all of them."""
        job = self.job
        with ExitStack() as stack:
            made = tempfile.TemporaryDirectory(prefix="vexlint-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made))
            recorder = stack.enter_context(recordings.recorder(job.save))
            reference, candidates = self._start(stack, folder)
            running = [p for p in (reference, *candidates) if p is not None]
            if not self.failed and (any(candidates) or recorder):
                stream = Stream(running, job.samples, job.inputs, folder)
                for step in stream:
                    self._take(step, running, reference, candidates, recorder)
                    if self.failed:
                        break
            if recorder is not None and not self.failed:
                recorder.finish(self._name, self.ran)
        found = tuple(self._comparisons())
        return Proof(self._name, job.candidate.label, self.ran, job.samples.unit, job.samples.origin, found)

    def _start(self, stack: ExitStack, folder: Path) -> tuple[Player | None, list[Player | None]]:
        """Starts all runtimes, then waits for all: they load side by side."""
        job = self.job
        wanted = [(job.candidate, runtime, job.contract.precision or "fp32") for runtime in job.runtimes]
        if isinstance(job.reference, Side):
            wanted.append((job.reference, job.reference_runtime, "fp32"))
        threads = max(1, _cores() // len(wanted))
        started: list[Player | str] = []  # a player, or why there is none
        for side, (runtime, device), precision in wanted:
            shapes = {s.name: list(s.shape) for s in side.inputs.specs}
            setup = Setup(str(side.file), side.folder, precision, device, threads, shapes)
            try:
                child = stack.enter_context(Child(runtime, setup, folder, job.deadline))
                started.append(Player(child, side.inputs, self._feeds(side)))
            except Failed as error:
                started.append(str(error))
        loaded = [_loaded(player) for player in started]
        if isinstance(job.reference, Side):
            reference, self.ran, self.failed = loaded.pop()
        else:
            reference = None
        for judge, (_, ran, reason) in zip(self.judges, loaded, strict=True):
            judge.reason, judge.ran = f"not run: {reason}" if reason else "", ran
        return reference, [player for player, _, _ in loaded]

    def _feeds(self, side: Side) -> list[tuple[feeding.Spec, feeding.Spec]]:
        return feeding.matched(self.job.inputs, side.inputs, f"{self._name} and {side.label}")

    def _take(
        self,
        step: Step,
        running: list[Player],
        reference: Player | None,
        candidates: list[Player | None],
        recorder: Recorder | None,
    ) -> None:
        """Compares one step."""
        outputs = {id(player): found for player, found in zip(running, step.outputs, strict=True)}
        alive = [p for p in candidates if p is not None and not p.failed]
        if reference is not None and reference.failed:
            self.failed = reference.failed
            return
        first = outputs[id(alive[0])] if alive else None
        expected = outputs[id(reference)] if reference is not None else self._recorded(step, first or {})
        assert expected is not None
        if recorder is not None:
            for k in range(step.count):
                recorder.add(_sample(expected, k, step.count), self._digest(step, k))
        seen = self._seen(expected)
        if self.failed:
            return
        labels = [self.job.samples.label(step.first + k) for k in range(step.count)]
        for judge, player in zip(self.judges, candidates, strict=True):
            found = outputs[id(player)] if player is not None else None
            if player is not None and player.failed:
                judge.reason = judge.reason or player.failed
            elif found is not None:
                judge.add(expected, found, labels, seen)

    def _seen(self, expected: Outputs) -> list[Detections] | None:
        decoding = self.job.decoding
        if decoding is None:
            return None
        try:
            return decoding.reference.decode(expected, decoding.thresholds)
        except Undecodable as error:
            self.failed = str(error)
            return None

    def _recorded(self, step: Step, found: Outputs) -> Outputs:
        """The recorded outputs of a step. Raises VexlintError where the recording was made from other inputs."""
        import numpy as np

        recording = self.recording
        assert recording is not None
        parts = []
        for k in range(step.count):
            index = step.first + k
            if recording.digests and recording.digests[index] != self._digest(step, k):
                label = self.job.samples.label(index)
                raise VexlintError(
                    f"{recording.origin}: its sample {index} was recorded from other numbers than {label} gives now: "
                    "use the images, preprocessing and seed of the recording"
                )
            parts.append(recording.outputs(index))
        whole = {n: np.concatenate([p[n] for p in parts]) if len(parts) > 1 else parts[0][n] for n in parts[0]}
        return {n: _alike(array, found[n].shape) if n in found else array for n, array in whole.items()}

    def _digest(self, step: Step, k: int) -> int:
        batched = self.job.inputs.batched
        return recordings.digest({n: room[k] if batched else room for n, room in step.rooms.items()})

    def _comparisons(self) -> list[Comparison]:
        for judge in self.judges:
            if self.failed:
                judge.reason = f"without a reference: {self.failed}"
        found = [judge.comparison() for judge in self.judges]
        if self.job.samples.unit != samples.Noise.unit:
            return found
        hint = "; noise shows no objects: give --images FOLDER, or judge tensors alone with --raw"
        return [replace(c, reason=c.reason + hint) if c.sets is not None and c.sets.vacuous else c for c in found]


def _loaded(started: Player | str) -> tuple[Player | None, Ran | None, str]:
    """A player once its model is loaded and what will compute it, or why there is none."""
    if isinstance(started, str):
        return None, None, started
    try:
        return started, started.child.loaded(), ""
    except Failed as error:
        return None, None, str(error)


def _sample(outputs: Outputs, k: int, count: int) -> dict[str, NDArray[Any]]:
    """One sample's part of a step's outputs."""
    return {n: a[k : k + 1] if count > 1 else a for n, a in outputs.items()}


def _alike(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A recorded array in the shape of what it is compared with, where they differ in leading axes of 1 only."""
    plain = [tuple(s) for s in (array.shape, shape)]
    while any(s[:1] == (1,) for s in plain):
        plain = [s[1:] if s[:1] == (1,) else s for s in plain]
    return array.reshape(shape) if plain[0] == plain[1] else array


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
