"""Protobuf for ONNX: the message classes without the onnx package, parsing, and a message's fields one by one.

Importing onnx takes longer than a whole check. Its message classes are made here from a descriptor that lies beside
this module, in a pool of their own, so that a later `import onnx` in the same process is not disturbed; they are not
onnx's own classes, which matters to isinstance alone.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from onnx import ModelProto

DESCRIPTOR = Path(__file__).with_name("data") / "onnx_proto.bin"  # made by data/make_proto.py

MAX_DEPTH = 100  # messages inside messages, protobuf's own limit
MAX_FIELDS = 5_000_000  # fields walked in one file
LARGE = 32 << 20  # bytes that are counted before protobuf parses them: of a message of 2 bytes it makes one of 200
FIELD_NUMBERS = range(1, 1 << 29)
LENGTH_TAGS = frozenset(range(0x0A, 0x80, 8))  # one-byte tags of length-delimited fields: most tags there are

# FieldDescriptorProto.Type -> wire type: 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes
WIRES = {1: 1, 2: 5, 3: 0, 4: 0, 5: 0, 6: 1, 7: 5, 8: 0, 9: 2, 11: 2, 12: 2, 13: 0, 14: 0, 15: 5, 16: 1, 17: 0, 18: 0}
ELEMENT_SIZES = {1: 8, 5: 4}  # wire type -> bytes
BROKEN_NUMBER = re.compile(rb"[\x80-\xff]{10}|[\x80-\xff]\Z")  # too long, or without an end
STRING, MESSAGE, REPEATED = 9, 11, 3  # FieldDescriptorProto.Type, .Label

Body = tuple[int, int]  # [start, end) of a message, or of a part of one


class Unreadable(ValueError):  # noqa: N818 - what is wrong with the file, not with us
    """The file is no readable model: the message says what is wrong and, where one is to blame, at which byte."""


class Field(NamedTuple):
    """One field: its number, its wire type, where its tag starts, and [start, end) of its value."""

    number: int
    wire: int
    at: int
    start: int
    end: int


@dataclass(slots=True)
class Walk:
    """The state of a walk over the fields in a buffer: how many it may still visit.

    `origin` turns a position in the buffer into the byte of the file that a fault names.
    """

    buffer: mmap.mmap | bytes
    origin: Callable[[int], int] = int
    left: int = field(default_factory=lambda: MAX_FIELDS)

    def fault(self, at: int, text: str) -> Unreadable:
        return Unreadable(f"byte {self.origin(at)}: {text}")


@cache
def message_class(name: str) -> Any:
    """The class of a message by its name in onnx.proto, as "TensorProto". Raises KeyError where there is none."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"onnx.{name}"))


def parse(data: bytes, origin: Callable[[int], int] = int) -> ModelProto:
    """The ModelProto in `data`; `origin` turns a position in `data` into the byte of the file that errors name.

    Raises `Unreadable` where protobuf cannot read it, where a string is not UTF-8, and where a field that ONNX knows
    is written as another type: protobuf would take that for an unknown field, and nodes would vanish in silence.
    Fields that ONNX does not know (yet) are kept.
    """

    def inspect() -> None:
        _inspect(Walk(data, origin), "ModelProto", (0, len(data)))

    model_class = message_class("ModelProto")
    if len(data) > LARGE:
        inspect()
    try:
        model: ModelProto = model_class.FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:  # the latter where protobuf has no native part
        inspect()
        raise Unreadable(str(error)) from None
    # Are there unknown fields? Nothing says so, but without them the model has other bytes.
    model.DiscardUnknownFields()
    known = model.SerializeToString()
    if known == data:
        return model
    del model  # two at once could be too much
    model = model_class.FromString(data)
    if model.ByteSize() != len(known):
        inspect()
    return model


@cache
def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(DESCRIPTOR.read_bytes())
    return pool


@cache
def _tables() -> dict[str, dict[int, Any]]:
    """Message -> field number -> FieldDescriptorProto; nested messages as "TensorProto.Segment"."""
    tables: dict[str, dict[int, Any]] = {}
    file = descriptor_pb2.FileDescriptorProto.FromString(DESCRIPTOR.read_bytes())
    waiting = [("", message) for message in file.message_type]
    for outer, message in waiting:
        tables[outer + message.name] = {spec.number: spec for spec in message.field}
        waiting.extend((f"{outer}{message.name}.", nested) for nested in message.nested_type)
    return tables


def _inspect(walk: Walk, message: str, body: Body, depth: int = 0) -> None:
    """Raises `Unreadable` for the first thing in a message that `parse` refuses; slow, for suspects only."""
    check_depth(walk, body, depth)
    known = _tables()[message]
    for found in fields(walk, message, [body]):
        spec = known.get(found.number)
        if spec is None:
            continue
        wire = WIRES[spec.type]
        if found.wire != wire and (found.wire != 2 or spec.label != REPEATED):
            text = f"{message}.{spec.name} has wire type {found.wire} where {wire} is due"
            raise walk.fault(found.at, text)
        if spec.type == MESSAGE:
            _inspect(walk, spec.type_name.removeprefix(".onnx."), (found.start, found.end), depth + 1)
        elif spec.type == STRING:
            try:
                str(walk.buffer[found.start : found.end], "utf-8")
            except UnicodeDecodeError as error:
                raise walk.fault(found.start + error.start, f"{message}.{spec.name} is not UTF-8") from None
        elif wire != 2 and found.wire == 2:
            check_packed(walk, message, found, wire)


def name(message: str, number: int) -> str:
    """How an error names a field: as "GraphProto.node" where ONNX knows it."""
    spec = _tables()[message].get(number)
    return f"{message}.{spec.name}" if spec else f"field {number} of {message}"


def check_depth(walk: Walk, body: Body, depth: int) -> None:
    """Raises `Unreadable` where a message with that body would lie too deep for protobuf; the model has depth 0."""
    if depth > MAX_DEPTH:
        raise walk.fault(body[0], f"nested deeper than {MAX_DEPTH} messages, the most that protobuf reads")


def check_packed(walk: Walk, message: str, found: Field, wire: int) -> None:
    """Raises `Unreadable` where a packed field is no whole number of elements of that wire type (0, 1 or 5)."""
    size = found.end - found.start
    if wire != 0 and size % ELEMENT_SIZES[wire]:
        text = f"{name(message, found.number)} has {size} bytes, no multiple of {ELEMENT_SIZES[wire]}"
        raise walk.fault(found.at, text)
    if wire == 0 and BROKEN_NUMBER.search(walk.buffer, found.start, found.end):
        raise walk.fault(found.at, f"{name(message, found.number)} holds a broken number")


def fields(
    walk: Walk, message: str, bodies: Sequence[Body], wanted: Container[int] = FIELD_NUMBERS, least: int = 0
) -> Iterator[Field]:
    """The fields of a message whose number is in `wanted`, less the length-delimited ones of under `least` bytes.

    The message is its `bodies` end to end, see `wire`. Raises `Unreadable` at the first byte that makes no field, and
    where the walk has visited all it may.
    """
    for body in bodies:
        yield from _fields(walk, message, body, wanted, least)


def _fields(walk: Walk, message: str, body: Body, wanted: Container[int], least: int) -> Iterator[Field]:
    # Almost all that reading costs is this loop, 0.2 µs for a field that nobody wants: so it reads on before it knows
    # that the bytes still belong to the message, and looks behind it at the end.
    buffer = walk.buffer
    after, end = body
    at = after
    try:
        for count in range(walk.left + 1):
            if after >= end:
                walk.left -= count
                break
            at = after
            tag = buffer[at]
            start = at + 1
            if tag not in LENGTH_TAGS:
                tag, start = _tag(walk, message, at, end)
            if tag & 7 == 2:
                size = buffer[start]
                start += 1
                if size > 127:  # a second byte is frequent, a third is not
                    size += (buffer[start] << 7) - 128
                    start += 1
                    if size > 16383:
                        size, start = varint(walk, message, start - 2, end, 5)
                after = start + size
                if size < least:
                    continue
            else:
                after = _scalar_end(walk, message, start, end, tag & 7)
            if tag >> 3 in wanted and after <= end:
                yield Field(tag >> 3, tag & 7, at, start, after)
        else:
            raise Unreadable(f"more than {MAX_FIELDS:,} fields to walk")
    except IndexError:  # the file ends inside a tag or a length
        raise _overrun(walk, message, at, end) from None
    if after > end:
        raise _overrun(walk, message, at, end)


def varint(walk: Walk, message: str, at: int, end: int, most: int = 10) -> tuple[int, int]:
    """The number of up to `most` bytes at `at`, and where it ends. Raises `Unreadable` where there is none."""
    buffer = walk.buffer
    if at < end and buffer[at] < 128:  # most are of one byte
        return buffer[at], at + 1
    value = 0
    for i in range(at, min(at + most, end)):
        byte = buffer[i]
        value |= (byte & 127) << 7 * (i - at)
        if byte < 128:
            return value, i + 1
    if at + most <= end:
        raise walk.fault(at, f"a number in {message} has more than {most} bytes")
    raise walk.fault(at, f"a number is not complete, {_ending(walk, message, end)}")


def _tag(walk: Walk, message: str, at: int, end: int) -> tuple[int, int]:
    """The tag at `at`, of any length, and where it ends."""
    tag, after = varint(walk, message, at, end, 5)
    if not 8 <= tag < 1 << 32:
        raise walk.fault(at, f"a field of {message} has number {tag >> 3}, which cannot be")
    if tag & 7 not in (0, 1, 2, 5):
        raise walk.fault(at, f"{name(message, tag >> 3)} has wire type {tag & 7}, which ONNX does not use")
    return tag, after


def _scalar_end(walk: Walk, message: str, start: int, end: int, wire: int) -> int:
    """Where a value that is not length-delimited ends; that may be beyond `end`."""
    return varint(walk, message, start, end)[1] if wire == 0 else start + ELEMENT_SIZES[wire]


def _overrun(walk: Walk, message: str, at: int, end: int) -> Unreadable:
    """What to say of the field at `at`, which needs bytes beyond the end of its message."""
    tag, start = _tag(walk, message, at, end)
    if tag & 7 == 2:
        size, start = varint(walk, message, start, end, 5)
        after = start + size
    else:
        after = _scalar_end(walk, message, start, end, tag & 7)
    text = f"{name(message, tag >> 3)} needs {after - end} bytes more than there are"
    return walk.fault(at, f"{text}, {_ending(walk, message, end)}")


def _ending(walk: Walk, message: str, end: int) -> str:
    # Where the file is cut short the model itself overruns; inside it the lengths contradict each other.
    return "the file is cut short" if message == "ModelProto" else f"{message} ends at byte {walk.origin(end)}"


def header(number: int, size: int) -> bytes:
    """Tag and length of a length-delimited field of `size` bytes."""
    return _written(number << 3 | 2) + _written(size)


def _written(value: int) -> bytes:
    """A number as a varint."""
    if value < 128:
        return b"%c" % value
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])
