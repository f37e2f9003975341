"""Operators and functions that only some runtimes take: those of a runtime's own domain, those that a parser takes for
standard ones, and a file's own functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.model import schemas
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.tables import Target
from vexlint.values import Hit, Severity

if TYPE_CHECKING:
    from vexlint.composites import Composite

# Domains of operators that a runtime writes for itself, and whose they are
OWNERS = {
    "com.microsoft": "ONNX Runtime",
    "com.microsoft.nchwc": "ONNX Runtime",
    "org.openvinotoolkit": "OpenVINO",
}


def composite_of(domain: str, op: str, context: Context) -> Composite | None:
    """What stands for an operator."""
    from vexlint.composites import find  # few files have operators outside the standard

    return find(domain, op, context.composites)


def is_runtimes_own(domain: str, op: str) -> bool:
    """Whether an operator is one that a runtime has for itself: of its domain and, where its list is known, on it."""
    return domain in OWNERS and (domain == "org.openvinotoolkit" or bool(schemas.contrib(domain, op)))


def fused_node(model: Model, context: Context) -> Iterator[Hit]:
    """VEX103: an operator of a runtime's own; one hit a (domain, operator) and target that does not run it, or one for
    all where no target is named."""
    for (domain, op), nodes in model.operators.items():
        if domain not in OWNERS or not model.is_foreign(domain, op) or not is_runtimes_own(domain, op):
            continue
        plugin = context.plugin(domain, op)
        if plugin is not None and not plugin.targets:
            continue
        composite = composite_of(domain, op, context)
        way_out = "ship the file from before the optimisation: with ONNX Runtime, save no optimized_model_filepath"
        if OWNERS[domain] != "ONNX Runtime":
            way_out = f"it runs on {OWNERS[domain]} only: export from the framework"
        if composite is not None:
            way_out = f"its composite of standard operators is {composite.summary}"
        text = f"{domain}::{op} is an operator of {OWNERS[domain]}'s own"
        about = Hit(
            nodes[0].place,
            f"{text}, written by its optimiser or a tool of its: other runtimes refuse it",
            way_out,
            fix="safe" if composite else "none",
            more=tuple(n.place for n in nodes[1:]),
            count=len(nodes),
        )
        named = [t for t in context.targets if t.named]
        if not named:
            yield about
        for target in named:
            if _refuses(target, domain, op) and not context.covered(domain, op, target):
                lacking = f"{text}: {target} does not have it"
                yield replace(about, message=lacking, target=str(target), verdict="refuses")


def _refuses(target: Target, domain: str, op: str) -> bool:
    """Whether a target does not run an operator outside the standard, as far as its table tells. Where it leaves what
    it lacks to ONNX Runtime's CPU, that has it."""
    if target.runtime == "onnx" or target.lacking == "falls-back" or f"{domain}::{op}" in target.plugins:
        return False
    return not target.takes(domain, op) and not taken_for_standard(target, domain, op)


def taken_for_standard(target: Target, domain: str, op: str) -> bool:
    """Whether a target looks at the operator's name alone and has the standard one of that name."""
    if not target.ignores_domain or not domain or not schemas.versions("", op):
        return False
    entry = target.operator("", op)
    return entry is not None and (entry.runs is None or bool(entry.runs or entry.partial))


def lookalike(model: Model, context: Context) -> Iterator[Hit]:
    """VEX105: an operator of a foreign domain that every named runtime takes for the standard one of its name; one hit
    a (domain, operator) and target. Where one of them does not, that it is foreign is what matters: VEX101."""
    for (domain, op), nodes in model.operators.items():
        for target in lookalikes(model, domain, op, context):
            yield Hit(
                nodes[0].place,
                f"{target} looks at the name alone: it takes {domain}::{op} for the standard {op}",
                f"if it is the standard {op}, export it as that; if it is not, {target.runtime} computes something "
                "else without a word: give it a name of its own",
                str(target),
                "differs",
                severity=Severity.WARNING,
                more=tuple(n.place for n in nodes[1:]),
                count=len(nodes),
            )


def lookalikes(model: Model, domain: str, op: str, context: Context) -> list[Target]:
    """The named runtimes that take a foreign operator for the standard one, [] where one of them does not."""
    if not domain or not model.is_foreign(domain, op) or context.plugin(domain, op) is not None:
        return []
    named = [t for t in context.targets if t.named and t.runtime != "onnx"]
    if domain in OWNERS:  # VEX103 speaks for the others
        return [t for t in named if taken_for_standard(t, domain, op) and not t.takes(domain, op)]
    if composite_of(domain, op, context) is not None or not all(taken_for_standard(t, domain, op) for t in named):
        return []
    return named


def local_function(model: Model, context: Context) -> Iterator[Hit]:
    """VEX109: calls of the file's own functions where a target has none; one hit a target."""
    if not model.functions:
        return
    for target in context.targets:
        if target.functions is not False:
            continue
        calls = {
            key: model.operators[key]
            for key in model.functions
            if key in model.operators and not target.takes(*key) and not taken_for_standard(target, *key)
        }
        nodes: list[Node] = [n for called in calls.values() for n in called]
        if nodes:
            names = ", ".join([op for _, op in calls][:3]) + (", …" if len(calls) > 3 else "")
            yield Hit(
                nodes[0].place,
                f"{target} runs no functions of a file's own; this one calls {names}",
                "inline them before the deployment: onnx.inliner.inline_local_functions (where a call leaves an "
                "attribute to its default, write it first: the inliner forgets defaults)",
                str(target),
                "refuses",
                more=tuple(n.place for n in nodes[1:]),
                count=len(nodes),
            )
