"""What the measurements measure with: mutants, compositions, and the children that say what a runtime thinks."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests import mutants
from tests.benchmarks import agreement
from tests.benchmarks import mutants as program
from tests.benchmarks.doctor import json_lists
from tests.benchmarks.judging import errors, judged, told
from tests.benchmarks.truth import Runtime
from tests.compositions import composition
from tests.feeds import agree, feeds_for, fits
from tests.networks import networks
from tests.support import save

NETWORKS = networks()
RELU = '<ir_version: 8, opset_import: ["": 17]> g (float[1,3] x) => (float[1,3] y) { y = Relu (x) }'


@pytest.mark.parametrize("kind", mutants.KINDS)
def test_every_kind_breaks_some_network_and_the_same_seed_in_the_same_way(kind: str) -> None:
    made = 0
    for name, model in NETWORKS.items():
        before = model.SerializeToString(deterministic=True)
        twice = [mutants.mutate(model, kind, random.Random(name)) for _ in range(2)]
        assert model.SerializeToString(deterministic=True) == before
        assert twice[0] == twice[1]
        made += twice[0] is not None
    assert made > 0


def test_networks_are_valid_and_without_an_error(tmp_path: Path) -> None:
    for name, model in NETWORKS.items():
        onnx.checker.check_model(model, full_check=True)
        path = tmp_path / f"{name}.onnx"
        onnx.save(model, path)
        assert errors(judged(path, "onnxruntime")) == (), name


def test_a_composition_is_its_seed_s_and_some_are_valid() -> None:
    newest = onnx.defs.onnx_opset_version()
    made = [composition(seed, newest) for seed in range(40)]
    assert made == [composition(seed, newest) for seed in range(40)]
    assert all(2 <= len(model.graph.node) <= 6 for model in made)
    assert {model.opset_import[0].version for model in made} <= set(range(7, newest + 2))
    valid = 0
    for model in made:
        try:
            onnx.checker.check_model(model, full_check=True)
            valid += 1
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            pass
    assert 8 <= valid <= 36


def test_a_runtime_accepts_refuses_at_load_and_at_run(tmp_path: Path) -> None:
    runtime = Runtime("onnxruntime")
    try:
        data = save(RELU, tmp_path).read_bytes()
        x = np.array([[-1, 0, 2]], np.float32)
        verdict = runtime.ask(data, {"x": x})
        assert (verdict.stage, verdict.words) == ("", "")
        assert agree(verdict.outputs, [np.array([[0, 0, 2]], np.float32)])
        assert runtime.ask(data.replace(b"Relu", b"Rulu"), {"x": x}).stage == "load"
        assert runtime.ask(data, {"x": x[:, :2]}).stage == "run"
        assert runtime.ask(b"no model", None).stage == "load"
    finally:
        runtime.close()


def test_a_crash_is_said_to_be_one_and_the_next_question_has_a_new_child(tmp_path: Path) -> None:
    runtime = Runtime("checker")
    try:
        data = save(RELU, tmp_path).read_bytes()
        command = [sys.executable, "-c", "import sys; sys.stdin.buffer.read(8); sys.exit(7)"]
        runtime.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert runtime.ask(data, None).stage == "crash"
        assert runtime.ask(data, None).accepted
    finally:
        runtime.close()


def test_a_hang_is_said_to_be_one(tmp_path: Path) -> None:
    runtime = Runtime("checker", deadline=0.0)
    try:
        assert runtime.ask(save(RELU, tmp_path).read_bytes(), None).stage == "hang"
    finally:
        runtime.close()


def test_inputs_are_the_given_ones_where_they_fit_and_noise_elsewhere() -> None:
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    model = helper.make_model(helper.make_graph([], "g", values, []))
    given = np.ones((5, 3), np.float32)
    made = feeds_for(model, {"x": given})
    assert made is not None and made["x"] is given
    assert not fits(given.astype(np.float64), values[0])
    assert not fits(given[:, :2], values[0])
    noise = feeds_for(model)
    assert noise is not None and noise["x"].shape == (2, 3)
    assert noise["x"].dtype == np.float32


def test_outputs_agree_but_for_rounding() -> None:
    a = np.array([1.0, np.nan], np.float32)
    assert agree([a], [a * np.float32(1.0005)])
    assert not agree([a], [a * np.float32(1.01)])
    assert not agree([a], [a.astype(np.float64)])
    assert not agree([a], [a, a])
    assert agree([[a]], [[a]])


def test_news_are_more_of_a_code_than_before(tmp_path: Path) -> None:
    before = told(judged(save(RELU, tmp_path), "onnxruntime"))
    after = told(judged(save(RELU.replace("Relu", "Rulu"), tmp_path), "onnxruntime"))
    assert program.news(before, after) == ("VEX101 error",)
    assert program.news(after, after) == ()


def test_a_mutant_counts_once_and_only_while_its_kind_lacks_some() -> None:
    have, seen = Counter[str](), set[str]()
    made = [
        program.Mutant("k", "o", "refused", "", "", True, True, True, (), digest) for digest in ("a", "a", "b", "c")
    ]
    assert [program._counted(have, seen, mutant, 2) for mutant in made] == [True, False, True, False]


def test_the_confusion_table_counts_what_each_side_says() -> None:
    said = [("load", ("VEX101 no",)), ("load", ()), ("", ()), ("", ("VEX101 no",)), ("", ())]
    answers = [agreement.Answer("set", str(i), "", stage, "", found) for i, (stage, found) in enumerate(said)]
    assert agreement.table(answers, "t").splitlines()[-1] == "| set | 5 | 2 | 1 | 50.0 % | 3 | 1 | 33.3 % |"


def test_lists_of_json_printed_one_after_another_are_read_apart() -> None:
    assert list(json_lists('[]\n[{"code": "A"}]\n')) == [[], [{"code": "A"}]]
