"""Two sets of detections, matched one to one and then measured.

Rows are never compared by position: two runtimes list the same detections in different orders, and the differences
of rows that do not belong together mean nothing. Within a picture all pairs that overlap by `PARTNERS` or more are
taken in the order: same class first, then the larger IoU, then the nearer score; each detection once. Class first, so
that a detection whose class flips shows as one flip and not as one missing and one extra. `PARTNERS` lies above the
usual thresholds of suppression, so that two objects beside each other are not taken for one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from vexlint.config import Contract
from vexlint.outcomes import SetDrift, SetLimits, Shift
from vexlint.values import VexlintError
from vexlint.verify.boxes import Detections, Thresholds, overlaps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PARTNERS = 0.5  # IoU
SIZES = (0.0, 8.0, 16.0, 32.0, 64.0, inf)  # px, larger side of the reference's box
TIED = 1e-6  # scores that lie within this are one score

# What a precision may cost. A drift of 0.001 in IoU is a shift of 0.004 px for a box of 8 px and of 0.03 px for one of
# 64 px, which float32 keeps to. Half cannot: it rounds a coordinate above 256 px to 0.25 px, which alone makes a drift
# of 0.03 on the golden detector's boxes of 8 to 16 px. int8 is a guess with room; what it may cost, a contract says.
LIMITS = {
    "fp32": SetLimits(iou_drift=0.001, centre_px=0.5, score=1e-3, class_match=1.0, band=1e-3),
    "fp16": SetLimits(iou_drift=0.05, centre_px=0.5, score=1e-2, class_match=1.0, band=1e-2),
    "int8": SetLimits(iou_drift=0.15, centre_px=2.0, score=0.1, class_match=0.98, band=5e-2),
}


def limits(contract: Contract) -> SetLimits:
    """The contract's tolerance, and for what it leaves out the limits of its precision (fp32 where it names none).

    Raises VexlintError for a tolerance that cannot be.
    """
    usual, given = LIMITS[contract.precision or "fp32"], contract.tolerance or {}
    found = {}
    for name in ("iou_drift", "centre_px", "score", "class_match"):
        value = given.get(name, getattr(usual, name))
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise VexlintError(f"the contract's tolerance.{name} should be a number of 0 or more, not {value!r}")
        found[name] = float(value)
    if found["class_match"] > 1:
        raise VexlintError(f"the contract's tolerance.class_match is a share in 0..1, not {found['class_match']:g}")
    return SetLimits(band=usual.band, **found)


def match(a: Detections, b: Detections) -> list[tuple[int, int, float]]:
    """Pairs of indices, and the IoU of each; see the head of this module. The result does not depend on the order of
    either set: what ties is decided by the detections themselves."""
    import numpy as np

    if not len(a) or not len(b):
        return []
    shared = overlaps(a.boxes, b.boxes)
    rows, columns = np.nonzero(shared >= PARTNERS)
    rank_a, rank_b = _ranks(a)[rows], _ranks(b)[columns]
    keys = (
        np.abs(rank_a - rank_b),
        rank_a + rank_b,  # this and the one above treat both sides alike
        np.abs(a.scores[rows] - b.scores[columns]),
        -shared[rows, columns],
        a.labels[rows] != b.labels[columns],
    )
    taken_a, taken_b, pairs = set[int](), set[int](), []
    for place in np.lexsort(keys):
        i, j = int(rows[place]), int(columns[place])
        if i not in taken_a and j not in taken_b:
            taken_a.add(i)
            taken_b.add(j)
            pairs.append((i, j, float(shared[i, j])))
    return pairs


def _ranks(found: Detections) -> Any:
    """The place of each detection in an order that the detections alone decide."""
    import numpy as np

    order = np.lexsort((*found.boxes.T, -found.scores, found.labels))
    ranks = np.empty(len(found), np.int64)
    ranks[order] = np.arange(len(found))
    return ranks


@dataclass
class Sets:
    """Collects the drift of detections, picture by picture. What it keeps is some numbers, and 4 bytes a match."""

    limits: SetLimits
    thresholds: Thresholds
    iou_drift: float = 0.0
    centre_px: float = 0.0
    score: float = 0.0
    same: int = 0
    flips: int = 0
    missing: int = 0
    extra: int = 0
    near: int = 0
    pictures: int = 0
    lowest: float = inf  # of the reference's scores
    highest: float = -inf
    seen: int = 0  # detections on either side
    shifts: tuple[array[float], ...] = field(default_factory=lambda: tuple(array("f") for _ in SIZES[1:]))
    alone: list[int] = field(default_factory=lambda: [0] * len(SIZES[1:]))  # missing and extra, by size
    drifted: str = ""  # the picture of the largest drift
    unmatched: str = ""  # the first picture with a detection that has no partner

    def add(self, a: Detections, b: Detections, picture: str) -> None:
        """Compares the detections of one picture: `a` of the reference, `b` of the candidate."""
        self.pictures += 1
        self.seen += len(a) + len(b)
        if len(a):
            self.lowest = min(self.lowest, float(a.scores.min()))
            self.highest = max(self.highest, float(a.scores.max()))
        pairs = match(a, b)
        self._measure(a, b, pairs, picture)
        alone_a = [i for i in range(len(a)) if i not in {i for i, _, _ in pairs}]
        alone_b = [j for j in range(len(b)) if j not in {j for _, j, _ in pairs}]
        missing, extra = self._beyond(a, alone_a, b), self._beyond(b, alone_b, a)
        self.missing += missing
        self.extra += extra
        self.near += len(alone_a) + len(alone_b) - missing - extra
        if missing + extra and not self.unmatched:
            self.unmatched = picture

    def _measure(self, a: Detections, b: Detections, pairs: list[tuple[int, int, float]], picture: str) -> None:
        import numpy as np

        if not pairs:
            return
        first, second = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
        boxes_a, boxes_b = a.boxes[first], b.boxes[second]
        moved = (boxes_b[:, :2] + boxes_b[:, 2:] - boxes_a[:, :2] - boxes_a[:, 2:]) / 2
        shift = np.hypot(moved[:, 0], moved[:, 1])
        drift = 1 - min(p[2] for p in pairs)
        if drift > self.iou_drift or not self.drifted:
            self.iou_drift, self.drifted = max(drift, self.iou_drift), picture
        self.centre_px = max(self.centre_px, float(shift.max()))
        self.score = max(self.score, float(np.abs(a.scores[first] - b.scores[second]).max()))
        flips = int((a.labels[first] != b.labels[second]).sum())
        self.flips += flips
        self.same += len(pairs) - flips
        for place, value in zip(_places(boxes_a), shift.tolist(), strict=True):
            self.shifts[place].append(value)

    def _beyond(self, found: Detections, alone: list[int], other: Detections) -> int:
        """How many of those without a partner lie further from every threshold than rounding could explain."""
        import numpy as np

        if not alone:
            return 0
        left, band = found.take(np.array(alone)), self.limits.band
        cut = self.thresholds.score
        if len(other) >= self.thresholds.most:  # the other side is full: its last score is the threshold
            cut = max(cut, float(other.scores.min()))
        near = left.scores <= cut + band
        if len(other):  # suppressed there, for an IoU at the threshold
            shared = overlaps(left.boxes, other.boxes)
            at_threshold = np.abs(shared - self.thresholds.iou) <= band
            near |= (at_threshold & (left.labels[:, None] == other.labels[None])).any(1)
        for place in _places(left.boxes[~near]):
            self.alone[place] += 1
        return int((~near).sum())

    @property
    def vacuous(self) -> str:
        """Why these sets prove nothing; "" where they prove something."""
        if not self.seen:
            return f"neither side detects anything above score {self.thresholds.score:g}"
        count = self.same + self.flips + self.missing
        if not count + self.extra:
            return f"all {self.near} detections lie at a threshold, and none has a partner"
        if count > 1 and 0 <= self.highest - self.lowest <= TIED:
            return f"all detections of the reference have one and the same score, {self.highest:g}"
        return ""

    def drift(self) -> SetDrift:
        """What was found over all pictures."""
        matched = self.same + self.flips
        judged = matched + self.missing + self.extra
        share = self.same / judged if judged else 0.0
        bound = self.limits
        moved = self.iou_drift > bound.iou_drift or self.centre_px > bound.centre_px
        passed = not moved and self.score <= bound.score and share >= bound.class_match and not self.vacuous
        return SetDrift(
            matched=matched,
            iou_drift=self.iou_drift,
            centre_px=self.centre_px,
            score=self.score,
            class_match=share,
            class_flips=self.flips,
            missing=self.missing,
            extra=self.extra,
            threshold_flips=self.near,
            limits=bound,
            sizes=tuple(self._sizes()),
            worst=self.drifted if moved else self.unmatched or self.drifted,
            passed=passed,
            vacuous=self.vacuous,
        )

    def _sizes(self) -> Iterator[Shift]:
        import numpy as np

        for low, high, values, alone in zip(SIZES, SIZES[1:], self.shifts, self.alone, strict=False):
            if values or alone:
                shift = (float(np.median(values)), max(values)) if values else (0.0, 0.0)
                yield Shift(low, high, len(values), alone, *shift)


def _places(boxes: Floats) -> list[int]:
    """The place in `SIZES` of each box, by its larger side."""
    import numpy as np

    sides = (boxes[:, 2:] - boxes[:, :2]).max(1) if len(boxes) else np.empty(0)
    places: list[int] = np.searchsorted(SIZES[1:-1], sides, "right").tolist()
    return places
