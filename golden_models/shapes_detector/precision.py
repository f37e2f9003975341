"""Mean average precision on drawn scenes: `python golden_models/shapes_detector/precision.py MODEL… [--count 200]`.

The figure people quote, beside the figures that `vexlint verify` gates on. Needs numpy, onnxruntime and vexlint.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
from shapes_detector import scenes
from shapes_detector.measure import clean_layout, run
from vexlint.model.layouts import LAYOUTS
from vexlint.verify.boxes import Detections, Thresholds, overlaps
from vexlint.verify.decoders import head

Floats = NDArray[np.float64]
Truth = tuple[NDArray[Any], NDArray[Any]]  # boxes [n, 4] in px, labels [n]

SEED = 20261  # scenes that training never saw
CLASSES = 3
LIMITS = np.arange(0.5, 1.0, 0.05)  # IoU from which a detection counts, COCO's ten
RECALLS = np.linspace(0, 1, 101)


def average_precision(found: list[Detections], truth: list[Truth], label: int, limit: float) -> float:
    """COCO's average precision of one class at one IoU limit: the mean of the precision at 101 recalls.

    Detections of all pictures in order of score; each takes the object of its class that it overlaps most and that
    nobody has taken.
    """
    objects = [boxes[labels == label].astype(np.float64) for boxes, labels in truth]
    taken = [np.zeros(len(boxes), bool) for boxes in objects]
    ours = [d.take(d.labels == label) for d in found]
    ranked = sorted(((s, i, j) for i, d in enumerate(ours) for j, s in enumerate(d.scores)), reverse=True)
    hits = np.zeros(len(ranked))
    for rank, (_, picture, index) in enumerate(ranked):
        if len(objects[picture]):
            shared = overlaps(ours[picture].boxes[index : index + 1], objects[picture])[0] * ~taken[picture]
            best = int(shared.argmax())
            if shared[best] >= limit:
                taken[picture][best], hits[rank] = True, 1
    recall = np.cumsum(hits) / max(sum(map(len, objects)), 1)
    precision = np.maximum.accumulate((np.cumsum(hits) / np.arange(1, len(hits) + 1))[::-1])[::-1]
    at = np.searchsorted(recall, RECALLS)
    return float(np.append(precision, 0)[np.minimum(at, len(precision))].mean())


def table(found: list[Detections], truth: list[Truth]) -> Floats:
    """Average precision by IoU limit and class, [10, 3]."""
    return np.array([[average_precision(found, truth, c, limit) for c in range(CLASSES)] for limit in LIMITS])


def detect(model: Path, count: int) -> list[Detections]:
    """What a model detects in the first scenes of `SEED`, with COCO's low threshold."""
    images = [scenes.to_input(scenes.scene(SEED, i)[0]) for i in range(count)]
    heads = [clean_layout(model.stem, run(model, image)) for image in images]
    low = Thresholds(score=0.05, iou=0.5, most=100)
    return [d for made in heads for d in head(LAYOUTS["v8"], [made], low, CLASSES, None)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    truth: list[Truth] = [scenes.scene(SEED, i)[1:] for i in range(options.count)]
    print("| file | mAP50 | mAP75 | mAP50-95 |\n|---|---|---|---|")
    for model in options.models:
        scores = table(detect(model, options.count), truth)
        print(f"| {model.name} | {scores[0].mean():.3f} | {scores[5].mean():.3f} | {scores.mean():.3f} |")


if __name__ == "__main__":
    main()
