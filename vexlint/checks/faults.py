"""One cause, one hit: places where the same is wrong, gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from vexlint.model.graph import Node
from vexlint.model.kinds import Use
from vexlint.model.model import Model, OperatorKey
from vexlint.values import Hit, Place, Severity, Verdict


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong and the way out, in the words of a hit; the rest is as `Hit` has it. Equal ones are one cause."""

    message: str
    help: str = ""
    severity: Severity | None = None
    target: str | None = None
    verdict: Verdict | None = None


def hits(found: Iterable[tuple[Fault, Place]]) -> Iterator[Hit]:
    """One hit for each fault, at the first place of it, in the order of the first places."""
    yield from grouped(Hit(place, f.message, f.help, f.target, f.verdict, f.severity) for f, place in found)


def written(model: Model, operator: OperatorKey, judge: Callable[[Node], Iterable[Hit]]) -> Iterator[Hit]:
    """The hits on an operator's nodes of a judge that looks at nothing but how a node is written: it is asked once for
    a form."""
    forms = model.forms[operator]
    for form, first in forms.items():
        if judge not in form.told:
            form.told[judge] = list(judge(first))
    if not any(form.told[judge] for form in forms):
        return
    for node in model.operators[operator]:
        found = node.form.told[judge]
        for hit in found:
            yield replace(hit, place=node.place)


def used(model: Model, judge: Callable[[Use], str | None]) -> Iterator[tuple[Node, str]]:
    """The nodes in which a judge finds a flaw, with that: each once, though a function's node has several uses.

    The judge looks at nothing but how a node is written and at the kinds of its inputs: it is asked once for all uses
    that are alike, in this file and others.
    """
    for way, use in model.ways.items():
        if judge not in way.told:
            way.told[judge] = judge(use)
    if not any(way.told[judge] for way in model.ways):
        return
    told = set[Node]()
    for use in model.uses:
        text = use.way.told[judge]
        if text is not None and use.node not in told:
            told.add(use.node)
            yield use.node, text


def grouped(found: Iterable[Hit]) -> Iterator[Hit]:
    """The hits of one place each, those that say the same as one, in the order of the first ones."""
    same: dict[tuple[object, ...], list[Hit]] = {}
    for hit in found:
        same.setdefault((hit.message, hit.help, hit.target, hit.verdict, hit.severity), []).append(hit)
    for hit, *more in same.values():
        yield replace(hit, more=tuple(h.place for h in more), count=1 + len(more))
