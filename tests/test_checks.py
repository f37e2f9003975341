"""What the examples of the pages cannot show: geometry against a runtime, heads that are none, files in many forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.support import DETECTOR, codes, judge, load, save
from vexlint.checks import resize
from vexlint.config import Contract, Input, Plugin, Profile
from vexlint.model import heads
from vexlint.model.read import read
from vexlint.values import FileReport, Finding


def only(report: FileReport, code: str) -> Finding:
    (finding,) = [f for f in report.findings if f.code == code]
    return finding


# Resize: where a sample is read


def resized_ramp(length: int, size: int, mode: str) -> list[float]:
    """ONNX Runtime's linear Resize of the ramp 0, 1, 2, …: each output is the position that it was read from."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,1,1,{length}] x) => (float[1,1,1,{size}] y) <int64[4] z = {{1, 1, 1, {size}}}> {{
            y = Resize <mode = "linear", coordinate_transformation_mode = "{mode}"> (x, , , z) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    ramp = np.arange(length, dtype=np.float32).reshape(1, 1, 1, length)
    return [float(v) for v in session.run(None, {"x": ramp})[0].flatten()]


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 90), st.integers(2, 200), st.sampled_from(sorted(resize.MODES)))
def test_positions_are_those_of_onnx_runtime(length: int, size: int, mode: str) -> None:
    mine = [min(max(resize.MODES[mode](x, length, size, size / length), 0.0), length - 1) for x in range(size)]
    assert mine == pytest.approx(resized_ramp(length, size, mode), abs=2e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(2, 150), *[st.sampled_from(sorted(resize.MODES))] * 2)
def test_the_shift_is_the_largest_difference_in_onnx_runtime(length: int, size: int, one: str, other: str) -> None:
    axis = resize.Axis(3, length, size, size / length)
    found = resize._distance(axis, resize.MODES[one], resize.MODES[other])
    pairs = zip(resized_ramp(length, size, one), resized_ramp(length, size, other), strict=True)
    assert found == pytest.approx(max(abs(a - b) for a, b in pairs), abs=4e-4)


UP = """<ir_version: 8, opset_import: ["" : {opset}]>
net (float[1,3,{side},{side}] images) => (float[n,c,h,w] y)
<float[4] s = {{1, 1, 2, 2}}, int64[4] z = {{1, 3, 160, 160}}> {{
  a = MaxPool <kernel_shape = [{k}, {k}], strides = [{k}, {k}]> (images)
  y = Resize <mode = "linear"{mode}> (a{inputs})
}}"""


def up(opset: int = 17, side: int = 640, k: int = 8, mode: str = "align_corners", inputs: str = ", , s") -> str:
    attribute = f', coordinate_transformation_mode = "{mode}"' if mode else ""
    text = UP.format(opset=opset, side=side, k=k, mode=attribute, inputs=inputs)
    unread = "float[4] s = {1, 1, 2, 2}, " if inputs.endswith("z") else ", int64[4] z = {1, 3, 160, 160}"
    return text.replace(unread, "")


def test_the_two_pixels_of_the_story(tmp_path: Path) -> None:
    """2x upsampling of an 80-wide map at stride 8: 0.2469 px of the map, 1.975 px of the image."""
    finding = only(judge(save(up(), tmp_path), Contract("*", resize="half_pixel")), "VEX301")
    assert finding.data["input_px"] == pytest.approx(0.2469, abs=1e-4)
    assert finding.data["image_px"] == pytest.approx(1.975, abs=1e-3)
    assert "0.247 px of its input = 1.97 px of the image (stride 8)" in finding.message


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (up(mode=""), "half_pixel"),  # the schema's default at opset 11 and later
        (
            up(opset=11, inputs=", s, s").replace("float[4] s = {1, 1, 2, 2}", "float[4] s = {1, 1, 2, 2}"),
            "align_corners",
        ),
        (up(opset=10, mode="", inputs=", s"), "asymmetric"),  # Resize-10 has no mode
        (up(opset=9, mode="", inputs=", s").replace("Resize", "Upsample"), "asymmetric"),
        (up(inputs=", , , z"), "align_corners"),
    ],
)
def test_the_mode_of_every_form_of_resize(text: str, mode: str, tmp_path: Path) -> None:
    (node,) = resize.interpolating(load(text, tmp_path))
    assert resize.canonical(node) == mode
    assert [a.scale for a in resize.axes(node)] == [2.0, 2.0]


def test_pytorch_half_pixel_is_half_pixel_but_for_size_one(tmp_path: Path) -> None:
    contract = Contract("*", resize="half_pixel")
    assert codes(judge(save(up(mode="pytorch_half_pixel"), tmp_path), contract)) == []
    to_one = up(mode="pytorch_half_pixel", inputs=", , , z").replace("{1, 3, 160, 160}", "{1, 3, 1, 160}")
    assert codes(judge(save(to_one, tmp_path), contract)) == [("error", "VEX301")]


def test_unknown_lengths_give_the_bound_of_a_long_axis(tmp_path: Path) -> None:
    text = up().replace("float[1,3,640,640]", "float[1,3,h,w]")
    finding = only(judge(save(text, tmp_path), Contract("*", resize="half_pixel")), "VEX301")
    assert finding.data["input_px"] == 0.25
    assert finding.data["image_px"] is None


def test_one_finding_for_all_resizes_of_one_mode() -> None:
    report = judge(DETECTOR / "align_corners.onnx", Contract("*", resize="half_pixel"))
    finding = only(report, "VEX301")
    assert [p.value for p in (finding.place, *finding.more)] == [
        "/neck/up16/Resize_output_0",
        "/neck/up8/Resize_output_0",
    ]
    assert finding.count == 2
    assert finding.data["image_px"] == pytest.approx(7.158, abs=1e-3)


# Operators


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (Plugin("TRT::Fast"), []),
        (Plugin("TRT::Fast", ("tensorrt",)), [("warning", "onnxruntime@1.32.0"), ("warning", "openvino@2026.4.1")]),
        (Plugin("TRT::Fast", ("tensorrt", "onnxruntime", "openvino")), []),
        (Plugin("TRT::Slow"), [("error", None)]),
    ],
)
def test_an_allowed_plugin_is_allowed_where_it_ships(
    plugin: Plugin, expected: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    path = save(
        '<ir_version: 8, opset_import: ["" : 17, "TRT" : 1]> g (float[1] x) => (float[1] y) { y = TRT.Fast (x) }',
        tmp_path,
    )
    report = judge(path, plugins=(plugin,))
    assert [(f.severity.value, f.target) for f in report.findings] == expected


def test_a_named_target_that_refuses_is_an_error(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,3,8,8] x) => (float[N,3,8,8] y) { y = Relu (x) }'
    path = save(text, tmp_path)
    assert codes(judge(path)) == [("warning", "VEX401")]
    assert codes(judge(path, named=("tensorrt",))) == [("error", "VEX401")]
    assert codes(judge(path, named=("onnxruntime",))) == [("info", "VEX401")]


def test_attributes_that_refer_to_a_function_s_caller_are_not_judged(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 20, "f" : 1]>
        g (float[1,3,8,8] x, float[1,4,4,2] grid) => (float[1,3,4,4] y) { y = f.S <mode = "linear"> (x, grid) }
        <domain: "f", opset_import: ["" : 20]> S <mode> (x, grid) => (y) {
            y = GridSample <mode: string = @mode> (x, grid) }"""
    assert codes(judge(save(text, tmp_path))) == [("warning", "VEX109")]


def test_values_that_some_runtimes_run_are_warnings(tmp_path: Path) -> None:
    text = up().replace('"linear"', '"nearest"').replace("align_corners", "tf_half_pixel_for_nn")
    assert codes(judge(save(text, tmp_path))) == [("warning", "VEX106")]


def test_every_node_with_one_fault_is_in_one_finding(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) {
        a = LeakyRelu <aplha = 0.1> (x) b = LeakyRelu <aplha = 0.1> (a) y = LeakyRelu <beta = 0.1> (b) }"""
    report = judge(save(text, tmp_path))
    assert [(f.count, f.place.value) for f in report.findings] == [(2, "a"), (1, "y")]


# Shapes


def net(shape: str) -> str:
    return (
        f'<ir_version: 8, opset_import: ["" : 17]> g (float{shape} images) => (float{shape} y) {{ y = Relu (images) }}'
    )


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("[N,3,8,8]", "batch (axis 0, 'N') is dynamic"),
        ("[1,3,H,W]", "height (axis 2, 'H'), width (axis 3, 'W') are dynamic"),
        ("[1,H,W,3]", "height (axis 1, 'H'), width (axis 2, 'W') are dynamic"),
        ("[1,L,256]", "sequence (axis 1, 'L') is dynamic"),
        ("[1,C,8,8]", "channels (axis 1, 'C') is dynamic"),
    ],
)
def test_axes_are_told_apart(shape: str, said: str, tmp_path: Path) -> None:
    assert only(judge(save(net(shape), tmp_path)), "VEX401").message.startswith(said)


@pytest.mark.parametrize("dim", [-1, 0], ids=["-1", "0"])
def test_negative_and_question_mark_dims_are_dynamic_and_zero_is_not(dim: int, tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(net("[1,3,8,8]"))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = dim
    onnx.save(proto, tmp_path / "m.onnx")
    assert ("VEX401" in [c for _, c in codes(judge(tmp_path / "m.onnx"))]) == (dim == -1)


PROFILE = {"images": Profile((1, 3, 8, 8), (4, 3, 8, 8), (8, 3, 8, 8))}


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (Contract("*", profile=PROFILE), [("info", "VEX401")]),
        (Contract("*", profile=PROFILE, inputs={"images": Input(("N", 3, 8, 8))}), []),
        (Contract("*", inputs={"images": Input(("N", 3, 8, 8))}), [("warning", "VEX401")]),
        (Contract("*", inputs={"images": Input((1, 3, 8, 8))}), [("error", "VEX401")]),
        (Contract("*", inputs={"images": Input((1, 3, 16, 16))}), [("error", "VEX401"), ("error", "VEX402")]),
        (Contract("*", inputs={"images": Input((1, 3, 8))}), [("error", "VEX402"), ("warning", "VEX401")]),
    ],
)
def test_contract_and_profile_decide_over_dynamic_axes(
    contract: Contract, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert codes(judge(save(net("[N,3,8,8]"), tmp_path), contract)) == expected


def test_an_input_that_an_initializer_fills_is_no_input(tmp_path: Path) -> None:
    text = """<ir_version: 3, opset_import: ["" : 9]>
        g (float[1,3] x, float[n,3] w) => (float[1,3] y) <float[1,3] w = {1, 2, 3}> { y = Add (x, w) }"""
    assert codes(judge(save(text, tmp_path))) == []


# Heads


def head_file(folder: Path, rows: int = 84, places: int = 2100, side: int = 320, **metadata: str) -> Path:
    """boxes and sigmoid scores of one level after another, joined."""
    scores = helper.make_node("Sigmoid", ["logits"], ["scores"])
    join = helper.make_node("Concat", ["boxes", "scores"], ["output0"], axis=1)
    inputs = [
        helper.make_tensor_value_info("images", 1, [1, 3, side, side]),
        helper.make_tensor_value_info("boxes", 1, [1, 4, places]),
        helper.make_tensor_value_info("logits", 1, [1, rows - 4, places]),
    ]
    output = helper.make_tensor_value_info("output0", 1, [1, rows, places])
    model = helper.make_model(
        helper.make_graph([scores, join], "g", inputs, [output]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    helper.set_model_props(model, metadata)
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize(
    ("side", "places"),
    [
        (320, 2100),
        (320, 2125),
        (320, 2134),
        (320, 6300),
        (640, 8400),
        (640, 8500),
        (640, 8525),
        (640, 25200),
        (416, 3549),
    ],
)
def test_heads_of_every_set_of_strides_and_anchors(side: int, places: int, tmp_path: Path) -> None:
    (head,) = heads.find(read(head_file(tmp_path, places=places, side=side)))
    assert (head.layout.name, head.classes) == ("v8", 80)


@pytest.mark.parametrize("places", [2099, 300, 100, 4200 + 1])
def test_a_number_of_places_that_no_grid_has_is_no_head(places: int, tmp_path: Path) -> None:
    assert heads.find(read(head_file(tmp_path, places=places))) == []


def test_metadata_counts_the_classes_where_masks_follow(tmp_path: Path) -> None:
    names = str({i: f"c{i}" for i in range(80)})
    (head,) = heads.find(read(head_file(tmp_path, rows=116, names=names, task="segment")))
    assert head.classes == 80
    (head,) = heads.find(read(head_file(tmp_path, rows=116, task="segment")))
    assert head.classes is None
    assert "class scores and more" in str(head)


@pytest.mark.parametrize("names", ["__import__('os').abort()", "[" * 10000, "{", "3", ""])
def test_metadata_is_never_executed(names: str, tmp_path: Path) -> None:
    (head,) = heads.find(read(head_file(tmp_path, names=names)))
    assert head.classes == 80


# NMS arguments

NMS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,50,4] b, float[1,2,50] s, int64[1] run_time) => (int64[n,3] y)
<int64[1] m = {{{most}}}, float[1] i = {{{iou}}}, float[1] low = {{0.25}}> {{
  y = NonMaxSuppression (b, s, {m}, {i}, low) }}"""


@pytest.mark.parametrize(
    ("most", "iou", "m", "i", "expected"),
    [
        ("100", "0.45", "m", "i", []),
        ("100", "0.45", "run_time", "i", []),
        ("0", "0.45", "m", "i", ["error"]),
        ("100", "0.45", "", "i", ["error"]),
        ("100", "0.45", "m", "", ["warning"]),
        ("100", "1.5", "m", "i", ["error"]),
        ("9223372036854775807", "0.45", "m", "i", ["info"]),
        ("100", "0", "m", "i", []),
    ],
)
def test_nms_arguments(most: str, iou: str, m: str, i: str, expected: list[str], tmp_path: Path) -> None:
    report = judge(save(NMS.format(most=most, iou=iou, m=m, i=i), tmp_path))
    assert [f.severity.value for f in report.findings if f.code == "VEX502"] == expected


# External data


def external_file(folder: Path, location: str = "w.bin", payload: int = 16, **record: str) -> Path:
    tensor = numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **record}.items():
        tensor.external_data.add(key=key, value=value)
    node = helper.make_node("Constant", [], ["c"], value=tensor)
    end = helper.make_node("Add", ["x", "c"], ["y"])
    values = [helper.make_tensor_value_info(n, 1, [4]) for n in "xy"]
    graph = helper.make_graph([node, end], "g", values[:1], values[1:])
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    (folder / "sub").mkdir()
    (folder / "w.bin").write_bytes(b"\0" * payload)
    return path


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, None),
        ({"offset": "0", "length": "16"}, None),
        ({"payload": 15}, "is too short: 15 bytes, needed up to 16"),
        ({"offset": "8"}, "is too short: 16 bytes, needed up to 24"),
        ({"offset": "0", "length": "12"}, "gives 12 bytes to a tensor that needs 16"),
        ({"location": "v.bin"}, "is missing"),
        ({"location": "/w.bin"}, "is an absolute path"),
        ({"location": "C:\\w.bin"}, "is an absolute path"),
        ({"location": "../w.bin"}, "lies outside the model's folder"),
        ({"location": "sub/../w.bin"}, None),
        ({"offset": "x"}, "no number"),
        ({"offset": "-4"}, "negative"),
        ({"location": ""}, "has no location"),
    ],
)
def test_external_data(given: dict[str, object], said: str | None, tmp_path: Path) -> None:
    found = judge(external_file(tmp_path, **given)).findings  # type: ignore[arg-type]
    assert [f.code for f in found] == (["VEX711"] if said else [])
    assert said is None or said in found[0].message


def test_stripped_weights_are_not_external(tmp_path: Path) -> None:
    assert codes(judge(DETECTOR / "clean.onnx")) == [("info", "VEX501")]
