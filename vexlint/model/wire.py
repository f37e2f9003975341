"""Reads an ONNX file without its weights: `strip` gives the model's protobuf bytes, the large payloads left on disk.

An ONNX file is one protobuf message, a ModelProto: a row of fields, some of which are messages again. One pass hops
from field to field and descends only where a large tensor can be; weights are never touched, so the cost is that of
the structure.

Protobuf merges: where a message field that may stand once stands twice, its two bodies end to end are the message. So
a message is a list of bodies here, mostly of one.
"""

from __future__ import annotations

import mmap
import re
import stat
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint.model.proto import Body, Field, Unreadable, Walk, check_depth, check_packed, fields, header, name, varint

if TYPE_CHECKING:
    from onnx import TensorProto

__all__ = [
    "PAYLOAD_KEY",
    "Payload",
    "Piece",
    "Stripped",
    "Unreadable",
    "header",
    "payload_at",
    "payload_of",
    "size",
    "strip",
]

BIG = 1024  # payloads of this many bytes or more stay on disk
KEPT = 64 * 1024  # but INT32 and INT64 tensors of rank 0 and 1 up to this many bytes do not: shape inference reads them
MAX_PIECES = 10_000  # what belongs together is not scattered over more: no writer does, and each piece costs memory
MAX_STRUCTURE = 128 << 20  # bytes left after stripping
PAYLOAD_KEY = "vexlint.payload"  # external_data entry of a stripped tensor: its index in `Stripped.payloads`

# Where a large tensor can be: message -> field -> (the message it holds, whether that stands once and so merges).
# Sparse indices are not among them: onnx.checker reads them.
INSIDE: dict[str, dict[int, tuple[str, bool]]] = {
    "ModelProto": {7: ("GraphProto", True), 20: ("TrainingInfoProto", False), 25: ("FunctionProto", False)},
    "TrainingInfoProto": {1: ("GraphProto", True), 2: ("GraphProto", True)},
    "FunctionProto": {7: ("NodeProto", False), 11: ("AttributeProto", False)},
    "GraphProto": {1: ("NodeProto", False), 5: ("TensorProto", False), 15: ("SparseTensorProto", False)},
    "NodeProto": {5: ("AttributeProto", False)},
    "AttributeProto": {
        5: ("TensorProto", True),
        6: ("GraphProto", True),
        10: ("TensorProto", False),
        11: ("GraphProto", False),
        22: ("SparseTensorProto", True),
        23: ("SparseTensorProto", False),
    },
    "SparseTensorProto": {1: ("TensorProto", True)},
}
# TensorProto's payload fields: field -> the wire types it can have, of a packed and of a single element
PAYLOAD_WIRES = {4: (2, 5), 5: (2, 0), 6: (2,), 7: (2, 0), 9: (2,), 10: (2, 1), 11: (2, 0)}
DIMS, DATA_TYPE, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 1, 2, 9, 13, 14
# How nearly every TensorProto begins: dims, data_type in one byte, the tag and length of a name of under 128 bytes
USUAL = re.compile(rb"((?:\x08[\x80-\xff]{0,8}[\0-\x7f])*)\x10([\0-\x7f])(?:\x42([\0-\x7f]))?", re.DOTALL)
RAW_DATA_TAG = RAW_DATA << 3 | 2
EXTERNAL = b"\x70\x01"  # data_location: EXTERNAL
TENSOR_FIELDS = {DIMS, DATA_TYPE, EXTERNAL_DATA, DATA_LOCATION, *PAYLOAD_WIRES}
INTEGERS = (6, 7)  # data_type INT32, INT64
# float_data of FLOAT and COMPLEX64, double_data of DOUBLE and COMPLEX128: packed they look like raw_data
LIKE_RAW = {4: (1, 14), 10: (11, 15)}

TEXT = rb"([\t\n\r -~]|[\xc2-\xf4][\x80-\xbf]{1,3})+[\x80-\xff]{0,3}\Z"
LOOKS = (  # patterns of a file's first bytes, tried in order
    (rb"version https://git-lfs", "a Git LFS pointer: the model itself was not fetched (git lfs pull)"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8", "a picture"),
    (rb"PK\x03\x04", "a zip archive (a PyTorch checkpoint is one, too)"),
    (rb"\x1f\x8b|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|.{257}ustar", "an archive or a compressed file"),
    (rb"\x89HDF", "an HDF5 file, as Keras writes"),
    (rb"\x93NUMPY", "a NumPy array"),
    (rb"\x80[\x02-\x05][\x80-\xff(}]", "a Python pickle"),
    (rb"%PDF", "a PDF document"),
    (rb"....TFL3", "a TensorFlow Lite model"),
    (rb"....ORTM", "a model in ONNX Runtime's own ORT format"),
    (rb"\x08\x01\x12[\x80-\xff]*[\0-\x7f]\n", "a TensorFlow SavedModel"),
    (rb"\n.*(\x12\x0bPlaceholder|\x12\x05Const)", "a TensorFlow GraphDef"),
    (rb"(?i)\s*<(!doctype|html)", "an HTML page: a download that went wrong"),
    (rb"\s*<\?xml", "XML"),
    (rb"\s*[{\[]\s*[\"{\[\]}]", "JSON"),
    (rb"(?=" + TEXT + rb").*(ir_version|opset_import|=>)", "ONNX text, not ONNX protobuf"),
    (TEXT, "text"),
)

Piece = bytes | Body  # bytes to write, or a part of the file to copy
Edit = tuple[int, int, Sequence[Piece]]  # what stands in the place of [start, end)


@dataclass(frozen=True, slots=True)
class Payload:
    """The payload of one tensor, left on disk. Places are bytes of the file.

    `fields` are the [start, end) of its payload fields, tags and lengths included, in the file's order and neighbours
    joined; with them goes a data_location that says DEFAULT. Appended to the stripped TensorProto less external_data
    and data_location, these bytes make the tensor that the file has, however its payload is split: see `restore`.
    `number` is the field number of the last one, `offset` and `length` are the place of its value; `raw` says whether
    that is what raw_data would hold, and not varints, strings or one part of several.
    """

    number: int
    offset: int
    length: int
    raw: bool
    fields: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Stripped:
    """A model without its weights.

    `data` is a ModelProto. A tensor that lost its payload has an external-data record instead: location (`name`, the
    file's own), offset and length of the payload, and under `PAYLOAD_KEY` its index in `payloads`. The length is 0
    where the payload is not raw, so that nobody takes those bytes for the tensor's values. `size` is that of the file
    in bytes. `places` are pairs, ascending: a position in `data`, the byte of the file it is from.
    """

    data: bytes
    payloads: tuple[Payload, ...]
    name: str
    size: int
    places: tuple[tuple[int, int], ...] = field(repr=False)

    def origin(self, at: int) -> int:
        """The byte of the file that position `at` of `data` was copied from."""
        position, byte = self.places[bisect_right(self.places, at, key=itemgetter(0)) - 1]
        return byte + at - position


@dataclass(slots=True)
class _Strip(Walk):
    """A walk that leaves payloads out; `name` is the location that their records give."""

    name: str = ""
    payloads: list[Payload] = field(default_factory=list)


@dataclass(slots=True)
class _Tensor:
    """What is known of a TensorProto, field by field; each can stand anywhere and more than once, the last one counts.

    `taken` becomes `Payload.fields`; `last` is the last payload field, `count` the number of them and `size` the
    bytes of their values.
    """

    data_type: int = 0
    rank: int = 0
    external: bool = False
    taken: list[Body] = field(default_factory=list)
    last: Field | None = None
    count: int = 0
    size: int = 0


def strip(path: Path) -> Stripped:
    """Reads the model in a file without its weights: payloads of 1 KiB or more stay on disk.

    Raises `Unreadable` where it is no ONNX model, is damaged, passes a limit of this module or is not a regular file;
    OSError where the operating system does not let us read it (missing, not permitted). What a payload holds is not
    looked at, nor what messages of less than 1 KiB hold: `proto.parse` judges those.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe would make us wait for ever
        raise Unreadable("a folder, not a file" if stat.S_ISDIR(status.st_mode) else "not a regular file")
    if not status.st_size:
        raise Unreadable("the file is empty")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
        if hasattr(mmap, "MADV_RANDOM"):  # no read-ahead into the weights
            buffer.madvise(mmap.MADV_RANDOM)
        try:
            return _strip(_Strip(buffer, name=path.name.encode("utf-8", "replace").decode()))
        except Unreadable:
            head = buffer[:4096]
            for pattern, kind in LOOKS:
                if re.match(pattern, head, re.DOTALL):
                    raise Unreadable(f"not an ONNX model: it looks like {kind}") from None
            raise


def payload_of(tensor: TensorProto, stripped: Stripped) -> Payload | None:
    """The payload that `strip` took from a tensor, None where it took none."""
    return payload_at([(entry.key, entry.value) for entry in tensor.external_data], stripped)


def payload_at(entries: list[tuple[str, str]], stripped: Stripped) -> Payload | None:
    """As `payload_of`, of the tensor's external-data entries.

    They must be `strip`'s own in every letter: a file may bring some that only look like them.
    """
    try:
        index = int(dict(entries)[PAYLOAD_KEY])
        payload = stripped.payloads[index]
    except (KeyError, ValueError, IndexError):
        return None
    return payload if entries == _entries(stripped.name, payload, index) else None


def _strip(walk: _Strip) -> Stripped:
    whole = (0, len(walk.buffer))
    if not any(found.wire == 2 for found in fields(walk, "ModelProto", [whole], (7,))):
        raise Unreadable("not an ONNX model: there is no graph in it")
    pieces = _message(walk, "ModelProto", [whole], 0) or [whole]
    structure = size(pieces)
    if structure > MAX_STRUCTURE:
        raise Unreadable(f"{structure >> 20} MiB of it are no tensors, more than the {MAX_STRUCTURE >> 20} MiB allowed")
    copies: list[bytes] = []
    places = []
    at = byte = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            places.append((at, byte))
            copies.append(piece)
        else:
            places.append((at, piece[0]))
            copies.append(walk.buffer[slice(*piece)])
            byte = piece[1]
        at += len(copies[-1])
    return Stripped(b"".join(copies), tuple(walk.payloads), walk.name, whole[1], tuple(places))


def _message(walk: _Strip, message: str, bodies: Sequence[Body], depth: int) -> list[Piece] | None:
    """What is left of a message after stripping, None where it stays as it is."""
    check_depth(walk, bodies[0], depth)
    if message == "TensorProto":
        return _tensor(walk, bodies)
    inside = INSIDE[message]
    # What merges must be seen at any size, the rest only where a large payload has room in it.
    merging = [key for key, (_, once) in inside.items() if once]
    groups: dict[tuple[int, int], list[Field]] = {}  # each the fields that make one message
    for found in fields(walk, message, bodies, inside, 0 if merging else BIG):
        if found.wire == 2 and (found.number in merging or found.end - found.start >= BIG):
            group = groups.setdefault((found.number, 0 if found.number in merging else found.start), [])
            group.append(found)
            _check_pieces(walk, message, found, len(group))
    edits: list[Edit] = []
    for (number, _), group in groups.items():
        pieces = _message(walk, inside[number][0], [(part.start, part.end) for part in group], depth + 1)
        if pieces is not None:
            edits.append((group[0].at, group[0].end, [header(number, size(pieces)), *pieces]))
            edits.extend((part.at, part.end, ()) for part in group[1:])
    return _splice(bodies, edits) if edits else None


def _tensor(walk: _Strip, bodies: Sequence[Body]) -> list[Piece] | None:
    """A TensorProto with a record instead of its payload, None where it stays as it is."""
    payload = (_usual(walk, bodies[0]) if len(bodies) == 1 else None) or _gathered(walk, bodies)
    if payload is None:
        return None
    record = _record(walk.name, payload, len(walk.payloads)) + EXTERNAL
    walk.payloads.append(payload)
    return [*_splice(bodies, [(start, end, ()) for start, end in payload.fields]), record]


def _usual(walk: _Strip, body: Body) -> Payload | None:
    """The payload of a tensor that is written as nearly all are: dims, type, name and raw_data, in this order and
    nothing else. None for others, and for integers, of which some are kept: `_gathered` looks at those field by field.
    """
    buffer, (start, end) = walk.buffer, body
    begins = USUAL.match(buffer, start, end)
    if begins is None or begins[2][0] in INTEGERS:
        return None
    at = begins.end() + (begins[3][0] if begins[3] else 0)
    if end - at < BIG or buffer[at] != RAW_DATA_TAG:
        return None
    length, first = varint(walk, "TensorProto", at + 1, end, 5)
    if first + length != end or length < BIG:
        return None
    walk.left -= len(begins[1]) + 3  # as many fields at the most
    return Payload(RAW_DATA, first, length, True, ((at, end),))


def _gathered(walk: _Strip, bodies: Sequence[Body]) -> Payload | None:
    """The payload of any tensor, field by field; None where it stays in the proto."""
    tensor = _Tensor()
    for found in fields(walk, "TensorProto", bodies, TENSOR_FIELDS):
        _notice(walk, tensor, found)
    last = tensor.last
    kept = tensor.data_type in INTEGERS and tensor.rank <= 1 and tensor.size <= KEPT
    if last is None or tensor.size < BIG or kept or tensor.external:
        return None
    like_raw = last.number == RAW_DATA or (last.wire == 2 and tensor.data_type in LIKE_RAW.get(last.number, ()))
    raw = like_raw and tensor.count == 1
    return Payload(last.number, last.start, last.end - last.start, raw, tuple(tensor.taken))


def _notice(walk: _Strip, tensor: _Tensor, found: Field) -> None:
    """Adds one field to what is known of a tensor."""
    number, wire, _, start, end = found
    wires = PAYLOAD_WIRES.get(number, ())
    if wire in wires:
        if wire == 2 and wires[-1] in (1, 5):  # all that can be checked without reading
            check_packed(walk, "TensorProto", found, wires[-1])
        tensor.last, tensor.count, tensor.size = found, tensor.count + 1, tensor.size + end - start
        _take(walk, tensor, found)
    elif number == EXTERNAL_DATA:
        tensor.external = True
    elif number == DIMS:
        # Of packed dims it matters whether they are more than one, and one has 10 bytes at most.
        tensor.rank += 1 if wire == 0 else sum(byte < 128 for byte in walk.buffer[start : min(end, start + 20)])
    elif number in (DATA_TYPE, DATA_LOCATION) and wire == 0:
        value, _ = varint(walk, "TensorProto", start, end)
        if number == DATA_TYPE:
            tensor.data_type = value & 0xFFFFFFFF
        elif value == 0:  # data_location DEFAULT
            _take(walk, tensor, found)
        else:
            tensor.external = True


def _take(walk: _Strip, tensor: _Tensor, found: Field) -> None:
    taken = tensor.taken
    if taken and taken[-1][1] == found.at:
        taken[-1] = (taken[-1][0], found.end)
    else:
        taken.append((found.at, found.end))
        _check_pieces(walk, "TensorProto", found, len(taken))


def _check_pieces(walk: Walk, message: str, found: Field, pieces: int) -> None:
    if pieces > MAX_PIECES:
        text = f"{name(message, found.number)} is scattered over more than {MAX_PIECES:,} pieces"
        raise walk.fault(found.at, text)


def _splice(bodies: Sequence[Body], edits: Sequence[Edit]) -> list[Piece]:
    """The bodies end to end, with every edit in the place of what it replaces."""
    pieces: list[Piece] = []
    waiting = sorted(edits, key=itemgetter(0), reverse=True)
    for start, end in bodies:
        at = start
        while waiting and waiting[-1][0] < end:
            first, after, new = waiting.pop()
            pieces += [(at, first), *new]
            at = after
        pieces.append((at, end))
    return pieces


def size(pieces: Sequence[Piece]) -> int:
    """The bytes that the pieces are in all."""
    return sum(len(piece) if isinstance(piece, bytes) else piece[1] - piece[0] for piece in pieces)


def _entries(name: str, payload: Payload, index: int) -> list[tuple[str, str]]:
    """The external_data of a stripped tensor."""
    length = payload.length if payload.raw else 0
    return [("location", name), ("offset", str(payload.offset)), ("length", str(length)), (PAYLOAD_KEY, str(index))]


def _record(name: str, payload: Payload, index: int) -> bytes:
    """The external_data fields of a stripped tensor."""
    return b"".join([_entry(key, value) for key, value in _entries(name, payload, index)])


@lru_cache(1024)  # names, numbers and lengths come again and again
def _entry(name: str, text: str) -> bytes:
    """One field external_data: a StringStringEntryProto."""
    key, value = name.encode(), text.encode()
    if len(key) + len(value) < 124:  # nearly always: one byte for each length
        body = b"\x0a%c%b\x12%c%b" % (len(key), key, len(value), value)
        return b"%c%c%b" % (EXTERNAL_DATA << 3 | 2, len(body), body)
    body = b"".join((header(1, len(key)), key, header(2, len(value)), value))
    return header(EXTERNAL_DATA, len(body)) + body
