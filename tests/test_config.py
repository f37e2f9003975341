"""The configuration: what it takes, what it refuses and in which words, where it is found."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from vexlint import config, rulebook, settings
from vexlint.config import Contract, Input, Plugin, Profile, Waiver
from vexlint.values import Severity, VexlintError

WHOLE = """
targets = ["onnxruntime", "tensorrt@11.5"]
fail_on = "warning"
select = ["VEX3"]
ignore = ["resize-modes-mixed"]

[[plugin]]
operator = "TRT::EfficientNMS_TRT"
targets = ["tensorrt"]

[[model]]
path = "models/**/detector*.onnx"
task = "detect"
opset = 17
precision = "fp32"
resize = "half_pixel"
inputs.images = { shape = ["batch", 3, 320, 320], dtype = "float32" }
preprocessing = { colour = "RGB" }
nms = { layout = "v8", score = 0.25 }
tolerance = { iou_drift = 0.001 }
profile.images = { min = [1, 3, 320, 320], opt = [4, 3, 320, 320], max = [8, 3, 320, 320] }

[[waive]]
rule = "VEX301"
path = "models/*.onnx"
op = "Resize"
reason = "trained so"
until = 2027-06-30
"""


def write(folder: Path, text: str, name: str = "vexlint.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_everything_a_configuration_says(tmp_path: Path) -> None:
    loaded = config.load(write(tmp_path, WHOLE))
    assert loaded == config.Config(
        folder=tmp_path,
        targets=("onnxruntime", "tensorrt@11.5"),
        fail_on=Severity.WARNING,
        select=("VEX3",),
        ignore=("resize-modes-mixed",),
        models=(
            Contract(
                path="models/**/detector*.onnx",
                task="detect",
                opset=17,
                precision="fp32",
                resize="half_pixel",
                inputs={"images": Input(("batch", 3, 320, 320), "float32")},
                preprocessing={"colour": "RGB"},
                nms={"layout": "v8", "score": 0.25},
                tolerance={"iou_drift": 0.001},
                profile={"images": Profile((1, 3, 320, 320), (4, 3, 320, 320), (8, 3, 320, 320))},
            ),
        ),
        waivers=(Waiver("VEX301", "models/*.onnx", "trained so", None, "Resize", datetime.date(2027, 6, 30)),),
        plugins=(Plugin("TRT::EfficientNMS_TRT", ("tensorrt",)),),
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("fail_on", "fail_at"), "unknown key 'fail_at'; did you mean fail_on?"),
        (('"warning"', '"warn"'), "fail_on = 'warn' is none of error, warning, info; did you mean warning?"),
        (("opset = 17", 'opset = "17"'), "model 1: opset should be int, not '17'"),
        (("opset = 17", "opset = true"), "model 1: opset should be int, not True"),
        (("opset = 17", "opset = 0"), "model 1: opset should be 1 or more"),
        (("half_pixel", "half_pixels"), "did you mean half_pixel?"),
        (("colour", "color"), "model 1: preprocessing: unknown key 'color'; did you mean colour?"),
        (('"RGB"', '"RBG"'), "preprocessing: colour = 'RBG' is none of RGB, BGR, GRAY; did you mean RGB?"),
        (('["batch", 3', "[1, 3"), "inputs.images.shape fixes axis 0 to 1, profile.images has it from 1 to 8"),
        (("score = 0.25", "conf = 0.25"), "model 1: nms: unknown key 'conf'"),
        (("iou_drift", "iou_drif"), "did you mean iou_drift?"),
        (('["batch", 3', "[0, 3"), "model 1: inputs.images: shape should be a list of sizes of 1 or more or names"),
        (("shape = ", "shapes = "), "model 1: inputs.images: unknown key 'shapes'; did you mean shape?"),
        (("opt = [4", "opt = [9"), "model 1: profile.images: min <= opt <= max must hold"),
        (("opt = [4, 3, 320, 320]", "opt = [4, 3]"), "min <= opt <= max must hold"),
        (("min = ", "mn = "), "unknown key 'mn'; did you mean min?"),
        (('path = "models/**/detector*.onnx"\n', ""), "model 1: path is missing"),
        (('rule = "VEX301"\n', ""), "waive 1: rule is missing"),
        (("until = 2027-06-30", 'until = "soon"'), "waive 1: until should be date, not 'soon'"),
        (('operator = "TRT::EfficientNMS_TRT"\n', ""), "plugin 1: operator is missing"),
        (("[[model]]", "[model]"), "model should be list"),
        (('["VEX3"]', "[3]"), "select should be a list of strings"),
        (('"detect"', '"detection"'), "task = 'detection' is none of"),
        (("[[waive]]", "[[waive"), "not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_place(change: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    assert change[0] in WHOLE
    path = write(tmp_path, WHOLE.replace(*change, 1))
    with pytest.raises(VexlintError) as error:
        config.load(path)
    assert str(error.value).startswith(str(path))
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("glob", "file", "covered"),
    [
        ("models/*.onnx", "models/a.onnx", True),
        ("models/*.onnx", "models/deep/a.onnx", False),
        ("models/**/*.onnx", "models/a.onnx", True),
        ("models/**/*.onnx", "models/deep/er/a.onnx", True),
        ("*.onnx", "a.onnx", True),
        ("**", "models/a.onnx", True),
        ("a[0-9].onnx", "a7.onnx", True),
        ("models/a.onnx", "../models/a.onnx", False),
    ],
)
def test_globs(glob: str, file: str, covered: bool, tmp_path: Path) -> None:
    assert config.Config(folder=tmp_path).covers(glob, tmp_path / file) == covered


def test_two_entries_for_one_file_are_an_error(tmp_path: Path) -> None:
    two = config.Config(folder=tmp_path, models=(Contract("*.onnx"), Contract("a*.onnx")))
    with pytest.raises(VexlintError, match=r"two \[\[model\]\] entries match it, '\*\.onnx' and 'a\*\.onnx'"):
        two.contract(tmp_path / "a.onnx")
    assert two.contract(tmp_path / "b.onnx") == Contract("*.onnx")
    assert two.contract(tmp_path / "b.txt") == Contract()


def test_the_nearest_configuration_upwards_holds(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert config.find(deep) is None or not config.find(deep).is_relative_to(tmp_path)  # type: ignore[union-attr]
    pyproject = write(tmp_path, "[tool.vexlint]\nfail_on = 'info'\n", "pyproject.toml")
    write(tmp_path / "a", "[project]\nname = 'other'\n", "pyproject.toml")
    assert config.find(deep) == pyproject
    assert config.load(pyproject).fail_on is Severity.INFO
    nearer = write(tmp_path / "a", "")
    assert config.find(deep) == nearer


def test_a_missing_configuration_is_said(tmp_path: Path) -> None:
    with pytest.raises(VexlintError, match="cannot be read: No such file"):
        config.load(tmp_path / "none.toml")


def test_options_replace_the_configuration_and_ignore_adds(tmp_path: Path) -> None:
    path = write(tmp_path, WHOLE)
    from_file = settings.settle(path)
    assert [str(t) for t in from_file.targets] == ["onnxruntime@1.32.0", "tensorrt@11.5"]
    reader = {"VEX001", "VEX002", "VEX003"}
    sampling = {code for code in rulebook.load() if code.startswith("VEX3")}
    assert set(from_file.rules) == sampling - {"VEX302"} | reader
    given = settings.settle(path, ["openvino"], ["VEX1"], ["VEX102"], "info")
    assert [str(t) for t in given.targets] == ["openvino@2026.4.1"]
    assert set(given.rules) == {code for code in rulebook.load() if code.startswith("VEX1")} - {"VEX102"} | reader
    assert given.config.fail_on is Severity.INFO


def test_a_waiver_of_no_rule_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, WHOLE.replace('rule = "VEX301"', 'rule = "VEX310"'))
    with pytest.raises(VexlintError, match="'VEX310' names no rule"):
        settings.settle(path)
