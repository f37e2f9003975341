"""Measures what README.md says of the files: `python golden_models/shapes_detector/measure.py`.

Needs numpy and onnxruntime. It runs each file on the recorded scenes and compares it with PyTorch's own numbers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
from shapes_detector import scenes

Array = NDArray[np.float32]

FOLDER = Path(__file__).parent

# Each file that a runtime can load, and whose recorded numbers it must reproduce.
REFERENCES = {
    "clean": "clean",
    "opset11": "clean",
    "opset20": "clean",
    "batch4": "clean",
    "dynamic": "clean",
    "objectness": "objectness",
    "align_corners": "align_corners",
    "thin_clean": "thin_clean",
    "thin_align_corners": "thin_align_corners",
}
ROWS = ("objectness",)  # laid out [B, N, 5 + C]; the others are [B, 4 + C, N]


@dataclass(frozen=True)
class Drift:
    """The largest differences between two outputs."""

    box_px: float  # of a box's centre, width or height
    score: float


def recorded() -> dict[str, NDArray[Any]]:
    """PyTorch's outputs by name, float32 [4, ...], and the `seed` and `indices`, int64, of the scenes behind them."""
    with np.load(FOLDER / "recorded.npz") as file:
        return {name: file[name] for name in file.files}


def inputs() -> Array:
    """The recorded scenes as the network's input, float32 [4, 3, 320, 320] in 0..1."""
    with np.load(FOLDER / "recorded.npz") as file:
        seed, indices = int(file["seed"]), file["indices"].tolist()
    return np.concatenate([scenes.to_input(scenes.scene(seed, index)[0]) for index in indices])


def run(model: Path | bytes, images: Array) -> Array:
    """What ONNX Runtime makes of float32 [B, 3, H, W], in turns of as many pictures as the file takes at once."""
    import onnxruntime

    source = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    batch = session.get_inputs()[0].shape[0]
    step = batch if isinstance(batch, int) else len(images)
    parts = [session.run(None, {"images": images[i : i + step]})[0] for i in range(0, len(images), step)]
    return np.concatenate(parts)


def clean_layout(name: str, output: Array) -> Array:
    """The output of the variant `name` as the clean file lays it out: float32 [B, 4 + C, N], one score a class.

    Of objectness times class only the product is compared: where there is no object both are close to 0, and dividing
    one by the other makes rounding errors look large that no detection depends on.
    """
    if name not in ROWS:
        return output
    cells = output.transpose(0, 2, 1)
    return np.concatenate([cells[:, :4], cells[:, 4:5] * cells[:, 5:]], 1)


def drift(found: Array, wanted: Array) -> Drift:
    """Compare two outputs, float32 [B, 4 + C, N], cell by cell."""
    if found.shape != wanted.shape:
        raise ValueError(f"the outputs have the shapes {found.shape} and {wanted.shape}: nothing to compare")
    apart = np.abs(found - wanted)
    return Drift(float(apart[:, :4].max()), float(apart[:, 4:].max()))


def main() -> None:
    known, images = recorded(), inputs()
    print("| file | largest difference of boxes, px | of scores |\n|---|---|---|")
    for name, reference in REFERENCES.items():
        found = run(FOLDER / f"{name}.onnx", images)
        apart = drift(clean_layout(name, found), clean_layout(name, known[reference]))
        print(f"| {name}.onnx | {apart.box_px:.1e} | {apart.score:.1e} |")


if __name__ == "__main__":
    main()
