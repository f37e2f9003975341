"""Sizes of a node's inputs that cannot go together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vexlint.checks import detectors, quantization, ranges, resize_inputs, slopes
from vexlint.checks.types import type_flaw
from vexlint.model.graph import Node
from vexlint.model.kinds import Use
from vexlint.model.model import Model
from vexlint.values import Hit

# Rules that say of an operator's sizes what is wrong and why
OWNERS: dict[str, Callable[[Node], object]] = {
    "DequantizeLinear": lambda node: any(quantization.faults(node, 1, 2)),
    "NonMaxSuppression": lambda node: any(detectors.layout(node)),
    "PRelu": slopes.misplaced,
    "QuantizeLinear": lambda node: any(quantization.faults(node, 1, 2)),
    "Resize": lambda node: any(resize_inputs.faults(node, lenient=False)),
    "TopK": detectors.too_many,
    "Upsample": lambda node: any(resize_inputs.faults(node, lenient=False)),
}


def hits(model: Model) -> Iterator[Hit]:
    """One hit a node whose sizes no other rule speaks of."""
    seen = set[tuple[str, int]]()  # a function's node is judged for each way it is called
    for use, text in model.flow.misfits:
        key = (use.node.graph.path, use.node.index)
        if key not in seen and not _spoken_of(use):
            seen.add(key)
            yield Hit(use.node.place, text, "runtimes refuse the node: export again, or correct what feeds it")


def _spoken_of(use: Use) -> bool:
    owner = OWNERS.get(use.node.op)
    return bool(type_flaw(use) or ranges.flaw(use) or (owner and owner(use.node)))
