"""Shapes: what the file declares, and what ONNX shape inference finds, on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vexlint.model import native, proto, tensors

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto, ValueInfoProto

Dim = int | str | None  # a size, the name of a symbolic size, or unknown


@dataclass(frozen=True, slots=True)
class Shape:
    """Element type (ONNX text name, e.g. "float") and dimensions of a tensor."""

    dtype: str
    dims: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.dims)

    def size(self, axis: int) -> int | None:
        """The dimension at `axis` (negative counts from the end) where it is a known number, else None."""
        if not -self.rank <= axis < self.rank:
            return None
        dim = self.dims[axis]
        return dim if isinstance(dim, int) else None

    def __str__(self) -> str:
        return "[" + ",".join("?" if d is None else str(d) for d in self.dims) + "]"


def declared_shape(entry: ValueInfoProto | TensorProto) -> Shape | None:
    """The shape of a ValueInfoProto or TensorProto; None where it declares no rank or is not a tensor.

    A negative `dim_value` and the names "?" and "" are unknown sizes: some exporters write them for "any".
    """
    if hasattr(entry, "dims"):
        return Shape(tensors.dtype_name(entry.data_type), tuple(entry.dims))
    if not entry.type.HasField("tensor_type") or not entry.type.tensor_type.HasField("shape"):
        return None
    tensor = entry.type.tensor_type
    return Shape(tensors.dtype_name(tensor.elem_type), tuple(_dim(d) for d in tensor.shape.dim))


def _dim(dim: Any) -> Dim:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param if dim.dim_param not in ("", "?") else None


def undeclared(model: ModelProto) -> ModelProto:
    """A copy that declares no shapes but those of its inputs: what inference finds then is what the nodes make."""
    copy = type(model)()
    copy.CopyFrom(model)
    copy.graph.ClearField("value_info")
    for output in copy.graph.output:
        output.ClearField("type")
    return copy


def infer(model: ModelProto) -> dict[tuple[str, str], Shape]:
    """Runs ONNX shape inference (with data propagation) in a child process on the weight-free model.

    Returns (graph path, value name) -> shape for the main graph. Inference that stops at a node it does not know
    gives what it found before. Raises `native.Stopped` where the child hung or crashed.
    """
    try:
        # ONNX's own bytes: nothing in them is to be suspected, as `parse` would
        answer = proto.message_class("ModelProto").FromString(native.call("infer", model.SerializeToString()))
    except native.Refused:
        return {}
    found = {}
    for entry in (*answer.graph.value_info, *answer.graph.output):
        if (shape := declared_shape(entry)) is not None:
            found["graph", entry.name] = shape
    return found
