"""Mistakes in names and order."""

from __future__ import annotations

from onnx import ModelProto, NodeProto, helper

from tests.mutants.common import (
    Dice,
    graphs,
)


def duplicate_value(model: ModelProto, dice: Dice) -> bool:
    """Two makers of one value: a node's output that another node, an input or an initializer has too."""
    graph = dice.choice(list(graphs(model.graph)))
    if not graph.node:
        return False
    victim = dice.choice(graph.node)
    outputs = [name for name in victim.output if name]
    others = [name for node in graph.node if node is not victim for name in node.output if name]
    given = [v.name for v in graph.input] + [t.name for t in graph.initializer]
    if not outputs:
        return False
    way = dice.randrange(3)
    if way == 0 and others:
        victim.output[list(victim.output).index(outputs[0])] = dice.choice(others)
    elif way == 1 and given:
        graph.node.append(helper.make_node("Identity", [outputs[0]], [dice.choice(given)], name="copied"))
    else:
        graph.node.append(helper.make_node("Identity", [outputs[0]], [outputs[0]], name="copied"))
    return True


def duplicate_node_name(model: ModelProto, dice: Dice) -> bool:
    graph = dice.choice(list(graphs(model.graph)))
    if len(graph.node) < 2:
        values = [name for node in graph.node for name in node.output if name]
        if not values:
            return False
        graph.node.append(helper.make_node("Identity", [values[0]], [f"{values[0]}_again"], name="copy"))
    a, b = dice.sample(range(len(graph.node)), 2)
    graph.node[a].name = graph.node[b].name = graph.node[a].name or "node_1"
    return True


def unsorted_nodes(model: ModelProto, dice: Dice) -> bool:
    found = [graph for graph in graphs(model.graph) if len(graph.node) > 1]
    if not found:
        return False
    graph = dice.choice(found)
    order = list(graph.node)
    made = [{name for name in node.output if name} for node in order]
    linked = [(i, j) for i in range(len(order)) for j in range(i) if made[j] & set(order[i].input)]
    if not linked:
        return False
    reader, maker = dice.choice(linked)
    order.insert(maker, order.pop(reader))
    moved = [NodeProto.FromString(node.SerializeToString()) for node in order]
    del graph.node[:]
    graph.node.extend(moved)
    return True


def shadowed_name(model: ModelProto, dice: Dice) -> bool:
    """A value of a subgraph named like one around it."""
    inner = list(graphs(model.graph))[1:]
    around = [v.name for v in model.graph.input] + [t.name for t in model.graph.initializer]
    around += [name for node in model.graph.node for name in node.output]
    made = [(graph, name) for graph in inner for node in graph.node for name in node.output if name]
    if not made or not around:
        return False
    graph, name = dice.choice(made)
    other = dice.choice(around)
    for node in graph.node:
        for names in (node.input, node.output):
            for index, value in enumerate(names):
                if value == name:
                    names[index] = other
    for output in graph.output:
        output.name = other if output.name == name else output.name
    return True
