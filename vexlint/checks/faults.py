"""One cause, one hit: places where the same is wrong, gathered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
    places: dict[Fault, list[Place]] = {}
    for fault, place in found:
        places.setdefault(fault, []).append(place)
    for fault, (first, *more) in places.items():
        yield Hit(
            first,
            fault.message,
            fault.help,
            fault.target,
            fault.verdict,
            fault.severity,
            more=tuple(more),
            count=1 + len(more),
        )
