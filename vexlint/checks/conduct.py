"""Operators that behave another way at inference than people expect: training modes and chance."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks import tables
from vexlint.checks.context import Context
from vexlint.checks.faults import grouped
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.values import Hit

RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


def training_node(model: Model, context: Context) -> Iterator[Hit]:
    """VEX107: BatchNormalization or Dropout that works as in training; one hit an operator and cause, from the named
    targets that are known to refuse it where there are any."""
    refused = list(tables.of("VEX107", model, context)) if any(t.named for t in context.targets) else []
    yield from refused or grouped(
        Hit(
            node.place,
            text,
            "export the model in inference mode: call model.eval() before the export, and leave out training=TRAINING",
        )
        for op, judge in (("BatchNormalization", _normalises_by_batch), ("Dropout", _drops))
        for node in model.nodes(op)
        if (text := judge(node)) is not None
    )


def _normalises_by_batch(node: Node) -> str | None:
    opset = node.graph.opsets.get("", 0)
    training = node.attribute("training_mode") == 1 if opset >= 14 else len([o for o in node.outputs if o]) > 1
    if opset < 7:
        training = node.attribute("is_test") == 0
    return "BatchNormalization normalises by the statistics of the batch at hand, as in training" if training else None


def _drops(node: Node) -> str | None:
    opset = node.graph.opsets.get("", 0)
    if opset < 7:
        active = node.attribute("is_test") == 0 and node.attribute("ratio") != 0
    elif opset < 12:
        return None  # these versions only pass their input on
    else:
        mode, ratio = node.input(2), node.input(1)
        active = mode is not None and mode.constant == [True] and (ratio is None or ratio.constant != [0])
    return "Dropout is active: it zeroes elements at random, as in training" if active else None


def random_node(model: Model, context: Context) -> Iterator[Hit]:
    """VEX108: an operator that draws random numbers; one hit an operator."""
    for op in RANDOM:
        nodes = model.nodes(op)
        if nodes:
            seeded = all(n.attribute("seed") is not None for n in nodes)
            yield Hit(
                nodes[0].place,
                f"{op} draws random numbers: two runs, or two runtimes, do not compute the same"
                + (" (its seed means another sequence to each runtime)" if seeded else ""),
                "take the noise out of the exported graph, or feed it as an input",
                more=tuple(n.place for n in nodes[1:]),
                count=len(nodes),
            )
