# mypy: allow-subclassing-any, allow-untyped-calls
"""Mish as a project of one's own would have it: a hand-written function that exports as an operator nobody else knows.

Such functions were common while PyTorch had no Mish of its own, for the sake of memory in training. What they cost
shows at export: the node is outside the standard, so that ONNX Runtime refuses it and others go by its name at best,
and the exporter itself loses the shapes of everything behind it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class _MishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return functional.mish(x)

    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        """What the TorchScript exporter writes for this function. It says no output type, as few of these do."""
        return g.op("shapes::Mish", x)


class PrivateMish(nn.Module):
    """Equal to nn.Mish; exports as one `Mish` node of the domain `shapes`."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = _MishFunction.apply(x)
        return y
