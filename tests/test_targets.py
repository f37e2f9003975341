"""Target names and versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vexlint import targets
from vexlint.files import rules_folder
from vexlint.values import VexlintError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("onnx", "onnx"),
        ("onnxruntime", "onnxruntime@1.32.0"),
        ("onnxruntime@1.32", "onnxruntime@1.32.0"),
        ("onnxruntime-cpu@1", "onnxruntime@1.32.0"),
        ("ort", "onnxruntime@1.32.0"),
        ("trt@11.5", "tensorrt@11.5"),
        ("openvino@2026.4.1", "openvino@2026.4.1"),
    ],
)
def test_names_prefixes_and_aliases(name: str, expected: str) -> None:
    (target,), notes = targets.resolve([name])
    assert (str(target), target.named, notes) == (expected, True, [])


def test_a_version_above_the_newest_is_judged_as_the_newest_and_said() -> None:
    (target,), notes = targets.resolve(["onnxruntime@1.99"])
    assert str(target) == "onnxruntime@1.32.0"
    assert notes == ["onnxruntime@1.99 is newer than every version known: judged as onnxruntime@1.32.0"]


def test_a_version_between_takes_the_nearest_lower_one(monkeypatch: pytest.MonkeyPatch) -> None:
    path = rules_folder() / "targets" / "onnxruntime-1.32.0.json"
    known = {("onnxruntime", (1, 20, 1)): ("1.20.1", path), ("onnxruntime", (1, 32, 0)): ("1.32.0", path)}
    monkeypatch.setattr(targets, "_index", lambda: known)
    _, notes = targets.resolve(["onnxruntime@1.25"])
    assert notes == ["onnxruntime@1.25 is not known: judged as onnxruntime@1.20.1"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("onxruntime", "unknown target 'onxruntime'; did you mean onnxruntime?"),
        ("tensorrt@ten", "'ten' is no version; write tensorrt@11.5"),
        ("tensorrt@1.0", "older than the oldest version known, tensorrt@"),
        ("", "unknown target ''"),
    ],
)
def test_what_names_nothing_is_an_error(name: str, complaint: str) -> None:
    with pytest.raises(VexlintError) as error:
        targets.resolve([name])
    assert complaint in str(error.value)


def test_the_defaults_are_the_newest_known_and_not_named() -> None:
    judged, notes = targets.resolve([])
    assert notes == []
    assert [str(t) for t in judged] == targets.default_names()
    assert not any(t.named for t in judged)


def test_every_target_file_loads_and_says_where_its_facts_are_from() -> None:
    for name in targets.known():
        (target,), _ = targets.resolve([name])
        assert target.source
        assert target.opsets[""].min >= 1


def test_file_names_say_what_is_in_them() -> None:
    for path in (rules_folder() / "targets").glob("*.json"):
        data = json.loads(Path(path).read_text("utf-8"))
        assert path.stem == f"{data['runtime']}-{data['version']}"
