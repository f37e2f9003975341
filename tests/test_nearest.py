"""Nearest Resize in float32: what is said of it is what ONNX Runtime does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx.parser
import onnxruntime
import pytest

from vexlint.checks.nearest import HALF, ROUNDING, moved

TEXT = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,1,1,{length}] x) => (float[1,1,1,{size}] y) <int64[4] n = {{1, 1, 1, {size}}}>
{{
  y = Resize <mode = "nearest", coordinate_transformation_mode = "{mode}", nearest_mode = "{rounding}"> (x, , , n)
}}"""


def read(length: int, size: int, mode: str, rounding: str) -> list[int]:
    """The pixel that each sample reads."""
    model = onnx.parser.parse_model(TEXT.format(length=length, size=size, mode=mode, rounding=rounding))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    row = np.arange(length, dtype=np.float32).reshape(1, 1, 1, length)
    return [int(pixel) for pixel in np.ravel(session.run(None, {"x": row})[0])]


@pytest.mark.parametrize("rounding", ROUNDING)
@pytest.mark.parametrize("mode", ["asymmetric", HALF[0]])
def test_it_is_said_of_the_samples_that_a_runtime_moves_and_no_others(mode: str, rounding: str) -> None:
    dice, half, seen = np.random.default_rng(1), Fraction(1, 2), 0
    pairs = [(26, 64), *((int(a), int(b)) for a, b in dice.integers(2, 160, (60, 2)))]
    for length, size in pairs:
        places = [
            (x + half) * length / size - half if mode in HALF else Fraction(x * length, size) for x in range(size)
        ]
        exact = [min(max(ROUNDING[rounding](at), 0), length - 1) for at in places]
        real = read(length, size, mode, rounding)
        differing = [(i, r, e) for i, (r, e) in enumerate(zip(real, exact, strict=True)) if r != e]
        seen += len(differing)
        assert moved(length, size, mode, rounding) == differing, (length, size)
    assert seen or mode in HALF, "a test in which nothing moves shows nothing"


def test_whole_factors_and_long_axes_are_left_alone() -> None:
    assert moved(26, 52, "asymmetric", "floor") == []
    assert moved(26, 64_000, "asymmetric", "floor") == []
    assert moved(26, 64, "align_corners", "floor") == moved(26, 64, "asymmetric", "round_prefer_floor") == []
