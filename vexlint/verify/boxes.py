"""Detections of one picture, overlap of boxes, and greedy non-maximum suppression in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Of non-maximum suppression: a score must be above `score` (0..1); of two boxes of one class the one with the
    lower score goes where their IoU is above `iou`; at most `most` stay. Both comparisons are strict, as in ONNX's
    NonMaxSuppression."""

    score: float = 0.25
    iou: float = 0.45
    most: int = 300


@dataclass(frozen=True, slots=True)
class Detections:
    """What is seen in one picture: boxes, float64 [n, 4] as x1 y1 x2 y2 in px of the model's input; scores, float64
    [n] in 0..1; labels, int64 [n]."""

    boxes: Floats
    scores: Floats
    labels: Ints

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, which: Array) -> Detections:
        """Those at these indices, or where a mask is true."""
        return Detections(self.boxes[which], self.scores[which], self.labels[which])


def detections(boxes: Array, scores: Array, labels: Array) -> Detections:
    """Detections from arrays of any number type."""
    import numpy as np

    wide = np.asarray(boxes, np.float64).reshape(-1, 4)
    return Detections(wide, np.asarray(scores, np.float64), np.asarray(labels, np.int64))


def corners(boxes: Array) -> Floats:
    """x1 y1 x2 y2, float64 [n, 4], of boxes given as centre and size."""
    import numpy as np

    centre, half = np.asarray(boxes[:, :2], np.float64), np.asarray(boxes[:, 2:4], np.float64) / 2
    return np.concatenate([centre - half, centre + half], 1)


def overlaps(a: Floats, b: Floats) -> Floats:
    """IoU of every pair, float64 [n, m] in 0..1. Where both boxes have no area it is 1 for equal ones, else 0."""
    import numpy as np

    top = np.maximum(a[:, None, :2], b[None, :, :2])
    low = np.minimum(a[:, None, 2:], b[None, :, 2:])
    size = np.maximum(low - top, 0)
    both = size[..., 0] * size[..., 1]
    union = _areas(a)[:, None] + _areas(b)[None] - both
    equal = (a[:, None] == b[None]).all(-1)
    found: Floats = np.where(union > 0, both / np.where(union > 0, union, 1), equal)
    return found


def _areas(boxes: Floats) -> Floats:
    import numpy as np

    size = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    areas: Floats = size[:, 0] * size[:, 1]
    return areas


def rounding(a: Floats, b: Floats) -> Floats:
    """How far the IoU of every pair may move, float64 [n, m], where corners are made and compared in float32.

    To first order: two roundings move a corner by at most d = 2**-23 of the largest coordinate, a side by 2 d, an area
    by 2 d (w + h), and IoU = I / U by (dI (1 + IoU) + IoU (dA + dB)) / U, which is at most 4 d (wA + hA + wB + hB) / U.
    The products and sums add less than 2**-20.
    """
    import numpy as np

    sides = (a[:, 2:] - a[:, :2]).sum(1)[:, None] + (b[:, 2:] - b[:, :2]).sum(1)[None]
    reach = np.maximum(np.abs(a).max(1)[:, None], np.abs(b).max(1)[None])
    union = np.maximum(_areas(a)[:, None], _areas(b)[None])  # the true one is no smaller
    found: Floats = 2**-20 + 4 * 2**-23 * reach * sides / np.where(union > 0, union, np.inf)
    return found


def suppress(
    found: Detections,
    thresholds: Thresholds,
    agnostic: bool = False,
    stays: Callable[[Detections], bool] | None = None,
) -> Detections:
    """What greedy suppression leaves, the highest score first; among equal scores the one that came first.

    Classes do not suppress each other, unless `agnostic`. The loop stops at `most`, so that it costs at most `most`
    passes over the candidates and no matrix of all pairs. Where no box that is kept overlaps one for sure, and some do
    as far as `rounding` lets float32 tell, `stays` decides on it, if given.
    """
    import numpy as np

    found = found.take(found.scores > thresholds.score)
    found = found.take(np.argsort(-found.scores, kind="stable"))
    alive, unsure, kept = np.ones(len(found), bool), np.zeros(len(found), bool), []
    for index in range(len(found)):
        own = slice(index, index + 1)
        if not alive[index] or (unsure[index] and stays is not None and not stays(found.take(np.array([index])))):
            continue
        kept.append(index)
        if len(kept) == thresholds.most:
            break
        if not _areas(found.boxes[own])[0]:
            continue  # a box without area suppresses nothing, not even its like
        rest = (
            index
            + 1
            + np.flatnonzero(alive[index + 1 :] & (agnostic | (found.labels[index + 1 :] == found.labels[own])))
        )
        above = overlaps(found.boxes[own], found.boxes[rest])[0] - thresholds.iou
        if stays is not None:
            doubt = np.abs(above) <= rounding(found.boxes[own], found.boxes[rest])[0]
            unsure[rest[doubt]] = True
            above[doubt] = 0
        alive[rest[above > 0]] = False
    return found.take(np.array(kept, np.int64))
