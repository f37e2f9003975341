"""Output tensors of two runs, compared element by element, one sample at a time.

An element may drift by `limit` times the reference's value, or times `floor` where the value is smaller; floor is 1,
or the largest value of the tensor where all of it is below 1, but at least 0.01. So small numbers beside large ones are
held to the tensor's own scale, and a tensor of small numbers is not let off: with m = max |a|,
|a - b| <= limit * max(|a|, min(1, max(m, 0.01))). The least floor is for probabilities: runtimes compute a sigmoid to
some 1e-7, not to some share of it. On a picture of nothing, where all of it is 1e-5, one per cent is rounding; 1e-6 is
allowed then in fp32, a tenth of the absolute tolerance that Polygraphy compares with unless told otherwise.

The limits follow the precision that the contract states:
* fp32, 1e-4. Half a unit in the last place is 6e-8; a sum of some thousand products, regrouped by another kernel, is
  off by 1e-7 to 1e-6 of its terms, and some hundred layers make that 1e-5 at worst. Ten times as much is left.
* fp16, 1e-2. One rounding is 4.9e-4, and weights, sums and activations are each rounded: twenty of them.
* int8, 1e-1. A step is 1/127 of a layer's range, and errors of a few steps are the rule. Such a bound only catches
  what is broken; what the network is for (detections) decides.
Integers and booleans must be equal. NaN and infinity fail wherever they stand, in the reference too: nothing follows
from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from vexlint.outcomes import Drift

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

LIMITS = {"fp32": 1e-4, "fp16": 1e-2, "int8": 1e-1}
LEAST = 0.01  # the least floor
BLOCK = 1 << 15  # elements at a time: the steps over them stay in the processor's cache


@dataclass
class _Output:
    """What is known of one output so far."""

    exact: bool = False
    max_abs: float = 0.0
    max_rel: float = 0.0
    nonfinite: int = 0
    worst: str = ""
    note: str = ""
    low: float = inf  # of the reference's values
    high: float = -inf
    elements: int = 0


class Tensors:
    """Collects the drift of each output over samples; memory does not grow with their number."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.outputs: dict[str, _Output] = {}

    def add(self, reference: Mapping[str, Array], candidate: Mapping[str, Array], sample: str) -> None:
        """Compares the outputs of one sample: those of one name, or, where the names differ, of one position."""
        for name, a, b in _pairs(reference, candidate):
            known = self.outputs.setdefault(name, _Output())
            if a is None or b is None:
                known.note = f"only in the {'candidate' if a is None else 'reference'}"
                known.nonfinite += _nonfinite(a if b is None else b)
            elif a.shape != b.shape:
                known.note = f"shapes differ: {list(a.shape)} and {list(b.shape)}"
                known.nonfinite += _nonfinite(a) + _nonfinite(b)
            elif a.size:
                _measure(known, a, b, sample)

    def drifts(self) -> tuple[Drift, ...]:
        """One value an output, in the reference's order."""
        return tuple(self._drift(name, known) for name, known in self.outputs.items())

    def _drift(self, name: str, known: _Output) -> Drift:
        limit = 0.0 if known.exact else self.limit
        passed = not known.note and not known.nonfinite and known.max_rel <= limit
        return Drift(name, known.max_abs, known.max_rel, limit, known.nonfinite, known.worst, passed, known.note)

    @property
    def vacuous(self) -> str:
        """Why equality of these outputs would prove nothing; "" where it proves something."""
        compared = [o for o in self.outputs.values() if not o.note and o.elements]
        if not compared:
            return "" if any(o.note for o in self.outputs.values()) else "the outputs have no elements"
        if all(o.low == o.high and o.elements > 1 for o in compared):
            return "every output of the reference is one and the same number throughout"
        return ""


def _pairs(
    reference: Mapping[str, Array], candidate: Mapping[str, Array]
) -> list[tuple[str, Array | None, Array | None]]:
    if not set(reference) & set(candidate) and len(reference) == len(candidate):
        return [(name, a, b) for (name, a), b in zip(reference.items(), candidate.values(), strict=True)]
    names = [*reference, *(n for n in candidate if n not in reference)]
    return [(name, reference.get(name), candidate.get(name)) for name in names]


def _nonfinite(array: Array | None) -> int:
    import numpy as np

    return 0 if array is None or array.dtype.kind != "f" else int(array.size - np.isfinite(array).sum())


def _measure(known: _Output, a: Array, b: Array, sample: str) -> None:
    import numpy as np

    known.elements += a.size
    known.exact = a.dtype.kind != "f" and b.dtype.kind != "f"
    kind = np.float32 if a.dtype.kind == b.dtype.kind == "f" and max(a.itemsize, b.itemsize) <= 4 else np.float64
    flat_a, flat_b = np.ravel(a), np.ravel(b)
    low, high = float(flat_a.min()), float(flat_a.max())
    known.low, known.high = min(known.low, low), max(known.high, high)
    scale = max(abs(low), abs(high))
    floor = min(1.0, max(scale, LEAST)) if isfinite(scale) else 1.0
    for start in range(0, a.size, BLOCK):
        part_a = flat_a[start : start + BLOCK].astype(kind, copy=False)
        part_b = flat_b[start : start + BLOCK].astype(kind, copy=False)
        largest, relative, bad = _block(part_a, part_b, floor)
        known.nonfinite += bad
        known.max_abs = max(known.max_abs, largest)
        if relative > known.max_rel or (bad and not known.worst):
            known.max_rel, known.worst = max(relative, known.max_rel), sample


def _block(a: Array, b: Array, floor: float) -> tuple[float, float, int]:
    """The largest difference, the largest relative one, and how many elements are NaN or infinite."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        apart = a - b
        np.abs(apart, out=apart)
        largest = float(apart.max())
        if not isfinite(largest):  # NaN and infinity make their way into the largest difference, whatever they meet
            bad = ~(np.isfinite(a) & np.isfinite(b))
            if bad.any():
                kept = ~bad
                rest = _block(a[kept], b[kept], floor) if kept.any() else (0.0, 0.0, 0)
                return rest[0], rest[1], int(bad.sum())
    if largest == 0:
        return 0.0, 0.0, 0
    if floor == 0 or not isfinite(largest):
        return largest, inf, 0
    relative = np.abs(a)
    np.maximum(relative, floor, out=relative)
    np.divide(apart, relative, out=apart)
    return largest, float(apart.max()), 0
