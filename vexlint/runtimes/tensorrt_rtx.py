"""TensorRT-RTX: parses and builds without a GPU, for a compute capability named or for any. Runs nothing here."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.runtimes import nvidia
from vexlint.runtimes.base import Answer, Question


def probe(question: Question) -> Iterator[Answer]:
    """See `nvidia.probe`."""
    import tensorrt_rtx

    device = f"compute capability {question.capability}" if question.capability else "any RTX GPU"
    yield from nvidia.probe(tensorrt_rtx, question, device)
