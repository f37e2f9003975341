"""A model without some of its nodes: what is left can be judged on its own."""

from __future__ import annotations

from typing import Any


def types(model: Any) -> dict[str, Any]:
    """The ValueInfoProto of every value of the main graph whose type and rank the file or shape inference knows."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    return {v.name: v for v in (*graph.value_info, *graph.output) if v.type.tensor_type.HasField("shape")}


def without(model: Any, known: dict[str, Any], gone: set[int]) -> tuple[Any, list[int], int]:
    """The ModelProto without these nodes of the main graph, the indices of those that stay, and how many had to go
    because nothing says what a node before them gives. What the nodes made becomes an input, where `known` has it.
    """
    import onnx

    kept: list[int] = []
    inputs: list[Any] = []
    lost: set[str] = set()
    for index, node in enumerate(model.graph.node):
        outputs = {name for name in node.output if name}
        if index in gone:
            inputs += [known[name] for name in node.output if name in known]
            lost |= outputs - set(known)
        elif lost & _reads(node):
            lost |= outputs
        else:
            kept.append(index)
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    nodes = [model.graph.node[i] for i in kept]
    made = {name for node in nodes for name in node.output}
    del rest.graph.node[:], rest.graph.output[:]
    rest.graph.node.extend(nodes)
    rest.graph.input.extend(inputs)
    ends = [value for value in model.graph.output if value.name in made]
    rest.graph.output.extend(ends or [known[name] for name in sorted(made) if name in known][:1])
    return rest, kept, len(model.graph.node) - len(kept) - len(gone)


def _reads(node: Any) -> set[str]:
    """The names that a node reads, and those of its subgraphs (with what they define themselves: too many is safe)."""
    inner = [a.g for a in node.attribute if a.HasField("g")] + [g for a in node.attribute for g in a.graphs]
    return set(node.input).union(
        *(_reads(n) for g in inner for n in g.node), *({o.name for o in g.output} for g in inner)
    )
