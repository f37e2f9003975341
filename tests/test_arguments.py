"""What nodes are given, at every depth: inside subgraphs, inside functions, behind nodes that make types and ranks."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import judge, load, save
from vexlint.model.kinds import Kind
from vexlint.values import FileReport, Severity

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
LOCAL = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n'
FUNCTION = '\n<domain: "local", opset_import: ["" : 17]> f (a, b) => (c) {{ {body} }}'


def errors(report: FileReport) -> list[tuple[str, str]]:
    return [(f.code, str(f.place)) for f in report.findings if f.severity is Severity.ERROR]


def said(text: str, folder: Path) -> list[tuple[str, str]]:
    return errors(judge(save(text, folder)))


BRANCHES = """net (float[2,3] x, int64[2] i, bool c) => (float[n,m] y) {
  BEFORE
  y = If (c) <
    then_branch = yes () => (float[n,m] u) { THEN },
    else_branch = no () => (float[n,m] v) { v = Neg (x) }
  >
  AFTER
}"""


def branch(body: str, before: str = "", after: str = "") -> str:
    return HEAD + BRANCHES.replace("THEN", body).replace("BEFORE", before).replace("AFTER", after)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("u = Add (x, i)", "VEX112"),
        ("a = Cast <to = 7> (x) u = Add (x, a)", "VEX112"),
        ("u = Add (x)", "VEX111"),
        ("u = Add (x, nothing)", "VEX709"),
        ("u = Softmax <axis = 2> (x)", "VEX113"),
        ("a = Transpose (x) u = Transpose <perm = [0, 1, 2]> (a)", "VEX113"),
    ],
)
def test_in_a_subgraph_with_values_of_the_graph_around_it(body: str, code: str, tmp_path: Path) -> None:
    ((found, place), *rest) = said(branch(body), tmp_path)
    assert (found, rest) == (code, [])
    assert place.startswith("graph/node[0]/then_branch/node[")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("c = Add (a, b)", "VEX112"),
        ("c = Softmax <axis = 2> (a)", "VEX113"),
        ("c = Relu (a, b)", "VEX111"),
        ("c = Relu (x)", "VEX709"),
    ],
)
def test_in_a_function_by_the_types_of_its_calls(body: str, code: str, tmp_path: Path) -> None:
    text = (
        LOCAL + "net (float[2,3] x, int64[2] i) => (float[n,m] y) { y = local.f (x, i) }" + FUNCTION.format(body=body)
    )
    assert [found for found, _ in said(text, tmp_path)] == [code]


def test_a_function_takes_fewer_arguments_than_it_declares_but_no_more(tmp_path: Path) -> None:
    text = LOCAL + "net (float[2,3] x) => (float[n,m] y) { y = local.f (%s) }" + FUNCTION.format(body="c = Relu (a)")
    assert said(text % "x", tmp_path) == []
    assert [found for found, _ in said(text % "x, x, x", tmp_path)] == ["VEX111"]


def test_a_function_below_hundreds_of_calls_is_judged_all_the_same(tmp_path: Path) -> None:
    bodies = [f"c = local.f{i + 1} (a)" for i in range(400)]
    bodies.append("d = Shape (a) e = Constant <value_float = 1.0> () c = Add (d, e)")
    functions = [
        f'\n<domain: "local", opset_import: ["" : 17, "local" : 1]> f{i} (a) => (c) {{ {body} }}'
        for i, body in enumerate(bodies)
    ]
    text = LOCAL + "net (float[2,3] x) => (float[n] y) { y = local.f0 (x) }" + "".join(functions)
    assert said(text, tmp_path) == [("VEX112", 'function local::f400/node[2] Add "c"')]


def test_an_argument_that_has_become_an_attribute_or_was_one_is_one_finding(tmp_path: Path) -> None:
    attribute = HEAD + "net (float[2,3] x) => (float[n,m,k] y) { y = Unsqueeze <axes = [0]> (x) }"
    assert [found for found, _ in said(attribute, tmp_path)] == ["VEX106"]
    given = '<ir_version: 6, opset_import: ["" : 11]>\nnet (float[2,3] x) => (float[n,m,k] y) <int64[1] a = {0}> '
    assert [found for found, _ in said(given + "{ y = Unsqueeze <axes = [0]> (x, a) }", tmp_path)] == ["VEX111"]


def test_types_and_sizes_are_followed(tmp_path: Path) -> None:
    model = load(
        HEAD
        + """net (float[2,3] x) => (float[n] y) <int64[3] s = {1, 2, 3}, int64[1] i = {0}> {
          a = Reshape (x, s)
          b = Cast <to = 10> (a)
          n = Shape (b)
          k = Gather (n, i)
          e = ReduceMax <axes = [0], keepdims = 0> (b)
          m = com.acme.Fused (e)
          f = Exp (m)
          y = Cast <to = 1> (f)
        }""",
        tmp_path,
    )
    kinds = [use.inputs[0] for use in model.uses]
    half, whole = "tensor(float16)", "tensor(int64)"
    assert kinds == [
        Kind("tensor(float)", (2, 3)),
        Kind("tensor(float)", (1, 2, 3)),
        Kind(half, (1, 2, 3)),
        Kind(whole, (3,), (1, 2, 3)),
        Kind(half, (1, 2, 3)),
        Kind(half, (2, 3)),
        Kind("", None),
        Kind("", None),
    ]


def test_what_a_subgraph_may_hide_and_what_not(tmp_path: Path) -> None:
    """As ONNX Runtime loads it: a name that the outer graph makes later may be used inside."""

    def shadowed(name: str, before: str = "", after: str = "") -> list[str]:
        text = branch(f"{name} = Relu (x) u = Neg ({name})", before, after)
        findings = judge(save(text, tmp_path), named=("onnxruntime",)).findings
        return [f.code for f in findings if f.severity is Severity.ERROR]

    assert shadowed("a", before="a = Abs (x)") == ["VEX704"]
    assert shadowed("a", after="a = Abs (x)") == []
    assert shadowed("y") == []


@pytest.mark.parametrize("deep", [False, True])
def test_data_is_counted_in_initializers_and_in_constants(deep: bool, tmp_path: Path) -> None:
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[600], raw_data=bytes(2396))
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [600]) for n in "xy")
    nodes = [onnx.helper.make_node("Add", ["x", "w"], ["y"])]
    nodes = [onnx.helper.make_node("Constant", [], ["w"], value=tensor), *nodes] if deep else nodes
    graph = onnx.helper.make_graph(nodes, "net", [x], [y], [] if deep else [tensor])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    (finding,) = judge(path).findings
    assert finding.code == "VEX710"
    assert finding.message.endswith("float [600] needs 2400 bytes of data and has 2396")


@pytest.mark.parametrize(
    ("call", "opset", "found"),
    [
        ("y = MaxPool <kernel_shape = [3], pads = [-1, 0]> (x)", 17, [("error", "VEX113")]),
        ("y = ArgMax <keepdims = 2> (x)", 17, [("warning", "VEX113")]),
        ("s = Size (x) y = ReduceMean <axes = [1]> (s)", 10, []),  # ONNX Runtime hands a scalar on
        ("y = Mod (x, x)", 17, [("error", "VEX113")]),
        ("y = Mod <fmod = 1> (x, x)", 17, []),
    ],
)
def test_ranges_that_runtimes_keep_to(call: str, opset: int, found: list[tuple[str, str]], tmp_path: Path) -> None:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]>\nnet (float[1,2,8] x) => (float y) {{ {call} }}'
    report = judge(save(text, tmp_path))
    assert [(f.severity.value, f.code) for f in report.findings if f.code == "VEX113"] == found
