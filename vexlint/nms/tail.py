"""The tail as a model of its own, built with GraphSurgeon: head -> num_dets, boxes, scores, labels.

Every shape is fixed but for the batch and, in `planes`, what lies between NonMaxSuppression and ScatterND. Numbers are
float32 whatever the model's are: areas overflow in half. Scores that are not above the threshold, NaN among them,
become -1 before anything is ranked, so that no runtime's idea of NaN matters. Among equal scores the first place wins,
however a runtime's TopK ranks ties: `Piece.first` settles those at the limit, and what was chosen is then brought into
the order of places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vexlint.nms.heads import Head
from vexlint.nms.piece import PREFIX, Piece, floats, ints
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from onnx import ModelProto

OUTPUTS = ("num_dets", "boxes", "scores", "labels")
TAILS = ("planes", "loop", "plugin")
MOST = 3840  # TensorRT's largest K of TopK
NOTHING = -1.0  # below every score threshold: the score of what was not selected
OLDEST = 13  # opset


@dataclass(frozen=True, slots=True)
class Settings:
    """What the tail does. `score` and `iou` in 0..1, both strict; `most` rows come out; `pre` candidates go in."""

    score: float
    iou: float
    most: int
    pre: int = 1000
    tail: str = "planes"
    multi_label: bool = False
    agnostic: bool = False

    def candidates(self, head: Head) -> int:
        """How many rows are compared with each other, M."""
        rows = head.places * (head.classes if self.multi_label else 1) if head.places else self.pre
        return min(self.pre, rows, MOST)


def build(head: Head, settings: Settings, opset: int, names: tuple[str, ...] = OUTPUTS) -> ModelProto:
    """The tail as a model; its inputs are called as the head's outputs, its outputs `names`: int32 [B, 1], float32
    [B, D, 4] x1 y1 x2 y2 in px, float32 [B, D], int32 [B, D], padded with 0, 0, -1. Raises VexlintError below opset 13.
    """
    import numpy as np
    import onnx
    import onnx_graphsurgeon as gs
    from onnx import TensorProto

    if opset < OLDEST:
        raise VexlintError(f"a tail needs opset {OLDEST} or newer, the file has {opset}: export it again")
    from vexlint.model.tensors import NUMPY_NAMES

    piece = Piece(opset)
    kinds = {"float": np.float32, "float16": np.float16, "double": np.float64}
    inputs = []
    for name, shape in zip(head.outputs, head.shapes, strict=True):
        if shape.dtype not in kinds:
            raise VexlintError(f"head {name} is {NUMPY_NAMES.get(shape.dtype, shape.dtype)}: a tail takes floats")
        inputs.append(gs.Variable(name, kinds[shape.dtype], [d if d is not None else "batch" for d in shape.dims]))
    piece.graph.inputs = inputs
    wide = [v if v.dtype == np.float32 else piece.op("Cast", v, to=TensorProto.FLOAT) for v in inputs]
    made = _plugin(piece, head, settings, wide) if settings.tail == "plugin" else _tail(piece, head, settings, wide)
    batch = head.batch if head.batch is not None else "batch"
    wanted = [(np.int32, [batch, 1]), (np.float32, [batch, settings.most, 4]), (np.float32, [batch, settings.most]),
              (np.int32, [batch, settings.most])]  # fmt: skip
    for value, name, (dtype, dims) in zip(made, names, wanted, strict=True):
        value.name, value.dtype, value.shape = name, dtype, dims
    piece.graph.outputs = made
    model: ModelProto = gs.export_onnx(piece.graph, do_type_check=False)
    model.ir_version = min(model.ir_version, 8)
    if settings.tail == "plugin":
        return model
    onnx.checker.check_model(model, full_check=True)
    return model


def _tail(piece: Piece, head: Head, settings: Settings, wide: list[Any]) -> list[Any]:
    boxes, scores, axis = _split(piece, head, settings, wide)
    boxes, scores, labels = _candidates(piece, head, settings, (boxes, scores), axis)
    suppressed = _planes if settings.tail == "planes" else _loop
    keep = suppressed(piece, head, settings, (boxes, scores, labels))
    return _selected(piece, settings, settings.candidates(head), keep, (boxes, scores, labels))


def _split(piece: Piece, head: Head, settings: Settings, wide: list[Any]) -> tuple[Any, Any, int]:
    """Boxes [B, N, 4] as the head has them, scores [B, N, C] or [B, C, N], and the axis of C. The v8 head is not
    turned as a whole: only its boxes are, and for several labels a box."""
    axis = head.class_axis
    layout, before = head.layout, head.layout.before
    if layout.outputs == 2:
        boxes, scores = wide
    else:
        boxes = piece.slice(wide[0], 0, 4, layout.rows)
        boxes = piece.op("Transpose", boxes, perm=[0, 2, 1]) if layout.rows == 1 else boxes
        scores = piece.slice(wide[0], before, before + head.classes, layout.rows)
    if layout.score != "class":
        objectness = piece.slice(wide[0], 4, 5, layout.rows)
        scores = piece.op("Mul", scores, objectness) if layout.score == "product" else objectness
    if (settings.multi_label or head.places is None) and axis == 1:
        scores, axis = piece.op("Transpose", scores, perm=[0, 2, 1]), 2
    if head.places is None:  # there may be fewer places than candidates
        room = ints(0, 0, 0, 0, settings.candidates(head), 0)
        boxes, scores = piece.op("Pad", boxes, room), piece.op("Pad", scores, room, floats(NOTHING).reshape(()))
    # turned round: of a NaN, OpenVINO's Greater says true on CPUs with AVX-512, and its Less says false
    above = piece.op("Less", floats(settings.score), scores)
    return boxes, piece.op("Where", above, scores, floats(NOTHING)), axis


def _candidates(
    piece: Piece, head: Head, settings: Settings, given: tuple[Any, Any], axis: int
) -> tuple[Any, Any, Any]:
    """The M best: boxes [B, M, 4] as corners in px, scores [B, M], labels int64 [B, M], in the order of places."""
    boxes, scores = given
    count = settings.candidates(head)
    ranked = piece.op("Reshape", scores, ints(0, -1)) if settings.multi_label else piece.largest(scores, [axis])
    index = piece.first(ranked, count, _places(piece, ranked, head, settings))
    _, order = piece.top(piece.cast(index, "FLOAT"), count, largest=0)  # exact below 2 ** 24; no two are equal
    index = piece.op("GatherElements", index, order, axis=1)
    best = piece.op("GatherElements", ranked, index, axis=1)
    if settings.multi_label:
        place = piece.op("Div", index, ints(head.classes))
        labels = piece.op("Sub", index, piece.op("Mul", place, ints(head.classes)))
    else:
        place = index
        labels = piece.op("GatherElements", piece.op("ArgMax", scores, axis=axis, keepdims=0), index, axis=1)
    found = piece.rows(boxes, place)
    if head.layout.centres:
        centre, half = piece.slice(found, 0, 2, 2), piece.op("Mul", piece.slice(found, 2, 4, 2), floats(0.5))
        found = piece.op("Concat", piece.op("Sub", centre, half), piece.op("Add", centre, half), axis=2)
    if head.layout.normalised and head.image is not None:
        high, wide = head.image
        found = piece.op("Mul", found, floats(wide, high, wide, high))
    return found, best, labels


def _places(piece: Piece, ranked: Any, head: Head, settings: Settings) -> Any:
    """float32 [1, N] 0, -1, -2 …; with several labels a place [1, N C], made from two small ones."""
    import numpy as np

    if head.places is None:
        count = piece.squeeze(piece.cast(piece.slice(piece.op("Shape", ranked), 1, 2, 0), "FLOAT"), 0)
        return piece.op("Neg", piece.op("Range", floats(0).reshape(()), count, floats(1).reshape(())))
    places = -np.arange(head.places, dtype=np.float32)[None]
    if not settings.multi_label:
        return places
    classes = -np.arange(head.classes, dtype=np.float32).reshape(1, 1, -1)
    return piece.op("Reshape", piece.op("Add", places[..., None] * head.classes, classes), ints(1, -1))


def _planes(piece: Piece, head: Head, settings: Settings, given: tuple[Any, Any, Any]) -> Any:
    """bool [B, M]: what NonMaxSuppression keeps, with one plane of scores a class."""
    import numpy as np

    boxes, scores, labels = given
    planes = piece.unsqueeze(scores, 1)
    if not settings.agnostic:
        own = piece.op("Equal", piece.unsqueeze(labels, 1), np.arange(head.classes).reshape(1, -1, 1))
        planes = piece.op("Where", own, planes, floats(NOTHING))
    limits = ints(settings.most), floats(settings.iou), floats(settings.score)
    chosen = piece.op("NonMaxSuppression", boxes, planes, *limits, center_point_box=0)
    batch, place = piece.slice(chosen, 0, 1, 1), piece.slice(chosen, 2, 3, 1)
    ones = piece.op("Add", piece.op("Mul", piece.squeeze(piece.cast(batch, "FLOAT"), 1), floats(0)), floats(1))
    # a spare picture at the end takes rows of -1, with which some runtimes fill up, and is cut off again
    spare = np.zeros((1, settings.candidates(head)), np.float32)
    empty = piece.op("Concat", piece.op("Mul", scores, floats(0)), spare, axis=0)
    marked = piece.op("ScatterND", empty, piece.op("Concat", batch, place, axis=1), ones)
    return piece.op("Greater", piece.slice(marked, 0, -1, 0), floats(0.5))


def _loop(piece: Piece, head: Head, settings: Settings, given: tuple[Any, Any, Any]) -> Any:
    """bool [B, M]: the fixed point of "kept unless a kept one with a higher rank overlaps", which is the greedy result:
    in each pass at least the next undecided box is decided for good, so M passes are enough and few are needed."""
    import numpy as np

    boxes, scores, labels = given
    count = settings.candidates(head)
    ours, theirs = piece.unsqueeze(scores, 2), piece.unsqueeze(scores, 1)
    earlier = piece.op("And", piece.op("Equal", ours, theirs), np.tril(np.ones((1, count, count), bool), -1))
    before = piece.op("Or", piece.op("Less", ours, theirs), earlier)  # [B, i, j]: j ranks before i
    over = piece.op("And", _overlap(piece, boxes, settings.iou), before)
    if not settings.agnostic:
        over = piece.op("And", over, piece.op("Equal", piece.unsqueeze(labels, 2), piece.unsqueeze(labels, 1)))
    over = piece.cast(over, "FLOAT")
    alive = piece.cast(piece.op("Greater", ours, floats(settings.score)), "FLOAT")
    kept = piece.op("Loop", ints(count + 1).reshape(()), np.array(True), alive, body=_body(piece.opset, over, alive))
    return piece.op("Greater", piece.squeeze(kept, 2), floats(0.5))


def _overlap(piece: Piece, boxes: Any, iou: float) -> Any:
    """bool [B, M, M]: whether the IoU is above the threshold, without a division: no 0/0 for boxes without area."""
    x1, y1, x2, y2 = (piece.slice(boxes, k, k + 1, 2) for k in range(4))

    def turned(value: Any) -> Any:
        return piece.op("Transpose", value, perm=[0, 2, 1])

    def shared(low: Any, high: Any) -> Any:
        size = piece.op("Sub", piece.op("Min", high, turned(high)), piece.op("Max", low, turned(low)))
        return piece.op("Max", size, floats(0))

    both = piece.op("Mul", shared(x1, x2), shared(y1, y2))
    area = piece.op("Mul", piece.op("Sub", x2, x1), piece.op("Sub", y2, y1))
    union = piece.op("Sub", piece.op("Add", area, turned(area)), both)
    return piece.op("Less", piece.op("Mul", union, floats(iou)), both)  # false of NaN, as in `_split`


def _body(opset: int, over: Any, alive: Any) -> Any:
    """One pass of the loop, which ends where a pass changes nothing."""
    import numpy as np
    import onnx_graphsurgeon as gs

    body = Piece(opset, PREFIX + "pass/")
    number = gs.Variable(PREFIX + "pass/number", np.int64, [])
    go = gs.Variable(PREFIX + "pass/go", bool, [])
    kept = gs.Variable(PREFIX + "pass/kept", np.float32)
    free = body.cast(body.op("Less", body.op("MatMul", over, kept), floats(0.5)), "FLOAT")
    after = body.op("Mul", alive, free)
    moved = body.largest(body.op("Abs", body.op("Sub", after, kept)), [0, 1, 2])
    again = body.op("Greater", moved, floats(0.5).reshape(()))
    again.dtype, again.shape, after.dtype = bool, [], np.float32
    body.graph.inputs, body.graph.outputs = [number, go, kept], [again, after]
    return body.graph


def _selected(piece: Piece, settings: Settings, count: int, keep: Any, given: tuple[Any, Any, Any]) -> list[Any]:
    """The best D of what was kept, and the padding."""
    import numpy as np

    boxes, scores, labels = given
    rows = min(settings.most, count)
    scores = piece.op("Where", keep, scores, floats(NOTHING))
    first = piece.first(scores, rows, -np.arange(count, dtype=np.float32)[None])
    best, order = piece.top(piece.op("GatherElements", scores, first, axis=1), rows)
    place = piece.op("GatherElements", first, order, axis=1)
    real = piece.op("Greater", best, floats(NOTHING / 2))
    number = piece.op("ReduceSum", piece.cast(real, "INT32"), ints(1), keepdims=1)
    found = piece.op("Where", piece.unsqueeze(real, 2), piece.rows(boxes, place), floats(0))
    numbers = piece.op("Where", real, best, floats(0))
    named = piece.cast(piece.op("GatherElements", labels, place, axis=1), "FLOAT")
    named = piece.op("Where", real, named, floats(-1))
    if more := settings.most - rows:
        found = piece.op("Pad", found, ints(0, 0, 0, 0, more, 0))
        numbers = piece.op("Pad", numbers, ints(0, 0, 0, more))
        named = piece.op("Pad", named, ints(0, 0, 0, more), floats(-1).reshape(()))
    return [number, found, numbers, piece.cast(named, "INT32")]


def _plugin(piece: Piece, head: Head, settings: Settings, wide: list[Any]) -> list[Any]:
    """EfficientNMS_TRT: every class of a box above the threshold is a detection, whatever `multi_label` says."""
    boxes, scores, axis = _split(piece, head, settings, wide)
    if axis == 1:
        scores = piece.op("Transpose", scores, perm=[0, 2, 1])
    if head.layout.normalised and head.image is not None:
        boxes = piece.op("Mul", boxes, floats(head.image[1], head.image[0], head.image[1], head.image[0]))
    made: list[Any] = piece.op(
        "EfficientNMS_TRT", boxes, scores, outputs=4, domain="TRT", background_class=-1,
        box_coding=int(head.layout.centres), iou_threshold=settings.iou, max_output_boxes=settings.most,
        plugin_version="1", score_activation=0, class_agnostic=int(settings.agnostic), score_threshold=settings.score,
    )  # fmt: skip
    return made
