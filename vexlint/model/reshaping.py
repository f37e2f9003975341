"""The sizes that operators make which move, cut, join and repeat: Reshape, Slice, Concat and their like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vexlint.model import tensors
from vexlint.model.signatures import Dims, Misfit, show

if TYPE_CHECKING:
    from vexlint.model.graph import Node
    from vexlint.model.kinds import Kind

Made = list[Dims | None]


def broadcast(op: str, shapes: Sequence[Dims | None]) -> Dims | None:
    """numpy's broadcasting; None where a rank is not known. Raises Misfit."""
    known = [dims for dims in shapes if dims is not None]
    made: list[int | None] = []
    for back in range(1, max(map(len, known), default=0) + 1):
        met = {dims[-back] for dims in known if back <= len(dims)}
        large = sorted(size for size in met if size is not None and size != 1)
        if len(large) > 1 and large[0]:
            pair = " and ".join(dict.fromkeys(show(dims) for dims in known))
            raise Misfit(f"{op} of {pair}: {large[0]} against {large[1]}, neither is 1")
        made.append(large[0] if len(large) == 1 and large[0] else None if large or None in met else 1)
    return tuple(reversed(made)) if len(known) == len(shapes) else None


def single(numbers: Sequence[int | None] | None) -> int | None:
    return numbers[0] if numbers is not None and len(numbers) == 1 else None


def axes(node: Node, inputs: Sequence[Kind]) -> list[int] | None:
    """The `axes` of a node, attribute or input, [] where it writes none; None where unknown."""
    schema = node.schema
    if schema is not None and "axes" in schema.attributes:
        if any(a.name == "axes" and a.ref_attr_name for a in node.proto.attribute):
            return None
        written = node.attribute("axes")
        return list(written) if isinstance(written, (list, tuple)) else []
    position = {"Slice": 3, "Pad": 3}.get(node.op, 1)
    if position >= len(node.inputs) or not node.inputs[position]:
        return []
    return whole(inputs, position)


def whole(inputs: Sequence[Kind], position: int) -> list[int] | None:
    """The numbers of an input where all of them are known."""
    value = inputs[position].value if position < len(inputs) else None
    return None if value is None or None in value else [number for number in value if number is not None]


def _written(node: Node, name: str, inputs: Sequence[Kind], position: int) -> Sequence[int | None] | None:
    """Numbers that are an attribute or an input, as the opset has it; some may be open."""
    value = node.attribute(name)
    if isinstance(value, (list, tuple)):
        return list(value)
    return inputs[position].value if position < len(inputs) else None


def _place(axis: Any, rank: int) -> int | None:
    """An axis counted from the first, None where it is none: VEX113 speaks then."""
    return axis % rank if isinstance(axis, int) and -rank <= axis < rank else None


def _length(inputs: Sequence[Kind], position: int) -> int | None:
    """How many numbers an input has."""
    dims = inputs[position].dims if position < len(inputs) else None
    return dims[0] if dims is not None and len(dims) == 1 else None


def _reshape(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, target = inputs[0].dims, _written(node, "shape", inputs, 1)
    if target is None:
        length = _length(inputs, 1)
        return [None if length is None else (None,) * length]
    kept = [dims[i] if dims is not None and i < len(dims) else None for i in range(len(target))]
    copies = not node.attribute("allowzero")
    made = [kept[i] if size == 0 and copies else size for i, size in enumerate(target)]
    free = [i for i, size in enumerate(made) if size == -1]
    if dims is None or None in dims or None in made or len(free) > 1 or 0 in dims:
        return [tuple(None if size == -1 else size for size in made)]
    whole, rest = math.prod(d or 0 for d in dims), math.prod(size or 0 for size in made if size != -1)
    if (rest != whole and not free) or (free and (rest < 1 or whole % rest)):
        wanted = show(tuple(target))
        raise Misfit(f"Reshape of {show(dims)} to {wanted}: {whole} elements do not go into it")
    return [tuple(whole // rest if size == -1 else size for size in made)]


def _expand(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    target, length = inputs[1].value if len(inputs) > 1 else None, _length(inputs, 1)
    if target is None and length is None:
        return [None]
    return [broadcast("Expand", [inputs[0].dims, tuple(target) if target is not None else (None,) * (length or 0)])]


def _filled(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    length = _length(inputs, 0)
    return [tuple(inputs[0].value) if inputs[0].value is not None else None if length is None else (None,) * length]


def _by_attribute(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    written = node.attribute("shape")
    return [tuple(written) if written else None]


def _concat(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    known = [kind.dims for kind in inputs if kind.dims is not None]
    if not known:
        return [None]
    rank = len(known[0])
    if any(len(dims) != rank for dims in known):
        raise Misfit(f"Concat of {' and '.join(dict.fromkeys(map(show, known)))}: they differ in rank")
    at = _place(node.attribute("axis"), rank)
    if at is None:
        return [None]
    made: list[int | None] = []
    for axis in range(rank):
        met = {dims[axis] for dims in known} - {None}
        if axis != at and len(met) > 1 and 0 not in met:
            shown = " and ".join(dict.fromkeys(map(show, known)))
            raise Misfit(f"Concat of {shown} along axis {at}: they differ on axis {axis} too")
        made.append(met.pop() if len(met) == 1 else None)
    parts = [kind.dims[at] if kind.dims is not None else None for kind in inputs]
    made[at] = None if None in parts else sum(part or 0 for part in parts)
    return [tuple(made)]


def _transpose(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, perm = inputs[0].dims, node.attribute("perm")
    if dims is None:
        return [(None,) * len(perm) if perm else None]
    order = perm or range(len(dims) - 1, -1, -1)
    return [tuple(dims[i] for i in order) if sorted(order) == list(range(len(dims))) else None]


def _slice(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims = inputs[0].dims
    lengths = {n for i in range(1, 5) if (n := _length(inputs, i)) is not None}
    ranks = [kind.rank for kind in inputs[1:]]
    if len(lengths) > 1 or any(rank not in (None, 1) for rank in ranks):
        shown = ", ".join(show(kind.dims) for kind in inputs[1:] if kind.dims is not None)
        raise Misfit(f"starts, ends, axes and steps of Slice are {shown}: lists of one length are due")
    if dims is None:
        return [None]
    starts, ends = (_written(node, name, inputs, i) for i, name in ((1, "starts"), (2, "ends")))
    where = axes(node, inputs)
    if where is None:
        return [(None,) * len(dims)]
    written = bool(node.inputs[4:5] and node.inputs[4])
    length = len(starts) if starts is not None else next(iter(lengths), len(dims))
    where, steps = where or list(range(length)), whole(inputs, 4) if written else [1] * length
    made = list(dims)
    for i, axis in enumerate(where):
        at = _place(axis, len(dims))
        if at is None:
            return [(None,) * len(dims)]
        cut = [numbers[i] if numbers is not None and i < len(numbers) else None for numbers in (starts, ends, steps)]
        size = dims[at]
        made[at] = None if None in (*cut, size) or not cut[2] else len(range(*slice(*cut).indices(size or 0)))
    return [tuple(made)]


def _split(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims = inputs[0].dims
    at = _place(node.attribute("axis"), len(dims)) if dims is not None else None
    if len(inputs) > 1 and inputs[1].rank not in (None, 1):
        raise Misfit(f"the sizes of Split are {show(inputs[1].dims or ())} where a list is due")
    if dims is None or at is None:
        return [dims and (None,) * len(dims)] * count
    sizes = _written(node, "split", inputs, 1)
    whole = dims[at]
    if sizes is None and len(node.inputs) < 2 and whole is not None:
        step = -(-whole // count)
        sizes = [max(min(step, whole - i * step), 0) for i in range(count)]
    given = list(sizes) if sizes is not None and len(sizes) == count else [None] * count
    return [(*dims[:at], size, *dims[at + 1 :]) for size in given]


def _squeeze(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, cut = inputs[0].dims, axes(node, inputs)
    if dims is None or cut is None:
        return [None]
    if not cut:
        return [None if None in dims else tuple(size for size in dims if size != 1)]
    places = {at for axis in cut if (at := _place(axis, len(dims))) is not None}
    wrong = next((at for at in sorted(places) if dims[at] not in (1, None)), None)
    if wrong is not None:
        raise Misfit(f"Squeeze takes axis {wrong} of {show(dims)} away, which has {dims[wrong]}")
    return [tuple(size for i, size in enumerate(dims) if i not in places)]


def _unsqueeze(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, added = inputs[0].dims, axes(node, inputs)
    if len(inputs) > 1 and inputs[1].rank not in (None, 0, 1):
        raise Misfit(f"the axes of Unsqueeze are {show(inputs[1].dims or ())} where a list is due")
    if dims is None or not added:
        return [None]
    rank = len(dims) + len(added)
    places = {at for axis in added if (at := _place(axis, rank)) is not None}
    rest = iter(dims)
    return [tuple(1 if i in places else next(rest, None) for i in range(rank))] if len(places) == len(added) else [None]


def _flatten(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, axis = inputs[0].dims, node.attribute("axis")
    if dims is None or not isinstance(axis, int) or not -len(dims) <= axis <= len(dims):
        return [(None, None)]
    at = axis + len(dims) if axis < 0 else axis
    return [tuple(None if None in part else math.prod(d or 0 for d in part) for part in (dims[:at], dims[at:]))]


def _gather(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    data, places = (inputs[i].dims if i < len(inputs) else None for i in (0, 1))
    if data == ():
        raise Misfit("Gather takes parts of a scalar")
    at = _place(node.attribute("axis"), len(data)) if data is not None else None
    size = data[at] if data is not None and at is not None else None
    if size is not None:
        wrong = [n for n in inputs[1].value or () if n is not None and not -size <= n < size]
        if wrong:
            raise Misfit(f"Gather takes index {wrong[0]} of axis {at}, which has {size}")
    if data is None or places is None or at is None:
        return [None]
    return [(*data[:at], *places, *data[at + 1 :])]


def _gather_elements(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    data, places = (inputs[i].dims if i < len(inputs) else None for i in (0, 1))
    if data is not None and places is not None:
        _inside(node, data, places)
    return [places]


def _inside(node: Node, data: Dims, places: Dims) -> None:
    """Indices have the rank of the data, and no more entries than these but along the axis."""
    at = _place(node.attribute("axis"), len(data))
    more = [
        i
        for i, (a, b) in enumerate(zip(data, places, strict=False))
        if i != at and None not in (a, b) and b > a  # type: ignore[operator]
    ]
    if len(data) != len(places) or (more and at is not None):
        raise Misfit(f"the indices of {node.op} are {show(places)}, its data are {show(data)}")


def _scatter_elements(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    data, places, updates = (inputs[i].dims if i < len(inputs) else None for i in (0, 1, 2))
    if data is not None and places is not None:
        _inside(node, data, places)
    if places is not None and updates is not None and not _alike(places, updates):
        raise Misfit(f"the indices of {node.op} are {show(places)}, its updates {show(updates)}: they must be alike")
    return [data]


def _alike(one: Dims, other: Dims) -> bool:
    return len(one) == len(other) and all(None in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True))


def _gather_nd(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    data, places = (inputs[i].dims if i < len(inputs) else None for i in (0, 1))
    batch, deep = node.attribute("batch_dims") or 0, places[-1] if places else None
    if data is None or not places or deep is None:
        return [None]
    if batch + deep > len(data):
        raise Misfit(f"the indices of GatherND are {show(places)}: {deep} numbers each for data {show(data)}")
    return [(*places[:-1], *data[batch + deep :])]


def _scatter_nd(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    data, places, updates = (inputs[i].dims if i < len(inputs) else None for i in (0, 1, 2))
    deep = places[-1] if places else None
    if data is not None and places and updates is not None and deep is not None:
        wanted = (*places[:-1], *data[deep:])
        if deep > len(data) or not _alike(wanted, updates):
            raise Misfit(
                f"the updates of ScatterND are {show(updates)} where its data {show(data)} and indices {show(places)} "
                f"take {show(wanted)}"
            )
    return [data]


def _pad(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims = inputs[0].dims
    for position in (1, 2):
        kind = inputs[position] if position < len(inputs) else None
        least = 2 - position  # pads are a list, the value a scalar
        if kind is not None and kind.dims is not None and not least <= len(kind.dims) <= 1:
            raise Misfit(f"input {position} of Pad is {show(kind.dims)} where a {'list' if least else 'scalar'} is due")
        if kind is not None and not least and kind.dims not in (None, (), (1,), (None,)):
            raise Misfit(f"input 2 of Pad is {show(kind.dims or ())} where a scalar is due")
    pads = _written(node, "pads", inputs, 1) or node.attribute("paddings")
    where = axes(node, inputs) if len(node.inputs) > 3 else []
    if dims is None:
        return [None]
    places = [_place(axis, len(dims)) for axis in where] if where else list(range(len(dims)))
    length = _length(inputs, 1)
    if length is not None and where is not None and length != 2 * len(places):
        raise Misfit(f"Pad of {show(dims)} has {length} pads where {2 * len(places)} are due")
    if pads is None or where is None or None in places or len(pads) != 2 * len(places):
        return [(None,) * len(dims)]
    made = list(dims)
    for i, at in enumerate(places):
        added = (dims[at or 0], pads[i], pads[i + len(places)])
        made[at or 0] = None if None in added else sum(n or 0 for n in added)
    return [tuple(made)]


def _tile(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, repeats = inputs[0].dims, inputs[1].value if len(inputs) > 1 else None
    length = _length(inputs, 1)
    if node.graph.opsets.get("", 0) < 6 or dims is None:
        return [dims and (None,) * len(dims)]
    if length is not None and length != len(dims):
        raise Misfit(f"Tile of {show(dims)} has {length} repeats, one for each axis is due")
    if repeats is None:
        return [(None,) * len(dims)]
    return [tuple(None if None in pair else pair[0] * pair[1] for pair in zip(dims, repeats, strict=True))]  # type: ignore[operator]


def _top(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, written = inputs[0].dims, node.attribute("k")
    if len(inputs) > 1 and inputs[1].dims not in (None, (1,), (None,)):
        raise Misfit(f"the K of TopK is {show(inputs[1].dims or ())} where a list of one number is due")
    at = _place(node.attribute("axis"), len(dims)) if dims is not None else None
    if dims is None or at is None:
        return [None] * count
    kept = written if isinstance(written, int) else single(inputs[1].value) if len(inputs) > 1 else None
    return [(*dims[:at], kept, *dims[at + 1 :])] * count


def _resize(node: Node, inputs: Sequence[Kind], count: int) -> Made:
    dims, modern = inputs[0].dims, node.op == "Resize" and node.graph.opsets.get("", 0) >= 11
    for position in range(1, len(inputs)):
        if inputs[position].rank not in (None, 1):
            raise Misfit(f"input {position} of {node.op} is {show(inputs[position].dims or ())} where a list is due")
    if dims is None:
        return [None]
    where = node.attribute("axes") if modern else None
    places = [_place(axis, len(dims)) for axis in where] if where else list(range(len(dims)))
    made: list[int | None] = [None if i in places else size for i, size in enumerate(dims)]
    lengths = {n for i in ((2, 3) if modern else (1,)) if (n := _length(inputs, i)) not in (None, 0)}
    if None in places:
        return [(None,) * len(dims)]
    if lengths - {len(places)}:
        raise Misfit(f"{node.op} of {show(dims)} has {min(lengths)} scales or sizes where {len(places)} are due")
    sizes = inputs[3].value if modern and len(inputs) > 3 else None
    scales = _factors(node, 2 if modern else 1)
    for i, at in enumerate(places):
        size = dims[at or 0]
        if sizes is not None and len(sizes) == len(places):
            made[at or 0] = sizes[i] if node.attribute("keep_aspect_ratio_policy") in (None, "stretch") else None
        elif scales and len(scales) == len(places) and size is not None:
            made[at or 0] = _scaled(size, scales[i])
    return [tuple(made)]


def _factors(node: Node, position: int) -> list[float]:
    value = node.input(position)
    tensor = value.tensor if value is not None else None
    return list(node.attribute("scales") or (tensor is not None and tensors.values(tensor, most=16)) or ())


def _scaled(size: int, factor: float) -> int | None:
    """floor(size * factor), None where the rounding of the factor decides."""
    made = size * factor
    if not math.isfinite(made) or (made != round(made) and abs(made - round(made)) < 1e-3):
        return None
    return math.floor(made)


STEPS: dict[str, Callable[[Node, Sequence[Kind], int], Made]] = {
    "Concat": _concat, "ConstantOfShape": _filled, "Expand": _expand, "Flatten": _flatten, "Gather": _gather,
    "GatherElements": _gather_elements, "GatherND": _gather_nd, "Pad": _pad, "RandomNormal": _by_attribute,
    "RandomUniform": _by_attribute, "Reshape": _reshape, "Resize": _resize, "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements, "ScatterND": _scatter_nd, "Slice": _slice, "Split": _split,
    "Squeeze": _squeeze, "Tile": _tile, "TopK": _top, "Transpose": _transpose, "Unsqueeze": _unsqueeze,
    "Upsample": _resize,
}  # fmt: skip
