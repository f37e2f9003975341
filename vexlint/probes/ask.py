"""Asks the installed runtimes of the targets about one model, each in a child process with a deadline.

A runtime that is not here is skipped, and said so, where nobody named it; where somebody did, the file is incomplete.
So it is where a runtime crashed, hung, took too much memory, or is of another version than the one named.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vexlint.checks.context import Context
from vexlint.engine import Asked, Prober
from vexlint.model.model import Model
from vexlint.model.read import TEXT_SUFFIXES
from vexlint.outcomes import Probe
from vexlint.probes import answers as told
from vexlint.runtimes import base
from vexlint.runtimes.base import Answer, Question
from vexlint.runtimes.child import BUILDING, RUNNING, Child, Failed, NotHere
from vexlint.tables import Target
from vexlint.targets import covers, split
from vexlint.values import Hit, VexlintError

SHARE = 0.75  # of the machine's memory that a child may take where nobody says
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Options:
    """How runtimes are asked.

    `names` are the targets as the user wrote them, empty for the default ones. `providers` are ONNX Runtime's, the
    first one wanted most; `device` is OpenVINO's; `capability` the compute capability that TensorRT-RTX builds for.
    `deadline` is in seconds for each step of a runtime, None for the usual one; `memory` in bytes a process, None for
    three quarters of what the machine has.
    """

    names: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    device: str = ""
    capability: str = ""
    deadline: float | None = None
    memory: int | None = None

    def devices(self, runtime: str) -> tuple[str, ...]:
        """What of this runtime was asked for by name."""
        own = {"onnxruntime": self.providers, "openvino": (self.device,), "tensorrt-rtx": (self.capability,)}
        return tuple(filter(None, own.get(runtime, ())))


def prober(options: Options, targets: Sequence[Target]) -> Prober:
    """What `engine.check_file` calls with a model. Raises VexlintError where an option is for a runtime that is none
    of the targets."""
    asked = {t.runtime for t in targets}
    for option, runtime in (
        ("--provider", "onnxruntime"),
        ("--device", "openvino"),
        ("--compute-capability", "tensorrt-rtx"),
    ):
        if options.devices(runtime) and runtime not in asked:
            raise VexlintError(f"{option} is for {runtime}, which is none of the targets: add --target {runtime}")

    def ask(model: Model, context: Context) -> Asked:
        with tempfile.TemporaryDirectory(prefix="vexlint-") as folder:
            answered = [_one(model, t, context, options, Path(folder)) for t in context.targets if t.runtime != "onnx"]
        probes = tuple(probe for probe, _ in answered)
        hits = tuple(hit for _, found in answered for hit in found)
        return Asked(hits, probes, _reason(probes))

    return ask


def _reason(probes: Sequence[Probe]) -> str | None:
    """Why the answers are not whole; None where they are."""
    lacking = [f"{p.target}: {p.reason}" for p in probes if p.reason and not p.skipped]
    if not lacking and all(p.skipped for p in probes):
        lacking = [
            "no runtime was asked: " + ("; ".join(f"{p.target}: {p.reason}" for p in probes) or "no target is one")
        ]
    return "; ".join(lacking) or None


def _one(
    model: Model, target: Target, context: Context, options: Options, folder: Path
) -> tuple[Probe, list[tuple[str, Hit]]]:
    """One runtime: what it said, and the hits in that with their rules' codes."""
    if target.runtime not in base.PROBED:
        reason = f"vexlint cannot ask {target.runtime}; it can ask {', '.join(base.PROBED)}"
        return Probe(target.runtime, str(target), reason=reason, skipped=not target.named), []
    answers: list[Answer] = []
    reason, skipped = "", False
    try:
        for answer in _answers(model, target, context, options, folder):
            answers.append(answer)
            if reason := _another_version(answer, target, options.names):
                break
    except NotHere as error:
        reason, skipped = str(error), not target.named and not options.devices(target.runtime)
    except Failed as error:
        done = [a["stage"] for a in answers if "stage" in a]
        reason = f"{error} (after {', '.join(done)})" if done else str(error)
    return told.fold(model, target, answers, reason, skipped)


def _answers(model: Model, target: Target, context: Context, options: Options, folder: Path) -> Iterator[Answer]:
    path = model.path
    if path.suffix in TEXT_SUFFIXES:  # runtimes read protobuf; a text holds no external data that has to stay beside it
        path = folder / f"{path.stem}.onnx"
        path.write_bytes(model.proto.SerializeToString())
    question = Question(
        model=str(path.resolve()),
        devices=[d for d in options.devices(target.runtime) if target.runtime != "tensorrt-rtx"],
        precision=context.contract.precision or "fp32",
        profiles=_profiles(context),
        capability=options.capability if target.runtime == "tensorrt-rtx" else "",
        memory=_memory() if options.memory is None else options.memory,
    )
    deadline = options.deadline or BUILDING.get(target.runtime, RUNNING)
    with Child(target.runtime, question, folder, deadline) as child:
        yield from child.answers()


def _profiles(context: Context) -> dict[str, list[list[int]]]:
    """The contract's optimisation profiles; where it gives an input a fixed shape instead, that one."""
    fixed = {
        name: [[int(size) for size in entry.shape]] * 3
        for name, entry in context.contract.inputs.items()
        if entry.shape and all(isinstance(size, int) for size in entry.shape)
    }
    return fixed | {name: [list(p.min), list(p.opt), list(p.max)] for name, p in context.contract.profile.items()}


def _another_version(answer: Answer, target: Target, names: Sequence[str]) -> str:
    """Why an installed version says nothing about the one the user wrote; "" where it does, or none was written."""
    written = [n for n in names if "@" in n and split(n)[0] == target.runtime]
    if "version" not in answer or not written:
        return ""
    _, wanted = split(next((n for n in written if covers(n, target)), written[-1]))
    if same_release(wanted, answer["version"]):
        return ""
    return (
        f"{target.runtime} {answer['version']} is installed here: what it answers says nothing about {target.runtime} "
        f"{wanted}; `vexlint check --target {target.runtime}@{wanted}` judges by what is known of it"
    )


def same_release(one: str, other: str) -> bool:
    """Whether two versions agree in the first two numbers, or in the first where one of them has no second."""
    a, b = one.split(".")[:2], other.split(".")[:2]
    return all(x == y for x, y in zip(a, b, strict=False))


def _memory() -> int:
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE)
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return 16 * GIB
