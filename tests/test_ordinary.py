"""What people see on ordinary exports with no configuration at all: few lines, each true, and no false alarm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests import ordinary as o
from tests.support import codes, judge
from vexlint import targets
from vexlint.config import Contract
from vexlint.report import text
from vexlint.values import FileReport, Report

Builder = Callable[[], onnx.ModelProto]
OPEN, HEAD, CORNERS = ("warning", "VEX401"), ("info", "VEX501"), ("info", "VEX301")
P2O_IN = ("p2o.DynamicDimension.0", 3, "p2o.DynamicDimension.1", "p2o.DynamicDimension.2")
P2O_OUT = ("p2o.DynamicDimension.3", 1, "p2o.DynamicDimension.4", "p2o.DynamicDimension.5")


def check(build: Builder, folder: Path, contract: Contract | None = None) -> FileReport:
    path = folder / "model.onnx"
    onnx.save(build(), path)
    return judge(path, contract)


def said(report: FileReport) -> str:
    """Everything a person reads of the findings, one line each."""
    rows = [f"{f.severity.value} {f.code} x{f.count} {f.message} -> {f.help}" for f in report.findings]
    return "\n".join([*rows, report.reason or ""])


def default(runtime: str) -> str:
    return next(str(t) for t in targets.resolve([])[0] if t.runtime == runtime)


# --- the three promises ----------------------------------------------------------------------------------------------


def test_a_static_yolov8_gets_one_info(tmp_path: Path) -> None:
    report = check(o.yolov8, tmp_path)
    (finding,) = report.findings
    assert codes(report) == [HEAD]
    assert finding.message == (
        "detector head output0 [1,84,2100] (layout v8: 4 box rows, 80 classes): NMS is outside the graph"
    )
    assert f"vexlint nms {report.path} -o OUT" in finding.help
    assert "\n0 errors, 0 warnings, 1 info in 1 file\n" in text.render(Report((report,), ()))


def test_a_text_detector_of_open_size_gets_one_warning(tmp_path: Path) -> None:
    report = check(o.text_detector, tmp_path)
    (finding,) = report.findings
    assert codes(report) == [OPEN]
    assert finding.message == (
        "batch (axis 0), height (axis 2), width (axis 3) are dynamic, through to sigmoid_0.tmp_0 [?,1,?,?]; "
        f"{default('tensorrt')} builds no engine without an optimization profile, {default('onnxruntime')} and "
        f"{default('openvino')} take it without"
    )
    assert (finding.place.name, finding.target) == ("x", default("tensorrt"))


def test_a_two_stage_detector_gets_a_handful_of_true_lines(tmp_path: Path) -> None:
    report = check(o.faster_rcnn, tmp_path)
    assert len(report.findings) <= 5
    assert set(codes(report)) == {OPEN, ("info", "VEX502")}
    dynamic, limits = report.findings
    assert "(axis 1, 'height')" in dynamic.message
    assert "(axis 2, 'width') are dynamic, through to boxes [Concatboxes_dim_0,4], labels" in dynamic.message
    places = [limits.place, *limits.more]
    assert [p.name for p in places] == ["/rpn/NonMaxSuppression", "/roi_heads/NonMaxSuppression"]
    assert all(p.graph.endswith("/else_branch") for p in places)
    assert "so large that it is no limit" in limits.message


# --- a list of the rest: what it is, what is said ---------------------------------------------------------------------

ORDINARY: dict[str, tuple[Builder, list[tuple[str, str]]]] = {
    "yolov8": (o.yolov8, [HEAD]),
    "yolov8, dynamic": (lambda: o.yolov8(dynamic=True), [OPEN, HEAD]),
    "yolov8, one class": (lambda: o.yolov8(classes=1), [HEAD]),
    "yolov8, 384 x 640": (lambda: o.yolov8(size=(384, 640)), [HEAD]),
    "yolov8-seg": (lambda: o.yolov8("segment"), [HEAD]),
    "yolov8-seg, dynamic": (lambda: o.yolov8("segment", dynamic=True), [OPEN, HEAD]),
    "yolov8-pose": (lambda: o.yolov8("pose", 1), [HEAD]),
    "yolov8-obb": (lambda: o.yolov8("obb", 15), [HEAD]),
    "yolov8-p6": (lambda: o.plain_head((8, 16, 32, 64)), [HEAD]),
    "yolov5": (o.yolov5, [HEAD]),
    "yolov10": (o.end_to_end, []),
    "text detector": (o.text_detector, [OPEN]),
    "text detector, linear": (lambda: o.text_detector(P2O_IN, P2O_OUT, "linear"), [OPEN]),
    "text detector, fixed": (lambda: o.text_detector((1, 3, 320, 320), (1, 1, 320, 320)), []),
    "faster rcnn, fixed": (lambda: o.faster_rcnn(dynamic=False), [("info", "VEX502")]),
    "classifier": (o.classifier, []),
    "classifier, open batch": (lambda: o.classifier("batch"), [OPEN]),
    "segmentation": (o.segmenter, []),
    "segmentation, open size": (lambda: o.segmenter(size="open"), [OPEN]),
    "segmentation, align_corners": (lambda: o.segmenter("align_corners"), [CORNERS]),
    "vision transformer": (o.transformer, []),
    "vision transformer, open batch": (lambda: o.transformer("batch"), [OPEN]),
}


@pytest.mark.parametrize(("build", "expected"), ORDINARY.values(), ids=list(ORDINARY))
def test_ordinary_exports(build: Builder, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    report = check(build, tmp_path)
    assert list(dict.fromkeys(codes(report))) == expected
    assert report.status == "checked"


def test_the_second_output_of_a_segmenting_detector_is_no_head(tmp_path: Path) -> None:
    (finding,) = check(lambda: o.yolov8("segment"), tmp_path).findings
    assert finding.place.name == "output0"
    assert "[1,116,2100] (layout v8: 4 box rows, 80 classes)" in finding.message


# --- what has been said wrongly once ---------------------------------------------------------------------------------

Claim = Callable[[str], bool]
CORNERS_CONTRACT = Contract("*", resize="half_pixel")


def without(part: str) -> Claim:
    return lambda lines: part not in lines


ONCE_WRONG: dict[str, tuple[Builder, Claim, str]] = {
    "landmarks": (o.retina_face, without("VEX501"), "RetinaFace's landmarks are called a v5 head of 5 classes"),
    "scores alone": (o.separate_scores, without("VEX501"), "FCOS/RTMDet class scores are called a v5 head"),
    "scores alone, turned": (
        lambda: o.separate_scores(turned=True), without("VEX501"), "PP-YOLOE class scores are called a v8 head",
    ),
    "no objectness": (
        o.boxes_and_scores, without("objectness"), "[boxes 4 | scores 80] are called objectness and 79 classes",
    ),
    "undecoded": (o.yolox, without("vexlint nms"), "YOLOX's boxes are undecoded: NMS on them is wrong"),
    "classes first": (o.nanodet, without("4 box columns"), "NanoDet's rows are classes, then undecoded bins"),
    "rotated": (lambda: o.yolov8("obb", 15), without("vexlint nms"), "upright NMS is wrong for rotated boxes"),
    "one pixel": (o.pooled_context, without("VEX301"), "a Resize of one pixel is reported with a shift of 0.000 px"),
    "one pixel, mixed": (o.pooled_context, without("VEX302"), "a Resize of one pixel counts as another convention"),
    "position table": (o.position_table, without("VEX302"), "a Resize of weights is 'behind' a Conv by its sizes"),
    "chw": (o.faster_rcnn, without("sequence"), "height of a CHW image is called sequence"),
    "state": (o.recurrent, without("sequence (axis 1, 'batch')"), "an axis named batch is called sequence"),
    "one cause": (o.faster_rcnn, lambda lines: "VEX502 x2" in lines, "two NMS with one cause are two findings"),
    "int64 max": (o.faster_rcnn, without("e+18"), "the largest int64 is printed as 9.22337e+18"),
    "plugin in the default domain": (
        o.plugin_nms, without("no runtime can know"), "TensorRT runs EfficientNMS_TRT, which its own scripts write so",
    ),
    "dropped operator": (
        o.early_preprocessing, without("no runtime can know"), "ONNX Runtime runs ImageScaler below opset 10",
    ),
    "runtime's own operators": (o.runtime_quantized, without("error"), "ONNX Runtime is a target and runs them"),
    "quantized head": (
        lambda: o.quantized(o.yolov8()), lambda lines: "VEX501" in lines, "a head behind QuantizeLinear is not seen",
    ),
    "stride 4": (lambda: o.plain_head((4, 8, 16, 32)), lambda lines: "VEX501" in lines, "P2 heads are not seen"),
    "camera": (
        lambda: o.plain_head((8, 16, 32), camera=(720, 1280)),
        lambda lines: "VEX501" in lines,
        "a head behind preprocessing in the graph is not seen, although metadata names its classes",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("build", "claim", "why"), ONCE_WRONG.values(), ids=list(ONCE_WRONG))
def test_what_was_said_wrongly_once(build: Builder, claim: Claim, why: str, tmp_path: Path) -> None:
    assert claim(said(check(build, tmp_path))), why


def test_a_resize_of_one_pixel_contradicts_no_contract(tmp_path: Path) -> None:
    assert codes(check(o.pooled_context, tmp_path, CORNERS_CONTRACT)) == []


def test_a_download_cache_of_links_is_no_foreign_folder(tmp_path: Path) -> None:
    """A hub's cache links the model and its data to blobs side by side. OpenVINO and onnx.checker refuse that."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    model = o.classifier()
    onnx.save(model, blobs / "aaaa", save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    (blobs / "model.onnx_data").rename(blobs / "bbbb")
    for name, blob in (("model.onnx", "aaaa"), ("model.onnx_data", "bbbb")):
        (snapshot / name).symlink_to(blobs / blob)
    assert "ONNX Runtime refuses" not in said(judge(snapshot / "model.onnx"))


# --- the rebuilt exports are what they claim -------------------------------------------------------------------------

Run = Callable[[Path, dict[str, Any]], list[np.ndarray[Any, Any]]]
REFUSED = (o.plugin_nms, o.early_preprocessing)  # outside the standard on purpose
BUILDERS = {
    **{name: build for name, (build, _) in ORDINARY.items()},
    **{name: build for name, (build, _, _) in ONCE_WRONG.items() if build not in REFUSED},
    "faster rcnn": o.faster_rcnn,
}


def onnxruntime(path: Path, feeds: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    found: list[np.ndarray[Any, Any]] = runtime.InferenceSession(path, options).run(None, feeds)
    return found


def openvino(path: Path, feeds: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    runtime = pytest.importorskip("openvino", reason="openvino is not installed: pip install openvino")
    model = runtime.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(model(feeds).values())


@pytest.mark.parametrize("build", BUILDERS.values(), ids=list(BUILDERS))
def test_a_rebuilt_export_is_valid_and_runs(build: Builder, tmp_path: Path) -> None:
    model = build()
    onnx.checker.check_model(model, full_check=True)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    sizes = {"batch": 1}
    feeds = {}
    for entry in model.graph.input:
        dims = [
            d.dim_value if d.dim_value > 0 else sizes.get(d.dim_param, 64) for d in entry.type.tensor_type.shape.dim
        ]
        feeds[entry.name] = np.zeros(dims, onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type))
    for output, entry in zip(onnxruntime(path, feeds), model.graph.output, strict=True):
        declared = [d.dim_value for d in entry.type.tensor_type.shape.dim]
        assert all(size == wanted for size, wanted in zip(output.shape, declared, strict=True) if wanted > 0)


@pytest.mark.parametrize("run", [onnxruntime, openvino])
@pytest.mark.parametrize(
    ("build", "shapes"),
    [
        (lambda: o.yolov8(dynamic=True), [(1, 3, 320, 320), (2, 3, 192, 320)]),
        (o.text_detector, [(1, 3, 64, 64), (2, 3, 64, 96)]),
        (o.faster_rcnn, [(3, 240, 320), (3, 200, 150)]),
        (lambda: o.transformer("batch"), [(1, 3, 224, 224), (2, 3, 224, 224)]),
    ],
    ids=["yolov8", "text detector", "faster rcnn", "vision transformer"],
)
def test_runtimes_run_what_the_finding_says_they_run(
    run: Run, build: Builder, shapes: Sequence[tuple[int, ...]], tmp_path: Path
) -> None:
    model = build()
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    for shape in shapes:
        image = np.random.default_rng(1).random(shape, np.float32)
        outputs = run(path, {model.graph.input[0].name: image})
        assert all(output.size for output in outputs)
