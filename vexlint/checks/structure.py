"""The order and the names of nodes: nothing that a network computes, much that a loader minds."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.model.graph import Graph, Node
from vexlint.model.model import Model
from vexlint.values import Hit, Severity


def duplicate_node_name(model: Model, context: Context) -> Iterator[Hit]:
    """VEX701: one name on several nodes of a graph; one hit a graph, name and target that refuses it. Nodes without a
    name are none."""
    for graph in model.graphs:
        for name, nodes in duplicates(graph).items():
            text = f"{len(nodes)} nodes of one graph are named {name!r}"
            for target in context.refusing("duplicate_names"):
                yield Hit(
                    nodes[0].place,
                    f"{text}: {target} refuses to load the file" if target else text,
                    "give each node a name of its own, or none",
                    str(target) if target else None,
                    "refuses" if target else None,
                    more=tuple(n.place for n in nodes[1:]),
                    count=len(nodes),
                )


def duplicates(graph: Graph) -> dict[str, list[Node]]:
    """Name -> the nodes of this graph that bear it, where there are several."""
    names = [name for node in graph.nodes if (name := node.proto.name)]
    if len(set(names)) == len(names):
        return {}
    named: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if node.proto.name:
            named.setdefault(node.proto.name, []).append(node)
    return {name: nodes for name, nodes in named.items() if len(nodes) > 1}


def unsorted_nodes(model: Model, context: Context) -> Iterator[Hit]:
    """VEX703: a node before the one that makes its input; one hit a graph and target that refuses it."""
    for graph in model.graphs:
        if _sorted(graph):
            continue
        early = [n for n in graph.nodes if any(m.index >= n.index for m in makers(graph, n))]
        if early:
            first = next(m for m in makers(graph, early[0]) if m.index >= early[0].index)
            more = tuple(n.place for n in early[1:])
            if _ring(graph):
                message = "takes part in a ring: nodes that need each other's outputs, which no order can run"
                way_out = "no runtime loads this: find the node that reads the wrong value"
                yield Hit(
                    early[0].place, message, way_out, severity=Severity.ERROR, fix="none", more=more, count=len(early)
                )
                continue
            for target in context.refusing("unsorted"):
                yield Hit(
                    early[0].place,
                    f"stands before node[{first.index}], which makes its input: the standard wants nodes in the order "
                    "of their data",
                    "sort the nodes; onnx.checker and OpenCV refuse the file, ONNX Runtime sorts for itself",
                    str(target) if target else None,
                    "refuses" if target else None,
                    more=more,
                    count=len(early),
                )


def _ring(graph: Graph) -> bool:
    """Whether some nodes can never run because each waits for another: what is left when all that can run has run."""
    waits = {n.index: {m.index for m in makers(graph, n)} for n in graph.nodes}
    readers: dict[int, list[int]] = {}
    for index, others in waits.items():
        for other in others:
            readers.setdefault(other, []).append(index)
    ready = [index for index, others in waits.items() if not others]
    done = 0
    while ready:
        maker = ready.pop()
        done += 1
        for reader in readers.get(maker, ()):
            waits[reader].discard(maker)
            if not waits[reader]:
                ready.append(reader)
    return done < len(waits)


def _sorted(graph: Graph) -> bool:
    """Whether no node makes what it or one before it reads: one pass, where `makers` looks every input up."""
    read, captured = set[str](), graph.captured
    for node in graph.nodes:
        read.update(node.inputs)
        if captured:
            read.update(captured.get(node.index, ()))
        if not read.isdisjoint(node.outputs) and any(name in read for name in node.outputs if name):
            return False
    return True


def makers(graph: Graph, node: Node) -> list[Node]:
    """The nodes of this graph whose outputs the node reads, itself or in its subgraphs."""
    return [graph.producers[name] for name in graph.reads(node) if name in graph.producers]
