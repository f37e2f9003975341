"""Detector heads and the NonMaxSuppression operator."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from vexlint.checks import tables
from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, grouped, hits
from vexlint.checks.support import layers_after
from vexlint.model.graph import Node, value_place
from vexlint.model.model import Model
from vexlint.model.shapes import Shape
from vexlint.values import Hit, Place, Severity

INT32_MAX = 2**31 - 1


def nms_outside(model: Model, context: Context) -> Iterator[Hit]:
    """VEX501: a detector head whose boxes leave the graph unsuppressed; one hit an output."""
    wanted = context.contract.nms is not None
    for head in model.heads:
        message = f"detector head {head}: NMS is outside the graph"
        message += ", the contract wants it inside" if wanted else ""
        way_out = "suppress in the application with the same thresholds on every runtime"
        if model.metadata.get("task") != "obb":  # rotated boxes need another overlap
            way_out += f", or insert it: vexlint nms {shlex.quote(str(model.path))} -o OUT"
        yield Hit(
            value_place("output", head.output),
            message,
            way_out,
            contract=wanted,
            fix=None if wanted else "none",  # without a contract the thresholds would be a guess
            data={"layout": head.layout.name, "classes": head.classes},
        )


def nms_arguments(model: Model, context: Context) -> Iterator[Hit]:
    """VEX502: arguments with which NonMaxSuppression selects nothing, or the wrong boxes; one hit a fault."""
    faults: dict[tuple[str, str, Severity], list[Place]] = {}
    for node in model.nodes("NonMaxSuppression"):
        for fault in (*_limits(node), *layout(node)):
            faults.setdefault(fault, []).append(node.place)
    for (message, way_out, severity), places in faults.items():
        yield Hit(places[0], message, way_out, severity=severity, more=tuple(places[1:]), count=len(places))


def _limits(node: Node) -> Iterator[tuple[str, str, Severity]]:
    most, known = _scalar(node, 2)
    if most is None and not known:
        pass  # computed at run time
    elif most is None or most <= 0:
        how = "is missing, which means 0" if most is None else f"is {most:g}"
        yield f"max_output_boxes_per_class {how}: nothing is selected", "write the number of boxes", Severity.ERROR
    elif most > INT32_MAX:
        yield (
            "max_output_boxes_per_class is so large that it is no limit: a target that plans memory ahead allocates "
            "for every box of every class",
            "write the number of boxes the application takes",
            Severity.INFO,
        )
    iou, known = _scalar(node, 3)
    if iou is None and known:
        yield "iou_threshold is missing, which means 0: any overlap suppresses", "write the threshold", Severity.WARNING
    elif iou is not None and not 0 <= iou <= 1:
        yield f"iou_threshold is {iou:g}, outside 0 to 1", "write a fraction, e.g. 0.45", Severity.ERROR


def _scalar(node: Node, position: int) -> tuple[float | None, bool]:
    """A scalar input as a number and whether it is known before the run; (None, True) where it is left out."""
    value = node.input(position)
    if value is None:
        return None, True
    constant = value.constant
    return (float(constant[0]), True) if constant else (None, False)


def layout(node: Node) -> Iterator[tuple[str, str, Severity]]:
    """boxes are [batch, N, 4], scores [batch, classes, N]."""
    boxes, scores = (v.shape if (v := node.input(i)) else None for i in (0, 1))
    way_out = "boxes are [batch, N, 4] and scores [batch, classes, N]"
    flat = [(name, s) for name, s in (("boxes", boxes), ("scores", scores)) if s is not None and s.rank != 3]
    for name, shape in flat:
        yield f"{name} {shape} have {shape.rank} axes, not 3: runtimes refuse that", way_out, Severity.ERROR
    if boxes is None or scores is None or flat:
        return
    if boxes.size(2) not in (4, None):
        yield f"boxes {boxes} have {boxes.size(2)} numbers each, not 4", way_out, Severity.ERROR
    for text in _mismatches(boxes, scores):
        yield text, way_out, Severity.ERROR


def nms_mid_graph(model: Model, context: Context) -> Iterator[Hit]:
    """VEX509: suppression in the middle of a network, for a target that does not run it; one hit a target."""
    for target in context.targets:
        yield from grouped(
            Hit(
                node.place,
                f"{target} does not run NonMaxSuppression ({found.why}), and what it keeps goes on "
                f"into {', '.join(layers_after(node))}",
                "cut the file in two there and suppress in between, or take a detector of one stage, whose suppression "
                "is the last step",
                str(target),
                found.verdict,
                data=dict(found.data),
            )
            for node, found in tables.judged(model, target).get("VEX509", ())
        )


def topk_limit(model: Model, context: Context) -> Iterator[Hit]:
    """VEX507: a TopK that asks for more than its axis has, or for a negative number; one hit a fault.

    Shapes are inferred only where a TopK of a known K reads what the file declares no shape of.
    """
    yield from hits((fault, node.place) for node in model.nodes("TopK") if (fault := too_many(node)) is not None)
    yield from tables.of("VEX507", model, context)


def too_many(node: Node) -> Fault | None:
    written = node.attribute("k")  # until opset 9; later an input
    count = written if written is not None else _scalar(node, 1)[0]
    source = node.input(0)
    if count is None or source is None:
        return None
    if count < 0:
        return Fault(f"K is {count:g}: runtimes refuse a negative K", "write the number of elements to keep")
    axis, shape = node.attribute("axis"), source.stated or source.shape
    length = shape.size(axis) if shape is not None and axis is not None else None
    if length is None or count <= length:
        return None
    return Fault(
        f"K is {count:g}, but axis {axis} of {shape} has {length}: runtimes refuse that",
        "keep as many as there are: export at the size that the detector is used with, or write the smaller K",
    )


def _mismatches(boxes: Shape, scores: Shape) -> Iterator[str]:
    count, given = boxes.size(1), scores.size(2)
    if count is not None and given is not None and count != given:
        turned = " (they look transposed)" if scores.size(1) == count else ""
        yield f"scores {scores} are for {given} boxes, boxes {boxes} are {count}{turned}"
    one, other = boxes.size(0), scores.size(0)
    if one is not None and other is not None and one != other:
        yield f"boxes {boxes} and scores {scores} differ in batch"
