"""The few whole numbers that shapes are computed with, followed through a graph: Shape, Gather, Concat and the like.

A value is a tuple of them, row-major, of a tensor of rank 0 or 1; None stands for one that is open.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vexlint.model.graph import Node
    from vexlint.model.kinds import Kind

Numbers = tuple[int | None, ...]
MOST = 32  # elements that are followed
WHOLE = ("tensor(int64)", "tensor(int32)")


def followed(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    """The numbers of a node's first output, None where they do not follow."""
    step = STEPS.get(node.op)
    try:
        made = step(node, inputs) if step is not None and inputs else None
    except (IndexError, ZeroDivisionError, TypeError):
        return None  # a wrong node: other rules speak of it
    return made if made is not None and len(made) <= MOST else None


def _shape(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    dims, end = inputs[0].dims, node.attribute("end")
    return None if dims is None else dims[node.attribute("start") or 0 : len(dims) if end is None else end]


def _size(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    dims = inputs[0].dims
    if dims is None or None in dims:
        return None
    count = 1
    for size in dims:
        count *= size or 0
    return (count,)


def _same(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    """Of Reshape, Squeeze and Unsqueeze too: the order of the numbers stays."""
    return inputs[0].value


def _cast(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    return inputs[0].value if node.attribute("to") in (6, 7) else None


def _gather(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    data, places = inputs[0].value, inputs[1].value
    if data is None or places is None or inputs[0].rank != 1:
        return None
    return tuple(None if place is None else data[place] for place in places)


def _concat(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    parts = [kind.value if kind.rank == 1 else None for kind in inputs]
    return None if None in parts else tuple(number for part in parts for number in part or ())


def _slice(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
    data = inputs[0].value
    if data is None or inputs[0].rank != 1:
        return None
    names = ("starts", "ends", "axes", "steps")
    given = [inputs[i + 1].value if i + 1 < len(inputs) else node.attribute(name) for i, name in enumerate(names)]
    starts, ends, axes, steps = ([None] if g is None else list(g) for g in given)
    if len(starts) != 1 or None in (*starts, *ends) or axes not in ([None], [0], [-1]):
        return None
    return data[starts[0] : ends[0] : steps[0]]


def _computed(step: Callable[[int, int], int]) -> Callable[[Node, Sequence[Kind]], Numbers | None]:
    def follow(node: Node, inputs: Sequence[Kind]) -> Numbers | None:
        if len(inputs) != 2 or inputs[0].type not in WHOLE:
            return None
        a, b = inputs[0].value, inputs[1].value
        if a is None or b is None or (len(a) != len(b) and 1 not in (len(a), len(b))):
            return None
        count = 0 if not a or not b else max(len(a), len(b))
        pairs = zip(a * count if len(a) == 1 else a, b * count if len(b) == 1 else b, strict=True)
        return tuple(None if x is None or y is None else step(x, y) for x, y in pairs)

    return follow


def _divided(a: int, b: int) -> int:
    """As C does it: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


STEPS: dict[str, Callable[[Node, Sequence[Kind]], Numbers | None]] = {
    "Shape": _shape, "Size": _size, "Identity": _same, "Reshape": _same, "Squeeze": _same, "Unsqueeze": _same,
    "Cast": _cast, "Gather": _gather, "Concat": _concat, "Slice": _slice, "Add": _computed(operator.add),
    "Sub": _computed(operator.sub), "Mul": _computed(operator.mul), "Div": _computed(_divided),
    "Min": _computed(min), "Max": _computed(max),
}  # fmt: skip
