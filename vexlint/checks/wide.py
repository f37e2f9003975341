"""Element types that are wider than most targets compute with."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks import tables
from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.checks.weights import readers
from vexlint.model import tensors
from vexlint.model.kinds import Use
from vexlint.model.model import Model
from vexlint.model.schemas import element_name
from vexlint.tables import Target
from vexlint.values import Hit, Place, Severity

DOUBLE, INT64 = 11, 7
INT32_MAX = 2**31 - 1
CAST = "cast to float32 before the export (numpy scalars and torch.double buffers bring it in)"
NO_LIMIT = 2**63 - 2  # int64's largest and least stand for "to the end" and "all"


def wide_type(model: Model, context: Context) -> Iterator[Hit]:
    """VEX601: types that a target was seen to lack; with a deep look, float64 that is computed with and int64 constants
    that int32 does not hold. One hit each."""
    yield from tables.of("VEX601", model, context)
    yield from hits(found for target in context.targets if target.lacks for found in _lacked(model, target))
    narrowing = [str(t) for t in context.targets if t.named and "double" in t.narrows]
    for target in narrowing:
        text = f"float64 is computed with: {target} computes it in float32"
        yield from hits(_doubles(model, Fault(text, CAST, Severity.WARNING, target, "differs")))
    if context.deep:
        text = "float64 is computed with: most accelerators have none, and cast it or stop"
        yield from hits((*([] if narrowing else _doubles(model, Fault(text, CAST))), *_large(model)))


def _lacked(model: Model, target: Target) -> Iterator[tuple[Fault, Place]]:
    """The nodes that read or make a type that a target does not have, but for those of which its table speaks."""
    if target.lacks.isdisjoint(_read(model)):
        return
    odd = {use.way: types for use in model.ways.values() if (types := _types(use) & target.lacks)}
    judged = tables.judged(model, target).values()
    told = {node for found in judged for node, judgement in found if judgement.data.get("type") in target.lacks}
    for use in model.uses:
        for name in sorted(odd.get(use.way, ())) if use.node not in told else ():
            text, way_out = f"{target} has no element type {name}", "cast to a type that it has before the export"
            yield Fault(text, way_out, None, str(target), "refuses"), use.node.place


def _read(model: Model) -> set[str]:
    """The element types that nodes read or the main graph gives out: what is made and neither is of no use."""
    given = [model.flow.values[name] for name in model.graph.results if name in model.flow.values]
    return set[str]().union(*model.types_read.values(), (element_name(kind.type) for kind in given))


def _types(use: Use) -> set[str]:
    """The element types of what a node reads and, as far as the walk tells, of what it makes."""
    made = use.way.made[0] if use.way.made else []
    return {element_name(kind.type) for kind in (*use.inputs, *made)}


def _doubles(model: Model, fault: Fault) -> Iterator[tuple[Fault, Place]]:
    for held in model.held:
        if held.tensor.data_type == DOUBLE:
            for node, _ in readers(model, held.place):
                yield fault, node.place
    for node in model.nodes("Cast"):
        if node.attribute("to") == DOUBLE:
            yield fault, node.place


def _large(model: Model) -> Iterator[tuple[Fault, Place]]:
    fault = Fault(
        "an int64 constant does not fit int32, which is what targets without int64 make of it",
        "write a smaller number if it is meant as no limit",
    )
    for held in model.held:
        if held.tensor.data_type != INT64:
            continue
        numbers = tensors.values(held.tensor, model.folder) or []
        if any(INT32_MAX < abs(n) < NO_LIMIT for n in numbers):
            yield fault, held.place
