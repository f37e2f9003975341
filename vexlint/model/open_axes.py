"""Which axes of the values of a graph grow with an input axis that the file leaves open.

A forward pass over the main graph with the operators that hand axes on in a way that the file alone shows: no shape is
inferred, so anonymous axes ("?", -1) are followed as well as named ones. What else comes in between ends the trail; a
value that is not in the result may still depend on an open axis.
"""

from __future__ import annotations

from collections.abc import Callable

from vexlint.model.graph import Graph, Node, Value

Axis = tuple[str, int]  # an input and one of its axes
Open = tuple[frozenset[Axis], ...]  # for each axis of a value: the open axes of inputs that its size grows with
Known = dict[str, Open]
CLOSED: frozenset[Axis] = frozenset()

# fmt: off
SAME = (
    "Relu", "LeakyRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Mish", "Swish", "Tanh", "Elu", "Selu", "Celu", "Gelu",
    "Softplus", "Softsign", "Clip", "Exp", "Log", "Sqrt", "Abs", "Neg", "Erf", "Floor", "Ceil", "Round", "Reciprocal",
    "Identity", "Cast", "Dropout", "Softmax", "LogSoftmax", "LRN", "LpNormalization", "BatchNormalization",
    "InstanceNormalization", "LayerNormalization", "GroupNormalization", "QuantizeLinear", "DequantizeLinear",
)
# fmt: on
SPATIAL = ("Conv", "MaxPool", "AveragePool", "ConvTranspose", "LpPool")
POOLED = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
JOINING = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean")


def follow(graph: Graph) -> Known:
    """Value -> its open axes, for every value that they can be followed to; {} where no input is open."""
    known: Known = {}
    for name in graph.inputs:
        shape = graph.stated(name)
        if shape is not None and any(not isinstance(d, int) for d in shape.dims):
            dims = enumerate(shape.dims)
            known[name] = tuple(CLOSED if isinstance(d, int) else frozenset({(name, i)}) for i, d in dims)
    if not known:
        return {}
    for node in graph.nodes:
        step = STEPS.get(node.op)
        if step is None or not node.outputs or node.domain or not any(name in known for name in node.inputs):
            continue
        found = step(node, known)
        if found is not None and any(found):
            for name in node.outputs if node.op in SPLITTING else node.outputs[:1]:
                known[name] = found
    return known


def reshaped(node: Node, known: Known) -> tuple[Open | None, frozenset[Axis]]:
    """What a Reshape to constants makes of its input's axes, and the open axes that find no place in the result.

    (None, none) where the target is computed, or the input not followed.
    """
    source, target = known.get(node.inputs[0]), _target(node)
    if source is None or target is None:
        return None, CLOSED
    keep = not node.attribute("allowzero")
    kept = {i for i, size in enumerate(target) if size == 0 and keep and i < len(source)}
    left = CLOSED.union(*(axes for i, axes in enumerate(source) if i not in kept))
    result = tuple(source[i] if i in kept else left if size == -1 else CLOSED for i, size in enumerate(target))
    return result, CLOSED if -1 in target else left


def _target(node: Node) -> list[int] | None:
    written = node.attribute("shape")  # opset 1
    value = node.input(1)
    found: list[int] | None = list(written) if written is not None else value.constant if value else None
    return found


def _same(node: Node, known: Known) -> Open | None:
    return known.get(node.inputs[0])


def _spatial(node: Node, known: Known) -> Open | None:
    source = known.get(node.inputs[0])
    closed = node.attribute("output_shape")  # of a ConvTranspose
    return source if source is not None and len(source) > 2 and not source[1] and not closed else None


def _pooled(node: Node, known: Known) -> Open | None:
    source = known.get(node.inputs[0])
    return None if source is None else source[:2] + (CLOSED,) * (len(source) - 2)


def grid(node: Node, known: Known) -> tuple[int, int, frozenset[Axis]] | None:
    """Where an element-wise operator meets a constant that is longer than 1 on an open axis: (the axis, counted from
    the last one as -1, the constant's length, the open axes). They only agree where it has just that length."""
    names = [n for n in node.inputs if n]
    given = [known[n] for n in names if n in known]
    for name in names:
        if name in known:
            continue
        stated = node.graph.stated(name)
        if stated is None or all(d == 1 for d in stated.dims) or not Value(node.graph, name).is_constant:
            continue
        for back in range(1, stated.rank + 1):
            length = stated.size(-back)
            met = CLOSED.union(*(axes[-back] for axes in given if back <= len(axes)))
            if length is not None and length > 1 and met:
                return -back, length, met
    return None


def _joined(node: Node, known: Known) -> Open | None:
    """Broadcasting: axes are aligned from the last one. What is of unknown rank, or more, ends the trail."""
    given = [axes for name in node.inputs if (axes := known.get(name)) is not None]
    if len(given) < len(node.inputs):
        others = [node.graph.stated(name) for name in node.inputs if name not in known]
        rank = max(map(len, given))
        if any(stated is None or stated.rank > rank for stated in others) or grid(node, known) is not None:
            return None
    if all(axes == given[0] for axes in given):
        return given[0]
    rank = max(map(len, given))
    padded = [(CLOSED,) * (rank - len(axes)) + axes for axes in given]
    return tuple(CLOSED.union(*column) for column in zip(*padded, strict=True))


def _concatenated(node: Node, known: Known) -> Open | None:
    given = [known[n] for n in node.inputs if n in known]
    return tuple(CLOSED.union(*c) for c in zip(*given, strict=True)) if len({*map(len, given)}) == 1 else None


def _transposed(node: Node, known: Known) -> Open | None:
    source = known.get(node.inputs[0])
    if source is None:
        return None
    order = node.attribute("perm") or range(len(source) - 1, -1, -1)
    return tuple(source[i] for i in order) if sorted(order) == list(range(len(source))) else None


def _reshaped(node: Node, known: Known) -> Open | None:
    result, baked = reshaped(node, known)
    return None if baked else result


def _flattened(node: Node, known: Known) -> Open | None:
    source, axis = known.get(node.inputs[0]), node.attribute("axis")
    if source is None or axis is None:
        return None
    return CLOSED.union(*source[:axis]), CLOSED.union(*source[axis:])


def _split(node: Node, known: Known) -> Open | None:
    source, axis = known.get(node.inputs[0]), node.attribute("axis")
    if source is None or axis is None or not -len(source) <= axis < len(source):
        return None
    return None if source[axis] else source


def _resized(node: Node, known: Known) -> Open | None:
    """With factors a Resize hands its axes on; with lengths it may close them."""
    source = known.get(node.inputs[0])
    factors = node.input(2 if node.graph.opsets.get("", 0) >= 11 and node.op == "Resize" else 1)
    constant = (factors.constant if factors else None) or node.attribute("scales")
    return source if source is not None and constant else None


Step = Callable[[Node, Known], Open | None]
STEPS: dict[str, Step] = {
    **dict.fromkeys(SAME, _same),
    **dict.fromkeys(SPATIAL, _spatial),
    **dict.fromkeys(POOLED, _pooled),
    **dict.fromkeys(JOINING, _joined),
    "Concat": _concatenated,
    "Transpose": _transposed,
    "Reshape": _reshaped,
    "Flatten": _flattened,
    "Split": _split,
    "Resize": _resized,
    "Upsample": _resized,
}
SPLITTING = ("Split",)
