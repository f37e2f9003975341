"""How detectors lay boxes and scores out before suppression: one line of `LAYOUTS` each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Layout:
    """`outputs` is 1 for a head, 2 for boxes and scores apart; `places` the axis of the places in a head; `before` the
    rows before the class scores, 4 box numbers and an objectness where there is one. A score is that of its class, its
    product with the objectness, or the objectness of the one class. `what` names the rows of a head."""

    name: str
    outputs: int
    places: int
    before: int
    score: Literal["class", "product", "objectness"]
    centres: bool
    normalised: bool
    text: str
    what: str = ""

    @property
    def rows(self) -> int:
        """The axis of box and scores in a head."""
        return 3 - self.places


LAYOUTS = {
    entry.name: entry
    for entry in (
        Layout("v8", 1, 2, 4, "class", True, False, "[B, 4+C, N], centre boxes in px, scores", "4 box rows"),
        Layout("v5", 1, 1, 5, "product", True, False, "[B, N, 5+C], centre boxes in px, objectness, scores",
               "4 box columns, objectness"),
        Layout("v7", 1, 1, 5, "objectness", True, False, "[B, N, 6], centre boxes in px, objectness, one class"),
        Layout("corners", 2, 1, 0, "class", False, False, "boxes [B, N, 4] x1 y1 x2 y2 in px and scores apart"),
        Layout("centres", 2, 1, 0, "class", True, False, "boxes [B, N, 4] centre, size in px and scores apart"),
        Layout("corners01", 2, 1, 0, "class", False, True, "boxes [B, N, 4] x1 y1 x2 y2 in 0..1 and scores apart"),
        Layout("centres01", 2, 1, 0, "class", True, True, "boxes [B, N, 4] centre, size in 0..1 and scores apart"),
    )
}  # fmt: skip
APART = [name for name, entry in LAYOUTS.items() if entry.outputs == 2]
RECOGNISED = (LAYOUTS["v8"], LAYOUTS["v5"])  # by structure; the others want a word of the user's
