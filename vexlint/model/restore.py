"""The inverse of `wire.strip`: an edited, stripped model's bytes with the payloads of the source file put back.

`restore` reads nothing. Its result is a list of pieces, bytes to write and [start, end) ranges of the source file to
copy, whose lengths are known, so that a model of any size is written in constant memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint.model.proto import Body, Walk, fields, header, message_class
from vexlint.model.wire import (
    DATA_LOCATION,
    EXTERNAL_DATA,
    INSIDE,
    PAYLOAD_KEY,
    Payload,
    Piece,
    Stripped,
    payload_of,
    size,
)

if TYPE_CHECKING:
    from onnx import TensorProto


def restore(data: bytes, stripped: Stripped) -> list[Piece]:
    """The pieces of the whole model: `data` is a ModelProto whose stripped tensors come from `stripped`.

    A tensor that was stripped has the payload fields of the source again, as they stand there, in the place of its
    external-data record. Everything else is `data`, byte for byte.
    """
    return list(_message(Walk(data), stripped, "ModelProto", (0, len(data))))


def _message(walk: Walk, stripped: Stripped, message: str, body: Body) -> Iterator[Piece]:
    """The pieces of one message. A length before it counts what is put back in it."""
    at, end = body
    if PAYLOAD_KEY.encode() not in walk.buffer[at:end]:  # most of a model: one look instead of a walk
        yield walk.buffer[at:end]
        return
    if message == "TensorProto":
        yield from _tensor(walk, stripped, body)
        return
    inside = INSIDE[message]
    for found in fields(walk, message, [body], inside):
        if found.wire == 2:
            pieces = list(_message(walk, stripped, inside[found.number][0], (found.start, found.end)))
            yield walk.buffer[at : found.at]
            yield header(found.number, size(pieces))
            yield from pieces
            at = found.end
    yield walk.buffer[at:end]


def _tensor(walk: Walk, stripped: Stripped, body: Body) -> Iterator[Piece]:
    at, end = body
    payload = payload_of(message_class("TensorProto").FromString(walk.buffer[at:end]), stripped)
    if payload is None:  # a record of the file's own that only looks like one of ours
        yield walk.buffer[at:end]
        return
    for found in fields(walk, "TensorProto", [body], (EXTERNAL_DATA, DATA_LOCATION)):
        yield walk.buffer[at : found.at]
        at = found.end
    yield walk.buffer[at:end]
    yield from payload.fields


def fill(tensor: TensorProto, payload: Payload, path: Path) -> None:
    """Puts the payload of one stripped tensor back into it, read from the file at `path`."""
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    with path.open("rb") as file:
        for start, end in payload.fields:
            file.seek(start)
            tensor.MergeFromString(file.read(end - start))
