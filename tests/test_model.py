"""The view: graphs at every depth, attributes with defaults, constants, shapes, what depends on what."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.defs
import onnx.shape_inference
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tests.support import DETECTOR, load, save
from vexlint.model import tensors
from vexlint.model.attributes import attribute_value
from vexlint.model.read import read
from vexlint.model.shapes import Shape, declared_shape

NESTED = """
<ir_version: 9, opset_import: ["" : 17, "pkg" : 1, "odd" : 1]>
net (bool[1] flip, float[1,3,8,8] x) => (float[1,3,8,8] y) {
  a = Relu (x)
  b = pkg.Gate (a)
  y = If (flip) <
    then_branch = one () => (float[1,3,8,8] c) {
      c = If (flip) <
        then_branch = deep () => (float[1,3,8,8] d) { d = Sigmoid (b) },
        else_branch = other () => (float[1,3,8,8] e) { e = Identity (a) }
      >
    },
    else_branch = two () => (float[1,3,8,8] f) { f = pkg.Gate (x) }
  >
}
<domain: "pkg", opset_import: ["" : 13]>
Gate (p) => (q) {
  s = HardSigmoid (p)
  q = Mul (p, s)
}
<domain: "pkg", opset_import: ["" : 17, "odd" : 1]>
Unused (p) => (q) { q = odd.Thing (p) }
"""


def test_graphs_at_every_depth_and_only_functions_that_are_called(tmp_path: Path) -> None:
    model = load(NESTED, tmp_path)
    assert [g.path for g in model.graphs] == [
        "graph",
        "function pkg::Gate",
        "graph/node[2]/then_branch",
        "graph/node[2]/then_branch/node[0]/then_branch",
        "graph/node[2]/then_branch/node[0]/else_branch",
        "graph/node[2]/else_branch",
    ]
    assert [str(n.place) for n in model.nodes("Sigmoid")] == [
        'graph/node[2]/then_branch/node[0]/then_branch/node[0] Sigmoid "d"'
    ]
    assert len(model.nodes("Gate", domain="pkg")) == 2
    assert model.nodes("Thing", domain="odd") == []


def test_a_function_has_its_own_opset_and_defaults_come_from_it(tmp_path: Path) -> None:
    model = load(NESTED, tmp_path)
    (node,) = model.nodes("HardSigmoid")
    assert node.graph.opsets == {"": 13}
    assert node.schema is not None
    assert node.schema.since == 6
    assert node.attribute("alpha") == pytest.approx(0.2)
    assert node.attribute("gamma") is None


def test_upstream_goes_through_what_subgraphs_read(tmp_path: Path) -> None:
    graph = load(NESTED, tmp_path).graph
    assert [n.op for n in graph.upstream("y")] == ["If", "Relu", "Gate"]
    assert graph.depends("y", "x")
    assert graph.depends("a", "a")
    assert not graph.depends("a", "b")


def test_a_value_is_found_in_the_graphs_around(tmp_path: Path) -> None:
    model = load(NESTED, tmp_path)
    (sigmoid,) = model.nodes("Sigmoid")
    value = sigmoid.input(0)
    assert value is not None
    assert value.home is model.graph
    assert value.producer is not None
    assert value.producer.op == "Gate"
    assert sigmoid.input(1) is None


def test_ai_onnx_and_the_empty_domain_are_one(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Elu (x) }'
    )
    proto.opset_import[0].domain = "ai.onnx"
    proto.graph.node[0].domain = "ai.onnx"
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    model = read(path)
    (node,) = model.nodes("Elu")
    assert node.attribute("alpha") == 1.0
    assert node.schema is not None


def test_files_before_opset_imports_are_opset_1(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Elu (x) }'
    )
    proto.ir_version = 2
    proto.ClearField("opset_import")
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    assert read(path).opsets == {"": 1}


CONSTANTS = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1,3,8,8] x) => (float[1,3,16,16] y) <float[4] init = {1, 1, 2, 2}> {
  tensor = Constant <value = float[4] {1, 1, 2, 2}> ()
  floats = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()
  ints = Constant <value_ints = [3, 4]> ()
  one = Constant <value_int = 0> ()
  computed = Identity (init)
  y = Resize (x, , init)
}
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("init", [1, 1, 2, 2]),
        ("tensor", [1, 1, 2, 2]),
        ("floats", [1, 1, 2, 2]),
        ("ints", [3, 4]),
        ("one", [0]),
        ("computed", None),
        ("x", None),
        ("nowhere", None),
    ],
)
def test_constants_wherever_they_are_kept(name: str, expected: list[int] | None, tmp_path: Path) -> None:
    from vexlint.model.graph import Value

    assert Value(load(CONSTANTS, tmp_path).graph, name).constant == expected


NUMERIC = [t for t in tensors.RAW_FORMATS if t != 9] + [9, 16]


@pytest.mark.parametrize("kind", NUMERIC, ids=[tensors.dtype_name(t) for t in NUMERIC])
@pytest.mark.parametrize("raw", [True, False], ids=["raw_data", "typed field"])
def test_tensor_values_equal_onnx_numpy_helper(kind: int, raw: bool) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    array = np.array([0, 1, 0, 1, 1, 0] if kind == 9 else [0, 1, 2, 3, 100, 5]).astype(dtype).reshape(2, 3)
    if kind in (1, 10, 11, 16):
        array = (array.astype(np.float64) / 3 - 1).astype(dtype)
    tensor = helper.make_tensor("t", kind, (2, 3), array.tobytes() if raw else array.flatten(), raw=raw)
    expected = numpy_helper.to_array(tensor).astype(np.float64).flatten().tolist()
    assert tensors.values(tensor) == expected


def test_values_too_long_or_too_short_are_not_made_up() -> None:
    tensor = helper.make_tensor("t", 1, (4,), struct.pack("<4f", 1, 2, 3, 4), raw=True)
    assert tensors.values(tensor, most=3) is None
    tensor.raw_data = tensor.raw_data[:-1]
    assert tensors.values(tensor) is None


def test_small_external_payloads_are_read_from_the_folder(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(CONSTANTS)
    raw = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "init")
    proto.graph.initializer[0].CopyFrom(raw)  # only raw_data goes into a file of its own
    onnx.save(
        proto,
        tmp_path / "m.onnx",
        save_as_external_data=True,
        size_threshold=0,
        convert_attribute=True,
        location="m.bin",
    )
    model = read(tmp_path / "m.onnx")
    (resize,) = model.nodes("Resize")
    scales = resize.input(2)
    assert scales is not None
    assert scales.constant == [1, 1, 2, 2]
    (tmp_path / "m.bin").unlink()
    assert scales.constant is None


def test_a_payload_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 16)
    folder = tmp_path / "models"
    folder.mkdir()
    text = CONSTANTS.replace("init = {1, 1, 2, 2}", 'init = ["location": "../secret", "offset": "0", "length": "16"]')
    (resize,) = load(text, folder).nodes("Resize")
    scales = resize.input(2)
    assert scales is not None
    assert scales.constant is None


def test_attribute_values_of_every_kind() -> None:
    made: dict[str, Any] = {"f": 1.5, "i": -3, "s": "linear", "fs": [1.0, 2.0], "is": [1, 2], "ss": ["a", "b"]}
    node = helper.make_node("Any", [], ["y"], **made)
    assert {a.name: attribute_value(a) for a in node.attribute} == made
    untyped = helper.make_attribute("alpha", 0.5)
    untyped.ClearField("type")  # IR version 1
    assert attribute_value(untyped) == 0.5


@given(
    st.lists(st.one_of(st.integers(-3, 2**40), st.sampled_from(["N", "", "?", "H"]), st.none()), min_size=0, max_size=5)
)
def test_declared_dimensions(dims: list[int | str | None]) -> None:
    info = helper.make_tensor_value_info("x", 1, dims)
    expected = tuple(None if d in ("", "?", None) or (isinstance(d, int) and d < 0) else d for d in dims)
    assert declared_shape(info) == Shape("float", expected)


def test_inferred_shapes_are_those_of_onnx(tmp_path: Path) -> None:
    path = DETECTOR / "clean.onnx"
    model = read(path)
    whole = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    expected = {v.name: declared_shape(v) for v in (*whole.graph.value_info, *whole.graph.output)}
    assert {name: shape for (_, name), shape in model.inferred.items()} == expected
    assert len(expected) > 100
    assert model.stopped is None


def test_shapes_of_a_file_without_declarations(tmp_path: Path) -> None:
    text = NESTED.split("<domain", maxsplit=1)[0].replace("pkg.Gate", "Elu").replace(', "pkg" : 1, "odd" : 1', "")
    model = read(save(text, tmp_path))
    assert model.graph.shape("b") == Shape("float", (1, 3, 8, 8))
    assert model.graph.shape("nowhere") is None
