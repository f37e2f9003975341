"""A graph that grows node by node on GraphSurgeon: what tails are written in."""

from __future__ import annotations

from typing import Any

PREFIX = "vexlint_nms/"
BEHIND = float("-inf")  # every place, and in half precision too


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
        return self.op("Slice", value, ints(start), ints(end), ints(axis))

    def largest(self, value: Any, axes: list[int], keep: bool = False) -> Any:
        if self.opset >= 18:
            return self.op("ReduceMax", value, ints(*axes), keepdims=int(keep))
        return self.op("ReduceMax", value, axes=axes, keepdims=int(keep))

    def unsqueeze(self, value: Any, axis: int) -> Any:
        return self.op("Unsqueeze", value, ints(axis))

    def squeeze(self, value: Any, axis: int) -> Any:
        return self.op("Squeeze", value, ints(axis))

    def cast(self, value: Any, to: str) -> Any:
        from onnx import TensorProto

        return self.op("Cast", value, to=TensorProto.DataType.Value(to))

    def top(self, value: Any, count: int, largest: int = 1) -> Any:
        return self.op("TopK", value, ints(count), outputs=2, axis=1, largest=largest, sorted=1)

    def first(self, scores: Any, count: int, places: Any) -> Any:
        """int64 [B, count]: the highest of scores [B, N], and of those equal to the last of them the first ones;
        `places` are float32 [1, N] 0, -1, -2 …: exact below 2 ** 24. In any order."""
        least = self.slice(self.top(scores, count)[0], count - 1, count, 1)
        level = self.op("Where", self.op("Equal", scores, least), places, floats(BEHIND))
        return self.top(self.op("Where", self.op("Greater", scores, least), floats(1), level), count)[1]

    def rows(self, value: Any, index: Any) -> Any:
        """[B, N, ...] at places int64 [B, M]: [B, M, ...]."""
        return self.op("GatherND", value, self.unsqueeze(index, 2), batch_dims=1)


def ints(*numbers: int) -> Any:
    import numpy as np

    return np.array(numbers, np.int64)


def floats(*numbers: float) -> Any:
    import numpy as np

    return np.array(numbers, np.float32)
