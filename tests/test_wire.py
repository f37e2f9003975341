"""Reading without weights: what stays, what leaves, what comes back. How broken files fare is in test_wire_fuzz.py."""

from __future__ import annotations

import os
import random
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.fuzz_wire import field, oddly, random_model, restored, tensors, varint
from tests.malformed import model_bytes, nested
from vexlint.model import proto, wire
from vexlint.model.wire import Stripped, Unreadable

PINNED = "1.23.2"  # the onnx that data/onnx_proto.bin is made from
LARGE = bytes(range(256)) * 8
Model = onnx.ModelProto


def strip(path: Path, data: bytes) -> Stripped:
    path.write_bytes(data)
    return wire.strip(path)


def raw(payload: bytes, data_type: int = TensorProto.FLOAT, dims: tuple[int, ...] = (2, 3)) -> TensorProto:
    return TensorProto(name="w", data_type=data_type, dims=dims, raw_data=payload)


def with_tensor(tensor: TensorProto) -> bytes:
    return bytes(Model(graph=onnx.GraphProto(initializer=[tensor])).SerializeToString())


def only_tensor(stripped: Stripped) -> TensorProto:
    found: list[TensorProto] = list(tensors(proto.parse(stripped.data)))
    assert len(found) == 1
    return found[0]


def record(tensor: TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def assert_same(path: Path) -> None:
    """What `strip` and `restore` make of the file is what onnx reads."""
    ours = Model.FromString(restored(path).SerializeToString())
    theirs = Model.FromString(path.read_bytes())
    assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.onnx"


# --- what leaves and what stays ------------------------------------------------------------------------------------


def test_a_model_without_large_payloads_is_its_own_bytes(path: Path) -> None:
    data = with_tensor(raw(bytes(1023)))
    stripped = strip(path, data)
    assert (stripped.data, stripped.payloads, stripped.size) == (data, (), len(data))


def test_a_payload_of_one_kibibyte_leaves_a_record_that_points_at_its_bytes(path: Path) -> None:
    payload = LARGE[:1024]
    stripped = strip(path, with_tensor(raw(payload)))
    tensor = only_tensor(stripped)
    at = path.read_bytes().index(payload)
    assert not tensor.HasField("raw_data")
    assert tensor.data_location == TensorProto.EXTERNAL
    assert record(tensor) == {
        "location": "model.onnx",
        "offset": str(at),
        "length": "1024",
        wire.PAYLOAD_KEY: "0",
    }
    assert stripped.payloads == (
        wire.Payload(number=9, offset=at, length=1024, raw=True, fields=((at - 3, at + 1024),)),
    )
    assert (tensor.name, tensor.data_type, list(tensor.dims)) == ("w", TensorProto.FLOAT, [2, 3])


def attribute_model(attribute: onnx.AttributeProto) -> Model:
    return Model(graph=onnx.GraphProto(node=[onnx.NodeProto(op_type="Constant", attribute=[attribute])]))


def sparse() -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=raw(LARGE), dims=[1])


def graph() -> onnx.GraphProto:
    return onnx.GraphProto(name="g", initializer=[raw(LARGE)])


def function(**parts: Any) -> Model:
    return Model(graph=onnx.GraphProto(), functions=[onnx.FunctionProto(name="f", **parts)])


ATTRIBUTE = onnx.AttributeProto
PLACES: dict[str, Callable[[], Model]] = {
    "initializer": lambda: Model(graph=graph()),
    "sparse initializer": lambda: Model(graph=onnx.GraphProto(sparse_initializer=[sparse()])),
    "constant": lambda: attribute_model(ATTRIBUTE(name="value", t=raw(LARGE))),
    "tensors": lambda: attribute_model(ATTRIBUTE(name="a", tensors=[raw(b"small"), raw(LARGE)])),
    "sparse constant": lambda: attribute_model(ATTRIBUTE(name="a", sparse_tensor=sparse())),
    "sparse tensors": lambda: attribute_model(ATTRIBUTE(name="a", sparse_tensors=[sparse()])),
    "subgraph": lambda: attribute_model(ATTRIBUTE(name="then_branch", g=graph())),
    "graphs": lambda: attribute_model(ATTRIBUTE(name="a", graphs=[onnx.GraphProto(), graph()])),
    "subgraph of a subgraph": lambda: attribute_model(
        ATTRIBUTE(g=attribute_model(ATTRIBUTE(g=graph(), name="b")).graph, name="a")
    ),
    "function node": lambda: function(node=[onnx.NodeProto(attribute=[ATTRIBUTE(name="value", t=raw(LARGE))])]),
    "function default": lambda: function(attribute_proto=[ATTRIBUTE(name="a", t=raw(LARGE))]),
    "training initialization": lambda: Model(
        graph=onnx.GraphProto(), training_info=[onnx.TrainingInfoProto(initialization=graph())]
    ),
    "training algorithm": lambda: Model(
        graph=onnx.GraphProto(), training_info=[onnx.TrainingInfoProto(algorithm=graph())]
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_payload_leaves_wherever_a_tensor_can_be(place: str, path: Path) -> None:
    data = PLACES[place]().SerializeToString()
    stripped = strip(path, data)
    assert len(stripped.payloads) == 1
    assert stripped.payloads[0].offset == data.index(LARGE)
    assert len(stripped.data) < 400
    assert_same(path)


FIELDS: dict[str, tuple[int, Any, bool]] = {  # field -> data type, elements, whether the bytes are those of raw_data
    "raw_data": (TensorProto.FLOAT, LARGE, True),
    "float_data": (TensorProto.FLOAT, [0.5] * 500, True),
    "double_data": (TensorProto.DOUBLE, [0.5] * 500, True),
    "int32_data": (TensorProto.FLOAT16, [15360] * 600, False),
    "int64_data": (TensorProto.INT64, [1, -1] * 300, False),
    "uint64_data": (TensorProto.UINT64, [1 << 60] * 300, False),
    "string_data": (TensorProto.STRING, [b"person", b"bicycle"] * 100, False),
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_payload_field_leaves_and_only_raw_bytes_are_called_so(name: str, path: Path) -> None:
    data_type, elements, like_raw = FIELDS[name]
    tensor = TensorProto(name="w", data_type=data_type, dims=[2, 300])
    if name == "raw_data":
        tensor.raw_data = elements
    else:
        getattr(tensor, name).extend(elements)
    stripped = strip(path, with_tensor(tensor))
    left, payload = only_tensor(stripped), stripped.payloads[0]
    assert payload.number == TensorProto.DESCRIPTOR.fields_by_name[name].number
    assert record(left)["length"] == str(payload.length if like_raw else 0)
    assert not left.ByteSize() > 120
    assert_same(path)


def test_float_data_of_a_type_that_it_cannot_hold_is_not_called_raw(path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT16, float_data=[0.5] * 500)
    assert record(only_tensor(strip(path, with_tensor(tensor))))["length"] == "0"


@pytest.mark.parametrize("number", [4, 5, 7, 10, 11])
def test_unpacked_and_split_payloads_come_back(number: int, path: Path) -> None:
    element = {4: b"\x25half", 10: b"\x51" + bytes(8)}.get(number) or varint(number << 3) + b"\x80\x01"
    packed = field(number, bytes(800))
    tensor = b"\x10\x01" + element * 500 + field(8, b"w") + packed + element * 3
    stripped = strip(path, field(7, field(5, tensor)))
    assert [len(p.fields) for p in stripped.payloads] == [2]
    assert record(only_tensor(stripped))["length"] == "0"
    assert_same(path)


@pytest.mark.parametrize(
    ("data_type", "dims", "size", "stays"),
    [
        (TensorProto.INT64, (8192,), 65536, True),
        (TensorProto.INT32, (), 65536, True),
        (TensorProto.INT64, (8193,), 65544, False),
        (TensorProto.INT64, (2, 4096), 65536, False),
        (TensorProto.FLOAT, (256,), 1024, False),
        (TensorProto.INT8, (1024,), 1024, False),
    ],
)
def test_integers_that_shapes_can_depend_on_stay(
    data_type: int, dims: tuple[int, ...], size: int, stays: bool, path: Path
) -> None:
    data = with_tensor(raw(bytes(size), data_type, dims))
    assert (strip(path, data).data == data) is stays


def test_typed_integers_stay_too(path: Path) -> None:
    data = with_tensor(TensorProto(data_type=TensorProto.INT64, dims=[2000], int64_data=range(2000)))
    assert strip(path, data).data == data


@pytest.mark.parametrize("dims", [b"\x08\x02\x08\x04", field(1, b"\x02\x04"), b"\x08\x02" + field(1, b"\x84\x00")])
def test_type_and_dims_may_follow_the_payload_and_the_last_type_counts(dims: bytes, path: Path) -> None:
    payload = b"\x10\x01" + field(9, bytes(2000)) + b"\x10\x07"
    assert strip(path, field(7, field(5, payload + b"\x08\x02"))).payloads == ()
    assert len(strip(path, field(7, field(5, payload + dims))).payloads) == 1
    assert strip(path, field(7, field(5, payload + field(1, b"\x84\x00")))).payloads == ()


def test_external_tensors_stay_as_they_are(path: Path) -> None:
    entry = onnx.StringStringEntryProto(key="location", value="weights.bin")
    external = TensorProto(name="w", data_location=TensorProto.EXTERNAL, external_data=[entry], raw_data=LARGE)
    data = with_tensor(external)
    assert strip(path, data).data == data


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("offset", "1"),
        ("location", "other.onnx"),
        (wire.PAYLOAD_KEY, "1"),
        (wire.PAYLOAD_KEY, "9" * 5000),
        (wire.PAYLOAD_KEY, "w"),
    ],
)
def test_a_record_that_only_looks_like_ours_is_not_taken_for_it(key: str, value: str, path: Path) -> None:
    stripped = strip(path, with_tensor(raw(LARGE)))
    tensor = only_tensor(stripped)
    assert wire.payload_of(tensor, stripped) is stripped.payloads[0]
    next(entry for entry in tensor.external_data if entry.key == key).value = value
    assert wire.payload_of(tensor, stripped) is None


def test_a_stripped_model_that_was_saved_has_no_payloads_of_its_own(path: Path) -> None:
    data = strip(path, with_tensor(raw(LARGE))).data
    again = strip(path.with_name("view.onnx"), data)
    assert again.data == data
    assert wire.payload_of(only_tensor(again), again) is None


def test_a_data_location_that_says_default_comes_back(path: Path) -> None:
    tensor = raw(LARGE)
    tensor.data_location = TensorProto.DEFAULT
    assert len(strip(path, with_tensor(tensor)).payloads) == 1
    assert_same(path)
    assert next(tensors(restored(path))).HasField("data_location")


def test_sparse_indices_stay_because_the_checker_reads_them(path: Path) -> None:
    indices = raw(bytes(70000), TensorProto.INT64, (8750,))
    tensor = onnx.SparseTensorProto(values=raw(bytes(35000)), indices=indices, dims=[9000])
    stripped = strip(path, Model(graph=onnx.GraphProto(sparse_initializer=[tensor])).SerializeToString())
    assert len(stripped.payloads) == 1
    left = proto.parse(stripped.data).graph.sparse_initializer[0]
    assert left.indices.raw_data == bytes(70000)


def test_unknown_fields_stay(path: Path) -> None:
    future = field(1000, b"of a later ONNX")
    data = field(7, field(5, raw(LARGE).SerializeToString() + future) + future) + future
    assert strip(path, data).data.count(future) == 3
    assert_same(path)


# --- protobuf's rules for what stands twice ------------------------------------------------------------------------

T1, T2 = b"\x10\x01" + field(9, LARGE), field(8, b"w") + field(9, LARGE[::-1])
LONG_TAGS = b"\xaa\x80\x00" + varint(len(T1))[:-1] + bytes([varint(len(T1))[-1] | 128, 0]) + T1  # an initializer
IN_ATTRIBUTE = {
    "t twice": field(5, T1) + b"\xa0\x01\x04" + field(5, T2),
    "a small t after a large one": field(5, T1) + field(5, field(9, b"small")),
    "a large t after a small one": field(5, field(9, b"small")) + field(5, T1),
    "two small t that are large together": field(5, field(4, bytes(600))) * 2,
    "t external in the end": field(5, T1) + field(5, b"\x70\x01"),
    "g twice": field(6, field(5, T1)) + field(6, field(5, T2)),
    "sparse_tensor and its values in pieces": field(22, field(1, T1) + field(3, b"\x01")) + field(22, field(1, T2)),
}
MERGED = {
    "raw_data twice": field(7, field(5, T1 + T2)),
    "two models end to end": field(7, field(5, T1)) + field(7, field(5, T2)),
    "graph around another field": field(7, field(2, b"a") + field(5, T1)) + b"\x08\x08" + field(7, field(5, T2)),
    "sparse initializer's values twice": field(7, field(15, field(1, T1) + field(1, T2))),
    "training graph twice": field(7, b"") + field(20, field(1, field(5, T1)) + field(2, b"") + field(1, field(5, T2))),
    "tags and lengths longer than need be": field(7, LONG_TAGS + field(2, b"g")),
    **{name: field(7, field(1, field(5, attribute))) for name, attribute in IN_ATTRIBUTE.items()},
}


@pytest.mark.parametrize("case", MERGED)
def test_what_stands_twice_merges_as_in_protobuf(case: str, path: Path) -> None:
    path.write_bytes(MERGED[case])
    assert_same(path)


def test_two_pieces_become_one_record(path: Path) -> None:
    stripped = strip(path, MERGED["t twice"])
    assert len(stripped.payloads) == 1
    assert stripped.payloads[0].offset == path.read_bytes().index(LARGE[::-1])
    assert record(only_tensor(stripped))["length"] == "0"


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32), limits=st.sampled_from([(1, 0), (16, 24), (100, 1000)]))
def test_any_way_to_write_a_model_reads_as_protobuf_reads_it(
    tmp_path_factory: pytest.TempPathFactory, seed: int, limits: tuple[int, int]
) -> None:
    path, dice = tmp_path_factory.getbasetemp() / "odd.onnx", random.Random(seed)
    path.write_bytes(oddly(random_model(dice), dice))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "BIG", limits[0])
        patch.setattr(wire, "KEPT", limits[1])
        assert_same(path)


# --- what others make of the result --------------------------------------------------------------------------------


def test_checker_and_shape_inference_take_the_stripped_model(path: Path) -> None:
    stripped = strip(path, model_bytes())
    view = path.with_name("view.onnx")
    view.write_bytes(stripped.data)
    onnx.checker.check_model(str(view), full_check=True)
    inferred = onnx.shape_inference.infer_shapes(Model.FromString(stripped.data), strict_mode=True)
    shape = inferred.graph.output[0].type.tensor_type.shape
    assert [dim.dim_value or dim.dim_param for dim in shape.dim] == ["N", 4, 25, 25]


def test_onnx_loads_the_weights_through_the_records(path: Path) -> None:
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [512], [0.5] * 512)
    left = TensorProto.FromString(only_tensor(strip(path, with_tensor(tensor))).SerializeToString())
    del left.external_data[3:]  # onnx warns of keys that it does not know
    assert onnx.numpy_helper.to_array(left, base_dir=str(path.parent)).tolist() == [0.5] * 512


def test_onnxruntime_runs_the_stripped_model_beside_its_file(path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    view = path.with_name("view.onnx")
    model = proto.parse(strip(path, model_bytes()).data)
    del model.graph.initializer[0].external_data[3:]  # onnxruntime refuses keys that it does not know
    view.write_bytes(model.SerializeToString())
    images = np.linspace(-1, 1, 4 * 32 * 32, dtype=np.float32).reshape(1, 4, 32, 32)
    outputs = [
        runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"]).run(None, {"x": images})[0]
        for file in (path, view)
    ]
    assert np.any(outputs[0])
    assert np.array_equal(*outputs)


# --- files ---------------------------------------------------------------------------------------------------------


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "not a regular"),
        (Path(os.devnull), "not a regular"),
    ):
        with pytest.raises(Unreadable, match=reason):
            wire.strip(path)


def test_the_errors_of_the_operating_system_pass(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        wire.strip(tmp_path / "missing.onnx")


def test_a_name_that_is_not_utf_8_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"mod\xe8le.onnx")
    assert record(only_tensor(strip(path, with_tensor(raw(LARGE)))))["location"] == "mod?le.onnx"


CHILD = """
import sys
from pathlib import Path
from vexlint.model import proto, wire
stripped = wire.strip(Path(sys.argv[1]))
model = proto.parse(stripped.data, stripped.origin)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(stripped.data), len(model.graph.initializer), peak)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux' /proc")
def test_three_gigabytes_take_no_more_memory_than_their_structure(path: Path) -> None:
    head = b"\x10\x01" + b"\x4a" + varint(1 << 30)  # a float tensor and its raw_data
    tensor = b"\x2a" + varint(len(head) + (1 << 30)) + head
    with path.open("wb") as file:
        file.write(b"\x08\x08\x3a" + varint(3 * (len(tensor) + (1 << 30))))
        for _ in range(3):
            file.write(tensor)
            file.seek(1 << 30, os.SEEK_CUR)  # a hole: no space on disk
        file.write(b"\x42\x02\x10\x11")
    answer = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True)
    structure, initializers, peak = map(int, answer.stdout.split())
    assert (structure < 1000, initializers) == (True, 3)
    assert peak < 60 * 1024  # KiB, Python itself included


def test_a_hundred_thousand_nodes_are_hopped_over(path: Path) -> None:
    node = helper.make_node(
        "Conv", ["/model/x", "w"], ["/model/y"], name="/model/conv", kernel_shape=[3, 3], pads=[1, 1]
    )
    path.write_bytes(field(7, field(1, node.SerializeToString()) * 100_000))
    began = time.process_time()
    wire.strip(path)
    assert time.process_time() - began < 0.5  # 0.02 is usual


# --- limits --------------------------------------------------------------------------------------------------------


def test_more_structure_than_allowed_is_refused_unread(path: Path) -> None:
    with path.open("wb") as file:
        file.write(field(7, b"") + b"\x32" + varint(129 << 20))  # doc_string
        file.truncate(file.tell() + (129 << 20))
    with pytest.raises(Unreadable, match="129 MiB of it are no tensors, more than the 128 MiB allowed"):
        wire.strip(path)


def test_more_fields_than_allowed_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto, "MAX_FIELDS", 1000)
    path.write_bytes(field(7, b"\x7a\x00" * 999))
    wire.strip(path)
    path.write_bytes(field(7, b"\x7a\x00" * 1000))
    with pytest.raises(Unreadable, match="more than 1,000 fields"):
        wire.strip(path)


def test_large_structure_is_counted_before_protobuf_makes_much_more_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = field(7, field(1, b"\x2a\x00" * 1001))  # empty attributes
    monkeypatch.setattr(proto, "MAX_FIELDS", 1000)
    assert len(proto.parse(data).graph.node[0].attribute) == 1001
    monkeypatch.setattr(proto, "LARGE", 1000)
    with pytest.raises(Unreadable, match="more than 1,000 fields"):
        proto.parse(data)


def test_a_hundred_messages_deep_is_read_and_one_more_is_not(path: Path) -> None:
    path.write_bytes(nested(100))
    assert_same(path)
    path.write_bytes(nested(98, field(5, field(9, LARGE))))
    assert_same(path)
    with pytest.raises(Unreadable, match="nested deeper than 100 messages"):
        proto.parse(nested(101))


# --- protobuf without onnx -----------------------------------------------------------------------------------------


@pytest.mark.skipif(onnx.__version__ != PINNED, reason=f"the descriptor is made from onnx {PINNED}")
def test_the_descriptor_is_that_of_the_pinned_onnx() -> None:
    maker = runpy.run_path(str(proto.DESCRIPTOR.with_name("make_proto.py")))
    assert maker["descriptor"]() == proto.DESCRIPTOR.read_bytes(), "run vexlint/model/data/make_proto.py"


def messages(message: Any, found: dict[str, Any]) -> dict[str, Any]:
    """The descriptors of a message and of all that it can hold, by name."""
    if message.full_name not in found:
        found[message.full_name] = message
        for inner in message.fields:
            if inner.message_type is not None:
                messages(inner.message_type, found)
    return found


def test_the_classes_have_the_fields_of_onnx() -> None:
    ours = messages(proto.message_class("ModelProto").DESCRIPTOR, {})
    theirs = messages(Model.DESCRIPTOR, {})
    assert ours.keys() == theirs.keys()
    for name, message in theirs.items():
        for inner in message.fields:
            twin = ours[name].fields_by_number.get(inner.number)
            what = [(f.name, f.type, f.has_presence, f.is_packed) for f in (inner, twin)]
            assert what[0] == what[1]


def test_the_classes_write_what_onnx_writes() -> None:
    data = model_bytes()
    model = proto.parse(data)
    assert model.SerializeToString() == data
    assert (model.HasField("ir_version"), model.HasField("domain")) == (True, False)
    assert model.graph.node[0].attribute[0].type == onnx.AttributeProto.INTS


def test_onnx_can_be_imported_later_and_earlier() -> None:
    code = (
        "import sys\nfrom vexlint.model import wire, proto\n"
        "model = proto.message_class('ModelProto')(ir_version=8)\n"
        "assert not {'onnx', 'numpy'} & set(sys.modules)\n"
        "import onnx\n"
        "other = onnx.ModelProto.FromString(model.SerializeToString())\n"
        "assert type(other) is not type(model) and other.ir_version == 8\n"
        "assert proto.parse(other.SerializeToString() + b'\\x3a\\x00').ir_version == 8\n"
        "onnx.checker.check_tensor(onnx.helper.make_tensor('w', 1, [1], [1.0]))\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_there_are_only_messages_of_onnx() -> None:
    with pytest.raises(KeyError):
        proto.message_class("ModelProt")


def test_an_unknown_enumeration_value_stays_in_its_field() -> None:
    data = field(7, field(1, field(5, b"\xa0\x01\x63")))
    model = proto.parse(data)
    assert model.graph.node[0].attribute[0].type == 99
    assert model.SerializeToString() == data


def test_errors_name_the_byte_of_the_file_not_of_what_is_left(path: Path) -> None:
    data = field(7, field(5, raw(LARGE).SerializeToString()) + field(1, field(4, b"Rel\xff")))
    stripped = strip(path, data)
    with pytest.raises(Unreadable, match=f"byte {data.rindex(0xFF)}: NodeProto.op_type is not UTF-8"):
        proto.parse(stripped.data, stripped.origin)


def test_what_a_payload_holds_is_not_looked_at(path: Path) -> None:
    tensor = b"\x10\x0a" + field(8, b"w") + field(5, b"\xff" * 2000)
    stripped = strip(path, field(7, field(5, tensor)))
    assert proto.parse(stripped.data).graph.initializer[0].name == "w"
    with pytest.raises(Unreadable, match="a broken payload"):
        restored(path)
