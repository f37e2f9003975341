"""The bytes of tensors of any size, a piece at a time: a check reads every weight of a file in constant memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint.model import tensors
from vexlint.model.model import Model
from vexlint.model.restore import fill
from vexlint.model.wire import payload_of

if TYPE_CHECKING:
    from onnx import TensorProto

CHUNK = 4 << 20  # bytes read at a time; a multiple of every element's size


def chunks(model: Model, tensor: TensorProto) -> Iterator[bytes]:
    """The payload of a tensor of numbers as raw_data would hold it (little endian), in pieces of whole elements.

    Yields nothing where the payload cannot be read (VEX711 speaks then) or holds strings.
    """
    payload = payload_of(tensor, model.stripped) if model.stripped is not None else None
    record = tensors.external(tensor)
    if payload is not None and payload.raw:
        yield from read(model.path, payload.offset, payload.length)
    elif payload is not None:
        whole = type(tensor)()
        whole.CopyFrom(tensor)
        fill(whole, payload, model.path)
        yield from _typed(whole)
    elif record is not None:
        yield from _external(model.folder, record, tensor)
    elif tensor.HasField("raw_data"):
        yield tensor.raw_data
    else:
        yield from _typed(tensor)


def _external(folder: Path, record: dict[str, str], tensor: TensorProto) -> Iterator[bytes]:
    try:
        place = (folder / record["location"]).resolve()
        if place.is_relative_to(folder.resolve()):
            needed = tensors.size(tensor) * struct.calcsize(tensors.RAW_FORMATS.get(tensor.data_type, "H"))
            yield from read(place, int(record.get("offset") or 0), needed)
    except (OSError, KeyError, ValueError, RuntimeError):
        return


def read(path: Path, offset: int, length: int) -> Iterator[bytes]:
    """A span of a file, `CHUNK` bytes at a time."""
    with path.open("rb") as file:
        file.seek(offset)
        while length > 0 and (piece := file.read(min(CHUNK, length))):
            yield piece
            length -= len(piece)


def _typed(tensor: TensorProto) -> Iterator[bytes]:
    """The typed fields as raw bytes: a float in 4, a half in 2."""
    form = {1: "f", 11: "d", tensors.HALF: "H", tensors.BFLOAT16: "H"}.get(tensor.data_type)
    if form is None:
        return
    found = getattr(tensor, tensors.TYPED_FIELDS.get(tensor.data_type, "int32_data"))
    try:
        yield struct.pack(f"<{len(found)}{form}", *found)
    except struct.error:  # a number that 16 bits do not hold
        return
