"""What NMS costs inside the graph and outside: `python -m tests.benchmarks.nms [--runs 30]` prints Markdown.

Heads of 80 classes as v8 lays them out, made-up crowded pictures, ONNX Runtime's CPU with one thread: the golden
detector (3 classes) on a picture with so many places, the tails alone, greedy NMS in numpy as `vexlint verify` does it,
and in plain Python (what an application without torchvision writes). Medians in ms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from vexlint.model.layouts import LAYOUTS
from vexlint.model.shapes import Shape
from vexlint.nms import reference, tail
from vexlint.nms.heads import Head
from vexlint.nms.tail import Settings

ROOT = Path(__file__).resolve().parents[2]
USUAL = Settings(0.25, 0.45, 300)
SIZES = {2100: (320, 320), 8400: (640, 640), 25200: (960, 1280)}  # places of strides 8, 16, 32: height, width


def head(places: int) -> Head:
    """A v8 head of 80 classes."""
    return Head(LAYOUTS["v8"], ("raw",), (Shape("float", (1, 84, places)),), 80, places, 1, SIZES[places], True)


def session(data: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def python_nms(raw: Any, score: float, iou: float) -> list[int]:
    """Greedy class-aware NMS, numpy for the scores and plain Python for the boxes."""
    best, labels = raw[4:].max(0), raw[4:].argmax(0)
    order = [i for i in (-best).argsort(kind="stable")[:1000].tolist() if best[i] > score]
    boxes = {i: (x - w / 2, y - h / 2, x + w / 2, y + h / 2) for i in order for x, y, w, h in [raw[:4, i].tolist()]}
    kept: list[int] = []
    for i in order:
        if all(labels[i] != labels[j] or overlap(boxes[i], boxes[j]) <= iou for j in kept):
            kept.append(i)
            if len(kept) == 300:
                break
    return kept


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    both = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both
    return both / union if union > 0 else 0.0


def milliseconds(work: Callable[[Any], Any], feeds: list[Any], runs: int) -> float:
    work(feeds[0])
    spent = []
    for number in range(runs):
        start = time.perf_counter()
        work(feeds[number % len(feeds)])
        spent.append((time.perf_counter() - start) * 1e3)
    return median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    runs = parser.parse_args().runs
    import numpy as np

    network = session(str(ROOT / "golden_models" / "shapes_detector" / "dynamic.onnx"))
    print("| N | image | network | planes | loop | numpy, float64 | Python |\n|---|---|---|---|---|---|---|")
    for places, (high, wide) in SIZES.items():
        one = head(places)
        feeds = [reference.scene(one, seed) for seed in (1, 2, 3, 4)]
        picture = {"images": np.random.default_rng(0).random((1, 3, high, wide), np.float32)}
        cells = [milliseconds(lambda feed: network.run(None, feed), [picture], runs)]
        for kind in ("planes", "loop"):
            run = session(tail.build(one, Settings(0.25, 0.45, 300, tail=kind), 17).SerializeToString())
            cells.append(milliseconds(lambda feed, run=run: run.run(None, feed), feeds, runs))  # type: ignore[misc]
        cells.append(milliseconds(lambda feed, one=one: reference.select(one, USUAL, feed), feeds, runs))  # type: ignore[misc]
        cells.append(milliseconds(lambda feed: python_nms(feed["raw"][0], 0.25, 0.45), feeds, runs))
        print(f"| {places:,} | {high} x {wide} | " + " | ".join(f"{c:.1f} ms" for c in cells) + " |")


if __name__ == "__main__":
    main()
