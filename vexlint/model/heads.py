"""Detector heads: outputs that hold one row of boxes and scores a grid place, before non-maximum suppression.

A head is recognised by its shape (as many places as the image has grid
cells), by what makes it, and by what the exporter's metadata says; nothing is run. What could be another family's
(classes first, boxes not decoded to pixels, scores alone) is no head here: silence is better than a wrong name.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from vexlint.model.graph import Graph, Node, Value
from vexlint.model.layouts import RECOGNISED, Layout
from vexlint.model.model import Model
from vexlint.model.shapes import Shape

STRIDES = ((8, 16, 32), (8, 16, 32, 64), (8, 16, 32, 64, 128), (4, 8, 16, 32), (16, 32))
ANCHORS = (1, 2, 3)  # boxes a grid cell
# Between the Concat that joins a head and the output: steps that move numbers about, or quantize them
STEPS = ("Transpose", "Reshape", "Identity", "Cast", "Squeeze", "Unsqueeze", "QuantizeLinear", "DequantizeLinear")
DECODING = ("Mul", "Add", "Sub", "Div", "Exp", "Pow")
SUPPRESSING = ("TopK", "NonMaxSuppression")


@dataclass(frozen=True, slots=True)
class Head:
    """One detector head. `classes` is None where masks or keypoints follow and no metadata counts the classes."""

    output: str
    shape: Shape
    layout: Layout
    classes: int | None

    def __str__(self) -> str:
        many = "class" if self.classes == 1 else "classes"
        count = "class scores and more" if self.classes is None else f"{self.classes} {many}"
        return f"{self.output} {self.shape} (layout {self.layout.name}: {self.layout.what}, {count})"


def find(model: Model) -> list[Head]:
    """The heads among the model's outputs, in their order; [] where boxes are already selected inside. Ask for them as
    `Model.heads`, which finds them once."""
    if selects(model):
        return []
    outputs = {name: model.graph.shape(name) for name in model.graph.outputs}
    heads = (_head(model, name, outputs) for name in outputs)
    return [h for h in heads if h is not None]


def selects(model: Model) -> bool:
    """Whether boxes are suppressed inside: by the standard's operator, or by what is called like one."""
    return any("NMS" in op or "NonMaxSuppression" in op for _, op in model.operators)


def inferred_shape(model: Model, output: str) -> Shape | None:
    """The shape of an output; inferred where it is declared open behind the batch: exporters declare made-up names for
    sizes they know."""
    shape = model.graph.shape(output)
    if shape is not None and any(not isinstance(d, int) for d in shape.dims[1:]):
        return model.inferred.get(("graph", output), shape)
    return shape


def apart(known: Mapping[str, Shape | None]) -> tuple[str, str] | None:
    """The names of boxes [B, N, 4] and scores [B, N, C] or [B, C, N] where just these two are the outputs."""
    shapes = {n: s for n, s in known.items() if s is not None and s.rank == 3}
    if len(known) != 2 or len(shapes) != 2:
        return None
    one, other = shapes
    fours = [n for n in (one, other) if shapes[n].size(2) == 4]
    if len(fours) == 2:
        fours = [n for n in fours if "box" in n.lower()]
    if len(fours) != 1:
        return None
    scores = other if fours[0] == one else one
    return (fours[0], scores) if shapes[fours[0]].dims[1] in shapes[scores].dims[1:] else None


def outputs(model: Model) -> dict[str, Shape | None]:
    """The outputs of a model with their shapes, see `inferred_shape`."""
    return {name: inferred_shape(model, name) for name in model.graph.outputs}


def image(model: Model) -> tuple[int, int] | None:
    """Height and width in px of the first input of images; None where there is none or its size is open."""
    for name in model.graph.inputs:
        shape = model.graph.shape(name)
        if shape is not None and shape.rank == 4:
            size = image_size(shape)
            return size if size is not None and all(size) else None
    return None


def image_size(shape: Shape) -> tuple[int, int] | None:
    """Height and width in px of an input of images, NCHW or NHWC by where the channels are; None where not fixed."""
    height, width = (1, 2) if shape.size(3) in (1, 3) and shape.size(1) not in (1, 3) else (2, 3)
    high, wide = shape.size(height), shape.size(width)
    return None if high is None or wide is None else (high, wide)


def names(model: Model) -> int | None:
    """How many classes the exporter's metadata names; None where it names none. Parsed as a literal, never run."""
    return _count(model.metadata.get("names", ""))


@cache
def _count(text: str) -> int | None:
    """The length of the list or dict that is written in a text; None where it is none."""
    try:
        with warnings.catch_warnings(action="ignore"):  # "\d" in a class name is no concern of the user's
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return len(found) if isinstance(found, dict | list | tuple) and found else None


def _head(model: Model, output: str, outputs: dict[str, Shape | None]) -> Head | None:
    shape = outputs[output]
    if shape is None or shape.rank != 3 or (join := _join(model.graph, output)) is None:
        return None
    suppressing = any(op in SUPPRESSING for _, op in model.operators)
    if suppressing and any(n.op in SUPPRESSING for n in model.graph.upstream(output)):
        return None
    if not _decoded(model, output):
        return None
    shape = inferred_shape(model, output) or shape
    for layout in RECOGNISED:
        if _fits(model, shape, layout) and _rows_fit(model, output, outputs, join, shape, layout):
            return Head(output, shape, layout, _classes(model, layout, shape.size(layout.rows) or 0))
    return None


def _fits(model: Model, shape: Shape, layout: Layout) -> bool:
    """Whether an output has the places of a grid and enough rows; without a grid the metadata must count the rows."""
    count, rows = shape.size(layout.places), shape.size(layout.rows)
    if rows is None or rows <= layout.before:
        return False
    named = names(model)
    if named is not None and rows >= layout.before + named and (count is None or count > rows):
        return True
    return count is not None and any(count == places for places, _, _ in grids(model))


def _rows_fit(
    model: Model, output: str, outputs: dict[str, Shape | None], join: Node, shape: Shape, layout: Layout
) -> bool:
    """Whether what is joined can be this layout.

    Parts joined along the rows must begin with the boxes and end with the scores; where no metadata names classes, a
    second output with as many places says that boxes and scores come apart.
    """
    if layout.before == 4 and _says_all(model, join, shape.size(layout.rows)):
        return True
    parts = _parts(join, layout, shape)
    objectness = len(parts) > 2 and parts[1] == 1 and names(model) != 1
    if parts and (parts[0] != 4 or (layout.before == 5) != objectness):
        return False
    others = [s for name, s in outputs.items() if name != output and s is not None]
    alone = names(model) is None and any(s.rank == 3 and shape.size(layout.places) in s.dims[1:] for s in others)
    return not alone


def _says_all(model: Model, join: Node, rows: int | None) -> bool:
    """Whether 4 box rows and the classes that the metadata names are all rows there are, the scores the second of two
    parts: then no shapes inside the graph are needed, which would start shape inference for every detector."""
    last = join.graph.producers.get(join.inputs[-1]) if join.inputs else None
    scores_last = len(join.inputs) == 2 and last is not None and last.op == "Sigmoid"
    return scores_last and rows == 4 + (names(model) or 0)


def _parts(join: Node, layout: Layout, shape: Shape) -> list[int]:
    """The rows of each part where the parts are joined along the rows, [] where levels are joined along the places."""
    parts: list[int] = []
    inner: Node | None = join
    rows = shape.size(layout.rows)
    while inner is not None:
        axis = (inner.attribute("axis") or 0) % 3
        shapes = [Value(inner.graph, name).shape for name in inner.inputs]
        sizes = [s.size(axis) or 0 if s is not None and s.rank == 3 else 0 for s in shapes]
        if not sizes or 0 in sizes or sum(sizes) != rows:
            break
        parts[:1], rows = sizes, sizes[0]
        # masks, keypoints and angles are joined to a head that was joined before
        inner = _join(inner.graph, inner.inputs[0]) if len(sizes) > 1 and rows > 4 else None
    return parts


def _classes(model: Model, layout: Layout, rows: int) -> int | None:
    named, rest = names(model), rows - layout.before
    if named is not None and named <= rest:
        return named
    return rest if len(model.graph.outputs) == 1 and model.metadata.get("task", "detect") == "detect" else None


def _join(graph: Graph, output: str) -> Node | None:
    """The Concat that makes a value, with only `STEPS` between."""
    maker: Node | None = graph.producers.get(output)
    seen = set[int]()
    while maker is not None and maker.op in STEPS and maker.index not in seen:
        seen.add(maker.index)
        source = maker.input(0)
        maker = source.producer if source else None
    return maker if maker is not None and maker.op == "Concat" else None


def _decoded(model: Model, output: str) -> bool:
    """Whether something between the last convolutions and the output computes boxes from grid and stride.

    Without convolutions in sight (a part of a network) there is nothing to say against it.
    """
    seen, row, convolutions = set[int](), [output], False
    while row:
        makers = {m.index: m for name in row if (m := model.graph.producers.get(name)) and m.index not in seen}
        seen.update(makers)
        row = []
        for maker in makers.values():
            if maker.op in DECODING:
                return True
            convolutions |= maker.op == "Conv"
            row += [] if maker.op == "Conv" else model.graph.reads(maker)
    return not convolutions


def grids(model: Model) -> Iterator[tuple[int, tuple[int, ...], tuple[int, int]]]:
    """The numbers of places that detectors have on the model's image, cells of a set of strides times anchors, each
    with its strides and the image's height and width."""
    for name in model.graph.inputs:
        shape = model.graph.shape(name)
        size = image_size(shape) if shape is not None and shape.rank == 4 else None
        if size is None:
            continue
        high, wide = size
        for strides in STRIDES:
            cells = sum(-(-high // s) * -(-wide // s) for s in strides)
            yield from ((cells * anchors, strides, size) for anchors in ANCHORS)
