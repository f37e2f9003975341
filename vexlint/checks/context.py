"""What a check is told besides the model."""

from __future__ import annotations

from dataclasses import dataclass, field

from vexlint.config import Contract, Plugin
from vexlint.targets import Target


@dataclass(frozen=True, slots=True)
class Context:
    """The model's contract (the empty one where there is none), the targets of this run, the allowed plugins."""

    contract: Contract = field(default_factory=Contract)
    targets: tuple[Target, ...] = ()
    plugins: tuple[Plugin, ...] = ()

    def plugin(self, domain: str, op: str) -> Plugin | None:
        """The plugin entry that allows a custom operator, None where no entry names it."""
        names = (f"{domain}::{op}",) if domain else (f"ai.onnx::{op}", f"::{op}", op)
        return next((p for p in self.plugins if p.operator in names), None)
