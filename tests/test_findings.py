"""The findings of every golden model under its contract, as golden text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import compare
from tests.support import DETECTOR, ROOT
from vexlint import engine, settings
from vexlint.report import text
from vexlint.values import Report


@pytest.mark.parametrize("model", sorted(DETECTOR.glob("*.onnx")), ids=lambda p: p.name)
def test_findings_are_the_golden_ones(
    model: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    run = settings.settle(ROOT / "golden_models" / "vexlint.toml")
    report = Report((engine.check_file(model.relative_to(ROOT), run),), tuple(map(str, run.targets)))
    compare(request, DETECTOR / "findings" / f"{model.stem}.txt", text.render(report))
