"""Attacks `wire.strip` and `proto.parse` with broken and oddly written models; protobuf itself is the judge.

    python -m tests.fuzz_wire --minutes 10

The makers and the judge here serve test_wire.py and test_wire_fuzz.py too.
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from vexlint.model import proto, wire

FUTURE = (b"\xc2\x3e\x05later", b"\xc8\x3e\x05", b"\xd5\x3efour")  # fields that ONNX does not have
WIRE_OF = {1: 1, 2: 5, 3: 0, 4: 0, 5: 0, 14: 0}  # FieldDescriptor.TYPE_*: wire type of the scalars that ONNX uses
SINGLE_PAYLOADS = ("raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
# What protobuf reads and we refuse on purpose, by words of the message
STRICTER = ("no graph", "not UTF-8", "is due", "ONNX does not use", "file is empty", "scattered over", "it looks like")


# --- the judge -----------------------------------------------------------------------------------------------------


def tensors(message: Any) -> Iterator[Any]:
    """Every TensorProto inside a message."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                if field.message_type.name == "TensorProto":
                    yield inner
                yield from tensors(inner)


def restore(tensor: Any, payload: wire.Payload, file: bytes) -> None:
    """Puts the payload of a stripped tensor back as `Payload` says. What it holds is judged only now."""
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    try:
        tensor.MergeFromString(b"".join(file[start:end] for start, end in payload.fields))
    except DecodeError:
        raise wire.Unreadable(f"byte {payload.offset}: a broken payload") from None


def restored(path: Path) -> Any:
    """The model in a file, read with `strip` and `parse`, with every payload put back."""
    stripped = wire.strip(path)
    model = proto.parse(stripped.data, stripped.origin)
    taken = 0
    for tensor in tensors(model):
        payload = wire.payload_of(tensor, stripped)
        if payload is not None:
            taken += 1
            restore(tensor, payload, path.read_bytes())
    assert taken == len(stripped.payloads), "payloads that no tensor names"
    return model


def same(message: Any, other: Any) -> bool:
    return bool(message.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True))


def judge(data: bytes, path: Path) -> str:
    """Writes `data` to `path`, reads it, and says what came of it: "read", or why not.

    Raises AssertionError where we and protobuf do not agree, and whatever but `Unreadable` comes out of reading.
    """
    path.write_bytes(data)
    try:
        onnx.ModelProto.FromString(data)
        protobuf_reads = True
    except DecodeError:
        protobuf_reads = False
    try:
        model = restored(path)
    except wire.Unreadable as error:
        reason = str(error)
        assert not protobuf_reads or any(words in reason for words in STRICTER), f"protobuf reads it: {reason}"
        return reason
    assert protobuf_reads, "protobuf does not read it"
    assert same(model, proto.parse(data)), "another model"
    return "read"


# --- models --------------------------------------------------------------------------------------------------------


def random_tensor(dice: random.Random, most: int = 40) -> onnx.TensorProto:
    """A tensor with a payload in any of the fields, now and then in two, rarely fitting its type."""
    data_type = dice.choice((1, 1, 6, 7, 7, 8, 10, 11, 14))
    tensor = onnx.TensorProto(name=f"t{dice.randrange(99)}", data_type=data_type)
    tensor.dims.extend(dice.randrange(1, 9) for _ in range(dice.choice((0, 1, 1, 2, 4))))
    for field in dice.sample(SINGLE_PAYLOADS, dice.choice((0, 1, 1, 1, 2))):
        count = dice.randrange(most)
        if field == "raw_data":
            tensor.raw_data = dice.randbytes(count)
        elif field == "string_data":
            tensor.string_data.extend(dice.randbytes(dice.randrange(9)) for _ in range(count))
        else:
            getattr(tensor, field).extend(dice.randrange(1 << dice.choice((3, 31))) for _ in range(count))
    if dice.random() < 0.2:
        tensor.data_location = dice.choice((onnx.TensorProto.DEFAULT, onnx.TensorProto.EXTERNAL))
    if dice.random() < 0.1:
        tensor.external_data.add(key=dice.choice(("location", wire.PAYLOAD_KEY)), value=dice.choice(("w.bin", "0")))
    return tensor


def random_sparse(dice: random.Random) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=random_tensor(dice), indices=random_tensor(dice), dims=[3, 4])


def random_attribute(dice: random.Random, depth: int) -> onnx.AttributeProto:
    attribute = onnx.AttributeProto(name=f"a{dice.randrange(99)}", ints=[1, 2], s=b"s")
    attribute.type = dice.choice(list(onnx.AttributeProto.AttributeType.values()))
    if dice.random() < 0.5:
        attribute.t.CopyFrom(random_tensor(dice))
    if dice.random() < 0.2:
        attribute.tensors.extend(random_tensor(dice) for _ in range(2))
    if dice.random() < 0.2:
        attribute.sparse_tensor.CopyFrom(random_sparse(dice))
    if dice.random() < 0.1:
        attribute.sparse_tensors.append(random_sparse(dice))
    if depth and dice.random() < 0.5:
        attribute.g.CopyFrom(random_graph(dice, depth - 1))
    if depth and dice.random() < 0.2:
        attribute.graphs.append(random_graph(dice, depth - 1))
    return attribute


def random_node(dice: random.Random, depth: int) -> onnx.NodeProto:
    node = onnx.NodeProto(op_type="Conv", input=["x", "w"], output=["y"], name="n" * dice.randrange(200))
    node.attribute.extend(random_attribute(dice, depth) for _ in range(dice.randrange(3)))
    return node


def random_graph(dice: random.Random, depth: int) -> onnx.GraphProto:
    graph = onnx.GraphProto(name="g")
    graph.node.extend(random_node(dice, depth) for _ in range(dice.randrange(4)))
    graph.initializer.extend(random_tensor(dice) for _ in range(dice.randrange(4)))
    if dice.random() < 0.2:
        graph.sparse_initializer.append(random_sparse(dice))
    graph.input.append(onnx.helper.make_tensor_value_info("x", 1, ["N", 3, 32, 32]))
    return graph


def random_model(dice: random.Random) -> onnx.ModelProto:
    """A model with tensors in every place there is for them; it makes no sense otherwise."""
    model = onnx.ModelProto(ir_version=8, producer_name="fuzz", graph=random_graph(dice, 2))
    model.opset_import.add(version=17)
    model.metadata_props.add(key="names", value="{0: 'person'}")
    if dice.random() < 0.3:
        model.training_info.add(initialization=random_graph(dice, 0), algorithm=random_graph(dice, 1))
    if dice.random() < 0.3:
        function = model.functions.add(name="f", domain="d")
        function.node.append(random_node(dice, 1))
        function.attribute_proto.append(random_attribute(dice, 0))
    return model


# --- other ways to write the same model ----------------------------------------------------------------------------


def varint(value: int, dice: random.Random | None = None) -> bytes:
    """A number; with `dice` now and then longer than need be, which protobuf allows in five bytes."""
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    if dice and len(written) < 5 and dice.random() < 0.02:
        written[-1] |= 128
        written.append(0)
    return bytes(written)


def field(number: int, body: bytes, dice: random.Random | None = None) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2, dice) + varint(len(body), dice) + body


def scalar(descriptor: Any, value: Any) -> bytes:
    if descriptor.type in (1, 2):
        return struct.pack("<d" if descriptor.type == 1 else "<f", value)
    return varint(value)


def odd_field(descriptor: Any, values: list[Any], dice: random.Random, harm: float) -> Iterator[bytes]:
    """The fields that say `values`, in one of the ways that protobuf allows."""
    number = descriptor.number
    if descriptor.message_type is not None:
        for value in values:
            parts = odd_fields(value, dice, harm)
            # A message that stands once may stand in pieces.
            cut = dice.randrange(len(parts) + 1) if not is_repeated(descriptor) and dice.random() < 0.3 else len(parts)
            yield field(number, b"".join(parts[:cut]), dice)
            if cut < len(parts):
                yield field(number, b"".join(parts[cut:]), dice)
    elif descriptor.type in (9, 12):
        for value in values:
            body = value.encode() if isinstance(value, str) else value
            if not is_repeated(descriptor) and dice.random() < 0.1:
                yield field(number, body[::-1], dice)  # the last one counts
            yield field(number, body, dice)
    else:
        while values:
            cut = dice.randrange(len(values)) + 1
            chunk = [scalar(descriptor, value) for value in values[:cut]]
            values = values[cut:]
            if is_repeated(descriptor) and dice.random() < 0.7:
                yield field(number, b"".join(chunk), dice)
            else:
                tag = varint(number << 3 | WIRE_OF[descriptor.type], dice)
                yield from (tag + element for element in chunk)


def is_repeated(descriptor: Any) -> bool:
    return not descriptor.has_presence


def odd_fields(message: Any, dice: random.Random, harm: float) -> list[bytes]:
    parts: list[bytes] = []
    for descriptor, value in message.ListFields():
        values = list(value) if is_repeated(descriptor) else [value]
        parts.extend(odd_field(descriptor, values, dice, harm))
    if dice.random() < 0.1:
        parts.append(dice.choice(FUTURE))
    if dice.random() < 0.3:
        dice.shuffle(parts)
    if parts and dice.random() < harm:
        at = dice.randrange(len(parts))
        parts[at] = damage(parts[at], dice.choice(parts), dice)
    return parts


def oddly(message: Any, dice: random.Random, harm: float = 0) -> bytes:
    """The message in an order, in pieces and in packings that no writer would choose; valid protobuf all the same.

    `harm` is the probability of damage inside each of its messages, the lengths around it kept right.
    """
    return b"".join(odd_fields(message, dice, harm))


# --- damage --------------------------------------------------------------------------------------------------------

ABSURD = (b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\x80" * 12, b"\xff\xff\x03")


def damage(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """`data` after one to four accidents: bits flipped, bytes put in, taken out, cut off, taken from `other`."""
    broken = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(broken) + 1)
        to = min(len(broken), at + dice.choice((1, 1, 2, 8, 64, 1500)))
        kind = dice.randrange(8)
        if kind == 0 and at < len(broken):
            broken[at] ^= 1 << dice.randrange(8)
        elif kind == 1 and at < len(broken):
            broken[at] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        elif kind == 2:
            broken[at:at] = dice.randbytes(dice.choice((1, 2, 5)))
        elif kind == 3:
            del broken[at:to]
        elif kind == 4:
            del broken[at:]
        elif kind == 5:
            start = dice.randrange(len(other) + 1)
            broken[at:to] = other[start : start + to - at + 4]
        elif kind == 6:
            broken[at:at] = dice.choice(ABSURD)
        else:
            broken[at:at] = broken[at:to]
    return bytes(broken)


def seeds() -> list[bytes]:
    """Small models: ordinary ones, written oddly, with payloads on both sides of the limit, deeply nested."""
    dice = random.Random(0)
    models = [random_model(dice) for _ in range(30)]
    for model in models[:10]:
        for tensor in tensors(model):
            if tensor.HasField("raw_data"):
                tensor.raw_data += bytes(dice.choice((900, 1024, 3000)))
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    plain = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], []))
    written = [model.SerializeToString() for model in (plain, *models)]
    return [*written, *(oddly(model, dice) for model in models)]


# --- the long run --------------------------------------------------------------------------------------------------


def attack(minutes: float, start: int, folder: Path) -> int:
    """Damages models until the time is over; prints what came of it. The number of findings."""
    models, path = seeds(), folder / "model.onnx"
    reasons: Counter[str] = Counter()
    findings = 0
    end = time.monotonic() + 60 * minutes
    seed = start
    while time.monotonic() < end:
        seed += 1
        dice = random.Random(seed)
        wire.BIG, wire.KEPT = dice.choice(((1024, 65536), (64, 128), (1, 0)))
        if dice.random() < 0.5:
            data = damage(dice.choice(models), dice.choice(models), dice)
        else:
            data = oddly(random_model(dice), dice, dice.choice((0, 0.01, 0.1)))
        began = time.process_time()
        try:
            reasons[re.sub(r"\d+", "N", judge(data, path))] += 1
        except Exception as error:
            findings += 1
            (folder / f"finding-{seed}.onnx").write_bytes(data)
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
        if time.process_time() - began > 1:
            findings += 1
            print(f"seed {seed}: took {time.process_time() - began:.1f} s", flush=True)
    print(f"{seed - start} files, {findings} findings, in {folder}")
    for reason, count in reasons.most_common(40):
        print(f"{count:9} {reason}")
    return findings


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="where the random numbers start")
    options = parser.parse_args()
    raise SystemExit(min(1, attack(options.minutes, options.seed, Path(tempfile.mkdtemp(prefix="fuzz-wire-")))))
