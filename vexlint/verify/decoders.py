"""From a detector's outputs to detections.

A head, laid out in one of the ways of `model.layouts`, holds a row of numbers for every place; what non-maximum
suppression would leave of it is found here, in float64. Outputs that were selected inside the graph (`SELECTED`) are
taken as they are, less what is not above the score threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vexlint.config import Contract
from vexlint.files import nearest
from vexlint.model import heads
from vexlint.model.layouts import LAYOUTS, Layout
from vexlint.model.model import Model
from vexlint.model.shapes import Shape
from vexlint.values import VexlintError
from vexlint.verify.boxes import Detections, Thresholds, corners, detections, suppress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vexlint.verify.boxes import Floats

    Array = NDArray[Any]

Dims = Sequence[int | str | None]
ROWS = 1000  # at most as many rows has an output of selected detections


class Undecodable(Exception):  # noqa: N818  what is in the outputs, not whose fault
    """The outputs are not what their layout says; the message says in what."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """How one model's outputs become detections. `text` is for people."""

    text: str
    outputs: tuple[str, ...]
    function: Callable[[list[Array], Thresholds], list[Detections]]

    def decode(self, outputs: Mapping[str, Array], thresholds: Thresholds) -> list[Detections]:
        """The detections of each picture of a batch. Raises `Undecodable`."""
        if absent := [n for n in self.outputs if n not in outputs]:
            raise Undecodable(f"no output {', '.join(absent)} to decode, only {', '.join(outputs)}")
        try:
            found = self.function([outputs[n] for n in self.outputs], thresholds)
        except (IndexError, ValueError) as error:
            shapes = ", ".join(f"{n} {list(outputs[n].shape)}" for n in self.outputs)
            raise Undecodable(f"{shapes}: not {self.text}: {error}") from None
        highest = max((float(d.scores.max()) for d in found if len(d)), default=0.0)
        if highest > 1.001:
            raise Undecodable(f"scores go up to {highest:.3g}: they are no probabilities, so no threshold fits them")
        return found


def split(layout: Layout, arrays: Sequence[Array], classes: int | None = None) -> tuple[Array, Array]:
    """Boxes [N, 4] as a head has them and scores float32 [N, C] of one picture, from its outputs without B.

    A product of objectness and class is made in float32, as a graph makes it. Rows after the classes are not looked at.
    """
    import numpy as np

    if layout.outputs == 2:
        boxes, scores = arrays
        return boxes, np.asarray(scores if len(scores) == len(boxes) else scores.T, np.float32)[:, :classes]
    rows = arrays[0].T if layout.places == 2 else arrays[0]
    scores = np.asarray(rows[:, layout.before :], np.float32)[:, :classes]
    if layout.score != "class":
        objectness = np.asarray(rows[:, 4:5], np.float32)
        scores = objectness * scores if layout.score == "product" else objectness
    return rows[:, :4], scores


def upright(layout: Layout, boxes: Array, image: tuple[int, int] | None) -> Floats:
    """x1 y1 x2 y2 in px, float64 [N, 4], of boxes as a head has them; `image` is height and width in px."""
    import numpy as np

    found = corners(boxes) if layout.centres else np.asarray(boxes, np.float64)
    return found * np.array([image[1], image[0]] * 2, np.float64) if layout.normalised and image is not None else found


def head(
    layout: Layout, arrays: list[Array], thresholds: Thresholds, classes: int | None, image: tuple[int, int] | None
) -> list[Detections]:
    """What suppression leaves of a head: of each place the class with the highest score."""
    import numpy as np

    found = []
    for picture in zip(*arrays, strict=True):
        boxes, scores = split(layout, picture, classes)
        best = scores.max(1)
        at = np.flatnonzero(best > thresholds.score)
        candidates = detections(upright(layout, boxes[at], image), best[at], scores[at].argmax(1))
        found.append(suppress(candidates, thresholds))
    return found


def parts(arrays: list[Array], thresholds: Thresholds) -> list[Detections]:
    """Boxes [B, D, 4] x1 y1 x2 y2, scores [B, D] and labels [B, D], or without B for one picture; and, where there is
    one, the number of rows that count [B] or [B, 1]."""
    boxes, scores, labels, *counts = arrays
    if boxes.ndim == 2:
        boxes, scores, labels = boxes[None], scores[None], labels[None]
    found = []
    for index in range(len(boxes)):
        count = int(counts[0].reshape(-1)[index]) if counts else scores.shape[1]
        kept = detections(boxes[index, :count], scores[index, :count], labels[index, :count])
        found.append(kept.take(kept.scores > thresholds.score))
    return found


def six(arrays: list[Array], thresholds: Thresholds) -> list[Detections]:
    """[B, D, 6]: x1 y1 x2 y2 in px, score, class; rows that are not detections have a score of 0 or less."""
    found = []
    for rows in arrays[0]:
        kept = detections(rows[:, :4], rows[:, 4], rows[:, 5])
        found.append(kept.take(kept.scores > thresholds.score))
    return found


# Names of the outputs in the order that `parts` takes them; the last may be missing
NAMES = (
    ("boxes", "det_boxes", "detection_boxes", "nmsed_boxes"),
    ("scores", "det_scores", "detection_scores", "nmsed_scores"),
    ("labels", "classes", "det_classes", "det_labels", "detection_classes", "nmsed_classes"),
    ("num_dets", "num_detections"),
)


def _parts(shapes: Mapping[str, Dims]) -> Decoder | None:
    short = {name.rpartition("/")[2].lower(): name for name in shapes}
    names = [next((short[n] for n in spellings if n in short), None) for spellings in NAMES]
    known = [n for n in names if n is not None]
    if None in names[:3] or len(known) != len(shapes):
        return None
    return Decoder("boxes, scores and labels", tuple(known), parts)


def _six(shapes: Mapping[str, Dims]) -> Decoder | None:
    for name, dims in shapes.items():
        if len(shapes) == 1 and len(dims) == 3 and dims[2] == 6 and isinstance(dims[1], int) and dims[1] <= ROWS:
            return Decoder("rows of x1 y1 x2 y2 score class", (name,), six)
    return None


SELECTED: tuple[Callable[[Mapping[str, Dims]], Decoder | None], ...] = (_parts, _six)


def find(model: Model, contract: Contract) -> Decoder | None:
    """The decoder of a model: its outputs where detections are selected inside, else its one head, of the layout that
    the contract's `nms` names or that is recognised. None where the outputs are no detections that are known.

    Raises VexlintError for a layout that does not exist or does not fit, and where there are several heads.
    """
    if "obb" in (contract.task, model.metadata.get("task")):
        return None  # turned boxes do not overlap as upright ones do
    layout = _layout(contract)
    found = model.heads
    if len(found) > 1:
        raise VexlintError(f"{model.path}: several heads, {', '.join(h.output for h in found)}: verify compares one")
    if found:
        seen = found[0]
        return _head(model, layout or seen.layout, (seen.output,), seen.classes or heads.names(model))
    known = heads.outputs(model) if layout else {name: model.graph.shape(name) for name in model.graph.outputs}
    decoder = of_outputs({name: shape.dims if shape else () for name, shape in known.items()})
    return decoder or (_laid_out(model, layout, known, str(model.path)) if layout else None)


def of_recorded(shapes: Mapping[str, Dims], model: Model, contract: Contract, where: str) -> Decoder | None:
    """The decoder of outputs that were recorded from a model like this one: of detections that were selected inside, or
    of a head that is laid out as the contract says. Raises VexlintError where they do not fit the contract."""
    layout = _layout(contract)
    if (decoder := of_outputs(shapes)) or layout is None:
        return decoder
    return _laid_out(model, layout, {name: Shape("", tuple(dims)) for name, dims in shapes.items()}, where)


def _layout(contract: Contract) -> Layout | None:
    """The layout that a contract names. Raises VexlintError for one that there is not."""
    name = (contract.nms or {}).get("layout")
    if name is not None and name not in LAYOUTS:
        raise VexlintError(f"nms.layout = {name!r} is none of {', '.join(LAYOUTS)}{nearest(str(name), list(LAYOUTS))}")
    return LAYOUTS[name] if name else None


def _laid_out(model: Model, layout: Layout, outputs: Mapping[str, Shape | None], where: str) -> Decoder:
    """The decoder of outputs of a named layout; classes and the picture's size are the model's."""
    if layout.outputs == 2:
        if (pair := heads.apart(outputs)) is None:
            raise VexlintError(f"{where}: nms.layout says {layout.name}, but its outputs are not boxes and scores")
        return _head(model, layout, pair, _columns(outputs[pair[0]], outputs[pair[1]]))
    ranked = [(name, shape) for name, shape in outputs.items() if shape is not None and shape.rank == 3]
    if not ranked:
        raise VexlintError(f"{where}: nms.layout says {layout.name}, but no output has three axes")
    (name, shape), *_ = ranked
    rows = shape.size(layout.rows)
    rest = rows - layout.before if rows and len(outputs) == 1 else None  # else masks or keypoints may follow
    return _head(model, layout, (name,), heads.names(model) or rest)


def _columns(boxes: Shape | None, scores: Shape | None) -> int | None:
    """How many classes scores have that come apart from boxes."""
    if boxes is None or scores is None:
        return None
    return scores.size(2 if scores.dims[1] == boxes.dims[1] else 1)


def of_outputs(shapes: Mapping[str, Dims]) -> Decoder | None:
    """The decoder of outputs that were selected inside a graph, by their names and shapes."""
    return next((d for d in (known(shapes) for known in SELECTED) if d is not None), None)


def _head(model: Model, layout: Layout, outputs: tuple[str, ...], classes: int | None) -> Decoder:
    if classes is None or classes < 1:
        raise VexlintError(
            f"{model.path}: nothing says how many classes head {outputs[-1]} has: the file's metadata lacks names"
        )
    image = heads.image(model)
    if layout.normalised and image is None:
        raise VexlintError(f"{model.path}: boxes in 0..1 need a fixed image size: vexlint fix --shape freezes one")
    text = f"a {layout.name} head with {classes} class{'' if classes == 1 else 'es'}"
    return Decoder(text, outputs, lambda arrays, thresholds: head(layout, arrays, thresholds, classes, image))


def thresholds(contract: Contract) -> Thresholds:
    """The contract's thresholds of non-maximum suppression, for what it leaves out those of `Thresholds`.

    Raises VexlintError for one that cannot be.
    """
    settings = contract.nms or {}
    usual = Thresholds()
    score, iou = settings.get("score", usual.score), settings.get("iou", usual.iou)
    most = settings.get("max_detections", usual.most)
    for name, value in (("score", score), ("iou", iou)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise VexlintError(f"the contract's nms.{name} should lie in 0..1, not {value!r}")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise VexlintError(f"the contract's nms.max_detections should be a number of 1 or more, not {most!r}")
    return Thresholds(float(score), float(iou), most)
