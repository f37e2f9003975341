"""What a file carries without need, or without saying: nothing that is computed changes by it. One line a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vexlint.checks.context import Context
from vexlint.model.graph import Graph, Node, value_place
from vexlint.model.model import Model
from vexlint.values import Hit, Place

LIMIT = (1 << 31) - 1  # bytes that one protobuf message may have


def dead_node(model: Model, context: Context) -> Iterator[Hit]:
    """VEX705: nodes whose outputs reach no output of their graph."""
    dead = [node for graph in model.graphs for node in unneeded(graph)]
    if dead:
        what = "1 node makes" if len(dead) == 1 else f"{len(dead)} nodes make"
        yield _line([n.place for n in dead], f"{what} what no output of the graph needs", "drop them")


def unneeded(graph: Graph) -> list[Node]:
    """The nodes of a graph whose outputs reach none of its outputs, in its order."""
    wanted = graph.read | set(graph.results)
    if not [node for node in graph.nodes if wanted.isdisjoint(node.outputs)]:
        return []  # a dead node's readers are dead too, and the last of them has none
    needed = {node.index for node in graph.upstream(*graph.results)}
    return [node for node in graph.nodes if node.index not in needed and node.outputs]


def unused_initializer(model: Model, context: Context) -> Iterator[Hit]:
    """VEX706: initializers that no node reads and no output gives out. Before IR version 4 every initializer had to be
    an input: ONNX Runtime refuses a file of that age with one that is neither read nor an input."""
    places = [value_place("initializer", name, graph=graph.path) for graph in model.graphs for name in unread(graph)]
    if places:
        what = "1 initializer is" if len(places) == 1 else f"{len(places)} initializers are"
        hit = _line(places, f"{what} read by no node", "the file gets smaller without")
        inputs = {entry.name for entry in model.graph.proto.input}  # of the interface: the fix leaves them
        if all(place.name in inputs for place in places):
            yield replace(hit, fix="none")
            return
        old = model.proto.ir_version < 4 and any(p.graph == "graph" and p.name not in inputs for p in places)
        refusing = [t for t in context.targets if old and t.runtime == "onnxruntime"]
        if not refusing:
            yield hit
        for target in refusing:
            text = f"{hit.message} and no input: at IR version {model.proto.ir_version} {target} refuses the file"
            yield replace(hit, message=text, severity=None, target=str(target), verdict="refuses")


def unread(graph: Graph) -> list[str]:
    """The initializers of a graph that nothing reads."""
    return [name for name in graph.initializers if name not in graph.read and name not in graph.results]


def initializer_as_input(model: Model, context: Context) -> Iterator[Hit]:
    """VEX707: weights that are inputs too, in a file of IR version 4 or later, where they need not be."""
    if model.proto.ir_version < 4:
        return  # there every initializer had to be an input
    initializers = model.graph.initializers
    names = [entry.name for entry in model.graph.proto.input if entry.name in initializers]
    if names:
        what = "1 weight is an input, too" if len(names) == 1 else f"{len(names)} weights are inputs, too"
        yield _line(
            [value_place("input", name) for name in names],
            f"{what}: a caller may replace them, so runtimes do not fold them",
            "take them out of the inputs unless they are meant to be replaced",
        )


def undeclared_shape(model: Model, context: Context) -> Iterator[Hit]:
    """VEX708: inputs or outputs of the file that do not say how many axes they have."""
    graph = model.graph
    entries = [("input", e) for e in graph.inputs.values()] + [("output", e) for e in graph.outputs.values()]
    bare = [
        (kind, entry.name)
        for kind, entry in entries
        if entry.type.WhichOneof("value") in (None, "tensor_type") and not entry.type.tensor_type.HasField("shape")
    ]
    if bare:
        names = ", ".join(name for _, name in bare[:3]) + (", …" if len(bare) > 3 else "")
        yield _line(
            [value_place("input" if kind == "input" else "output", name) for kind, name in bare],
            f"no shape is declared for {names}",
            "whoever feeds or reads it must know it from elsewhere: export with shapes, or run shape inference",
        )


def file_size(model: Model, context: Context) -> Iterator[Hit]:
    """VEX712: a file too large for one protobuf message."""
    size = model.stripped.size if model.stripped is not None else 0
    if size > LIMIT:
        yield Hit(
            Place("file"),
            f"the file has {size / (1 << 30):.1f} GiB; protobuf reads messages of less than 2 GiB",
            "save the weights as external data: onnx and most tools cannot load this file",
            data={"size": size, "limit": LIMIT},
        )


def _line(places: list[Place], message: str, way_out: str) -> Hit:
    return Hit(places[0], message, way_out, more=tuple(places[1:]), count=len(places))
