"""How the weights were made: `python golden_models/shapes_detector/train.py --lateral8 8 --out weights_wide.npz`.

Seeded, on the CPU, some ten minutes on two cores. PyTorch sums in another order with another number of threads, so
that a second training gives a detector that is alike, not equal: this is why the weights are kept.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[1]))
from shapes_detector import network, scenes

SIZE = 320  # px, both sides of a picture
LEVELS = ((8, 0.0, 32.0), (16, 32.0, 72.0), (32, 72.0, 1e9))  # stride; which larger sides of a box it answers for, px


@dataclass(frozen=True)
class Recipe:
    """What decides a training, but for the width of the skip."""

    seed: int
    scenes: int
    steps: int
    batch: int = 16
    rate: float = 3e-3


@dataclass(frozen=True)
class Batch:
    """Pictures with their objects, padded to the most that a scene can have."""

    images: Tensor  # [B, 3, SIZE, SIZE]: uint8 as drawn, float32 in 0..1 once augmented
    boxes: Tensor  # float32 [B, 8, 4], x1 y1 x2 y2 in px
    labels: Tensor  # int64 [B, 8], -1 where there is no object


def draw(seed: int, count: int) -> Batch:
    """Draw the scenes to learn from."""
    images = np.empty((count, 3, SIZE, SIZE), np.uint8)
    boxes = np.zeros((count, scenes.MOST_OBJECTS, 4), np.float32)
    labels = np.full((count, scenes.MOST_OBJECTS), -1)
    for i in range(count):
        image, some, kinds = scenes.scene(seed, i, SIZE)
        images[i], boxes[i, : len(some)], labels[i, : len(some)] = image.transpose(2, 0, 1), some, kinds
    return Batch(torch.from_numpy(images), torch.from_numpy(boxes), torch.from_numpy(labels))


def augment(batch: Batch, rng: np.random.Generator) -> Batch:
    """Flip and transpose the batch as a whole; shuffle the colours of each picture, and invert half of them."""
    images, boxes = batch.images.float() / 255, batch.boxes
    if rng.random() < 0.5:
        x1, y1, x2, y2 = boxes.unbind(-1)
        images, boxes = images.flip(3), torch.stack([SIZE - x2, y1, SIZE - x1, y2], -1)
    if rng.random() < 0.5:
        x1, y1, x2, y2 = boxes.unbind(-1)
        images, boxes = images.flip(2), torch.stack([x1, SIZE - y2, x2, SIZE - y1], -1)
    if rng.random() < 0.5:
        images, boxes = images.transpose(2, 3), boxes[..., [1, 0, 3, 2]]
    images = torch.stack([image[torch.from_numpy(rng.permutation(3))] for image in images])
    inverted = torch.from_numpy((rng.random((len(images), 1, 1, 1)) < 0.5).astype(np.float32))
    images = (inverted + images * (1 - 2 * inverted)).contiguous(memory_format=torch.channels_last)
    return Batch(images, boxes, batch.labels)


def cells() -> Tensor:
    """Centre x, centre y and stride in px of each of the N cells, float32 [3, N], in the order of the output."""
    levels = []
    for stride in network.STRIDES:
        at = (torch.arange(SIZE // stride) + 0.5) * stride
        y, x = torch.meshgrid(at, at, indexing="ij")
        levels.append(torch.stack([x.flatten(), y.flatten(), torch.full((len(at) ** 2,), float(stride))]))
    return torch.cat(levels, 1)


def assign(batch: Batch, grid: Tensor) -> Tensor:
    """Which object each cell answers for, int64 [B, N]: -1 for none, the smallest where several would do."""
    x, y, stride = grid
    width, height = (batch.boxes[..., 2:] - batch.boxes[..., :2]).unbind(-1)
    centre_x, centre_y = ((batch.boxes[..., :2] + batch.boxes[..., 2:]) / 2).unbind(-1)
    larger = torch.maximum(width, height)[..., None]
    distance = torch.maximum((x - centre_x[..., None]).abs(), (y - centre_y[..., None]).abs())
    fits = (distance < 1.5 * stride) & (distance < torch.maximum(larger / 2, stride)) & (batch.labels >= 0)[..., None]
    for level, low, high in LEVELS:
        fits &= (stride != level) | ((larger >= low) & (larger < high))
    area = torch.where(fits, (width * height)[..., None], torch.inf)
    smallest, which = area.min(1)
    return torch.where(smallest.isfinite(), which, -1)


def overlaps(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """IoU and generalized IoU, float32 [K] each, of K pairs of boxes, float32 [K, 4] as cx cy w h in px."""
    a1, a2 = a[:, :2] - a[:, 2:] / 2, a[:, :2] + a[:, 2:] / 2
    b1, b2 = b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2
    both = (torch.minimum(a2, b2) - torch.maximum(a1, b1)).clamp(min=0).prod(1)
    union = a[:, 2:].prod(1) + b[:, 2:].prod(1) - both
    hull = (torch.maximum(a2, b2) - torch.minimum(a1, b1)).prod(1)
    return both / union, both / union - (hull - union) / hull


def loss_of(model: network.Detector, batch: Batch, grid: Tensor) -> Tensor:
    """The loss of one batch, a float32 scalar: quality focal for scores, generalized IoU and centres for boxes."""
    boxes, logits = model.raw(batch.images)
    which = assign(batch, grid)
    picture, cell = (which >= 0).nonzero(as_tuple=True)
    chosen = which[picture, cell]
    corners = batch.boxes[picture, chosen]
    wanted = torch.cat([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]], 1)
    found = boxes[picture, :, cell]
    iou, giou = overlaps(found, wanted)

    target = torch.zeros_like(logits)
    target[picture, batch.labels[picture, chosen], cell] = iou.detach().clamp(min=0.1)  # scores learn the IoU
    error = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    quality = error * (target - torch.sigmoid(logits)).abs().pow(2)
    stride = grid[2][cell, None]
    centre = functional.smooth_l1_loss(found[:, :2] / stride, wanted[:, :2] / stride, beta=0.1, reduction="sum")
    count = max(len(cell), 1)
    return 2 * quality.sum() / count + 2 * (1 - giou).sum() / count + centre / count


def follow(mean: network.Detector, model: network.Detector, step: int) -> None:
    """Move the running mean of the weights towards `model`, fast at first so that the first steps do not linger."""
    share = max(0.003, 10 / (10 + step))
    with torch.no_grad():
        for old, new in zip(mean.state_dict().values(), model.state_dict().values(), strict=True):
            if old.is_floating_point():
                old.lerp_(new, share)


def train(lateral8: int, recipe: Recipe) -> network.Detector:
    """Train a detector and return the running mean of its weights."""
    torch.manual_seed(recipe.seed)
    rng = np.random.default_rng(recipe.seed)
    drawn = draw(recipe.seed, recipe.scenes)
    model = network.Detector(lateral8=lateral8)
    nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)  # the faster layout on a CPU
    mean = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, recipe.steps, pct_start=0.08, final_div_factor=100
    )
    grid, order, start = cells(), np.empty(0, np.int64), time.monotonic()
    for step in range(recipe.steps):
        if len(order) < recipe.batch:
            order = rng.permutation(recipe.scenes)
        take, order = torch.from_numpy(order[: recipe.batch].copy()), order[recipe.batch :]
        loss = loss_of(model, augment(Batch(drawn.images[take], drawn.boxes[take], drawn.labels[take]), rng), grid)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        follow(mean, model, step)
        if step % 200 == 199:
            print(f"step {step + 1} loss {loss.item():.3f} {time.monotonic() - start:.0f} s", flush=True)
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the detector of shapes.")
    parser.add_argument("--lateral8", type=int, default=8, help="channels of the skip into stride 8: 8 wide, 2 thin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenes", type=int, default=2500)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True, help="the .npz to write")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    recipe = Recipe(options.seed, options.scenes, options.steps)
    network.save(train(options.lateral8, recipe), options.out)


if __name__ == "__main__":
    main()
