"""`verify` from end to end: proofs that hold, faults that show, and everything that must not pass for a proof."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import typer
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "golden_models"))
from shapes_detector import measure, scenes

from tests import scratch
from tests.support import DETECTOR, ROOT, save
from tests.test_runtimes import endless
from vexlint import config
from vexlint.commands import verify as command
from vexlint.config import Config, Contract
from vexlint.outcomes import Comparison, Drift, Proof, Ran, SetDrift, SetLimits, Shift
from vexlint.report import drift_json, drift_text
from vexlint.report.text import WIDTH
from vexlint.values import VexlintError
from vexlint.verify import compare, proof, recordings
from vexlint.verify.proof import Request, prove

CLEAN, WRONG = DETECTOR / "clean.onnx", DETECTOR / "align_corners.onnx"
GOLDEN = config.load(ROOT / "golden_models" / "vexlint.toml")
SCENES = 200

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")


def needs_openvino() -> None:
    pytest.importorskip("openvino", reason="openvino is not installed: pip install openvino")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The held-out scenes, as .npy, which needs no Pillow."""
    folder = tmp_path_factory.mktemp("scenes")
    for index in range(SCENES):
        np.save(folder / f"scene{index:03}.npy", scenes.scene(20261, index)[0])
    return folder


@pytest.fixture(scope="module")
def few(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first six of them: no multiple of four."""
    folder = tmp_path_factory.mktemp("few")
    for path in sorted(pictures.iterdir())[:6]:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def verified(reference: Path, candidate: Path, known: Config = GOLDEN, **request: Any) -> Proof:
    return proof.verify(reference, candidate, Request(**request), known)


def model(body: str, folder: Path, name: str = "model.onnx", inputs: str = "float[1,3,8,8] x") -> Path:
    """A model of one output from a few lines of ONNX text."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (float[1,3,8,8] y) {{ {body} }}"""
    return save(text, folder, name)


class TestAcceptance:
    """The detector on 200 scenes it has never seen."""

    def test_the_clean_model_computes_the_same_in_onnxruntime_and_openvino(self, pictures: Path) -> None:
        needs_openvino()
        found = verified(CLEAN, CLEAN, runtimes=("openvino",), images=pictures)
        (comparison,) = found.comparisons
        assert (found.status, comparison.samples) == ("proven", SCENES)
        assert comparison.sets is not None
        assert comparison.sets.matched > 800
        assert comparison.sets.iou_drift < 1e-4
        assert (comparison.sets.missing, comparison.sets.extra, comparison.sets.class_match) == (0, 0, 1)
        assert found.ran is not None
        assert comparison.ran is not None
        assert (found.ran.runtime, found.ran.device) == ("onnxruntime", "CPUExecutionProvider")
        assert (comparison.ran.runtime, comparison.ran.detail) == ("openvino", "f32")
        text = " ".join(drift_text.render(found).split())
        assert f"{SCENES} images, {comparison.sets.matched} detections matched, max IoU drift " in text
        assert "(limit 0.001), class match 100 %, max centre shift " in text
        assert " px: PASS" in text

    def test_the_wrong_upsampling_fails_with_the_shift_by_size_of_object(self, pictures: Path) -> None:
        found = verified(CLEAN, WRONG, images=pictures)
        sets = found.comparisons[0].sets
        assert found.status == "drifts"
        assert sets is not None
        shifts = {str(s): s for s in sets.sizes}
        assert list(shifts)[-4:] == ["8-16 px", "16-32 px", "32-64 px", "64 px and more"]
        assert shifts["8-16 px"].median > 0.5
        assert shifts["16-32 px"].largest > 2
        assert shifts["64 px and more"].median < 0.1, "large objects come from a map that is not upsampled"
        assert sets.iou_drift > 0.1
        text = drift_text.render(found)
        assert "FAIL" in text
        assert "16-32 px" in text


class TestDetectors:
    @pytest.mark.parametrize("name", ["batch4", "objectness", "opset11", "dynamic"])
    def test_variants_that_detect_the_same_are_proven(self, name: str, few: Path) -> None:
        for pair in ((CLEAN, DETECTOR / f"{name}.onnx"), (DETECTOR / f"{name}.onnx", CLEAN)):
            found = verified(*pair, images=few)
            assert found.status == "proven"
            assert found.comparisons[0].samples == 6
            sets = found.comparisons[0].sets
            assert sets is not None
            assert sets.iou_drift < 1e-6
            assert sets.missing == sets.extra == 0

    def test_suppression_inside_the_candidate_is_compared_with_ours(self, few: Path, tmp_path: Path) -> None:
        found = verified(CLEAN, with_nms(tmp_path), images=few)
        assert found.status == "proven"
        assert found.comparisons[0].sets is not None
        assert found.comparisons[0].sets.matched > 20

    def test_nothing_detected_proves_nothing(self, tmp_path: Path) -> None:
        np.save(tmp_path / "grey.npy", np.full((320, 320, 3), 128, np.uint8))
        found = verified(CLEAN, CLEAN, images=tmp_path)
        assert found.status == "not proven"
        assert found.comparisons[0].reason == "nothing compared: neither side detects anything above score 0.25"

    def test_one_score_for_all_proves_nothing(self, tmp_path: Path) -> None:
        candidate = tied(tmp_path)
        found = verified(candidate, candidate, samples=2)
        assert found.status == "not proven"
        assert "all detections of the reference have one and the same score, 0.5" in found.comparisons[0].reason
        assert "noise shows no objects: give --images FOLDER" in found.comparisons[0].reason

    def test_raw_judges_the_tensors_alone(self) -> None:
        found = verified(CLEAN, WRONG, raw=True, samples=1)
        assert (found.status, found.comparisons[0].sets) == ("drifts", None)

    def test_a_detector_of_an_unknown_layout_is_not_judged_by_tensors_alone(self, tmp_path: Path) -> None:
        candidate = model("y = Relu(x)", tmp_path)
        known = Config(folder=tmp_path, models=(Contract(path="*.onnx", task="detect"),))
        with pytest.raises(VexlintError, match="are no detections of a layout that verify knows: name it with nms"):
            verified(candidate, candidate, known)
        assert verified(candidate, candidate, known, raw=True).status == "proven"

    def test_a_nan_fails_though_the_sets_agree(self, few: Path, tmp_path: Path) -> None:
        """Behind the last detection nobody looks, but a NaN there is a fault."""
        candidate = onnx.load(CLEAN)
        candidate.graph.node[-1].output[0] = "whole"
        nan = numpy_helper.from_array(np.full((1, 7, 1), np.nan, np.float32), "nan")
        candidate.graph.initializer.append(nan)
        for name, values in (("from", [0]), ("to", [2099]), ("axis", [2])):
            candidate.graph.initializer.append(numpy_helper.from_array(np.array(values), name))
        candidate.graph.node.append(helper.make_node("Slice", ["whole", "from", "to", "axis"], ["most"]))
        candidate.graph.node.append(helper.make_node("Concat", ["most", "nan"], ["output0"], axis=2))
        onnx.save(candidate, tmp_path / "nan.onnx")
        known = replace(GOLDEN, folder=tmp_path, models=(replace(GOLDEN.models[0], path="*.onnx"),))
        found = verified(CLEAN, tmp_path / "nan.onnx", known, images=few)
        assert found.status == "drifts"
        assert found.comparisons[0].drifts[0].nonfinite == 6 * 7


def with_nms(folder: Path) -> Path:
    """The clean detector with non-maximum suppression inside: boxes, scores and labels of one picture."""
    made = onnx.load(CLEAN)
    made.graph.node[-1].output[0] = "head"
    del made.graph.output[:]
    constants = {
        "half": np.array(0.5, np.float32), "four": np.array([4]), "six": np.array([7]), "zero": np.array([0]),
        "two": np.array([2]), "one": np.array([1]), "most": np.array([300]), "iou": np.array([0.45], np.float32),
        "score": np.array([0.25], np.float32), "last": np.array([2]), "flat": np.array([-1]),
    }  # fmt: skip
    made.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in constants.items())
    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Slice", ["head", "zero", "two", "one"], "centre", {}),
        ("Slice", ["head", "two", "four", "one"], "size", {}),
        ("Slice", ["head", "four", "six", "one"], "classes", {}),
        ("Mul", ["size", "half"], "reach", {}),
        ("Sub", ["centre", "reach"], "low", {}),
        ("Add", ["centre", "reach"], "high", {}),
        ("Concat", ["low", "high"], "corners", {"axis": 1}),
        ("Transpose", ["corners"], "rows", {"perm": [0, 2, 1]}),
        ("ReduceMax", ["classes"], "best", {"axes": [1], "keepdims": 1}),
        ("ArgMax", ["classes"], "label", {"axis": 1, "keepdims": 0}),
        ("Equal", ["classes", "best"], "is_best", {}),
        ("Cast", ["is_best"], "plane", {"to": TensorProto.FLOAT}),
        ("Mul", ["classes", "plane"], "planes", {}),
        ("NonMaxSuppression", ["rows", "planes", "most", "iou", "score"], "chosen", {}),
        ("Gather", ["chosen", "last"], "column", {"axis": 1}),
        ("Reshape", ["column", "flat"], "index", {}),
        ("Squeeze", ["rows", "zero"], "rows_of_one", {}),
        ("Gather", ["rows_of_one", "index"], "boxes", {"axis": 0}),
        ("Reshape", ["best", "flat"], "best_of_one", {}),
        ("Gather", ["best_of_one", "index"], "scores", {"axis": 0}),
        ("Reshape", ["label", "flat"], "label_of_one", {}),
        ("Gather", ["label_of_one", "index"], "labels", {"axis": 0}),
    ]
    made.graph.node.extend(helper.make_node(op, i, [o], **attributes) for op, i, o, attributes in steps)
    for name, kind, shape in (("boxes", 1, [None, 4]), ("scores", 1, [None]), ("labels", 7, [None])):
        made.graph.output.append(helper.make_tensor_value_info(name, kind, shape))
    onnx.save(made, folder / "with_nms.onnx")
    return folder / "with_nms.onnx"


def tied(folder: Path) -> Path:
    """A selection of five boxes with one score whatever it looks at, but with other outputs that change."""
    rows = np.tile(np.array([0, 0, 9, 9, 0.5, 1], np.float32), (1, 5, 1)) + np.arange(5)[None, :, None] * [
        1,
        1,
        1,
        1,
        0,
        0,
    ]
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,3,8,8] x) => (float[1,5,6] y)
        { m = ReduceMean<keepdims = 0>(x) z = Sub(m, m) y = Add(rows, z) }"""
    values = ", ".join(map(str, rows.ravel()))
    return save(text.replace("{", f"<float[1,5,6] rows = {{{values}}}> {{", 1), folder)


class TestTensors:
    def test_equal_models_are_proven_on_noise(self, tmp_path: Path) -> None:
        one, other = (
            model("y = Relu(x)", tmp_path),
            model("z = Abs(x) w = Add(x, z) c = Constant<value_float=0.5>() y = Mul(w, c)", tmp_path, "other.onnx"),
        )
        found = verified(one, other, Config())
        assert (found.status, found.unit, found.origin) == ("proven", "noise sample", "seed 0")
        assert found.comparisons[0].samples == proof.NOISE

    def test_drift_is_told_with_the_worst_sample(self, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        other = model("c = Constant<value_float=1.01>() y = Mul(x, c)", tmp_path, "other.onnx")
        (found,) = verified(one, other, Config()).comparisons
        assert found.status == "drifts"
        assert found.drifts[0].max_abs == pytest.approx(0.01, rel=0.1)
        assert found.drifts[0].worst.startswith("noise ")

    def test_precision_of_the_contract_sets_the_limit(self, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        other = model("c = Constant<value_float=1.001>() y = Mul(x, c)", tmp_path, "other.onnx")
        half = Config(folder=tmp_path, models=(Contract(path="other.onnx", precision="fp16"),))
        assert verified(one, other, Config()).status == "drifts"
        assert verified(one, other, half).status == "proven"

    @pytest.mark.parametrize("body", ["y = Log(x)", "z = Neg(x) y = Sqrt(z)"])
    def test_nan_and_infinity_fail_even_where_both_sides_have_them(self, body: str, tmp_path: Path) -> None:
        known = Config(folder=tmp_path, models=(Contract(path="*.onnx", preprocessing={"scale": 255}),))
        one = model(body, tmp_path)  # black pixels have no logarithm
        (found,) = verified(one, one, known, samples=8).comparisons
        assert found.status == "drifts"
        assert found.drifts[0].nonfinite > 0
        assert "NaN or infinite" in drift_text.render(verified(one, one, known))

    def test_one_number_throughout_proves_nothing(self, tmp_path: Path) -> None:
        one = model("y = Sub(x, x)", tmp_path)
        found = verified(one, one, Config())
        assert found.status == "not proven"
        assert "one and the same number throughout" in found.comparisons[0].reason

    def test_outputs_of_other_shapes_are_not_compared(self, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        other = model("y = ReduceMax<axes = [3]>(x)", tmp_path, "other.onnx")
        (found,) = verified(one, other, Config()).comparisons
        assert found.status == "not proven"
        assert "y shapes differ: [1, 3, 8, 8] and [1, 3, 8, 1]" in found.reason

    def test_an_output_that_is_not_there_is_not_compared(self, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,3,8,8] x) => (float[1,3,8,8] y, float[1,3,8,8] z)
            { y = Relu(x) z = Neg(x) }"""
        (found,) = verified(one, save(text, tmp_path, "two.onnx"), Config()).comparisons
        assert (found.status, "z only in the candidate" in found.reason) == ("not proven", True)

    def test_a_half_input_gets_the_same_numbers_rounded(self, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        other = model("y = Cast<to = 1>(x)", tmp_path, "half.onnx", "float16[1,3,8,8] x")
        half = Config(folder=tmp_path, models=(Contract(path="half.onnx", precision="fp16"),))
        (found,) = verified(one, other, half).comparisons
        assert found.status == "proven"
        assert 1e-5 < found.drifts[0].max_abs < 1e-3

    def test_inputs_that_take_different_numbers_are_an_error(self, tmp_path: Path) -> None:
        one, other = model("y = Relu(x)", tmp_path), model("y = Relu(x)", tmp_path, "b.onnx", "float[1,3,8,9] x")
        with pytest.raises(VexlintError, match="no sample can go to both"):
            verified(one, other, Config())

    def test_several_inputs_are_fed(self, tmp_path: Path) -> None:
        one = model("y = Mul(x, k)", tmp_path, inputs="float[1,3,8,8] x, float[1] k")
        assert verified(one, one, Config()).status == "proven"


def floats(values: list[float]) -> Any:
    return np.array(values, np.float32)


class TestCompare:
    def drift(self, a: Any, b: Any, limit: float = 1e-4) -> Drift:
        tensors = compare.Tensors(limit)
        tensors.add({"y": np.asarray(a)}, {"y": np.asarray(b)}, "one")
        return tensors.drifts()[0]

    def test_small_numbers_beside_large_ones_are_held_to_one(self) -> None:
        found = self.drift(floats([300, 0.001]), floats([300.003, 0.00105]))
        assert found.max_rel == pytest.approx(5e-5, rel=1e-2)
        assert found.passed

    def test_a_tensor_of_small_numbers_is_held_to_its_own_scale(self) -> None:
        found = self.drift(floats([0.01, 0.02]), floats([0.011, 0.02]))
        assert found.max_rel == pytest.approx(0.05, rel=1e-3)
        assert not found.passed

    def test_probabilities_of_almost_nothing_are_held_to_a_millionth(self) -> None:
        """A sigmoid near 0 is right to some 1e-7: text detectors give nothing else on noise."""
        assert self.drift(floats([1e-5, 2e-5]), floats([1.02e-5, 2e-5])).passed
        assert not self.drift(floats([1e-5, 2e-5]), floats([1.2e-5, 2e-5])).passed

    def test_something_may_not_come_of_nothing(self) -> None:
        assert self.drift(np.zeros(3), np.zeros(3)).passed
        assert not self.drift(np.zeros(3, np.float32), np.full(3, 2e-6, np.float32)).passed

    @pytest.mark.parametrize("kind", [np.int64, np.uint8, bool])
    def test_whole_numbers_are_equal_or_not(self, kind: Any) -> None:
        assert self.drift(np.array([0, 1], kind), np.array([0, 1], kind)).passed
        assert not self.drift(np.array([0, 1], kind), np.array([1, 1], kind), limit=10).passed

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("side", ["reference", "candidate", "both"])
    def test_what_is_not_finite_is_counted_and_the_rest_compared(self, bad: float, side: str) -> None:
        a, b = floats([1, 2, 3]), floats([1, 2, 3.3])
        if side != "candidate":
            a[0] = bad
        if side != "reference":
            b[0] = bad
        found = self.drift(a, b)
        assert (found.nonfinite, found.passed) == (1, False)
        assert found.max_abs == pytest.approx(0.3, rel=1e-4)

    def test_long_tensors_are_compared_to_the_end(self) -> None:
        a = np.random.default_rng(0).random(3 * compare.BLOCK + 5, np.float32) + 1
        b = a.copy()
        b[-1] += np.float32(0.5)
        assert self.drift(a, b).max_abs == pytest.approx(0.5, rel=1e-4)


class TestRuntimes:
    def test_a_missing_one_is_not_run_and_the_others_are(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        find_spec = importlib.util.find_spec
        monkeypatch.setattr("importlib.util.find_spec", lambda n: None if n == "tensorrt" else find_spec(n))
        found = verified(one, one, Config(), runtimes=("onnxruntime", "tensorrt"))
        assert [c.status for c in found.comparisons] == ["proven", "not proven"]
        assert found.status == "not proven"
        assert found.comparisons[1].reason.startswith("not run: tensorrt is not installed: pip install")
        text = drift_text.render(found)
        assert "tensorrt: NOT PROVEN" in text
        assert text.endswith("candidate: tensorrt did not run\n")

    def test_without_the_reference_nothing_is_proven(self, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        found = verified(DETECTOR / "custom_mish.onnx", CLEAN, GOLDEN)
        assert found.status == "not proven"
        assert found.comparisons[0].reason.startswith("without a reference: onnxruntime refuses custom_mish")
        assert verified(one, one, Config()).status == "proven"

    def test_a_candidate_that_hangs_does_not_take_the_run_down(self, tmp_path: Path) -> None:
        found = verified(endless(tmp_path), endless(tmp_path), Config(), deadline=1.0)
        assert found.status == "not proven"
        assert "did not end running loop.onnx on noise 0 within 1 s" in found.comparisons[0].reason

    def test_an_unknown_runtime_is_an_error(self) -> None:
        with pytest.raises(VexlintError, match="unknown runtime 'openvinno'"):
            verified(CLEAN, CLEAN, runtimes=("openvinno",))

    def test_a_provider_that_is_not_there_is_not_run(self, tmp_path: Path) -> None:
        one = model("y = Relu(x)", tmp_path)
        found = verified(one, one, Config(), provider="rocm")
        assert found.comparisons[0].reason.startswith("not run: ONNX Runtime knows no provider 'rocm'")
        named = verified(one, one, Config(), runtimes=("onnxruntime", "onnxruntime:rocm"))
        assert [(c.runtime, c.status) for c in named.comparisons] == [
            ("onnxruntime", "proven"),
            ("onnxruntime:rocm", "not proven"),
        ]
        with pytest.raises(VexlintError, match="--provider is for onnxruntime, which is not among the runtimes"):
            verified(one, one, Config(), runtimes=("openvino",), provider="cuda")

    def test_nothing_is_left_behind(self, tmp_path: Path, few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        work = tmp_path / "work"
        work.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(work))
        (tmp_path / "damaged").mkdir()
        for path in few.iterdir():
            (tmp_path / "damaged" / path.name).write_bytes(path.read_bytes())
        (tmp_path / "damaged" / "zz.npy").write_bytes(b"no array")
        with pytest.raises(VexlintError, match=r"zz.npy: not an image that can be read"):
            verified(CLEAN, CLEAN, images=tmp_path / "damaged", save=tmp_path / "out.npz")
        assert list(work.iterdir()) == []
        assert [p.name for p in tmp_path.iterdir() if p.is_file()] == []


class TestContracts:
    def test_different_preprocessing_is_an_error(self, tmp_path: Path) -> None:
        one, other = model("y = Relu(x)", tmp_path), model("y = Relu(x)", tmp_path, "other.onnx")
        contracts = (
            Contract(path="model.onnx", preprocessing={"colour": "RGB"}),
            Contract(path="other.onnx", preprocessing={"colour": "BGR"}),
        )
        with pytest.raises(VexlintError, match="contracts with different preprocessing"):
            verified(one, other, Config(folder=tmp_path, models=contracts))

    def test_a_size_for_an_input_that_neither_has(self) -> None:
        with pytest.raises(VexlintError, match=r"--shape image: no such input; did you mean images\?"):
            verified(CLEAN, CLEAN, shapes={"image": (1, 3, 320, 320)})

    def test_a_file_that_is_no_model(self, tmp_path: Path) -> None:
        (tmp_path / "a.onnx").write_text("hello", "utf-8")
        with pytest.raises(VexlintError, match=r"a.onnx: not an ONNX model"):
            verified(tmp_path / "a.onnx", CLEAN, Config())


class TestRecordings:
    def plain(self, path: Path, **more: Any) -> Path:
        """What PyTorch computed, with the inputs that it had."""
        np.savez(path, images=measure.inputs(), output0=measure.recorded()["clean"], seed=np.array(20261), **more)
        return path

    def test_what_pytorch_recorded_is_a_reference(self, tmp_path: Path) -> None:
        found = verified(self.plain(tmp_path / "torch.npz"), CLEAN)
        assert (found.status, found.unit) == ("proven", "recorded input")
        assert found.comparisons[0].samples == 4
        assert verified(tmp_path / "torch.npz", WRONG).status == "drifts"

    @pytest.mark.parametrize("name", ["batch4", "objectness"])
    def test_a_recording_is_compared_with_other_batches_and_layouts(self, name: str, tmp_path: Path) -> None:
        recorded = tmp_path / "torch.npz"
        np.savez(
            recorded,
            images=measure.inputs(),
            output0=measure.recorded()["objectness" if name == "objectness" else "clean"],
        )
        assert verified(recorded, DETECTOR / f"{name}.onnx").status == "proven"

    def test_a_recorded_head_is_decoded_as_the_contract_says(self, tmp_path: Path) -> None:
        """PyTorch recorded the head, the candidate has NMS inside: only the contract can say what the former is."""
        inside = tmp_path / "inside.onnx"
        done = scratch.vexlint("nms", str(CLEAN), "-o", str(inside), "--no-verify", folder=tmp_path)
        assert done.returncode == 0
        recorded = self.plain(tmp_path / "torch.npz")
        contract = Contract("*", nms={"layout": "v8", "score": 0.25, "iou": 0.45})
        named = Config(folder=tmp_path, models=(contract,))
        assert verified(recorded, inside, named).status == "proven"
        with pytest.raises(VexlintError, match=r"the reference .*: name it with nms.layout"):
            verified(recorded, inside)
        two = replace(named, models=(replace(contract, nms={"layout": "corners"}),))
        with pytest.raises(VexlintError, match=r"the recorded outputs: nms\.layout says corners, but"):
            verified(recorded, inside, two)

    def test_our_own_form_is_written_and_read(self, few: Path, tmp_path: Path) -> None:
        saved = tmp_path / "clean.npz"
        assert verified(CLEAN, CLEAN, images=few, save=saved).status == "proven"
        found = verified(saved, DETECTOR / "batch4.onnx", images=few)
        assert (found.status, found.comparisons[0].samples) == ("proven", 6)
        assert found.ran is not None
        assert found.ran.runtime == "onnxruntime"
        assert verified(saved, WRONG, images=few).status == "drifts"

    def test_other_inputs_than_the_recorded_ones_are_noticed(self, tmp_path: Path) -> None:
        saved = tmp_path / "noise.npz"
        verified(CLEAN, CLEAN, samples=3, save=saved)
        assert verified(saved, CLEAN).status == "proven"
        with pytest.raises(VexlintError, match="its sample 0 was recorded from other numbers than noise 0 gives now"):
            verified(saved, CLEAN, seed=1)
        with pytest.raises(VexlintError, match="the recording holds 3 samples, and there are 2 noise samples"):
            verified(saved, CLEAN, samples=2)

    def test_polygraphys_json_is_a_reference(self, tmp_path: Path) -> None:
        program = [sys.executable, "-c", "from polygraphy.tools import main; import sys; sys.exit(main())", "run"]
        saved = ["--save-outputs", str(tmp_path / "out.json"), "--save-inputs", str(tmp_path / "in.json")]
        subprocess.run([*program, str(CLEAN), "--onnxrt", *saved], check=True, capture_output=True)
        found = verified(tmp_path / "out.json", CLEAN, inputs=tmp_path / "in.json", raw=True)
        assert (found.status, found.comparisons[0].samples) == ("proven", 1)
        assert verified(tmp_path / "out.json", WRONG, inputs=tmp_path / "in.json", raw=True).status == "drifts"
        with pytest.raises(VexlintError, match=r"does not hold the inputs .*: record them .* --inputs"):
            verified(tmp_path / "out.json", CLEAN)
        with pytest.raises(VexlintError, match="not the outputs that polygraphy run --save-outputs writes"):
            verified(tmp_path / "in.json", CLEAN)

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("a.npz", b"hello", "not a .npz file"),
            ("a.json", b"hello", "not JSON of Polygraphy"),
            ("a.json", b"{}", "not the outputs that polygraphy"),
        ],
    )
    def test_a_file_that_is_no_recording(self, name: str, content: bytes, said: str, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(VexlintError, match=said):
            verified(tmp_path / name, CLEAN)

    def test_arrays_that_do_not_fit_together(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", a=np.zeros((2, 3)), b=np.zeros((3, 3)))
        with pytest.raises(VexlintError, match=r"different numbers of samples: a \[2, 3\], b \[3, 3\]"):
            verified(tmp_path / "a.npz", CLEAN)

    def test_outputs_go_over_no_pipe_and_no_inputs(self, few: Path, tmp_path: Path) -> None:
        pipe, given = tmp_path / "pipe.npz", tmp_path / "in.npz"
        os.mkfifo(pipe)
        with pytest.raises(VexlintError, match=r"pipe\.npz: cannot be written: it is no regular file"):
            verified(CLEAN, CLEAN, images=few, save=pipe)
        assert pipe.is_fifo()
        np.savez(given, images=measure.inputs())
        before = given.read_bytes()
        with pytest.raises(VexlintError, match=r"would write over the inputs .*in\.npz"):
            verified(CLEAN, CLEAN, inputs=given, save=tmp_path / "." / "in.npz")
        assert given.read_bytes() == before

    def test_a_recording_is_not_recorded_again(self, tmp_path: Path) -> None:
        with pytest.raises(VexlintError, match="is a recording already"):
            verified(self.plain(tmp_path / "torch.npz"), CLEAN, save=tmp_path / "b.npz")

    def test_digests_depend_on_every_number(self) -> None:
        a = {"x": np.arange(6, dtype=np.float32)}
        assert recordings.digest(a) == recordings.digest({"x": np.arange(6, dtype=np.float32)})
        assert recordings.digest(a) != recordings.digest({"x": np.arange(6, dtype=np.float32)[::-1]})


class TestProve:
    """What `fix` asks: bytes of a model whose weights lie in another file."""

    def thin(self) -> bytes:
        """The clean model, its large weights external data inside clean.onnx."""
        whole = CLEAN.read_bytes()
        made = onnx.load_from_string(whole)
        for tensor in made.graph.initializer:
            if len(tensor.raw_data) > 1000:
                offset, length = str(whole.index(tensor.raw_data)), str(len(tensor.raw_data))
                tensor.ClearField("raw_data")
                tensor.data_location = TensorProto.EXTERNAL
                for key, value in (("location", CLEAN.name), ("offset", offset), ("length", length)):
                    tensor.external_data.add(key=key, value=value)
        return bytes(made.SerializeToString())

    def test_a_rewrite_that_changes_nothing_is_proven(self) -> None:
        thin = self.thin()
        assert len(thin) < CLEAN.stat().st_size / 4
        found = prove(CLEAN, thin, folder=DETECTOR)
        assert found.status == "proven"
        assert found.comparisons[0].drifts[0].max_abs == 0
        assert prove(thin, thin, folder=DETECTOR).status == "proven"

    def test_a_rewrite_that_changes_numbers_is_not(self) -> None:
        assert prove(self.thin(), WRONG.read_bytes(), folder=DETECTOR).status == "drifts"

    def test_recorded_outputs_are_expected(self, tmp_path: Path) -> None:
        expect = tmp_path / "expect.npz"
        np.savez(expect, images=measure.inputs(), output0=measure.recorded()["clean"])
        assert prove(None, self.thin(), folder=DETECTOR, expect=expect).status == "proven"
        assert prove(None, WRONG.read_bytes(), folder=DETECTOR, expect=expect).status == "drifts"


MEMORY = """
import resource, sys
from pathlib import Path
from vexlint.config import Config
from vexlint.verify import proof
model = Path(sys.argv[1])
found = proof.verify(model, model, proof.Request(samples=int(sys.argv[2])), Config())
assert found.status == "proven", found
own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(own, children)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the module resource is Unix's")
def test_memory_does_not_grow_with_the_samples(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,3,96,96] x) => (float[1,3,96,96] y) { y = Relu(x) }"""
    path = save(text, tmp_path)  # inputs and outputs of 0.1 MiB a sample
    peaks = []
    for count in (20, 420):
        command = [sys.executable, "-c", MEMORY, str(path), str(count)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        peaks.append([int(n) / (1 if sys.platform == "darwin" else 1024) / 1024 for n in done.stdout.split()])
    for few, many in zip(*peaks, strict=True):
        assert many - few < 8, f"MiB with 20 and 420 samples: {peaks}; kept, 400 more outputs would be 42"


class TestReport:
    SETS = SetDrift(
        matched=1312, iou_drift=0.0006, centre_px=0.01, score=0.0001, class_match=1.0, class_flips=0, missing=0,
        extra=0, threshold_flips=2, limits=SetLimits(0.001, 0.5, 0.001, 1.0, 0.001),
        sizes=(Shift(8, 16, 1312, 0, 0.002, 0.01),), worst="a.png", passed=True,
    )  # fmt: skip
    RAN = Ran("onnxruntime", "1.32.0", "CPUExecutionProvider")
    OTHER = Ran("openvino", "2026.4.1", "CPU", "f32")

    def proof(self, **changes: Any) -> Proof:
        drift = Drift("output0", 3.1e-5, 5.7e-6, 1e-4, 0, "a.png", True)
        comparison = Comparison("openvino", "proven", self.OTHER, 200, (drift,), self.SETS)
        return Proof("a.onnx", "b.onnx", self.RAN, "image", "scenes", (replace(comparison, **changes),))

    def test_a_proof_reads_as_a_sentence_and_ends_with_what_ran(self) -> None:
        assert drift_text.render(self.proof()) == (
            "b.onnx against a.onnx\n"
            "  openvino: 200 images, 1,312 detections matched, max IoU drift 0.0006 (limit\n"
            "    0.001), class match 100 %, max centre shift 0.01 px: PASS\n"
            "    output0: max abs 3.1e-05, max rel 5.7e-06\n"
            "reference: onnxruntime 1.32.0, CPUExecutionProvider\n"
            "candidate: openvino 2026.4.1, CPU, f32\n"
        )

    def test_a_fault_is_told_by_size(self) -> None:
        sets = replace(self.SETS, iou_drift=0.416, class_match=0.99999, missing=1, passed=False)
        text = drift_text.render(self.proof(status="drifts", sets=sets))
        assert (
            "    centre shift by the larger side of the object:\n"
            "      object           matched  unmatched      median         max\n"
            "      8-16 px            1,312          0   0.0020 px     0.01 px\n"
            "    1 missing, 0 extra, 0 class flips, 2 threshold flips; max score drift\n"
            "      0.0001; limits: centre 0.5 px, score 0.001, class match 100 %\n"
            "    worst: a.png\n"
        ) in text
        assert "class match 99.99 %" in text.replace("\n   ", "")
        assert max(map(len, text.splitlines())) <= WIDTH

    def test_what_did_not_run_says_so(self) -> None:
        changes = {
            "status": "not proven",
            "ran": None,
            "samples": 0,
            "drifts": (),
            "sets": None,
            "reason": "not run: why",
        }
        text = drift_text.render(self.proof(**changes))
        assert "  openvino: NOT PROVEN\n    not run: why\n" in text
        assert text.endswith("candidate: openvino did not run\n")

    def test_colour_only_where_it_is_asked_for(self) -> None:
        assert "\033" not in drift_text.render(self.proof())
        assert "\033[32mPASS\033[0m" in drift_text.render(self.proof(), colour=True)

    def test_json_holds_everything_and_no_infinity(self) -> None:
        wild = Drift("y", float("inf"), float("nan"), 1e-4, 3, "a.png", False)
        document = json.loads(drift_json.render(self.proof(status="drifts", drifts=(wild,))))
        (comparison,) = document["comparisons"]
        assert (document["schema"], document["status"], comparison["status"]) == (1, "drifts", "drifts")
        assert (comparison["drifts"][0]["max_abs"], comparison["drifts"][0]["nonfinite"]) == (None, 3)
        assert comparison["sets"]["sizes"][0] == {
            "low": 8, "high": 16, "matched": 1312, "unmatched": 0, "median": 0.002, "largest": 0.01,
        }  # fmt: skip
        assert comparison["ran"]["device"] == "CPU"


class TestCommand:
    def run(self, *arguments: str) -> Any:
        app = typer.Typer()
        app.command()(command.verify)
        return CliRunner().invoke(app, list(arguments))

    def test_exit_codes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one, scaled = model("y = Relu(x)", tmp_path), model("y = Exp(x)", tmp_path, "other.onnx")
        monkeypatch.chdir(tmp_path)
        assert self.run(str(one), str(one)).exit_code == 0
        assert self.run(str(one), str(scaled)).exit_code == 1
        assert self.run(str(one), str(one), "--provider", "nowhere").exit_code == 2

    def test_json(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one = model("y = Relu(x)", tmp_path)
        monkeypatch.chdir(tmp_path)
        assert json.loads(self.run(str(one), str(one), "--format", "json").stdout)["status"] == "proven"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--format", "xml"], "unknown format"),
            (["--deadline", "0"], "--deadline should be more than 0"),
            (["--shape", "x"], "write it as NAME=1x3x320x320"),
            (["--images", "a", "--inputs", "b"], "--images and --inputs both say what to feed"),
            (["--save-outputs", "out.txt"], "recorded outputs are written as .npz"),
        ],
    )
    def test_options_that_cannot_be(
        self, arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = model("y = Relu(x)", tmp_path)
        monkeypatch.chdir(tmp_path)
        result = self.run(str(one), str(one), *arguments)
        assert isinstance(result.exception, VexlintError)
        assert said in str(result.exception)
