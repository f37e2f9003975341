"""`vexlint targets` and the probe of an installed runtime."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from vexlint import probing, tables
from vexlint.probing import child, corpus, fold
from vexlint.probing.corpus import Probe
from vexlint.values import VexlintError

HAVE_ORT = importlib.util.find_spec("onnxruntime") is not None
needs_ort = pytest.mark.skipif(not HAVE_ORT, reason="onnxruntime is not installed")


def vexlint(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "vexlint", *words], capture_output=True, text=True, check=False)


def test_targets_lists_shows_and_answers() -> None:
    assert "tensorrt@8.6" in vexlint("targets").stdout
    assert "under conditions" in vexlint("targets", "openvino").stdout
    assert "antialias is ignored" in vexlint("targets", "openvino", "Resize").stdout
    unknown = vexlint("targets", "rknn", "Resise")
    assert "nothing is known; did you mean Resize?" in unknown.stdout
    assert (unknown.returncode, unknown.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["targets", "tensort"], "did you mean tensorrt"),
        (["targets", "openvino", "-o", "x"], "-o is for"),
        (["targets", "probe", "onnxruntime"], "say where the table goes"),
        (["targets", "probe", "onxruntime", "-o", "x"], "did you mean onnxruntime?"),
    ],
)
def test_a_mistake_is_a_sentence(words: list[str], complaint: str) -> None:
    done = vexlint(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@needs_ort
def test_a_probe_makes_a_table_that_says_what_the_runtime_does(tmp_path: Path) -> None:
    out = tmp_path / "onnxruntime.json"
    said = list(probing.probe("onnxruntime", out, frozenset({"RoiAlign", "LSTM", "GridSample", "Relu"})))
    assert any("held out" in line for line in said)
    made = tables.parse(json.loads(out.read_text("utf-8")), "")
    tables.validate(made)
    lstm, relu = made.operator("", "LSTM"), made.operator("", "Relu")
    assert lstm is not None
    assert any(limit.attribute == {"layout": (1,)} for limit in lstm.limits)
    assert relu is not None
    assert {6, 13, 14} <= (relu.runs or frozenset())
    assert "float" in relu.types[14]["T"].run


@needs_ort
def test_a_child_that_dies_costs_one_probe() -> None:
    with child.Child("onnxruntime") as worker:
        assert worker._process is not None
        worker._process.kill()
        assert worker.try_(b"") == "the process ended or hung"
        assert worker.try_(b"\xff") not in ("", "the process ended or hung")
        assert worker.crashes == 1


def test_an_unwritten_runtime_is_an_error(tmp_path: Path) -> None:
    if importlib.util.find_spec("tensorrt_rtx") is not None:
        pytest.skip("tensorrt_rtx is installed")
    with pytest.raises(VexlintError, match="not installed here"):
        list(probing.probe("tensorrt-rtx", tmp_path / "x.json"))


def node_tests(op: str) -> list[Probe]:
    return [p for p in corpus.make(frozenset({op})) if p.kind == "test"]


def test_the_explanation_is_the_attribute_and_not_what_came_along() -> None:
    """Every test of tf_crop_and_resize writes axes or an extrapolation value too."""
    probes = [p for p in node_tests("Resize") if p.since == 19]
    crops = [b"tf_crop_and_resize" in p.data for p in probes]
    limits = list(fold.explain([(p, "no" if crop else "") for p, crop in zip(probes, crops, strict=True)]))
    assert [{k: v for k, v in limit.items() if k != "seen"} for limit in limits] == [
        {"attribute": {"coordinate_transformation_mode": ["tf_crop_and_resize"]}}
    ]


def test_refusals_without_a_pattern_stay_unexplained() -> None:
    probes = node_tests("Relu")
    assert probes
    assert list(fold.explain([(p, "no") for p in probes])) == []
