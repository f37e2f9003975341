"""Fixes of order, names and imports. Nothing that is computed changes, and their proof says just that: see
`fixer.same_computation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vexlint.checks.context import Context
from vexlint.checks.leftovers import unneeded, unread
from vexlint.checks.structure import duplicates, makers
from vexlint.model import schemas
from vexlint.model.graph import Graph, value_place
from vexlint.model.model import Model
from vexlint.model.schemas import plain_domain
from vexlint.values import Change, Finding, Place


def unique_names(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """VEX701: every node but the first of a name gets `name_1`, `name_2`, … that no node has yet."""
    changes = []
    for graph in model.graphs:
        taken = {n.name for n in graph.nodes}
        for name, nodes in duplicates(graph).items():
            for node in nodes[1:]:
                place = node.place
                node.proto.name = free_name(name, taken)
                taken.add(node.name)
                changes.append(Change("VEX701", place, f"name {name}", f"name {node.name}"))
    return changes


def free_name(name: str, taken: set[str]) -> str:
    """`name_1`, or the first number that nobody has."""
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def sort_nodes(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """VEX703: nodes in the order of their data, the given order kept wherever it may be."""
    changes = []
    for graph in model.graphs:
        order = _sorted(graph)
        if order != sorted(order):
            moved = next(i for i, at in enumerate(order) if i != at)
            place = graph.nodes[moved].place
            nodes = [graph.nodes[i].proto for i in order]
            copies = [type(n).FromString(n.SerializeToString()) for n in nodes]
            del graph.proto.node[:]
            graph.proto.node.extend(copies)
            changes.append(Change("VEX703", place, f"node order of {graph.path}", "sorted by data"))
    return changes


def _sorted(graph: Graph) -> list[int]:
    """Node indices, each after the makers of what it reads; a cycle keeps the given order (no order is right)."""
    order: list[int] = []
    state: dict[int, bool] = {}  # index -> whether it is placed
    for node in graph.nodes:
        waiting = [node]
        while waiting:
            top = waiting[-1]
            if top.index in state:
                waiting.pop()
                if not state[top.index]:
                    state[top.index] = True
                    order.append(top.index)
                continue
            state[top.index] = False
            waiting += [m for m in reversed(makers(graph, top)) if m.index not in state]
    return order


def add_imports(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """VEX205: an import for each domain that is used without one, at the version that the standard pairs with the
    file's own opset, else 1."""
    changes = []
    for finding in findings:
        domain = plain_domain(finding.place.domain)
        graph = next(g for g in model.graphs if g.path == finding.place.graph)
        version = _version(domain, graph)
        owner = graph.proto if graph.is_function else model.proto
        if version is None or any(plain_domain(o.domain) == domain for o in owner.opset_import):
            continue
        owner.opset_import.add(domain=domain, version=version)
        place = Place("import", name=domain or "ai.onnx", domain=domain)
        changes.append(Change("VEX205", place, "not imported", f"{domain or 'ai.onnx'} {version}"))
    return changes


def _version(domain: str, graph: Graph) -> int | None:
    """None where nobody can know: the graph's imports are none at all, or lack the default domain."""
    opset = graph.opsets.get("")
    if not domain or opset is None:
        return None
    return schemas.paired_opset(domain, opset) or 1


def drop_imports(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """VEX206: the imports that no node needs and that stop a target."""
    changes = []
    for domain in dict.fromkeys(plain_domain(f.place.domain) for f in findings):
        for index, entry in reversed(list(enumerate(model.proto.opset_import))):
            if plain_domain(entry.domain) == domain:
                place = Place("import", name=domain or "ai.onnx", domain=domain)
                changes.append(Change("VEX206", place, f"{domain or 'ai.onnx'} {entry.version}", "dropped"))
                del model.proto.opset_import[index]
    return changes


def drop_dead_nodes(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """VEX705: the nodes that no output needs, with what the file declares of their values."""
    changes = []
    for graph in model.graphs:
        dead = unneeded(graph)
        gone = {name for node in dead for name in node.outputs}
        changes += [Change("VEX705", node.place, f"{node.op} that no output needs", "dropped") for node in dead]
        for node in reversed(dead):
            del graph.proto.node[node.index]
        _drop(graph.proto.value_info, gone)
    return changes


def drop_unread(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """VEX706: the initializers that nothing reads; one that is an input, too, stays: it belongs to the interface."""
    changes = []
    for graph in model.graphs:
        entries = {entry.name for entry in graph.proto.input} if not graph.is_function else set()
        names = set(unread(graph)) - entries
        changes += [
            Change("VEX706", value_place("initializer", name, graph=graph.path), "read by no node", "dropped")
            for name in sorted(names)
        ]
        if names:
            _drop(graph.proto.initializer, names)
            _drop(graph.proto.value_info, names)
    return changes


def _drop(entries: Any, names: set[str]) -> None:
    for index in reversed(range(len(entries))):
        if entries[index].name in names:
            del entries[index]
