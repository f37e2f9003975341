"""The tail as a model of its own, built with GraphSurgeon: head -> num_dets, boxes, scores, labels.

Every shape is fixed but for the batch and, in `planes`, what lies between NonMaxSuppression and ScatterND. Numbers are
float32 whatever the model's are: areas overflow in half. Scores that are not above the threshold, NaN among them,
become -1 before anything is ranked, so that no runtime's idea of NaN matters. Candidates are brought into the order of
their places after the pre-selection: among equal scores the first place wins, however a runtime's TopK ranks ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vexlint.nms.heads import Head
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from onnx import ModelProto

PREFIX = "vexlint_nms/"
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


class Piece:
    """A GraphSurgeon graph that grows node by node, with names of its own."""

    def __init__(self, opset: int, prefix: str = PREFIX) -> None:
        import onnx_graphsurgeon as gs

        self.opset = opset
        self.prefix = prefix
        self.graph = gs.Graph(opset=opset, name="vexlint_nms")

    def op(self, kind: str, *inputs: Any, outputs: int = 1, domain: str | None = None, **attributes: Any) -> Any:
        """One node; inputs are variables, or arrays that become constants. Its output, or the list of them."""
        import onnx_graphsurgeon as gs

        name = f"{self.prefix}{len(self.graph.nodes)}_{kind}"
        made = [gs.Variable(f"{name}:{i}" if outputs > 1 else name) for i in range(outputs)]
        given = [self._value(v, f"{name}/in{i}") for i, v in enumerate(inputs)]
        self.graph.nodes.append(gs.Node(kind, name, attributes, given, made, domain=domain))
        return made[0] if outputs == 1 else made

    def _value(self, value: Any, name: str) -> Any:
        import numpy as np
        import onnx_graphsurgeon as gs

        return (
            gs.Constant(name, np.ascontiguousarray(value).reshape(value.shape))
            if isinstance(value, np.ndarray)
            else value
        )

    def slice(self, value: Any, start: int, end: int, axis: int) -> Any:
        return self.op("Slice", value, _ints(start), _ints(end), _ints(axis))

    def largest(self, value: Any, axes: list[int], keep: bool = False) -> Any:
        if self.opset >= 18:
            return self.op("ReduceMax", value, _ints(*axes), keepdims=int(keep))
        return self.op("ReduceMax", value, axes=axes, keepdims=int(keep))

    def unsqueeze(self, value: Any, axis: int) -> Any:
        return self.op("Unsqueeze", value, _ints(axis))

    def squeeze(self, value: Any, axis: int) -> Any:
        return self.op("Squeeze", value, _ints(axis))

    def cast(self, value: Any, to: str) -> Any:
        from onnx import TensorProto

        return self.op("Cast", value, to=TensorProto.DataType.Value(to))

    def top(self, value: Any, count: int, largest: int = 1) -> Any:
        return self.op("TopK", value, _ints(count), outputs=2, axis=1, largest=largest, sorted=1)

    def rows(self, value: Any, index: Any) -> Any:
        """[B, N, ...] at places int64 [B, M]: [B, M, ...]."""
        return self.op("GatherND", value, self.unsqueeze(index, 2), batch_dims=1)


def _ints(*numbers: int) -> Any:
    import numpy as np

    return np.array(numbers, np.int64)


def _floats(*numbers: float) -> Any:
    import numpy as np

    return np.array(numbers, np.float32)


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
    if head.layout.name == "v8":
        boxes = piece.op("Transpose", piece.slice(wide[0], 0, 4, 1), perm=[0, 2, 1])
        scores = piece.slice(wide[0], 4, 4 + head.classes, 1)
    elif head.layout.name == "v5":
        boxes = piece.slice(wide[0], 0, 4, 2)
        scores = piece.op("Mul", piece.slice(wide[0], 5, 5 + head.classes, 2), piece.slice(wide[0], 4, 5, 2))
    else:
        boxes, scores = wide
    if (settings.multi_label or head.places is None) and axis == 1:
        scores, axis = piece.op("Transpose", scores, perm=[0, 2, 1]), 2
    if head.places is None:  # there may be fewer places than candidates
        room = _ints(0, 0, 0, 0, settings.candidates(head), 0)
        boxes, scores = piece.op("Pad", boxes, room), piece.op("Pad", scores, room, _floats(NOTHING).reshape(()))
    above = piece.op("Greater", scores, _floats(settings.score))
    return boxes, piece.op("Where", above, scores, _floats(NOTHING)), axis


def _candidates(
    piece: Piece, head: Head, settings: Settings, given: tuple[Any, Any], axis: int
) -> tuple[Any, Any, Any]:
    """The M best: boxes [B, M, 4] as corners in px, scores [B, M], labels int64 [B, M], in the order of places."""
    boxes, scores = given
    count = settings.candidates(head)
    ranked = piece.op("Reshape", scores, _ints(0, -1)) if settings.multi_label else piece.largest(scores, [axis])
    _, index = piece.top(ranked, count)
    _, order = piece.top(piece.cast(index, "FLOAT"), count, largest=0)  # exact below 2 ** 24; no two are equal
    index = piece.op("GatherElements", index, order, axis=1)
    best = piece.op("GatherElements", ranked, index, axis=1)
    if settings.multi_label:
        place = piece.op("Div", index, _ints(head.classes))
        labels = piece.op("Sub", index, piece.op("Mul", place, _ints(head.classes)))
    else:
        place = index
        labels = piece.op("GatherElements", piece.op("ArgMax", scores, axis=axis, keepdims=0), index, axis=1)
    found = piece.rows(boxes, place)
    if head.layout.centres:
        centre, half = piece.slice(found, 0, 2, 2), piece.op("Mul", piece.slice(found, 2, 4, 2), _floats(0.5))
        found = piece.op("Concat", piece.op("Sub", centre, half), piece.op("Add", centre, half), axis=2)
    if head.layout.normalised and head.image is not None:
        high, wide = head.image
        found = piece.op("Mul", found, _floats(wide, high, wide, high))
    return found, best, labels


def _planes(piece: Piece, head: Head, settings: Settings, given: tuple[Any, Any, Any]) -> Any:
    """bool [B, M]: what NonMaxSuppression keeps, with one plane of scores a class."""
    import numpy as np

    boxes, scores, labels = given
    planes = piece.unsqueeze(scores, 1)
    if not settings.agnostic:
        own = piece.op("Equal", piece.unsqueeze(labels, 1), np.arange(head.classes).reshape(1, -1, 1))
        planes = piece.op("Where", own, planes, _floats(NOTHING))
    limits = _ints(settings.most), _floats(settings.iou), _floats(settings.score)
    chosen = piece.op("NonMaxSuppression", boxes, planes, *limits, center_point_box=0)
    batch, place = piece.slice(chosen, 0, 1, 1), piece.slice(chosen, 2, 3, 1)
    ones = piece.op("Add", piece.op("Mul", piece.squeeze(piece.cast(batch, "FLOAT"), 1), _floats(0)), _floats(1))
    # a spare picture at the end takes rows of -1, with which some runtimes fill up, and is cut off again
    spare = np.zeros((1, settings.candidates(head)), np.float32)
    empty = piece.op("Concat", piece.op("Mul", scores, _floats(0)), spare, axis=0)
    marked = piece.op("ScatterND", empty, piece.op("Concat", batch, place, axis=1), ones)
    return piece.op("Greater", piece.slice(marked, 0, -1, 0), _floats(0.5))


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
    alive = piece.cast(piece.op("Greater", ours, _floats(settings.score)), "FLOAT")
    kept = piece.op("Loop", _ints(count + 1).reshape(()), np.array(True), alive, body=_body(piece.opset, over, alive))
    return piece.op("Greater", piece.squeeze(kept, 2), _floats(0.5))


def _overlap(piece: Piece, boxes: Any, iou: float) -> Any:
    """bool [B, M, M]: whether the IoU is above the threshold, without a division: no 0/0 for boxes without area."""
    x1, y1, x2, y2 = (piece.slice(boxes, k, k + 1, 2) for k in range(4))

    def turned(value: Any) -> Any:
        return piece.op("Transpose", value, perm=[0, 2, 1])

    def shared(low: Any, high: Any) -> Any:
        size = piece.op("Sub", piece.op("Min", high, turned(high)), piece.op("Max", low, turned(low)))
        return piece.op("Max", size, _floats(0))

    both = piece.op("Mul", shared(x1, x2), shared(y1, y2))
    area = piece.op("Mul", piece.op("Sub", x2, x1), piece.op("Sub", y2, y1))
    union = piece.op("Sub", piece.op("Add", area, turned(area)), both)
    return piece.op("Greater", both, piece.op("Mul", union, _floats(iou)))


def _body(opset: int, over: Any, alive: Any) -> Any:
    """One pass of the loop, which ends where a pass changes nothing."""
    import numpy as np
    import onnx_graphsurgeon as gs

    body = Piece(opset, PREFIX + "pass/")
    number = gs.Variable(PREFIX + "pass/number", np.int64, [])
    go = gs.Variable(PREFIX + "pass/go", bool, [])
    kept = gs.Variable(PREFIX + "pass/kept", np.float32)
    free = body.cast(body.op("Less", body.op("MatMul", over, kept), _floats(0.5)), "FLOAT")
    after = body.op("Mul", alive, free)
    moved = body.largest(body.op("Abs", body.op("Sub", after, kept)), [0, 1, 2])
    again = body.op("Greater", moved, _floats(0.5).reshape(()))
    again.dtype, again.shape, after.dtype = bool, [], np.float32
    body.graph.inputs, body.graph.outputs = [number, go, kept], [again, after]
    return body.graph


def _selected(piece: Piece, settings: Settings, count: int, keep: Any, given: tuple[Any, Any, Any]) -> list[Any]:
    """The best D of what was kept, and the padding."""
    boxes, scores, labels = given
    rows = min(settings.most, count)
    best, place = piece.top(piece.op("Where", keep, scores, _floats(NOTHING)), rows)
    real = piece.op("Greater", best, _floats(NOTHING / 2))
    number = piece.op("ReduceSum", piece.cast(real, "INT32"), _ints(1), keepdims=1)
    found = piece.op("Where", piece.unsqueeze(real, 2), piece.rows(boxes, place), _floats(0))
    numbers = piece.op("Where", real, best, _floats(0))
    named = piece.cast(piece.op("GatherElements", labels, place, axis=1), "FLOAT")
    named = piece.op("Where", real, named, _floats(-1))
    if more := settings.most - rows:
        found = piece.op("Pad", found, _ints(0, 0, 0, 0, more, 0))
        numbers = piece.op("Pad", numbers, _ints(0, 0, 0, more))
        named = piece.op("Pad", named, _ints(0, 0, 0, more), _floats(-1).reshape(()))
    return [number, found, numbers, piece.cast(named, "INT32")]


def _plugin(piece: Piece, head: Head, settings: Settings, wide: list[Any]) -> list[Any]:
    """EfficientNMS_TRT: every class of a box above the threshold is a detection, whatever `multi_label` says."""
    boxes, scores, axis = _split(piece, head, settings, wide)
    if axis == 1:
        scores = piece.op("Transpose", scores, perm=[0, 2, 1])
    if head.layout.normalised and head.image is not None:
        boxes = piece.op("Mul", boxes, _floats(head.image[1], head.image[0], head.image[1], head.image[0]))
    made: list[Any] = piece.op(
        "EfficientNMS_TRT", boxes, scores, outputs=4, domain="TRT", background_class=-1,
        box_coding=int(head.layout.centres), iou_threshold=settings.iou, max_output_boxes=settings.most,
        plugin_version="1", score_activation=0, class_agnostic=int(settings.agnostic), score_threshold=settings.score,
    )  # fmt: skip
    return made
