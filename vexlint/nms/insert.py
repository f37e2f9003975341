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
from vexlint.model.read import load
from vexlint.nms import graft, heads, probe, reference, tail
from vexlint.nms.heads import Head
from vexlint.nms.tail import Settings
from vexlint.outcomes import StageProof
from vexlint.runtimes.child import Failed
from vexlint.values import VexlintError
from vexlint.verify import inputs, samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

SCENES, NOISE = 20, 3  # heads made up for the tail alone, and samples for the whole model
RUNTIMES = ("onnxruntime", "openvino")


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
class Done:
    """What was done to one file: the head and settings, where each threshold came from, and the proofs."""

    head: Head
    settings: Settings
    origins: Mapping[str, str]
    names: tuple[str, ...]
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


def insert(path: Path, output: Path, options: Options, contract: Contract, in_place: bool = False) -> Done:
    """Inserts a tail, proves it and writes the model; where a proof does not hold nothing is written."""
    model = load(path)
    layout = options.layout or (contract.nms or {}).get("layout")
    chosen, origins = settings(options, contract)
    head = heads.find(model, layout)
    draft = Draft(model)
    draft.check_destination(output, in_place)
    names = graft.output_names(model, head)
    piece = tail.build(head, chosen, model.opsets.get("", 0), names)
    feeds = _feeds(draft, options, contract) if options.verify else []
    seen = _outputs(draft, feeds, path) if options.verify else []
    if seen:
        image = next((a.shape[-2:] for a in feeds[0].values() if a.ndim == 4), (0, 0))
        probe.contradict(head, seen, (int(image[0]), int(image[1])), path)
    graft.insert(draft, head, chosen, piece, _digest(path))
    proofs: tuple[StageProof, ...] = ()
    if options.verify and chosen.tail == "plugin":
        raise VexlintError("nothing here can run EfficientNMS_TRT, so nothing can be proven of it: say --no-verify")
    if options.verify:
        proofs = tuple(p for r in _runtimes() for p in _prove(draft, head, chosen, piece, names, (feeds, seen), r))
    done = Done(head, chosen, origins, names, proofs)
    if done.written:
        draft.save(output, in_place)
    return done


def remove(path: Path, output: Path, in_place: bool = False) -> bool:
    """Cuts a tail of ours off and writes the model; whether it is the original, byte for byte."""
    draft = Draft(load(path))
    digest = graft.remove(draft)
    draft.save(output, in_place)
    return _digest(output) == digest


def _digest(path: Path) -> str:
    """The SHA-256 of a file of any size, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _runtimes() -> list[str]:
    found = [r for r in RUNTIMES if importlib.util.find_spec(r) is not None]
    if not found:
        raise VexlintError("no runtime to prove the tail on: pip install 'vexlint[cpu]', or say --no-verify")
    return found


def _feeds(draft: Draft, options: Options, contract: Contract) -> list[dict[str, Array]]:
    """Pictures where some were given, else noise, each a feed of one run."""
    import numpy as np

    model = draft.source
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


def _outputs(draft: Draft, feeds: list[dict[str, Array]], path: Path) -> list[dict[str, Array]]:
    runtime = _runtimes()[0]
    try:
        return list(probe.run(runnable(draft.source.proto, draft.source), draft.source.folder, feeds, runtime))
    except Failed as error:
        raise VexlintError(f"{path}: {error}: what cannot run cannot be proven (--no-verify writes without)") from None


def _prove(
    draft: Draft,
    head: Head,
    chosen: Settings,
    piece: Any,
    names: tuple[str, ...],
    ran: tuple[list[dict[str, Array]], list[dict[str, Array]]],
    runtime: str,
) -> list[StageProof]:
    """The tail alone on made-up heads, and the whole model on what it was fed, both against the float64 reference."""
    batch = head.batch if isinstance(head.batch, int) else 2
    scenes = [reference.scene(head, seed, batch) for seed in range(SCENES)]
    found = _stage(
        f"tail on {runtime}", piece.SerializeToString(), draft, (scenes, scenes), (head, chosen, names), runtime
    )
    data = runnable(draft.proto, draft.source)
    feeds, seen = ran
    if runtime != _runtimes()[0]:
        source = runnable(draft.source.proto, draft.source)
        try:
            seen = list(probe.run(source, draft.source.folder, feeds, runtime))
        except Failed as error:
            return [found, StageProof(f"model on {runtime}", "not proven", str(error))]
    return [found, _stage(f"model on {runtime}", data, draft, (feeds, seen), (head, chosen, names), runtime)]


def _stage(
    name: str,
    data: bytes,
    draft: Draft,
    ran: tuple[list[dict[str, Array]], list[dict[str, Array]]],
    what: tuple[Head, Settings, tuple[str, ...]],
    runtime: str,
) -> StageProof:
    head, chosen, names = what
    feeds, outputs = ran
    pictures = count = 0
    try:
        for number, found in enumerate(probe.run(data, draft.source.folder, feeds, runtime)):
            wanted = reference.select(head, chosen, outputs[number])
            if fault := reference.difference(found, names, wanted):
                return StageProof(name, "not proven", f"sample {number}: {fault}")
            pictures, count = pictures + len(wanted), count + sum(len(w) for w in wanted)
    except Failed as error:
        return StageProof(name, "not proven", str(error))
    return StageProof(name, "proven", f"{pictures} pictures, {count} detections equal to float64 greedy NMS")
