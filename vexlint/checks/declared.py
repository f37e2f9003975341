"""Declared shapes and element types, held against what the nodes make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.checks.types import plain
from vexlint.model.graph import value_place
from vexlint.model.kinds import Kind, type_text
from vexlint.model.model import Model
from vexlint.model.shapes import Shape, declared_shape
from vexlint.values import Hit, Place, Severity

if TYPE_CHECKING:
    from onnx import ValueInfoProto

AGAIN = "export again, or let ONNX infer shapes anew; a tool changed the network and left the declaration"


def contradiction(model: Model, context: Context) -> Iterator[Hit]:
    """VEX406: declarations that the nodes contradict; one hit an output, and one for all values inside.

    Symbols and unknown sizes contradict nothing. What the walk over the nodes does not know, inference over the whole
    file may: it waits for a deep check.
    """
    target = next((str(t) for t in context.targets if t.runtime == "onnxruntime"), None)
    derived = model.derived if context.deep else {}
    values, makers, outputs = model.flow.values, model.graph.producers, model.graph.outputs
    inside: dict[str, list[Hit]] = {}
    agreed = set[tuple[bytes, int, Shape | None]]()  # files of many nodes declare few types, and make few kinds
    for name, entry in model.graph.declared.items():
        maker, kind = makers.get(name), values.get(name)
        if maker is None or kind is None:
            continue
        made = derived.get(("graph", name))
        if (key := (entry.type.SerializeToString(), id(kind), made)) in agreed:
            continue
        place = value_place("output", name) if name in outputs else maker.place
        found = list(_held(entry, kind, made, place, target))
        if not found:
            agreed.add(key)
        for hit in found:
            if name in outputs:
                yield hit
            else:
                inside.setdefault(hit.verdict or "", []).append(hit)
    for first, *more in inside.values():
        yield replace(first, more=tuple(h.place for h in more), count=1 + len(more))


def _held(entry: ValueInfoProto, kind: Kind, made: Shape | None, place: Place, target: str | None) -> Iterator[Hit]:
    """What one declaration says against what the walk, and where that has no number, inference made."""
    said = type_text(entry.type)
    real = kind.type or (f"tensor({made.dtype})" if made is not None else "")
    if said and real and said != real:
        text = f"declared {plain(said)}, but the nodes make {plain(real)}"
        text += f": {target} refuses to load the file" if target else ""
        yield Hit(place, text, AGAIN, target, "refuses" if target else None, Severity.ERROR)
    dims = kind.dims if made is None or (kind.dims is not None and None not in kind.dims) else made.dims
    stated = declared_shape(entry)
    if dims is not None and stated is not None and _differs(stated, shape := Shape("", dims)):
        yield Hit(place, f"declared {stated}, but the nodes make {shape}", AGAIN)


def _differs(one: Shape, other: Shape) -> bool:
    if one.rank != other.rank:
        return True
    return any(one.size(i) not in (None, other.size(i)) and other.size(i) is not None for i in range(one.rank))
