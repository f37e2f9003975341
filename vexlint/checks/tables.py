"""What the tables of targets say of a file's nodes and numbers: what a runtime refuses, or computes differently."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.checks.faults import grouped
from vexlint.checks.support import Judgement, interesting, judge
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.values import Hit, Place, Severity

if TYPE_CHECKING:
    from vexlint.tables import Limit, Target

SAYS = {
    "refuses": "{target} refuses {op}: {why}",
    "differs": "{target} computes {op} differently: {why}",
    "falls-back": "{target} leaves {op} to the CPU: {why}",
    "needs-plugin": "{target} needs a plugin for {op}: {why}",
}
USUAL = 17  # the opset that most runtimes in use read
EVIDENCE = {
    "probe": "seen when it was tried on that runtime",
    "doc": "from its makers' documents",
    "configuration": "as the configuration says of it",
}
# What gets round an operator, where vexlint or every exporter has it
WAYS_OUT = {
    "NonMaxSuppression": "vexlint nms --tail loop suppresses without this operator",
    "Upsample": "export at opset 11 or later, which writes a Resize",
    "GridSample": "export at opset 16, whose mode names every reader knows",
    "SplitToSequence": "with a constant position it is a Split",
    "SequenceAt": "with a constant position it is an output of a Split",
    "ConcatFromSequence": "with a fixed number of parts it is a Concat",
    "DynamicQuantizeLinear": "quantize with scales from calibration (QuantizeLinear with constants)",
    "LayerNormalization": "export at opset 16, which writes it in plain operators",
}


def of(code: str, model: Model, context: Context) -> Iterator[Hit]:
    """What the tables of this run's targets have for one rule; one hit a target, operator and cause."""
    for target in context.targets:
        yield from grouped(_hit(node, found, target) for node, found in judged(model, target).get(code, ()))


unsupported = partial(of, "VEX207")
sequences = partial(of, "VEX110")
rounding = partial(of, "VEX303")
options = partial(of, "VEX304")
sampling = partial(of, "VEX307")
quantized = partial(of, "VEX605")

RESAMPLING = {"Resize": 11, "RoiAlign": 16}  # operators that a raised opset number shifts by half a pixel, from here on


def changed(model: Model, context: Context) -> Iterator[Hit]:
    """VEX209: operators that targets read with the meaning of another opset, and those whose opset number must not be
    raised; one hit a target, operator and cause."""
    yield from of("VEX209", model, context)
    for op, step in RESAMPLING.items():
        old = [n for n in model.nodes(op) if n.schema is not None and n.schema.since < step]
        yield from grouped(
            Hit(
                node.place,
                f"{op} of opset {node.graph.opsets['']} samples without the half-pixel shift that opset {step} brings",
                "never raise the opset number of this file; a converter has to write the coordinate mode",
                severity=Severity.INFO,
                data={"change": step},
            )
            for node in old
        )


Judged = dict[str, list[tuple[Node, Judgement]]]


def judged(model: Model, target: Target) -> Judged:
    """Rule -> the nodes that a target's table has something to say of: made once for all rules."""
    found: Judged | None = model.judged.get(str(target))
    if found is None:
        found = model.judged[str(target)] = {}
        for node in interesting(model, target):
            for judgement in judge(node, target):
                found.setdefault(judgement.rule, []).append((node, judgement))
    return found


def _hit(node: Node, found: Judgement, target: Target) -> Hit:
    op = f"{node.domain}::{node.op}" if node.domain else node.op
    version = found.data.get("version")
    named = f"{op}-{version}" if version else op
    size = f" (up to {found.data['size']})" if found.data.get("size") else ""
    evidence = EVIDENCE.get(str(found.data.get("evidence")), "")
    way_out = "; ".join(part for part in (WAYS_OUT.get(node.op, ""), evidence) if part)
    message = SAYS[found.verdict].format(target=target, op=named, why=found.why) + size
    return Hit(node.place, message, way_out, str(target), found.verdict, data=dict(found.data))


def opset_above(model: Model, context: Context) -> Iterator[Hit]:
    """VEX201: an opset that a target does not read; one hit a domain and target."""
    used = {domain for domain, _ in model.operators}
    for target in context.targets:
        for domain, version in model.opsets.items():
            limit = target.opsets.get(domain)
            if domain in used and limit is not None and limit.max is not None and version > limit.max:
                yield _beyond(target, domain, version, limit)


def _beyond(target: Target, domain: str, version: int, limit: Limit) -> Hit:
    refused = limit.basis == "enforced"
    what = "and refuses others" if refused else "as its makers say; a newer one is read as if it were that"
    return Hit(
        Place("import", name=domain or "ai.onnx", domain=domain),
        f"{target} reads {domain or 'ai.onnx'} up to opset {limit.max}, {what}; the file imports {version}",
        f"export again with opset_version={limit.max}; never change the number alone",
        str(target),
        "refuses" if refused else "unknown",
        severity=_advice(target, limit),
        data={"version": version, "limit": limit.max, "basis": limit.basis},
    )


def _advice(target: Target, limit: Limit) -> Severity | None:
    """What a limit is worth that only documents name: a target that one named should be told of, others mentioned."""
    return None if limit.basis == "enforced" else Severity.WARNING if target.named else Severity.INFO


def ir_above(model: Model, context: Context) -> Iterator[Hit]:
    """VEX202: an IR version that a target does not read; one hit a target."""
    version = model.proto.ir_version
    for target in context.targets:
        if target.ir.max is not None and version > target.ir.max:
            yield Hit(
                Place("file"),
                f"{target} reads IR versions up to {target.ir.max}; the file says {version}",
                f"save it with ir_version = {target.ir.max}, if nothing in it is newer "
                "(model.ir_version, before onnx.save)",
                str(target),
                "refuses" if target.ir.basis == "enforced" else "unknown",
                severity=_advice(target, target.ir),
                data={"version": version, "limit": target.ir.max, "basis": target.ir.basis},
            )


def opset_below(model: Model, context: Context) -> Iterator[Hit]:
    """VEX203: an opset older than any that a target reads; one hit a target."""
    version = model.opsets.get("")
    for target in context.targets:
        limit = target.opsets.get("")
        if version is not None and limit is not None and 0 < version < limit.min:
            yield Hit(
                Place("import", name="ai.onnx"),
                f"{target} reads ai.onnx from opset {limit.min}; the file imports {version}",
                f"export again with opset_version={max(limit.min, USUAL)} or the newest that every target reads",
                str(target),
                "refuses" if limit.basis == "enforced" else "unknown",
                severity=_advice(target, limit),
                data={"version": version, "limit": limit.min, "basis": limit.basis},
            )
