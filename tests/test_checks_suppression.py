"""VEX503, VEX504, VEX505: what exporters write before and behind NonMaxSuppression, in several spellings."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests import ordinary
from tests.benchmarks import nms_exact
from tests.support import DETECTOR, RULES, judge
from vexlint import rulebook
from vexlint.checks.class_offset import class_offset
from vexlint.checks.context import Context
from vexlint.checks.suppression import batch_index, box_format
from vexlint.config import Contract, Input
from vexlint.model.layouts import LAYOUTS
from vexlint.model.read import read
from vexlint.nms import tail
from vexlint.nms.tail import Settings
from vexlint.values import FileReport

OURS = ("VEX503", "VEX504", "VEX505", "VEX508")
EVERY = rulebook.select(RULES, ["ALL"], [])
LIMITS = "int64[1] most = {100}, float[1] iou = {0.45}, float[1] low = {0.25}"
NUMBERS = """int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}, int64[1] i3 = {3}, int64[1] i4 = {4},
 int64[1] i5 = {5}, int64[1] i7 = {7}, int64 s0 = {0}, int64 s1 = {1}, int64 s2 = {2}, int64 s3 = {3},
 float half = {0.5}, float two = {2}, int64[1] end = {-1},
 int64[4] ones = {1,1,1,1}, int64[2] pairs = {2,2}, int64[3] head = {2,2,3}"""


def found(model: onnx.ModelProto, folder: Path, contract: Contract | None = None) -> list[tuple[str, str]]:
    """(code, message) of what these rules say."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    return said(judge(path, contract, rules=EVERY))


def said(report: FileReport) -> list[tuple[str, str]]:
    assert report.status == "checked"
    return [(f.code, f.message) for f in report.findings if f.code in OURS]


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


# --- VEX503: what boxes are, by the arithmetic that makes them --------------------------------------------------------

# name -> (what the boxes are, inputs, constants, nodes that make `boxes` [1, 4, 4])
DECODERS: dict[str, tuple[str, str, str, str]] = {
    "yolov8, centres": ("centres", "float[1,64,2,2] maps", "", """
        flat = Reshape (maps, dfl) t = Transpose <perm = [0, 2, 1, 3]> (flat) soft = Softmax <axis = 1> (t)
        mean = Conv (soft, bins) d = Reshape (mean, four) lt, rb = Split <axis = 1> (d)
        a = Sub (grid2, lt) b = Add (grid2, rb) ab = Add (a, b) c = Div (ab, two) wh = Sub (b, a)
        cells = Concat <axis = 1> (c, wh) px = Mul (cells, strides) boxes = Transpose <perm = [0, 2, 1]> (px)"""),
    "yolov8, corners": ("corners", "float[1,64,2,2] maps", "", """
        flat = Reshape (maps, dfl) t = Transpose <perm = [0, 2, 1, 3]> (flat) soft = Softmax <axis = 1> (t)
        mean = Conv (soft, bins) d = Reshape (mean, four) lt, rb = Split <axis = 1> (d)
        a = Sub (grid2, lt) b = Add (grid2, rb)
        cells = Concat <axis = 1> (a, b) px = Mul (cells, strides) boxes = Transpose <perm = [0, 2, 1]> (px)"""),
    "yolov8, centres turned to corners": ("corners", "float[1,4,4] d", "", """
        lt = Slice (d, i0, i2, i1) rb = Slice (d, i2, i4, i1)
        a = Sub (grid2, lt) b = Add (grid2, rb) ab = Add (a, b) c = Div (ab, two) wh = Sub (b, a)
        cells = Concat <axis = 1> (c, wh) px = Mul (cells, strides) turned = Transpose <perm = [0, 2, 1]> (px)
        xy = Slice (turned, i0, i2, end) size = Slice (turned, i2, i4, end) reach = Div (size, two)
        x1 = Sub (xy, reach) x2 = Add (xy, reach) boxes = Concat <axis = -1> (x1, x2)"""),
    "yolox": ("centres", "float[1,7,2,2] maps", "", """
        flat = Reshape (maps, seven) rows = Transpose <perm = [0, 2, 1]> (flat)
        xy = Slice (rows, i0, i2, i2) wh = Slice (rows, i2, i4, i2)
        moved = Add (xy, grid) c = Mul (moved, stride1) e = Exp (wh) s = Mul (e, stride1)
        boxes = Concat <axis = 2> (c, s)"""),
    "yolox, one column each": ("corners", "float[1,7,2,2] maps", "", """
        flat = Reshape (maps, seven) rows = Transpose <perm = [0, 2, 1]> (flat)
        xy = Slice (rows, i0, i2, i2) wh = Slice (rows, i2, i4, i2)
        moved = Add (xy, grid) c = Mul (moved, stride1) e = Exp (wh) s = Mul (e, stride1)
        cs = Concat <axis = 2> (c, s)
        x = Gather <axis = 2> (cs, s0) y = Gather <axis = 2> (cs, s1)
        w = Gather <axis = 2> (cs, s2) h = Gather <axis = -1> (cs, s3)
        w2 = Mul (w, half) h2 = Mul (h, half) ax = Sub (x, w2) ay = Sub (y, h2) bx = Add (x, w2) by = Add (y, h2)
        uax = Unsqueeze (ax, i2) uay = Unsqueeze (ay, end) ubx = Unsqueeze (bx, end) uby = Unsqueeze (by, i2)
        boxes = Concat <axis = 2> (uax, uay, ubx, uby)"""),
    "yolov5": ("centres", "float[1,7,2,2] maps", "", """
        five = Reshape (maps, anchored) last = Transpose <perm = [0, 1, 3, 4, 2]> (five) y = Sigmoid (last)
        xy, wh, rest = Split <axis = 4> (y, head)
        d = Mul (xy, two) g = Add (d, grid5) c = Mul (g, half)
        e = Mul (wh, two) q = Pow (e, two) s = Mul (q, anchor)
        all = Concat <axis = 4> (c, s, rest) level = Reshape (all, rows7) levels = Concat <axis = 1> (level)
        boxes = Slice (levels, i0, i4, i2)"""),
    "yolov7, by a matrix": ("corners", "float[1,4,7] rows", "", """
        centres = Slice (rows, i0, i4, i2) boxes = MatMul (centres, convert)"""),
    "four columns": ("corners", "float[1,4,4] centres", "", """
        x, y, w, h = Split <axis = 2> (centres, ones) rw = Mul (w, half) rh = Mul (half, h)
        nw = Neg (rw) x1 = Add (nw, x) y1 = Sub (y, rh) x2 = Add (x, rw) y2 = Add (rh, y)
        boxes = Concat <axis = 2> (x1, y1, x2, y2)"""),
    "corners turned to centres": ("centres", "float[1,4,4] corners", "", """
        a = Slice (corners, i0, i2, i2) b = Slice (corners, i2, i4, i2)
        ab = Add (a, b) c = Mul (ab, half) s = Sub (b, a) boxes = Concat <axis = 2> (c, s)"""),
    "mmdeploy, distances from points": ("corners", "float[1,4,4] d", "", """
        px = Gather <axis = 2> (grid, s0) py = Gather <axis = 2> (grid, s1)
        l = Gather <axis = 2> (d, s0) t = Gather <axis = 2> (d, s1) r = Gather <axis = 2> (d, s2)
        b = Gather <axis = 2> (d, s3) x1 = Sub (px, l) y1 = Sub (py, t) x2 = Add (px, r) y2 = Add (py, b)
        u1 = Unsqueeze (x1, end) u2 = Unsqueeze (y1, end) u3 = Unsqueeze (x2, end) u4 = Unsqueeze (y2, end)
        stack = Concat <axis = -1> (u1, u2, u3, u4) zero = Constant <value_float = 0.0> ()
        wide = Constant <value_float = 640.0> () boxes = Clip (stack, zero, wide)"""),
    "torchvision, anchors and deltas": ("corners", "float[1,4,4] d", "", """
        dx = Slice (d, i0, i1, i2) dw = Slice (d, i2, i3, i2) dy = Slice (d, i1, i2, i2) dh = Slice (d, i3, i4, i2)
        ax = Slice (grid, i0, i1, i2) ay = Slice (grid, i1, i2, i2)
        mx = Mul (dx, two) cx = Add (mx, ax) ew = Exp (dw) w = Mul (ew, two) w2 = Mul (w, half)
        my = Mul (dy, two) cy = Add (my, ay) eh = Exp (dh) h = Mul (eh, two) h2 = Mul (h, half)
        x1 = Sub (cx, w2) y1 = Sub (cy, h2) x2 = Add (cx, w2) y2 = Add (cy, h2)
        boxes = Concat <axis = 2> (x1, y1, x2, y2)"""),
    "y before x": ("corners", "float[1,4,4] centres", "int64[4] swapped = {1,0,3,2}", """
        xy, wh = Split <axis = 2> (centres, pairs) r = Mul (wh, half) a = Sub (xy, r) b = Add (xy, r)
        c = Concat <axis = 2> (a, b) boxes = Gather <axis = 2> (c, swapped)"""),
    "scaled to the image, padded, masked": ("corners", "float[1,4,4] centres, float[1,1,2] pad, bool[1,4,1] mask",
        "float[4] scale = {640,480,640,480}, float nothing = {0}", """
        xy, wh = Split <axis = 2> (centres, pairs) r = Mul (wh, half) a = Sub (xy, r) b = Add (xy, r)
        c = Concat <axis = 2> (a, b) both = Concat <axis = 2> (pad, pad) moved = Sub (c, both)
        px = Mul (moved, scale) boxes = Where (mask, px, nothing)"""),
    "half": ("centres", "float16[1,7,2,2] maps", "", """
        flat = Reshape (maps, seven) rows = Transpose <perm = [0, 2, 1]> (flat) wide = Cast <to = 1> (rows)
        xy = Slice (wide, i0, i2, i2) wh = Slice (wide, i2, i4, i2)
        moved = Add (xy, grid) c = Mul (moved, stride1) e = Exp (wh) s = Mul (e, stride1)
        boxes = Concat <axis = 2> (c, s)"""),
    # Nothing is known of these
    "an input": ("", "float[1,4,4] boxes", "", ""),
    "an input in rows": ("", "float[1,4,4] rows", "", "boxes = Transpose <perm = [0, 2, 1]> (rows)"),
    "a convolution": ("", "float[1,4,2,2] maps", "", """
        flat = Reshape (maps, four) boxes = Transpose <perm = [0, 2, 1]> (flat)"""),
    "a sigmoid": ("", "float[1,4,4] x", "", "boxes = Sigmoid (x)"),
    "scaled": ("", "float[1,4,4] x", "float[4] scale = {640,480,640,480}", "boxes = Mul (x, scale)"),
    "moved as a whole": ("", "float[1,4,4] x, float[1,4,1] far", "", "boxes = Add (x, far)"),
    "anchors of corners": ("", "float[1,4,4] d", "float[4] scale = {0.2,0.2,0.2,0.2}", """
        s = Mul (d, scale) boxes = Add (grid4, s)"""),
    "masked as a whole": ("", "float[1,4,4] x, float[1,4,1] mask", "", """
        one = Constant <value_float = 1.0> () rest = Sub (one, mask) kept = Mul (x, mask) boxes = Sub (kept, rest)"""),
    "corner and size": ("", "float[1,4,4] x", "", """
        a, b = Split <axis = 2> (x, pairs) s = Sub (b, a) boxes = Concat <axis = 2> (a, s)"""),
}  # fmt: skip


def grids() -> dict[str, np.ndarray]:
    places = np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [1.5, 1.5]], np.float32)
    convert = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [-0.5, 0, 0.5, 0], [0, -0.5, 0, 0.5]], np.float32)
    return {
        "grid": places[None],
        "grid2": places.T[None].copy(),
        "grid4": np.concatenate([places, places + np.float32(1.25)], 1)[None],
        "grid5": places.reshape(1, 1, 2, 2, 2),
        "anchor": np.array([10, 13], np.float32).reshape(1, 1, 1, 1, 2),
        "strides": np.array([[8, 8, 16, 16]], np.float32),
        "stride1": np.array([8, 8, 16, 16], np.float32).reshape(1, 4, 1),
        "bins": np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1),
        "convert": convert,
        "dfl": np.array([1, 4, 16, 4]),
        "four": np.array([1, 4, 4]),
        "seven": np.array([1, 7, 4]),
        "rows7": np.array([1, -1, 7]),
        "anchored": np.array([1, 1, 7, 2, 2]),
    }


def decoder(name: str, centre: int) -> onnx.ModelProto:
    _, inputs, constants, nodes = DECODERS[name]
    model = parsed(f"""<ir_version: 8, opset_import: ["" : 17]>
    net ({inputs}, float[1,3,4] scores) => (int64[n,3] selected)
    <{NUMBERS}, {LIMITS}{", " * bool(constants)}{constants}> {{
      {nodes}
      selected = NonMaxSuppression <center_point_box = {centre}> (boxes, scores, most, iou, low) }}""")
    read = {name for node in model.graph.node for name in node.input}
    for key, array in grids().items():
        if key in read:
            model.graph.initializer.append(numpy_helper.from_array(array, key))
    unused = [t for t in model.graph.initializer if t.name not in read]
    for tensor in unused:
        model.graph.initializer.remove(tensor)
    onnx.checker.check_model(model, full_check=True)
    return model


CONTRADICTION = {"corners": 1, "centres": 0}


@pytest.mark.parametrize("centre", [0, 1])
@pytest.mark.parametrize("name", DECODERS)
def test_the_form_of_boxes_is_read_off_their_arithmetic(name: str, centre: int, tmp_path: Path) -> None:
    form = DECODERS[name][0]
    words = {"corners": "computed as corners", "centres": "computed as centre and size"}
    messages = [m for _, m in found(decoder(name, centre), tmp_path)]
    if CONTRADICTION.get(form) == centre:
        assert len(messages) == 1
        assert words[form] in messages[0]
    else:
        assert messages == []


OLDER = {
    "Split": """xy, wh = Split <axis = 2, split = [2, 2]> (x) r = Div (wh, two) p = Sub (xy, r) q = Add (xy, r)
        both = Concat <axis = 2> (p, q) boxes = Clip (both)""",
    "Gather": """cx = Gather <axis = 2> (x, s0) cy = Gather <axis = 2> (x, s1) w = Gather <axis = 2> (x, s2)
        h = Gather <axis = 2> (x, s3) w2 = Div (w, two) h2 = Div (h, two) a = Sub (cx, w2) b = Sub (cy, h2)
        c = Add (cx, w2) d = Add (cy, h2) ua = Unsqueeze <axes = [2]> (a) ub = Unsqueeze <axes = [-1]> (b)
        uc = Unsqueeze <axes = [2]> (c) ud = Unsqueeze <axes = [2]> (d) boxes = Concat <axis = 2> (ua, ub, uc, ud)""",
    "columns first": """
        t = Transpose <perm = [2, 0, 1]> (x) cx = Gather <axis = 0> (t, s0) cy = Gather <axis = 0> (t, s1)
        w = Gather <axis = 0> (t, s2) h = Gather <axis = 0> (t, s3) w2 = Div (w, two) h2 = Div (h, two) a = Sub (cx, w2)
        b = Sub (cy, h2) c = Add (cx, w2) d = Add (cy, h2) ua = Unsqueeze <axes = [0]> (a)
        ub = Unsqueeze <axes = [0]> (b) uc = Unsqueeze <axes = [0]> (c) ud = Unsqueeze <axes = [0]> (d)
        k = Concat <axis = 0> (ua, ub, uc, ud)
        boxes = Transpose <perm = [1, 2, 0]> (k)""",
    "a corner and its opposite": """cx, cy, w, h = Split <axis = -1> (x) w2 = Div (w, two) h2 = Div (h, two)
        a = Sub (cx, w2) b = Sub (cy, h2) c = Add (a, w) d = Add (b, h) boxes = Concat <axis = -1> (a, b, c, d)""",
}


@pytest.mark.parametrize("centre", [0, 1])
@pytest.mark.parametrize("name", OLDER)
def test_corners_at_opset_11_with_open_sizes(name: str, centre: int, tmp_path: Path) -> None:
    model = parsed(f"""<ir_version: 6, opset_import: ["" : 11]>
    net (float[batch,N,4] x, float[batch,3,N] scores) => (int64[n,3] y) <{NUMBERS}, {LIMITS}> {{
      {OLDER[name]}
      y = NonMaxSuppression <center_point_box = {centre}> (boxes, scores, most, iou, low) }}""")
    onnx.checker.check_model(model, full_check=True)
    assert [c for c, _ in found(model, tmp_path)] == ["VEX503"] * centre


RAW = {
    "v8, Slice": ("[1,7,50]", """
        t = Transpose <perm = [0, 2, 1]> (p) b = Slice (t, i0, i4, i2) s = Slice (p, i4, i7, i1)"""),
    "v8, Split": ("[1,7,50]", "c, s = Split <axis = 1> (p, parts) b = Transpose <perm = [0, 2, 1]> (c)"),
    "v8, best class": ("[1,7,50]", """
        c, z = Split <axis = 1> (p, parts) b = Transpose <perm = [0, 2, 1]> (c) s = ReduceMax <axes = [1]> (z)"""),
    "v5": ("[1,50,8]", """
        b = Slice (p, i0, i4, i2) o = Slice (p, i4, i5, i2) z = Slice (p, i5, i8, i2) w = Mul (z, o)
        s = Transpose <perm = [0, 2, 1]> (w)"""),
}  # fmt: skip
OTHER_ROWS = {
    "boxes and scores apart, transposed": ("[1,50,7]", """
        b = Slice (p, i0, i4, i2) z = Slice (p, i4, i7, i2) s = Transpose <perm = [0, 2, 1]> (z)"""),
    "scores first": ("[1,7,50]", """
        t = Transpose <perm = [0, 2, 1]> (p) b = Slice (t, i3, i7, i2) s = Slice (p, i0, i3, i1)"""),
    "decoded by a plugin": ("[1,7,50]", """
        q = com.acme.Decode (p)
        t = Transpose <perm = [0, 2, 1]> (q) b = Slice (t, i0, i4, i2) s = Slice (q, i4, i7, i1)"""),
}  # fmt: skip


def raw(shape: str, nodes: str, centre: int = 0) -> onnx.ModelProto:
    nodes = nodes.replace("com.acme.Decode", "Decode")
    model = parsed(f"""<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
    net (float{shape} p) => (int64[n,3] y) <{NUMBERS}, int64[1] i8 = {{8}}, int64[2] parts = {{4,3}}, {LIMITS}> {{
      {nodes}
      y = NonMaxSuppression <center_point_box = {centre}> (b, s, most, iou, low) }}""")
    for node in model.graph.node:
        node.domain = "com.acme" if node.op_type == "Decode" else ""
    return model


@pytest.mark.parametrize("name", RAW)
def test_a_head_that_is_fed_as_it_is_holds_centres(name: str, tmp_path: Path) -> None:
    ((code, message),) = found(raw(*RAW[name]), tmp_path)
    assert code == "VEX503"
    assert f"(layout {name[:2]}: centre and size)" in message
    assert found(raw(*RAW[name], centre=1), tmp_path) == []


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_rows_that_may_be_anything_are_left_in_peace(name: str, tmp_path: Path) -> None:
    assert found(raw(*OTHER_ROWS[name]), tmp_path) == []


# --- VEX504 -----------------------------------------------------------------------------------------------------------

CLASSES = {
    "ArgMax": "best = ArgMax <axis = 2, keepdims = 1> (scores) score = ReduceMax <axes = [2], keepdims = 1> (scores)",
    "TopK": "score, best = TopK <axis = 2> (scores, i1)",
    "ArgMax, flat": """flat = ArgMax <axis = 2, keepdims = 0> (scores) best = Unsqueeze (flat, end)
        score = ReduceMax <axes = [2], keepdims = 1> (scores)""",
    "an input": "best = Identity (labels) score = ReduceMax <axes = [2], keepdims = 1> (scores)",
}


def offset(
    far: float, classes: str = "ArgMax", side: int = 640, boxes: str = "", many: int = 80, kind: str = "float"
) -> onnx.ModelProto:
    """Boxes moved by class * far; `boxes` are nodes that make `given` of `raw`."""
    to = {"float": 1, "float16": 10}[kind]
    return parsed(f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,3,{side},{side}] images, {kind}[1,50,4] raw, {kind}[1,50,{many}] scores, int64[1,50,1] labels)
    => (int64[n,3] y, float[1,3,{side},{side}] same) <{NUMBERS}, float far = {{{far}}}, {LIMITS}> {{
      same = Identity (images) {CLASSES[classes]}
      {boxes or "given = Identity (raw)"}
      class = Cast <to = {to}> (best) apart = Cast <to = {to}> (far) move = Mul (class, apart) moved = Add (given, move)
      wide = Cast <to = 1> (moved) turned = Transpose <perm = [0, 2, 1]> (score) ranked = Cast <to = 1> (turned)
      y = NonMaxSuppression (wide, ranked, most, iou, low) }}""")


@pytest.mark.parametrize("classes", CLASSES)
def test_an_offset_below_the_image_is_too_small(classes: str, tmp_path: Path) -> None:
    assert found(offset(640, classes, 1280), tmp_path) == [
        ("VEX504", "classes are 640 apart, but boxes reach 1280: classes suppress each other")
    ]
    for far, side in ((640, 640), (4096, 1280), (7680, 1280)):
        assert found(offset(far, classes, side), tmp_path) == []


NORMALISED = "k = Constant <value_float = 0.0015625> () given = Mul (raw, k)"


@pytest.mark.parametrize(
    ("far", "boxes"),
    [
        (1, ""),  # boxes may be fractions
        (1, NORMALISED),
        (4, NORMALISED),
        (1, "given = Sigmoid (raw)"),
        (100, "given = Sigmoid (raw)"),
        (100, "k = Constant <value_float = 640.0> () n = Div (raw, k) m = ReduceMax (raw) given = Div (n, m)"),
        (100, "z = Relu (raw) given = Mul (z, raw)"),
    ],
)
def test_offsets_of_boxes_in_fractions_or_unknown_units_are_left_in_peace(
    far: float, boxes: str, tmp_path: Path
) -> None:
    assert found(offset(far, boxes=boxes), tmp_path) == []


@pytest.mark.parametrize(("far", "expected"), [(16, 1), (24, 1), (31.5, 0), (32, 0)])
def test_the_grid_says_how_far_boxes_reach(far: float, expected: int, tmp_path: Path) -> None:
    """A grid up to 3.5 cells of 8 px: 28 px, whatever the input is."""
    model = offset(far, boxes="c = Add (raw, cells) k = Constant <value_float = 8.0> () given = Mul (c, k)", side=1280)
    cells = np.linspace(0.5, 3.5, 200, dtype=np.float32).reshape(1, 50, 4)
    model.graph.initializer.append(numpy_helper.from_array(cells, "cells"))
    messages = found(model, tmp_path)
    assert len(messages) == expected
    assert all("boxes reach 28" in m or "boxes reach 27" in m for _, m in messages)


def test_an_offset_that_the_boxes_decide_is_right(tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,3,640,640] images, float[50,4] boxes, float[50] s, int64[50] c) => (int64[n,3] y, float[1,3,640,640] z)
    <float one = {{1}}, int64[2] both = {{0,1}}, {NUMBERS}, {LIMITS}> {{
      z = Identity (images) m = ReduceMax <keepdims = 0> (boxes) far = Add (m, one) f = Cast <to = 1> (c)
      o = Mul (f, far) u = Unsqueeze (o, i1) b = Add (boxes, u) batch = Unsqueeze (b, i0) r = Unsqueeze (s, both)
      y = NonMaxSuppression (batch, r, most, iou, low) }}"""
    assert found(parsed(text), tmp_path) == []


@pytest.mark.parametrize(
    ("far", "many", "kind", "expected"),
    [
        (4096, 80, "float16", "infinite in float16"),
        (4096, 10, "float16", "rounded to steps of 32 px"),
        (640, 3, "float16", "rounded to steps of 1 px"),
        (640, 2, "float16", "rounded to steps of 1 px"),
        (640, 1, "float16", ""),
        (7680, 80, "float", ""),
        (1e6, 80, "float", "in float boxes are rounded to steps of 8 px"),
    ],
)  # fmt: skip
def test_what_an_offset_costs(far: float, many: int, kind: str, expected: str, tmp_path: Path) -> None:
    messages = [m for _, m in found(offset(far, many=many, kind=kind), tmp_path)]
    assert len(messages) == bool(expected)
    assert all(expected in m for m in messages)


def test_a_contract_of_half_precision_judges_offsets_in_float(tmp_path: Path) -> None:
    contract = Contract("*.onnx", precision="fp16")
    found_there = [m for c, m in found(offset(4096), tmp_path, contract) if c == "VEX504"]
    assert found_there == ["the class offset reaches 324224: infinite in half precision"]


# --- VEX505 -----------------------------------------------------------------------------------------------------------

UNREAD = {
    "Gather": "p = Gather <axis = 1> (sel, s2) y = Gather (rows, p)",
    "Gather a list": "p = Gather <axis = 1> (sel, i2) q = Reshape (p, end) y = Gather (rows, q)",
    "Slice": "p = Slice (sel, i2, i3, i1) q = Squeeze (p, i1) y = Gather (rows, q)",
    "Slice to the end": "p = Slice (sel, end, i7, i1) q = Squeeze (p, i1) y = Gather (rows, q)",
    "class and box": """p = Slice (sel, i1, i3, i1) q = Gather <axis = -1> (p, s1) y = Gather (rows, q)
        c = Gather <axis = -1> (p, s0)""",
    "Split": "a, b, p = Split <axis = 1> (sel, three) q = Reshape (p, end) y = Gather (rows, q)",
    "transposed": "t = Transpose <perm = [1, 0]> (sel) p = Gather <axis = 0> (t, s2) y = Gather (rows, p)",
    "cast": "w = Cast <to = 6> (sel) p = Gather <axis = 1> (w, s2) y = Gather (rows, p)",
    "the first rows": "w = Slice (sel, i0, i5, i0) p = Gather <axis = 1> (w, s2) y = Gather (rows, p)",
}
READ = {
    "GatherND of pairs": "q = Gather <axis = 1> (sel, ends) y = GatherND (boxes, q)",
    "batch and box": """a = Gather <axis = 1> (sel, s0) p = Gather <axis = 1> (sel, s2) k = Mul (a, s2) q = Add (k, p)
        y = Gather (rows, q)""",
    "given out": "p = Gather <axis = 1> (sel, s2) y = Gather (rows, p) all = Identity (sel)",
    "all of it elsewhere": "p = Gather <axis = 1> (sel, s2) y = Gather (rows, p) m = Mul (sel, sel) k = ReduceSum (m)",
    "Split": "a, b, p = Split <axis = 1> (sel, three) q = Concat <axis = 1> (a, p) y = GatherND (boxes, q)",
    "nothing": "y = Identity (rows)",
}


def selecting(nodes: str, batch: str) -> onnx.ModelProto:
    model = parsed(f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[{batch},50,4] boxes, float[{batch},3,50] scores) => (float[k,4] y)
    <{NUMBERS}, int64[3] three = {{1,1,1}}, int64[2] ends = {{0,2}}, int64[2] flat = {{-1,4}}, {LIMITS}> {{
      rows = Reshape (boxes, flat) sel = NonMaxSuppression (boxes, scores, most, iou, low) {nodes} }}""")
    made = {o for n in model.graph.node for o in n.output}
    for name in {"all", "c", "k"} & made:
        kind = TensorProto.INT64
        model.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    return model


@pytest.mark.parametrize("batch", ["batch", "4", "N"])
@pytest.mark.parametrize("name", UNREAD)
def test_an_unread_picture_index_is_an_error(name: str, batch: str, tmp_path: Path) -> None:
    ((code, message),) = found(selecting(UNREAD[name], batch), tmp_path)
    assert code == "VEX505"
    assert message.endswith("the batch is 4" if batch == "4" else f"the batch is open ({batch})")


@pytest.mark.parametrize("name", UNREAD)
def test_one_picture_needs_no_index(name: str, tmp_path: Path) -> None:
    assert found(selecting(UNREAD[name], "1"), tmp_path) == []


@pytest.mark.parametrize(("size", "expected"), [(1, []), (4, ["VEX505"])])
def test_a_contract_may_say_that_there_is_one_picture(size: int, expected: list[str], tmp_path: Path) -> None:
    inputs = {"boxes": Input((size, 50, 4)), "scores": Input((size, 3, 50))}
    messages = found(selecting(UNREAD["Gather"], "batch"), tmp_path, Contract("*.onnx", inputs=inputs))
    assert [c for c, _ in messages] == expected


@pytest.mark.parametrize("name", READ)
def test_an_index_that_is_read_or_may_be_is_fine(name: str, tmp_path: Path) -> None:
    assert found(selecting(READ[name], "batch"), tmp_path) == []


# --- whole exports ----------------------------------------------------------------------------------------------------


def with_nms(model: onnx.ModelProto, layout: str, corners: bool, centre: int) -> onnx.ModelProto:
    """A detector with NonMaxSuppression behind its head, its boxes turned to corners or not."""
    head = model.graph.output[0].name
    turn = (
        "rows = Transpose <perm = [0, 2, 1]> (raw) boxes = Slice (rows, i0, i4, i2) scores = Slice (raw, i4, far, i1)"
    )
    if layout == "v5":
        turn = """
            boxes = Slice (raw, i0, i4, i2) z = Slice (raw, i5, far, i2) o = Slice (raw, i4, i5, i2) w = Mul (z, o)
            scores = Transpose <perm = [0, 2, 1]> (w)"""
    convert = """x = Gather <axis = 2> (boxes, s0) y = Gather <axis = 2> (boxes, s1) w1 = Gather <axis = 2> (boxes, s2)
        h1 = Gather <axis = 2> (boxes, s3) w2 = Div (w1, two) h2 = Mul (h1, half)
        a = Sub (x, w2) b = Sub (y, h2) c = Add (x, w2) d = Add (y, h2)
        a1 = Unsqueeze (a, end) b1 = Unsqueeze (b, end) c1 = Unsqueeze (c, end) d1 = Unsqueeze (d, end)
        given = Concat <axis = -1> (a1, b1, c1, d1)"""
    behind = parsed(f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,9,9] raw) => (int64[n,3] selected) <{NUMBERS}, int64[1] far = {{9999}}, {LIMITS}> {{
      {turn} {convert if corners else "given = Identity (boxes)"}
      selected = NonMaxSuppression <center_point_box = {centre}> (given, scores, most, iou, low) }}""").graph
    for node in behind.node:
        node.input[:] = [head if n == "raw" else f"nms/{n}" for n in node.input]
        node.output[:] = [f"nms/{n}" for n in node.output]
    for tensor in behind.initializer:
        tensor.name = f"nms/{tensor.name}"
    model.graph.node.extend(behind.node)
    model.graph.initializer.extend(behind.initializer)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("nms/selected", TensorProto.INT64, ["n", 3]))
    return model


NETWORKS: dict[str, tuple[str, Callable[[], onnx.ModelProto]]] = {
    "yolov8": ("v8", ordinary.yolov8),
    "yolov8, dynamic": ("v8", lambda: ordinary.yolov8(dynamic=True)),
    "yolov8, 384 x 640": ("v8", lambda: ordinary.yolov8(size=(384, 640))),
    "yolov8-pose": ("v8", lambda: ordinary.yolov8("pose", 1)),
    "yolov5": ("v5", ordinary.yolov5),
}


@pytest.mark.parametrize("centre", [0, 1])
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_with_nms_behind_them(name: str, corners: bool, centre: int, tmp_path: Path) -> None:
    layout, make = NETWORKS[name]
    codes = [c for c, _ in found(with_nms(make(), layout, corners, centre), tmp_path)]
    assert codes == (["VEX503"] if corners == bool(centre) else [])


def yolov7(side: int, far: int) -> onnx.ModelProto:
    """The tail of YOLOv7's end-to-end export for ONNX Runtime."""
    model = parsed(f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[batch,3,{side},{side}] images, float[batch,50,9] x) => (float[n,7] y, float[batch,3,{side},{side}] same)
    <{NUMBERS}, int64[1] i9 = {{9}}, float far = {{{far}}}, {LIMITS}> {{
      same = Identity (images)
      raw = Slice (x, i0, i4, i2) conf = Slice (x, i4, i5, i2) cls = Slice (x, i5, i9, i2) scores = Mul (cls, conf)
      boxes = MatMul (raw, convert)
      best = ReduceMax <axes = [2], keepdims = 1> (scores) class = ArgMax <axis = 2, keepdims = 1> (scores)
      number = Cast <to = 1> (class) dis = Mul (number, far) nmsbox = Add (boxes, dis)
      turned = Transpose <perm = [0, 2, 1]> (best)
      sel = NonMaxSuppression (nmsbox, turned, most, iou, low)
      X = Gather <axis = 1> (sel, s0) Y = Gather <axis = 1> (sel, s2)
      u = Unsqueeze (X, end) v = Unsqueeze (Y, end) pair = Concat <axis = -1> (u, v)
      found = GatherND (boxes, pair) kind = GatherND (number, pair) score = GatherND (best, pair)
      picture = Cast <to = 1> (u) y = Concat <axis = 1> (picture, found, kind, score) }}""")
    model.graph.initializer.append(numpy_helper.from_array(grids()["convert"], "convert"))
    onnx.checker.check_model(model, full_check=True)
    return model


def test_yolov7_end_to_end(tmp_path: Path) -> None:
    assert found(yolov7(640, 640), tmp_path) == []
    ((code, message),) = found(yolov7(1280, 640), tmp_path)
    assert (code, message[:23]) == ("VEX504", "classes are 640 apart, ")


@pytest.mark.parametrize("factor", [0.25, 1.0])
def test_ultralytics_with_nms_inside(factor: float, tmp_path: Path) -> None:
    """Boxes are divided by the image's side first, so that an offset of 1 (or both by some factor) is enough."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1,3,640,640] images, float[1,4,50] d, float[1,3,50] cls) => (float[k,6] y, float[1,3,640,640] same)
    <{NUMBERS}, float side = {{640}}, float factor = {{{factor}}}, int64[2] tall = {{-1,1}}, int64[2] wide = {{50,4}},
     int64[2] both = {{0,1}}, {LIMITS}> {{
      same = Identity (images)
      lt, rb = Split <axis = 1> (d) a = Sub (grid, lt) b = Add (grid, rb) ab = Concat <axis = 1> (a, b)
      px = Mul (ab, strides) joined = Concat <axis = 1> (px, cls) rows = Transpose <perm = [0, 2, 1]> (joined)
      boxes, scores = Split <axis = 2> (rows, parts)
      top = ReduceMax <axes = [-1], keepdims = 0> (scores) kinds = ArgMax <axis = -1, keepdims = 0> (scores)
      box = Gather <axis = 0> (boxes, s0) kind = Gather <axis = 0> (kinds, s0) score = Gather <axis = 0> (top, s0)
      mask = Greater (score, half) z = NonZero (mask) where = Squeeze (z, i0)
      kept = Gather <axis = 0> (box, where) some = Gather <axis = 0> (kind, where)
      points = Gather <axis = 0> (score, where)
      unit = Div (kept, side) nmsbox = Mul (unit, factor)
      number = Cast <to = 1> (some) column = Reshape (number, tall) shape = Shape (nmsbox) full = Expand (column, shape)
      off = Mul (full, factor) front = Slice (nmsbox, i0, i4, i1) moved = Add (front, off)
      back = Slice (nmsbox, i4, i5, i1) all = Concat <axis = -1> (moved, back)
      b1 = Unsqueeze (all, i0) s1b = Unsqueeze (points, both)
      sel = NonMaxSuppression (b1, s1b, most, iou, low) one = Gather <axis = 1> (sel, i2) keep = Squeeze (one, i1)
      fb = Gather <axis = 0> (kept, keep) fs = Gather <axis = 0> (points, keep) fk = Gather <axis = 0> (number, keep)
      us = Unsqueeze (fs, end) uk = Unsqueeze (fk, end) y = Concat <axis = -1> (fb, us, uk) }}"""
    model = parsed(text)
    grid = np.stack([np.linspace(0.5, high, 50, dtype=np.float32) for high in (39.5, 79.5)])[None]
    for name, array in {"grid": grid, "strides": np.full((1, 50), 8, np.float32), "parts": np.array([4, 3])}.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(model, full_check=True)
    assert found(model, tmp_path) == []
    (node,) = (n for n in model.graph.node if "factor" in n.input and "full" in n.input)
    node.input[1] = "half"
    messages = found(model, tmp_path)
    assert [c for c, _ in messages] == (["VEX504"] if factor == 1 else [])


# --- what must stay quiet ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 4, "batch"])
@pytest.mark.parametrize("kind", ["planes", "loop"])
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_our_own_tails_are_right(layout: str, kind: str, batch: int | str, tmp_path: Path) -> None:
    model = tail.build(nms_exact.synthetic(layout, batch), Settings(0.25, 0.45, 300, tail=kind), 17)
    contract = Contract("*.onnx", nms={"score": 0.25, "iou": 0.45, "max_detections": 300})
    assert found(model, tmp_path) == found(model, tmp_path, contract) == []


@pytest.mark.parametrize("path", sorted(DETECTOR.glob("*.onnx")), ids=lambda p: p.stem)
def test_golden_detectors_are_quiet(path: Path) -> None:
    assert said(judge(path, rules=EVERY)) == []


@pytest.mark.parametrize("dynamic", [True, False])
def test_two_stage_detectors_are_quiet(dynamic: bool, tmp_path: Path) -> None:
    assert found(ordinary.faster_rcnn(dynamic=dynamic), tmp_path) == []


# --- files out of order -----------------------------------------------------------------------------------------------


def spoilt(model: onnx.ModelProto, dice: random.Random) -> onnx.ModelProto:
    """A copy with one node or constant out of order: inputs missing or crossed, axes and shapes that cannot be."""
    copy: onnx.ModelProto = onnx.ModelProto.FromString(model.SerializeToString())
    node, tensor = dice.choice(copy.graph.node), dice.choice(copy.graph.initializer)
    how = dice.randrange(5)
    if how == 0 and node.input:
        del node.input[dice.randrange(len(node.input))]
    elif how == 1 and node.input:
        node.input[dice.randrange(len(node.input))] = dice.choice([o for n in copy.graph.node for o in n.output])
    elif how == 2:
        for attribute in node.attribute:
            attribute.i = dice.choice([-9, 9, 2**62])
            attribute.ints[:] = dice.choice([[], [0], [5, 4, 3]]) if attribute.ints else []
    elif how == 3:
        tensor.dims[:] = dice.choice([[], [0], [2, 2], [1, 1, 1, 1, 1]])
    else:
        node.op_type = dice.choice([n.op_type for n in copy.graph.node])
    return copy


def test_a_file_out_of_order_stops_no_check(tmp_path: Path) -> None:
    dice, path = random.Random(7), tmp_path / "model.onnx"
    models = [decoder(name, 0) for name in DECODERS] + [offset(640, side=1280), selecting(UNREAD["Slice"], "batch")]
    for _ in range(300):
        path.write_bytes(spoilt(spoilt(dice.choice(models), dice), dice).SerializeToString())
        model = read(path)
        model.inferred = {}  # a child process a file would take long
        for check in (box_format, batch_index, class_offset):
            list(check(model, Context()))
