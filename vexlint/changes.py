"""What a schema version of an operator means differently from the one before: `rules/targets/changes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from vexlint.files import rules_folder


@dataclass(frozen=True, slots=True)
class Change:
    """One step in an operator's history, as it hits a file whose opset number was raised without converting it.

    since: the schema version that brought it. kind: "silent" the same node is valid and computes something else;
    "moved" attributes became inputs; "extended" new attributes or types. look: where it shows, "" where everywhere.
    """

    op: str
    since: int
    kind: Literal["silent", "moved", "extended"]
    what: str
    look: str = ""


@cache
def changes() -> Mapping[str, tuple[Change, ...]]:
    """Operator -> its changes, oldest first."""
    path = rules_folder() / "targets" / "changes.toml"
    found: dict[str, list[Change]] = {}
    for entry in tomllib.loads(path.read_text("utf-8"))["change"]:
        for op in entry["operators"]:
            change = Change(op, entry["since"], entry["kind"], entry["what"], entry.get("look", ""))
            found.setdefault(op, []).append(change)
    return {op: tuple(sorted(made, key=lambda c: c.since)) for op, made in found.items()}
