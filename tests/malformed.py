"""Files that are no readable model, by name: each must end in `Unreadable`, at the command line in VEX001."""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
import struct
import zipfile
import zlib
from itertools import cycle, islice

import onnx
from onnx import helper

from tests.fuzz_wire import field, varint

# Field numbers on the way from the model to a node, an attribute, a tensor and its payload
GRAPH, NODE, ATTRIBUTE, INITIALIZER, RAW_DATA = 7, 1, 5, 5, 9
PAYLOAD = struct.pack("<1024f", *range(1024))


def model_bytes() -> bytes:
    """A readable model: one Conv whose weights are 4 KiB."""
    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, [4, 4, 8, 8], PAYLOAD, raw=True)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", kernel_shape=[8, 8])
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 4, 32, 32])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", None, None, None])]
    graph = helper.make_graph([node], "detector", inputs, outputs, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def corpus() -> dict[str, bytes]:
    """Every malformed file, by a name that says what is wrong with it."""
    return {**not_onnx(), **cut_short(), **broken_wire(), **wrong_lengths(), **wrong_types(), **wrong_contents()}


def not_onnx() -> dict[str, bytes]:
    model = model_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", model)
    pixels = zlib.compress(bytes(4))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)), (b"IDAT", pixels), (b"IEND", b""))
    )
    meta_graph = field(1, field(2, field(1, field(1, b"Placeholder"))) + field(4, b"serve"))
    tf_node = field(1, b"images") + field(2, b"Placeholder")
    return {
        "empty": b"",
        "zeros": bytes(64),
        "one-newline": b"\n",
        "text": b"this is not a model\n",
        "json": json.dumps({"nodes": []}).encode(),
        "html": b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n",
        "xml": b'<?xml version="1.0"?>\n<net name="yolo" version="11"></net>\n',
        "git-lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
        "onnx-text": b'<ir_version: 8, opset_import: ["" : 17]>\nagraph (float[N] x) => (float[N] y) { y = Relu(x) }\n',
        "png": png,
        "jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(16),
        "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
        "zip": archive.getvalue(),
        "gzip": gzip.compress(model, mtime=0),
        "pickle": pickle.dumps({"state_dict": [1, 2]}, protocol=4),
        "numpy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n" + bytes(4),
        "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(32),
        "tflite": b"\x1c\x00\x00\x00TFL3" + bytes(32),
        "ort": b"\x1c\x00\x00\x00ORTM" + bytes(32),
        "tensorflow-saved-model": b"\x08\x01" + field(2, meta_graph),
        "tensorflow-graph": field(1, tf_node),
        "tensor-file": helper.make_tensor("input_0", 1, [2, 2], bytes(16), raw=True).SerializeToString(),
        "base64": base64.b64encode(model),
        "byte-order-mark-before": b"\xef\xbb\xbf" + model,
        "line-ends-converted": model.replace(b"\n", b"\r\n"),
        "utf-8-converted": model.decode("latin-1").encode() + b"\xc3",
    }


def cut_short() -> dict[str, bytes]:
    model = model_bytes()
    in_payload = model.index(PAYLOAD) + 1000
    return {
        "cut-to-one-byte": model[:1],
        "cut-before-graph": model[:2],
        "cut-in-graph-length": model[:3] + b"\x80",
        "cut-in-graph": model[: len(model) // 8],
        "cut-in-payload": model[:in_payload],
        "cut-by-one-byte": model[:-1],
        "cut-in-tag": model + b"\x82",
        "cut-in-number": model + b"\x28\x80",
        "cut-in-four-bytes": model + varint(1000 << 3 | 5) + b"abc",
        "cut-in-eight-bytes": model + varint(1000 << 3 | 1) + b"abcdefg",
        "cut-before-length": model + b"\x12",
    }


def broken_wire() -> dict[str, bytes]:
    model = model_bytes()
    return {
        "field-number-zero": model + b"\x02\x00",
        "field-number-too-large": model + b"\x82\x80\x80\x80\x10\x00",
        "wire-type-six": model + b"\x0e\x00",
        "wire-type-seven": model + b"\x0f\x00",
        "group": model + varint(1000 << 3 | 3) + varint(1000 << 3 | 4),
        "group-without-end": model + b"\x0b",
        "group-end-alone": model + b"\x0c",
        "group-in-node": with_node(varint(1000 << 3 | 3) + varint(1000 << 3 | 4)),
        "tag-of-six-bytes": model + b"\x92\x80\x80\x80\x80\x00\x00",
        "length-of-six-bytes": model + b"\x12\x80\x80\x80\x80\x80\x00",
        "number-of-eleven-bytes": model + b"\x28" + b"\x80" * 10 + b"\x00",
        "number-of-eleven-bytes-in-node": with_node(varint(1000 << 3) + b"\x80" * 10 + b"\x00"),
        "padded-with-zeros": model + bytes(512),
        "text-behind": model + b"\n-- \nsent from a mail program\n",
        "wire-type-six-in-node": with_node(b"\x0e\x00"),
        "field-number-zero-in-node": with_node(b"\x02\x00"),
    }


def wrong_lengths() -> dict[str, bytes]:
    return {
        "length-beyond-file": b"\x08\x08\x3a" + varint(1000) + b"\x12\x01g",
        "length-of-two-gigabytes": b"\x08\x08\x3a" + varint((1 << 31) - 1) + b"\x12\x01g",
        "length-negative": b"\x08\x08\x3a" + varint(-1) + b"\x12\x01g",
        "node-longer-than-graph": field(GRAPH, varint(NODE << 3 | 2) + varint(100) + b"\x22\x04Relu") + bytes(200),
        "small-node-longer-than-graph": b"\x08\x08" + field(GRAPH, varint(NODE << 3 | 2) + varint(7) + b"\x22\x04Relu"),
        "attribute-longer-than-node": with_node(varint(ATTRIBUTE << 3 | 2) + varint(5000) + bytes(4000)),
        "raw-data-longer-than-tensor": with_initializer(varint(RAW_DATA << 3 | 2) + varint(4096) + bytes(4000)),
        "raw-data-of-two-gigabytes": with_initializer(varint(RAW_DATA << 3 | 2) + varint(1 << 31) + bytes(4000)),
    }


def wrong_types() -> dict[str, bytes]:
    return {
        "no-graph": b"\x08\x08\x12\x04test",
        "graph-as-number": b"\x08\x08\x38\x01",
        "second-graph-as-number": model_bytes() + b"\x38\x01",
        "opset-as-number": b"\x40\x11" + model_bytes(),
        "node-as-number": field(GRAPH, b"\x08\x01"),
        "op-type-as-number": with_node(b"\x20\x01"),
        "attribute-name-as-number": with_node(field(ATTRIBUTE, b"\x08\x01")),
        "attribute-f-as-double": with_node(field(ATTRIBUTE, b"\x11" + bytes(8))),
        "attribute-type-as-text": with_node(field(ATTRIBUTE, field(20, b"INT"))),
        "raw-data-as-number": with_initializer(b"\x48\x01" + field(RAW_DATA, bytes(2000))),
        "string-data-as-number": with_initializer(b"\x30\x00" + field(RAW_DATA, bytes(2000))),
        "dims-as-floats": with_initializer(b"\x0d\x00\x00\x80\x3f" + field(RAW_DATA, bytes(2000))),
        "ir-version-as-text": field(1, b"8") + model_bytes(),
    }


def wrong_contents() -> dict[str, bytes]:
    return {
        "op-type-not-utf-8": with_node(field(4, b"Rel\xff")),
        "node-name-latin-1": with_node(field(3, "größe".encode("latin-1"))),
        "tensor-name-not-utf-8": with_initializer(field(8, b"\xc0\x80") + field(RAW_DATA, bytes(2000))),
        "metadata-not-utf-8": model_bytes() + field(14, field(1, b"names") + field(2, b"\xed\xa0\x80")),
        "float-data-of-three-bytes": with_initializer(field(4, b"abc")),
        "float-data-of-2001-bytes": with_initializer(field(4, bytes(2001))),
        "double-data-of-2004-bytes": with_initializer(field(10, bytes(2004))),
        "int64-data-without-end": with_initializer(field(7, b"\x01\x80")),
        "dims-broken": with_initializer(field(1, b"\xff" * 10 + b"\x01") + field(RAW_DATA, bytes(2000))),
        "nested-101-deep": nested(101),
        "nested-101-deep-around-payload": nested(101, field(RAW_DATA, bytes(2000))),
        "nested-5000-deep": nested(5000),
        "payload-in-10001-pieces": with_initializer((field(RAW_DATA, b"a") + field(12, b"")) * 10_001),
        "graph-in-10001-pieces": field(GRAPH, b"") * 10_001,
    }


def with_node(fields: bytes) -> bytes:
    """A model with these fields in its node."""
    return b"\x08\x08" + field(GRAPH, field(NODE, field(4, b"Relu") + fields))


def with_initializer(fields: bytes) -> bytes:
    """A model with these fields in its initializer."""
    return b"\x08\x08" + field(GRAPH, field(INITIALIZER, b"\x10\x01" + fields))


def nested(depth: int, innermost: bytes = b"") -> bytes:
    """A model with graphs in attributes in nodes in graphs, `depth` messages below the model, made quickly.

    `innermost` are the fields of the innermost message.
    """
    tags = [b"\x3a", *islice(cycle([b"\x0a", b"\x2a", b"\x32"]), depth - 1)]
    heads: list[bytes] = []
    size = len(innermost)
    for tag in reversed(tags):
        heads.append(tag + varint(size))
        size += len(heads[-1])
    return b"".join(reversed(heads)) + innermost
