"""Small models to try: the ONNX node tests at every schema version that takes them, and a sweep of element types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vexlint.model import schemas, tensors

if TYPE_CHECKING:
    from onnx import ModelProto

OLDEST = 7  # the opset that old schema versions are stamped with, where they are still current there
NUMBERS = {name: number for number, name in tensors.DTYPES.items()}
# Operators whose tests need what a probe does not have, or that are no single operator
LEFT_OUT = frozenset({"If", "Loop", "Scan", "SequenceMap", "Constant", "Optional"})


@dataclass(frozen=True, slots=True)
class Probe:
    """One model of one node. `variable` and `dtype` say what the sweep changed, "" for a node test."""

    name: str
    op: str
    since: int
    data: bytes
    kind: Literal["test", "types"]
    variable: str = ""
    dtype: str = ""


def make(operators: frozenset[str] = frozenset()) -> Iterator[Probe]:
    """The probes of these operators, of all where none are named; every one passes `onnx.checker`."""
    bases: dict[tuple[str, int], ModelProto] = {}
    seen = set[bytes]()
    for name, model in _tests():
        op = model.graph.node[0].op_type
        if op in LEFT_OUT or (operators and op not in operators):
            continue
        for since, stamped in _versions(model, op):
            data = stamped.SerializeToString()
            if data not in seen:
                seen.add(data)
                bases.setdefault((op, since), stamped)
                yield Probe(f"{name}@{since}", op, since, data, "test")
    for (op, since), base in bases.items():
        for variable, dtype, swept in _sweep(base, op, since):
            yield Probe(
                f"{op}@{since} {variable}={dtype}", op, since, swept.SerializeToString(), "types", variable, dtype
            )


def _tests() -> Iterator[tuple[str, ModelProto]]:
    """The node tests that the onnx package makes, those of one node of the default domain."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    for case in cases:
        if case.model is not None and len(case.model.graph.node) == 1 and not case.model.graph.node[0].domain:
            yield case.name, case.model


def _versions(model: ModelProto, op: str) -> Iterator[tuple[int, ModelProto]]:
    """The model stamped for each schema version of its operator whose rules it keeps."""
    history = schemas.versions("", op)
    for since, after in zip(history, (*history[1:], 1000), strict=True):
        opset = max(since, min(OLDEST, after - 1))
        copy = type(model)()
        copy.CopyFrom(model)
        del copy.opset_import[:]
        copy.opset_import.add(domain="", version=opset)
        copy.ir_version = max(3, schemas.ir_version_for(opset) or 3)
        if _valid(copy):
            yield since, copy


def _sweep(base: ModelProto, op: str, since: int) -> Iterator[tuple[str, str, ModelProto]]:
    """(type variable, element type, model) for every type that the schema allows a variable."""
    schema = schemas.operator("", op, since)
    if schema is None:
        return
    node = base.graph.node[0]
    variables = {f.type_var: f.types for f in schema.inputs if f.type_var}
    for variable, allowed in variables.items():
        formals = ((node.input, schema.inputs), (node.output, schema.outputs))
        names = {
            name
            for given, declared in formals
            for i, name in enumerate(given)
            if declared and declared[min(i, len(declared) - 1)].type_var == variable
        }
        for text in allowed:
            found = re.fullmatch(r"tensor\((\w+)\)", text)
            if found is None or found[1] not in NUMBERS:
                continue
            copy = type(base)()
            copy.CopyFrom(base)
            for value in (*copy.graph.input, *copy.graph.output):
                if value.name in names and value.type.HasField("tensor_type"):
                    value.type.tensor_type.elem_type = NUMBERS[found[1]]
            if _valid(copy):
                yield variable, found[1], copy


def _valid(model: ModelProto) -> bool:
    import onnx

    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return False
    return True
