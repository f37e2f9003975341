# mypy: allow-subclassing-any
# Without torch, which neither the tests nor CI install, mypy takes nn.Module for Any; this file is to pass either way.
"""A tiny one-stage, anchor-free detector: Mish backbone, SiLU neck with bilinear upsampling, SiLU head.

Its parts are named as they should read in an exported graph: `/backbone/stem/act/Softplus`, `/neck/up16/Resize`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

STRIDES = (8, 16, 32)  # px of the picture for one cell of each feature map


class ConvBlock(nn.Module):
    """Convolution, batch normalization, activation: float32 [B, inputs, H, W] to [B, outputs, H/stride, W/stride]."""

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int = 3, stride: int = 1, act: type[nn.Module] = nn.SiLU
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs, momentum=0.03)
        self.act = act()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.bn(self.conv(x)))
        return y


class Upsample(nn.Module):
    """Bilinear upsampling by 2. `align_corners` is a choice of the export here: see `load`."""

    def __init__(self, align_corners: bool) -> None:
        super().__init__()
        self.align_corners = align_corners

    def forward(self, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=self.align_corners)


class Backbone(nn.Module):
    """Feature maps of a picture, float32 [B, 3, H, W] in 0..1, at the three strides: 32, 48 and 40 channels."""

    def __init__(self, act: type[nn.Module]) -> None:
        super().__init__()
        self.stem = ConvBlock(3, 16, stride=2, act=act)
        self.down4 = ConvBlock(16, 24, stride=2, act=act)
        self.down8 = ConvBlock(24, 32, stride=2, act=act)
        self.down16 = ConvBlock(32, 48, stride=2, act=act)
        self.mix16 = ConvBlock(48, 48, act=act)
        self.down32 = ConvBlock(48, 40, stride=2, act=act)
        self.mix32 = ConvBlock(40, 40, act=act)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # Shallow up to stride 8 on purpose: each cell there sees 15 px, so that small objects need what comes up
        # from the coarser maps, and an upsampling exported wrongly shows in their boxes.
        c8: Tensor = self.down8(self.down4(self.stem(images)))
        c16 = self.down16(c8)
        c16 = c16 + self.mix16(c16)
        c32 = self.down32(c16)
        c32 = c32 + self.mix32(c32)
        return c8, c16, c32


class Neck(nn.Module):
    """Carries coarse features up to the finer maps; each of the three maps leaves with 32 channels.

    `lateral8` is the number of channels that skip from the backbone straight into stride 8. The fewer, the more the
    upsampled features alone say where small objects are.
    """

    def __init__(self, lateral8: int, align_corners: bool) -> None:
        super().__init__()
        self.lateral8 = ConvBlock(32, lateral8, kernel=1)
        self.lateral16 = ConvBlock(48, 32, kernel=1)
        self.lateral32 = ConvBlock(40, 32, kernel=1)
        self.up16 = Upsample(align_corners)
        self.up8 = Upsample(align_corners)
        self.merge8 = ConvBlock(32 + lateral8, 32)
        self.merge16 = ConvBlock(32, 32)

    def forward(self, c8: Tensor, c16: Tensor, c32: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p32: Tensor = self.lateral32(c32)
        p16: Tensor = self.merge16(self.lateral16(c16) + self.up16(p32))
        p8: Tensor = self.merge8(torch.cat([self.lateral8(c8), self.up8(p16)], 1))
        return p8, p16, p32


class Head(nn.Module):
    """Reads one box and `classes` logits off each cell of each map."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.hidden = nn.ModuleList(ConvBlock(32, 32) for _ in STRIDES)
        layers = [nn.Conv2d(32, 4 + classes, 1) for _ in STRIDES]
        for layer in layers:
            nn.init.normal_(layer.weight, std=0.01)
            # scores start at 0.01, as nearly every cell is background
            layer.bias = nn.Parameter(torch.cat([torch.zeros(4), torch.full((classes,), -4.6)]))
        self.predict = nn.ModuleList(layers)

    def forward(self, maps: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return boxes, float32 [B, 4, N] as cx cy w h in px, and class logits, float32 [B, classes, N]."""
        boxes, logits = [], []
        for stride, hidden, predict, cells in zip(STRIDES, self.hidden, self.predict, maps, strict=True):
            y: Tensor = predict(hidden(cells))
            # reshape rather than flatten: of flatten the exporter leaves Shape chains even where all is static
            boxes.append(self._boxes(y, stride).reshape(y.shape[0], 4, -1))
            logits.append(y[:, 4:].reshape(y.shape[0], self.classes, -1))
        return torch.cat(boxes, 2), torch.cat(logits, 2)

    @staticmethod
    def _boxes(y: Tensor, stride: int) -> Tensor:
        """Boxes of one map, float32 [B, 4, h, w] in px; centres count from the middle of their cell."""
        height, width = y.shape[2:]
        x_cells = (torch.arange(width, dtype=y.dtype, device=y.device) + 0.5).view(1, 1, 1, width)
        y_cells = (torch.arange(height, dtype=y.dtype, device=y.device) + 0.5).view(1, 1, height, 1)
        centre_x = (y[:, 0:1] + x_cells) * stride
        centre_y = (y[:, 1:2] + y_cells) * stride
        size = torch.exp(y[:, 2:4]) * (2 * stride)
        return torch.cat([centre_x, centre_y, size], 1)


class Detector(nn.Module):
    """The whole network: pictures, float32 [B, 3, H, W] RGB in 0..1 with sides that are multiples of 32, to boxes."""

    def __init__(
        self, classes: int = 3, *, lateral8: int = 8, align_corners: bool = False, mish: type[nn.Module] = nn.Mish
    ) -> None:
        super().__init__()
        self.backbone = Backbone(mish)
        self.neck = Neck(lateral8, align_corners)
        self.head = Head(classes)

    def raw(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return boxes, float32 [B, 4, N] as cx cy w h in px, and class logits, float32 [B, classes, N]."""
        boxes, logits = self.head(self.neck(*self.backbone(images)))
        return boxes, logits

    def forward(self, images: Tensor) -> Tensor:
        """Return float32 [B, 4 + classes, N]: cx cy w h in px, then a score in 0..1 for each class."""
        boxes, logits = self.raw(images)
        return torch.cat([boxes, torch.sigmoid(logits)], 1)


class ObjectnessDetector(Detector):
    """The same boxes in the layout that YOLOv5 made common: rows, and an objectness column before the classes."""

    def forward(self, images: Tensor) -> Tensor:
        """Return float32 [B, N, 5 + classes]: cx cy w h in px, objectness, then classes given that there is an object.

        Objectness is the best class's score and each class is divided by it: their product is the clean score.
        """
        boxes, logits = self.raw(images)
        scores = torch.sigmoid(logits)
        objectness = scores.amax(1, keepdim=True)
        return torch.cat([boxes, objectness, scores / objectness], 1).permute(0, 2, 1)


def save(model: Detector, path: Path) -> None:
    """Write the weights of `model` as plain arrays, one for each entry of its state."""
    arrays: dict[str, Any] = {name: np.ascontiguousarray(value.numpy()) for name, value in model.state_dict().items()}
    np.savez_compressed(path, **arrays)


def load(
    path: Path, *, align_corners: bool = False, mish: type[nn.Module] = nn.Mish, objectness: bool = False
) -> Detector:
    """Build the detector whose weights `path` holds, ready for inference.

    The options change what is computed or exported, never the weights: the weights were trained without
    `align_corners`, so that asking for it makes the mistake of an export that does not match the training.
    """
    with np.load(path) as arrays:
        state = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    kind = ObjectnessDetector if objectness else Detector
    lateral8 = len(state["neck.lateral8.conv.weight"])
    model = kind(lateral8=lateral8, align_corners=align_corners, mish=mish)
    model.load_state_dict(state)
    model.eval()
    return model
