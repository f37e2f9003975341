"""The numbers in weights and constants: what is none, and what half precision cannot hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.checks.quantization import PARAMETERS
from vexlint.model import payloads, tensors
from vexlint.model.graph import Node
from vexlint.model.held import Held
from vexlint.model.model import Model
from vexlint.values import Hit, Place, Severity

if TYPE_CHECKING:
    from onnx import TensorProto

# data_type -> (bytes of an element, mask of its exponent, mask of its fraction): IEEE 754, and bfloat16
FORMATS = {
    1: (4, 0x7F80_0000, 0x007F_FFFF),
    10: (2, 0x7C00, 0x03FF),
    11: (8, 0x7FF0_0000_0000_0000, 0x000F_FFFF_FFFF_FFFF),
    16: (2, 0x7F80, 0x007F),
}
CONSTANT = ("", "Constant")
BUDGET = 4096  # small tensors looked at where nothing else is read
# Operators whose inputs behind the first are weights: a number there that is none reaches every result
WEIGHTED = (
    *("Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "InstanceNormalization", "LayerNormalization"),
    *("GroupNormalization", "PRelu", "DeformConv", "LSTM", "GRU", "RNN"),
)


# Operators that compute with a constant: what is no number there reaches every result
COMPUTING = ("Add", "Sub", "Mul", "Div", "Sum", "Mean", "Gather")


@dataclass(frozen=True, slots=True)
class Census:
    """How many elements of a tensor are NaN, infinite, of these above 0, denormal; of how many."""

    nan: int = 0
    infinite: int = 0
    denormal: int = 0
    count: int = 0
    positive: int = 0


def non_finite(model: Model, context: Context) -> Iterator[Hit]:
    """VEX602: NaN in any constant, infinity in a weight; on a deep check in large tensors too, and denormals.

    One hit a kind of fault. Without a deep check only tensors that are in the proto are looked at, `BUDGET` of them.
    """
    found: dict[str, list[tuple[Place, Census]]] = {"nan": [], "infinite": [], "denormal": []}
    for held in _floating(model, context.deep):
        census = count(model, held.tensor) if context.deep else _quick(held.tensor)
        if census is None:
            continue
        place = held.place
        if census.nan and not _is_parameter(model, place):
            found["nan"].append((place, census))
        elif census.infinite and (_is_weight(model, place) or _is_stray(model, place, census)):
            found["infinite"].append((place, census))
        elif census.denormal:
            found["denormal"].append((place, census))
    for kind, rows in found.items():
        if rows:
            yield _hit(model, kind, rows)


def _hit(model: Model, kind: str, rows: list[tuple[Place, Census]]) -> Hit:
    many = sum(getattr(census, kind) for _, census in rows)
    of = sum(census.count for _, census in rows)
    word = {"nan": "NaN", "infinite": "infinite", "denormal": "denormal"}[kind]
    text = f"{many:,} of {of:,} numbers {'is' if many == 1 else 'are'} {word}"
    severity, way_out = None, "take the last good checkpoint: training had diverged"
    if kind == "denormal":
        severity, way_out = Severity.INFO, "some processors are slow with them; set them to zero"
    elif not any(_is_weight(model, place) or (kind == "nan" and _is_table(model, place, c)) for place, c in rows):
        severity, way_out = Severity.WARNING, "it reaches every result that is computed with it"
    places = tuple(place for place, _ in rows)
    return Hit(places[0], text, way_out, severity=severity, data={kind: many}, more=places[1:], count=len(places))


def _floating(model: Model, deep: bool) -> Iterator[Held]:
    left = BUDGET
    for held in model.held:
        if not deep and held.record is not None:
            continue  # its data are not at hand
        if held.tensor.data_type not in FORMATS or (held.node and (held.node.domain, held.node.op) != CONSTANT):
            continue  # attributes of other operators have meanings of their own: tree ensembles part sets by NaN
        left -= 1
        if left < 0 and not deep:
            return
        yield held


def _quick(tensor: TensorProto) -> Census | None:
    """As `count`, without denormals and without numpy: the sum of numbers tells whether one of them is none. None where
    none is."""
    numbers = tensors.values(tensor, most=1024) or []
    if math.isfinite(sum(numbers)):
        return None
    infinite = sum(map(math.isinf, numbers))
    return Census(sum(map(math.isnan, numbers)), infinite, 0, len(numbers), numbers.count(math.inf))


def count(model: Model, tensor: TensorProto) -> Census:
    """The census of one tensor of any size."""
    import numpy as np

    width, exponent, fraction = FORMATS[tensor.data_type]
    total = [0, 0, 0, 0, 0]
    for piece in payloads.chunks(model, tensor):
        bits = np.frombuffer(piece[: len(piece) // width * width], f"<u{width}")
        high, low = bits & bits.dtype.type(exponent), bits & bits.dtype.type(fraction)
        odd = high == exponent
        total[0] += int(np.count_nonzero(odd & (low != 0)))
        total[1] += int(np.count_nonzero(odd & (low == 0)))
        total[2] += int(np.count_nonzero((high == 0) & (low != 0)))
        total[3] += len(bits)
        total[4] += int(np.count_nonzero(bits == bits.dtype.type(exponent)))
    return Census(*total)


def readers(model: Model, place: Place) -> list[tuple[Node, int]]:
    """The nodes that read a constant, and at which input; those of the graph that holds it."""
    graph = next(g for g in model.graphs if g.path == place.graph)
    return [
        (node, position)
        for node in graph.readers.get(place.value, ())
        for position, name in enumerate(node.inputs)
        if name == place.value
    ]


def _is_weight(model: Model, place: Place) -> bool:
    return any(not n.domain and n.op in WEIGHTED and (at or n.op == "MatMul") for n, at in readers(model, place))


def _is_table(model: Model, place: Place, census: Census) -> bool:
    """Whether several numbers are computed with: biases, factors, embeddings."""
    return census.count > 1 and any(not n.domain and n.op in COMPUTING for n, _ in readers(model, place))


def _is_stray(model: Model, place: Place, census: Census) -> bool:
    """Whether plus infinity is no bound (a Clip, a comparison): computed with, or one among several numbers. Minus
    infinity masks."""
    among = census.count - census.nan - census.infinite > 1
    return census.positive > 0 and (among or any(not n.domain and n.op in COMPUTING for n, _ in readers(model, place)))


def _is_parameter(model: Model, place: Place) -> bool:
    """Whether quantization reads it, of which VEX604 speaks."""
    found = readers(model, place)
    return bool(found) and all(not n.domain and n.op in PARAMETERS and at for n, at in found)
