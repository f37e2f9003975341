"""Every tail against float64 greedy NMS: `python -m tests.benchmarks.nms_exact [--scenes 200]` prints Markdown.

Synthetic heads of each layout and those of the golden detector, both tails, best class and several labels, classes
apart and together, on ONNX Runtime and OpenVINO where they are installed. "at the threshold" counts the pictures that
are equal only with overlaps that float32 cannot tell from the threshold taken as the runtime took them. Exits with 1
where one differs beyond that.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from vexlint.model.layouts import LAYOUTS
from vexlint.model.read import read
from vexlint.model.shapes import Shape
from vexlint.nms import heads, probe, reference, tail
from vexlint.nms.heads import Head
from vexlint.nms.tail import Settings

DETECTOR = Path(__file__).resolve().parents[2] / "golden_models" / "shapes_detector"
GOLDEN = ("clean", "objectness", "batch4", "dynamic")
RUNTIMES = [r for r in ("onnxruntime", "openvino") if importlib.util.find_spec(r)]
PLACES, CLASSES = 2100, 5


def synthetic(layout: str, batch: int | str = 1, dtype: str = "float", class_axis: int = 2) -> Head:
    """A head of 5 classes on 320 x 320 that no model makes."""
    entry = LAYOUTS[layout]
    if entry.outputs == 2:
        scores = (batch, PLACES, CLASSES) if class_axis == 2 else (batch, CLASSES, PLACES)
        shapes = (Shape(dtype, (batch, PLACES, 4)), Shape(dtype, scores))
        return Head(entry, ("b", "s"), shapes, CLASSES, PLACES, class_axis, (320, 320), True)
    classes = 1 if entry.score == "objectness" else CLASSES
    rows = entry.before + classes
    dims = (batch, rows, PLACES) if entry.places == 2 else (batch, PLACES, rows)
    return Head(entry, ("raw",), (Shape(dtype, dims),), classes, PLACES, entry.rows, (320, 320), True)


def mismatches(
    head: Head, settings: Settings, runtime: str, scenes: int, opset: int = 17
) -> tuple[int, int, int, list[str]]:
    """Pictures, detections, pictures that differ only in overlaps at the threshold, and what differs in which scene."""
    data = tail.build(head, settings, opset).SerializeToString()
    batch = head.batch if isinstance(head.batch, int) else 2
    feeds = [reference.scene(head, seed, batch) for seed in range(scenes)]
    found = probe.run(data, Path(), feeds, runtime)
    seen = [reference.compare(head, settings, f, o, tail.OUTPUTS) for f, o in zip(feeds, found, strict=True)]
    faults = [f"scene {seed}: {c.fault}" for seed, c in enumerate(seen) if c.fault]
    return sum(c.pictures for c in seen), sum(c.detections for c in seen), sum(c.rounded for c in seen), faults


def cases() -> Iterator[tuple[str, Head, Settings]]:
    """Each head with each tail; several labels and agnostic on the layouts of one output."""
    plain = {f"{n}.onnx": heads.find(read(DETECTOR / f"{n}.onnx"), None) for n in GOLDEN}
    plain |= {layout: synthetic(layout) for layout in LAYOUTS}
    for (name, head), kind in product(plain.items(), ("planes", "loop")):
        yield name, head, Settings(0.25, 0.45, 300, tail=kind)
    modes = ((True, False), (False, True), (True, True))
    for layout, kind, (multi, agnostic) in product(("v8", "v5"), ("planes", "loop"), modes):
        yield layout, synthetic(layout), Settings(0.25, 0.45, 300, 1000, kind, multi, agnostic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=200)
    options = parser.parse_args()
    print("| head | tail | labels | classes | runtime | pictures | detections | at the threshold | mismatches |")
    print("|---|---|---|---|---|---|---|---|---|")
    bad = 0
    for (name, head, settings), runtime in product(cases(), RUNTIMES):
        pictures, count, rounded, faults = mismatches(head, settings, runtime, options.scenes)
        bad += len(faults)
        modes = "several" if settings.multi_label else "best", "together" if settings.agnostic else "apart"
        print(
            f"| {name} | {settings.tail} | {modes[0]} | {modes[1]} | {runtime} | {pictures} | {count} "
            f"| {rounded} | {len(faults)} |"
        )
        for fault in faults[:3]:
            print(f"{name} {settings}: {fault}", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
