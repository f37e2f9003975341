"""Which head a model has, for a tail.

Structure and metadata propose (`model.heads`), `--layout` decides where they cannot, and `probe` contradicts. What
stays ambiguous is a question to the user, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

from vexlint.files import nearest
from vexlint.model import heads
from vexlint.model.layouts import APART, LAYOUTS, Layout
from vexlint.model.model import Model
from vexlint.model.shapes import Shape
from vexlint.values import VexlintError

UPRIGHT = ("detect", "", None)  # tasks whose boxes suppress each other by the overlap of upright boxes alone
ROWS = 1000  # at most as many rows has an output of selected detections


@dataclass(frozen=True, slots=True)
class Head:
    """One head. `outputs` are its tensors (boxes first where they come apart) with their `shapes`; `places` is N,
    None where it is open; `class_axis` the axis of the scores' classes; `image` is height and width in px."""

    layout: Layout
    outputs: tuple[str, ...]
    shapes: tuple[Shape, ...]
    classes: int
    places: int | None
    class_axis: int
    image: tuple[int, int] | None
    sure: bool  # metadata or the user name the layout: a probe that sees nothing is no objection

    @property
    def batch(self) -> int | str | None:
        return self.shapes[0].dims[0]

    def __str__(self) -> str:
        shown = ", ".join(f"{n} {s}" for n, s in zip(self.outputs, self.shapes, strict=True))
        return f"{shown} (layout {self.layout.name}: {self.classes} class{'es' if self.classes != 1 else ''})"


def find(model: Model, layout: str | None, by: str = "--layout ") -> Head:
    """The head that a tail is for; `layout` is the user's or the contract's word for it, and `by` where they said it.

    Raises VexlintError with a question where nothing decides, and where there is nothing to suppress.
    """
    where = model.path
    if layout is not None and layout not in LAYOUTS:
        raise VexlintError(f"{by}{layout!r} is none of {', '.join(LAYOUTS)}{nearest(layout, list(LAYOUTS))}")
    _refuse(model)
    found = model.heads
    if len(found) > 1:
        raise VexlintError(f"{where}: several heads, {', '.join(h.output for h in found)}: a tail is for one")
    apart = heads.apart(heads.outputs(model))
    if layout is not None and LAYOUTS[layout].outputs == 2:
        if apart is None:
            raise VexlintError(f"{where}: {by}{layout} wants two outputs, boxes [B, N, 4] and scores [B, N, C]")
        return _parts(model, LAYOUTS[layout], *apart)
    if found:
        seen = found[0].layout.name
        if layout not in (None, seen) and (seen, layout) != ("v5", "v7"):
            raise VexlintError(f"{where}: {by}{layout}, but the file's structure says {seen}: {found[0]}")
        return _single(model, LAYOUTS[layout or seen], found[0].output, found[0].shape, layout is not None)
    if apart is not None:
        raise VexlintError(
            f"{where}: boxes {apart[0]} and scores {apart[1]} come apart. Are the boxes corners or centres, in px or "
            f"in 0..1? Say it with --layout {'|'.join(APART)}"
        )
    if layout is None:
        raise VexlintError(
            f"{where}: no head is recognised in its outputs. Which layout is it? Say it with --layout v8|v5|v7"
        )
    ranked = {n: s for n in model.graph.outputs if (s := heads.inferred_shape(model, n)) is not None and s.rank == 3}
    if len(ranked) != 1:
        raise VexlintError(f"{where}: {by}{layout} wants one output of three axes, there are {len(ranked)}")
    output, shape = next(iter(ranked.items()))
    return _single(model, LAYOUTS[layout], output, shape, True)


def _refuse(model: Model) -> None:
    """Raises VexlintError where boxes are selected inside already, or are not upright."""
    where = model.path
    if heads.selects(model):
        raise VexlintError(f"{where}: it suppresses inside already: nothing to insert (a tail of ours: --remove)")
    if (task := model.metadata.get("task")) not in UPRIGHT:
        raise VexlintError(
            f"{where}: its metadata says task {task}: masks, keypoints and turned boxes are not carried yet"
        )
    for output in model.graph.outputs:
        if any(n.op == "TopK" for n in model.graph.upstream(output)):
            raise VexlintError(f"{where}: a TopK selects the rows of {output}: it is end-to-end and needs no NMS")
        shape = heads.inferred_shape(model, output)
        few = shape is not None and shape.rank == 3 and 0 < (shape.size(1) or 0) <= ROWS
        if few and shape is not None and shape.size(2) == 6 and len(model.graph.outputs) == 1:
            raise VexlintError(f"{where}: {output} {shape} are selected detections: it needs no NMS")
    by_name = {n.rpartition("/")[2].lower() for n in model.graph.outputs}
    if {"logits", "pred_boxes"} <= by_name:
        raise VexlintError(f"{where}: outputs logits and pred_boxes are those of a DETR, which needs no NMS")


def _single(model: Model, layout: Layout, output: str, shape: Shape, said: bool) -> Head:
    rows = shape.size(layout.rows)
    if rows is None or rows <= layout.before or (layout.score == "objectness" and rows > 6):
        raise VexlintError(f"{model.path}: {output} {shape} is no {layout.name} head: {layout.text}")
    named, rest = heads.names(model), rows - layout.before
    if named is not None and named != rest:
        raise VexlintError(
            f"{model.path}: {output} {shape} has room for {rest} classes as {layout.name}, the metadata names {named}: "
            "correct the metadata, or say another --layout; masks and keypoints after the classes are not carried yet"
        )
    if layout.name == "v5" and rest == 1 and not said:
        raise VexlintError(
            f"{model.path}: {output} {shape} has one class beside its objectness. Is the score their product, or the "
            "objectness alone? Say it with --layout v5|v7"
        )
    return Head(layout, (output,), (shape,), rest, shape.size(layout.places), layout.rows, heads.image(model),
                said or named is not None)  # fmt: skip


def _parts(model: Model, layout: Layout, boxes: str, scores: str) -> Head:
    shapes = heads.inferred_shape(model, boxes), heads.inferred_shape(model, scores)
    assert shapes[0] is not None and shapes[1] is not None
    places = shapes[0].size(1)
    class_axis = 2 if shapes[1].dims[1] == shapes[0].dims[1] else 1
    classes, image = shapes[1].size(class_axis), heads.image(model)
    if classes is None:
        raise VexlintError(f"{model.path}: scores {scores} {shapes[1]}: the number of classes is open")
    if layout.normalised and image is None:
        raise VexlintError(f"{model.path}: boxes in 0..1 need a fixed image size: vexlint fix --shape freezes one")
    return Head(layout, (boxes, scores), (shapes[0], shapes[1]), classes, places, class_axis, image, True)
