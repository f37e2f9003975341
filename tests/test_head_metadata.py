"""VEX508: what metadata and contract say of a head and its NMS, against the file."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support import judge
from tests.test_checks_suppression import EVERY, LIMITS, NUMBERS, found, parsed
from vexlint.checks import head_metadata
from vexlint.config import Contract
from vexlint.nms import graft


def head(rows: int = 6, places: int = 84, side: int = 64, more: str = "", **metadata: str) -> onnx.ModelProto:
    """A v8 head with metadata; `more` is the shape of a second output."""
    second = f", float{more} protos" if more else ""
    model = parsed(f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,3,{side},{side}] images, float[1,4,{places}] boxes, float[1,{rows - 4},{places}] logits{
        second.replace("protos", "masks")
    }) => (float[1,{rows},{places}] output0{second}) {{
      scores = Sigmoid (logits) output0 = Concat <axis = 1> (boxes, scores)
      {"protos = Identity (masks)" if more else ""} }}""")
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    return model


TWO = "{0: 'a', 1: 'b'}"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (head(names=TWO, stride="32", task="detect"), []),
        (head(names="['a', 'b']", stride="32"), []),
        (head(names="['a', 'b', 'c']"), ["names lists 3 classes, but output0 [1,6,84] has rows for 2"]),
        (head(names="['a']", task="detect"), ["names lists 1 class, but output0 [1,6,84] has rows for 2"]),
        (head(names="['a']", task="obb"), []),
        (head(names=TWO, task="obb"), ["names lists 2 classes, but output0 [1,6,84] has rows for 1"]),
        (head(rows=56, names="['person']", task="pose", kpt_shape="[17, 3]"), []),
        (head(rows=56, names=TWO, task="pose", kpt_shape="[17, 3]"),
         ["names lists 2 classes, but output0 [1,56,84] has rows for 1"]),
        (head(rows=56, names="['person']", task="pose"), []),
        (head(rows=38, names=TWO, task="segment", more="[1,32,16,16]"), []),
        (head(rows=38, names="['a']", task="segment", more="[1,32,16,16]"),
         ["names lists 1 class, but output0 [1,38,84] has rows for 2"]),
        (head(rows=38, names=TWO, task="segment"),
         ["the metadata says task segment, but no output holds mask prototypes beside output0 [1,38,84]"]),
        (head(names=TWO, task="classify"),
         ["the metadata says task classify, but output0 [1,6,84] is a detector head"]),
        (head(stride="64"), ["stride is 64, but output0 [1,6,84] has the places of strides 8, 16, 32 on 64 x 64"]),
        (head(stride="16", places=252),
         ["stride is 16, but output0 [1,6,252] has the places of strides 8, 16, 32 on 64 x 64"]),
        (head(stride="32", places=252), []),
        (head(stride="[8, 16, 32]"), []),
        (head(stride="[8, 16, 32, 64]"),
         ["stride is [8, 16, 32, 64], but output0 [1,6,84] has the places of strides 8, 16, 32 on 64 x 64"]),
        (head(stride="64", places=85), []),
        (head(stride="32", places=85),
         ["stride is 32, but output0 [1,6,85] has the places of strides 8, 16, 32, 64 on 64 x 64"]),
        (head(stride="about 32"), []),
        (head(stride="32.0"), []),
    ],
)  # fmt: skip
def test_metadata_against_the_head(model: onnx.ModelProto, expected: list[str], tmp_path: Path) -> None:
    assert [m for c, m in found(model, tmp_path) if c == "VEX508"] == expected


@pytest.mark.parametrize(("stride", "expected"), [("32", 0), ("[8, 16, 32]", 0), ("64", 1), ("[16, 32]", 1)])
def test_strides_of_three_anchors_a_cell(stride: str, expected: int, tmp_path: Path) -> None:
    """A v5 head: 84 cells of 64 x 64, three anchors each."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,3,64,64] images, float[1,192,7] a, float[1,48,7] b, float[1,12,7] c) => (float[1,252,7] output0) {
      joined = Concat <axis = 1> (a, b, c) output0 = Identity (joined) }"""
    model = parsed(text)
    for key, value in {"names": TWO, "stride": stride}.items():
        model.metadata_props.add(key=key, value=value)
    messages = [m for c, m in found(model, tmp_path) if c == "VEX508"]
    assert len(messages) == expected
    assert all("output0 [1,252,7] has the places of strides 8, 16, 32 on 64 x 64" in m for m in messages)


def test_the_check_reads_what_the_command_writes() -> None:
    assert head_metadata.TAIL == graft.KEY


@pytest.mark.parametrize(
    ("model", "task", "expected"),
    [
        (head(task="detect"), "detect", []),
        (head(task="detect"), "other", []),
        (head(task="detect"), "segment", ["task is detect where the contract says segment"]),
        (head(), "segment",
         ["the contract says task segment, but no output holds mask prototypes beside output0 [1,6,84]"]),
        (head(), "classify", ["the contract says task classify, but output0 [1,6,84] is a detector head"]),
        (head(), "detect", []),
    ],
)  # fmt: skip
def test_the_contracts_task(model: onnx.ModelProto, task: str, expected: list[str], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    report = judge(path, Contract("*.onnx", task=task), rules=EVERY)
    assert [(f.severity.value, f.message) for f in report.findings if f.code == "VEX508"] == [
        ("error", m) for m in expected
    ]


CONTRACT_NMS = {"layout": "v8", "score": 0.25, "iou": 0.45, "max_detections": 300}


def suppressing(
    most: int = 300, iou: float = 0.45, low: str = "0.25", behind: str = "y = Identity (sel)", before: str = ""
) -> onnx.ModelProto:
    given = "low" if low else ""
    low_constant = f", float[1] low = {{{low}}}" if low else ""
    return parsed(f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,84,4] boxes, float[1,2,84] raw) => (int64[n,3] y)
    <{NUMBERS}, int64[1] most = {{{most}}}, float[1] iou = {{{iou}}}{low_constant}, float nothing = {{0}}> {{
      {before or "s = Identity (raw)"} sel = NonMaxSuppression (boxes, s, most, iou, {given}) {behind} }}""")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (suppressing(), []),
        (suppressing(iou=0.5), ["the IoU threshold is 0.5 where the contract's nms says 0.45"]),
        (suppressing(low="0.4"), ["the score threshold is 0.4 where the contract's nms says 0.25"]),
        (suppressing(low="0"), ["the score threshold is 0 where the contract's nms says 0.25"]),
        (suppressing(low=""), ["the score threshold is 0 where the contract's nms says 0.25"]),
        (suppressing(low="", before="m = Greater (raw, half) s = Where (m, raw, nothing)"), []),
        (suppressing(100), ["the number of boxes a class is 100 where the contract's nms says 300"]),
        (suppressing(1000), ["the number of boxes a class is 1000 where the contract's nms says 300"]),
        (suppressing(1000, behind="y = Slice (sel, i0, i7, i0)"), []),
    ],
)
def test_the_contracts_nms_against_constants(model: onnx.ModelProto, expected: list[str], tmp_path: Path) -> None:
    messages = found(model, tmp_path, Contract("*.onnx", nms=CONTRACT_NMS))
    assert [m for c, m in messages if c == "VEX508"] == expected
    assert found(model, tmp_path) == []


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("score", "0.25", []),
        ("score", "0.3", ["the tail was made with score 0.3 where the contract says 0.25"]),
        ("iou", "0.5", ["the tail was made with iou 0.5 where the contract says 0.45"]),
        ("max_detections", "100", ["the tail was made with max_detections 100 where the contract says 300"]),
        ("layout", "v5", ["the tail was made with layout v5 where the contract says v8"]),
        ("iou", "a lot", []),
    ],
)
def test_the_contracts_nms_against_a_tail(key: str, value: str, expected: list[str], tmp_path: Path) -> None:
    model = suppressing(iou=0.7)  # the metadata of a tail count, not what else suppresses
    model.metadata_props.add(key=f"vexlint.nms.{key}", value=value)
    messages = found(model, tmp_path, Contract("*.onnx", nms=CONTRACT_NMS))
    assert [m for c, m in messages if c == "VEX508"] == expected


def test_the_attributes_of_a_plugin_and_the_layout_of_a_head_are_compared(tmp_path: Path) -> None:
    model = suppressing()
    plugin = helper.make_node("EfficientNMS_TRT", ["boxes", "raw"], ["n", "b", "s", "c"], domain="TRT",
                              score_threshold=0.25, iou_threshold=0.65, max_output_boxes=100)  # fmt: skip
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.append(plugin)
    model.graph.output.append(helper.make_tensor_value_info("n", TensorProto.INT32, [1, 1]))
    model.opset_import.add(domain="TRT", version=1)
    contract = Contract("*.onnx", nms=CONTRACT_NMS)
    assert [m for c, m in found(model, tmp_path, contract) if c == "VEX508"] == [
        "the IoU threshold is 0.65 where the contract's nms says 0.45",
        "the number of boxes is 100 where the contract's nms says 300",
    ]
    other = Contract("*.onnx", nms={"layout": "v5"})
    assert [m for c, m in found(head(), tmp_path, other) if c == "VEX508"] == [
        "head output0 [1,6,84] is of layout v8, the contract's nms says v5"
    ]


def test_only_the_last_of_several_counts(tmp_path: Path) -> None:
    """Proposals of a first stage are suppressed with numbers of their own."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,84,4] boxes, float[1,1,84] first, float[1,2,84] second) => (int64[n,3] y)
    <{NUMBERS}, float[1] loose = {{0.7}}, {LIMITS}> {{
      some = NonMaxSuppression (boxes, first, most, loose, low) p = Gather <axis = 1> (some, s2)
      b = Gather <axis = 1> (boxes, p) s = Gather <axis = 2> (second, p)
      y = NonMaxSuppression (b, s, most, iou, low) }}"""
    contract = Contract("*.onnx", nms={"score": 0.25, "iou": 0.45, "max_detections": 100})
    assert found(parsed(text), tmp_path, contract) == []
