"""What a check is told besides the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vexlint.config import Contract, Plugin
from vexlint.tables import Target
from vexlint.targets import covers


@dataclass(frozen=True, slots=True)
class Context:
    """The model's contract (the empty one where there is none), the targets of this run, the allowed plugins, and the
    private operators that a person said to be known activations ("domain::Op" -> composite). `deep` says whether this
    check may look where that costs: read weights, start shape inference for a file that would do without."""

    contract: Contract = field(default_factory=Contract)
    targets: tuple[Target, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    composites: Mapping[str, str] = field(default_factory=dict)
    deep: bool = True

    @property
    def runtime(self) -> str:
        """The runtime that the file is for: the first one named, "" where none is."""
        return next((t.runtime for t in self.targets if t.named and t.runtime != "onnx"), "")

    @property
    def lenient(self) -> bool:
        """Whether all named targets read files that the standard does not allow: none of them is ONNX Runtime or the
        standard itself. False where none is named."""
        named = [t.runtime for t in self.targets if t.named]
        return bool(named) and not {"onnx", "onnxruntime"} & set(named)

    def refusing(self, fact: str) -> list[Target | None]:
        """The targets whose tables say "refuses" of a fact, runtimes before the standard itself; [None] where there are
        none, for then a finding is about no target."""
        said = [t for t in self.targets if getattr(t, fact) == "refuses"]
        return [*([t for t in said if t.runtime != "onnx"] or said)] or [None]

    def plugin(self, domain: str, op: str) -> Plugin | None:
        """The plugin entry that allows a custom operator, None where no entry names it."""
        names = (f"{domain}::{op}",) if domain else (f"ai.onnx::{op}", f"::{op}", op)
        return next((p for p in self.plugins if p.operator in names), None)

    def covered(self, domain: str, op: str, target: Target) -> bool:
        """Whether an allowed plugin brings a custom operator to this target, or the target says that it runs it."""
        if f"{domain}::{op}" in target.plugins:
            return True
        plugin = self.plugin(domain, op)
        return plugin is not None and (not plugin.targets or any(covers(name, target) for name in plugin.targets))
