"""Every example of every rule page is a test: `bad` reports exactly `finds`, `good` is silent for every rule."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx.checker
import onnx.parser
import onnx.printer
import pytest

from vexlint import engine, repairs, rulebook, targets
from vexlint.config import Config, parse_contract
from vexlint.engine import Settings
from vexlint.rulebook import Example, Rule
from vexlint.values import FileReport, VexlintError

RULES = rulebook.load()


def label(value: Rule | Example) -> str:
    return value.code if isinstance(value, Rule) else value.title


CASES = [(r, e) for r in RULES.values() for e in r.examples()]


def judge(text: str, example: Example, folder: Path) -> FileReport:
    """What all rules with the default targets say of a file in ONNX text (or of one that a page's maker wrote)."""
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return judge_file(path, example)


def judge_file(path: Path, example: Example) -> FileReport:
    return engine.check_file(path, settings_for(example, path.parent))


def settings_for(example: Example, folder: Path) -> Settings:
    """The example's configuration: keys of a `[[model]]` entry, and `targets` where it is about named ones."""
    data = tomllib.loads(example.contract)
    judged, _ = targets.resolve(data.pop("targets", []))
    contract = parse_contract(data, folder / "vexlint.toml")
    return Settings(rulebook.select(RULES, ["ALL"], []), Config(folder=folder, models=(contract,)), judged)


@pytest.mark.parametrize(("rule", "example"), [c for c in CASES if c[1].bad or c[1].bad_maker], ids=label)
def test_bad_reports_exactly_what_the_page_says(rule: Rule, example: Example, tmp_path: Path) -> None:
    if example.bad_maker:
        names = {"folder": tmp_path, "onnx": onnx}
        exec(compile(example.bad_maker, str(rule.path), "exec"), names)  # a page of ours
        report = judge_file(names["path"], example)  # type: ignore[arg-type]
        found = [f"{f.severity.value}: {f.message}" for f in report.findings if f.code == rule.code]
        expected = example.finds.splitlines()  # where a message goes on with a byte position, only its start
        assert [f[: len(e)] for f, e in zip(found, expected, strict=True)] == expected
        return
    report = judge(example.bad, example, tmp_path)
    found = [f"{f.severity.value}: {f.message}" for f in report.findings if f.code == rule.code]
    assert found == example.finds.splitlines()
    assert report.status == "checked"


@pytest.mark.parametrize(("rule", "example"), [c for c in CASES if c[1].good], ids=label)
def test_good_is_silent_for_every_rule(rule: Rule, example: Example, tmp_path: Path) -> None:
    report = judge(example.good, example, tmp_path)
    assert [(f.code, f.message) for f in report.findings] == []
    assert report.status == "checked"


FIXABLE = [c for c in CASES if c[0].fix is not None and c[1].bad and c[1].good]


@pytest.mark.parametrize(("rule", "example"), FIXABLE, ids=label)
def test_the_fix_makes_good_of_bad_and_is_proven(rule: Rule, example: Example, tmp_path: Path) -> None:
    """fix(bad) equals good but for vexlint's own metadata, is idempotent, passes the checker, and its proof holds."""
    path, run = tmp_path / "model.onnx", settings_for(example, tmp_path)
    findings = judge(example.bad, example, tmp_path).findings
    repair = repairs.plan(path, run, repairs.Options(unsafe=True))
    if all(f.fix == "none" for f in findings if f.code == rule.code):
        assert repair.changes == ()
        return
    report = repairs.carry_out(repair, tmp_path / "fixed.onnx", run)
    assert report.output is not None, report.reason
    assert {p.status for p in report.proofs} <= {"proven", "on purpose"}
    fixed = onnx.load(tmp_path / "fixed.onnx")
    onnx.checker.check_model(fixed, full_check=True)
    assert {e.key for e in fixed.metadata_props} == {"vexlint.version", "vexlint.fixed", "vexlint.proof"}
    del fixed.metadata_props[:]
    assert onnx.printer.to_text(fixed) == onnx.printer.to_text(onnx.parser.parse_model(example.good))
    again = repairs.plan(tmp_path / "fixed.onnx", run, repairs.Options(unsafe=True))
    assert again.changes == ()


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_page_is_complete(rule: Rule) -> None:
    assert rule.summary[0].isupper()
    assert not rule.summary.endswith(".")
    prose = rule.page.split("```\n", 1)[1]
    assert len(prose) > 400, "a page says why it hurts and what to do"
    if rule.source == "model":
        assert any(e.bad or e.bad_maker for e in rule.examples()), "a rule shows what it sees"
        for example in rule.examples():
            assert bool(example.finds) == bool(example.bad or example.bad_maker)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('severity = "error"', 'severity = "grave"'), "'grave' is not a valid Severity"),
        (('severity = "error"', 'sevrity = "error"'), "unknown key 'sevrity'; did you mean severity?"),
        (('code = "VEX101"', 'code = "VEX110"'), "should be named VEX110-custom-node.md"),
        (("operators:custom_node", "operators:costum_node"), "has no attribute 'costum_node'"),
        (("```onnx bad", "```onnx wrong"), "a block of unknown kind 'onnx wrong'"),
        (("# A node", "A node"), "starts with a # title"),
        (('from = "model"', "from = model"), "Invalid value"),
    ],
)
def test_a_page_out_of_order_is_refused_by_name(change: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    page = RULES["VEX101"].path
    copy = tmp_path / page.name
    copy.write_text(page.read_text("utf-8").replace(*change, 1), "utf-8")
    with pytest.raises(VexlintError, match=re.escape(page.name)) as error:
        rulebook.read(copy).examples()
    assert complaint in str(error.value)


def test_select_and_ignore_take_codes_prefixes_and_names() -> None:
    reader = {"VEX001", "VEX002", "VEX003"}
    sampling = {code for code in RULES if code.startswith("VEX3")}
    assert set(rulebook.select(RULES, ["VEX3"], [])) == sampling | reader
    assert set(rulebook.select(RULES, ["resize-align-corners", "VEX711"], [])) == {"VEX301", "VEX711"} | reader
    held = set(rulebook.select(RULES, [], []))
    assert set(rulebook.select(RULES, [], ["VEX3", "VEX001"])) == held - sampling
    assert set(rulebook.select(RULES, ["ALL"], [])) == set(RULES)


def test_a_profile_has_its_rules_and_those_of_the_former_ones() -> None:
    one, two, three = (RULES[code] for code in ("VEX301", "VEX302", "VEX401"))
    book = {
        one.code: one,
        two.code: replace(two, profile="board"),
        three.code: replace(three, profile="release", precision=("fp16",)),
    }

    def on(**options: Any) -> dict[str, bool | None]:
        """Whether a rule waits for a contract that says its precision; None for one without."""
        chosen = rulebook.select(book, ignored=[], **options)
        return {code: rule.waits if rule.precision else None for code, rule in chosen.items()}

    assert on(chosen=[]) == {"VEX301": None, "VEX401": True}
    assert on(chosen=[], profile="board") == {"VEX301": None, "VEX302": None, "VEX401": True}
    assert on(chosen=[], profile="release") == {"VEX301": None, "VEX302": None, "VEX401": False}
    assert on(chosen=["VEX401"]) == {"VEX401": None}  # chosen by name it runs, whatever a contract says


def test_a_rule_looks_deep_from_its_thorough_profile_on_or_when_chosen() -> None:
    book = {"VEX301": replace(RULES["VEX301"], thorough="board"), "VEX302": RULES["VEX302"]}

    def deep(**options: Any) -> list[bool]:
        return [rule.deep for rule in rulebook.select(book, ignored=[], **options).values()]

    assert deep(chosen=[]) == [False, True]
    assert deep(chosen=[], profile="board") == deep(chosen=[], profile="release") == [True, True]
    assert deep(chosen=["VEX301"]) == [True]


@pytest.mark.parametrize(("chosen", "ignored"), [(["VEX301"], ["VEX3"]), ([], ["ALL"]), (["VEX3"], ["ALL"])])
def test_a_selection_that_leaves_no_rule_is_an_error(chosen: list[str], ignored: list[str]) -> None:
    with pytest.raises(VexlintError, match="no rule is left"):
        rulebook.select(RULES, chosen, ignored)


@pytest.mark.parametrize("name", ["VEX999", "resize-align-corner", "vex", ""])
def test_a_selector_that_names_nothing_is_an_error(name: str) -> None:
    with pytest.raises(VexlintError, match="names no rule"):
        rulebook.select(RULES, [name], [])


def test_a_selector_error_names_the_nearest_rule() -> None:
    with pytest.raises(VexlintError, match="did you mean resize-align-corners"):
        rulebook.select(RULES, [], ["resize-align-corner"])
