"""`vexlint nms`: heads, questions, tails against float64 greedy NMS, the graft and its removal."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from tests.benchmarks import nms_exact, nms_rtx
from tests.scratch import vexlint
from tests.support import DETECTOR, RULES, codes, judge, load
from vexlint import rulebook
from vexlint.cli import app
from vexlint.config import Config, Contract
from vexlint.model.layouts import APART, LAYOUTS
from vexlint.model.read import read
from vexlint.nms import heads, insert, probe, reference, tail
from vexlint.nms.tail import Settings
from vexlint.values import VexlintError
from vexlint.verify import boxes, proof
from vexlint.verify.proof import Request

RUNTIMES = nms_exact.RUNTIMES
SHAPE = {"images": (2, 3, 320, 320)}


def kind(name: str, **more: object) -> Settings:
    return Settings(0.25, 0.45, 300, tail=name, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["planes", "loop"])
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_every_layout_gives_what_greedy_nms_gives(layout: str, name: str, runtime: str) -> None:
    _, count, _, faults = nms_exact.mismatches(nms_exact.synthetic(layout), kind(name), runtime, 6)
    assert not faults
    assert count > 100


VARIANTS: dict[str, tuple[heads.Head, dict[str, Any], int]] = {
    "several labels": (nms_exact.synthetic("v8"), {"multi_label": True}, 17),
    "agnostic": (nms_exact.synthetic("v5"), {"agnostic": True}, 17),
    "several, agnostic": (nms_exact.synthetic("v8"), {"multi_label": True, "agnostic": True}, 17),
    "open batch": (nms_exact.synthetic("v8", "batch"), {}, 17),
    "batch 3": (nms_exact.synthetic("v5", 3), {}, 17),
    "half": (nms_exact.synthetic("v8", 1, "float16"), {}, 17),
    "classes first": (nms_exact.synthetic("corners", 1, "float", 1), {"multi_label": True}, 17),
    "opset 13": (nms_exact.synthetic("v8"), {}, 13),
    "opset 21": (nms_exact.synthetic("v8"), {}, 21),
    "few candidates": (nms_exact.synthetic("v8"), {"pre": 50}, 17),
}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["planes", "loop"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_what_greedy_nms_gives(variant: str, name: str, runtime: str) -> None:
    head, more, opset = VARIANTS[variant]
    assert not nms_exact.mismatches(head, kind(name, **more), runtime, 4, opset)[3]


def rows(*boxes: tuple[float, float, float, float, float, int]) -> dict[str, np.ndarray]:
    """A v8 head whose first places hold boxes cx cy w h, score, label, and whose others hold nothing."""
    made = np.zeros((1, 9, nms_exact.PLACES), np.float32)
    for place, (*box, score, label) in enumerate(boxes):
        made[0, :4, place], made[0, 4 + label, place] = box, score
    return {"raw": made}


def found(name: str, feed: dict[str, np.ndarray], runtime: str = "onnxruntime") -> list[float]:
    """The centre x of each box that a tail keeps, ascending."""
    data = tail.build(nms_exact.synthetic("v8"), kind(name), 17).SerializeToString()
    (out,) = probe.run(data, Path(), [feed], runtime)
    kept = out["boxes"][0, : out["num_dets"][0, 0]]
    return sorted(((kept[:, 0] + kept[:, 2]) / 2).tolist())


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["planes", "loop"])
def test_chains_ties_and_empty_pictures(name: str, runtime: str) -> None:
    chain = [(20 + 3 * i, 50, 10, 10, 0.9 - i / 100, 0) for i in range(60)]  # each overlaps its neighbours only
    assert found(name, rows(*chain), runtime) == [20 + 6 * i for i in range(30)]
    assert found(name, rows(*[(*box[:4], 0.5, 0) for box in chain]), runtime) == [20 + 6 * i for i in range(30)]
    assert found(name, rows(), runtime) == []
    assert found(name, rows((50, 50, 10, 10, 0.25, 0)), runtime) == [], "a score must be above the threshold"
    assert found(name, rows((50, 50, 10, 10, float("nan"), 0), (80, 50, 10, 10, 0.5, 1)), runtime) == [80]
    assert found(name, rows((50, 50, 0, 0, 0.8, 0), (50, 50, 0, 0, 0.7, 0)), runtime) == [50, 50]


def coarse(head: heads.Head, scene: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A scene with its objectness and scores in steps of 1/8."""
    if head.layout.outputs == 2:
        return {"b": scene["b"], "s": (scene["s"] * 8).round() / 8}
    steps = (scene["raw"] * 8).round() / 8
    boxes_first = (slice(None), slice(4)) if head.layout.places == 2 else (..., slice(4))
    steps[boxes_first] = scene["raw"][boxes_first]
    return {"raw": steps}


LEVELS: dict[str, tuple[heads.Head, dict[str, Any]]] = {
    "best": (nms_exact.synthetic("v8"), {}),
    "several labels": (nms_exact.synthetic("v8"), {"multi_label": True}),
    "open places": (replace(nms_exact.synthetic("v5"), places=None), {}),
    "classes first": (nms_exact.synthetic("corners", 1, "float", 1), {"agnostic": True}),
}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["planes", "loop"])
@pytest.mark.parametrize("case", LEVELS)
def test_where_equal_scores_straddle_a_limit_the_first_places_win(case: str, name: str, runtime: str) -> None:
    """Scores of 8 levels, as quantized heads give: more candidates than `pre`, more detections than `most`, and equal
    classes at one place."""
    head, more = LEVELS[case]
    settings = Settings(0.25, 0.45, 20, 90, name, **more)
    data = tail.build(head, settings, 17).SerializeToString()
    feeds = [coarse(head, reference.scene(head, seed)) for seed in range(1, 5)]
    for feed, out in zip(feeds, probe.run(data, Path(), feeds, runtime), strict=True):
        done = reference.compare(head, settings, feed, out, tail.OUTPUTS)
        assert (done.fault, done.detections) == ("", 20)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_overlap_exactly_at_the_threshold_is_the_known_difference(runtime: str) -> None:
    """IoU 1/2 at a threshold of 1/2: ONNX and the loop keep, OpenVINO's NonMaxSuppression suppresses."""
    feed = rows((10, 10, 16, 16, 0.9, 0), (10, 6, 16, 8, 0.8, 0))
    head = nms_exact.synthetic("v8")
    kept = {}
    for name in ("planes", "loop"):
        data = tail.build(head, Settings(0.25, 0.5, 300, tail=name), 17).SerializeToString()
        (out,) = probe.run(data, Path(), [feed], runtime)
        kept[name] = int(out["num_dets"][0, 0])
    assert kept == {"planes": 1 if runtime == "openvino" else 2, "loop": 2}
    assert len(reference.select(head, Settings(0.25, 0.5, 300), feed)[0]) == 2


def given(*boxes: tuple[float, float, float, float, float, int]) -> dict[str, np.ndarray]:
    """What a tail would give that keeps just these boxes x1 y1 x2 y2, score, label, of one picture."""
    made = {"num_dets": np.array([[len(boxes)]], np.int32), "boxes": np.zeros((1, 300, 4), np.float32)}
    made |= {"scores": np.zeros((1, 300), np.float32), "labels": np.full((1, 300), -1, np.int32)}
    for row, (*box, score, label) in enumerate(boxes):
        made["boxes"][0, row], made["scores"][0, row], made["labels"][0, row] = box, score, label
    return made


def compared(feed: dict[str, np.ndarray], found: dict[str, np.ndarray], iou: float) -> tuple[bool, int]:
    done = reference.compare(nms_exact.synthetic("v8"), Settings(0.25, iou, 300), feed, found, tail.OUTPUTS)
    return not done.fault, done.rounded


FIRST, SECOND, THIRD = (2, 2, 18, 18, 0.9, 0), (2, 2, 18, 10, 0.8, 0), (2, 2, 18, 7, 0.7, 0)  # IoU 1/2, 5/16, 5/8


def test_a_pair_at_the_threshold_is_taken_as_the_tail_took_it_and_what_follows_must_be_right() -> None:
    """Whether the second stays is open; the third then goes with it or stays without it."""
    feed = rows((10, 10, 16, 16, 0.9, 0), (10, 6, 16, 8, 0.8, 0), (10, 4.5, 16, 5, 0.7, 0))
    assert compared(feed, given(FIRST, SECOND), 0.5) == (True, 0), "what float64 says: at the threshold is not above it"
    assert compared(feed, given(FIRST, THIRD), 0.5) == (True, 1)
    assert compared(feed, given(FIRST), 0.5) == (False, 0), "who suppressed the third?"
    assert compared(feed, given(FIRST, SECOND, THIRD), 0.5) == (False, 0), "the second suppresses the third"
    for wrong in (given(FIRST, THIRD), given(FIRST), given(SECOND)):
        assert compared(feed, wrong, 0.5001) == (False, 0), "that pair is not near enough"
        assert compared(feed, wrong, 0.4999) == (wrong["num_dets"][0, 0] == 2, 0)


@pytest.mark.parametrize("seed", range(40))
def test_float32_stays_within_the_bound_of_rounding(seed: int) -> None:
    """IoU in float32 of centre boxes, as a tail computes it, beside float64 and the bound, from 2 to 500 px."""
    rng = np.random.default_rng(seed)
    side = 2.0 ** rng.uniform(1, 9, (1, 2))
    pair = np.concatenate([rng.uniform(0, 1280, (1, 2)), side], 1).repeat(400, 0)
    pair[1:] += rng.normal(0, 0.2, (399, 4)) * np.tile(side, 2)
    pair = pair[(pair[:, 2:] > 1).all(1)].astype(np.float32)
    exact = boxes.corners(pair)
    near = np.concatenate([pair[:, :2] - pair[:, 2:] * np.float32(0.5), pair[:, :2] + pair[:, 2:] * np.float32(0.5)], 1)
    assert near.dtype == np.float32
    size = np.maximum(np.minimum(near[:1, 2:], near[1:, 2:]) - np.maximum(near[:1, :2], near[1:, :2]), 0)
    both = size[:, 0] * size[:, 1]
    area = (near[:, 2] - near[:, 0]) * (near[:, 3] - near[:, 1])
    found = both / (area[0] + area[1:] - both)
    apart = np.abs(found - boxes.overlaps(exact[:1], exact[1:])[0])
    assert (apart <= boxes.rounding(exact[:1], exact[1:])[0]).all()


@pytest.mark.parametrize("name", ["planes", "loop"])
@pytest.mark.parametrize("file", ["clean", "objectness", "batch4", "dynamic"])
def test_the_detector_gets_a_tail_and_is_itself_again(file: str, name: str, tmp_path: Path) -> None:
    source, made, back = DETECTOR / f"{file}.onnx", tmp_path / "made.onnx", tmp_path / "back.onnx"
    shapes = SHAPE if file == "dynamic" else {}
    done = insert.insert(source, made, insert.Options(tail=name, shapes=shapes), Contract())
    assert [p.status for p in done.proofs] == ["proven"] * 2 * len(RUNTIMES)
    onnx.checker.check_model(onnx.load(made), full_check=True)
    assert list(read(made).graph.outputs) == list(tail.OUTPUTS)
    assert insert.remove(made, back)
    assert back.read_bytes() == source.read_bytes()


def test_thresholds_come_from_option_contract_or_default_and_may_not_contradict() -> None:
    contract = Contract(nms={"score": 0.3, "iou": 0.5})
    chosen, origins = insert.settings(insert.Options(most=100), contract)
    assert (chosen.score, chosen.iou, chosen.most) == (0.3, 0.5, 100)
    assert origins == {"score": "contract", "iou": "contract", "max_detections": "option"}
    for wrong, text in (
        (insert.Options(score=0.2), "contradicts the contract"),
        (insert.Options(iou=1.5), "contradicts the contract"),
        (insert.Options(pre=5000), "3840"),
        (insert.Options(tail="cluster"), "none of planes, loop, plugin"),
    ):
        with pytest.raises(VexlintError, match=text):
            insert.settings(wrong, contract)


NET = '<ir_version: 8, opset_import: ["" : 17]{meta}>\nnet ({inputs}) => ({outputs}) {{\n{nodes}\n}}\n'


def net(outputs: str, nodes: str, meta: str = "", inputs: str = "float[1,3,64,64] images") -> str:
    return NET.format(meta=meta, inputs=inputs, outputs=outputs, nodes=nodes)


PARTS = net("float[1,84,4] b, float[1,84,2] s", "b = Identity (x)\ns = Sigmoid (y)",
            inputs="float[1,3,64,64] images, float[1,84,4] x, float[1,84,2] y")  # fmt: skip
QUESTIONS = {
    "apart": (PARTS, None, "corners or centres.*--layout corners"),
    "unknown": (net("float[1,84,7] y", "y = Identity (x)", inputs="float[1,84,7] x"), None, "--layout v8|v5"),
    "unknown name": (PARTS, "v9", "none of v8"),
    "one class": (
        net("float[1,2100,6] y", "y = Concat <axis = 2> (a, b, c)",
            inputs="float[1,3,320,320] images, float[1,2100,4] a, float[1,2100,1] b, float[1,2100,1] c"),
        None, "product, or the objectness alone.*--layout v5|v7",
    ),
    "two classes as one": (net("float[1,84,7] y", "y = Identity (x)", inputs="float[1,84,7] x"), "v7", "no v7 head"),
    "inside": (
        net("int64[n,3] y", "y = NonMaxSuppression (b, s)", inputs="float[1,8,4] b, float[1,2,8] s"), None, "already",
    ),
    "top": (
        net("float[1,5,6] y", "k = Constant <value_ints = [5]> ()\ny, i = TopK <axis = 1> (x, k)", "",
            "float[1,84,6] x"),
        None, "end-to-end",
    ),
    "selected": (net("float[1,300,6] y", "y = Identity (x)", inputs="float[1,300,6] x"), None, "needs no NMS"),
    "detr": (
        net("float[1,9,4] pred_boxes, float[1,9,3] logits", "pred_boxes = Identity (x)\nlogits = Identity (y)",
            inputs="float[1,9,4] x, float[1,9,3] y"), None, "DETR",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", QUESTIONS)
def test_what_is_not_sure_is_a_question(case: str, tmp_path: Path) -> None:
    text, layout, message = QUESTIONS[case]
    with pytest.raises(VexlintError, match=message):
        heads.find(load(text, tmp_path), layout)


@pytest.mark.parametrize("layout", ["v5", "v7"])
def test_one_class_beside_an_objectness_is_what_the_user_says(layout: str, tmp_path: Path) -> None:
    found = heads.find(load(QUESTIONS["one class"][0], tmp_path), layout)
    assert (found.layout.name, found.classes, found.places) == (layout, 1, 2100)


@pytest.mark.parametrize(
    ("options", "contract", "said"),
    [
        (insert.Options(layout="v5"), Contract(), "--layout v5, but the file's structure says v8"),
        (insert.Options(), Contract(nms={"layout": "v5"}), "the contract's nms.layout = v5, but the file's structure"),
    ],
)
def test_a_layout_that_structure_contradicts_is_refused(options: insert.Options, contract: Contract, said: str) -> None:
    with pytest.raises(VexlintError, match=said):
        insert.plan(read(DETECTOR / "clean.onnx"), options, contract)


def small(folder: Path, places: int = 2100, classes: int = 3, kind: type = np.float32, logit: float = 1.0) -> Path:
    """A v8 head of made-up boxes and scores, moved a little by the picture, all of it in one precision."""
    dice = np.random.default_rng(places)
    held = {
        "boxes": np.concatenate([dice.uniform(40, 280, (1, 2, places)), dice.uniform(10, 60, (1, 2, places))], 1),
        "logits": dice.normal(0, 2, (1, classes, places)) * logit,
        "little": np.array([0.3]),
    }
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Mul", ["mean", "little"], ["moved"]),
        helper.make_node("Add", ["boxes", "moved"], ["b"]),
        helper.make_node("Add", ["logits", "moved"], ["l"]),
        helper.make_node("Sigmoid", ["l"], ["s"]),
        helper.make_node("Concat", ["b", "s"], ["output0"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "head",
        [helper.make_tensor_value_info("images", element, [1, 3, 320, 320])],
        [helper.make_tensor_value_info("output0", element, [1, 4 + classes, places])],
        [onnx.numpy_helper.from_array(array.astype(kind), name) for name, array in held.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"names": str(dict.fromkeys(range(classes), "x")), "task": "detect"})
    onnx.save(model, folder / "small.onnx")
    return folder / "small.onnx"


@pytest.mark.parametrize("name", ["planes", "loop"])
def test_a_model_of_half_precision_is_proven_on_runtimes_that_compute_it_wider(name: str, tmp_path: Path) -> None:
    """OpenVINO's CPU computes it in float32, and rounds only what leaves the graph."""
    path = small(tmp_path, kind=np.float16)
    done = insert.insert(path, tmp_path / "o.onnx", insert.Options(tail=name), Contract())
    assert [(p.stage, p.status) for p in done.proofs] == [
        (f"{what} on {runtime}", "proven") for runtime in RUNTIMES for what in ("tail", "model")
    ]


@pytest.mark.parametrize("places", [1, 2, 5, 50])
@pytest.mark.parametrize("name", ["planes", "loop"])
def test_a_head_of_few_places_gets_a_tail(name: str, places: int, tmp_path: Path) -> None:
    options = insert.Options(layout="v8", score=0.001, tail=name)
    done = insert.insert(small(tmp_path, places), tmp_path / "o.onnx", options, Contract())
    assert done.written
    assert not any(" 0 detections" in p.text for p in done.proofs)


def test_scores_that_are_all_nan_prove_nothing(tmp_path: Path) -> None:
    with pytest.raises(VexlintError, match=r"every score of output0 .* is NaN: there is nothing to prove"):
        insert.insert(small(tmp_path, logit=np.nan), tmp_path / "o.onnx", insert.Options(), Contract())


def gridded(folder: Path, form: str, scores: float = 0.5) -> Path:
    """A model with boxes and scores apart whose boxes follow the grid of 64 x 64, in one of the four forms."""
    y, x = np.concatenate([np.mgrid[0 : 64 // s, 0 : 64 // s].reshape(2, -1) * s + s / 2 for s in (8, 16, 32)], 1)
    size = np.full_like(x, 12)
    parts = (x, y, size, size) if form.startswith("centres") else (x - 6, y - 6, x + 6, y + 6)
    boxes = np.stack(parts, 1)[None].astype(np.float32) / (64 if form.endswith("01") else 1)
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["m"], keepdims=0),
        helper.make_node("Mul", ["m", "zero"], ["z"]),
        helper.make_node("Add", ["b0", "z"], ["boxes"]),
        helper.make_node("Add", ["s0", "z"], ["scores"]),
    ]
    values = {"zero": np.float32(0), "b0": boxes, "s0": np.full((1, 84, 2), scores, np.float32)}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 84, 4]),
         helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 84, 2])],
        [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()],
    )  # fmt: skip
    path = folder / f"{form}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("form", APART)
def test_the_probe_knows_the_four_forms_of_boxes_apart(form: str, tmp_path: Path) -> None:
    path = gridded(tmp_path, form)
    for layout in APART:
        options = insert.Options(layout=layout)
        if layout == form:
            done = insert.insert(path, tmp_path / "out.onnx", options, Contract())
            assert done.written
            known = Config(folder=tmp_path, models=(Contract(path="*.onnx", nms={"layout": form}),))
            found = proof.verify(path, tmp_path / "out.onnx", Request(), known)
            sets = found.comparisons[0].sets
            assert sets is not None
            assert (sets.class_match, sets.missing, sets.extra, sets.matched > 0) == (1, 0, 0, True)
            assert sets.iou_drift < 1e-5
            assert done.plan.names[1] == "nms/boxes", "its own boxes keep their name"
        else:
            with pytest.raises(VexlintError, match="run on noise its boxes are"):
                insert.insert(path, tmp_path / "never.onnx", options, Contract())
    assert not (tmp_path / "never.onnx").exists()


def test_logits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VexlintError, match="no probabilities"):
        insert.insert(
            gridded(tmp_path, "corners", 3.0), tmp_path / "o.onnx", insert.Options(layout="corners"), Contract()
        )


def test_a_tail_that_gives_something_else_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = tail.build
    monkeypatch.setattr(tail, "build", lambda h, s, o, n: build(h, Settings(s.score, 0.7, s.most), o, n))
    done = insert.insert(DETECTOR / "clean.onnx", tmp_path / "o.onnx", insert.Options(), Contract())
    assert not done.written
    assert not (tmp_path / "o.onnx").exists()


def test_what_is_not_ours_is_not_removed(tmp_path: Path) -> None:
    with pytest.raises(VexlintError, match="no tail of vexlint's"):
        insert.remove(DETECTOR / "clean.onnx", tmp_path / "o.onnx")


def test_the_plugin_wants_no_verify(tmp_path: Path) -> None:
    options = insert.Options(tail="plugin")
    with pytest.raises(VexlintError, match="--no-verify"):
        insert.insert(DETECTOR / "clean.onnx", tmp_path / "o.onnx", options, Contract())
    insert.insert(DETECTOR / "clean.onnx", tmp_path / "o.onnx", insert.Options(tail="plugin", verify=False), Contract())
    assert [n.domain for n in read(tmp_path / "o.onnx").graph.nodes][-1] == "TRT"
    assert insert.remove(tmp_path / "o.onnx", tmp_path / "b.onnx")


def test_an_old_opset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VexlintError, match="opset 13 or newer"):
        insert.insert(DETECTOR / "opset11.onnx", tmp_path / "o.onnx", insert.Options(), Contract())


CONTRACT = '[[model]]\npath = "*.onnx"\n'
INSIDE = CONTRACT + 'nms = { layout = "v8", score = 0.3, iou = 0.5, max_detections = 100 }\n'


def repaired(folder: Path, contract: str, *words: str) -> tuple[int, str]:
    (folder / "vexlint.toml").write_text(contract)
    shutil.copy(DETECTOR / "custom_mish.onnx", folder)
    done = vexlint("fix", "custom_mish.onnx", "-o", "fixed.onnx", *words, folder=folder)
    return done.returncode, done.stdout + done.stderr


def test_fix_inserts_what_the_contract_wants_where_unsafe_fixes_are_asked_for(tmp_path: Path) -> None:
    code, said = repaired(tmp_path, INSIDE, "--unsafe-fixes")
    assert code == 0, said
    assert all(f"{what} on {runtime} proven" in said for what in ("tail", "model") for runtime in RUNTIMES)
    fixed = read(tmp_path / "fixed.onnx")
    assert list(fixed.graph.outputs) == list(tail.OUTPUTS)
    assert {fixed.metadata[f"vexlint.nms.{k}"] for k in ("score", "iou", "max_detections")} == {"0.3", "0.5", "100"}
    assert "VEX101, VEX501" in fixed.metadata["vexlint.fixed"]


@pytest.mark.parametrize(("contract", "words"), [(CONTRACT, ("--unsafe-fixes",)), (INSIDE, ())])
def test_fix_inserts_nothing_that_nobody_asked_for(contract: str, words: tuple[str, ...], tmp_path: Path) -> None:
    code, said = repaired(tmp_path, contract, *words)
    assert code == (1 if contract == INSIDE else 0), "what the contract wants and is not there remains as an error"
    assert "tail" not in said
    assert list(read(tmp_path / "fixed.onnx").graph.outputs) == ["output0"]


def test_fix_writes_nothing_where_the_tail_is_not_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = tail.build
    monkeypatch.setattr(tail, "build", lambda h, s, o, n: build(h, Settings(s.score, 0.7, s.most), o, n))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vexlint.toml").write_text(INSIDE)
    shutil.copy(DETECTOR / "clean.onnx", tmp_path)
    done = CliRunner().invoke(app, ["fix", "clean.onnx", "-o", "fixed.onnx", "--unsafe-fixes"])
    assert done.exit_code == 2
    assert "tail on onnxruntime not proven: sample 1" in " ".join(done.output.split())
    assert not (tmp_path / "fixed.onnx").exists()


CLEAN = str(DETECTOR / "clean.onnx")
REFUSED = {
    "no destination": ((CLEAN,), "one of -o FILE, --in-place"),
    "two destinations": ((CLEAN, "-o", "o.onnx", "--in-place"), "one of -o FILE, --in-place"),
    "no such file": (("none.onnx", "-o", "o.onnx"), "none.onnx: cannot be opened"),
    "not a model": (("vexlint.toml", "-o", "o.onnx"), "vexlint.toml"),
    "no folder": ((CLEAN, "-o", "none/o.onnx"), "there is no folder"),
    "a folder": ((CLEAN, "-o", "."), "folder"),
    "text": ((CLEAN, "-o", "o.onnxtxt"), "call it .onnx"),
    "onto the source": ((CLEAN, "-o", CLEAN), "is the source itself"),
    "no tail": ((CLEAN, "--remove", "-o", "o.onnx"), "nothing to remove"),
    "a score above 1": ((CLEAN, "-o", "o.onnx", "--score", "1.5"), "--score should lie in 0..1"),
    "another layout": ((CLEAN, "-o", "o.onnx", "--layout", "v5"), "structure says v8"),
    "no layout": ((CLEAN, "-o", "o.onnx", "--layout", "v88"), "did you mean"),
    "an open size": ((str(DETECTOR / "dynamic.onnx"), "-o", "o.onnx"), "--shape"),
    "the contract's threshold": ((CLEAN, "-o", "o.onnx", "--config", "wants.toml", "--iou", "0.6"), "contradicts"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_said_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    words, text = REFUSED[case]
    (tmp_path / "vexlint.toml").write_text("")
    (tmp_path / "wants.toml").write_text(INSIDE.replace("*.onnx", CLEAN))
    before = {p: p.read_bytes() for p in (*tmp_path.iterdir(), Path(CLEAN))}
    done = vexlint("nms", *words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert {p: p.read_bytes() for p in (*tmp_path.iterdir(), Path(CLEAN))} == before


@pytest.mark.parametrize("name", ["planes", "loop"])
def test_a_tail_is_not_what_a_release_is_warned_of(name: str, tmp_path: Path) -> None:
    source, path = DETECTOR / "clean.onnx", tmp_path / "inside.onnx"
    assert vexlint("nms", str(source), "-o", str(path), "--tail", name, "--no-verify", folder=tmp_path).returncode == 0
    release = rulebook.select(RULES, [], [], "release")
    assert set(codes(judge(path, rules=release))) <= set(codes(judge(source, rules=release)))


def test_the_command_writes_proves_and_takes_away(tmp_path: Path) -> None:
    done = vexlint("nms", CLEAN, "-o", "inside.onnx", "--score", "0.3", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "tail planes: score 0.3 (option), iou 0.45 (default), max_detections 300 (default), pre 1000" in said
    assert f"model on {RUNTIMES[0]} proven: 3 pictures" in said
    assert said.endswith("written to inside.onnx")
    done = vexlint("nms", "inside.onnx", "--remove", "--in-place", folder=tmp_path)
    assert done.returncode == 0
    assert "byte for byte" in done.stdout
    assert (tmp_path / "inside.onnx").read_bytes() == Path(CLEAN).read_bytes()
    done = vexlint("nms", CLEAN, "-o", "inside.onnx", "--no-verify", folder=tmp_path)
    assert (done.returncode, done.stdout.endswith("not verified (--no-verify)\n")) == (0, True)


@pytest.mark.skipif(
    importlib.util.find_spec("tensorrt_rtx") is None, reason="tensorrt_rtx is not installed (extra rtx)"
)
@pytest.mark.parametrize("batch", [1, "batch"])
def test_tensorrt_rtx_builds_the_loop_and_refuses_the_planes(batch: int | str) -> None:
    assert nms_rtx.verdict("loop", batch)[:2] == (True, True)
    parsed, built, said = nms_rtx.verdict("planes", batch)
    assert parsed
    assert not built, "if this builds by now, the planes tail is for TensorRT-RTX too: say so in docs/nms.md"
    assert "NonMaxSuppression" in said
