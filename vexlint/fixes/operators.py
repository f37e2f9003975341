"""VEX101, VEX103: custom activations replaced by the composites of standard operators that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vexlint import inline
from vexlint.checks.context import Context
from vexlint.composites import Composite, find
from vexlint.model.dtypes import element_type
from vexlint.model.graph import Graph, Node
from vexlint.model.model import Model
from vexlint.model.schemas import plain_domain
from vexlint.values import Change, Finding, Place

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto


def replace_by_composites(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """Puts standard nodes in the place of each call whose composite is known, and drops imports that nobody needs then.

    A call that is not surely the activation (an attribute of which nothing is known, an unknown element type) stays.
    """
    replaced: dict[str, dict[int, tuple[Node, Composite]]] = {}
    for place in (p for f in findings for p in (f.place, *f.more)):
        node = model.node_at(place)
        composite = find(node.domain, node.op, context.composites)
        if composite is not None:
            replaced.setdefault(place.graph, {})[node.index] = (node, composite)
    changes = []
    for graph in model.graphs:
        changes += _in_graph(graph, replaced.get(graph.path, {}), context)
    changes += _drop_imports(model, {c.place.domain for c in changes})
    return [replace(change, code=findings[0].code) for change in changes]


def with_composites(model: Model, context: Context) -> ModelProto:
    """A copy of the model in which every custom operator that a composite stands for is a function of the file.

    That is how the file computes before it is fixed, as far as anybody can run it. Raises `inline.NoComposite` where
    calls of one operator cannot share one function.
    """
    copy = type(model.proto)()
    copy.CopyFrom(model.proto)
    for (domain, op), nodes in model.operators.items():
        composite = find(domain, op, context.composites) if model.is_foreign(domain, op) else None
        if composite is None:
            continue
        made = {_function(n, composite, context).SerializeToString(deterministic=True) for n in nodes}
        if len(made) > 1:
            raise inline.NoComposite(f"calls of {domain}::{op} differ in inputs, attributes or element type")
        copy.functions.add().ParseFromString(made.pop())
        if not any(plain_domain(o.domain) == domain for o in copy.opset_import):  # only the function around it says it
            copy.opset_import.add(domain=domain, version=1)
        if not any(plain_domain(o.domain) == "" for o in copy.opset_import):
            raise inline.NoComposite("the file imports no opset of ai.onnx")
    return copy


def _function(node: Node, composite: Composite, context: Context) -> FunctionProto:
    opset = node.graph.opsets.get("", 0)
    return inline.function(composite, node.proto, opset, element_type(node.input(0)), context.runtime)


def _expand(node: Node, composite: Composite, taken: set[str], context: Context) -> list[NodeProto]:
    dtype = element_type(node.input(0))
    opset = node.graph.opsets.get("", 0)
    return inline.expand(node.proto, composite, opset, dtype, taken, context.runtime)


def _in_graph(graph: Graph, calls: dict[int, tuple[Node, Composite]], context: Context) -> list[Change]:
    taken = _names(graph)
    changes, nodes = [], []
    for node in graph.nodes:
        made = [node.proto]
        if node.index in calls:
            try:
                made = _expand(*calls[node.index], taken, context)
            except inline.NoComposite:
                pass
            else:
                after = f"{calls[node.index][1].name}: {', '.join(n.op_type for n in made if n.op_type != 'Constant')}"
                changes.append(Change("VEX101", node.place, f"{node.proto.domain}::{node.op}", after))
        nodes += [type(n).FromString(n.SerializeToString()) for n in made]
    if changes:
        del graph.proto.node[:]
        graph.proto.node.extend(nodes)
    return changes


def _names(graph: Graph) -> set[str]:
    """Every name of values and nodes that a new one in this graph must not be: its own, and those around and inside."""
    model = graph.model
    names: set[str] = set()
    for other in model.graphs:
        names |= {n.name for n in other.nodes} | other.defined | {i for n in other.nodes for i in n.inputs}
    return names


def _drop_imports(model: Model, domains: set[str]) -> list[Change]:
    """Imports of domains whose last node is gone."""
    left = {plain_domain(n.domain) for g in Model(model.proto, model.path).graphs for n in g.nodes}
    left |= {plain_domain(f.domain) for f in model.proto.functions}
    changes = []
    for index, entry in reversed(list(enumerate(model.proto.opset_import))):
        if entry.domain in domains and plain_domain(entry.domain) and plain_domain(entry.domain) not in left:
            place = Place("import", name=entry.domain, domain=entry.domain)
            changes.append(Change("VEX101", place, f"{entry.domain} {entry.version}", "dropped, no node needs it"))
            del model.proto.opset_import[index]
    return changes
