"""Where in a file a runtime's own words point: from names and numbers in a message to the nodes they mean."""

from __future__ import annotations

import re

from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.model.schemas import plain_domain
from vexlint.runtimes.base import Refusal

NUMBERED = re.compile(r"_\d+$")  # what TensorRT appends to a node's name for the layers that it makes of it
NAMELESS = "node_of_"  # what it puts before the first output of a node without a name


def nodes(model: Model, refusal: Refusal) -> list[Node]:
    """The nodes that a runtime refused, in file order; none where its words name none, or could mean several.

    An index is trusted only where the operator there is the one named: runtimes sort and fold nodes before they count.
    """
    op, name = refusal.get("op", ""), refusal.get("name", "")
    if refusal.get("every"):
        return _of_operator(model, op, refusal.get("domain")) if op else _bearing(model, name)
    index = refusal.get("index", -1)
    if 0 <= index < len(model.graph.nodes) and (there := model.graph.nodes[index]).op == op and there.name == name:
        return [there]
    for word in filter(None, (name, refusal.get("value"))):
        if found := [n for n in _bearing(model, word) if n.op == (op or n.op)]:
            return found if len(found) == 1 else []
    for word in refusal.get("words", ()):
        if len(found := _hidden(model, word)) == 1:
            return found
    named = _of_operator(model, op, None)
    return named if len(named) == 1 else []


def _of_operator(model: Model, op: str, domain: str | None) -> list[Node]:
    """Every node of an operator, of any domain where None."""
    wanted = None if domain is None else plain_domain(domain)
    return [n for (d, o), group in model.operators.items() for n in group if o == op and wanted in (None, d)]


def _hidden(model: Model, word: str) -> list[Node]:
    """The nodes that a word of a message means. A plain word is a word, even where a node bears that name, unless a
    colon makes it a heading."""
    name = word.rstrip(":.")
    if name.isnumeric() or (name.isalpha() and not word.endswith(":")):
        return []
    plain = name.removeprefix(NAMELESS)
    return next(filter(None, (_bearing(model, n) for n in (name, plain, NUMBERED.sub("", plain)))), [])


def _bearing(model: Model, word: str) -> list[Node]:
    """The nodes of this name, else the one whose output it is, at any depth."""
    every = [node for graph in model.graphs for node in graph.nodes]
    return [n for n in every if n.name == word] or [n for n in every if word in n.outputs]
