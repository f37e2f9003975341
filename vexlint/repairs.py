"""`vexlint fix`: edits a draft, proves each stage of it, and writes it when all proofs hold."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint import __version__, engine, fixer
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
from vexlint.values import Change, FixReport, Proof, StageProof, VexlintError

if TYPE_CHECKING:
    from onnx import ModelProto

NUMBERS = re.compile(r'\{[^{}]{60,}\}|\["location": [^\]]*\]')  # of a tensor, or where they are
INITIALIZERS = re.compile(r", (?=\w+\[[\w,]*\] \S+ = )")
RECORD = "vexlint."  # the keys of the model's metadata that a fix writes begin with this


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
        stages = fixer.repair(draft, run.rules.values(), context, options.unsafe)
    except (Unreadable, native.Stopped) as error:
        raise VexlintError(f"{path}: {error}") from None
    return Repair(draft, tuple(stages), context, options)


def carry_out(repair: Repair, output: Path, run: Settings, in_place: bool = False) -> FixReport:
    """Proves a repair and writes it. Where a proof does not hold nothing is written, and the report says which."""
    draft, path = repair.draft, str(repair.draft.source.path)
    proofs = tuple(prove(repair)) if repair.options.verify else ()
    failed = next((p for p in proofs if p.status == "not proven"), None)
    if failed is not None:
        return FixReport(path, None, repair.changes, proofs, None, f"{failed.stage}: {failed.text}")
    if repair.changes:
        _record(draft.proto, repair.changes, proofs)
    draft.save(output, in_place)
    return FixReport(path, str(output), repair.changes, proofs, engine.check_file(output, run))


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
    structure, numbers, meaning = repair.stages
    proofs = []
    if structure.changes:
        same = fixer.same_computation(source.proto, structure.model)
        text = "nothing but node names, the order of nodes and imports differs" if same else "more than names differs"
        proofs.append(StageProof("structure", "proven" if same else "not proven", text))
    if repair.options.expect is not None and (numbers.changes or meaning.changes):
        return [*proofs, _expected(repair, meaning.model)]
    if numbers.changes:
        proofs.append(_numbers(repair, structure.model, numbers.model))
    if meaning.changes:
        proofs.append(_meaning(source, numbers.model, meaning))
    return proofs


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
    return _staged("numbers", found)


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
        text = f"{comparison.samples} samples, max abs {largest:.1e}, max rel {worst:.1e} (limit {limit:g}), on "
        text += str(comparison.ran) + (f"; {comparison.reason}" if comparison.reason else "")
    return StageProof(stage, "proven" if found.status == "proven" else "not proven", text, found)


def _meaning(source: Model, before: ModelProto, stage: Stage) -> StageProof:
    """Changed on purpose, and nothing else: without the coordinate modes of the changed nodes both models are equal."""
    from vexlint.checks.resize import shift
    from vexlint.fixes.resize import node_at, without_modes

    places = [c.place for c in stage.changes]
    same = without_modes(before, places) == without_modes(stage.model, places)
    view = Model(before, source.path, source.stripped)
    shifts = [shift(node_at(view, c.place), c.before, c.after) for c in stage.changes]
    known = [s for s in shifts if s is not None]
    worst = max(known, key=lambda s: (s.image_px or 0.0, s.input_px), default=None)
    moved = f": samples move {worst}" if worst else ""
    text = f"nothing but the coordinate mode of {len(places)} nodes differs{moved}"
    return StageProof("meaning", "on purpose" if same else "not proven", text if same else "more than modes differs")


def _shaped(context: Context, model: Model, shapes: Mapping[str, tuple[int, ...]]) -> Context:
    """The context with sizes given on the command line over the contract's."""
    known = list(model.graph.inputs)
    given = dict(context.contract.inputs)
    for name, shape in shapes.items():
        if name not in known:
            raise VexlintError(f"--shape {name}: no such input{nearest(name, known)}; there is {', '.join(known)}")
        given[name] = Input(shape, given[name].dtype if name in given else None)
    return replace(context, contract=replace(context.contract, inputs=given))


def _record(proto: ModelProto, changes: tuple[Change, ...], proofs: tuple[StageProof, ...]) -> None:
    """Says in the model's metadata what was fixed and how it was proven."""
    for index, entry in reversed(list(enumerate(proto.metadata_props))):
        if entry.key.startswith(RECORD):
            del proto.metadata_props[index]
    codes = ", ".join(sorted({c.code for c in changes}))
    proven = "; ".join(f"{p.stage}: {p.status}" for p in proofs) or "not verified (--no-verify)"
    for key, value in (("version", __version__), ("fixed", codes), ("proof", proven)):
        proto.metadata_props.add(key=f"{RECORD}{key}", value=value)
