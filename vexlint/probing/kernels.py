"""What ONNX Runtime's own list of kernels for the CPU adds to its probed table: versions and types without a kernel.

A kernel of version 13 and later serves schema version 13 only, one of 13 to 18 serves all of these. A schema version
without a kernel runs where the standard defines it by other operators, which is left to the probes. Half precision is
left to them, too: ONNX Runtime casts where it has the kernel for float.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from vexlint.model import schemas, tensors
from vexlint.model.kinds import TYPE_ATTRIBUTES

Kernel = dict[str, list[str]]  # type variable -> the types it takes
OPEN = 2**31 - 1  # the end of a kernel's versions where none is written
CAST = frozenset({"float16", "bfloat16"})
# What needs no kernel, or whose types are those of a subgraph
LEFT_OUT = frozenset({"Constant", "If", "Loop", "Scan", "SequenceMap"})
NO_KERNEL = "no kernel for this version"
NUMBERS = {name: number for number, name in tensors.DTYPES.items()}


def complete(data: Any) -> None:
    """Adds to a table of the installed ONNX Runtime what its kernels tell; what the probes found stays."""
    table = data["operators"]
    for (op, since), found in _kernels().items():
        schema = schemas.operator("", op, since)
        if schema is None or schema.deprecated or op in LEFT_OUT or since > (data["opsets"][""]["max"] or since):
            continue
        entry = table.setdefault(op, {})
        tried = since in (*entry.get("runs", ()), *entry.get("partial", ())) or str(since) in entry.get("refuses", {})
        if not found and not schema.is_function and not tried:
            entry.setdefault("refuses", {})[str(since)] = NO_KERNEL
        elif found and not schema.is_function and str(since) not in entry.get("refuses", {}):
            _types(entry, schema, found)
            entry["limits"] = entry.get("limits", []) + [
                limit for limit in (*_said(schema, found), *_pairs(schema, found)) if not _known(limit, entry)
            ]
        table[op] = {key: value for key, value in entry.items() if value}
        if not table[op]:
            del table[op]
    data["operators"] = dict(sorted(table.items()))


def _kernels() -> dict[tuple[str, int], list[Kernel]]:
    """(operator, schema version) -> its kernels for the CPU, for every operator of the standard's main domain."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    listed: dict[str, list[tuple[int, int, Kernel]]] = {}
    for kernel in native.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            first, last = kernel.version_range
            listed.setdefault(kernel.op_name, []).append((first, last, dict(kernel.type_constraints)))
    found = {}
    for op in sorted({s.name for s in native.get_all_operator_schema() if not s.domain}):
        for since in schemas.versions("", op):
            rows = listed.get(op, [])
            found[op, since] = [k for a, b, k in rows if a == since or (b != OPEN and a < since <= b)]
    return found


def _lacking(allowed: tuple[str, ...], variable: str, kernels: list[Kernel]) -> tuple[set[str], set[str]]:
    """The element types that a kernel takes for a variable, and those of the schema that none does."""
    if not all(variable in kernel for kernel in kernels):
        return set(), set()
    taken = {schemas.element_name(t) for kernel in kernels for t in kernel[variable]} - {""}
    return taken, {schemas.element_name(t) for t in allowed} - taken - CAST - {""}


def _types(entry: dict[str, Any], schema: schemas.Operator, kernels: list[Kernel]) -> None:
    """Types of inputs: added to the row of this version, which is taken out of the rows that it shares."""
    rows: dict[str, Any] = entry.get("types", {})
    key = next((k for k in rows if str(schema.since) in k.split()), "")
    row = dict(rows.get(key, {}))
    for variable, allowed in {f.type_var: f.types for f in schema.inputs if f.type_var}.items():
        taken, lacking = _lacking(allowed, variable, kernels)
        ran, refused = (set(text.split()) for text in row.get(variable, ["", ""]))
        if taken:
            row[variable] = [" ".join(sorted(ran | taken)), " ".join(sorted((refused | lacking) - ran - taken))]
    if row == rows.get(key):
        return
    others = [v for v in key.split() if v != str(schema.since)]
    if key:
        rows = {(" ".join(others) if k == key else k): value for k, value in rows.items() if others or k != key}
    same = next((k for k, value in rows.items() if value == row), "")
    made = " ".join(sorted([*same.split(), str(schema.since)], key=int))
    rows = {k: value for k, value in rows.items() if k != same} | {made: row}
    entry["types"] = dict(sorted(rows.items(), key=lambda item: int(item[0].split()[0])))


def _said(schema: schemas.Operator, kernels: list[Kernel]) -> Iterator[dict[str, Any]]:
    """Types of the output that an attribute says."""
    attribute, formal = TYPE_ATTRIBUTES.get(schema.name), schema.outputs[0] if schema.outputs else None
    if attribute and formal is not None and formal.type_var not in {f.type_var for f in schema.inputs}:
        numbers = [NUMBERS[t] for t in _lacking(formal.types, formal.type_var, kernels)[1] if t in NUMBERS]
        if numbers:
            yield {"versions": [schema.since], "attribute": {attribute: sorted(numbers)}, "why": "no kernel makes it"}


def _pairs(schema: schemas.Operator, kernels: list[Kernel]) -> Iterator[dict[str, Any]]:
    """Types of two inputs that kernels take, but none of them together."""
    first = {f.type_var: i for i, f in reversed(list(enumerate(schema.inputs))) if f.type_var}
    for one, other in combinations(sorted(first), 2):
        if not all(one in kernel and other in kernel for kernel in kernels):
            continue
        together = {(a, b) for kernel in kernels for a in kernel[one] for b in kernel[other]}
        for b in sorted({b for _, b in together}):
            apart = {a for a, _ in together if (a, b) not in together}
            names = sorted({schemas.element_name(a) for a in apart} - {"float16", ""})
            if names and (kind := schemas.element_name(b)) and kind != "float16":
                types = {str(first[one]): names, str(first[other]): [kind]}
                yield {"versions": [schema.since], "types": types, "why": "no kernel for these types together"}


def _known(limit: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Whether the probes have found all of it already."""
    (version,) = limit["versions"]
    (name, numbers), *_ = limit.get("attribute", {"": []}).items()
    said = [old for old in entry.get("limits", ()) if version in old.get("versions", (version,))]
    told = {number for old in said for number in old.get("attribute", {}).get(name, ())}
    limit.get("attribute", {})[name] = sorted(set(numbers) - told)
    return (bool(name) and not limit["attribute"][name]) or limit in said
