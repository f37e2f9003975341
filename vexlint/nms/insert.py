"""`vexlint nms`: decides on the head, builds the tail, proves it, writes the model; or cuts a tail off again."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.config import Contract
from vexlint.draft import Draft, runnable
from vexlint.model.model import Model
from vexlint.model.read import load
from vexlint.nms import graft, heads, probe, reference, tail
from vexlint.nms.heads import Head
from vexlint.nms.piece import PREFIX
from vexlint.nms.tail import Settings
from vexlint.outcomes import StageProof
from vexlint.runtimes.child import Failed
from vexlint.values import VexlintError
from vexlint.verify import inputs, samples

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto

    Array = NDArray[Any]
    Feed = dict[str, Array]

SCENES, NOISE = 20, 3  # heads made up for the tail alone, and samples for the whole model
RUNTIMES = ("onnxruntime", "openvino")
READ = f"{PREFIX}read/"


@dataclass(frozen=True, slots=True)
class Options:
    """What `nms` was asked for. None: the contract's word, else the default."""

    layout: str | None = None
    score: float | None = None
    iou: float | None = None
    most: int | None = None
    pre: int = 1000
    tail: str = "planes"
    multi_label: bool = False
    agnostic: bool = False
    verify: bool = True
    images: Path | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A tail that is to be put on: the head and settings, where each threshold came from, the names of the outputs, and
    the tail as a model."""

    head: Head
    settings: Settings
    origins: Mapping[str, str]
    names: tuple[str, ...]
    piece: ModelProto


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to one file, and the proofs of it."""

    plan: Plan
    proofs: tuple[StageProof, ...]

    @property
    def written(self) -> bool:
        return all(p.status == "proven" for p in self.proofs)


def settings(options: Options, contract: Contract) -> tuple[Settings, dict[str, str]]:
    """The thresholds, and where each comes from. Raises VexlintError for one that cannot be, and for an option that
    contradicts the contract."""
    told, found, origins = contract.nms or {}, {}, {}
    usual = {"score": 0.25, "iou": 0.45, "max_detections": 300}
    asked = {"score": options.score, "iou": options.iou, "max_detections": options.most}
    for name, value in asked.items():
        if value is not None and name in told and told[name] != value:
            flag = name.replace("_", "-")
            raise VexlintError(
                f"--{flag} {value} contradicts the contract's nms.{name} = {told[name]}: change one of them"
            )
        found[name] = value if value is not None else told.get(name, usual[name])
        origins[name] = "option" if value is not None else "contract" if name in told else "default"
    for name in ("score", "iou"):
        if not 0 <= found[name] <= 1:
            raise VexlintError(f"--{name} should lie in 0..1, not {found[name]}")
    if not 1 <= found["max_detections"] <= tail.MOST or not 1 <= options.pre <= tail.MOST:
        raise VexlintError(f"--max-detections and --pre should lie in 1..{tail.MOST}, the largest TopK of TensorRT")
    if options.tail not in tail.TAILS:
        raise VexlintError(f"--tail {options.tail!r} is none of {', '.join(tail.TAILS)}")
    return (
        Settings(
            float(found["score"]), float(found["iou"]), int(found["max_detections"]),
            options.pre, options.tail, options.multi_label, options.agnostic,
        ),
        origins,
    )  # fmt: skip


def plan(model: Model, options: Options, contract: Contract) -> Plan:
    """The tail for a model. Raises VexlintError with the question where the head is not sure."""
    chosen, origins = settings(options, contract)
    wanted = (contract.nms or {}).get("layout")
    if options.layout:
        head = heads.find(model, options.layout)
    else:
        head = heads.find(model, wanted, "the contract's nms.layout = ")
    names = graft.output_names(model, head)
    return Plan(head, chosen, origins, names, tail.build(head, chosen, model.opsets.get("", 0), names))


def insert(path: Path, output: Path, options: Options, contract: Contract, in_place: bool = False) -> Done:
    """Inserts a tail, proves it and writes the model; where a proof does not hold nothing is written."""
    model = load(path)
    draft = Draft(model)
    draft.check_destination(output, in_place)
    made = plan(model, options, contract)
    if options.verify and made.settings.tail == "plugin":
        raise VexlintError("nothing here can run EfficientNMS_TRT, so nothing can be proven of it: say --no-verify")
    graft.insert(draft.proto, made.head, made.settings, made.piece, digest(path))
    proofs = prove(model, draft.proto, made, options, contract) if options.verify else ()
    done = Done(made, proofs)
    if done.written:
        draft.save(output, in_place)
    return done


def remove(path: Path, output: Path, in_place: bool = False) -> bool:
    """Cuts a tail of ours off and writes the model; whether it is the original, byte for byte."""
    draft = Draft(load(path))
    source = graft.remove(draft.proto, path)
    draft.save(output, in_place)
    return digest(output) == source


def digest(path: Path) -> str:
    """The SHA-256 of a file of any size, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def prove(before: Model, after: ModelProto, made: Plan, options: Options, contract: Contract) -> tuple[StageProof, ...]:
    """The tail alone on made-up heads, and the whole model on what it is fed, both beside the float64 reference, on
    each runtime that is here. Raises VexlintError where the model contradicts the layout, and where it cannot run."""
    feeds = _feeds(before, options, contract)
    batch = made.head.batch if isinstance(made.head.batch, int) else 2
    scenes = [reference.scene(made.head, seed, batch) for seed in range(SCENES)]
    whole, alone = runnable(after, before), made.piece.SerializeToString()
    bare = runnable(_as_read(before.proto, made.head), before)
    proofs: list[StageProof] = []
    for runtime in _runtimes():
        try:
            outputs = probe.run(bare, before.folder, feeds, runtime)
            seen = [{n.removeprefix(READ): a for n, a in found.items()} for found in outputs]
        except Failed as error:
            if not proofs:
                raise VexlintError(
                    f"{before.path}: {error}: what cannot run cannot be proven (--no-verify writes without)"
                ) from None
            proofs.append(StageProof(f"model on {runtime}", "not proven", str(error)))
            continue
        if not proofs:
            image = next((a.shape[-2:] for a in feeds[0].values() if a.ndim == 4), (0, 0))
            probe.contradict(made.head, seen, (int(image[0]), int(image[1])), before.path)
        proofs.append(_stage(f"tail on {runtime}", (alone, before.folder, runtime), made, scenes, scenes))
        proofs.append(_stage(f"model on {runtime}", (whole, before.folder, runtime), made, feeds, seen))
    return tuple(proofs)


def _as_read(proto: ModelProto, head: Head) -> ModelProto:
    """The model with its head in float32, as the tail reads it: a runtime that computes a half-precision model in
    float32 rounds nothing but what leaves the graph. Outputs that were half have `READ` before their name."""
    from onnx import TensorProto

    copy = type(proto)()
    copy.CopyFrom(proto)
    for entry in copy.graph.output:
        if entry.name in head.outputs and entry.type.tensor_type.elem_type == TensorProto.FLOAT16:
            copy.graph.node.add(op_type="Cast", input=[entry.name], output=[READ + entry.name])
            copy.graph.node[-1].attribute.add(name="to", type=2, i=TensorProto.FLOAT)
            entry.name, entry.type.tensor_type.elem_type = READ + entry.name, TensorProto.FLOAT
    return copy


def _feeds(model: Model, options: Options, contract: Contract) -> list[Feed]:
    """Pictures where some were given, else noise, each a feed of one run."""
    import numpy as np

    wanted = inputs.resolve(model, contract, options.shapes)
    where = str(model.path)
    if options.images is not None:
        made: samples.Samples = samples.pictures(options.images, wanted, contract, where)
    else:
        made = samples.noise(wanted, contract, NOISE * wanted.batch, 0, where)
    feeds = []
    for start in range(0, len(made) - wanted.batch + 1, wanted.batch):
        feed = {s.name: np.zeros(s.shape, s.dtype) for s in wanted.specs}
        for k in range(wanted.batch):
            made.fill(start + k, {n: a[k] if wanted.batched else a for n, a in feed.items()})
        feeds.append(feed)
    return feeds


def _runtimes() -> list[str]:
    found = [r for r in RUNTIMES if importlib.util.find_spec(r) is not None]
    if not found:
        raise VexlintError("no runtime to prove the tail on: pip install 'vexlint[cpu]', or say --no-verify")
    return found


def _stage(name: str, what: tuple[bytes, Path, str], made: Plan, feeds: list[Feed], outputs: list[Feed]) -> StageProof:
    """A tail run on each feed, beside what the head gives there."""
    seen: list[reference.Compared] = []
    try:
        for number, found in enumerate(probe.run(what[0], what[1], feeds, what[2])):
            seen.append(reference.compare(made.head, made.settings, outputs[number], found, made.names))
            if seen[-1].fault:
                return StageProof(name, "not proven", f"sample {number}: {seen[-1].fault}")
    except Failed as error:
        return StageProof(name, "not proven", str(error))
    text = f"{sum(c.pictures for c in seen)} pictures, {sum(c.detections for c in seen)} detections"
    text += " equal to float64 greedy NMS"
    if rounded := sum(c.rounded for c in seen):
        text += f" ({rounded} with an overlap that float32 cannot tell from the threshold)"
    return StageProof(name, "proven", text)
