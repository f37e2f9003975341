"""The program as a user meets it: exit codes, streams, mistakes, files that are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.malformed import corpus
from tests.support import DETECTOR, ROOT, codes, judge, save
from vexlint import config, paths
from vexlint.values import VexlintError

PROGRAM = [sys.executable, "-m", "vexlint"]
CLEAN = str(DETECTOR / "clean.onnx")
CUSTOM = str(DETECTOR / "custom_mish.onnx")


def vexlint(*words: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run(
        [*PROGRAM, *words], cwd=folder, env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["check", CLEAN], 0),
        (["check", CUSTOM], 1),
        (["check", CLEAN, "--fail-on", "info"], 1),
        (["check", CUSTOM, "--ignore", "VEX101"], 0),
        (["check", CUSTOM, "--select", "VEX3"], 0),
        (["check", CLEAN, CUSTOM], 1),
        (["rules"], 0),
        (["explain", "VEX301"], 0),
        (["explain", "resize-align-corners"], 0),
        (["contract", CLEAN], 0),
        (["--version"], 0),
        (["--help"], 0),
        (["check", "--help"], 0),
    ],
)
def test_exit_codes(words: list[str], code: int) -> None:
    done = vexlint(*words)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "Missing argument"),
        (["check", "none.onnx"], "none.onnx: no such file or folder"),
        (
            ["check", CLEAN, "golden_models/shapes_detector/claen.onnx"],
            "did you mean golden_models/shapes_detector/clean.onnx?",
        ),
        (["check", "docs"], "docs: no model in this folder"),
        (["check", "docs/*.onnx"], "no model matches this pattern"),
        (["check", CLEAN, "--select", "VEX999"], "'VEX999' names no rule"),
        (["check", CLEAN, "--select", "VEX301", "--ignore", "VEX3"], "no rule is left to judge with"),
        (["check", CLEAN, "--select", "VEX901"], "add --probe"),
        (["check", CLEAN, "--ignore", "resize-align-corner"], "did you mean resize-align-corners?"),
        (["check", CLEAN, "--target", "tensorflow"], "unknown target 'tensorflow'"),
        (["check", CLEAN, "--fail-on", "never"], "--fail-on 'never' is none of error, warning, info"),
        (["check", CLEAN, "--format", "jsn"], "unknown format 'jsn'; did you mean json?"),
        (["check", CLEAN, "--config", "none.toml"], "none.toml: cannot be read"),
        (["check", CLEAN, "--nope"], "No such option"),
        (["chekc", CLEAN], "chekc"),
        (["explain", "VEX999"], "'VEX999' names no rule"),
        (["contract", "README.md"], "README.md: "),
        (["contract", "none.onnx"], "none.onnx: cannot be opened"),
    ],
)
def test_a_mistake_is_one_sentence_on_stderr_and_exit_code_2(words: list[str], said: str) -> None:
    done = vexlint(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("vexlint: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_malformed_input_is_vex001_with_exit_code_2(tmp_path: Path) -> None:
    for name, data in corpus().items():
        (tmp_path / f"{name}.onnx").write_bytes(data)
    (tmp_path / "good.onnx").write_bytes(Path(CLEAN).read_bytes())
    done = vexlint("check", "--format", "json", str(tmp_path))
    assert (done.returncode, done.stderr) == (2, "")
    files = {Path(f["path"]).stem: f for f in json.loads(done.stdout)["files"]}
    assert len(files) == len(corpus()) + 1
    for name in corpus():
        assert [f["code"] for f in files[name]["findings"]] == ["VEX001"], name
        assert files[name]["status"] == "incomplete"
        assert files[name]["reason"] == files[name]["findings"][0]["message"]
    assert [f["code"] for f in files["good"]["findings"]] == ["VEX501"], "one bad file is not the end of the run"


def test_a_single_malformed_file_exits_with_2(tmp_path: Path) -> None:
    for name, data in list(corpus().items())[:5]:
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(data)
        done = vexlint("check", str(path), "--ignore", "VEX001")
        assert done.returncode == 2, "what cannot be read is never a pass"
        assert "VEX001 unreadable" in done.stdout


def test_a_folder_given_as_a_file_or_without_permission(tmp_path: Path) -> None:
    path = save('<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Relu (x) }', tmp_path)
    if os.geteuid() == 0:
        path.unlink()
        path.symlink_to(tmp_path / "gone.onnx")  # root may read everything: a link to nothing cannot be opened either
        report = judge(path)
    else:
        path.chmod(0)
        report = judge(path)
    assert codes(report) == [("error", "VEX001")]
    assert "cannot be opened" in report.findings[0].message


def test_json_goes_to_stdout_alone_even_for_many_files(tmp_path: Path) -> None:
    for i in range(25):
        (tmp_path / f"{i}.onnx").write_bytes(Path(CLEAN).read_bytes())
    done = vexlint("check", str(tmp_path), "--format", "json")
    assert done.stderr == ""
    assert json.loads(done.stdout)["summary"]["files"] == 25


def test_a_contract_that_covers_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(Path(CLEAN).read_bytes())
    (tmp_path / "vexlint.toml").write_text('[[model]]\npath = "n.onnx"\nopset = 11\n')
    done = vexlint("check", "m.onnx", folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr == "vexlint: no contract: no [[model]] of the configuration covers m.onnx\n"
    (tmp_path / "vexlint.toml").write_text('[[model]]\npath = "m.onnx"\nopset = 11\n')
    covered = vexlint("check", "m.onnx", folder=tmp_path)
    assert (covered.returncode, covered.stderr) == (1, "")


def test_a_waiver_that_waives_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(Path(CUSTOM).read_bytes())
    waiver = '[[waive]]\nrule = "{}"\npath = "{}"\nreason = "known"\n'

    def said(*waivers: str, words: tuple[str, ...] = ()) -> str:
        (tmp_path / "vexlint.toml").write_text("".join(waivers))
        return vexlint("check", "m.onnx", *words, folder=tmp_path).stderr

    idle = "vexlint: the waiver of VEX301 for *.onnx sets nothing aside in this run\n"
    assert said(waiver.format("VEX101", "*.onnx"), waiver.format("VEX301", "*.onnx")) == idle
    assert said(waiver.format("custom-node", "*.onnx"), waiver.format("vex501", "m.onnx")) == ""
    assert said(waiver.format("VEX301", "other.onnx")) == "", "no file that it covers was looked at"
    assert said(waiver.format("VEX301", "*.onnx"), words=("--select", "VEX101")) == "", "its rule was not asked"
    assert said(waiver.format("VEX901", "*.onnx")) == "", "no runtime was asked"
    assert said(waiver.format("VEX602", "*.onnx")) == "", "the weights were not read"
    assert said(waiver.format("VEX602", "*.onnx"), words=("--profile", "release")) == idle.replace("VEX301", "VEX602")
    assert said(waiver.format("VEX101", "*.onnx") + 'op = "Mosh"\n').count("sets nothing aside") == 1


def test_the_start_of_codes_is_not_one_page() -> None:
    done = vexlint("explain", "vex30")
    assert (done.returncode, done.stdout) == (2, "")
    assert "vex30 stands for" in done.stderr and "VEX301, VEX302" in done.stderr
    assert vexlint("explain", "vex301").stdout == vexlint("explain", "resize-align-corners").stdout


def test_rules_say_from_which_profile_they_look_deeper() -> None:
    lines = {line.split()[0]: line for line in vexlint("rules").stdout.splitlines()}
    assert lines["VEX603"].endswith(" (from the profile release on)")
    assert lines["VEX602"].endswith(" (looks deeper from the profile release on)")
    assert lines["VEX406"].endswith(" (looks deeper from the profile board on)")
    assert not lines["VEX301"].endswith(" on)")


def test_without_a_word_the_help_is_shown_as_it_is() -> None:
    done = vexlint()
    assert (done.returncode, done.stderr) == (2, "")
    assert "Usage: " in done.stdout
    assert "see vexlint --help" not in done.stdout


def test_notes_go_to_stderr() -> None:
    done = vexlint("check", CLEAN, "--target", "onnxruntime@1.99")
    assert done.returncode == 0
    assert done.stderr == "vexlint: onnxruntime@1.99 is newer than every version known: judged as onnxruntime@1.32.0\n"


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    command = " ".join([*PROGRAM, "explain", "VEX301"])
    done = subprocess.run(f"{command} | true", shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not run: there is no /dev/full here")
@pytest.mark.parametrize("words", ["rules", "--help", "targets", f"check {CLEAN}", f"contract {CLEAN}"])
def test_a_full_disk_behind_stdout_is_one_sentence(words: str) -> None:
    command = " ".join([*PROGRAM, words])
    done = subprocess.run(f"{command} > /dev/full", shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    said = "vexlint: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="not run: needs /proc to see when checking begins")
def test_ctrl_c_ends_with_2_and_no_traceback(tmp_path: Path) -> None:
    for i in range(3000):
        (tmp_path / f"{i}.onnx").symlink_to(CLEAN)
    child = subprocess.Popen(
        [*PROGRAM, "check", str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while "clean.onnx" not in Path(f"/proc/{child.pid}/maps").read_text() and time.monotonic() < deadline:
        pass  # until it maps a model: a signal during its imports is Python's own business
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (2, "", "vexlint: interrupted\n")


def test_a_read_only_home_and_folder_are_enough(tmp_path: Path) -> None:
    done = vexlint("check", CLEAN, HOME="/nonexistent", PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stderr) == (0, "")


def test_names_that_are_not_ascii_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "détecteur 模型.onnx"
    path.write_bytes(Path(CLEAN).read_bytes())
    done = vexlint("check", str(path), PYTHONIOENCODING="utf-8")
    assert done.returncode == 0
    assert "détecteur 模型.onnx" in done.stdout


# Paths


def test_folders_are_walked_and_hidden_ones_left_out(tmp_path: Path) -> None:
    for name in (
        "b/2.onnx",
        "a.onnx",
        "b/1.onnxtxt",
        ".venv/x.onnx",
        "b/.cache/y.onnx",
        "readme.md",
        "model.onnx.data",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(p.relative_to(tmp_path)) for p in paths.expand([str(tmp_path), str(tmp_path / "a.onnx")])]
    assert found == ["a.onnx", "b/1.onnxtxt", "b/2.onnx"]
    assert [p.name for p in paths.expand([str(tmp_path / "**" / "*.onnx")])] == ["a.onnx", "2.onnx"]
    assert [p.name for p in paths.expand([str(tmp_path / "readme.md")])] == ["readme.md"], "named outright is meant"


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    path = tmp_path / "net[1].onnx"
    path.touch()
    assert paths.expand([str(path)]) == [path]


def test_a_missing_path_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(VexlintError, match="no such file"):
        paths.expand([CLEAN, str(tmp_path / "gone.onnx")])


# Contract drafts


@pytest.mark.parametrize("model", sorted(DETECTOR.glob("*.onnx")), ids=lambda p: p.name)
def test_a_drafted_contract_is_one_that_its_file_keeps(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / model.name
    copy.write_bytes(model.read_bytes())
    done = vexlint("contract", copy.name, folder=tmp_path)
    assert done.returncode == 0
    drafted = config.parse(tomllib.loads(done.stdout), tmp_path / "vexlint.toml")
    (contract,) = drafted.models
    assert contract.task == "detect"
    assert contract.opset in (11, 17, 20)
    assert contract.inputs["images"].dtype == "float32"
    errors = [c for s, c in codes(judge(copy, contract)) if s == "error"]
    assert errors == (["VEX101"] if model.name == "custom_mish.onnx" else [])
    layout = "v5" if model.name == "objectness.onnx" else "v8"
    assert f'# nms = {{ layout = "{layout}"' in done.stdout
