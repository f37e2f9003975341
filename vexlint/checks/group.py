"""One cause, one finding: hits that say the same of the same operator become one, with the other places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vexlint.values import Hit


def grouped(hits: Iterable[Hit]) -> Iterator[Hit]:
    """The hits, those with one operator and one message as one, in the order of the first ones."""
    found: dict[tuple[str, str, str], list[Hit]] = {}
    for hit in hits:
        found.setdefault((hit.place.domain, hit.place.op, hit.message), []).append(hit)
    for same in found.values():
        yield replace(same[0], more=tuple(hit.place for hit in same[1:]), count=len(same))
