"""The opset imports of a file: against the contract, against its nodes, against what targets read."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.model import schemas
from vexlint.model.model import Model
from vexlint.values import Hit, Place, Severity


def not_contract(model: Model, context: Context) -> Iterator[Hit]:
    """VEX204: the file's ai.onnx opset is not the contract's."""
    wanted, opset = context.contract.opset, model.opsets.get("")
    if wanted is not None and opset is not None and opset != wanted:
        yield Hit(
            _place(""),
            f"opset {opset} where the contract says {wanted}",
            f"export again with opset_version={wanted}; never change the number alone, operators changed their meaning "
            "between opsets",
            contract=True,
            data={"opset": opset, "contract": wanted},
        )


def missing_import(model: Model, context: Context) -> Iterator[Hit]:
    """VEX205: a domain whose operators or functions are used without an import; one hit a domain."""
    users: dict[str, list[Place]] = {}
    for graph in model.graphs:
        for node in graph.nodes:
            if node.domain not in graph.opsets:
                users.setdefault(node.domain, []).append(node.place)
    target = next((str(t) for t in context.targets if t.runtime == "onnx"), None)
    bare = not model.opsets and model.proto.ir_version >= 3  # no import at all: nobody can guess
    for domain, places in users.items():
        yield Hit(
            places[0],
            f"{domain or 'ai.onnx'} is used but the file imports no opset of it",
            f"add an opset_import for it{_at_least(domain)}; onnx.checker refuses the file, "
            + ("as every runtime does" if bare else "ONNX Runtime guesses"),
            target,
            "refuses" if target else None,
            severity=Severity.ERROR if bare else None,
            more=tuple(places[1:]),
            count=len(places),
        )


def _at_least(domain: str) -> str:
    newest = schemas.newest_opset(domain)
    return f" (its newest is {newest})" if newest else ""


def unused_import(model: Model, context: Context) -> Iterator[Hit]:
    """VEX206: an import that no node needs and whose version a target refuses; one hit a domain and target."""
    used = {domain for domain, _ in model.operators} | {domain for domain, _ in model.functions}
    for domain, version in model.opsets.items():
        if domain in used:
            continue
        for target in context.targets:
            limit = target.opsets.get(domain)
            if limit is not None and limit.max is not None and limit.basis == "enforced" and version > limit.max:
                yield Hit(
                    _place(domain),
                    f"{target} reads {domain or 'ai.onnx'} up to {limit.max} and refuses this import of {version}, "
                    "which no node needs",
                    "drop the import",
                    str(target),
                    "refuses",
                    data={"version": version, "limit": limit.max},
                )


def _place(domain: str) -> Place:
    return Place("import", name=domain or "ai.onnx", domain=domain)
