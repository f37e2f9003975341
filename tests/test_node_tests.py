"""The node tests of the onnx package: no error on one that ONNX Runtime loads, and errors once they are broken."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime
import pytest

from tests.support import RULES
from vexlint import engine, targets
from vexlint.checks.context import Context
from vexlint.model.model import Model
from vexlint.model.proto import message_class
from vexlint.values import Severity

Break = Callable[[onnx.ModelProto], bool]  # False where a model has nothing of the kind
CONTEXT = Context(targets=targets.resolve(["onnxruntime", "onnx"])[0])
CHECKS = {code: rule for code, rule in RULES.items() if rule.source == "model"}


@pytest.fixture(scope="module")
def models() -> dict[str, bytes]:
    """Name -> model of every node test that ONNX Runtime loads on a CPU."""
    from onnx.backend.test.case.node import collect_testcases

    onnxruntime.set_default_logger_severity(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the test cases' own arithmetic
        cases = [(c.name, c.model.SerializeToString()) for c in collect_testcases(None) if c.model is not None]
    loaded = {name: data for name, data in cases if loads(data)}
    assert len(loaded) > 1000
    return loaded


def loads(data: bytes) -> bool:
    try:
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def errors(data: bytes) -> list[str]:
    model = Model(message_class("ModelProto").FromString(data), Path("model.onnx"))
    return [f"{f.code} {f.message}" for f in engine.check(model, CHECKS, CONTEXT) if f.severity is Severity.ERROR]


def test_no_error_on_a_node_test_that_onnx_runtime_loads(models: dict[str, bytes]) -> None:
    said = {name: found for name, data in models.items() if (found := errors(data))}
    assert said == {}


def without_inputs(model: onnx.ModelProto) -> bool:
    for node in model.graph.node:
        del node.input[:]
    return True


def dangling(model: onnx.ModelProto) -> bool:
    for node in reversed(model.graph.node):
        if any(node.input):
            node.input[[bool(name) for name in node.input].index(True)] = "nowhere"
            return True
    return False


def misspelt_operator(model: onnx.ModelProto) -> bool:
    model.graph.node[-1].op_type += "x"
    return True


def misspelt_attribute(model: onnx.ModelProto) -> bool:
    for node in model.graph.node:
        if node.attribute:
            node.attribute[0].name += "q"
            return True
    return False


def attribute_of_another_type(model: onnx.ModelProto) -> bool:
    for node in model.graph.node:
        if node.attribute:
            name = node.attribute[0].name
            value = 7 if node.attribute[0].type == onnx.AttributeProto.STRING else "text"
            node.attribute[0].CopyFrom(onnx.helper.make_attribute(name, value))
            return True
    return False


def value_made_twice(model: onnx.ModelProto) -> bool:
    model.graph.node.append(onnx.helper.make_node("Constant", [], [model.graph.node[-1].output[0]], value_int=1))
    return bool(model.graph.node[-1].output[0])


def no_import(model: onnx.ModelProto) -> bool:
    del model.opset_import[:]
    return True


def opset_zero(model: onnx.ModelProto) -> bool:
    model.opset_import[0].version = 0
    # ONNX Runtime's own version of it below opset 17 is a warning
    return "LayerNormalization" not in {node.op_type for node in model.graph.node}


def axis_far_out(model: onnx.ModelProto) -> bool:
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "axis" and node.op_type in (
                "Concat",
                "Softmax",
                "Gather",
                "Split",
                "Flatten",
                "ArgMax",
            ):
                attribute.i = 99
                return len(model.graph.node) == 1  # behind others the rank may be unknown
    return False


KINDS = [
    dangling,
    misspelt_operator,
    misspelt_attribute,
    attribute_of_another_type,
    value_made_twice,
    no_import,
    opset_zero,
    axis_far_out,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_broken_in_one_way_every_node_test_has_an_error(kind: Break, models: dict[str, bytes]) -> None:
    missed = []
    tried = 0
    for name, data in models.items():
        model = onnx.ModelProto.FromString(data)
        if kind(model):
            tried += 1
            missed += [] if errors(model.SerializeToString()) else [name]
    assert tried > 20
    assert missed == []


def test_a_node_without_any_input_is_judged_and_not_stumbled_over(models: dict[str, bytes]) -> None:
    for data in models.values():
        model = onnx.ModelProto.FromString(data)
        without_inputs(model)
        errors(model.SerializeToString())
