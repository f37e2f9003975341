"""Target files: the format, what each says, and what `judge` makes of a node."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vexlint import config, tables, targets
from vexlint.changes import changes
from vexlint.checks.support import Judgement, describe, interesting, judge
from vexlint.config import OwnTarget
from vexlint.files import rules_folder
from vexlint.model import schemas
from vexlint.model.read import read
from vexlint.tables import Target
from vexlint.values import VexlintError

from . import support
from .support import DETECTOR, load

FILES = sorted((rules_folder() / "targets").glob("*-*.json"))
MINIMAL = {
    "runtime": "r",
    "version": "1",
    "source": "s",
    "evidence": "doc",
    "opsets": {"": {"max": 9, "basis": "none"}},
}
MINIMAL["ir"] = {"max": None, "basis": "unknown"}


def target(name: str, *own: OwnTarget) -> Target:
    return targets.resolve([name], own)[0][0]


def verdicts(text: str, folder: Path, name: str) -> list[tuple[str, str, str, str]]:
    """(operator, verdict, rule, why) of every node of a model that a target says something about."""
    model, chosen = load(text, folder), target(name)
    found = [(n, j) for n in interesting(model, chosen) for j in judge(n, chosen)]
    assert (
        found == [(n, j) for g in model.graphs for n in g.nodes for j in judge(n, chosen)] or len(model.operators) > 1
    )
    return [(n.op, j.verdict, j.rule, j.why) for n, j in found]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_file_is_valid_and_names_operators_and_versions_that_exist(path: Path) -> None:
    loaded = tables.load(path)
    assert path.stem == f"{loaded.runtime}-{loaded.version}"
    tables.validate(loaded)
    limit = loaded.opsets[""].max or 99
    for key in loaded.operators():
        domain, _, op = key.rpartition("::")
        entry = loaded.operator(domain, op)
        assert entry is not None
        history = schemas.versions(domain, op)
        told = {*(entry.runs or ()), *entry.partial, *entry.types, *(v for x in entry.limits for v in x.versions)}
        told |= {int(v) for v in entry.refuses if v != tables.ANY}
        if history:
            assert told <= set(history), f"{key}: no such schema version"
        assert all(v <= limit for v in told), f"{key}: a version above the target's opset limit"
        assert not (entry.runs or frozenset()) & entry.partial, f"{key}: both runs and partial"
        for restriction in entry.limits:
            assert describe(restriction)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_limit_names_attributes_and_inputs_the_operator_has(path: Path) -> None:
    loaded = tables.load(path)
    for key in loaded.operators():
        domain, _, op = key.rpartition("::")
        entry, history = loaded.operator(domain, op), schemas.versions(domain, op)
        assert entry is not None
        for limit in entry.limits if history else ():
            versions = [schemas.operator(domain, op, v) for v in limit.versions or history]
            names = {a for v in versions if v for a in v.attributes}
            assert {*limit.attribute, *limit.only, *limit.present, *limit.ones, *limit.positive} <= names, key
            inputs = max(v.max_inputs for v in versions if v)
            positions = (*limit.given, *limit.varies, *limit.computed, *limit.nonzero, *limit.above)
            assert all(i < inputs for i in positions), key


def test_differences_are_of_known_runtimes_versions_and_operators() -> None:
    runtimes = {name.partition("@")[0] for name in targets.known()}
    found = [(r, d) for r in runtimes for ds in tables.differences(r).values() for d in ds]
    assert len(found) >= 20
    for runtime, difference in found:
        assert schemas.versions("", difference.op)
        assert difference.when.verdict == "differs"
        assert difference.when.why
        assert tables.numbers(difference.since) <= tables.numbers(difference.until)
        assert any(difference.holds(t.version) for t in (target(n) for n in targets.known() if n.startswith(runtime)))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"opsetz": {}}, "unknown key 'opsetz'; did you mean opsets?"),
        ({"evidence": "rumour"}, "evidence = 'rumour' is none of probe, doc"),
        ({"lacking": "shrugs"}, "lacking = 'shrugs' is none of refuses, falls-back"),
        ({"ir": {"max": 3, "basis": "hope"}}, "ir: basis should be enforced"),
        ({"contrib": "com.microsoft"}, "contrib should be a list of strings"),
        ({"operators": []}, "operators should be a table"),
        ({"operators": {"Add": {"run": [7]}}}, "Add: unknown key 'run'; did you mean runs?"),
        ({"operators": {"Add": {"runs": 7}}}, "Add: runs should be a list"),
        ({"operators": {"Add": {"limits": [{"atribute": {}}]}}}, "unknown key 'atribute'; did you mean attribute?"),
        ({"operators": {"Add": {"limits": [{"versions": [7]}]}}}, "a limit without a condition"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(VexlintError) as error:
        tables.validate(tables.parse({**MINIMAL, **change}, "file.json: "))
    assert complaint in str(error.value)


def test_a_missing_key_and_a_file_that_is_no_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(VexlintError, match=r"f: ir is missing"):
        tables.parse({k: v for k, v in MINIMAL.items() if k != "ir"}, "f: ")
    (tmp_path / "x-1.json").write_text("{")
    with pytest.raises(VexlintError, match="not JSON"):
        tables.load(tmp_path / "x-1.json")


RESIZE = """<ir_version: 8, opset_import: ["" : {opset}]> g (float[1,3,8,8] x) => (float[1,3,16,16] y)
<float[4] s = {{1.0, 1.0, 2.0, 2.0}}> {{ y = Resize<{attributes}>(x, , s) }}"""


@pytest.mark.parametrize(
    ("name", "opset", "attributes", "expected"),
    [
        ("openvino", 18, 'mode = "linear", antialias = 1', [("differs", "VEX304")]),
        ("tensorrt", 18, 'mode = "linear", antialias = 1', [("refuses", "VEX304")]),
        ("tensorrt-rtx", 18, 'mode = "linear", antialias = 1', [("refuses", "VEX304")]),
        ("onnxruntime", 18, 'mode = "linear", antialias = 1', []),
        ("tensorrt@8.6", 13, 'mode = "cubic"', [("refuses", "VEX207")]),
        ("tensorrt@8.6", 13, 'mode = "linear"', []),
        ("tensorrt@7.0", 11, 'coordinate_transformation_mode = "half_pixel"', [("refuses", "VEX303")] * 2),
        ("openvino", 13, 'coordinate_transformation_mode = "tf_crop_and_resize"', [("refuses", "VEX304")]),
        ("openvino", 13, 'nearest_mode = "round_prefer_ceil"', [("differs", "VEX303")]),
        ("webnn", 18, 'mode = "cubic"', [("falls-back", "VEX207")]),
        ("rknn", 13, 'mode = "cubic"', [("refuses", "VEX207")]),
    ],
)
def test_resize_by_target(
    name: str, opset: int, attributes: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    text = RESIZE.format(opset=opset, attributes=attributes)
    assert [(v, r) for _, v, r, _ in verdicts(text, tmp_path, name)] == expected


CUBIC = """<ir_version: 8, opset_import: ["" : {opset}]> g ({kind}[1,1,4,4] x) => ({kind}[1,1,{side},{side}] y)
<float[4] s = {{1.0, 1.0, {scale}, {scale}}}> {{ y = Resize<mode = "cubic"{more}>(x, , s) }}"""


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize(("opset", "more"), [(13, ""), (19, ""), (19, ", antialias = 1")])
@pytest.mark.parametrize("kind", ["float", "uint8", "int8", "int32"])
def test_cubic_resizes_are_judged_as_the_runtime_runs_them(
    kind: str, opset: int, scale: int, more: str, tmp_path: Path
) -> None:
    text = CUBIC.format(kind=kind, opset=opset, scale=f"{scale}.0", side=4 * scale, more=more)
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    session = onnxruntime.InferenceSession(str(support.save(text, tmp_path)), providers=["CPUExecutionProvider"])
    try:
        session.run(None, {"x": np.ones((1, 1, 4, 4), kind.replace("float", "float32"))})
        refused = False
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        refused = True
    assert bool(verdicts(text, tmp_path, "onnxruntime@1.32")) == refused


HEADER = '<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({output}) {{ {nodes} }}'


@pytest.mark.parametrize(
    ("name", "opset", "inputs", "output", "nodes", "expected"),
    [
        # verdicts that the runtimes themselves gave
        ("openvino", 11, "float[2,3,4,5] x", "float[2,3,4,5] y", "y = Softmax<axis = 1>(x)", ["differs VEX209"]),
        ("openvino", 11, "float[2,3,4,5] x", "float[2,3,4,5] y", "y = Softmax<axis = 3>(x)", []),
        ("openvino", 13, "float[2,3,4,5] x", "float[2,3,4,5] y", "y = Softmax<axis = 1>(x)", []),
        ("tensorrt-rtx", 13, "uint8[2,3] x", "uint8[3,2] y", "y = Transpose(x)", ["refuses VEX601"]),
        ("tensorrt-rtx", 13, "float[2,3] x", "float[3,2] y", "y = Transpose(x)", []),
        ("onnxruntime", 13, "uint8[2,3] x", "uint8[3,2] y", "y = Transpose(x)", []),
        ("tensorrt", 11, "float[2,3] x", "uint8[2,3] y", "y, s, z = DynamicQuantizeLinear(x)", ["refuses VEX605"]),
        ("openvino", 11, "float[2,3] x", "uint8[2,3] y", "y, s, z = DynamicQuantizeLinear(x)", []),
        ("tensorrt-rtx", 13, "float[2,3] x", "int64[2,k] y", "y = NonZero(x)", ["needs-plugin VEX207"]),
        ("rknn", 13, "float[2,3] x", "int64[2,k] y", "y = NonZero(x)", ["refuses VEX405"]),
        ("coreml", 13, "float[2,3] x", "int64[2,k] y", "y = NonZero(x)", []),
        ("openvino", 20, "float[1,3,4,4] x, float[1,5,5,2] g", "float[1,3,5,5] y",
         'y = GridSample<mode = "bilinear">(x, g)', ["refuses VEX307"]),
        ("openvino", 20, "float[1,3,4,4] x, float[1,5,5,2] g", "float[1,3,5,5] y",
         'y = GridSample<mode = "linear">(x, g)', []),
        ("openvino", 20, "float[1,1,4,4,4] x, float[1,5,5,5,3] g", "float[1,1,5,5,5] y",
         "y = GridSample(x, g)", ["refuses VEX207"]),
        ("onnxruntime", 22, "float[1,3,8,8] x, float[n,4] r, int64[n] b", "float[n,3,1,1] y",
         "y = RoiAlign(x, r, b)", ["refuses VEX207"]),
        ("onnxruntime", 16, "float[1,3,8,8] x, float[n,4] r, int64[n] b", "float[n,3,1,1] y",
         "y = RoiAlign(x, r, b)", []),
        ("openvino", 13, "float[2,3] x, int64[1] a", "float[1,2,3] y", "y = Unsqueeze(x, a)", ["refuses VEX207"]),
        ("openvino", 13, "float[2,3] x", "float[1,2,3] y",
         "a = Constant<value_ints = [0]>() y = Unsqueeze(x, a)", []),
        ("tensorrt", 11, "float[1,9000] x", "float[1,k] y",
         "k = Constant<value = int64[1] {4000}>() y, i = TopK(x, k)", ["refuses VEX507"]),
        ("tensorrt", 11, "float[1,9000] x", "float[1,k] y",
         "k = Constant<value = int64[1] {3840}>() y, i = TopK(x, k)", []),
        ("tensorrt", 13, "float[4] x", "float[4] y", "s = SplitToSequence(x) i = Constant<value_int = 0>() "
         "y = SequenceAt(s, i)", ["refuses VEX110", "refuses VEX110"]),
        ("tensorrt-rtx", 15, "float[1,2,3,3] x, float[2] a, float[2] m", "float[1,2,3,3] y",
         "y, b, c = BatchNormalization<training_mode = 1>(x, a, a, m, a)", ["refuses VEX107"]),
        ("tensorrt@8.5", 13, "float[1,n] x", "float[1,k] y", "s = Shape(x) i = Constant<value_ints = [1]>() "
         "k = Gather(s, i) y, at = TopK(x, k)", ["refuses VEX507"]),
        ("tensorrt@8.5", 13, "float[1,n] x", "float[1,k] y", "s = Shape(x) i = Constant<value_ints = [0]>() "
         "k = Gather(s, i) y, at = TopK(x, k)", []),  # that axis is closed
        ("tensorrt@8.6", 13, "float[1,n] x", "float[1,k] y", "s = Shape(x) i = Constant<value_ints = [1]>() "
         "k = Gather(s, i) y, at = TopK(x, k)", []),
        ("tensorrt@8.5", 11, "int32[1,9] x", "int32[1,3] y", "k = Constant<value = int64[1] {3}>() y, i = TopK(x, k)",
         ["refuses VEX207"]),
        ("tensorrt@10.7", 13, "float[2,3] x", "float[2,2] y", 'y = Einsum<equation = "ab,cb->ac">(x, x)', []),
        ("tensorrt@10.7", 13, "float[2,3] x", "float[2,3] y", 'y = Einsum<equation = "ab,cb,cd->ad">(x, x, x)',
         ["refuses VEX207"]),
        ("tensorrt@8.0", 13, "float[1,1,4,4] x, int64[8] p", "float y", 'y = Pad<mode = "reflect">(x, p)',
         ["refuses VEX207"]),
        ("tensorrt@8.2", 13, "float[1,1,4,4] x, int64[8] p", "float y", 'y = Pad<mode = "reflect">(x, p)', []),
        ("tensorrt@10.13", 13, "uint8[2,3] x", "float[3,2] y", "f = Cast<to = 1>(x) y = Transpose(f)", []),
        ("tensorrt@10.13", 13, "uint8[2,3] x", "uint8[3,2] y", "y = Transpose(x)", ["refuses VEX601"]),
        # versions, types and opsets without a kernel
        ("onnxruntime", 22, "float[2,3] x", "float[2,3] y", "y = RandomUniformLike(x)", ["refuses VEX207"]),
        ("onnxruntime", 21, "float[2,3] x", "float[2,3] y", "y = RandomUniformLike(x)", []),
        ("onnxruntime", 25, "float[2,3] x", "float[2,3] y", "y = Swish(x)", ["refuses VEX207"]),
        ("onnxruntime", 24, "float[2,3] x", "float[2,3] y", "y = Swish(x)", []),
        ("onnxruntime", 28, "float[2,3] x", "float4e2m1[2,3] y", "y = Cast<to = 23>(x)", ["refuses VEX207"]),
        ("onnxruntime", 13, "float[2,3] x", "float[2,3] y", "y = Mod(x, x)", ["refuses VEX207"]),
        ("onnxruntime", 13, "float[2,3] x", "float[2,3] y", "y = Mod<fmod = 1>(x, x)", []),
        ("onnxruntime", 13, "int64[2,3] x", "int64[2,3] y", "y = Mod(x, x)", []),
        ("onnxruntime", 13, "float[2,3,4] x", "float[2,3,4] y", "y = LRN<size = 3>(x)", ["refuses VEX207"]),
        ("onnxruntime", 11, "int32[2] i, float d, int64[2] v", "int64[2,k] y", "y = OneHot(i, d, v)",
         ["refuses VEX207"]),
        ("onnxruntime", 11, "int64[2] i, int64 d, float[2] v", "float[2,k] y", "y = OneHot(i, d, v)", []),
        ("onnxruntime@1.17", 13, "float[2,3] x", "float[2,3] y", "y = Mish(x)", []),  # no such operator at opset 13
    ],
)  # fmt: skip
def test_nodes_by_target(
    name: str, opset: int, inputs: str, output: str, nodes: str, expected: list[str], tmp_path: Path
) -> None:
    text = HEADER.format(opset=opset, inputs=inputs, output=output, nodes=nodes)
    assert [f"{v} {r}" for _, v, r, _ in verdicts(text, tmp_path, name)] == expected


LOOP = """<ir_version: 8, opset_import: ["" : {opset}]> g (int64 n, bool go, {kind} x) => ({kind} y) {{
    y = Loop (n, go, x) <body = b (int64 i, bool c, {kind} a) => (bool d, {kind} e) {{
        d = Identity (c) e = Add (a, a) }}> }}"""


@pytest.mark.parametrize("name", ["onnxruntime@1.32", "onnxruntime@1.17", "tensorrt-rtx"])
@pytest.mark.parametrize("kind", ["int64[2]", "int32[2]", "float[2]"])
def test_what_a_loop_carries_may_be_of_any_type(name: str, kind: str, tmp_path: Path) -> None:
    """A probe that changes the type outside a subgraph and not inside says nothing of the operator."""
    assert verdicts(LOOP.format(opset=11, kind=kind), tmp_path, name) == []


@pytest.mark.parametrize("domain", ["ai.onnx.preview.training", "ai.onnx.preview"])
@pytest.mark.parametrize("target", ["onnxruntime@1.32", "openvino", "tensorrt-rtx"])
def test_operators_for_training_and_previews_are_in_no_runtime(domain: str, target: str, tmp_path: Path) -> None:
    op = "FlexAttention" if domain.endswith("preview") else "Momentum"
    text = f"""<ir_version: 8, opset_import: ["" : 17, "{domain}" : 1]> g (float[2] x) => (float[2] y) {{
        y = {domain}.{op} (x, x, x) }}"""
    report = support.judge(support.save(text, tmp_path), named=(target,))
    found = [f.severity.value for f in report.findings if f.code == "VEX207"]
    assert found == ["error"]


def test_a_parser_that_ignores_domains_judges_the_operator_of_that_name(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17, "vx" : 1]> g (float[2] x) => (float[2] y) { y = vx.NonZero(x) }'
    assert [v for _, v, _, _ in verdicts(text, tmp_path, "tensorrt-rtx")] == ["needs-plugin"]
    assert verdicts(text, tmp_path, "openvino") == []


def test_a_function_of_the_file_is_not_judged_by_its_name(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "f" : 1]> g (float[2] x) => (float[2] y) { y = f.NonZero(x) }
<domain: "f", opset_import: ["" : 17]> NonZero (a) => (b) { b = Relu(a) }"""
    assert verdicts(text, tmp_path, "tensorrt-rtx") == []


def test_judging_an_ordinary_file_starts_no_inference_for_the_default_targets() -> None:
    model = read(DETECTOR / "clean.onnx")
    for chosen in targets.resolve([])[0]:
        assert [j for n in interesting(model, chosen) for j in judge(n, chosen)] == []
    assert "inferred" not in vars(model)


def test_interesting_leaves_out_no_node_that_is_judged() -> None:
    for path in sorted(DETECTOR.glob("*.onnx")):
        model = read(path)
        for name in ("onnxruntime", "tensorrt@8.6", "ncnn", "coreml", "rknn"):
            chosen = target(name)
            wanted = {id(n): judge(n, chosen) for g in model.graphs for n in g.nodes}
            seen = {id(n) for n in interesting(model, chosen)}
            assert all(key in seen for key, found in wanted.items() if found)


BOARD = OwnTarget(
    "board", "tensorrt@8.6", add=("Mish",), remove=("Relu",), plugins=("vx::Thing",),
    limits={"Conv": ({"ones": ["dilations"], "why": "no dilation"},)},
)  # fmt: skip


def test_an_own_target_is_a_known_one_with_changes(tmp_path: Path) -> None:
    board = target("board", BOARD)
    assert (str(board), board.runtime, board.opsets[""].max) == ("board", "tensorrt", 17)
    assert targets.covers("board", board)
    assert targets.covers("tensorrt@8.6", board)
    text = """<ir_version: 8, opset_import: ["" : 17, "vx" : 1]> g (float[1,1,9,9] x, float[1,1,2,2] w)
=> (float[a,b,c,d] y) { r = Relu(x) c = Conv<dilations = [2, 2]>(r, w) t = vx.Thing(c) y = Sigmoid(t) }"""
    nodes = load(text, tmp_path).graph.nodes
    found = [[(j.verdict, j.why) for j in judge(n, board)] for n in nodes]
    assert found == [[("refuses", "board does not have it")], [("refuses", "no dilation")], [], []]
    assert judge(nodes[0], target("tensorrt@8.6")) == ()


def test_own_targets_come_from_the_configuration(tmp_path: Path) -> None:
    text = """[[target]]
name = "board"
extends = "tensorrt@8.6"
remove = ["Relu"]
[[target.limit]]
op = "Conv"
ones = ["dilations"]
"""
    loaded = config.parse(tomllib.loads(text), tmp_path / "vexlint.toml")
    assert loaded.own_targets == (
        OwnTarget("board", "tensorrt@8.6", remove=("Relu",), limits={"Conv": ({"ones": ["dilations"]},)}),
    )


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        (replace(BOARD, extends="tensort"), "unknown target 'tensort'; did you mean tensorrt?"),
        (replace(BOARD, limits={"Conv": ({"once": ["dilations"]},)}), "unknown key 'once'; did you mean ones?"),
    ],
)
def test_what_is_wrong_in_an_own_target_is_named(own: OwnTarget, complaint: str) -> None:
    with pytest.raises(VexlintError) as error:
        target("board", own)
    assert complaint in str(error.value)


@given(st.sampled_from([p.stem for p in FILES]), st.sampled_from(["Resize", "Conv", "Cast"]), st.integers(1, 28))
def test_a_status_and_a_reason_agree(stem: str, op: str, since: int) -> None:
    entry = tables.load(rules_folder() / "targets" / f"{stem}.json").operator("", op)
    if entry is not None:
        assert (entry.status(since) == "refuses") == (entry.reason(since) is not None)


def test_a_judgement_says_what_it_rests_on(tmp_path: Path) -> None:
    text = RESIZE.format(opset=18, attributes='mode = "linear", antialias = 1')
    (found,) = judge(load(text, tmp_path).graph.nodes[0], target("openvino"))
    assert found == Judgement("differs", "VEX304", "antialias is ignored", {"version": 18, "size": "1.36"})


def test_file_content_is_one_line_an_operator() -> None:
    for path in FILES:
        lines = path.read_text("utf-8").splitlines()
        data = json.loads("\n".join(lines))
        assert len(lines) <= len(data) + len(data["operators"]) + 4


def test_changes_name_schema_versions_that_exist() -> None:
    found = [c for made in changes().values() for c in made]
    assert {c.kind for c in found} == {"silent", "moved", "extended"}
    for change in found:
        assert change.since in schemas.versions("", change.op), f"{change.op} {change.since}"
        assert change.what
    assert [(c.since, c.kind) for c in changes()["Softmax"]] == [(13, "silent")]
