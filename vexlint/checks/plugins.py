"""TensorRT's plugins that suppress boxes, written into a file as nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.tables import Target, numbers
from vexlint.values import Hit, Severity

# NVIDIA/TensorRT, plugin/efficientNMSPlugin: its creator refuses a node that lacks one of these
REQUIRED = (
    "score_threshold",
    "iou_threshold",
    "max_output_boxes",
    "background_class",
    "score_activation",
    "box_coding",
)


@dataclass(frozen=True, slots=True)
class Plugin:
    """What is known of one: the releases that have it (`removed` is the first known without it), the one that
    deprecates it ("0" where its makers give no number), the attribute that puts a sigmoid on the scores, the
    attributes it has to have."""

    since: str = "7.0"
    deprecated: str = ""
    removed: str = ""
    activation: str = ""
    required: tuple[str, ...] = ()


SUPPRESSORS = {
    "EfficientNMS_TRT": Plugin("8.0", "10.12", activation="score_activation", required=REQUIRED),
    "EfficientNMS_ONNX_TRT": Plugin("8.0", "0", "10.16"),
    "BatchedNMS_TRT": Plugin(deprecated="0", removed="11.1"),
    "BatchedNMSDynamic_TRT": Plugin(deprecated="0", removed="11.1"),
    "NMS_TRT": Plugin(deprecated="0", removed="11.0", activation="confSigmoid"),
    "NMSDynamic_TRT": Plugin(deprecated="0", removed="11.0", activation="confSigmoid"),
}
WAY_OUT = (
    "take the standard NonMaxSuppression, which vexlint nms writes, or allow the plugin with [[plugin]] for the "
    "TensorRT that the file goes to"
)
ACTIVATIONS = ("Sigmoid", "Softmax", "HardSigmoid")
# Operators that leave scores between 0 and 1 as they are, or multiply two of them
PASSING = ("Transpose", "Reshape", "Concat", "Slice", "Split", "Squeeze", "Unsqueeze", "Gather", "Cast", "Identity",
           "Flatten", "Mul")  # fmt: skip


def nms_plugin(model: Model, context: Context) -> Iterator[Hit]:
    """VEX506: a suppressing plugin of TensorRT; one hit a cause and target."""
    yield from hits(
        (fault, node.place)
        for op, plugin in SUPPRESSORS.items()
        for (domain, name), nodes in model.operators.items()
        if name == op and model.is_foreign(domain, op)
        for node in nodes
        for fault in (*_flaws(node, plugin), *_support(node, plugin, context))
    )


def _flaws(node: Node, plugin: Plugin) -> Iterator[Fault]:
    """What is wrong wherever it runs."""
    written = {a.name for a in node.proto.attribute}
    absent = [name for name in plugin.required if name not in written]
    if absent:
        yield Fault(
            f"{node.op} lacks {', '.join(absent)}: TensorRT refuses the node, older releases take what they like",
            "write every attribute; class_agnostic, which came with 8.6, is the only one that may be left out",
            Severity.ERROR,
        )
    if node.attribute(plugin.activation) == 1 and (maker := _activated(node)) is not None:
        yield Fault(
            f"{node.op} puts a sigmoid on its scores ({plugin.activation} = 1), which {maker} has already done: every "
            "score is at least 0.5",
            f"write {plugin.activation} = 0, or take the {maker} out",
            Severity.ERROR,
        )


def _activated(node: Node) -> str | None:
    """The operator that has made the scores numbers between 0 and 1; None where no path shows one."""
    row, seen = [node.input(1)], 0
    while row and seen < 100:
        value, seen = row.pop(), seen + 1
        maker = value.producer if value is not None else None
        if maker is None or maker.domain:
            continue
        if maker.op in ACTIVATIONS:
            return maker.op
        if maker.op in PASSING:
            row += [maker.input(i) for i in range(len(maker.inputs))]
    return None


def _support(node: Node, plugin: Plugin, context: Context) -> Iterator[Fault]:
    """Who runs it: TensorRT with its plugin library, from one release to another, and nobody else."""
    allowed = context.plugin(node.domain, node.op)
    named = [t for t in context.targets if t.named and t.runtime != "onnx"]
    if not named and allowed is None:
        text = f"{node.op} is a plugin of TensorRT: no other runtime has it{_since(plugin)}"
        yield Fault(text, WAY_OUT, Severity.ERROR)
    for target in named:
        if target.runtime == "tensorrt" and not context.covered(node.domain, node.op, target):
            yield from _in_tensorrt(node, plugin, target)
        elif target.runtime != "tensorrt" and not context.covered(node.domain, node.op, target):
            text = f"{node.op} is a plugin of TensorRT: {target} does not have it"
            yield Fault(text, WAY_OUT, None, str(target), "refuses")


def _in_tensorrt(node: Node, plugin: Plugin, target: Target) -> Iterator[Fault]:
    version = numbers(target.version)
    if version < numbers(plugin.since):
        yield Fault(f"{target} has no {node.op}: it came with {plugin.since}", WAY_OUT, None, str(target), "refuses")
    elif plugin.removed and version >= numbers(plugin.removed):
        text = f"{target} has no {node.op} any more: it is gone from {plugin.removed} on"
        yield Fault(text, WAY_OUT, None, str(target), "refuses")
    else:
        old = bool(plugin.deprecated) and version >= numbers(plugin.deprecated)
        text = f"{node.op} needs TensorRT's plugin library beside {target}" + (_since(plugin) if old else "")
        yield Fault(text, WAY_OUT, None, str(target), "needs-plugin")


def _since(plugin: Plugin) -> str:
    if plugin.deprecated == "0":
        return "; its makers have deprecated it"
    return f"; it is deprecated since TensorRT {plugin.deprecated}" if plugin.deprecated else ""
