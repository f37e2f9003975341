"""Where an element of a node's output comes from: indices, followed back through operators that only move numbers.

A pick fixes some axes of a value at an index and leaves the others free: ((-1, 2),) is column 2 of the last axis. Axes
count from the last one, as broadcasting does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vexlint.model.graph import Node, Value

Pick = tuple[tuple[int, int], ...]  # (axis, index), ascending


@dataclass(frozen=True, slots=True)
class Step:
    """One step back: which input, the pick in it, and whether the free axes are others there (rows were chosen)."""

    position: int
    pick: Pick
    moved: bool = False


def back(node: Node, output: str, pick: Pick) -> Step | None:
    """The input that holds what is picked of an output; None where the operator computes, or nothing tells."""
    step = None if node.domain else MOVING.get(node.op)
    return step(node, output, dict(pick)) if step else None


def fit(value: Value, pick: Pick) -> Pick:
    """A pick of the result of an element-wise operator as one of its operand, which may be broadcast."""
    shape = value.shape
    if shape is None:
        return pick
    return tuple((a, 0 if shape.size(a) == 1 else i) for a, i in pick if -a <= shape.rank)


def rank(node: Node, position: int) -> int | None:
    """How many axes an input has."""
    kinds = node.graph.model.reads.get(node, ())
    if position < len(kinds) and kinds[position].rank is not None:
        return kinds[position].rank
    value = node.input(position)
    shape = value.shape if value else None
    return shape.rank if shape else None


def numbers(node: Node, attribute: str, position: int) -> list[int] | None:
    """A list that older opsets write as an attribute and newer ones as an input; None where it is not known."""
    written = node.attribute(attribute)
    if written is not None:
        return [written] if isinstance(written, int) else list(written)
    value = node.input(position)
    found = value.constant if value else None
    return None if found is None else [int(n) for n in found]


def from_end(axis: int | None, count: int | None) -> int | None:
    """An axis counted from the last one; None where that takes a rank that is not known, or there is none."""
    if axis is None or (axis >= 0 and count is None):
        return None
    found = axis if axis < 0 else axis - (count or 0)
    return found if found < 0 else None


def _ordered(chosen: dict[int, int]) -> Pick:
    return tuple(sorted(chosen.items()))


def _size(value: Value | None, axis: int) -> int | None:
    shape = value.shape if value else None
    return shape.size(axis) if shape else None


def _transpose(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    count = rank(node, 0)
    order = node.attribute("perm") or (list(range(count))[::-1] if count else None)
    if order is None or not all(-len(order) <= a < 0 for a in chosen):
        return None
    return Step(0, _ordered({order[a] - len(order): i for a, i in chosen.items()}))


def _slice(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    starts, ends = numbers(node, "starts", 1), numbers(node, "ends", 2)
    axes, steps = numbers(node, "axes", 3), numbers(node, "steps", 4)
    if axes is None and node.input(3) is None and starts is not None:
        axes = list(range(len(starts)))
    if starts is None or ends is None or axes is None:
        return None if axes is None or not _free(node, axes, chosen) else Step(0, _ordered(chosen), True)
    found, moved = dict(chosen), False
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(axes), strict=False):
        place = from_end(axis, rank(node, 0))
        if place is None:
            return None
        if place not in found:
            moved |= not (start == 0 and step == 1 and end >= 2**31 - 1)
            continue
        length = _size(node.input(0), place)
        if start < 0 and length is None:
            return None
        first = start if start >= 0 else max(start + (length or 0), 0)
        if step < 0:
            return None
        found[place] = first + found[place] * step
    return Step(0, _ordered(found), moved)


def _free(node: Node, axes: list[int], chosen: dict[int, int]) -> bool:
    places = [from_end(a, rank(node, 0)) for a in axes]
    return None not in places and not set(places) & set(chosen)


def _split(node: Node, output: str, chosen: dict[int, int]) -> Step | None:
    axis = from_end(node.attribute("axis") or 0, rank(node, 0))
    if axis is None:
        return None
    if axis not in chosen:
        return Step(0, _ordered(chosen), True)
    position, parts = node.outputs.index(output), numbers(node, "split", 1)
    if parts is None:
        whole = _size(node.input(0), axis)
        if whole is None or node.input(1) is not None:
            return None
        parts = [-(-whole // len(node.outputs))] * len(node.outputs)
    return Step(0, _ordered(chosen | {axis: chosen[axis] + sum(parts[:position])}))


def _gather(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    axis, indices = from_end(node.attribute("axis") or 0, rank(node, 0)), node.input(1)
    count = rank(node, 1)
    if axis is None or indices is None or count is None:
        return None
    found = {a if a > axis else a - 1 + count: i for a, i in chosen.items() if a > axis or a <= axis - count}
    inside = [i for a, i in chosen.items() if axis - count < a <= axis]
    chosen_from = indices.constant
    if count == 0 or inside:
        if count > 1 or not chosen_from or (inside and inside[0] >= len(chosen_from)):
            return None
        index = int(chosen_from[inside[0] if inside else 0])
        length = _size(node.input(0), axis)
        if index < 0 and length is None:
            return None
        # counting from the last axis, what lies before the gathered one moves by one where it disappears
        return Step(0, _ordered(found | {axis: index if index >= 0 else index + (length or 0)}))
    return Step(0, _ordered(found), True)


def _squeeze(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    axes, count = numbers(node, "axes", 1), rank(node, 0)
    if axes is None or count is None:
        return None
    gone = {a % count for a in axes}
    left = [i for i in range(count) if i not in gone]
    if any(-a > len(left) for a in chosen):
        return None
    return Step(0, _ordered({left[a] - count: i for a, i in chosen.items()} | {g - count: 0 for g in gone}))


def _unsqueeze(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    axes, count = numbers(node, "axes", 1), rank(node, 0)
    if axes is None or count is None:
        return None
    count += len(axes)
    left = [i for i in range(count) if i not in {a % count for a in axes}]
    kept = {a + count: i for a, i in chosen.items()}
    return Step(0, _ordered({left.index(a) - len(left): i for a, i in kept.items() if a in left}))


def _concat(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    """The part that holds the index; along a free axis the first part stands for all."""
    axis = from_end(node.attribute("axis"), next((r for i in range(len(node.inputs)) if (r := rank(node, i))), None))
    if axis is None:
        return None
    index = chosen.get(axis, 0)
    for position in range(len(node.inputs)):
        if axis not in chosen:
            return Step(position, _ordered(chosen))
        length = _size(node.input(position), axis)
        if length is None:
            return None
        if index < length:
            return Step(position, _ordered(chosen | {axis: index}))
        index -= length
    return None


def _reshape(node: Node, output: str, chosen: dict[int, int]) -> Step | None:
    """An axis that keeps its size while what lies before it, or behind it, is only cut otherwise."""
    before = source.shape if (source := node.input(0)) else None
    after = Value(node.graph, output).shape
    if not chosen:
        return Step(0, ())
    if before is None or after is None:
        return None
    found = {}
    for axis, index in chosen.items():
        length = after.size(axis)
        if length == 1 and index == 0:
            continue  # says nothing
        places = [a - before.rank for a in range(before.rank) if before.size(a) == length]
        fits = [a for a in places if _alike(before.dims, a, after.dims, axis)]
        if length is None or not fits:
            return None
        found[fits[-1]] = index
    return Step(0, _ordered(found))


def _alike(before: tuple[object, ...], a: int, after: tuple[object, ...], b: int) -> bool:
    tails = before[len(before) + a + 1 :], after[len(after) + b + 1 :]
    heads = before[: len(before) + a], after[: len(after) + b]
    return any(one == other or (_product(one) or -1) == _product(other) for one, other in (tails, heads))


def _product(dims: tuple[object, ...]) -> int | None:
    found = 1
    for dim in dims:
        if not isinstance(dim, int):
            return None
        found *= dim
    return found


def _expand(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    value = node.input(0)
    return None if value is None or value.shape is None else Step(0, fit(value, _ordered(chosen)))


def _rows(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    """GatherElements: the same column of other rows, as long as rows are what is gathered."""
    axis = from_end(node.attribute("axis") or 0, rank(node, 0))
    return None if axis is None or axis in chosen else Step(0, _ordered(chosen), True)


def _gather_nd(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    """What the indices leave whole at the end keeps its axes."""
    count, indices = rank(node, 0), node.input(1)
    depth = _size(indices, -1)
    if count is None or depth is None:
        return None
    whole = count - depth - (node.attribute("batch_dims") or 0)
    return Step(0, _ordered(chosen), True) if all(-a <= whole for a in chosen) else None


def _pad(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    pads, count = numbers(node, "pads", 1), rank(node, 0)
    if pads is None or count is None or len(pads) != 2 * count:
        return None
    return None if any(pads[a + count] or pads[a] for a in chosen) else Step(0, _ordered(chosen))


def _same(node: Node, _: str, chosen: dict[int, int]) -> Step | None:
    return Step(0, _ordered(chosen))


MOVING: dict[str, Callable[[Node, str, dict[int, int]], Step | None]] = {
    "Transpose": _transpose, "Slice": _slice, "Split": _split, "Gather": _gather, "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze, "Concat": _concat, "Reshape": _reshape, "Flatten": _reshape, "Expand": _expand,
    "GatherElements": _rows, "GatherND": _gather_nd, "Pad": _pad, "Identity": _same, "Cast": _same, "Dropout": _same,
    "QuantizeLinear": _same, "DequantizeLinear": _same,
}  # fmt: skip
