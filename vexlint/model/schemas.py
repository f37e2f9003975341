"""The ONNX standard's operators: which version of an operator an opset means, and what that version takes.

The table comes from onnx's own schemas (`data/make_operators.py` makes it), so that a check need not import onnx. It is
read when first asked for, in about 3 ms. A domain is written as in a file; "" and "ai.onnx" are the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

CONTRIB = "com.microsoft"  # the domain of ONNX Runtime's own operators, and how its others begin

Option = Literal["single", "optional", "variadic"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operator.

    `type` is a name of AttributeProto.AttributeType, `default` the value that holds where the attribute is absent (None
    where there is none; lists are tuples). `values` is the closed set a value must be from, () where it is open; of a
    list every element must be.
    """

    name: str
    type: str
    required: bool
    default: Any
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Formal:
    """An input or output as the schema declares it.

    `type_var` names the type variable that ties it to others, "" where its type is fixed. A variadic one that is not
    `homogeneous` may mix types.
    """

    name: str
    types: tuple[str, ...]
    type_var: str
    option: Option
    homogeneous: bool = True


@dataclass(frozen=True, slots=True)
class Operator:
    """One version of an operator. `is_function` tells that the standard defines it by other operators."""

    domain: str
    name: str
    since: int
    deprecated: bool
    attributes: Mapping[str, Attribute]
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    is_function: bool


def element_name(kind: str) -> str:
    """ "tensor(int64)" as the schemas write it -> "int64"; "" for what is no tensor, or unknown."""
    return kind.removeprefix("tensor(").removesuffix(")") if kind.startswith("tensor(") else ""


def plain_domain(domain: str) -> str:
    """ "ai.onnx" and "" are the same domain."""
    return "" if domain == "ai.onnx" else domain


def versions(domain: str, op: str) -> tuple[int, ...]:
    """The opsets at which the standard changed an operator, ascending; () where it has no such operator."""
    return tuple(int(version) for version in _history(domain, op))


@cache
def operator(domain: str, op: str, opset: int) -> Operator | None:
    """The version of an operator that `opset` means, deprecated or not; None where unknown or newer than `opset`."""
    since = max((version for version in versions(domain, op) if version <= opset), default=None)
    return None if since is None else _version(plain_domain(domain), op, since)


def contrib(domain: str, op: str) -> Operator | None:
    """An operator that ONNX Runtime has of its own (com.microsoft and what its optimiser writes), None where it has no
    such operator. `data/make_contrib.py` makes the table from the installed ONNX Runtime."""
    return _own(domain, op) if domain.startswith(CONTRIB) else None


@cache
def _own(domain: str, op: str) -> Operator | None:
    entry = _contrib().get(f"{domain}::{op}")
    return None if entry is None else _built(domain, op, 1, entry, _contrib()["types"])


@cache
def _contrib() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Path(__file__).with_name("data").joinpath("contrib.json").read_bytes())
    return data


def nearest(domain: str, op: str) -> str | None:
    """The operator of the domain whose name is most like `op`, None where none is: for "did you mean"."""
    import difflib

    names = {name.lower(): name for name in _table()["operators"].get(plain_domain(domain), {})}
    close = difflib.get_close_matches(op.lower(), names, n=1)
    return names[close[0]] if close else None


def newest_opset(domain: str = "") -> int:
    """The newest opset of a domain that the table knows; 0 where the domain is none of the standard's."""
    newest: int = _table()["opsets"].get(plain_domain(domain), 0)
    return newest


def release_for(opset: int, domain: str = "") -> str | None:
    """The first onnx release that has an opset ("1.12.0" for 17), None where no release has it."""
    row = _release(opset, domain)
    return row[0] if row else None


def paired_opset(domain: str, opset: int) -> int | None:
    """The opset of another domain in the onnx release that brought an opset of ai.onnx (3 of ai.onnx.ml for 17)."""
    for _, _, opsets in _table()["releases"]:
        if opsets.get("", 0) >= opset:
            paired: int | None = opsets.get(plain_domain(domain))
            return paired
    return None


def ir_version_for(opset: int, domain: str = "") -> int | None:
    """The IR version that came with an opset: the lowest a file of that opset is expected to have. None as above."""
    row = _release(opset, domain)
    return row[1] if row else None


def onnx_version() -> str:
    """The onnx release the table was made from."""
    version: str = _table()["onnx"]
    return version


@cache
def _table() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Path(__file__).with_name("data").joinpath("operators.json").read_bytes())
    return data


def _history(domain: str, op: str) -> Mapping[str, Any]:
    """The table's entries of an operator by version, ascending."""
    history: Mapping[str, Any] = _table()["operators"].get(plain_domain(domain), {}).get(op, {})
    return history


def _release(opset: int, domain: str) -> tuple[str, int] | None:
    for name, ir_version, opsets in _table()["releases"]:
        if 1 <= opset <= opsets.get(plain_domain(domain), 0):
            return name, ir_version
    return None


@cache
def _version(domain: str, op: str, since: int) -> Operator:
    # One object a version, whichever opsets lead to it.
    return _built(domain, op, since, _history(domain, op)[str(since)], _table()["types"])


def _built(domain: str, op: str, since: int, entry: Mapping[str, Any], type_sets: list[str]) -> Operator:
    types = {name: tuple(type_sets[number].split()) for name, number in entry["types"].items()}
    min_inputs, max_inputs, min_outputs, max_outputs = entry["arity"]
    return Operator(
        domain=domain,
        name=op,
        since=since,
        deprecated=entry.get("deprecated", False),
        attributes=MappingProxyType({name: _attribute(name, value) for name, value in entry["attributes"].items()}),
        inputs=tuple(_formal(types, *value) for value in entry["inputs"]),
        outputs=tuple(_formal(types, *value) for value in entry["outputs"]),
        min_inputs=min_inputs,
        max_inputs=max_inputs,
        min_outputs=min_outputs,
        max_outputs=max_outputs,
        is_function=entry.get("function", False),
    )


def _attribute(name: str, entry: Mapping[str, Any]) -> Attribute:
    default = entry.get("default")
    return Attribute(
        name=name,
        type=entry["type"],
        required=entry.get("required", False),
        default=tuple(default) if isinstance(default, list) else default,
        values=tuple(entry.get("values", ())),
    )


def _formal(
    types: Mapping[str, tuple[str, ...]], name: str, kind: str, option: Option = "single", homogeneous: bool = True
) -> Formal:
    if kind in types:
        return Formal(name, types[kind], kind, option, homogeneous)
    return Formal(name, (kind,), "", option, homogeneous)
