"""Makes onnx_proto.bin, the descriptor of ONNX's messages, from the installed onnx. Run it after an update of onnx:

    python vexlint/model/data/make_proto.py

The messages are those of onnx.proto in every number, name and type, but declared as proto3 where onnx says proto2: then
protobuf itself refuses strings that are not UTF-8 while it parses, and an unknown value of an enumeration stays in its
field. What proto2 means otherwise is said field by field, so that presence and bytes are the same.
"""

from __future__ import annotations

from pathlib import Path

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from onnx import onnx_ml_pb2

TARGET = Path(__file__).with_name("onnx_proto.bin")
UNPACKABLE = (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_MESSAGE)


def descriptor() -> bytes:
    """The serialized FileDescriptorProto."""
    file = FileDescriptorProto()
    onnx_ml_pb2.DESCRIPTOR.CopyToProto(file)
    file.syntax = "proto3"
    file.ClearField("options")
    for message in file.message_type:
        say_proto2(message)
    return bytes(file.SerializeToString(deterministic=True))


def say_proto2(message: DescriptorProto) -> None:
    """Says of each field what proto3 takes otherwise: a single one has presence, a repeated one is not packed."""
    for field in message.field:
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            if field.type not in UNPACKABLE and not field.options.HasField("packed"):
                field.options.packed = False
        elif not field.HasField("oneof_index"):
            field.proto3_optional = True  # which protobuf writes as a oneof of one
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
    for nested in message.nested_type:
        say_proto2(nested)


if __name__ == "__main__":
    TARGET.write_bytes(descriptor())
