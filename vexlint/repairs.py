"""`vexlint fix`: edits a draft, proves each stage of it, and writes it when all proofs hold."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint import __version__, composites, engine, fixer
from vexlint.checks.context import Context
from vexlint.config import Input
from vexlint.draft import Draft, runnable
from vexlint.engine import Settings
from vexlint.files import nearest
from vexlint.fixer import Stage
from vexlint.model import native
from vexlint.model.model import Model
from vexlint.model.read import read
from vexlint.model.wire import Unreadable
from vexlint.outcomes import FixReport, Proof, StageProof
from vexlint.values import Change, VexlintError

if TYPE_CHECKING:
    from onnx import ModelProto

NUMBERS = re.compile(r'\{[^{}]{60,}\}|\["location": [^\]]*\]')  # of a tensor, or where they are
INITIALIZERS = re.compile(r", (?=\w+\[[\w,]*\] \S+ = )")
VERSION, FIXED, PROOF = "vexlint.version", "vexlint.fixed", "vexlint.proof"  # what a fix writes into the metadata
UNVERIFIED = "not verified (--no-verify)"


@dataclass(frozen=True, slots=True)
class Options:
    """What `fix` was asked for. `shapes` are sizes of inputs over the contract's; `expect` are recorded outputs."""

    unsafe: bool = False
    verify: bool = True
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    expect: Path | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """An edited draft, its stages, and what it was made with. Nothing is written yet."""

    draft: Draft
    stages: tuple[Stage, ...]
    context: Context
    options: Options

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(c for stage in self.stages for c in stage.changes)


def plan(path: Path, run: Settings, options: Options) -> Repair:
    """Reads a file and edits a draft of it. Raises VexlintError where the file cannot be read, an input that a shape is
    given for does not exist, or fixes fail (see `fixer.repair`)."""
    try:
        draft = Draft(read(path))
        context = _shaped(engine.context_of(path, run), draft.source, options.shapes)
        if options.expect is not None:
            context = replace(context, composites={**_namesakes(draft.source), **context.composites})
        stages = fixer.repair(
            draft,
            run.rules.values(),
            context,
            options.unsafe,
            lambda found: engine.waive(path, found, run.config, run.rules)[0],
        )
    except (Unreadable, native.Stopped) as error:
        raise VexlintError(f"{path}: {error}") from None
    return Repair(draft, tuple(stages), context, options)


def carry_out(repair: Repair, output: Path, run: Settings, in_place: bool = False) -> FixReport:
    """Proves a repair and writes it. Where a proof does not hold nothing is written, and the report says which.

    What remains is judged by the contract and the waivers of the output, or where it has no contract by the source's.
    """
    draft, path = repair.draft, str(repair.draft.source.path)
    draft.check_destination(output, in_place)  # before the minutes that a proof may take
    proofs = tuple(prove(repair)) if repair.options.verify else ()
    failed = next((p for p in proofs if p.status == "not proven"), None)
    if failed is not None:
        return FixReport(path, None, repair.changes, proofs, None, f"{failed.stage}: {failed.text}")
    if repair.changes:
        _record(draft.proto, repair.changes, proofs)
    draft.save(output, in_place)
    known_as = output if run.config.contract(output).path else draft.source.path
    return FixReport(path, str(output), repair.changes, proofs, engine.check_file(output, run, known_as))


def difference(repair: Repair) -> str:
    """A unified diff of the model as ONNX text, large weights left out; "" where nothing changed."""
    from difflib import unified_diff

    if not repair.changes:
        return ""
    source = repair.draft.source
    one, other = (_text(p) for p in (source.proto, repair.draft.proto))
    return "".join(f"{line}\n" for line in unified_diff(one, other, str(source.path), "fixed", lineterm="", n=2))


def _text(proto: ModelProto) -> list[str]:
    """ONNX text with one initializer a line; the numbers of all but small ones are told by a checksum."""
    text = native.call("print", proto.SerializeToString()).decode("utf-8", "replace")
    text = NUMBERS.sub(lambda m: f"{{… {zlib.crc32(m[0].encode()):08x}}}", text)
    return INITIALIZERS.sub(",\n    ", text).splitlines()


def prove(repair: Repair) -> list[StageProof]:
    """One entry for each stage that changed something."""
    source = repair.draft.source
    structure, numbers, meaning, suppression = repair.stages
    proofs = []
    if structure.changes:
        same = fixer.same_computation(source.proto, structure.model)
        text = "nothing but node names, the order of nodes and imports differs" if same else "more than names differs"
        proofs.append(StageProof("structure", "proven" if same else "not proven", text))
    if repair.options.expect is not None:
        proofs.append(_expected(repair, meaning.model))
    else:
        proofs += [_numbers(repair, structure.model, numbers.model)] if numbers.changes else []
        proofs += [_meaning(source, numbers.model, meaning)] if meaning.changes else []
    return [*proofs, *_suppression(repair, meaning.model, suppression)]


def _suppression(repair: Repair, before: ModelProto, stage: Stage) -> tuple[StageProof, ...]:
    """The tail, beside NMS in float64 over what the model gave before."""
    from vexlint.nms import insert

    if not stage.changes:
        return ()
    source, contract = repair.draft.source, repair.context.contract
    view = Model(before, source.path, source.stripped)
    return insert.prove(view, stage.model, insert.plan(view, insert.Options(), contract), insert.Options(), contract)


def _numbers(repair: Repair, before: ModelProto, after: ModelProto) -> StageProof:
    from vexlint.fixes.operators import with_composites
    from vexlint.inline import NoComposite
    from vexlint.verify import proof

    source = repair.draft.source
    try:
        attached = with_composites(Model(before, source.path, source.stripped), repair.context)
    except NoComposite as error:
        text = f"nothing can run the file before the fix, {error}: give recorded outputs with --expect"
        return StageProof("numbers", "not proven", text)
    found = proof.prove(
        runnable(attached, source), runnable(after, source), folder=source.folder, contract=repair.context.contract
    )
    staged = _staged("numbers", found)
    if said := _said(repair, before):
        staged = replace(staged, text=f"{staged.text}; {said} is taken from [composites]: only --expect proves that")
    return staged


def _said(repair: Repair, before: ModelProto) -> str:
    """The operators of a model that are composites only because the configuration says so."""
    model = Model(before, repair.draft.source.path)
    said = {o: n for o, n in repair.context.composites.items() if tuple(o.rsplit("::", 1)) in model.operators}
    return ", ".join(f"{operator} = {name}" for operator, name in said.items())


def _expected(repair: Repair, after: ModelProto) -> StageProof:
    from vexlint.verify import proof

    source = repair.draft.source
    found = proof.prove(
        None,
        runnable(after, source),
        folder=source.folder,
        contract=repair.context.contract,
        expect=repair.options.expect,
    )
    return _staged("recorded outputs", found)


def _staged(stage: str, found: Proof) -> StageProof:
    comparison = found.comparisons[0]
    worst = max((d.max_rel for d in comparison.drifts), default=0.0)
    largest = max((d.max_abs for d in comparison.drifts), default=0.0)
    limit = max((d.limit for d in comparison.drifts), default=0.0)
    if comparison.ran is None or not comparison.drifts:
        text = comparison.reason
    else:
        text = (
            f"{comparison.samples} samples, max abs {_small(largest)}, max rel {_small(worst)} (limit {limit:g}), on "
        )
        nonfinite = sum(d.nonfinite for d in comparison.drifts)
        notes = [comparison.reason, *(f"{d.output}: {d.note}" for d in comparison.drifts if d.note)]
        notes += [f"{nonfinite} elements are NaN or infinite, which nothing can be compared with"] if nonfinite else []
        text += "; ".join([str(comparison.ran), *filter(None, notes)])
    return StageProof(stage, "proven" if found.status == "proven" else "not proven", text, found)


def _small(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _meaning(source: Model, before: ModelProto, stage: Stage) -> StageProof:
    """Changed on purpose, and nothing else: without the coordinate modes of the changed nodes both models are equal."""
    from vexlint.checks.resize import shift
    from vexlint.fixes.resize import without_modes

    places = [c.place for c in stage.changes]
    same = without_modes(before, places) == without_modes(stage.model, places)
    view = Model(before, source.path, source.stripped)
    shifts = [shift(view.node_at(c.place), c.before, c.after) for c in stage.changes]
    known = [s for s in shifts if s is not None]
    worst = max(known, key=lambda s: (s.image_px or 0.0, s.input_px), default=None)
    moved = f": samples move {worst}" if worst else ""
    text = f"nothing but the coordinate mode of {len(places)} nodes differs{moved}"
    return StageProof("meaning", "on purpose" if same else "not proven", text if same else "more than modes differs")


def _namesakes(model: Model) -> dict[str, str]:
    """Private operators that are called like a composite without being listed by it: "domain::Op" -> its name.

    Only for a repair that recorded outputs have to prove: a name alone is a guess.
    """
    known = {name.lower(): name for name in composites.load()}
    foreign = [(d, op) for d, op in model.operators if d and model.is_foreign(d, op)]
    unlisted = [(d, op) for d, op in foreign if op.lower() in known and composites.find(d, op, {}) is None]
    return {f"{domain}::{op}": known[op.lower()] for domain, op in unlisted}


def _shaped(context: Context, model: Model, shapes: Mapping[str, tuple[int, ...]]) -> Context:
    """The context with sizes given on the command line over the contract's.

    Raises VexlintError for an input that is not there, and for sizes that the file's own contradict: a size that it
    fixes cannot be another one.
    """
    known = list(model.graph.inputs)
    given = dict(context.contract.inputs)
    for name, shape in shapes.items():
        if name not in known:
            raise VexlintError(f"--shape {name}: no such input{nearest(name, known)}; there is {', '.join(known)}")
        own = model.graph.shape(name)
        if own is None:
            raise VexlintError(f"--shape {name}: the file does not say how many axes it has")
        wanted = ",".join(map(str, shape))
        if own.rank != len(shape):
            raise VexlintError(f"--shape {name}: [{wanted}] has {len(shape)} axes, the file says {own}")
        if any(isinstance(d, int) and d != size for d, size in zip(own.dims, shape, strict=True)):
            raise VexlintError(
                f"--shape {name}: [{wanted}] is not what the file fixes, {own}: export again at that size"
            )
        given[name] = Input(shape, given[name].dtype if name in given else None)
    return replace(context, contract=replace(context.contract, inputs=given))


def _record(proto: ModelProto, changes: tuple[Change, ...], proofs: tuple[StageProof, ...]) -> None:
    """Says in the model's metadata what was fixed and how it was proven; what an earlier fix said stays in it."""
    earlier = {e.key: e.value for e in proto.metadata_props}
    for index, entry in reversed(list(enumerate(proto.metadata_props))):
        if entry.key in (VERSION, FIXED, PROOF):
            del proto.metadata_props[index]
    before = {c for c in earlier.get(FIXED, "").split(", ") if c}
    codes = ", ".join(sorted({c.code for c in changes} | before))
    proven = [f"{p.stage}: {p.status}" for p in proofs] or [UNVERIFIED]
    lines = dict.fromkeys([*filter(None, earlier.get(PROOF, "").split("; ")), *proven])
    for key, value in ((VERSION, __version__), (FIXED, codes), (PROOF, "; ".join(lines))):
        proto.metadata_props.add(key=key, value=value)
