"""The gate as CI meets it: several formats at once, mistakes, profiles, statistics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.scratch import some, vexlint
from tests.support import ROOT, RULES
from vexlint import rulebook, settings
from vexlint.report import text
from vexlint.values import FileReport, Report, VexlintError


def test_several_formats_at_once(project: Path) -> None:
    words = [f"--format={f}={f}.out" for f in ("json", "sarif", "github", "gitlab", "junit", "markdown", "text")]
    done = vexlint("check", ".", "--format", "text", *words, folder=project)
    assert (done.returncode, done.stderr) == (1, "")
    for name in ("json", "sarif", "gitlab"):
        json.loads((project / f"{name}.out").read_text("utf-8"))
    assert (project / "github.out").read_text("utf-8").startswith("::error file=mish.onnx,line=1,")
    assert (project / "junit.out").read_text("utf-8").startswith("<?xml")
    assert (project / "markdown.out").read_text("utf-8").startswith("### vexlint: 1 error")
    assert (project / "text.out").read_text("utf-8") == done.stdout
    assert sorted(p.name for p in project.iterdir() if p.name.startswith(".")) == []


def test_a_format_in_a_file_leaves_stdout_empty(project: Path) -> None:
    done = vexlint("check", ".", "--format", "sarif=a.sarif", folder=project)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--format", "text", "--format", "json"],
            "stdout takes one result, not text and json: write the others to fi",
        ),
        (["--format", "sarfi=a"], "unknown format 'sarfi'; did you mean sarif?"),
        (["--format", "sarif="], "no file after the ="),
        (["--format", "sarif=no/such/a.sarif"], "no/such: make it first"),
        (["--format", "sarif=."], "is a folder, not a file to write"),
        (["--format", "sarif=a", "--format", "json=./a"], "two formats cannot go to one file"),
        (["--format", "sarif=clean.onnx"], "clean.onnx: is a model that is checked"),
        (["--format", "json", "--statistics"], "--statistics counts in text"),
        (["--baseline", "none.json"], "none.json: the baseline cannot be read"),
        (["--profile", "boards"], "--profile 'boards' is none of desktop, board, release; did you mean board?"),
        (["--profile", "board", "--select", "VEX3"], "--select and --profile both say which rules run"),
        (["--changed-since", "main"], "git says"),
        (["--changed-since", "-p"], "is no commit"),
        (["--changed-since", ""], "is no commit"),
    ],
)
def test_mistakes(words: list[str], said: str, project: Path) -> None:
    before = (project / "clean.onnx").read_bytes()
    done = vexlint("check", ".", *words, folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert (project / "clean.onnx").read_bytes() == before


@pytest.mark.parametrize(
    ("file", "words", "said"),
    [
        ("vexlint.toml", [], "is the configuration"),
        ("other.toml", ["--config", "other.toml"], "is the configuration"),
        ("known.json", ["--baseline", "known.json"], "is the baseline"),
    ],
)
def test_what_is_read_is_not_written_over(file: str, words: list[str], said: str, project: Path) -> None:
    if file == "known.json":
        assert vexlint("baseline", "update", file, ".", folder=project).returncode == 0
    else:
        (project / file).write_text('fail_on = "error"\n')
    before = (project / file).read_bytes()
    done = vexlint("check", ".", *words, "--format", f"sarif=./{file}", folder=project)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"vexlint: {file}: {said}: write the sarif elsewhere\n",
    )
    assert (project / file).read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_loses_nothing_else(project: Path) -> None:
    done = vexlint(
        "check", ".", "--format", "text", "--format", "sarif=/dev/full", "--format", "junit=j.xml", folder=project
    )
    assert done.returncode == 2
    assert done.stderr == "vexlint: /dev/full: cannot be written: No space left on device\n"
    assert "1 error" in done.stdout
    assert (project / "j.xml").exists()


def test_a_result_is_written_over_in_one_step_and_keeps_its_mode_and_link(project: Path) -> None:
    (project / "real").mkdir()
    (project / "real" / "a.sarif").write_text("old")
    (project / "real" / "a.sarif").chmod(0o640)
    (project / "a.sarif").symlink_to("real/a.sarif")
    assert vexlint("check", "clean.onnx", "--format", "sarif=a.sarif", folder=project).returncode == 0
    assert (project / "a.sarif").is_symlink()
    assert json.loads((project / "real" / "a.sarif").read_text("utf-8"))["version"] == "2.1.0"
    assert (project / "real" / "a.sarif").stat().st_mode & 0o777 == 0o640


def test_a_profile_has_the_rules_of_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "rules" / "VEX501-nms-outside.md").read_text("utf-8")
    for name in ("board", "release"):
        changed = page.replace('code = "VEX501"', f'code = "VEX5{name[0]}"\nprofile = "{name}"')
        changed = changed.replace('name = "nms-outside"', f'name = "{name}-rule"')
        (tmp_path / f"VEX5{name[0]}-{name}-rule.md").write_text(changed, "utf-8")
    book = {**RULES, **rulebook.load(tmp_path)}
    monkeypatch.setattr(rulebook, "load", lambda: book)
    monkeypatch.chdir(tmp_path)
    extra = {"": set(), "desktop": set(), "board": {"VEX5b"}, "release": {"VEX5b", "VEX5r"}}
    for name, more in extra.items():
        assert set(settings.settle(profile=name).rules) - set(RULES) == more
        (tmp_path / "vexlint.toml").write_text(f'profile = "{name or "desktop"}"\n')
        assert set(settings.settle().rules) - set(RULES) == more
    assert set(settings.settle(profile="board").rules) - set(RULES) == {"VEX5b"}
    assert "VEX301" not in settings.settle(select=["VEX5"]).rules
    (tmp_path / "vexlint.toml").write_text('select = ["VEX5b"]\n')
    assert "VEX301" in settings.settle(profile="desktop").rules
    (tmp_path / "vexlint.toml").write_text('select = ["VEX5b"]\nprofile = "board"\n')
    with pytest.raises(VexlintError, match="select and profile both say which rules run"):
        settings.settle()


def test_statistics_count_by_rule_the_worst_first() -> None:
    bad = some("VEX101", severity="error")
    files = (
        FileReport("a.onnx", "checked", (replace(bad, fix="safe"), some("VEX301"), some("VEX301", "b"))),
        FileReport("b.onnx", "checked", (some("VEX301", "b"), some("VEX302"))),
    )
    assert text.statistics(Report(files, ("onnx",))).splitlines() == [
        "    1 in 1 file       error    VEX101  x  (safe fix)",
        "    3 in 2 files      warning  VEX301  x",
        "    1 in 1 file       warning  VEX302  x",
        "",
        "1 error, 4 warnings, 0 infos in 2 files",
        "judged for onnx",
    ]
    assert text.statistics(Report((), ("onnx",))).startswith("0 errors")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ([], lambda r: True),
        (["VEX3"], lambda r: r.code.startswith("VEX3")),
        (["VEX301", "nms-outside"], lambda r: r.code in ("VEX301", "VEX501")),
        (["--severity", "error"], lambda r: r.severity == "error"),
        (["--fixable"], lambda r: r.fix_safety != "none"),
        (["--profile", "desktop"], lambda r: r.profile == "desktop"),
        (["VEX1", "--severity", "error", "--fixable"],
         lambda r: r.code.startswith("VEX1") and r.severity == "error" and r.fix is not None),
    ],
)  # fmt: skip
def test_rules_lists_what_is_asked_for(words: list[str], kept: Any) -> None:
    done = vexlint("rules", *words, folder=ROOT)
    assert done.returncode == 0
    assert [line[:6] for line in done.stdout.splitlines()] == [r.code for r in RULES.values() if kept(r)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["VEX999"], "'VEX999' names no rule"),
        (["--severity", "erro"], "--severity 'erro' is none of error, warning, info; did you mean error?"),
        (["--profile", "bord"], "--profile 'bord' is none of desktop, board, release; did you mean board?"),
    ],
)
def test_rules_does_not_guess(words: list[str], said: str) -> None:
    done = vexlint("rules", *words, folder=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
