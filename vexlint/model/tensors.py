"""Constants: what a TensorProto says and, on demand, its numbers, without numpy."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

# TensorProto.DataType -> name as ONNX text writes it (onnx.proto3, DataType)
DTYPES = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2", 27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip

# numpy's name of an element type where it is another than ONNX text's, and back
NUMPY_NAMES = {"float": "float32", "double": "float64"}
ONNX_NAMES = {numpy: onnx for onnx, numpy in NUMPY_NAMES.items()}

# data_type -> struct format of one element in raw_data (little endian); 4-bit and 8-bit floats are not decoded
RAW_FORMATS = {1: "f", 2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 7: "q", 9: "?", 10: "e", 11: "d", 12: "I", 13: "Q"}
# data_type -> bits of one element; elements of less than a byte are packed
BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
    17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 6, 28: 6,
}  # fmt: skip
# data_type -> the typed field that holds its elements when raw_data does not (onnx.proto3, TensorProto)
TYPED_FIELDS = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}
HALF, BFLOAT16 = 10, 16


def dtype_name(data_type: int) -> str:
    return DTYPES.get(data_type, f"type {data_type}")


def size(tensor: TensorProto) -> int:
    """Number of elements; 1 for a scalar."""
    return math.prod(tensor.dims[:])


def external(tensor: TensorProto) -> dict[str, str] | None:
    """The external-data record (location, offset, length, …) or None where the payload is in the proto."""
    return {entry.key: entry.value for entry in tensor.external_data} if is_external(tensor) else None


def is_external(tensor: TensorProto) -> bool:
    return bool(tensor.data_location == 1)  # TensorProto.EXTERNAL


def everywhere(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor of a file, of graphs at every depth, of functions called or not, of training graphs."""
    graphs = [model.graph]
    for training in model.training_info:
        graphs += [training.initialization, training.algorithm]
    nodes = [node for function in model.functions for node in function.node]
    attributes = [a for function in model.functions for a in function.attribute_proto]
    while graphs or nodes or attributes:
        for graph in graphs:
            yield from graph.initializer
            yield from (t for sparse in graph.sparse_initializer for t in (sparse.values, sparse.indices))
        nodes += [node for graph in graphs for node in graph.node]
        attributes += [a for node in nodes for a in node.attribute]
        graphs = []
        for attribute in attributes:
            yield from attribute.tensors
            yield from [attribute.t] if attribute.HasField("t") else []
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            graphs += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
        nodes, attributes = [], []


def values(tensor: TensorProto, folder: Path | None = None, most: int = 65536) -> list[Any] | None:
    """The elements as Python numbers, row-major, or None where they cannot be had.

    A payload outside the proto is read from `folder`. None is returned for a tensor of more than `most` elements,
    for types that Python has no number for, and where the payload is missing or too short: a check that needs the
    numbers stays silent then, and the rule about the payload speaks.
    """
    count = size(tensor)
    if count > most or count < 0:
        return None
    record = external(tensor)
    if record is not None:
        raw = _read(record, folder, count)
        return None if raw is None else _decode(raw, tensor.data_type, count)
    if tensor.HasField("raw_data"):
        return _decode(tensor.raw_data, tensor.data_type, count)
    try:
        return _typed(tensor, count)
    except struct.error:  # a number that 16 bits do not hold
        return None


def _typed(tensor: TensorProto, count: int) -> list[Any] | None:
    found: list[Any] = list(getattr(tensor, TYPED_FIELDS.get(tensor.data_type, "int32_data")))
    if len(found) != count:
        return None
    if tensor.data_type == HALF:
        return list(struct.unpack(f"<{count}e", struct.pack(f"<{count}H", *found)))
    if tensor.data_type == BFLOAT16:
        return _bfloat16(found)
    return found if tensor.data_type in RAW_FORMATS else None


def _decode(raw: bytes, data_type: int, count: int) -> list[Any] | None:
    if data_type == BFLOAT16:
        return _bfloat16(list(struct.unpack(f"<{count}H", raw))) if len(raw) == 2 * count else None
    form = RAW_FORMATS.get(data_type)
    if form is None or len(raw) != struct.calcsize("<" + form) * count:
        return None
    return list(struct.unpack(f"<{count}{form}", raw))


def _bfloat16(bits: list[int]) -> list[float]:
    return list(struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *(b << 16 for b in bits))))


def _read(record: dict[str, str], folder: Path | None, count: int) -> bytes | None:
    """The bytes of an external record of `count` elements, None where they are missing or where its path leaves the
    model's folder."""
    if folder is None:
        return None
    try:
        place = (folder / record["location"]).resolve()
        if not place.is_relative_to(folder.resolve()):
            return None
        with place.open("rb") as file:
            file.seek(int(record.get("offset", "0")))
            return file.read(min(int(record.get("length") or 8 * count), 8 * count))  # 8 bytes: the widest number
    except (OSError, KeyError, ValueError, RuntimeError, OverflowError):
        return None
