"""What people and programs are shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import DETECTOR, judge
from vexlint.config import Contract, Waiver
from vexlint.report import json as as_json
from vexlint.report import text
from vexlint.values import FileReport, Finding, Place, Report, Severity

FINDING = Finding(
    "VEX301",
    "resize-align-corners",
    Severity.ERROR,
    None,
    None,
    "a message",
    1,
    Place("file"),
    (),
    {},
    "none",
    "",
    "mark",
)


def report(*findings: Finding, **of_file: object) -> Report:
    return Report((FileReport("a.onnx", "checked", findings, **of_file),), ("onnx",))  # type: ignore[arg-type]


words = st.lists(st.text("abcxyz/_.", min_size=1, max_size=30), max_size=40).map(" ".join)


@given(words, words)
def test_lines_are_at_most_80_columns_and_no_word_is_lost(message: str, way_out: str) -> None:
    from dataclasses import replace

    shown = text.render(report(replace(FINDING, message=message, help=way_out)))
    assert max(len(line) for line in shown.splitlines()) <= 80
    said = shown.split()
    assert [w for w in f"{message} {way_out}".split() if w not in said] == []


def test_colour_only_where_asked_for() -> None:
    assert "\033" not in text.render(report(FINDING))
    coloured = text.render(report(FINDING), colour=True)
    assert "\033[31merror\033[0m" in coloured
    assert re.sub(r"\033\[\d*m", "", coloured) == text.render(report(FINDING))


def test_many_places_are_counted_not_listed() -> None:
    from dataclasses import replace

    more = tuple(Place("node", "graph", i, "", "Mish", f"act{i}") for i in range(1, 7))
    shown = text.render(
        report(replace(FINDING, place=Place("node", "graph", 0, "", "Mish", "act0"), more=more, count=7))
    )
    assert shown.count("Mish") == 4
    assert "and 3 more" in shown


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place("file"), "file"),
        (Place("node", "graph", 41, "", "Resize", "/neck/up1"), 'graph/node[41] Resize "/neck/up1"'),
        (Place("node", "graph", 4, "acme", "Mish", "", "t7"), 'graph/node[4] acme::Mish "t7"'),
        (Place("node", "graph/node[7]/then_branch", 2, "", "Relu"), "graph/node[7]/then_branch/node[2] Relu"),
        (Place("node", "function pkg::Gate", 0, "", "Mul", "m"), 'function pkg::Gate/node[0] Mul "m"'),
        (Place("input", "graph", name="images", axis=0), "input images axis 0"),
        (Place("import", name="ai.onnx.ml"), "import ai.onnx.ml"),
        (Place("initializer", "graph/node[7]/body", name="w"), "graph/node[7]/body/initializer w"),
    ],
)
def test_places_read_as_the_design_says(place: Place, expected: str) -> None:
    assert str(place) == expected


def test_the_summary_counts(tmp_path: Path) -> None:
    broken = FileReport("b.onnx", "incomplete", (FINDING,), (), "a message")
    shown = text.render(Report((FileReport("a.onnx", "checked", ()), broken), ("onnx", "onnxruntime@1.32.0")))
    assert "a.onnx" not in shown
    assert shown.splitlines()[-2:] == [
        "1 error, 0 warnings, 0 infos in 2 files; 1 could not be judged",
        "judged for onnx, onnxruntime@1.32.0",
    ]


def test_json_is_the_schema_of_the_design(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes((DETECTOR / "align_corners.onnx").read_bytes())
    waiver = Waiver("VEX501", "*.onnx", "NMS runs on the host")
    judged = judge(tmp_path / "m.onnx", Contract("*.onnx", resize="half_pixel"), waivers=(waiver,))
    document = json.loads(as_json.render(Report((judged,), ("onnx",))))
    assert list(document) == ["vexlint", "schema", "files", "targets", "summary"]
    assert document["schema"] == 1
    (file,) = document["files"]
    assert list(file) == ["path", "sha256", "status", "reason", "findings", "waived", "baselined"]
    (finding,) = file["findings"]
    assert set(finding) == {
        "code", "name", "severity", "target", "verdict", "message", "count", "place", "more", "data", "fix", "help",
        "fingerprint",
    }  # fmt: skip
    assert set(finding["place"]) == {"kind", "graph", "index", "domain", "op", "name", "value", "axis"}
    assert finding["severity"] == "error"
    assert finding["count"] == 2
    assert finding["data"]["image_px"] == pytest.approx(7.158, abs=1e-3)
    assert [w["reason"] for w in file["waived"]] == ["NMS runs on the host"]
    assert document["summary"] == {"errors": 1, "warnings": 0, "infos": 0, "files": 1, "incomplete": 0}


def test_json_of_many_files_is_one_document() -> None:
    files = tuple(FileReport(f"{i}.onnx", "checked", (FINDING,)) for i in range(3))
    assert len(json.loads(as_json.render(Report(files, ())))["files"]) == 3
