"""Chooses fixes, runs them to a fixed point, and says what of it is proven how.

A repair goes in stages, and each stage is judged against the one before: `structure` (order, names, imports) changes
nothing that is computed, which comparing the nodes proves; `numbers` (composites, frozen shapes) keeps every number,
which running both proves; `meaning` (coordinate modes) changes numbers on purpose; `suppression` puts NMS behind a
head, proven against NMS in float64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vexlint import engine
from vexlint.checks.context import Context
from vexlint.draft import Draft
from vexlint.model import native
from vexlint.model.model import Model
from vexlint.model.schemas import plain_domain
from vexlint.rulebook import Rule
from vexlint.values import Change, Finding, VexlintError

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto

CAP = 10  # rounds before rules are said to fight
STRUCTURE = ("VEX205", "VEX206", "VEX701", "VEX703")
SUPPRESSION = ("VEX501",)
FROZEN = "VEX401"
StageName = Literal["structure", "numbers", "meaning", "suppression"]
Keep = Callable[[list[Finding]], list[Finding]]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage changed, and the model after it (weights left in the source)."""

    name: StageName
    changes: tuple[Change, ...]
    model: ModelProto


def repair(
    draft: Draft, rules: Iterable[Rule], context: Context, unsafe: bool = False, keep: Keep = list
) -> list[Stage]:
    """Edits the draft by the fixes of these rules, the unsafe ones only where said, and only for the findings that
    `keep` leaves (it sets the waived ones aside). Returns the stages in order.

    Raises VexlintError where fixes undo each other, and where onnx.checker accepts the file but not what became of it.
    """
    fixing = [r for r in rules if r.fix is not None]
    stages: list[tuple[StageName, list[Rule]]] = [
        ("structure", [r for r in fixing if r.code in STRUCTURE]),
        ("numbers", [r for r in fixing if r.fix_safety == "safe"]),
        ("meaning", [r for r in fixing if unsafe and r.code not in SUPPRESSION]),
        ("suppression", [r for r in fixing if unsafe and r.code in SUPPRESSION]),
    ]
    valid = complaint(draft.proto, draft.source) == ""
    done = []
    for name, some in stages:
        changes = _fixed_point(draft, some, context, keep)
        after = type(draft.proto)()
        after.CopyFrom(draft.proto)
        done.append(Stage(name, tuple(changes), after))
        if changes and valid and (fault := complaint(after, draft.source)):
            codes = ", ".join(sorted({c.code for c in changes}))
            if FROZEN in codes:
                raise VexlintError(
                    f"frozen to these sizes the network does not fit together, give sizes it was made for: {fault}"
                )
            raise VexlintError(f"the fix of {codes} makes a file that onnx.checker refuses, please report it: {fault}")
    return done


def _fixed_point(draft: Draft, rules: list[Rule], context: Context, keep: Keep) -> list[Change]:
    """Applies the rules' fixes until none has anything left to do."""
    changes: list[Change] = []
    for _ in range(CAP):
        before = len(changes)
        for rule in rules:
            model = draft.model()
            findings = keep(engine.check(model, {rule.code: rule}, context))
            mine = [f for f in findings if f.fix != "none"]
            if mine and rule.fix is not None:
                changes += rule.fix(model, mine, context)
        if len(changes) == before:
            return changes
    worst = Counter(c.code for c in changes).most_common(3)
    raise VexlintError(f"fixes undo each other: {', '.join(code for code, _ in worst)} still change something")


def complaint(proto: ModelProto, source: Model) -> str:
    """What onnx.checker (full) says against a model, "" where it accepts it. Raises `native.Stopped`."""
    try:
        native.call("check", native.check_request(proto.SerializeToString(), source.folder))
    except native.Refused as error:
        return str(error).strip().splitlines()[0]
    return ""


def same_computation(one: ModelProto, other: ModelProto) -> bool:
    """Whether two models differ in nothing but node names, the order of nodes, and opset imports that one lacks.

    Every graph, at every depth and in functions, must have the same nodes once their names are taken away; everything
    else must be equal field by field. Imports of one domain must be of one version.
    """
    pairs = [(one, other), *zip(one.functions, other.functions, strict=False)]
    return all(_agree(*pair) for pair in pairs) and _plain(one) == _plain(other)


def _agree(one: ModelProto | FunctionProto, other: ModelProto | FunctionProto) -> bool:
    """Whether two models, or functions, mean the same versions of the domains that both import."""
    ours, theirs = ({plain_domain(o.domain): o.version for o in m.opset_import} for m in (one, other))
    return all(theirs.get(domain, version) == version for domain, version in ours.items())


def _plain(model: ModelProto) -> bytes:
    copy = type(model)()
    copy.CopyFrom(model)
    del copy.opset_import[:]
    for graph in (copy.graph, *copy.functions):
        _sort(graph)
    for function in copy.functions:
        del function.opset_import[:]
    data: bytes = copy.SerializeToString()
    return data


def _sort(graph: GraphProto | FunctionProto) -> None:
    """Takes the names of a graph's nodes away and brings the nodes into an order that depends on nothing else; where
    two of them make values of one name their order means something, and stays."""
    for node in graph.node:
        node.ClearField("name")
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                _sort(inner)
    made = [name for node in graph.node for name in node.output if name]
    if len(set(made)) < len(made):
        return
    nodes = sorted(node.SerializeToString() for node in graph.node)
    kinds = [type(node) for node in graph.node]
    del graph.node[:]
    graph.node.extend(kind.FromString(data) for kind, data in zip(kinds, nodes, strict=True))
