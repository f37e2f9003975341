"""Makes every file of this folder that is not written by hand, but for the weights (train.py):

    python golden_models/shapes_detector/make.py

It exports each variant from the weights with PyTorch's TorchScript exporter and records what PyTorch itself computes.
With one version of torch (the files' `producer_version`) the .onnx come out byte for byte the same. On the way torch
warns that it cannot infer the shape of `shapes::Mish`: custom_mish.onnx is there to show what follows from that.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))
from shapes_detector import network, scenes
from shapes_detector.mish import PrivateMish

FOLDER = Path(__file__).parent
SIZE = 320  # px
SEED, INDICES = 20261, (0, 1, 2, 3)  # held out: training drew its scenes from seed 1

METADATA = {
    "imgsz": str([SIZE, SIZE]),
    "names": str(dict(enumerate(scenes.CLASSES))),
    "stride": str(max(network.STRIDES)),
    "task": "detect",
}


@dataclass(frozen=True)
class Variant:
    """One exported file: what it is built from and how it is exported. The defaults are the clean file's."""

    name: str
    weights: str = "wide"
    align_corners: bool = False
    objectness: bool = False
    mish: type[nn.Module] = nn.Mish
    opset: int = 17
    batch: int = 1
    dynamic: bool = False

    def model(self) -> network.Detector:
        """Build the network in PyTorch, with its weights."""
        return network.load(
            FOLDER / f"weights_{self.weights}.npz",
            align_corners=self.align_corners,
            mish=self.mish,
            objectness=self.objectness,
        )


VARIANTS = (
    Variant("clean"),
    Variant("custom_mish", mish=PrivateMish),
    Variant("align_corners", align_corners=True),
    Variant("dynamic", dynamic=True),
    Variant("opset11", opset=11),
    Variant("opset20", opset=20),
    Variant("batch4", batch=4),
    Variant("objectness", objectness=True),
    Variant("thin_clean", weights="thin"),
    Variant("thin_align_corners", weights="thin", align_corners=True),
)
RECORDED = (
    "clean",
    "align_corners",
    "objectness",
    "thin_clean",
    "thin_align_corners",
)  # the rest compute as clean does


def export(variant: Variant) -> onnx.ModelProto:
    """Export one variant and add what a careful exporter says about a detector."""
    images = torch.zeros(variant.batch, 3, SIZE, SIZE)
    places = 1 if variant.objectness else 2  # the axis of output0 that runs over the cells
    axes = {"images": {0: "batch", 2: "height", 3: "width"}, "output0": {0: "batch", places: "cells"}}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the older one, and that tracing fixes Python numbers
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            variant.model(),
            (images,),
            path,
            dynamo=False,  # the newer exporter writes opset 18 for this network where 17 is asked for
            opset_version=variant.opset,
            input_names=["images"],
            output_names=["output0"],
            dynamic_axes=axes if variant.dynamic else None,
        )
        model = onnx.load(path)
    onnx.helper.set_model_props(model, METADATA)
    for node in model.graph.node:
        node.ClearField("doc_string")  # some versions of torch put the lines of Python here, with their path
    return model


def record() -> dict[str, Any]:
    """What PyTorch computes on the held-out scenes, float32 [4, ...] a variant; and which scenes: a seed and indices.

    Coordinates are in px. A runtime is measured against these numbers, not against another runtime.
    """
    inputs = [torch.from_numpy(scenes.to_input(scenes.scene(SEED, index, SIZE)[0])) for index in INDICES]
    recorded: dict[str, Any] = {"seed": np.array(SEED), "indices": np.array(INDICES)}
    for variant in VARIANTS:
        if variant.name in RECORDED:
            recorded[variant.name] = _run(variant.model(), inputs)
    return recorded


def _run(model: network.Detector, inputs: list[Tensor]) -> np.ndarray[Any, np.dtype[np.float32]]:
    with torch.inference_mode():
        outputs: np.ndarray[Any, np.dtype[np.float32]] = torch.cat([model(images) for images in inputs]).numpy()
    return outputs


def main() -> None:
    torch.set_num_threads(1)  # more would sum in another order
    for variant in VARIANTS:
        path = FOLDER / f"{variant.name}.onnx"
        path.write_bytes(export(variant).SerializeToString(deterministic=True))
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    np.savez_compressed(FOLDER / "recorded.npz", **record())


if __name__ == "__main__":
    main()
