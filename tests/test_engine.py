"""From hits to findings: severity, fingerprints, waivers, order, files that cannot be judged."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from tests.support import DETECTOR, RULES, codes, judge, save
from vexlint import engine, targets
from vexlint.checks.context import Context
from vexlint.config import Config, Contract, Waiver
from vexlint.engine import Settings
from vexlint.values import FileReport, Hit, Place, Severity, Verdict

HERE = Place("node", "graph", 3, "", "Resize", "up", "t1")
RULE = RULES["VEX301"]  # info by its page
TODAY = datetime.date.today()


@pytest.mark.parametrize(
    ("verdict", "named", "expected"),
    [
        ("refuses", True, "error"),
        ("differs", True, "error"),
        ("falls-back", True, "warning"),
        ("needs-plugin", True, "warning"),
        ("unknown", True, None),
        ("refuses", False, "warning"),
        ("differs", False, "warning"),
        ("falls-back", False, "info"),
        ("needs-plugin", False, "info"),
        ("unknown", False, None),
    ],
)
def test_what_a_verdict_is_worth(verdict: Verdict, named: bool, expected: str | None) -> None:
    (target,), _ = targets.resolve(["tensorrt@11.5"])
    context = Context(targets=(replace(target, named=named),))
    assert engine.severity(RULE, Hit(HERE, "", target="tensorrt@11.5", verdict=verdict), context) == expected


def test_the_check_then_the_contract_then_the_page_decide() -> None:
    hit = Hit(HERE, "", contract=True)
    assert engine.severity(RULE, replace(hit, severity=Severity.WARNING), Context()) is Severity.WARNING
    assert engine.severity(RULE, hit, Context()) is Severity.ERROR
    assert engine.severity(RULE, replace(hit, contract=False), Context()) is Severity.INFO


def test_a_verdict_worth_nothing_is_no_finding(tmp_path: Path) -> None:
    def check(model: object, context: Context) -> Iterator[Hit]:
        yield Hit(HERE, "m", target="tensorrt@11.5", verdict="unknown")

    rules = {**RULES, "VEX301": replace(RULE, check=check)}
    report = engine.check_file(DETECTOR / "clean.onnx", Settings(rules, Config(), targets.resolve([])[0]))
    assert "VEX301" not in {f.code for f in report.findings}


def test_fingerprints_hold_over_renumbering_and_renaming_of_nodes(tmp_path: Path) -> None:
    contract = Contract("*", resize="half_pixel")
    proto = onnx.load(DETECTOR / "align_corners.onnx")
    before = judge(DETECTOR / "align_corners.onnx", contract)
    proto.graph.node.insert(0, onnx.helper.make_node("Identity", ["images"], ["unused"], name="new"))
    for node in proto.graph.node:
        node.name += "_renamed"
    onnx.save(proto, tmp_path / "again.onnx")
    after = judge(tmp_path / "again.onnx", contract)
    same = [f.fingerprint for f in after.findings if f.code != "VEX705"]  # the new node itself, which nobody reads
    assert same == [f.fingerprint for f in before.findings]
    assert before.findings[0].fingerprint == "VEX301||::Resize|/neck/up16/Resize_output_0|0"


def test_equals_are_numbered(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,50,4] b, float[1,2,50] s) => (int64[n,3] y)
        <float[1] i = {45}, float[1] low = {0.25}> { y = NonMaxSuppression (b, s, , i, low) }"""
    marks = [f.fingerprint for f in judge(save(text, tmp_path)).findings]
    assert marks == ["VEX502||::NonMaxSuppression|y|0", "VEX502||::NonMaxSuppression|y|1"]


def waived(folder: Path, **entry: object) -> FileReport:
    """align_corners.onnx, two Resizes against its contract, with one waiver."""
    (folder / "m.onnx").write_bytes((DETECTOR / "align_corners.onnx").read_bytes())
    waiver = Waiver(**{"rule": "VEX301", "path": "*.onnx", "reason": "trained so", **entry})  # type: ignore[arg-type]
    return judge(folder / "m.onnx", Contract("*.onnx", resize="half_pixel"), waivers=(waiver,))


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"rule": "resize-align-corners"},
        {"op": "Resize"},
        {"until": TODAY},
        {"until": TODAY + datetime.timedelta(1)},
    ],
)
def test_a_waiver_sets_aside(entry: dict[str, object], tmp_path: Path) -> None:
    report = waived(tmp_path, **entry)
    assert codes(report) == [("info", "VEX501")]
    assert [(w.finding.code, w.finding.count, w.reason) for w in report.waived] == [("VEX301", 2, "trained so")]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"until": TODAY - datetime.timedelta(1)}, "ended on"),
        ({"reason": ""}, "gives no reason"),
        ({"reason": "  "}, "gives no reason"),
    ],
)
def test_a_lapsed_waiver_sets_nothing_aside_and_is_a_finding(
    entry: dict[str, object], why: str, tmp_path: Path
) -> None:
    report = waived(tmp_path, **entry)
    assert codes(report) == [("error", "VEX301"), ("warning", "VEX003"), ("info", "VEX501")]
    assert why in report.findings[1].message
    assert report.waived == ()


@pytest.mark.parametrize("entry", [{"path": "other.onnx"}, {"op": "Conv"}, {"output": "t99"}, {"rule": "VEX302"}])
def test_a_waiver_of_something_else_changes_nothing(entry: dict[str, object], tmp_path: Path) -> None:
    report = waived(tmp_path, **entry)
    assert codes(report) == [("error", "VEX301"), ("info", "VEX501")]
    assert report.waived == ()


def test_a_waiver_of_one_node_leaves_the_other(tmp_path: Path) -> None:
    report = waived(tmp_path, output="/neck/up16/Resize_output_0")
    (finding,) = [f for f in report.findings if f.code == "VEX301"]
    assert (finding.place.value, finding.count) == ("/neck/up8/Resize_output_0", 1)
    assert [(w.finding.place.value, w.finding.count) for w in report.waived] == [("/neck/up16/Resize_output_0", 1)]


def test_what_cannot_be_read_cannot_be_waived(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08")
    waiver = Waiver("VEX001", "*.onnx", "never mind")
    report = judge(tmp_path / "m.onnx", waivers=(waiver,))
    assert codes(report) == [("error", "VEX001")]
    assert report.status == "incomplete"


def test_a_check_that_fails_makes_the_file_incomplete(tmp_path: Path) -> None:
    def check(model: object, context: Context) -> Iterator[Hit]:
        raise KeyError("x")

    rules = {**RULES, "VEX301": replace(RULE, check=check)}
    report = engine.check_file(DETECTOR / "clean.onnx", Settings(rules, Config(), ()))
    assert report.status == "incomplete"
    assert report.reason == "a check failed, please report it: KeyError: 'x'"


def test_the_worst_comes_first(tmp_path: Path) -> None:
    contract = Contract("*", opset=11, resize="half_pixel")
    assert codes(judge(DETECTOR / "align_corners.onnx", contract)) == [
        ("error", "VEX204"),
        ("error", "VEX301"),
        ("info", "VEX501"),
    ]
