"""Nearest Resize in float32: which samples read another pixel than exact arithmetic says.

Formulas: ONNX operator Resize, coordinate_transformation_mode and nearest_mode. ONNX Runtime and OpenVINO compute the
position of a sample in float32, from the scale; a framework that computes it from the lengths gets the exact one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

MOST = 16_384  # output samples of an axis that are looked at
# The others round halves, which runtimes do each in its way
ROUNDING: dict[str, Callable[[float | Fraction], int]] = {"floor": math.floor, "ceil": math.ceil}
HALF = ("half_pixel", "pytorch_half_pixel")


def moved(length: int, size: int, mode: str, rounding: str) -> list[tuple[int, int, int]]:
    """(output sample, pixel that float32 reads, exact pixel) of the samples that differ, for an axis of `length` pixels
    that becomes `size`; [] where it has more than `MOST`, and for other modes than half_pixel and asymmetric, floor and
    ceil."""
    if size > MOST or rounding not in ROUNDING or mode not in (*HALF, "asymmetric") or size % length == 0:
        return []
    scale, exact, found = single(size / length), Fraction(size, length), []
    for sample in range(size):
        if mode in HALF:
            near = single(single((sample + 0.5) / scale) - 0.5)
            right = (sample + Fraction(1, 2)) / exact - Fraction(1, 2)
        else:
            near, right = single(sample / scale), sample / exact
        read, due = (min(max(ROUNDING[rounding](at), 0), length - 1) for at in (near, right))
        if read != due:
            found.append((sample, read, due))
    return found


def single(number: float) -> float:
    """As float32 holds it."""
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded
