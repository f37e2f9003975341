"""The baseline: what it knows, what is new, what is gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scratch import CLEAN, exported_again, some, vexlint
from tests.support import RULES
from vexlint import baseline
from vexlint.values import FileReport, Finding, Report

FIRST_MISH = "/backbone/stem/act/Mish_output_0"


def known(new: list[Finding], old: list[Finding]) -> tuple[list[str], list[str], int]:
    """The places that are new, those that a baseline of the old findings knows, and how many entries are stale."""
    path = Path("/x/b.json")
    book = baseline.update(
        Report((FileReport("/x/m.onnx", "checked", tuple(old)),), ()), baseline.Baseline(path), RULES
    )
    report, stale = baseline.compare(Report((FileReport("/x/m.onnx", "checked", tuple(new)),), ()), book, RULES)
    (file,) = report.files
    stale = [s for s in stale if "no longer found" in s]
    return [f.place.name for f in file.findings], [f.place.name for f in file.baselined], len(stale)


@pytest.mark.parametrize(
    ("new", "old", "result"),
    [
        ([some()], [some()], ([], ["a"], 0)),
        ([some()], [], (["a"], [], 0)),
        ([], [some()], ([], [], 1)),
        # another name: counts decide
        ([some(place="b")], [some()], ([], ["b"], 0)),
        ([some(place="b"), some(place="c")], [some()], (["c"], ["b"], 0)),
        ([some(place="c"), some(place="a")], [some(place="a")], (["c"], ["a"], 0)),
        ([some(place="b", count=5)], [some(count=5)], ([], ["b"], 0)),
        ([some(place="b", count=2)], [some(place="x"), some(place="y")], ([], ["b"], 0)),
        ([some(place="b", op="GridSample")], [some()], (["b"], [], 1)),
        ([some(place="b", code="VEX302")], [some()], (["b"], [], 1)),
        # more, or worse, is new; fewer and better is not
        ([some(count=6)], [some(count=5)], (["a"], [], 0)),
        ([some(count=4)], [some(count=5)], ([], ["a"], 0)),
        ([some(severity="error")], [some()], (["a"], [], 0)),
        ([some(severity="info")], [some()], ([], ["a"], 0)),
        # a lapsed waiver stands
        ([some(code="VEX003")], [some(code="VEX003")], (["a"], [], 0)),
    ],
)
def test_what_a_baseline_knows(
    new: list[Finding], old: list[Finding], result: tuple[list[str], list[str], int]
) -> None:
    assert known(new, old) == result


findings = st.lists(
    st.builds(some, st.sampled_from(["VEX301", "VEX302"]), st.sampled_from("abc"), st.integers(1, 4)),
    unique_by=lambda f: f.fingerprint,
)


@given(findings, findings)
def test_nothing_is_new_unless_it_became_more(new: list[Finding], old: list[Finding]) -> None:
    assert known(old, old) == ([], [f.place.name for f in old], 0)
    found, _, _ = known(new, old)
    for code in ("VEX301", "VEX302"):
        before, now = (sum(f.count for f in side if f.code == code) for side in (old, new))
        if now > before:
            assert found, "more places than the baseline counts"
    assert known([], old)[2] == len(old)


def test_a_baseline_holds_over_a_re_export_and_fails_on_what_is_new(project: Path) -> None:
    done = vexlint("baseline", "update", "b.json", ".", folder=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "b.json: 3 findings in 2 files\n", "")
    gate = ["check", ".", "--baseline", "b.json", "--fail-on", "info"]
    exported_again(project / "mish.onnx")
    done = vexlint(*gate, folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0 errors, 0 warnings, 0 infos in 2 files; 3 in the baseline\n")

    model = onnx.load(project / "mish.onnx")
    last = next(n for n in model.graph.node if n.op_type == "Mish")
    model.graph.node.insert(1, onnx.helper.make_node("Mish", [last.input[0]], ["one_more"], "more", domain="shapes"))
    model.graph.node.sort(key=lambda n: n.output[0] == "one_more")
    onnx.save(model, project / "mish.onnx")
    done = vexlint(*gate, folder=project)
    assert done.returncode == 1
    assert "error VEX101 custom-node" in done.stdout
    assert "VEX501" not in done.stdout


def test_what_is_gone_is_named_and_update_takes_it_out(project: Path) -> None:
    (project / "sub").mkdir()
    vexlint("baseline", "update", "sub/b.json", "mish.onnx", "clean.onnx", folder=project)
    assert list(json.loads((project / "sub" / "b.json").read_text("utf-8"))["files"]) == [
        "../clean.onnx",
        "../mish.onnx",
    ]
    shutil.copy(CLEAN, project / "mish.onnx")
    (project / "clean.onnx").unlink()
    done = vexlint("check", "../mish.onnx", "--baseline", "b.json", folder=project / "sub")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"vexlint: ../mish.onnx: VEX101||shapes::Mish|{FIRST_MISH}|0 is in the baseline and no longer found",
        "vexlint: ../clean.onnx: is in the baseline and no longer there",
    ]
    assert vexlint("check", "mish.onnx", "--select", "VEX5", "--baseline", "sub/b.json", folder=project).stderr.count(
        "no longer found") == 0  # fmt: skip
    vexlint("baseline", "update", "b.json", "../mish.onnx", folder=project / "sub")
    assert list(json.loads((project / "sub" / "b.json").read_text("utf-8"))["files"]) == ["../mish.onnx"]
    assert vexlint("check", "mish.onnx", "--baseline", "sub/b.json", folder=project).stderr == ""


def test_update_keeps_other_files_and_rules_that_did_not_run(project: Path) -> None:
    vexlint("baseline", "update", "b.json", ".", folder=project)
    before = (project / "b.json").read_text("utf-8")
    vexlint("baseline", "update", "b.json", "mish.onnx", "--select", "VEX101", folder=project)
    assert (project / "b.json").read_text("utf-8") == before


def test_a_file_that_could_not_be_judged_is_in_no_baseline(project: Path) -> None:
    vexlint("baseline", "update", "b.json", ".", folder=project)
    before = (project / "b.json").read_text("utf-8")
    (project / "mish.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    done = vexlint("baseline", "update", "b.json", ".", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert "mish.onnx: could not be judged, and the baseline stays as it is" in done.stderr
    assert (project / "b.json").read_text("utf-8") == before
    done = vexlint("check", ".", "--baseline", "b.json", folder=project)
    assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"vexlint-baseline": 2, "files": {}}', '{"vexlint-baseline": 1}',
     '{"vexlint-baseline": 1, "files": []}', '{"vexlint-baseline": 1, "files": {"a": [{}]}}',
     '{"vexlint-baseline": 1, "files": {"a": [1]}}',
     '{"vexlint-baseline": 1, "files": {"a": [{"fingerprint": 1, "severity": "error", "count": 1}]}}',
     '{"vexlint-baseline": 1, "files": {"a": [{"fingerprint": "a", "severity": "bad", "count": 1}]}}',
     '{"vexlint-baseline": 1, "files": {"a": [{"fingerprint": "a", "severity": "error", "count": "x"}]}}'],
)  # fmt: skip
def test_a_damaged_baseline_is_no_pass(content: str, project: Path) -> None:
    (project / "b.json").write_text(content)
    done = vexlint("check", "clean.onnx", "--baseline", "b.json", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vexlint: b.json: ")
    assert "vexlint baseline update" in done.stderr
