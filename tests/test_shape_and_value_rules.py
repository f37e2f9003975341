"""Rules about resizing, shapes, types and values: what the pages' examples do not show."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.support import RULES, codes, judge, load, save
from vexlint import engine, rulebook, targets
from vexlint.checks import weights
from vexlint.config import Config, Contract
from vexlint.engine import Settings
from vexlint.model import native, open_axes, payloads
from vexlint.values import FileReport

TOPICS = (
    *("VEX305", "VEX306", "VEX403", "VEX404", "VEX405", "VEX406", "VEX407"),
    *("VEX507", "VEX601", "VEX602", "VEX603", "VEX604", "VEX606"),
)
NAN, INF = float("nan"), float("inf")
HEAD = '<ir_version: 8, opset_import: ["" : {opset}]>\n'


def deep(path: Path, *chosen: str, named: tuple[str, ...] = ()) -> FileReport:
    """What the chosen rules say where they may look as deep as they can."""
    run = Settings(rulebook.select(RULES, chosen, []), Config(folder=path.parent), targets.resolve(list(named))[0])
    return engine.check_file(path, run)


def graph(body: str, opset: int = 17) -> str:
    return HEAD.format(opset=opset) + body


def weighted(array: np.ndarray[Any, Any], form: str = "initializer", external: bool = False) -> ModelProto:
    """A MatMul with this weight, as an initializer, in a Constant or inside a branch."""
    tensor = numpy_helper.from_array(array, "w")
    nodes, held = [helper.make_node("MatMul", ["x", "w"], ["y"])], []
    if form == "initializer":
        held = [tensor]
    elif form == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=tensor))
    else:
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        inside = helper.make_graph(nodes, "branch", [], [y], [tensor])
        other = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "other", [], [y])
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=inside, else_branch=other)]
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    inputs = [helper.make_tensor_value_info("x", kind, [1, array.shape[0]])]
    if form == "branch":
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    outputs = [helper.make_tensor_value_info("y", kind, [1, array.shape[1]])]
    made = helper.make_graph(nodes, "net", inputs, outputs, held)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# VEX602: every way in which a number can be held


@pytest.mark.parametrize("form", ["initializer", "constant", "branch"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("rows", [4, 400])
@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_weight_that_is_no_number_is_found_wherever_it_is(
    form: str, dtype: type, rows: int, bad: float, tmp_path: Path
) -> None:
    array: np.ndarray[Any, Any] = np.ones((rows, 8), dtype)
    array[rows // 2, 3] = bad
    path = tmp_path / "model.onnx"
    onnx.save(weighted(array, form), path)
    (finding,) = deep(path, "VEX602").findings
    assert (finding.severity.value, finding.message) == (
        "error",
        f"1 of {rows * 8:,} numbers is {'NaN' if np.isnan(bad) else 'infinite'}",
    )
    shallow = [f for f in judge(path).findings if f.code == "VEX602"]
    assert bool(shallow) == (array.nbytes < 1024)


def test_weights_beside_the_model_and_in_typed_fields_are_read(tmp_path: Path) -> None:
    array = np.ones((400, 8), np.float32)
    array[7, 7] = NAN
    path = tmp_path / "beside.onnx"
    onnx.save(weighted(array), path, save_as_external_data=True, location="beside.data", size_threshold=0)
    assert [f.code for f in deep(path, "VEX602").findings] == ["VEX602"]
    typed = weighted(array)
    typed.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.FLOAT, [400, 8], array.flatten().tolist()))
    onnx.save(typed, tmp_path / "typed.onnx")
    assert [f.code for f in deep(tmp_path / "typed.onnx", "VEX602").findings] == ["VEX602"]


def test_pieces_of_a_large_weight_are_all_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "CHUNK", 64)
    array = np.ones((40, 8), np.float32)
    array[::10, 0], array[5, 5] = NAN, 1e-40
    path = tmp_path / "model.onnx"
    onnx.save(weighted(array), path)
    found = {f.severity.value: f.message for f in deep(path, "VEX602").findings}
    assert found == {"error": "4 of 320 numbers are NaN"}
    model = load(graph("g (float[1] x) => (float[1] y) <float[1] w = {1}> { y = Add (x, w) }"), tmp_path)
    assert weights.count(model, numpy_helper.from_array(array)) == weights.Census(4, 0, 1, 320)


@pytest.mark.parametrize(
    ("call", "numbers", "said"),
    [
        ("Mod <fmod = 1> (x, w)", "nan, 2", "warning"),  # a NaN that no layer weighs with may be meant
        ("Add (x, w)", "nan, 2", "error"),
        ("Add (x, w)", "inf, 2", "warning"),
        ("Add (x, w)", "-inf, 2", ""),  # a mask
        ("Max (x, w)", "inf, 2", ""),  # a bound
    ],
)
def test_what_is_no_number_is_judged_by_what_reads_it(call: str, numbers: str, said: str, tmp_path: Path) -> None:
    text = f"g (float[2] x) => (float[2] y) <float[2] w = {{{numbers}}}> {{ y = {call} }}"
    found = [f.severity.value for f in judge(save(graph(text), tmp_path)).findings if f.code == "VEX602"]
    assert found == ([said] if said else [])


def test_masks_and_bounds_may_be_infinite(tmp_path: Path) -> None:
    text = "g (float[1,2] x, bool[1,2] m) => (float[1,2] y) <float n = {-inf}> { y = Where (m, x, n) }"
    assert deep(save(graph(text), tmp_path), "VEX602").findings == ()


# VEX305, VEX306, VEX507, VEX606: old opsets, defaults, inputs left out

RESIZE = "g (float[1,3,4,4] x) => (float[a,b,c,d] y) {weights} {{ y = {call} }}"


@pytest.mark.parametrize(
    ("opset", "weights_", "call", "expected"),
    [
        (11, "<float[0] e = {}, int64[4] z = {1, 3, 8, 8}>", "Resize (x, e, e, z)", []),
        (13, "<float[0] e = {}, int64[4] z = {1, 3, 8, 8}>", "Resize (x, e, e, z)", []),
        (13, "<float[4] s = {1, 1, 2, 2}>", "Resize (x, , s)", []),
        (10, "<float[4] s = {1, 1, 2, 2}>", "Resize (x, s)", []),
        (10, "<float[3] s = {1, 2, 2}>", "Resize (x, s)", ["VEX305"]),
        (9, "<float[4] s = {1, 1, 2, 2}>", "Upsample (x, s)", []),
        (9, "<float[4] s = {1, 1, 0.5, 0.5}>", "Upsample (x, s)", ["VEX305"]),
        (13, "", "Resize (x)", ["VEX305"]),
        (17, "<float[4] s = {1, 1, 0, 2}>", "Resize (x, , s)", ["VEX305"]),
        (17, "<float[4] s = {1, 1, nan, 2}>", "Resize (x, , s)", ["VEX305"]),
        (18, "<int64[2] z = {8, 8}>", "Resize <axes = [2, 3]> (x, , , z)", []),
        (18, "<int64[4] z = {1, 3, 8, 8}>", "Resize <axes = [2, 3]> (x, , , z)", ["VEX305"]),
        (17, "<float[4] s = {1, 2, 1, 1}>", "Resize (x, , s)", ["VEX306"]),
        (17, "<int64[4] z = {1, 6, 4, 4}>", "Resize (x, , , z)", ["VEX306"]),
        (9, "<float[4] s = {1, 2, 2, 1}>", "Upsample (x, s)", ["VEX306"]),
    ],
)
def test_resizes_of_every_age(opset: int, weights_: str, call: str, expected: list[str], tmp_path: Path) -> None:
    path = save(graph(RESIZE.format(weights=weights_, call=call), opset), tmp_path)
    assert [f.code for f in deep(path, "VEX305", "VEX306").findings] == expected


@pytest.mark.parametrize(
    ("shape", "slope", "opset", "expected"),
    [
        ("1,3,4,4", "3", 17, "error"), ("1,4,4,4", "4", 17, "warning"), ("1,3,4,w", "3", 17, "error"),
        ("1,3,4,4", "3,1,1", 17, ""), ("1,3,4,4", "1", 17, ""), ("1,3,4,4", "3", 6, ""), ("1,3", "3", 17, ""),
        ("1,7,3", "3", 17, ""),
    ],
)  # fmt: skip
def test_slopes_are_judged_by_where_they_go(shape: str, slope: str, opset: int, expected: str, tmp_path: Path) -> None:
    count = np.prod([int(s) for s in slope.split(",")])
    numbers = ", ".join(["0.5"] * int(count))
    text = f"g (float[{shape}] x) => (float[{shape}] y) <float[{slope}] s = {{{numbers}}}> {{ y = PRelu (x, s) }}"
    assert [f.severity.value for f in deep(save(graph(text, opset), tmp_path), "VEX606").findings] == [expected] * bool(
        expected
    )


# VEX404: axes followed, and what ends the trail


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<int64[2] t = {1, -1}> { y = Reshape (x, t) }", ""),
        ("<int64[2] t = {0, -1}> { y = Reshape (x, t) }", ""),
        ("<int64[2] t = {1, 128}> { y = Reshape (x, t) }", "a Reshape to [1,128]"),
        ("<int64[2] t = {1, 8}> { a = GlobalAveragePool (x) y = Reshape (a, t) }", "a Reshape to [1,8]"),
        ("<int64[1] t = {0}> { y = Squeeze (x, t) }", "a Squeeze takes away axis 0"),
        ("<int64 t = {0}> { a = Gather <axis = 0> (x, t) b = Gather <axis = 0> (x, t) y = Add (a, b) }", ""),
        ("<int64 t = {0}> { s = Shape (x) y = Gather <axis = 0> (s, t) }", ""),
        ("<float[8,1,1] t> { y = Add (x, t) }", ""),
        ("<int64[1] s = {0}, int64[1] e = {1}> { y = Slice (x, s, e) }", "a Slice takes one image"),
        ("<int64[2] t = {1, 128}> { a = NonZero (x) y = Reshape (a, t) }", ""),
    ],
)
def test_open_axes_are_followed_as_far_as_it_is_certain(body: str, said: str, tmp_path: Path) -> None:
    text = graph(f"g (float[?,8,4,4] x) => (float[a,b] y) {body}").replace("<float[8,1,1] t>", "")
    if "Add (x, t)" in body:
        text = text.replace("float[?,8,4,4] x)", "float[?,8,4,4] x, float[8,1,1] t)")
    path = save(text, tmp_path)
    found = [f.message for f in deep(path, "VEX404").findings]
    assert [m[: len(said)] for m in found] == [said] * bool(said)


def test_nothing_is_followed_where_nothing_is_open(tmp_path: Path) -> None:
    model = load(graph("g (float[1,8] x) => (float[1,8] y) { y = Relu (x) }"), tmp_path)
    assert open_axes.follow(model.graph) == {}


# VEX406: what is declared


def test_symbols_contradict_nothing_and_inference_is_not_started_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = graph("g (float[1,3,4,4] x) => (float[n,3,h,w] y) <float[n,m,?,4] a> { a = Relu (x) y = Relu (a) }")
    assert deep(save(text, tmp_path), "VEX406").findings == ()
    text = graph("g (float[1,3,4,4] x) => (float[1,3,9,4] y) <float[1,2,4,4] a> { a = Relu (x) y = Relu (a) }")
    wrong = save(text, tmp_path)
    assert codes(deep(wrong, "VEX406")) == [("warning", "VEX406")] * 2
    monkeypatch.setattr(native, "call", None)
    assert codes(judge(wrong)) == [("warning", "VEX406")] * 2


@pytest.mark.parametrize("call", ["Relu (x)", "Cast <to = 1> (x)", "Add (x, w)", "Where (m, x, x)"])
def test_a_wrong_type_of_an_output_is_found_without_inference(call: str, tmp_path: Path) -> None:
    text = f"g (float[2] x, bool[2] m) => (int64[2] y) <float[2] w = {{1, 2}}> {{ y = {call} }}"
    assert ("error", "VEX406") in codes(judge(save(graph(text), tmp_path)))


# The standard's own examples


def test_no_error_on_a_node_of_the_standard_that_onnx_runtime_runs(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    from onnx.backend.test.case.node import collect_testcases

    runtime.set_default_logger_severity(4)
    book = rulebook.select(RULES, [c for c in TOPICS if c != "VEX603"], [])  # which is about half precision
    run = Settings(book, Config(folder=tmp_path), targets.resolve([])[0])
    path = tmp_path / "model.onnx"
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the package's own generators say
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None:
            continue
        path.write_bytes(case.model.SerializeToString())
        report = engine.check_file(path, run)
        assert report.reason is None, case.name
        if any(f.severity.value == "error" for f in report.findings) and _loads(runtime, path):
            wrong.append((case.name, [f.message for f in report.findings]))
    assert wrong == []


def _loads(runtime: Any, path: Path) -> bool:
    try:
        runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception:  # what a runtime refuses, for whatever reason
        return False
    return True


def test_half_precision_rules_wait_for_a_contract(tmp_path: Path) -> None:
    text = graph("g (float[2] x) => (float[2] y) <float n = {-1000000000.0}> { y = Add (x, n) }")
    path = save(text, tmp_path)
    assert codes(judge(path)) == []
    assert codes(judge(path, Contract("*", precision="fp16"))) == [("error", "VEX603")]
