"""Makes operators.json, the standard's operator table, from the schemas of the installed onnx and enumerations.toml.

Run it after an update of onnx or a change of enumerations.toml:

    python vexlint/model/data/make_operators.py

The output is one line a version of an operator, so that a new onnx release reads well as a diff.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import onnx
from onnx import defs, helper

HERE = Path(__file__).parent
# The columns of onnx's own release table, after the release and the IR version.
RELEASE_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.training")

Entry = dict[str, Any]
Operators = dict[str, dict[str, dict[int, Entry]]]
# An OpSchema is Any throughout: onnx's type stubs lack half of what it has.
Schemas = dict[tuple[str, str], dict[int, Any]]


def all_schemas() -> Schemas:
    """Every schema onnx has, by (domain, operator) and version; both in ascending order."""
    ordered = sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version))
    schemas: Schemas = {}
    for schema in ordered:
        schemas.setdefault((schema.domain, schema.name), {})[schema.since_version] = schema
    return schemas


def default_value(attribute: Any) -> Any:
    """The default of an attribute as a JSON value, None where it has none."""
    if not attribute.default_value.name:
        return None
    value = helper.get_attribute_value(attribute.default_value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [item.decode() if isinstance(item, bytes) else item for item in value]
    return value


def attribute_entry(attribute: Any) -> Entry:
    """What the table says of an attribute; what is false or absent is left out."""
    entry: Entry = {"type": attribute.type.name}
    if attribute.required:
        entry["required"] = True
    default = default_value(attribute)
    if default is not None:
        entry["default"] = default
    return entry


def formal_entry(formal: Any) -> list[Any]:
    """[name, type or type variable, option, homogeneous]; "single" and True are left out at the end."""
    entry: list[Any] = [formal.name, formal.type_str, formal.option.name.lower(), formal.is_homogeneous]
    if formal.is_homogeneous:
        entry.pop()
        if entry[-1] == "single":
            entry.pop()
    return entry


def type_set(constraint: Any) -> str:
    """The types a type variable may stand for, in one text. A blank separates them, so none may be left within one."""
    return " ".join(sorted({name.replace(" ", "") for name in constraint.allowed_type_strs}))


def number_type_sets(schemas: Schemas) -> dict[str, int]:
    """A number for each distinct type set: they are long and shared by many operators.

    The newest versions of the main domain come last, so that a new onnx release appends and renumbers nothing.
    """
    every = [schema for versions in schemas.values() for schema in versions.values()]
    every.sort(key=lambda s: (s.domain == "", s.since_version))
    numbers: dict[str, int] = {}
    for schema in every:
        for constraint in schema.type_constraints:
            numbers.setdefault(type_set(constraint), len(numbers))
    return numbers


def operator_entry(schema: Any, type_sets: dict[str, int]) -> Entry:
    """What the table says of one version of an operator."""
    entry: Entry = {"deprecated": True} if schema.deprecated else {}
    if schema.has_function or schema.has_context_dependent_function:
        entry["function"] = True
    entry["attributes"] = {name: attribute_entry(schema.attributes[name]) for name in sorted(schema.attributes)}
    entry["inputs"] = [formal_entry(formal) for formal in schema.inputs]
    entry["outputs"] = [formal_entry(formal) for formal in schema.outputs]
    entry["arity"] = [schema.min_input, schema.max_input, schema.min_output, schema.max_output]
    entry["types"] = {c.type_param_str: type_sets[type_set(c)] for c in schema.type_constraints}
    return entry


def versions_of(enumeration: Entry, name: str, schemas: Schemas, reviewed: dict[str, int]) -> list[int]:
    """The versions of operator `name` that an entry of enumerations.toml speaks of."""
    domain = enumeration.get("domain", "")
    since, until = enumeration["since"], enumeration.get("until")
    known = schemas.get((domain, name), {})
    for bound in (since, until or since):
        if bound not in known:
            raise SystemExit(f"enumerations.toml: there is no {domain or 'ai.onnx'}::{name}-{bound}")
    return [version for version in known if since <= version <= (until or reviewed[domain])]


def add_enumerations(operators: Operators, schemas: Schemas, text: str) -> None:
    """Writes the closed sets of enumerations.toml into the attributes; stops at one that contradicts its schema."""
    document = tomllib.loads(text)
    for enumeration in document["enumeration"]:
        domain, attribute, values = enumeration.get("domain", ""), enumeration["attribute"], enumeration["values"]
        for name in enumeration["operators"]:
            for version in versions_of(enumeration, name, schemas, document["reviewed"]):
                where = f"enumerations.toml: {name}-{version}.{attribute}"
                entry = operators[domain][name][version]["attributes"].get(attribute)
                if entry is None:
                    raise SystemExit(f"{where}: the schema has no such attribute")
                if "values" in entry:
                    raise SystemExit(f"{where}: listed twice")
                if "default" in entry and entry["default"] not in values:
                    raise SystemExit(f"{where}: the default {entry['default']!r} is not among the values")
                doc = schemas[domain, name][version].attributes[attribute].description
                if enumeration["source"] not in " ".join(doc.split()):
                    raise SystemExit(f"{where}: the schema's text does not say {enumeration['source']!r}")
                entry["values"] = values


def table(enumerations: str) -> Entry:
    """The whole table as one value, given the text of enumerations.toml."""
    schemas = all_schemas()
    type_sets = number_type_sets(schemas)
    operators: Operators = {}
    for (domain, name), versions in schemas.items():
        operators.setdefault(domain, {})[name] = {v: operator_entry(s, type_sets) for v, s in versions.items()}
    add_enumerations(operators, schemas, enumerations)
    # Early releases have fewer domains, hence fewer columns.
    releases = [(name, ir, dict(zip(RELEASE_DOMAINS, row, strict=False))) for name, ir, *row in helper.VERSION_TABLE]
    opsets = {domain: max(max(versions) for versions in names.values()) for domain, names in operators.items()}
    return {
        "onnx": onnx.__version__,
        "opsets": opsets | releases[-1][2],
        "releases": releases,
        "types": list(type_sets),
        "operators": operators,
    }


def lines(value: Any, depth: int) -> str:
    """`value` as JSON, a line for each item down to `depth` levels."""
    if depth == 0:
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, dict):
        items = [f'"{key}": {lines(item, depth - 1)}' for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    return "[\n" + ",\n".join(lines(item, depth - 1) for item in value) + "\n]"


def render(enumerations: str) -> str:
    """The text of operators.json."""
    depths = {"releases": 1, "types": 1, "operators": 3}
    parts = [f'"{key}": {lines(value, depths.get(key, 0))}' for key, value in table(enumerations).items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def unreviewed(enumerations: str) -> list[str]:
    """Versions newer than enumerations.toml was read against: they get no closed sets until somebody reads them."""
    reviewed = tomllib.loads(enumerations)["reviewed"]
    return [
        f"{domain or 'ai.onnx'}::{name}-{version}"
        for (domain, name), versions in all_schemas().items()
        for version in versions
        if version > reviewed.get(domain, 0)
    ]


def main() -> None:
    """Writes operators.json beside this file."""
    enumerations = (HERE / "enumerations.toml").read_text(encoding="utf-8")
    (HERE / "operators.json").write_text(render(enumerations), encoding="utf-8", newline="\n")
    if missing := unreviewed(enumerations):
        sys.stderr.write("not yet read for closed sets: " + ", ".join(missing) + "\n")


if __name__ == "__main__":
    main()
