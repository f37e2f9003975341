"""Sizes that only a run can tell, and sizes of zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from vexlint.checks import tables
from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.checks.support import BY_VALUE
from vexlint.model.graph import Graph, Node, value_place
from vexlint.model.model import Model
from vexlint.values import Hit, Place, Severity


def data_dependent(model: Model, context: Context) -> Iterator[Hit]:
    """VEX405: nodes whose output sizes depend on the picture, where a target plans all sizes ahead; one hit for each
    operator and target. What its table refuses for another reason is said by another rule."""
    others = tuple(t for t in context.targets if t.dynamic_shapes != "static")
    yield from tables.of("VEX405", model, replace(context, targets=others))
    for target in context.targets:
        if target in others or not (dependent := list(_dependent(model))):
            continue
        told = {node for rule, found in tables.judged(model, target).items() if rule != "VEX405" for node, _ in found}
        yield from hits(
            (Fault(f"{text}: this target plans all sizes ahead", way_out, None, str(target), "refuses"), node.place)
            for text, way_out, nodes in dependent
            for node in nodes
            if node not in told
        )


def _dependent(model: Model) -> Iterator[tuple[str, str, list[Node]]]:
    cut = "cut the file before it and do the rest in the application"
    for op, nodes in groupby(model.nodes(*BY_VALUE), key=lambda n: n.op):
        yield f"how many rows {op} gives is known only at run time", cut, list(nodes)
    loops = [n for n in model.nodes("Loop") if _open_loop(n)]
    if loops:
        yield "how often the Loop runs is known only at run time", "export with the loop unrolled", loops
    forks = [n for n in model.nodes("If") if _forked(n)]
    if forks:
        text = "the branches of the If give results of different shape"
        yield text, "export so that both branches give the same shape, or the condition is a constant", forks


def _open_loop(node: Node) -> bool:
    """Whether a Loop gathers one row a run and the number of runs is no constant."""
    trips, going = node.input(0), node.input(1)
    fixed = trips is not None and trips.is_constant and (going is None or going.is_constant)
    body = next((g for g in node.graph.inner if g.owner is node), None)
    carried = max(len(node.inputs) - 2, 0)
    return body is not None and not fixed and len(node.outputs) > carried


def _forked(node: Node) -> bool:
    condition = node.input(0)
    if condition is None or condition.is_constant:
        return False
    branches = [g for g in node.graph.inner if g.owner is node]
    if len(branches) != 2:
        return False
    pairs = zip(*([_stated(branch, name) for name in branch.outputs] for branch in branches), strict=False)
    return any(a is not None and b is not None and a != b for a, b in pairs)


def _stated(graph: Graph, name: str) -> tuple[int | None, ...] | None:
    shape = graph.stated(name)
    return tuple(shape.size(i) for i in range(shape.rank)) if shape else None


def zero_size(model: Model, context: Context) -> Iterator[Hit]:
    """VEX407: inputs of no elements, Reshapes that are to make some, and reductions over rows that may be none."""
    for name in model.graph.inputs:
        shape = model.graph.stated(name)
        if shape is not None and shape.rank > 1 and 0 in shape.dims:  # a list of none is an option left out
            text = f"the input's shape {shape} has no elements: there is nothing to compute"
            place = value_place("input", name, shape.dims.index(0))
            yield Hit(place, text, "export with a real image, not with an empty tensor")
    yield from hits((fault, node.place) for node in model.nodes("Reshape") if (fault := _allows_zero(node)))
    if context.deep:
        yield from hits(_over_nothing(model))


def _allows_zero(node: Node) -> Fault | None:
    """allowzero = 1 means something only where the target holds a 0: exporters write it on every Reshape."""
    target = node.input(1)
    numbers = target.constant if target else None
    if node.attribute("allowzero") != 1 or not numbers or 0 not in numbers:
        return None
    return Fault(
        f"allowzero with the target [{','.join(map(str, numbers))}] makes a tensor of no elements; runtimes that do "
        "not know the attribute copy the input's size there",
        "without allowzero a 0 copies the input's size, which is nearly always what was meant",
    )


PASSING = ("Gather", "GatherND", "Cast", "Slice", "Squeeze", "Identity")  # rows stay on the first axis
REDUCING = ("ArgMax", "ArgMin", "ReduceMax", "ReduceMin")  # of nothing there is no greatest and no least
STEPS = 8  # nodes between the reduction and what makes the rows


def _over_nothing(model: Model) -> Iterator[tuple[Fault, Place]]:
    """Reductions of rows straight behind NonZero or NonMaxSuppression, outside any If that could guard them."""
    for node in model.nodes(*REDUCING):
        if node.graph.parent is None and _along_rows(node) and (source := _rows_of(node)) is not None:
            text = f"{node.op} over the rows of {source}, which may be none: it has no value then, and runtimes differ"
            way_out = "guard it with an If, or append a row that is always there"
            yield Fault(text, way_out, severity=Severity.INFO), node.place


def _along_rows(node: Node) -> bool:
    if node.op.startswith("Arg"):
        return bool(node.attribute("axis") == 0)
    given = node.input(1)
    axes: list[int] | None = node.attribute("axes") or (given.constant if given else None)
    return 0 in axes if axes else given is None


def _rows_of(node: Node) -> str | None:
    """The operator that makes the rows which are the first axis of what a node reads; None where nothing is certain."""
    value = node.input(0)
    for _ in range(STEPS):
        maker = value.producer if value else None
        if maker is None or maker.domain:
            return None
        if maker.op == "NonMaxSuppression":
            return maker.op
        if maker.op == "Transpose":  # NonZero gives one column for each place
            value, wanted = maker.input(0), "NonZero"
            return wanted if value and value.producer and value.producer.op == wanted else None
        if maker.op not in PASSING:
            return None
        places = maker.input(1) if maker.op.startswith("Gather") else None
        value = places if places is not None and not places.is_constant else maker.input(0)
    return None
