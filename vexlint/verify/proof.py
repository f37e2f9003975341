"""Does a candidate compute what a reference computes? `verify` asks it of two files, `prove` of a rewrite.

The reference is a model on one runtime, or a recording; the candidate is one model on one or several runtimes. Where
both sides detect objects, the sets of detections decide and the tensors inform; else every tensor has to be within
its limit. What could not be run, or proves nothing (no detections, one constant), is never a pass.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vexlint.config import Config, Contract
from vexlint.files import nearest
from vexlint.model import proto
from vexlint.model.model import Model
from vexlint.model.read import TEXT_SUFFIXES, load
from vexlint.outcomes import Proof
from vexlint.runtimes import base
from vexlint.runtimes.child import RUNNING
from vexlint.values import VexlintError
from vexlint.verify import inputs, judge, recordings, samples
from vexlint.verify.inputs import Inputs, Shape
from vexlint.verify.recordings import Recording
from vexlint.verify.run import Job, Run, Side
from vexlint.verify.samples import Samples

NOISE = 8  # samples where nobody says how many
CPU = "onnxruntime"


@dataclass(frozen=True, slots=True)
class Request:
    """What to feed, where to run and how to judge; the fields are the options of `vexlint verify`.

    A runtime is written `name` or `name:device`; `provider` is the device of ONNX Runtime.
    """

    runtimes: Sequence[str] = (CPU,)
    reference_runtime: str = CPU
    provider: str = ""
    images: Path | None = None
    inputs: Path | None = None
    samples: int | None = None
    seed: int = 0
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    save: Path | None = None
    raw: bool = False
    deadline: float = RUNNING


def verify(reference: Path, candidate: Path, request: Request, config: Config) -> Proof:
    """Compares two files. Raises VexlintError for what a person has to mend first: an unreadable file, an axis without
    a size, a picture that is none."""
    recorded = recordings.is_recording(reference)
    if request.save is not None and request.inputs is not None and request.save.resolve() == request.inputs.resolve():
        raise VexlintError(f"--save-outputs would write over the inputs {request.inputs}: name another file")
    contract = _contract(config, reference, candidate, recorded)
    theirs = _read(candidate)
    ours = None if recorded else _read(reference)
    _check_shapes(request.shapes, [m for m in (ours, theirs) if m is not None])
    right = _side(theirs, candidate.resolve(), "", str(candidate), contract, request)
    if ours is not None:
        own = config.contract(reference)
        left = _side(ours, reference.resolve(), "", str(reference), own if own.path else contract, request)
        return _prove(left, right, contract, request)
    if request.save is not None:
        raise VexlintError(f"--save-outputs records the reference, and {reference} is a recording already")
    return _prove(_recording(reference, right), right, contract, request)


def prove(
    before: Path | bytes | None,
    after: Path | bytes,
    *,
    folder: Path,
    contract: Contract | None = None,
    expect: Path | None = None,
    request: Request | None = None,
) -> Proof:
    """Compares a model after a rewrite with what it was before, or with outputs that were recorded elsewhere (`expect`;
    `before` may be None then).

    A model is a file, or the bytes of a ModelProto whose external data lies in `folder` (inside another .onnx, too).
    Unless `request` says otherwise, the tensors decide, on 8 samples of noise and ONNX Runtime's CPU. Raises
    VexlintError as `verify` does.
    """
    known, asked = contract or Contract(), request or Request(raw=True)
    with tempfile.TemporaryDirectory(prefix="vexlint-") as made:
        right = _rewritten(after, folder, Path(made) / "the fixed model.onnx", known, asked)
        if expect is not None:
            return _prove(_recording(expect, right), right, known, asked)
        if before is None:
            raise ValueError("neither a model before the rewrite nor recorded outputs to compare with")
        left = _rewritten(before, folder, Path(made) / "the model before.onnx", known, asked)
        return _prove(left, right, known, asked)


def _prove(reference: Side | Recording, candidate: Side, contract: Contract, request: Request) -> Proof:
    ours = reference.inputs if isinstance(reference, Side) else candidate.inputs
    widened = replace(ours, specs=tuple(_widened(s) for s in ours.specs))
    made = _samples(reference, candidate, widened, contract, request)
    decoding = None
    if not request.raw:
        model = reference.model if isinstance(reference, Side) else None
        recorded = None if isinstance(reference, Side) else reference.outputs(0)
        decoding = judge.decoding(candidate.model, contract, model, recorded)
    job = Job(
        reference=reference,
        candidate=candidate,
        samples=made,
        inputs=widened,
        contract=contract,
        decoding=decoding,
        runtimes=_runtimes(request),
        reference_runtime=base.named(request.reference_runtime),
        save=request.save,
        deadline=request.deadline,
    )
    return Run(job).proof()


def _runtimes(request: Request) -> list[tuple[str, str]]:
    """Each runtime with its device; `provider` is that of ONNX Runtime where it names none itself."""
    found = dict.fromkeys(base.named(r) for r in request.runtimes)
    if request.provider and (CPU, "") not in found:
        raise VexlintError(f"--provider is for {CPU}, which is not among the runtimes: --runtime {CPU}")
    return [(name, device or (request.provider if name == CPU else "")) for name, device in found]


def _widened(spec: inputs.Spec) -> inputs.Spec:
    """Samples are made in float32 where a model wants half: one that wants float32 gets the very same numbers."""
    return replace(spec, dtype="float32") if spec.dtype == "float16" else spec


def _samples(
    reference: Side | Recording, candidate: Side, wanted: Inputs, contract: Contract, request: Request
) -> Samples:
    """What the request feeds; without a word in it, the inputs that a recording holds, else noise."""
    if request.images is not None and request.inputs is not None:
        raise VexlintError("--images and --inputs both say what to feed: choose one")
    where = candidate.label
    length = None if isinstance(reference, Side) else len(reference)
    made: Samples
    if request.images is not None:
        made = samples.pictures(request.images, wanted, contract, where)
    elif request.inputs is not None:
        made = samples.recorded(recordings.read_inputs(request.inputs), wanted, str(request.inputs))
    elif not isinstance(reference, Side) and reference.inputs:
        made = samples.recorded(reference.inputs, wanted, reference.origin)
    elif not isinstance(reference, Side) and not reference.digests:
        raise VexlintError(
            f"{reference.origin}: it does not hold the inputs that its outputs were made from: record them with the "
            "outputs, or give them to verify with --inputs FILE (polygraphy run --save-inputs writes such a one) or "
            "--images FOLDER"
        )
    else:
        count = request.samples if request.samples is not None else length or NOISE
        made = samples.noise(wanted, contract, count, request.seed, where)
    if length is not None and length != len(made):
        raise VexlintError(
            f"the recording holds {length} samples, and there are {len(made)} {made.unit}s ({made.origin}) to feed: "
            "nothing says which belong together"
        )
    return made


def _contract(config: Config, reference: Path, candidate: Path, recorded: bool) -> Contract:
    """What holds for the comparison: the candidate's contract, and for what it leaves out the reference's."""
    ours = config.contract(candidate)
    theirs = Contract() if recorded else config.contract(reference)
    if ours.preprocessing and theirs.preprocessing and ours.preprocessing != theirs.preprocessing:
        raise VexlintError(
            f"{reference} and {candidate} have contracts with different preprocessing: the same numbers cannot go to "
            "both"
        )
    return replace(
        ours,
        task=ours.task or theirs.task,
        precision=ours.precision or theirs.precision,
        inputs=ours.inputs or theirs.inputs,
        profile=ours.profile or theirs.profile,
        preprocessing=ours.preprocessing or theirs.preprocessing,
        nms=ours.nms or theirs.nms,
        tolerance=ours.tolerance or theirs.tolerance,
    )


def _read(path: Path) -> Model:
    if path.suffix in TEXT_SUFFIXES:
        raise VexlintError(f"{path}: runtimes read binary ONNX, not text")
    return load(path)


def _check_shapes(shapes: Mapping[str, Shape], models: list[Model]) -> None:
    names = list(dict.fromkeys(name for model in models for name in model.graph.inputs))
    for name in shapes:
        if name not in names:
            raise VexlintError(f"--shape {name}: no such input{nearest(name, names)}; there is {', '.join(names)}")


def _side(model: Model, file: Path, folder: str, label: str, contract: Contract, request: Request) -> Side:
    given = {name: shape for name, shape in request.shapes.items() if name in model.graph.inputs}
    return Side(model, file, folder, label, inputs.resolve(model, contract, given))


def _rewritten(source: Path | bytes, folder: Path, file: Path, contract: Contract, request: Request) -> Side:
    if isinstance(source, Path):
        return _side(_read(source), source.resolve(), "", str(source), contract, request)
    file.write_bytes(source)
    model = Model(proto.parse(source), folder / file.name)
    return _side(model, file, str(folder.resolve()), file.stem, contract, request)


def _recording(path: Path, candidate: Side) -> Recording:
    names = [s.name for s in candidate.inputs.specs]
    found = recordings.read(path, names, list(candidate.model.graph.outputs), candidate.inputs.batch)
    if not len(found):
        raise VexlintError(f"{path}: a recording of no samples")
    return found
