"""PRelu: along which axis its slopes go."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.values import Hit, Severity

BROADCAST = 7  # the opset from which slopes are broadcast as in numpy: a list of numbers goes along the last axis


def prelu_slope(model: Model, context: Context) -> Iterator[Hit]:
    """VEX606: a PRelu with one slope a channel whose slopes go along another axis; one hit a fault.

    Shapes are inferred only where a slope is a bare list of several numbers, which no right export of an image writes.
    """
    yield from hits((fault, node.place) for node in model.nodes("PRelu") if (fault := misplaced(node)) is not None)


def misplaced(node: Node) -> Fault | None:
    slope, source = node.input(1), node.input(0)
    stated = slope.stated if slope else None
    if source is None or stated is None or stated.rank != 1 or node.graph.opsets.get("", 0) < BROADCAST:
        return None
    count = stated.size(0)
    if count is None or count < 2:
        return None
    shape = source.stated or source.shape
    if shape is None or shape.rank < 3 or shape.size(1) != count:
        return None  # a matrix, or channels last: there the last axis is the right one
    way_out = f"write the slopes as [{','.join([str(count)] + ['1'] * (shape.rank - 2))}]"
    last = shape.size(-1)
    if last == count:
        text = f"{count} slopes go along the last axis of {shape}, not along the {count} channels of axis 1"
        return Fault(f"{text}, if it is NCHW", way_out, severity=Severity.WARNING)
    along = "its last axis, whose size is open" if last is None else f"its last axis of {last}"
    return Fault(f"{count} slopes for the {count} channels of {shape} go along {along}", way_out)
