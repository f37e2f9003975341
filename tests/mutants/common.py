"""What the kinds of mistakes share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

Dice = random.Random
Mutate = Callable[[ModelProto, Dice], bool]
TYPES: tuple[int, ...] = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.UINT8,
    TensorProto.INT8,
    TensorProto.BOOL,
)


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all within it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from graphs(inner)


def nodes(model: ModelProto) -> list[NodeProto]:
    return [node for graph in graphs(model.graph) for node in graph.node]


def misspelt(word: str, dice: Dice) -> str:
    """A word with one slip of the hand or another tool's way of writing it."""
    at = dice.randrange(max(1, len(word) - 1))
    slips = [
        word[:at] + word[at + 1 :],
        word[:at] + word[at : at + 1] * 2 + word[at + 1 :],
        word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
        word.swapcase() if len(word) < 3 else word[0].swapcase() + word[1:],
        word.removesuffix("s") if word.endswith("s") else word + "s",
        word.replace("_", "") if "_" in word else word + "_",
    ]
    return dice.choice([slip for slip in slips if slip not in ("", word)] or [word + "x"])


def pick(items: Sequence[object], dice: Dice) -> int | None:
    return dice.randrange(len(items)) if items else None
