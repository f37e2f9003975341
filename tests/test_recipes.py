"""pre-commit, the action and the recipes of docs/gating.md, run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import scratch
from tests.scratch import CLEAN, MISH, exported_again, vexlint
from tests.support import ROOT


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
