"""The gate as CI meets it: formats, the baseline, changed files, pre-commit, the action, the recipes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml

from tests import scratch
from tests.support import DETECTOR, ROOT, RULES, save
from vexlint import baseline, rulebook, settings
from vexlint.report import text
from vexlint.values import FileReport, Finding, Place, Report, Severity, VexlintError

MISH = DETECTOR / "custom_mish.onnx"
CLEAN = DETECTOR / "clean.onnx"
FIRST_MISH = "/backbone/stem/act/Mish_output_0"


def vexlint(*words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return scratch.run(sys.executable, "-m", "vexlint", *words, folder=folder, **{"PYTHONPATH": str(ROOT), **more})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one model that has an error and one that has none."""
    shutil.copy(MISH, tmp_path / "mish.onnx")
    shutil.copy(CLEAN, tmp_path / "clean.onnx")
    return tmp_path


# Formats


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
        (["--format", "sarif=no/such/a.sarif"], "a.sarif: cannot be written: its folder does not exist"),
        (["--format", "sarif=."], "cannot be written"),
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


# The baseline


def some(
    code: str = "VEX301", place: str = "a", count: int = 1, severity: str = "warning", op: str = "Resize"
) -> Finding:
    where = Place("node", "graph", 1, "", op, place, place)
    mark = f"{code}||::{op}|{place}|0"
    return Finding(code, "x", Severity(severity), None, None, "m", count, where, (), {}, "none", "", mark)


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


def exported_again(path: Path) -> None:
    """The same network under other names, a node in front of it: what another exporter's version makes."""
    model = onnx.load(path)
    kept = {v.name for v in (*model.graph.input, *model.graph.output)}
    for node in model.graph.node:
        node.name = f"node_{node.name}"
        for names in (node.input, node.output):
            names[:] = [n if n in kept or not n else f"val_{n}" for n in names]
    for named in (*model.graph.initializer, *model.graph.value_info):
        named.name = f"val_{named.name}"
    front = onnx.helper.make_node("Identity", ["images"], ["val_front"], "front")
    for node in model.graph.node:
        node.input[:] = ["val_front" if n == "images" else n for n in node.input]
    model.graph.node.insert(0, front)
    onnx.save(model, path)


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


# Only what changed


@pytest.fixture
def repository(project: Path) -> Path:
    (project / "models").mkdir()
    for name in ("mish.onnx", "clean.onnx"):
        (project / name).rename(project / "models" / name)
    scratch.commit(project)
    return project


def judged(folder: Path, *words: str) -> list[str]:
    """The files that a run looked at; it has to get that far."""
    done = vexlint("check", *words, "--format", "json", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return [f["path"] for f in json.loads(done.stdout)["files"]]


def test_nothing_changed_is_a_pass_that_says_so(repository: Path) -> None:
    done = vexlint("check", "--changed-since", "HEAD", folder=repository)
    assert (done.returncode, done.stderr) == (0, "vexlint: no model changed since HEAD\n")
    assert done.stdout.startswith("0 errors, 0 warnings, 0 infos in 0 files\n")


def test_what_changed_in_a_branch_is_judged_wherever_one_stands(repository: Path) -> None:
    scratch.git(repository, "switch", "-qc", "feature")
    exported_again(repository / "models" / "clean.onnx")
    scratch.commit(repository)
    scratch.git(repository, "switch", "-q", "main")
    exported_again(repository / "models" / "mish.onnx")
    scratch.commit(repository)
    scratch.git(repository, "switch", "-q", "feature")
    shutil.copy(CLEAN, repository / "models" / "né w.onnx")  # not added yet
    new = ["models/clean.onnx", "models/né w.onnx"]
    assert judged(repository, "--changed-since", "main") == new
    assert judged(repository, "--changed-since", "main...feature") == new[:1]
    assert judged(repository, "--changed-since", "HEAD~1..HEAD") == new[:1]
    assert judged(repository, "models/clean.onnx", "--changed-since", "main") == new[:1]
    assert judged(repository / "models", ".", "--changed-since", "main") == ["clean.onnx", "né w.onnx"]
    assert judged(repository / "models", "--changed-since", "main") == ["clean.onnx", "né w.onnx"]
    (repository / "models" / "clean.onnx").unlink()
    assert judged(repository, "--changed-since", "main") == new[1:]


def test_external_data_belongs_to_the_models_that_read_it(repository: Path) -> None:
    for name in ("one", "two"):
        onnx.save_model(
            onnx.load(CLEAN),
            repository / "models" / f"{name}.onnx",
            save_as_external_data=True,
            location=f"{name}.bin",
        )
    scratch.commit(repository)
    weights = repository / "models" / "one.bin"
    weights.write_bytes(weights.read_bytes()[::-1])
    assert judged(repository, "--changed-since", "HEAD") == ["models/one.onnx"]
    weights.unlink()
    done = vexlint("check", "--changed-since", "HEAD", folder=repository)
    assert done.returncode == 1
    assert "VEX711" in done.stdout


def test_a_change_of_the_configuration_concerns_every_model(repository: Path) -> None:
    (repository / "vexlint.toml").write_text('ignore = ["VEX101"]\n')
    assert judged(repository, "--changed-since", "HEAD") == ["models/clean.onnx", "models/mish.onnx"]
    scratch.commit(repository)
    (repository / "notes.txt").write_text("a text beside the models is none of theirs")
    assert judged(repository, "--changed-since", "HEAD") == []


def test_a_commit_that_git_lacks_is_no_pass(repository: Path) -> None:
    done = vexlint("check", "--changed-since", "origin/main", folder=repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert "origin/main" in done.stderr
    assert "fetch-depth 0" in done.stderr


# Profiles, statistics, lists of rules


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


# pre-commit, the action, the recipes


def recipe(kind: str) -> Any:
    """The YAML of docs/gating.md."""
    page = (ROOT / "docs" / "gating.md").read_text("utf-8")
    (block,) = re.findall(rf"^```yaml {kind}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return block


def test_pre_commit_stops_a_commit(tmp_path: Path) -> None:
    """The recipe of the page, with this checkout in the place of the hosted repository."""
    revision = scratch.package(tmp_path / "vexlint")
    project = tmp_path / "project"
    project.mkdir()
    settled = recipe("pre-commit").replace("https://github.com/OWNER/vexlint", str(tmp_path / "vexlint"))
    (project / ".pre-commit-config.yaml").write_text(settled.replace("v0.3.0", revision))
    (project / "notes.txt").write_text("no model")
    scratch.commit(project)
    home = {"PRE_COMMIT_HOME": str(tmp_path / "home")}
    assert scratch.run("pre-commit", "install", folder=project, **home).returncode == 0

    shutil.copy(CLEAN, project / "clean.onnx")
    scratch.git(project, "add", "-A")
    done = scratch.run("git", "commit", "-m", "clean", folder=project, **home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"vexlint\.+Passed", done.stderr)

    shutil.copy(MISH, project / "mish.onnx")
    scratch.git(project, "add", "-A")
    done = scratch.run("git", "commit", "-m", "mish", folder=project, **home)
    assert done.returncode == 1
    assert re.search(r"vexlint\.+Failed", done.stderr)
    assert "error VEX101 custom-node" in done.stderr
    assert scratch.git(project, "log", "--format=%s").splitlines() == ["clean", "a change"]


class Action:
    """The action's `run` steps in a shell, as the runner does it: inputs in expressions, its files as variables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.document = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
        self.source = folder / "source"
        scratch.package(self.source)
        (folder / "temp").mkdir()
        self.summary = folder / "temp" / "summary.md"

    def step(self, index: int, workspace: Path, inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        step = self.document["runs"]["steps"][index]
        given = {k: str(v["default"]) for k, v in self.document["inputs"].items()} | inputs
        values = {f"inputs.{k}": v for k, v in given.items()} | {"github.action_path": str(self.source)}
        env = {k: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: values[m[1]], v) for k, v in step["env"].items()}
        assert "${{" not in step["run"], "an expression in a script is an injection"
        self.summary.write_text("")
        return scratch.run(
            *("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]),
            folder=workspace, RUNNER_TEMP=str(self.folder / "temp"), GITHUB_STEP_SUMMARY=str(self.summary), **env,
        )  # fmt: skip


def test_the_action_runs(tmp_path: Path) -> None:
    action = Action(tmp_path)
    workspace = tmp_path / "work space"
    (workspace / "my models").mkdir(parents=True)
    shutil.copy(CLEAN, workspace / "my models" / "clean.onnx")
    scratch.commit(workspace)
    done = action.step(0, workspace, {})
    assert done.returncode == 0, done.stderr

    done = action.step(1, workspace, {"paths": "my models\n"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("::notice file=my models/clean.onnx,line=1,title=VEX501 nms-outside::")
    assert action.summary.read_text("utf-8").startswith("### vexlint: 0 errors")

    shutil.copy(MISH, workspace / "mish.onnx")
    inputs = {
        "sarif": "out.sarif",
        "changed-since": "HEAD",
        "paths": "",
        "options": "--ignore VEX501\n  --fail-on warning",
    }
    done = action.step(1, workspace, inputs)
    assert done.returncode == 1, done.stderr
    assert [line[:30] for line in done.stdout.splitlines()] == ["::error file=mish.onnx,line=1,"]
    assert json.loads((workspace / "out.sarif").read_text("utf-8"))["version"] == "2.1.0"

    vexlint("baseline", "update", "b.json", "mish.onnx", folder=workspace)
    done = action.step(1, workspace, {"paths": "mish.onnx", "baseline": "b.json"})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert action.step(1, workspace, {"paths": "none.onnx"}).returncode == 2
    assert action.step(1, workspace, {"paths": "; touch oops"}).returncode == 2
    assert not (workspace / "oops").exists()


@pytest.mark.parametrize(
    ("kind", "schema"),
    [("github", "vendor.github-workflows"), ("gitlab", "vendor.gitlab-ci"), ("", "vendor.github-actions")],
)
def test_recipes_and_action_are_valid(kind: str, schema: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yml"
    path.write_text(recipe(kind) if kind else (ROOT / "action.yml").read_text("utf-8"), "utf-8")
    done = scratch.run("check-jsonschema", "--builtin-schema", schema, str(path), folder=tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    steps = yaml.safe_load(recipe("github"))["jobs"]["vexlint"]["steps"]
    (step,) = [s for s in steps if "vexlint@" in s["uses"]]
    assert set(step["with"]) <= set(yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"])


def test_the_hook_is_one_that_pre_commit_takes(tmp_path: Path) -> None:
    done = scratch.run("pre-commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml"), folder=tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_gitlab_recipe_runs(repository: Path) -> None:
    base = scratch.git(repository, "rev-parse", "HEAD").strip()
    exported_again(repository / "models" / "mish.onnx")
    job = yaml.safe_load(recipe("gitlab"))["vexlint"]
    (line,) = job["script"]
    done = scratch.run("bash", "-ec", line, folder=repository, CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    assert done.returncode == 1, done.stderr
    assert "1 error, 0 warnings, 1 info in 1 file" in done.stdout
    for report in job["artifacts"]["reports"].values():
        assert (repository / report).exists()


# `vexlint show` as git's helper


def test_git_diff_of_a_model_reads(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gating.md").read_text("utf-8")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    scratch.git(tmp_path, "init", "-q")
    assert scratch.run("bash", "-ec", block, folder=tmp_path).returncode == 0
    shutil.copy(CLEAN, tmp_path / "m.onnx")
    scratch.commit(tmp_path)
    shutil.copy(DETECTOR / "align_corners.onnx", tmp_path / "m.onnx")
    shown = scratch.git(tmp_path, "diff", "-U0")
    lines = [line for line in shown.splitlines() if line.startswith(("+ ", "- ")) and "Resize(" in line]
    assert [line[0] for line in lines] == ["-", "+", "-", "+"]
    assert 'coordinate_transformation_mode="half_pixel"' in lines[0]
    assert 'coordinate_transformation_mode="align_corners"' in lines[1]
    (tmp_path / "m.onnx").write_bytes(CLEAN.read_bytes()[:5000])
    shown = scratch.git(tmp_path, "diff")
    assert re.search(r"^\+unreadable: ", shown, re.MULTILINE)
    scratch.git(tmp_path, "rm", "-qf", "m.onnx")
    assert "-ir_version 8" in scratch.git(tmp_path, "diff", "--cached")


def test_the_same_model_gives_the_same_text_wherever_it_lies(tmp_path: Path) -> None:
    shutil.copy(CLEAN, tmp_path / "temporary_name.onnx")
    one, other = (vexlint("show", str(p), folder=tmp_path).stdout for p in (CLEAN, tmp_path / "temporary_name.onnx"))
    assert one == other
    assert len(one.splitlines()) > 100


def test_a_node_in_front_changes_one_line(tmp_path: Path) -> None:
    model = onnx.load(CLEAN)
    model.graph.node.insert(0, onnx.helper.make_node("Identity", ["images"], ["front"], "front"))
    onnx.save(model, tmp_path / "m.onnx")
    one, other = (vexlint("show", str(p), folder=tmp_path).stdout.splitlines() for p in (CLEAN, tmp_path / "m.onnx"))
    assert [line for line in other if line not in one] == ["  front = Identity(images)  # front"]
    assert [line for line in one if line not in other] == []


EVERYTHING = """<ir_version: 10, opset_import: ["" : 17, "f" : 1], producer_name: "me", metadata_props: ["k": "v"]>
g (float[N,3] x, bool c) => (float[N,3] y)
<float[2] w = {0.5, -1}, int64[9] big = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
{
  z = Relu(x)
  a = f.Twice<k = 2.0>(z)
  y = If (c) <then_branch = t () => (float[N,3] p) { p = Neg(a) }, else_branch = e () => (float[N,3] q) { q = Abs(a) }>
}
<domain: "f", opset_import: ["" : 17]>
Twice <k> (a) => (b) { b = LeakyRelu<alpha: float = @k>(a) }
"""


def test_subgraphs_functions_and_tensors_are_shown(tmp_path: Path) -> None:
    path = save(EVERYTHING, tmp_path)
    digest = f"sha256:{hashlib.sha256(repr([('int64_data', list(range(1, 10)))]).encode()).hexdigest()[:16]}"
    done = vexlint("show", str(path), folder=tmp_path)
    assert done.stdout.splitlines() == [
        "ir_version 10",
        "producer me",
        "opset ai.onnx 17",
        "opset f 1",
        "metadata k = v",
        "graph g",
        "  input x: float[N,3]",
        "  input c: bool[]",
        "  output y: float[N,3]",
        f"  initializer big: int64[9] {digest}",
        "  initializer w: float[2] {0.5, -1}",
        "  z = Relu(x)",
        "  a = f::Twice(z) k=2",
        "  y = If(c)",
        "    else_branch: graph e",
        "      output q: float[N,3]",
        "      q = Abs(a)",
        "    then_branch: graph t",
        "      output p: float[N,3]",
        "      p = Neg(a)",
        "function f::Twice(a) -> (b)",
        "  opset ai.onnx 17",
        "  attribute k",
        "  b = LeakyRelu(a) alpha=@k",
    ]


def test_show_says_what_is_no_model_and_fails_on_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    done = vexlint("show", "a.onnx", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unreadable: not an ONNX model: it looks like a Git LFS pointer")
    done = vexlint("show", "none.onnx", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "vexlint: none.onnx: no such file\n")


def test_show_imports_nothing_heavy() -> None:
    code = (
        "import sys; from vexlint import show; n = len(list(show.lines(__import__('pathlib').Path(sys.argv[1]))));"
        "heavy = {'numpy', 'onnx', 'onnxruntime'}; print(n > 100, sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(CLEAN)], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True []\n"
