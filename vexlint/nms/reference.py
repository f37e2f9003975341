"""What a tail has to give: greedy suppression in float64 of a head's own numbers, and scenes on which it matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vexlint.nms.heads import Head
from vexlint.nms.tail import Settings
from vexlint.verify.boxes import Detections, Thresholds, detections, suppress
from vexlint.verify.decoders import split, upright

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

NEAR = 1e-4  # px that float32 corners may lie from float64 ones


@dataclass(frozen=True, slots=True)
class Compared:
    """A tail's outputs for a batch beside the reference: detections expected; `fault`, "" where they are equal; in how
    many pictures only with overlaps that float32 cannot tell from the threshold taken as the tail took them."""

    pictures: int
    detections: int
    fault: str
    rounded: int


def compare(
    head: Head, settings: Settings, outputs: Mapping[str, Array], found: Mapping[str, Array], names: tuple[str, ...]
) -> Compared:
    """What a tail found, under these names, beside greedy suppression of the head's outputs, in any order of rows."""
    count = rounded = 0
    for given, seen in zip(_pictures(head, outputs), zip(*(found[n] for n in names), strict=True), strict=True):
        wanted = _select(head, settings, given)
        count += len(wanted)
        fault = _fault(wanted, *seen)
        if fault:
            theirs = _select(head, settings, given, _among(*seen))
            if _fault(theirs, *seen):
                return Compared(len(found[names[0]]), count, fault, rounded)
            rounded += 1
    return Compared(len(found[names[0]]), count, "", rounded)


def select(head: Head, settings: Settings, outputs: Mapping[str, Array]) -> list[Detections]:
    """The detections of each picture of a batch of head outputs. Thresholds are the float32 numbers that a graph holds,
    and the product of objectness and class is float32, as there."""
    return [_select(head, settings, given) for given in _pictures(head, outputs)]


def _pictures(head: Head, outputs: Mapping[str, Array]) -> Iterator[tuple[Array, ...]]:
    import numpy as np

    return zip(*(np.asarray(outputs[n], np.float32) for n in head.outputs), strict=True)


def _select(
    head: Head, settings: Settings, given: tuple[Array, ...], stays: Callable[[Detections], bool] | None = None
) -> Detections:
    import numpy as np

    strict = Thresholds(float(np.float32(settings.score)), float(np.float32(settings.iou)), settings.most)
    boxes, scores = split(head.layout, given)
    boxes = upright(head.layout, boxes, head.image)
    scores = np.where(scores > strict.score, scores, -1)
    rows, labels = np.arange(len(boxes)), scores.argmax(1)
    best = scores.max(1)
    if settings.multi_label:
        rows, labels, best = rows.repeat(head.classes), np.tile(np.arange(head.classes), len(boxes)), scores.reshape(-1)
    first = np.sort(np.argsort(-best, kind="stable")[: min(settings.candidates(head), len(best))])
    return suppress(detections(boxes[rows[first]], best[first], labels[first]), strict, settings.agnostic, stays)


def _among(number: Array, boxes: Array, scores: Array, labels: Array) -> Callable[[Detections], bool]:
    """Whether a box is one of those that a tail found."""
    import numpy as np

    rows = slice(int(number[0]))

    def stays(one: Detections) -> bool:
        same = (scores[rows] == one.scores.astype(np.float32)) & (labels[rows] == one.labels)
        return bool((same & (np.abs(boxes[rows] - one.boxes).max(1) <= NEAR)).any())

    return stays


def _fault(wanted: Detections, number: Array, boxes: Array, scores: Array, labels: Array) -> str:
    """In what a tail's outputs for one picture differ from what is wanted; "" where they do not."""
    import numpy as np

    count = int(number[0])
    if count != len(wanted):
        return f"{count} detections instead of {len(wanted)}"
    if boxes[count:].any() or scores[count:].any() or (labels[count:] != -1).any():
        return "rows after the last detection are not 0, 0, -1"
    ours = _sorted(boxes[:count], scores[:count], labels[:count])
    theirs = _sorted(wanted.boxes, wanted.scores.astype(np.float32), wanted.labels)
    if not np.array_equal(ours[2], theirs[2]):
        return "other labels"
    if not np.array_equal(ours[1], theirs[1]):
        return f"scores up to {np.abs(ours[1] - theirs[1]).max():.2g} apart"
    if (far := float(np.abs(ours[0] - theirs[0]).max(initial=0))) > NEAR:
        return f"boxes up to {far:.2g} px apart"
    return ""


def _sorted(boxes: Array, scores: Array, labels: Array) -> tuple[Array, Array, Array]:
    import numpy as np

    order = np.lexsort((*boxes.round(2).T, scores, labels))
    return boxes[order], scores[order], labels[order]


def scene(head: Head, seed: int, batch: int = 1) -> dict[str, Array]:
    """Head outputs as a crowded picture gives them: clusters of overlapping boxes, a second class here and there, ties,
    a score of NaN. Every fifth scene is empty."""
    import numpy as np

    rng = np.random.default_rng([20261, seed])
    places, high, wide = head.places or 2100, *(head.image or (320, 320))
    centres = np.stack([rng.uniform(0, wide, (batch, places)), rng.uniform(0, high, (batch, places))], 2)
    sizes = rng.uniform(4, high / 5, (batch, places, 2))
    scores = rng.uniform(0, 0.2, (batch, places, head.classes))
    for b in range(batch if seed % 5 else 0):
        objects = rng.integers(0, min(40, places), max(places // 3, 1))
        where = rng.permutation(places)[: len(objects)]
        at, size = rng.uniform(0, [wide, high], (40, 2)), rng.uniform(8, high / 3, (40, 2))
        centres[b, where] = at[objects] + rng.normal(0, 0.12, (len(objects), 2)) * size[objects]
        sizes[b, where] = size[objects] * rng.normal(1, 0.12, (len(objects), 2)).clip(0.5)
        kinds = np.where(rng.random(len(objects)) < 0.8, objects, rng.integers(0, 999, len(objects))) % head.classes
        scores[b, where, kinds] = rng.uniform(0.15, 0.97, len(objects)).round(rng.choice([3, 7]))
        also = where[rng.random(len(where)) < 0.3]
        scores[b, also, rng.integers(0, head.classes, len(also))] = rng.uniform(0.15, 0.97, len(also))
        scores[b, where[0], 0] = np.nan
    return _laid_out(head, centres, sizes, scores, rng)


def _laid_out(head: Head, centres: Array, sizes: Array, scores: Array, rng: Any) -> dict[str, Array]:
    import numpy as np

    both = (centres, sizes) if head.layout.centres else (centres - sizes / 2, centres + sizes / 2)
    boxes = np.concatenate(both, 2)
    if head.layout.normalised and head.image is not None:
        boxes /= np.array([head.image[1], head.image[0]] * 2)
    if head.layout.before == 5:
        objectness = scores if head.layout.score == "objectness" else rng.uniform(0.6, 1, (*scores.shape[:2], 1))
        scores = np.concatenate([objectness, scores], 2)
    if head.layout.outputs == 1:
        rows = np.concatenate([boxes, scores], 2)
        parts = [rows.transpose(0, 2, 1) if head.layout.places == 2 else rows]
    else:
        parts = [boxes, scores.transpose(0, 2, 1) if head.class_axis == 1 else scores]
    kinds = {"float16": np.float16, "double": np.float64}
    return {
        name: np.ascontiguousarray(part, kinds.get(shape.dtype, np.float32))
        for name, part, shape in zip(head.outputs, parts, head.shapes, strict=True)
    }
