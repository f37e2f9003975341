"""What the metadata and the contract say of a detector head and its NMS, against what the file holds."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from vexlint.checks.context import Context
from vexlint.checks.faults import grouped
from vexlint.config import TASKS
from vexlint.model import heads, picks
from vexlint.model.graph import Node, value_place
from vexlint.model.heads import Head
from vexlint.model.layouts import LAYOUTS
from vexlint.model.model import Model
from vexlint.values import Hit, Place

TAIL = "vexlint.nms."  # what `vexlint nms` writes its settings under
NUMBERS = ("score", "iou", "max_detections")
COMPARING = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual")
LIMITING = ("TopK", "ScatterND", "ScatterElements", "Loop", "If", "Scan", "NonZero", "Compress")
KEEP = "correct the metadata: applications read it instead of asking"


def head_metadata(model: Model, context: Context) -> Iterator[Hit]:
    """VEX508: class count, stride and task in the metadata, task and NMS in the contract, where the file differs."""
    said = model.metadata
    if {"names", "stride", "task"} & said.keys() or context.contract.task is not None:
        found = model.heads
        for head in found:
            yield from _classes(model, head)
            yield from _stride(model, head)
        yield from _task(model, context, found)
    yield from _tail_classes(model)
    if context.contract.nms is not None:
        yield from grouped(_thresholds(model, context))


def _about(key: str) -> Place:
    return value_place("metadata", key)


def _classes(model: Model, head: Head) -> Iterator[Hit]:
    named, more = heads.names(model), _behind(model)
    rows = head.shape.size(head.layout.rows)
    if named is None or rows is None:
        return
    room = rows - head.layout.before - (more or 0)
    if named > room if more is None else named != room:
        text = f"names lists {_classes_text(named)}, but {head.output} {head.shape} has rows for {room}"
        yield Hit(_about("names"), text, KEEP, data={"named": named, "rows": room})


def _classes_text(count: int) -> str:
    return "1 class" if count == 1 else f"{count} classes"


def _behind(model: Model) -> int | None:
    """How many rows follow the class scores: masks, keypoints, an angle. None where not known."""
    task = model.metadata.get("task")
    if task == "detect" or (task is None and len(model.graph.outputs) == 1):
        return 0
    if task == "obb":
        return 1
    if task == "pose":
        points = _literal(model.metadata.get("kpt_shape", ""))
        whole = isinstance(points, list | tuple) and bool(points) and all(isinstance(p, int) for p in points)
        return math.prod(points) if whole and isinstance(points, list | tuple) else None
    shapes = [s for n in model.graph.outputs if (s := heads.inferred_shape(model, n)) is not None and s.rank == 4]
    return shapes[0].size(1) if task == "segment" and len(shapes) == 1 else None


def _stride(model: Model, head: Head) -> Iterator[Hit]:
    """The stride is that of the coarsest level, or a list of all; the places of the head say which there are."""
    said = _literal(model.metadata.get("stride", ""))
    strides = [said] if isinstance(said, int | float) else said
    if not isinstance(strides, list | tuple) or not strides or not all(isinstance(s, int | float) for s in strides):
        return
    places = head.shape.size(head.layout.places)
    fitting = [(levels, size) for count, levels, size in heads.grids(model) if count == places]
    if not fitting or any(max(strides) == levels[-1] and len(strides) in (1, len(levels)) for levels, _ in fitting):
        return
    levels, (high, wide) = fitting[0]
    text = f"stride is {model.metadata['stride']}, but {head.output} {head.shape} has the places of strides "
    text += f"{', '.join(map(str, levels))} on {high} x {wide}"
    yield Hit(_about("stride"), text, KEEP, data={"places": places})


def _task(model: Model, context: Context, found: list[Head]) -> Iterator[Hit]:
    wanted, written = context.contract.task, model.metadata.get("task")
    if wanted is not None and written in TASKS and wanted not in (written, "other"):
        text = f"task is {written} where the contract says {wanted}"
        yield Hit(_about("task"), text, "export with the contract's task, or correct the contract", contract=True)
        return
    task = wanted or written
    who = "the contract says" if wanted else "the metadata says"
    way_out = "export with the contract's task, or correct the contract" if wanted else KEEP
    if not found:
        return
    head = found[0]
    if task == "classify":
        text = f"{who} task classify, but {head.output} {head.shape} is a detector head"
    elif task == "segment" and not any(_maybe_masks(model, n) for n in model.graph.outputs if n != head.output):
        text = f"{who} task segment, but no output holds mask prototypes beside {head.output} {head.shape}"
    else:
        return
    yield Hit(value_place("output", head.output), text, way_out, contract=wanted is not None)


def _maybe_masks(model: Model, output: str) -> bool:
    shape = heads.inferred_shape(model, output)
    return shape is None or shape.rank == 4


def _tail_classes(model: Model) -> Iterator[Hit]:
    said, named = model.metadata.get(f"{TAIL}classes", ""), heads.names(model)
    if said.isdecimal() and named is not None and int(said) != named:
        text = f"names lists {_classes_text(named)}, but the tail that suppresses was made for {said}"
        yield Hit(_about("names"), text, KEEP)


def _thresholds(model: Model, context: Context) -> Iterator[Hit]:
    """The contract's `nms` against the tail's metadata; without them against what suppresses, the last in a row."""
    wanted = context.contract.nms or {}
    if any(f"{TAIL}{key}" in model.metadata for key in (*NUMBERS, "layout")):
        yield from _against_metadata(model, wanted)
        return
    layout = wanted.get("layout")
    for head in model.heads if layout in LAYOUTS else []:
        if layout not in (head.layout.name, "v7" if head.layout.name == "v5" else None):
            text = f"head {head.output} {head.shape} is of layout {head.layout.name}, the contract's nms says {layout}"
            yield Hit(value_place("output", head.output), text, "correct the contract", contract=True)
    for node in _last(model):
        for what, number in _settings(node).items():
            if what in wanted and (text := _differs(model, node, what, number, wanted[what])):
                yield Hit(node.place, text, "export with the contract's numbers, or correct it", contract=True)


def _against_metadata(model: Model, wanted: Mapping[str, Any]) -> Iterator[Hit]:
    way_out = "take the tail off (vexlint nms --remove) and put it on anew with the contract's numbers"
    for key, value in wanted.items():
        written = model.metadata.get(TAIL + key)
        number = _literal(written or "")
        if written is None or (key != "layout" and not isinstance(number, int | float)):
            continue
        same = written == value if key == "layout" else math.isclose(float(str(number)), value, rel_tol=1e-6)
        if not same:
            text = f"the tail was made with {key} {written} where the contract says {value}"
            yield Hit(_about(TAIL + key), text, way_out, contract=True)


def _last(model: Model) -> list[Node]:
    """What suppresses, but for nodes that choose the proposals of another one."""
    found = [*model.nodes("NonMaxSuppression")]
    found += [n for (_, op), nodes in model.operators.items() if op.startswith("EfficientNMS") for n in nodes]
    feeding: set[int] = set()
    for node in found:
        if len(found) > 1 and node.graph is model.graph:
            feeding |= {n.index for n in node.graph.upstream(*node.inputs) if n.index != node.index}
    inner = any(n.graph is not model.graph for n in found)
    if inner and len(found) > 1:
        return []  # across subgraphs nothing tells which one is the last
    return [n for n in found if n.index not in feeding]


def _settings(node: Node) -> dict[str, float]:
    """The parameters that the file holds, by the contract's names."""
    if node.op != "NonMaxSuppression":
        by_name = {"score": "score_threshold", "iou": "iou_threshold", "max_detections": "max_output_boxes"}
        found = {key: node.attribute(name) for key, name in by_name.items()}
        return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}
    by_position = {"max_detections": 2, "iou": 3, "score": 4}
    known = {"score": 0.0} if node.input(4) is None else {}
    for key, position in by_position.items():
        value = node.input(position)
        constant = value.constant if value else None
        if constant and isinstance(constant[0], int | float):
            known[key] = float(constant[0])
    return known


def _differs(model: Model, node: Node, what: str, number: float, wanted: float) -> str:
    """How a parameter contradicts the contract, "" where it does not. Scores may be filtered by other nodes, and rows
    be limited behind."""
    if math.isclose(number, wanted, rel_tol=1e-6, abs_tol=1e-7):
        return ""
    if what == "score" and number <= 0 and model.nodes(*COMPARING):
        return ""
    if what == "max_detections" and number <= 0:
        return ""  # VEX502 says that nothing is selected
    if what == "max_detections" and number > wanted and _limited(node):
        return ""
    names = {"score": "the score threshold", "iou": "the IoU threshold", "max_detections": "the number of boxes"}
    a_class = " a class" if what == "max_detections" and node.op == "NonMaxSuppression" else ""
    return f"{names[what]}{a_class} is {number:g} where the contract's nms says {wanted:g}"


def _limited(node: Node) -> bool:
    """Whether something behind may leave fewer rows."""
    graph = node.graph
    behind = graph.downstream([o for o in node.outputs if o])
    makers = [m for name in behind if (m := graph.producers.get(name)) is not None and m is not node]
    cut = any(m.op == "Slice" and 0 in (picks.numbers(m, "axes", 3) or [0]) for m in makers)
    return graph.parent is not None or cut or any(m.op in LIMITING for m in makers)


def _literal(text: str) -> object:
    """A literal that is written in a text, None where it is none. Parsed, never run."""
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        found: object = ast.literal_eval(text)
        return found
    return None
