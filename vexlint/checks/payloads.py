"""Whether a tensor's dimensions and type fit the data it brings: from their lengths, the weights are not read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.model import tensors
from vexlint.model.held import Held
from vexlint.model.model import Model
from vexlint.values import Hit

if TYPE_CHECKING:
    from onnx import TensorProto

STRING = 8
# data_type -> its typed field and how many entries of it one element takes (onnx.proto3, TensorProto)
FIELDS = tensors.TYPED_FIELDS | {STRING: "string_data", 14: "float_data", 15: "double_data"}
PAIRS = (14, 15)  # complex numbers: two entries each
TYPED = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def data_size(model: Model, context: Context) -> Iterator[Hit]:
    """VEX710: a tensor whose dims and type ask for other data than it has; one hit a tensor.

    Data outside the file is VEX711's. Typed data of a kilobyte or more that is written as varints has stayed on disk
    uncounted, and is not judged.
    """
    for held in model.held:
        flaw = _flaw(held)
        if flaw:
            place, tensor = held.place, held.tensor
            kind = tensors.dtype_name(tensor.data_type)
            shape = f"[{','.join(map(str, tensor.dims))}]"
            whose = f"{tensor.name} " if tensor.name and place.kind == "node" else ""
            yield Hit(
                place,
                f"{whose}{kind} {shape} {flaw}",
                "the file was cut, or its dims were edited: export or fetch it again; runtimes refuse it",
            )


def _flaw(held: Held) -> str:
    tensor, payload = held.tensor, held.payload
    if tensor.data_type not in tensors.DTYPES:
        return "has no element type that ONNX knows"
    dims = tensor.dims[:]  # a list at once: a repeated field is slow to iterate
    if dims and min(dims) < 0:
        return "has a negative dimension"
    count = math.prod(dims)
    bits = tensors.BITS.get(tensor.data_type, 0)
    if held.record is not None:
        return _bytes_flaw(payload.length, count, bits) if payload is not None and payload.raw and bits else ""
    if tensor.HasField("raw_data"):
        if tensor.data_type == STRING:
            return "has its strings as raw bytes, which the standard does not allow"
        return _bytes_flaw(len(tensor.raw_data), count, bits)
    return _entries_flaw(tensor, count, bits)


def _bytes_flaw(length: int, count: int, bits: int) -> str:
    needed = -(-count * bits // 8)
    return "" if length == needed else f"needs {needed} bytes of data and has {length}"


def _entries_flaw(tensor: TensorProto, count: int, bits: int) -> str:
    field = FIELDS.get(tensor.data_type, "int32_data")
    found = len(getattr(tensor, field))
    other = next((name for name in TYPED if name != field and len(getattr(tensor, name))), None)
    if other is not None and not found:
        return f"has its data in {other}; for this type it belongs into {field}"
    if bits in (2, 4, 6):
        return "" if found in (count, -(-count * bits // 8)) else f"needs {count} values and has {found} bytes of them"
    needed = 2 * count if tensor.data_type in PAIRS else count
    return "" if found == needed else f"needs {needed} values and has {found}"
