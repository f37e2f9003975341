"""Makes contrib.json, the operators that ONNX Runtime has of its own, from the installed onnxruntime.

Run it after an update of onnxruntime:

    python vexlint/model/data/make_contrib.py

One line an operator, in the form of operators.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as native

HERE = Path(__file__).parent
DOMAINS = ("com.microsoft", "com.microsoft.nchwc")
OPTIONS = {"Single": "single", "Optional": "optional", "Variadic": "variadic"}


def formal(entry: Any) -> list[Any]:
    made = [entry.name, entry.typeStr.replace(" ", ""), OPTIONS[entry.option.name]]
    if not getattr(entry, "isHomogeneous", True):
        made.append(False)
    return made[:2] if made[2:] == ["single"] else made


def attribute(entry: Any) -> dict[str, Any]:
    return {"type": entry.type.name} | ({"required": True} if entry.required else {})


def table() -> dict[str, Any]:
    made: dict[str, Any] = {"onnxruntime": onnxruntime.__version__, "types": []}
    numbers: dict[str, int] = {}
    schemas = [s for s in native.get_all_operator_schema() if s.domain in DOMAINS]
    for schema in sorted(schemas, key=lambda s: (s.domain, s.name, s.since_version)):
        types = {}
        for constraint in schema.type_constraints:
            allowed = " ".join(sorted({t.replace(" ", "") for t in constraint.allowed_type_strs}))
            types[constraint.type_param_str] = numbers.setdefault(allowed, len(numbers))
        made[f"{schema.domain}::{schema.name}"] = {
            "attributes": {name: attribute(schema.attributes[name]) for name in sorted(schema.attributes)},
            "inputs": [formal(f) for f in schema.inputs],
            "outputs": [formal(f) for f in schema.outputs],
            "arity": [schema.min_input, schema.max_input, schema.min_output, schema.max_output],
            "types": types,
        }
    made["types"] = list(numbers)
    return made


def main() -> None:
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in table().items())
    (HERE / "contrib.json").write_text("{\n" + lines + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
