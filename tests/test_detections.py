"""Boxes, suppression, layouts of detectors, and the matching of two sets of detections."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parents[1] / "golden_models"))
from shapes_detector import measure

from tests.support import DETECTOR, load
from vexlint.config import Contract
from vexlint.model.read import read
from vexlint.values import VexlintError
from vexlint.verify import boxes, decoders, detections
from vexlint.verify.boxes import Detections, Thresholds
from vexlint.verify.decoders import Undecodable
from vexlint.verify.detections import LIMITS, Sets, match

NONE = boxes.detections(np.empty((0, 4)), np.empty(0), np.empty(0))


def seen(*rows: tuple[float, ...]) -> Detections:
    """Detections from rows of centre x, centre y, width, height, score, class."""
    table = np.array(rows, np.float64).reshape(-1, 6)
    return boxes.detections(boxes.corners(table), table[:, 4], table[:, 5])


@st.composite
def some(draw: st.DrawFn, most: int = 12) -> Detections:
    """Detections on a coarse grid, so that equal boxes, equal scores and ties are frequent."""
    count = draw(st.integers(0, most))
    places = draw(hnp.arrays(np.int64, (count, 2), elements=st.integers(0, 12)))
    sizes = draw(hnp.arrays(np.int64, (count, 2), elements=st.integers(1, 6)))
    scores = draw(hnp.arrays(np.int64, count, elements=st.integers(30, 100)))
    labels = draw(hnp.arrays(np.int64, count, elements=st.integers(0, 2)))
    corners = np.concatenate([places, places + sizes], 1) * 4.0
    return boxes.detections(corners, scores / 100, labels)


def compared(a: Detections, b: Detections) -> Sets:
    found = Sets(LIMITS["fp32"], Thresholds())
    found.add(a, b, "picture")
    return found


class TestOverlaps:
    def test_equal_boxes_overlap_wholly_and_distant_ones_not(self) -> None:
        two = np.array([[0.0, 0, 10, 10], [20, 20, 30, 40]])
        assert boxes.overlaps(two, two).tolist() == [[1, 0], [0, 1]]

    def test_half_a_box_beside(self) -> None:
        found = boxes.overlaps(np.array([[0.0, 0, 10, 10]]), np.array([[5.0, 0, 15, 10]]))
        assert found[0, 0] == pytest.approx(1 / 3)

    def test_boxes_without_area_overlap_only_with_their_like(self) -> None:
        points = np.array([[5.0, 5, 5, 5], [6, 6, 6, 6]])
        assert boxes.overlaps(points, points).tolist() == [[1, 0], [0, 1]]


def nms_session(classes: int, count: int, thresholds: Thresholds) -> Any:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    constants = [
        helper.make_tensor("most", TensorProto.INT64, [1], [thresholds.most]),
        helper.make_tensor("iou", TensorProto.FLOAT, [1], [thresholds.iou]),
        helper.make_tensor("score", TensorProto.FLOAT, [1], [thresholds.score]),
    ]
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "score"], ["chosen"])
    inputs = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, count, 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, classes, count]),
    ]
    output = helper.make_tensor_value_info("chosen", TensorProto.INT64, [None, 3])
    graph = helper.make_graph([node], "nms", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


class TestSuppress:
    @pytest.mark.parametrize("seed", range(20))
    def test_keeps_what_onnxruntime_keeps(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        classes, count, thresholds = int(rng.integers(1, 5)), int(rng.integers(1, 300)), Thresholds(0.25, 0.45, 1000)
        corner, size = rng.uniform(0, 60, (count, 2)), rng.uniform(2, 40, (count, 2))
        corners = np.concatenate([corner, corner + size], 1).astype(np.float32)
        scores, labels = rng.random(count, np.float32), rng.integers(0, classes, count)
        planes = np.where(labels == np.arange(classes)[:, None], scores, -1).astype(np.float32)
        session = nms_session(classes, count, thresholds)
        chosen = session.run(None, {"boxes": corners[None], "scores": planes[None]})[0]
        found = boxes.suppress(boxes.detections(corners, scores, labels), thresholds)
        order = np.argsort(-scores[chosen[:, 2]], kind="stable")
        assert np.array_equal(found.boxes, corners[chosen[order, 2]])
        assert np.array_equal(found.labels, chosen[order, 1])

    def test_a_score_at_the_threshold_is_not_above_it(self) -> None:
        assert len(boxes.suppress(seen((5, 5, 4, 4, 0.25, 0)), Thresholds(score=0.25))) == 0

    def test_an_overlap_at_the_threshold_stays(self) -> None:
        pair = seen((5, 5, 10, 10, 0.9, 0), (10, 5, 10, 10, 0.8, 0))
        assert len(boxes.suppress(pair, Thresholds(iou=1 / 3))) == 2
        assert len(boxes.suppress(pair, Thresholds(iou=0.333))) == 1

    def test_classes_do_not_suppress_each_other(self) -> None:
        assert len(boxes.suppress(seen((5, 5, 10, 10, 0.9, 0), (5, 5, 10, 10, 0.8, 1)), Thresholds())) == 2

    def test_the_highest_scores_stay_where_there_are_too_many(self) -> None:
        many = seen(*((20 * i, 5, 10, 10, 0.3 + i / 100, 0) for i in range(9)))
        found = boxes.suppress(many, Thresholds(most=3))
        assert found.scores.tolist() == pytest.approx([0.38, 0.37, 0.36])

    def test_boxes_without_area_suppress_nothing(self) -> None:
        assert len(boxes.suppress(seen((5, 5, 0, 0, 0.9, 0), (5, 5, 0, 0, 0.8, 0)), Thresholds())) == 2


class TestMatch:
    @given(some())
    @settings(deadline=None)
    def test_a_set_matches_itself_without_drift(self, a: Detections) -> None:
        found = compared(a, a)
        assert (found.same, found.flips, found.missing, found.extra, found.near) == (len(a), 0, 0, 0, 0)
        assert (found.iou_drift, found.centre_px, found.score) == (0, 0, 0)

    @given(some(), some(), st.randoms(use_true_random=False))
    @settings(deadline=None)
    def test_the_order_of_rows_does_not_matter(self, a: Detections, b: Detections, random: Any) -> None:
        order_a, order_b = list(range(len(a))), list(range(len(b)))
        random.shuffle(order_a)
        random.shuffle(order_b)
        shuffled = compared(a.take(np.array(order_a, int)), b.take(np.array(order_b, int)))
        assert shuffled.drift() == compared(a, b).drift()

    @given(some(), some())
    @settings(deadline=None)
    def test_both_sides_count_alike(self, a: Detections, b: Detections) -> None:
        there, back = compared(a, b), compared(b, a)
        assert (there.same, there.flips, there.near) == (back.same, back.flips, back.near)
        assert (there.missing, there.extra) == (back.extra, back.missing)
        assert (there.iou_drift, there.centre_px, there.score) == (back.iou_drift, back.centre_px, back.score)

    @given(some(), some())
    @settings(deadline=None)
    def test_pairs_are_one_to_one_and_overlap(self, a: Detections, b: Detections) -> None:
        pairs = match(a, b)
        assert len({i for i, _, _ in pairs}) == len({j for _, j, _ in pairs}) == len(pairs)
        shared = boxes.overlaps(a.boxes, b.boxes)
        assert all(iou == shared[i, j] >= detections.PARTNERS for i, j, iou in pairs)

    @given(some(most=6), st.data())
    @settings(deadline=None)
    def test_a_class_that_flips_is_a_flip_and_not_missing(self, a: Detections, data: st.DataObject) -> None:
        alone = boxes.suppress(a, Thresholds(iou=0.0))  # so that there is no other partner to take
        if not len(alone):
            return
        flipped = data.draw(st.integers(0, len(alone) - 1))
        labels = alone.labels.copy()
        labels[flipped] = 7
        found = compared(alone, Detections(alone.boxes, alone.scores, labels))
        assert (found.same, found.flips) == (len(alone) - 1, 1)
        assert found.missing == found.extra == 0
        assert not found.drift().passed

    def test_rows_in_another_order_are_not_compared_by_position(self) -> None:
        a = seen((10, 10, 8, 8, 0.9, 0), (300, 300, 20, 20, 0.9, 1))
        found = compared(a, a.take(np.array([1, 0])))
        assert found.centre_px == 0

    def test_the_same_class_comes_before_the_larger_overlap(self) -> None:
        a = seen((50, 50, 20, 20, 0.9, 0), (50, 50, 20, 20, 0.8, 1))
        b = seen((51, 50, 20, 20, 0.9, 0), (52, 50, 20, 20, 0.8, 1))
        assert compared(a, b).flips == 0


class TestSets:
    @pytest.mark.parametrize(("side", "shift"), [(8, 2), (16, 2), (64, 1), (320, 0.5)])
    def test_the_drift_of_a_shifted_box_is_what_the_formula_says(self, side: float, shift: float) -> None:
        a, b = seen((200, 200, side, side, 0.9, 0)), seen((200 + shift, 200, side, side, 0.9, 0))
        found = compared(a, b)
        assert found.iou_drift == pytest.approx(2 * shift / (side + shift))
        assert found.centre_px == pytest.approx(shift)

    def test_shifts_are_told_by_the_size_of_the_object(self) -> None:
        rows = [(10, 10, 4, 4, 0.9, 0), (60, 10, 8, 8, 0.8, 0), (110, 10, 31, 5, 0.7, 0), (250, 250, 99, 9, 0.6, 0)]
        found = compared(seen(*rows), seen(*((x + 0.1 * i, *rest) for i, (x, *rest) in enumerate(rows)))).drift()
        assert [(str(s), s.matched) for s in found.sizes] == [
            ("under 8 px", 1), ("8-16 px", 1), ("16-32 px", 1), ("64 px and more", 1),
        ]  # fmt: skip
        assert [s.largest for s in found.sizes] == pytest.approx([0, 0.1, 0.2, 0.3], abs=1e-6)

    def test_a_lost_detection_fails_and_one_at_the_threshold_does_not(self) -> None:
        a = seen((50, 50, 20, 20, 0.9, 0), (150, 50, 20, 20, 0.8, 0), (250, 50, 20, 20, 0.2505, 0))
        lost, flipped = compared(a, a.take(np.array([0, 2]))), compared(a, a.take(np.array([0, 1])))
        assert (lost.missing, lost.near, lost.drift().passed) == (1, 0, False)
        assert (flipped.missing, flipped.near, flipped.drift().passed) == (0, 1, True)
        assert lost.drift().class_match == pytest.approx(2 / 3)

    def test_a_detection_that_was_suppressed_at_the_threshold_of_overlap_is_a_flip(self) -> None:
        near = 10 * (1 - 0.45) / (1 + 0.45)  # px: two boxes of 10 px that far apart have an IoU of 0.45
        a = seen((50, 50, 10, 10, 0.9, 0), (50 + near, 50, 10, 10, 0.8, 0))
        assert compared(a, a.take(np.array([0]))).near == 1

    def test_the_last_of_a_full_set_is_a_flip(self) -> None:
        rows = [(20 * i + 10, 10, 10, 10, 0.9 - i / 10, 0) for i in range(3)]
        other = [*rows[:2], (200, 200, 10, 10, rows[2][4] + 1e-4, 0)]
        found = Sets(LIMITS["fp32"], Thresholds(most=3))
        found.add(seen(*rows), seen(*other), "picture")
        assert (found.missing, found.extra, found.near) == (0, 0, 2)

    @pytest.mark.parametrize(
        ("a", "b", "word"),
        [
            (NONE, NONE, "neither side detects"),
            (seen(*((20 * i, 9, 9, 9, 0.5, 0) for i in range(300))),) * 2 + ("one and the same score",),
            (seen((9, 9, 9, 9, 0.2501, 0)), NONE, "lie at a threshold"),
        ],
    )
    def test_sets_that_prove_nothing_do_not_pass(self, a: Detections, b: Detections, word: str) -> None:
        found = compared(a, b).drift()
        assert word in found.vacuous
        assert not found.passed

    def test_pictures_without_objects_beside_others_are_fine(self) -> None:
        found = Sets(LIMITS["fp32"], Thresholds())
        found.add(NONE, NONE, "empty")
        found.add(seen((9, 9, 9, 9, 0.9, 0)), seen((9, 9, 9, 9, 0.9, 0)), "full")
        assert found.drift().passed

    @pytest.mark.parametrize("empty", [0, 1])
    def test_a_side_that_detects_nothing_fails(self, empty: int) -> None:
        sides = [seen((9, 9, 9, 9, 0.9, 0), (50, 9, 9, 9, 0.8, 0)), NONE]
        found = compared(sides[1 - empty], sides[empty]).drift()
        assert (found.vacuous, found.passed, found.class_match) == ("", False, 0)

    def test_tolerance_of_the_contract_over_that_of_its_precision(self) -> None:
        loose = detections.limits(Contract(precision="int8", tolerance={"iou_drift": 0.2}))
        assert (loose.iou_drift, loose.class_match) == (0.2, 0.98)
        assert detections.limits(Contract()).iou_drift == 0.001
        with pytest.raises(VexlintError, match="class_match is a share"):
            detections.limits(Contract(tolerance={"class_match": 100}))


class TestDecoders:
    def test_the_golden_heads_give_the_same_detections(self) -> None:
        recorded, sets = measure.recorded(), {}
        for name in ("clean", "objectness"):
            decoder = decoders.find(read(DETECTOR / f"{name}.onnx"), Contract())
            assert decoder is not None
            sets[name] = decoder.decode({"output0": recorded[name]}, Thresholds())
        assert [len(d) for d in sets["clean"]] == [len(d) for d in sets["objectness"]]
        assert all(len(d) for d in sets["clean"])
        found = Sets(LIMITS["fp32"], Thresholds())
        for a, b in zip(sets["clean"], sets["objectness"], strict=True):
            found.add(a, b, "scene")
        assert found.drift().passed
        assert found.iou_drift < 1e-9

    def test_heads_say_what_they_are(self) -> None:
        found = decoders.find(read(DETECTOR / "objectness.onnx"), Contract())
        assert found is not None
        assert found.text == "a v5 head with 3 classes"

    def test_a_layout_that_does_not_exist_is_an_error(self) -> None:
        with pytest.raises(VexlintError, match=r"nms.layout = 'v9' is none of v8, v5, v7, corners.*did you mean v8"):
            decoders.find(read(DETECTOR / "clean.onnx"), Contract(nms={"layout": "v9"}))

    @pytest.mark.parametrize("counted", [True, False])
    def test_boxes_scores_and_labels(self, counted: bool) -> None:
        shapes: dict[str, Any] = {"boxes": (1, 3, 4), "scores": (1, 3), "labels": (1, 3)}
        outputs = {
            "boxes": np.array([[[0, 0, 9, 9], [5, 5, 9, 9], [0, 0, 0, 0]]], np.float32),
            "scores": np.array([[0.9, 0.2, 0]], np.float32),
            "labels": np.array([[2, 1, -1]], np.int32),
        }
        if counted:
            shapes["num_dets"], outputs["num_dets"] = (1, 1), np.array([[2]], np.int32)
        decoder = decoders.of_outputs(shapes)
        assert decoder is not None
        (found,) = decoder.decode(outputs, Thresholds())
        assert (found.boxes.tolist(), found.labels.tolist()) == ([[0, 0, 9, 9]], [2])

    def test_torchvision_gives_one_picture_without_a_batch_axis(self) -> None:
        decoder = decoders.of_outputs({"boxes": (None, 4), "labels": (None,), "scores": (None,)})
        assert decoder is not None
        outputs = {"boxes": np.ones((2, 4)), "labels": np.array([1, 2]), "scores": np.array([0.5, 0.6])}
        assert [len(d) for d in decoder.decode(outputs, Thresholds())] == [2]

    def test_rows_of_six(self) -> None:
        decoder = decoders.of_outputs({"output0": (1, 300, 6)})
        assert decoder is not None
        rows = np.zeros((2, 300, 6), np.float32)
        rows[1, 0] = [1, 2, 3, 4, 0.75, 2]
        first, second = decoder.decode({"output0": rows}, Thresholds())
        assert (len(first), second.boxes.tolist(), second.labels.tolist()) == (0, [[1, 2, 3, 4]], [2])

    def test_scores_that_are_no_probabilities_are_not_judged_by_a_threshold(self) -> None:
        decoder = decoders.find(read(DETECTOR / "clean.onnx"), Contract())
        assert decoder is not None
        with pytest.raises(Undecodable, match="scores go up to 7"):
            decoder.decode({"output0": np.full((1, 7, 2100), 7, np.float32)}, Thresholds())

    def test_outputs_of_another_shape_are_not_decoded(self) -> None:
        decoder = decoders.find(read(DETECTOR / "clean.onnx"), Contract())
        assert decoder is not None
        with pytest.raises(Undecodable, match=r"output0 \[1, 7\]: not a v8 head"):
            decoder.decode({"output0": np.zeros((1, 7), np.float32)}, Thresholds())

    def test_turned_boxes_are_left_alone(self) -> None:
        assert decoders.find(read(DETECTOR / "clean.onnx"), Contract(task="obb")) is None

    def test_a_classifier_has_no_detections(self, tmp_path: Path) -> None:
        text = """<ir_version: 8, opset_import: ["": 17]>
            g (float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Relu(x) }"""
        assert decoders.find(load(text, tmp_path), Contract()) is None

    def test_thresholds_come_from_the_contract(self) -> None:
        assert decoders.thresholds(Contract()) == Thresholds(0.25, 0.45, 300)
        assert decoders.thresholds(Contract(nms={"score": 0.5, "max_detections": 7})) == Thresholds(0.5, 0.45, 7)
        for wrong in ({"iou": 45}, {"score": "high"}, {"max_detections": 0}):
            with pytest.raises(VexlintError, match=f"the contract's nms.{next(iter(wrong))} should"):
                decoders.thresholds(Contract(nms=wrong))
