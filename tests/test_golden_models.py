"""The models of golden_models/ are what their names and README say. They stand beside the code without torch."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parents[1] / "golden_models"))
from shapes_detector import measure, scenes

GOLDEN = Path(__file__).parents[1] / "golden_models"
FOLDER = GOLDEN / "shapes_detector"
MODELS = sorted(FOLDER.glob("*.onnx"))
NAMES = sorted([*measure.REFERENCES, "custom_mish"])
OPSETS = {"opset11": 11, "opset20": 20}  # 17 for the rest
INPUTS = {"batch4": [4, 3, 320, 320], "dynamic": ["batch", 3, "height", "width"]}
OUTPUTS = {
    "batch4": [4, 7, 2100],
    "objectness": [1, 2100, 8],
    "dynamic": ["batch", "Concatoutput0_dim_1", "cells"],
    "custom_mish": [f"Concatoutput0_dim_{axis}" for axis in range(3)],  # the exporter lost the shapes behind the nodes
}


def _load(name: str) -> onnx.ModelProto:
    return onnx.load(FOLDER / f"{name}.onnx")


def _shape(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def _needs_onnxruntime() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")


def _resize_modes(model: onnx.ModelProto) -> list[bytes]:
    resizes = [node for node in model.graph.node if node.op_type == "Resize"]
    return [a.s for node in resizes for a in node.attribute if a.name == "coordinate_transformation_mode"]


def test_the_folder_holds_the_variants_and_no_other_model() -> None:
    assert [path.stem for path in MODELS] == NAMES


def test_the_readme_names_every_file() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    made = [path.name for path in FOLDER.iterdir() if path.suffix in (".onnx", ".npz", ".py")]
    assert [name for name in made if name not in readme and name != "__init__.py"] == []


@pytest.mark.parametrize("name", NAMES)
class TestEveryVariant:
    def test_passes_the_full_checker(self, name: str) -> None:
        onnx.checker.check_model(_load(name), full_check=True)

    def test_has_the_opset_and_shapes_of_its_name(self, name: str) -> None:
        model = _load(name)
        (images,), (output,) = model.graph.input, model.graph.output
        imports = {entry.domain: entry.version for entry in model.opset_import}
        private = {"shapes": 1} if name == "custom_mish" else {}
        assert imports == {"": OPSETS.get(name, 17)} | private
        assert (images.name, output.name) == ("images", "output0")
        assert images.type.tensor_type.elem_type == output.type.tensor_type.elem_type == TensorProto.FLOAT
        assert _shape(images) == INPUTS.get(name, [1, 3, 320, 320])
        assert _shape(output) == OUTPUTS.get(name, [1, 7, 2100])

    def test_says_what_it_detects(self, name: str) -> None:
        metadata = {entry.key: entry.value for entry in _load(name).metadata_props}
        assert ast.literal_eval(metadata.pop("names")) == dict(enumerate(scenes.CLASSES))
        assert metadata == {"imgsz": "[320, 320]", "stride": "32", "task": "detect"}

    def test_is_as_pytorch_wrote_it(self, name: str) -> None:
        model = _load(name)
        assert model.producer_name == "pytorch"
        names = [node.name for node in model.graph.node]
        assert all(names) and len(set(names)) == len(names)
        assert "/backbone/stem/conv/Conv" in names
        mode = b"align_corners" if name.endswith("align_corners") else b"half_pixel"
        assert _resize_modes(model) == [mode, mode]

    def test_carries_no_trace_of_where_it_was_made(self, name: str) -> None:
        model = _load(name)
        assert not model.doc_string and not model.graph.doc_string
        assert not any(node.doc_string for node in model.graph.node)
        for weight in model.graph.initializer:  # numbers could spell anything by chance
            weight.ClearField("raw_data")
        text = model.SerializeToString()
        assert not re.search(rb"/(home|root|tmp|usr|opt|mnt|var|srv|Users)/|[A-Z]:\\|\.py\b|https?:|localhost", text)
        assert str(GOLDEN.parent).encode() not in text

    def test_has_one_contract(self, name: str) -> None:
        entries = tomllib.loads((GOLDEN / "vexlint.toml").read_text("utf-8"))["model"]
        paths = [GOLDEN / entry["path"] for entry in entries]
        assert paths.count(FOLDER / f"{name}.onnx") == 1
        assert len(paths) == len(NAMES)


@pytest.mark.parametrize(("name", "reference"), measure.REFERENCES.items())
def test_onnxruntime_reproduces_what_pytorch_recorded(name: str, reference: str) -> None:
    _needs_onnxruntime()
    found = measure.run(FOLDER / f"{name}.onnx", measure.inputs())
    wanted = measure.recorded()[reference]
    apart = measure.drift(measure.clean_layout(name, found), measure.clean_layout(name, wanted))
    assert apart.box_px < 1e-3
    assert apart.score < 1e-5


def test_the_dynamic_file_takes_other_sizes() -> None:
    _needs_onnxruntime()
    image = scenes.scene(20261, 0, size=640)[0][:320]
    found = measure.run(FOLDER / "dynamic.onnx", np.repeat(scenes.to_input(image), 2, 0))
    assert found.shape == (2, 7, 2 * 2100)


def test_onnxruntime_refuses_the_private_operator() -> None:
    _needs_onnxruntime()
    with pytest.raises(Exception, match=r"shapes.*Mish|Mish.*shapes"):
        measure.run(FOLDER / "custom_mish.onnx", measure.inputs())


def test_the_private_operator_is_mish_and_else_the_file_is_clean() -> None:
    _needs_onnxruntime()
    model = _load("custom_mish")
    body = [
        helper.make_node("Softplus", ["x"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("Mul", ["x", "t"], ["y"]),
    ]
    opsets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("shapes", "Mish", ["x"], ["y"], body, opsets))
    found = measure.run(model.SerializeToString(), measure.inputs())
    apart = measure.drift(found, measure.recorded()["clean"])
    assert apart.box_px < 1e-3
    assert apart.score < 1e-5


def test_the_private_operator_stands_for_each_mish_of_the_backbone() -> None:
    private = [node for node in _load("custom_mish").graph.node if node.domain]
    assert {(node.domain, node.op_type) for node in private} == {("shapes", "Mish")}
    assert len(private) == sum(node.op_type == "Softplus" for node in _load("clean").graph.node) == 7


@pytest.mark.parametrize(("right", "wrong"), [("clean", "align_corners"), ("thin_clean", "thin_align_corners")])
def test_the_wrong_upsampling_moves_detections_by_more_than_a_pixel(right: str, wrong: str) -> None:
    known = measure.recorded()
    a, b = known[right], known[wrong]
    detected = np.minimum(a[:, 4:].max(1), b[:, 4:].max(1)) > 0.5
    moved = np.hypot(a[:, 0] - b[:, 0], a[:, 1] - b[:, 1])[detected]
    assert moved.max() > 1


def test_the_recording_is_worth_comparing_with() -> None:
    known = measure.recorded()
    assert set(known) == {"seed", "indices", *measure.REFERENCES.values()}
    for name in set(measure.REFERENCES.values()):
        scores = measure.clean_layout(name, known[name])[:, 4:]
        assert known[name].dtype == np.float32
        assert len(scores) == len(known["indices"]) == 4
        assert (scores.max((1, 2)) > 0.5).all(), "each scene shows an object that the detector finds"


def test_objectness_times_class_is_the_clean_score() -> None:
    known = measure.recorded()
    rows = known["objectness"]
    apart = measure.drift(measure.clean_layout("objectness", rows), known["clean"])
    assert apart.box_px == 0
    assert apart.score < 1e-6
    assert ((rows[..., 4:] >= 0) & (rows[..., 4:] <= 1)).all()


def test_scenes_are_those_the_weights_were_trained_on() -> None:
    """A change here makes the weights and every figure measured with them meaningless."""
    image, boxes, labels = scenes.scene(20261, 0)
    assert (image.shape, boxes.shape, labels.shape) == ((320, 320, 3), (8, 4), (8,))
    assert [str(array.dtype) for array in (image, boxes, labels)] == ["uint8", "float32", "int64"]
    drawn = hashlib.sha256(b"".join(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in (image, boxes, labels)))
    assert drawn.hexdigest() == "e251e353edac96e4a9b0c63e587c594645f444cdf8d503bda8b16c0860fbcf93"


def test_boxes_hold_their_objects() -> None:
    for index in range(10):
        _, boxes, labels = scenes.scene(20261, index)
        sides = boxes[:, 2:] - boxes[:, :2]
        assert 1 <= len(boxes) == len(labels) <= scenes.MOST_OBJECTS
        assert (boxes[:, :2] >= 1).all() and (boxes[:, 2:] <= 319).all()
        assert (sides.max(1) >= scenes.SMALLEST - 1e-3).all() and (sides.max(1) <= scenes.LARGEST + 1e-3).all()
