"""What half precision cannot hold: constants beyond its range, epsilons that vanish, exponentials that overflow.

IEEE 754 binary16: the largest number is 65504; from 65520 on a number rounds to infinity, up to 2^-25 to zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.checks.faults import Fault, hits
from vexlint.checks.weights import readers
from vexlint.model import payloads, tensors
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.values import Hit, Place, Severity

if TYPE_CHECKING:
    from onnx import TensorProto

INFINITE = 65520.0
ZERO = 2.0**-25
LARGEST_EXP = 11.09  # log(65504)
WIDE = (1, 11, 16)  # float, double, bfloat16: what is converted to half
# Where a number only bounds or selects, infinity does as well
BOUNDING = ("Clip", "Min", "Max", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "Cast")
GUARDED = ("Sqrt", "Log", "Div", "Reciprocal", "Pow")  # what an epsilon keeps from a zero
NORMALIZING = (
    "BatchNormalization",
    "InstanceNormalization",
    "LayerNormalization",
    "GroupNormalization",
    "LpNormalization",
)
STEPS = ("Add", "Sub", "Mul", "Identity", "Cast")  # between an exponential and what is made of it
KEEP = "keep these nodes in float32, or write a number that half precision holds"


def half_overflow(model: Model, context: Context) -> Iterator[Hit]:
    """VEX603: constants, epsilons and exponentials that leave the range of half precision; one hit a cause."""
    yield from hits(_constants(model))
    yield from hits(_epsilons(model))
    yield from hits(_exponentials(model))


def _constants(model: Model) -> Iterator[tuple[Fault, Place]]:
    for held in model.held:
        place, tensor = held.place, held.tensor
        if tensor.data_type not in WIDE:
            continue
        most, least = _extent(model, tensor)
        if most is not None and most >= INFINITE:
            for node, _ in readers(model, place):
                if node.domain or node.op not in BOUNDING:
                    yield Fault(f"reads a constant of {most:g}: infinite in half precision", KEEP), node.place
        if least is not None and tensors.size(tensor) == 1 and least <= ZERO:
            for node, _ in readers(model, place):
                if _guards(node):
                    text = f"adds {least:g} to keep a zero away: that is zero in half precision"
                    yield Fault(text, "take 1e-6 or more, or keep these nodes in float32"), node.place


def _extent(model: Model, tensor: TensorProto) -> tuple[float | None, float | None]:
    """The largest and the smallest finite magnitude of a tensor that is not zero, None where there is none."""
    import numpy as np

    kind = {1: "<f4", 11: "<f8", 16: "<u2"}[tensor.data_type]
    most, least = 0.0, math.inf
    for piece in payloads.chunks(model, tensor):
        numbers = np.frombuffer(piece, kind, len(piece) // int(kind[2]))
        if kind == "<u2":
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
        if sizes.size:
            most, least = max(most, float(sizes.max())), min(least, float(sizes.min()))
    return most or None, None if math.isinf(least) else least


def _guards(node: Node) -> bool:
    """Whether a node adds (or takes the larger of) an epsilon before a root, a logarithm or a division."""
    if node.domain or node.op not in ("Add", "Max", "Clip"):
        return False
    return any(r.op in GUARDED and not r.domain for o in node.outputs if o for r in node.graph.readers.get(o, ()))


def _epsilons(model: Model) -> Iterator[tuple[Fault, Place]]:
    """Epsilons in attributes: many runtimes normalize in float32 all the same, hence a warning."""
    for node in model.nodes(*NORMALIZING):
        epsilon = node.attribute("epsilon")
        if isinstance(epsilon, float) and 0 < epsilon <= ZERO:
            text = f"{node.op} has an epsilon of {epsilon:g}: zero where the runtime normalizes in half precision"
            yield Fault(text, "take 1e-6 or more", severity=Severity.WARNING), node.place


def _exponentials(model: Model) -> Iterator[tuple[Fault, Place]]:
    """Exponentials of something that nothing bounds, whose logarithm or quotient is then no number."""
    for node in model.nodes("Exp"):
        if _bounded(node):
            continue
        derived = _derived(node)
        for reader in {r.index: r for name in derived for r in node.graph.readers.get(name, ())}.values():
            quotient = reader.op == "Div" and set(reader.inputs[:2]) <= derived
            if reader.domain or not (reader.op == "Log" or quotient):
                continue
            end = "NaN" if quotient else "infinite"
            text = f"{reader.op} of an exponential that overflows beyond {LARGEST_EXP} in half precision: {end} then"
            way_out = "bound it first (Min, Clip), or write the standard operator"
            yield Fault(text, way_out, severity=Severity.WARNING), reader.place


def _bounded(node: Node) -> bool:
    """Whether the exponent cannot be large: less its maximum (a softmax), clipped, or of a negated magnitude."""
    value = node.input(0)
    maker = value.producer if value else None
    if maker is None or maker.domain:
        return False
    if maker.op in ("Clip", "Min", "Neg"):
        return True
    if maker.op != "Sub":
        return False
    taken = maker.input(1)
    return taken is not None and taken.producer is not None and taken.producer.op in ("ReduceMax", "Max")


def _derived(node: Node) -> set[str]:
    """The values a few arithmetic steps behind an exponential, with itself."""
    found = set(node.outputs) - {""}
    row = set(found)
    for _ in range(4):
        steps = {r.index: r for n in row for r in node.graph.readers.get(n, ()) if r.op in STEPS and not r.domain}
        row = {o for step in steps.values() for o in step.outputs if o} - found
        found |= row
    return found
