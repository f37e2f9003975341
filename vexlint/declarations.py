"""What a configuration says of operators in `[[target]]` and `[[plugin]]`, and of layouts in contracts, held against
what there is: a misspelt name must not look like a target that minds nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vexlint import rulebook, targets
from vexlint.config import Config, OwnTarget
from vexlint.files import nearest
from vexlint.model import schemas, tensors
from vexlint.model.layouts import LAYOUTS
from vexlint.rulebook import Rule
from vexlint.values import VexlintError

STANDARD = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training")
DTYPES = list(tensors.DTYPES.values())
NAMING = ("present", "ones", "positive")  # parts of a limit that are lists of attributes
Fail = Callable[[str], VexlintError]


def check(project: Config, rules: dict[str, Rule], source: object) -> None:
    """Raises VexlintError for the first entry that names what does not exist; `source` is the file they are from."""
    for number, plugin in enumerate(project.plugins, 1):
        _operator(plugin.operator, _failing(f"{source}: plugin {number}: "), standard=False)
        targets.resolve(list(plugin.targets), project.own_targets)
    for number, model in enumerate(project.models, 1):
        layout = (model.nms or {}).get("layout")
        if layout is not None and layout not in LAYOUTS:
            near = nearest(str(layout), list(LAYOUTS))
            raise VexlintError(
                f"{source}: model {number}: nms.layout = {layout!r} is none of {', '.join(LAYOUTS)}{near}"
            )
    names = [own.name for own in project.own_targets]
    for number, own in enumerate(project.own_targets, 1):
        fail = _failing(f"{source}: target {number} ({own.name}): ")
        if own.name in names[: number - 1]:
            raise fail("another target has this name")
        if targets.is_runtime(own.name):
            raise fail("this is the name of a runtime that is known: choose another one")
        _own(own, rules, fail)
        targets.resolve([own.name], project.own_targets)


def _failing(where: str) -> Fail:
    return lambda message: VexlintError(where + message)


def _own(own: OwnTarget, rules: dict[str, Rule], fail: Fail) -> None:
    for name in (*own.add, *own.remove, *own.limits):
        _operator(name, fail, standard=True)
    for name in own.plugins:
        _operator(name, fail, standard=False)
    for name, limits in own.limits.items():
        for limit in limits:
            _limit(name, limit, rules, fail)


def _operator(name: str, fail: Fail, standard: bool) -> None:
    """`standard`: a name without a domain, or with one of the standard's, has to be an operator of the standard."""
    domain, mark, op = name.rpartition("::")
    if not op or ":" in op or ":" in domain or (mark and not domain):
        raise fail(f"{name!r} is no operator: write Op, or domain::Op")
    if standard and domain in STANDARD and not schemas.versions(domain, op):
        close = schemas.nearest(domain, op)
        hint = f"; did you mean {close}?" if close else ""
        raise fail(f"{name!r} is no operator of the standard{hint} (one of another domain is written domain::Op)")


def _limit(name: str, limit: Mapping[str, Any], rules: dict[str, Rule], fail: Fail) -> None:
    """Names within a limit; its shape is for `tables.restriction`."""
    domain, _, op = name.rpartition("::")
    if "rule" in limit:
        rulebook.find(rules, str(limit["rule"]))
    for position, types in _pairs(limit, "types"):
        for kind in types if isinstance(types, list) else []:
            if kind not in DTYPES:
                near = nearest(str(kind), DTYPES)
                raise fail(f"limit of {name}: types.{position}: {kind!r} is no element type{near}")
    versions = [v for since in schemas.versions(domain, op) if (v := schemas.operator(domain, op, since)) is not None]
    if not versions:
        return
    known: dict[str, list[schemas.Attribute]] = {}
    for attribute in (a for version in versions for a in version.attributes.values()):
        known.setdefault(attribute.name, []).append(attribute)
    for attribute_name, values in _asked(limit):
        if attribute_name not in known:
            near = nearest(attribute_name, list(known))
            raise fail(f"limit of {name}: {op} has no attribute {attribute_name!r}{near}")
        allowed = {value for attribute in known[attribute_name] for value in attribute.values}
        wrong = [v for v in values if v not in allowed] if all(a.values for a in known[attribute_name]) else []
        if wrong:
            near = nearest(str(wrong[0]), sorted(map(str, allowed)))
            raise fail(f"limit of {name}: {attribute_name} of {op} is never {wrong[0]!r}{near}")


def _asked(limit: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """The attributes that a limit names, each with the values it speaks of."""
    for part in ("attribute", "only"):
        for name, values in _pairs(limit, part):
            yield name, values if isinstance(values, list) else []
    for part in NAMING:
        names = limit.get(part)
        yield from ((str(name), []) for name in (names if isinstance(names, list) else []))


def _pairs(limit: Mapping[str, Any], part: str) -> Iterator[tuple[str, Any]]:
    found = limit.get(part)
    yield from found.items() if isinstance(found, dict) else ()
