"""Sizes that a walk follows, those that cannot go together, and what must not be called so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import judge, load, save
from vexlint.model.signatures import Misfit, match
from vexlint.values import Severity

HEAD = '<ir_version: 10, opset_import: ["" : {opset}]>\n'


def made(call: str, inputs: str, tmp_path: Path, opset: int = 17, weights: str = "") -> tuple[int | None, ...] | None:
    """The sizes of what one node makes."""
    text = f"net ({inputs}) => (float[...] y) {f'<{weights}>' if weights else ''} {{ y = {call} }}"
    model = load(HEAD.format(opset=opset) + text.replace("float[...]", "float"), tmp_path)
    from vexlint.model.kinds import walk

    model.proto.graph.output[0].ClearField("type")
    return walk(model).values["y"].dims


@pytest.mark.parametrize(
    ("call", "inputs", "weights", "wanted"),
    [
        ("Add (x, z)", "float[4,1,3] x, float[5,1] z", "", (4, 5, 3)),
        ("Add (x, z)", "float[n,1,3] x, float[5,1] z", "", (None, 5, 3)),
        ("MatMul (x, z)", "float[2,1,3,4] x, float[5,4,6] z", "", (2, 5, 3, 6)),
        ("MatMul (x, z)", "float[4] x, float[4,6] z", "", (6,)),
        ("Gemm <transA = 1> (x, z)", "float[4,3] x, float[4,6] z", "", (3, 6)),
        ("Conv <pads = [1,1,1,1], strides = [2,2]> (x, z)", "float[1,3,9,8] x, float[5,3,3,3] z", "", (1, 5, 5, 4)),
        (
            'Conv <auto_pad = "SAME_UPPER", strides = [2,2]> (x, z)',
            "float[1,3,9,8] x, float[5,3,3,3] z",
            "",
            (1, 5, 5, 4),
        ),
        ("ConvTranspose <strides = [2,2]> (x, z)", "float[1,3,4,n] x, float[3,5,2,2] z", "", (1, 5, 8, None)),
        ("MaxPool <kernel_shape = [2,2], strides = [2,2]> (x)", "float[n,3,9,8] x", "", (None, 3, 4, 4)),
        ("GlobalAveragePool (x)", "float[n,3,9,8] x", "", (None, 3, 1, 1)),
        ("Concat <axis = -1> (x, z)", "float[2,3] x, float[2,n] z", "", (2, None)),
        ("Transpose (x)", "float[2,3,4] x", "", (4, 3, 2)),
        ("Reshape (x, s)", "float[2,3,4] x", "int64[3] s = {0, -1, 2}", (2, 6, 2)),
        ("Reshape (x, s)", "float[n,3,4] x", "int64[2] s = {0, 12}", (None, 12)),
        ("Slice (x, s, e, a)", "float[2,9] x", "int64[1] s = {1}, int64[1] e = {99}, int64[1] a = {-1}", (2, 8)),
        ("Gather <axis = 1> (x, s)", "float[2,9,4] x", "int64[2,2] s = {1, 2, 3, 4}", (2, 2, 2, 4)),
        ("Flatten (x)", "float[2,3,4] x", "", (2, 12)),
        ("Squeeze (x, s)", "float[2,1,4] x", "int64[1] s = {1}", (2, 4)),
        ("Unsqueeze (x, s)", "float[2,4] x", "int64[2] s = {0, -1}", (1, 2, 4, 1)),
        ("ReduceMean <axes = [1], keepdims = 0> (x)", "float[2,3,4] x", "", (2, 4)),
        ("Pad (x, s)", "float[2,3] x", "int64[4] s = {0, 1, 0, 2}", (2, 6)),
        ("Expand (x, s)", "float[2,1] x", "int64[3] s = {4, 1, 5}", (4, 2, 5)),
        ("Tile (x, s)", "float[2,3] x", "int64[2] s = {2, 1}", (4, 3)),
        ("Resize (x, , s)", "float[1,3,5,5] x", "float[4] s = {1, 1, 1.5, 2}", (1, 3, 7, 10)),
        ("Where (c, x, z)", "bool[3,1] c, float[1,4] x, float z", "", (3, 4)),
        ("DepthToSpace <blocksize = 2> (x)", "float[1,8,2,3] x", "", (1, 2, 4, 6)),
        ('Einsum <equation = "bij,bjk->bik"> (x, z)', "float[2,3,4] x, float[2,4,5] z", "", (2, 3, 5)),
        ("BatchNormalization (x, z, z, z, z)", "float[1,n,2,2] x, float[3] z", "", (1, 3, 2, 2)),
    ],
)
def test_what_nodes_make(call: str, inputs: str, weights: str, wanted: tuple[int | None, ...], tmp_path: Path) -> None:
    assert made(call, inputs, tmp_path, weights=weights) == wanted


def errors(inputs: str, body: str, tmp_path: Path, opset: int = 17, weights: str = "") -> list[str]:
    text = f"net ({inputs}) => (float y) {f'<{weights}>' if weights else ''} {{ {body} }}"
    model = save(HEAD.format(opset=opset) + text, tmp_path)
    report = judge(model, named=("onnxruntime",))
    assert report.reason is None
    return [f.code for f in report.findings if f.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        ("float[3] x, float[5] z", "Add (x, z)"),
        ("float[2,3] x, float[4,5] z", "MatMul (x, z)"),
        ("float[2,3] x, float[4,5] z", "Gemm (x, z)"),
        ("float[1,3,8,8] x, float[4,3,3] z", "Conv (x, z)"),
        ("float[1,3,8,8] x, float[4,3,3,3] z, float[5] b", "Conv (x, z, b)"),
        ("float[1,3,8,8] x, float[4] z", "BatchNormalization (x, z, z, z, z)"),
        ("float[2,3] x, float[4,3] z", "Concat <axis = 1> (x, z)"),
        ("float[2,3] x, float[2] z", "Concat <axis = 1> (x, z)"),
        ("float[2,3,4] x, int64[2,9,4] z", "GatherElements <axis = 0> (x, z)"),
        ("float[1,1,4,4] x, float[2,3,3,2] z", "GridSample (x, z)"),
        ("bool[2,3] z, float[2,3] x, float[2,4] w", "Where (z, x, w)"),
        ("float[2,3] x, float[2] z", "LayerNormalization (x, z)"),
        ("float[2,3] x, int64[1] z, int64[2] e", "Slice (x, z, e)"),
    ],
)
def test_sizes_that_cannot_go_together_are_one_error(inputs: str, call: str, tmp_path: Path) -> None:
    assert errors(inputs, f"y = {call}", tmp_path) == ["VEX111"]


@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        ("float[n] x, float[5] z", "Add (x, z)"),
        ("float[n] x, float[m] z", "Add (x, z)"),
        ("float[1] x, float[5] z", "Add (x, z)"),
        ("float x, float[5] z", "Add (x, z)"),
        ("float[n,3] x, float[3,m] z", "MatMul (x, z)"),
        ("float[2,n] x, float[4,m] z", "Gemm (x, z)"),
        ("float[n,c,h,w] x, float[4,3,3,3] z", "Conv (x, z)"),
        ("float[n,3] x, float[4,3] z", "Concat <axis = 1> (x, z)"),
    ],
)
def test_open_sizes_and_ones_contradict_nothing(inputs: str, call: str, tmp_path: Path) -> None:
    assert errors(inputs, f"y = {call}", tmp_path) == []


def test_old_broadcasting_by_attribute_is_not_judged_as_numpy_s(tmp_path: Path) -> None:
    body = "y = Add <axis = 1, broadcast = 1> (x, z)"
    assert "VEX111" not in errors("float[2,3,4,5] x, float[3,4] z", body, tmp_path, opset=6)


def test_a_computed_shape_is_followed(tmp_path: Path) -> None:
    body = "s = Shape (x) b = Gather (s, i) t = Concat <axis = 0> (b, c) y = Reshape (x, t)"
    weights = "int64[1] i = {0}, int64[1] c = {%d}"
    assert errors("float[2,3,4] x", body, tmp_path, weights=weights % 12) == []
    assert errors("float[2,3,4] x", body, tmp_path, weights=weights % 7) == ["VEX111"]
    assert errors("float[n,3,4] x", body, tmp_path, weights=weights % 12) == []


def test_a_loop_s_body_may_grow_what_it_carries(tmp_path: Path) -> None:
    body = """y = Loop (n, , x) <body = turn (int64 i, bool c, float[1,3] a) => (bool d, float[k,3] b)
      { d = Identity (c) b = Concat <axis = 0> (a, a) }>"""
    assert errors("int64 n, float[1,3] x", body, tmp_path) == []


def test_one_cause_is_one_finding(tmp_path: Path) -> None:
    assert errors("float[1,3,8,8] x, float[4,5,3,3] z", "y = Conv (x, z)", tmp_path) == ["VEX113"]
    assert errors("float[2,3] x, int64[4,5] z", "y = MatMul (x, z)", tmp_path) == ["VEX112"]


def test_signatures_bind_letters_and_the_rest() -> None:
    assert match("Op", "N C ..., C -> N ...", [(2, None, 5, 6), (3,)], 1) == [(2, 5, 6)]
    with pytest.raises(Misfit, match=r"input 1 of Op is \[4\] where \[C\] with C = 3 is due"):
        match("Op", "N C ..., C", [(2, 3, 5), (4,)], 1)


@pytest.mark.parametrize("op", ["Gather", "MatMul", "Conv", "Reshape", "Slice", "Gemm", "ScatterND", "OneHot", "TopK"])
def test_a_node_that_lacks_inputs_is_judged_by_what_is_missing(op: str, tmp_path: Path) -> None:
    assert errors("float[2,3,4,4] x", f"y = {op} (x)", tmp_path) == ["VEX111"]


@pytest.mark.parametrize("call", ["ReduceSum (x, a)", "Split (x, a)", "Pad (x, p)"])
def test_lists_are_lists(call: str, tmp_path: Path) -> None:
    assert errors("float[2,3,4] x, int64[1,1] a, int64[5] p", f"y = {call}", tmp_path) == ["VEX111"]
