"""`--changed-since`: which models changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx

from tests import scratch
from tests.scratch import CLEAN, exported_again, vexlint


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


def test_a_range_that_ends_elsewhere_than_the_working_tree_is_no_pass(repository: Path) -> None:
    """What lies here is judged, so it has to be what the range ends with; the rest may differ."""
    clean, mish = (repository / "models" / f"{name}.onnx" for name in ("clean", "mish"))
    exported_again(clean)
    scratch.commit(repository)
    assert judged(repository, "--changed-since", "HEAD~1..HEAD") == ["models/clean.onnx"]
    mish.write_bytes(CLEAN.read_bytes())
    assert judged(repository, "--changed-since", "HEAD~1..HEAD") == ["models/clean.onnx"], "not in the range"
    before = clean.read_bytes()
    exported_again(clean)
    for undo, words in ((None, []), (None, ["models/clean.onnx"]), (clean.unlink, [])):
        if undo:
            undo()
        done = vexlint("check", *words, "--changed-since", "HEAD~1..HEAD", folder=repository)
        assert (done.returncode, done.stdout) == (2, "")
        assert "models/clean.onnx is another in the working tree than at the end of the range" in done.stderr
    assert judged(repository, "models/mish.onnx", "--changed-since", "HEAD~1..HEAD") == []
    clean.write_bytes(before)
    assert judged(repository, "--changed-since", "HEAD~1..") == ["models/clean.onnx"]


def test_a_file_that_git_ignores_is_judged_where_it_is_named(repository: Path) -> None:
    (repository / ".gitignore").write_text("built.onnx\n")
    scratch.commit(repository)
    shutil.copy(CLEAN, repository / "models" / "built.onnx")
    assert judged(repository, "models/built.onnx", "--changed-since", "HEAD") == ["models/built.onnx"]
    assert judged(repository, "models", "--changed-since", "HEAD") == []


def test_a_commit_that_git_lacks_is_no_pass(repository: Path) -> None:
    done = vexlint("check", "--changed-since", "origin/main", folder=repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert "origin/main" in done.stderr
    assert "fetch-depth 0" in done.stderr
