"""Where in a file a runtime's own words point: from names and numbers in a message to the nodes they mean."""

from __future__ import annotations

import re

from vexlint.model.model import Model, Node
from vexlint.model.schemas import plain_domain
from vexlint.runtimes.base import Refusal

GENERATED = re.compile(r"^node_of_(.+?)(?:_\d+)?$")  # TensorRT's name for a node without one: of its first output


def nodes(model: Model, refusal: Refusal) -> list[Node]:
    """The nodes that a runtime refused, in file order; none where its words name none, or could mean several.

    An index is trusted only where the operator there is the one named: runtimes sort and fold nodes before they count.
    """
    op = refusal.get("op", "")
    if refusal.get("every"):
        domain = refusal.get("domain")
        return [n for (d, o), found in model.operators.items() for n in found if o == op and _same(domain, d)]
    index = refusal.get("index", -1)
    if 0 <= index < len(model.graph.nodes):
        there = model.graph.nodes[index]
        if there.op == op and there.name == refusal.get("name", ""):
            return [there]
    for word in filter(None, (refusal.get("name"), refusal.get("value"))):
        if found := [n for n in _bearing(model, word) if n.op == (op or n.op)]:
            return found if len(found) == 1 else []
    for word in refusal.get("words", ()):
        plain = GENERATED.match(word)
        for candidate in (word, word.removeprefix("node_of_"), plain[1] if plain else ""):
            if candidate and len(found := _bearing(model, candidate)) == 1:
                return found
    named = [n for (_, o), group in model.operators.items() for n in group if o == op]
    return named if len(named) == 1 else []


def _same(wanted: str | None, domain: str) -> bool:
    return wanted is None or plain_domain(wanted) == domain


def _bearing(model: Model, word: str) -> list[Node]:
    """The nodes of this name, else the one whose output it is, at any depth."""
    every = [node for graph in model.graphs for node in graph.nodes]
    return [n for n in every if n.name == word] or [n for n in every if word in n.proto.output]
