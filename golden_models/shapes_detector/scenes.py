"""Seeded scenes with known boxes: the detector learns from them, and tests and benchmarks look at them.

Everything is drawn with numpy from a seed and an index, so no picture has to be stored. A pixel's centre lies at
+0.5, edges are anti-aliased, and therefore a box is exact to a fraction of a pixel.

The weights beside this file have learnt exactly these pictures: the order of the random draws is part of the
format, and a test guards it with a hash.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Box = tuple[float, float, float, float]  # x1 y1 x2 y2, px

CLASSES = ("circle", "square", "triangle")
CIRCLE, SQUARE = 0, 1
SMALLEST, LARGEST = 8.0, 120.0  # the larger side of an object, px
MOST_OBJECTS = 8
MOST_SHARED = 0.3  # of the smaller of two boxes: more would leave an object that nobody can see


def scene(seed: int, index: int, size: int = 320) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.int64]]:
    """Draw one scene of 1 to 8 objects, whose sizes are spread evenly on a logarithmic scale.

    Returns the image, uint8 [size, size, 3] RGB; the boxes, float32 [n, 4] as x1 y1 x2 y2 in px; and the labels,
    int64 [n], indices of `CLASSES`.
    """
    rng = np.random.default_rng([seed, index])
    image = _background(rng, size)
    shapes: list[_Shape] = []
    wanted = rng.integers(1, MOST_OBJECTS + 1)
    for _ in range(60):  # a crowded scene may have no room left: give up rather than loop for ever
        if len(shapes) == wanted:
            break
        shape = _shape(rng, size)
        if _largest_share(shape.box, [other.box for other in shapes]) <= MOST_SHARED:
            _paint(rng, image, shape)
            shapes.append(shape)
    boxes = np.array([shape.box for shape in shapes], np.float32)
    labels = np.array([shape.label for shape in shapes], np.int64)
    return np.clip(image, 0, 255).astype(np.uint8), boxes, labels


def to_input(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Turn an image, uint8 [H, W, 3] RGB, into the network's input, float32 [1, 3, H, W] in 0..1."""
    return np.ascontiguousarray(image.transpose(2, 0, 1)[None].astype(np.float32) / 255)


@dataclass(frozen=True)
class _Shape:
    """One object: its centre (x, y), half its box's width and height and its larger side `extent`, all in px."""

    label: int
    x: float
    y: float
    half: Floats
    extent: float
    corners: Floats | None  # [n, 2] px from the centre; None for a circle

    @property
    def box(self) -> Box:
        width, height = self.half
        return self.x - width, self.y - height, self.x + width, self.y + height


def _shape(rng: np.random.Generator, size: int) -> _Shape:
    """Draw what an object is and where it lies, at least 1 px inside a picture of `size` px."""
    label = int(rng.integers(len(CLASSES)))
    extent = float(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST))))
    corners = _corners(rng, label, extent)
    half = np.full(2, extent / 2) if corners is None else corners.max(0)
    x, y = (float(rng.uniform(h + 1, size - h - 1)) for h in half)
    return _Shape(label, x, y, half, extent, corners)


def _background(rng: np.random.Generator, size: int) -> Floats:
    """A blend of two colours along a gradient, noise or a pattern, with grain: float [size, size, 3], about 0..255."""
    y, x = np.mgrid[0:size, 0:size] / size
    first, second = rng.uniform(30, 225, (2, 3))
    angle = rng.uniform(0, 2 * np.pi)
    ramp = x * np.cos(angle) + y * np.sin(angle)
    kind = rng.integers(3)
    if kind == 0:  # gradient
        blend = (ramp - ramp.min()) / np.ptp(ramp)
    elif kind == 1:  # noise in three octaves
        coarse, middle, fine = (_smooth_noise(rng, size, cell) for cell in (64, 20, 6))
        blend = 0.5 + 0.3 * coarse + 0.2 * middle + 0.1 * fine
    else:  # stripes, or checks where a second wave crosses the first
        frequency = rng.uniform(6, 30) * 2 * np.pi
        wave = np.sin(frequency * ramp)
        if rng.random() < 0.5:
            wave = wave * np.sin(frequency * (y * np.cos(angle) - x * np.sin(angle)))
        blend = 0.5 + rng.uniform(0.1, 0.25) * wave + 0.25 * _smooth_noise(rng, size, 80)
    image: Floats = first + (second - first) * np.clip(blend, 0, 1)[..., None]
    return image + rng.normal(0, rng.uniform(1, 12), (size, size, 1))


def _smooth_noise(rng: np.random.Generator, size: int, cell: int) -> Floats:
    """Noise in -1..1, float [size, size]: a random grid of `cell` px, interpolated bilinearly."""
    count = size // cell + 2
    grid = rng.uniform(-1, 1, (count, count))
    at = np.arange(size) / cell
    below = at.astype(int)
    share = at - below
    rows = grid[below] * (1 - share)[:, None] + grid[below + 1] * share[:, None]
    noise: Floats = rows[:, below] * (1 - share) + rows[:, below + 1] * share
    return noise


def _corners(rng: np.random.Generator, label: int, extent: float) -> Floats | None:
    """Corners, float [n, 2] px, of a turned polygon whose box is centred on 0 and `extent` long; None for a circle."""
    if label == CIRCLE:
        return None
    if label == SQUARE:  # turned by at most 23 degrees, else its box would say little about it
        count, turn = 4, rng.uniform(-0.4, 0.4) + np.pi / 4
    else:
        count, turn = 3, rng.uniform(0, 2 * np.pi)
    angles = turn + 2 * np.pi * np.arange(count) / count
    corners = np.stack([np.cos(angles), np.sin(angles)], 1)
    corners -= (corners.max(0) + corners.min(0)) / 2
    scaled: Floats = corners * extent / np.ptp(corners, axis=0).max()
    return scaled


def _paint(rng: np.random.Generator, image: Floats, shape: _Shape) -> None:
    """Paint an object into `image`, float [H, W, 3], in a grainy colour that stands out from what lies below."""
    x1, y1, x2, y2 = (int(side) for side in shape.box)
    left, top = max(x1 - 1, 0), max(y1 - 1, 0)
    patch = image[top : y2 + 2, left : x2 + 2]
    below = patch.mean((0, 1))
    for _ in range(20):
        colour = rng.uniform(0, 255, 3)
        if np.abs(colour - below).sum() > 140:
            break
    y, x = np.mgrid[top : top + patch.shape[0], left : left + patch.shape[1]] + 0.5
    alpha = _coverage(shape, x - shape.x, y - shape.y)[..., None]
    fill = colour + rng.normal(0, rng.uniform(0, 10), (*patch.shape[:2], 1))
    patch[...] = patch * (1 - alpha) + fill * alpha


def _coverage(shape: _Shape, x: Floats, y: Floats) -> Floats:
    """How much of each pixel the object covers, in 0..1; `x`, `y`: the pixels' distances from its centre in px."""
    if shape.corners is None:
        distance = np.hypot(x, y) - shape.extent / 2
    else:
        edges = np.roll(shape.corners, -1, 0) - shape.corners
        normals = np.stack([edges[:, 1], -edges[:, 0]], 1) / np.linalg.norm(edges, axis=1, keepdims=True)
        each = [(x - p[0]) * n[0] + (y - p[1]) * n[1] for p, n in zip(shape.corners, normals, strict=True)]
        distance = np.max(each, 0)  # inside a convex polygon the nearest edge has the largest signed distance
    return np.clip(0.5 - distance, 0, 1)


def _largest_share(box: Box, others: list[Box]) -> float:
    """The largest part of the smaller of two boxes that `box` has in common with one of `others`, in 0..1."""
    worst = 0.0
    for other in others:
        width = min(box[2], other[2]) - max(box[0], other[0])
        height = min(box[3], other[3]) - max(box[1], other[1])
        smaller = min((b[2] - b[0]) * (b[3] - b[1]) for b in (box, other))
        worst = max(worst, max(width, 0) * max(height, 0) / smaller)
    return worst
