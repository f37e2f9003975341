"""Names of values: each is made once, somewhere, and hides no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.files import nearest
from vexlint.model.graph import Graph, value_place
from vexlint.model.model import Model
from vexlint.values import Hit, Place, Severity


def duplicate_value(model: Model, context: Context) -> Iterator[Hit]:
    """VEX702: one name for two values of a graph; one hit a graph and name."""
    for graph in model.graphs:
        inputs = list(graph.proto.input) if graph.is_function else [entry.name for entry in graph.proto.input]
        made = [name for node in graph.nodes for name in node.outputs if name]
        entries = set(inputs) | graph.initializers.keys()
        once = len(graph.producers) == len(made) and len(set(inputs)) == len(inputs)
        if once and entries.isdisjoint(graph.producers):
            yield from _twice_an_initializer(graph)
            continue
        for name, count in Counter(made).items():
            if count > 1 or name in entries:
                places = [n.place for n in graph.nodes for o in n.outputs if o == name]
                what = "also an input or initializer of the graph" if name in entries else "made more than once"
                yield Hit(
                    places[0 if name in entries else 1],
                    f"{name!r} is {what}: a reader cannot know which one is meant",
                    "give each value a name of its own; runtimes refuse the file",
                    more=tuple(places[1:] if name in entries else places[:1] + places[2:]),
                    count=len(places),
                )
        for name, count in Counter(inputs).items():
            if count > 1:
                yield Hit(
                    value_place("input", name, graph=graph.path),
                    f"{count} inputs are named {name!r}",
                    "give each input a name of its own; runtimes refuse the file",
                )


def _twice_an_initializer(graph: Graph) -> Iterator[Hit]:
    if graph.is_function or len(graph.initializers) == len(graph.proto.initializer):
        return
    for name, count in Counter(t.name for t in graph.proto.initializer).items():
        if count > 1:
            yield Hit(
                value_place("initializer", name, graph=graph.path),
                f"{count} initializers are named {name!r}: which one counts is the reader's choice",
                "keep one; onnx.checker refuses the file, ONNX Runtime takes the last",
                severity=Severity.WARNING,
            )


def shadowed_name(model: Model, context: Context) -> Iterator[Hit]:
    """VEX704: a node of a subgraph makes a value whose name the graph around it already has; one hit a subgraph and
    target that refuses it.

    Inputs and initializers of a subgraph may repeat an outer name, and so may values that the outer graph makes later:
    the checker and ONNX Runtime read such files.
    """
    for graph in model.graphs:
        if graph.owner is None:
            continue
        hidden = [(node, name) for node in graph.nodes for name in node.outputs if name and _outside(graph, name)]
        if hidden:
            node, name = hidden[0]
            text = f"makes {name!r}, a name that the graph around it already has"
            for target in context.refusing("shadowed"):
                yield Hit(
                    node.place,
                    f"{text}: {target} refuses the file" if target else text,
                    "rename the value inside the subgraph",
                    str(target) if target else None,
                    "refuses" if target else None,
                    more=tuple(node.place for node, _ in hidden[1:]),
                    count=len(hidden),
                )


def _outside(graph: Graph, name: str) -> bool:
    """Whether a graph around this one has a value of that name before it comes to this one."""
    while graph.owner is not None and graph.parent is not None:
        owner, graph = graph.owner, graph.parent
        maker = graph.producers.get(name)
        if (name in graph.defined and maker is None) or (maker is not None and maker.index < owner.index):
            return True
    return False


def dangling_input(model: Model, context: Context) -> Iterator[Hit]:
    """VEX709: a value that nothing makes, read by a node or given out by a graph; one hit a graph and name."""
    for graph in model.graphs:
        missing = {name for name in graph.read - graph.defined if not _around(graph, name)}
        for name in sorted(missing):
            nodes = [node for node in graph.nodes if name in node.inputs]
            if nodes:  # else a subgraph reads it: the finding is there
                yield _nothing_makes(graph, name, [node.place for node in nodes], "reads")
        for name in graph.results:
            if name and name not in graph.defined:
                place = value_place("output", name, graph=graph.path)
                if _around(graph, name):
                    yield Hit(
                        place,
                        f"output {name!r} of a subgraph is a value of the graph around it",
                        "put an Identity between them: onnx.checker and ONNX Runtime refuse the file",
                    )
                else:
                    yield _nothing_makes(graph, name, [place], "gives out")


def _nothing_makes(graph: Graph, name: str, places: list[Place], verb: str) -> Hit:
    close = nearest(name, sorted(graph.defined))
    return Hit(
        places[0],
        f"{verb} {name!r}, which is no input, no initializer and no node's output{close}",
        "no runtime loads this: correct the name, or put back what was taken out",
        data={"value": name},
        more=tuple(places[1:]),
        count=len(places),
    )


def _around(graph: Graph, name: str) -> bool:
    outer = graph.parent
    while outer is not None and name not in outer.defined:
        outer = outer.parent
    return outer is not None
