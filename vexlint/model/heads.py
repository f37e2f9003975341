"""Detector heads: outputs that hold one row of boxes and scores a grid place, before non-maximum suppression.

A family of heads is one entry in `LAYOUTS`. A head is recognised by its shape (as many places as the image has grid
cells), by the concatenation of levels behind it, and by what the exporter's metadata says; nothing is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from vexlint.model.model import Model, Node
from vexlint.model.shapes import Shape

STRIDES = ((8, 16, 32), (8, 16, 32, 64), (8, 16, 32, 64, 128), (16, 32))
ANCHORS = (1, 2, 3)  # boxes a grid cell
STEPS = ("Transpose", "Reshape", "Identity", "Cast", "Squeeze", "Unsqueeze")  # after the levels' Concat
SUPPRESSING = ("TopK", "NonMaxSuppression")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a head keeps its rows: the axis of the places, the axis of box and scores, and what stands before the
    class scores (4 box numbers, and an objectness where there is one)."""

    name: str
    places: int
    rows: int
    before: int
    text: str


LAYOUTS = (
    Layout("v8", places=2, rows=1, before=4, text="4 box rows"),
    Layout("v5", places=1, rows=2, before=5, text="4 box columns, objectness"),
)


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
        return f"{self.output} {self.shape} (layout {self.layout.name}: {self.layout.text}, {count})"


def find(model: Model) -> list[Head]:
    """The heads among the model's outputs, in their order; [] where boxes are already selected inside."""
    if any("NMS" in op or "NonMaxSuppression" in op for _, op in model.operators):
        return []
    heads = (_head(model, name) for name in model.graph.outputs)
    return [h for h in heads if h is not None]


def names(model: Model) -> int | None:
    """How many classes the exporter's metadata names; None where it names none. Parsed as a literal, never run."""
    try:
        found = ast.literal_eval(model.metadata.get("names", ""))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return len(found) if isinstance(found, dict | list | tuple) and found else None


def _head(model: Model, output: str) -> Head | None:
    shape = model.graph.shape(output)
    if shape is None or shape.rank != 3:
        return None
    if not _levels_joined(model, output) or any(n.op in SUPPRESSING for n in model.graph.upstream(output)):
        return None
    if not isinstance(shape.dims[1], int) or not isinstance(shape.dims[2], int):
        shape = model.inferred.get(("graph", output), shape)  # exporters declare made-up names for sizes they know
    places = set(_grids(model))
    for layout in LAYOUTS:
        count, rows = shape.size(layout.places), shape.size(layout.rows)
        if rows is None or rows <= layout.before:
            continue
        # without a fixed image size the number of places is open too; the metadata must speak for it then
        by_grid = count is not None and count in places
        by_metadata = count is None and not places and names(model) is not None
        if by_grid or by_metadata:
            return Head(output, shape, layout, _classes(model, layout, rows))
    return None


def _classes(model: Model, layout: Layout, rows: int) -> int | None:
    named, rest = names(model), rows - layout.before
    if named is not None and named <= rest:
        return named
    return rest if len(model.graph.outputs) == 1 and model.metadata.get("task", "detect") == "detect" else None


def _levels_joined(model: Model, output: str) -> bool:
    """Whether a Concat makes the output, with only steps between that move numbers about."""
    maker: Node | None = model.graph.producers.get(output)
    while maker is not None and maker.op in STEPS:
        source = maker.input(0)
        maker = source.producer if source else None
    return maker is not None and maker.op == "Concat"


def _grids(model: Model) -> Iterator[int]:
    """The numbers of places that detectors have on the model's image: cells of a set of strides, times anchors."""
    for name in model.graph.inputs:
        shape = model.graph.shape(name)
        if shape is None or shape.rank != 4:
            continue
        height, width = (1, 2) if shape.size(3) in (1, 3) and shape.size(1) not in (1, 3) else (2, 3)
        high, wide = shape.size(height), shape.size(width)
        if high is None or wide is None:
            continue
        for strides in STRIDES:
            cells = sum(-(-high // s) * -(-wide // s) for s in strides)
            yield from (cells * anchors for anchors in ANCHORS)
