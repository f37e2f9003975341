"""The order and the names of nodes: nothing that a network computes, much that a loader minds."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.model.model import Graph, Model, Node
from vexlint.values import Hit


def duplicate_node_name(model: Model, context: Context) -> Iterator[Hit]:
    """VEX701: one name on several nodes of a graph; one hit a graph and name. Nodes without a name are none."""
    target = next((str(t) for t in context.targets if t.runtime == "onnxruntime"), None)
    for graph in model.graphs:
        for name, nodes in duplicates(graph).items():
            yield Hit(
                nodes[0].place,
                f"{len(nodes)} nodes of one graph are named {name!r}"
                + (f": {target} refuses to load the file" if target else ""),
                "give each node a name of its own, or none",
                target,
                "refuses" if target else None,
                more=tuple(n.place for n in nodes[1:]),
                count=len(nodes),
            )


def duplicates(graph: Graph) -> dict[str, list[Node]]:
    """Name -> the nodes of this graph that bear it, where there are several."""
    named: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if node.proto.name:
            named.setdefault(node.proto.name, []).append(node)
    return {name: nodes for name, nodes in named.items() if len(nodes) > 1}


def unsorted_nodes(model: Model, context: Context) -> Iterator[Hit]:
    """VEX703: a node before the one that makes its input; one hit a graph."""
    target = next((str(t) for t in context.targets if t.runtime == "onnx"), None)
    for graph in model.graphs:
        early = [n for n in graph.nodes if any(m.index >= n.index for m in makers(graph, n))]
        if early:
            first = next(m for m in makers(graph, early[0]) if m.index >= early[0].index)
            yield Hit(
                early[0].place,
                f"stands before node[{first.index}], which makes its input: the standard wants nodes in the order of "
                "their data",
                "sort the nodes; onnx.checker and OpenCV refuse the file, ONNX Runtime sorts for itself",
                target,
                "refuses" if target else None,
                more=tuple(n.place for n in early[1:]),
                count=len(early),
            )


def makers(graph: Graph, node: Node) -> list[Node]:
    """The nodes of this graph whose outputs the node reads, itself or in its subgraphs."""
    return [graph.producers[name] for name in graph.reads(node) if name in graph.producers]
