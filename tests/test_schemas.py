"""The operator table against the schemas of the installed onnx."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import defs, helper

from vexlint.model import schemas

DATA = Path(schemas.__file__).with_name("data")
ENUMERATIONS = (DATA / "enumerations.toml").read_text(encoding="utf-8")
PINNED = onnx.__version__ == schemas.onnx_version()
only_pinned = pytest.mark.skipif(
    not PINNED, reason=f"the table is made from onnx {schemas.onnx_version()}, installed is {onnx.__version__}"
)


@pytest.fixture(scope="module")
def maker() -> dict[str, Any]:
    return runpy.run_path(str(DATA / "make_operators.py"))


def shared_versions() -> Iterator[Any]:
    """The schemas that both the table and the installed onnx have: all of them where the releases are the same."""
    for schema in defs.get_all_schemas_with_history():
        if PINNED or schema.since_version in schemas.versions(schema.domain, schema.name):
            yield schema


def found(schema: Any) -> schemas.Operator:
    operator = schemas.operator(schema.domain, schema.name, schema.since_version)
    assert operator is not None, f"{schema.domain}::{schema.name}-{schema.since_version}"
    return operator


@only_pinned
def test_the_committed_table_is_what_the_maker_makes(maker: dict[str, Any]) -> None:
    assert (DATA / "operators.json").read_text(encoding="utf-8") == maker["render"](ENUMERATIONS)


@only_pinned
def test_every_version_is_reviewed_for_closed_sets(maker: dict[str, Any]) -> None:
    assert maker["unreviewed"](ENUMERATIONS) == []


def test_each_opset_means_the_version_that_onnx_says() -> None:
    histories: dict[tuple[str, str], set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        histories.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    assert len(histories) > 200
    for (domain, name), history in histories.items():
        reach = max(max(other) for (owner, _), other in histories.items() if owner == domain)
        # onnx has added versions to opsets already released, so another release may know others: nothing to compare.
        if {version for version in schemas.versions(domain, name) if version <= reach} != history and not PINNED:
            continue
        for opset in range(1, reach + 1):
            operator = schemas.operator(domain, name, opset)
            assert (operator is not None) == defs.has(name, opset, domain), (domain, name, opset)
            if operator is not None:
                declared = defs.get_schema(name, opset, domain)
                assert (operator.since, operator.deprecated) == (declared.since_version, declared.deprecated)


def test_attributes_are_those_of_the_schema() -> None:
    for schema in shared_versions():
        operator = found(schema)
        for name, declared in schema.attributes.items():
            attribute = operator.attributes[name]
            assert (attribute.name, attribute.type) == (name, declared.type.name)
            assert attribute.required == declared.required
            default = helper.get_attribute_value(declared.default_value) if declared.default_value.name else None
            assert as_bytes(attribute.default) == (tuple(default) if isinstance(default, list) else default)
        assert operator.attributes.keys() == schema.attributes.keys()


def as_bytes(default: Any) -> Any:
    """A default with its strings as onnx gives them."""
    if isinstance(default, tuple):
        return tuple(as_bytes(item) for item in default)
    return default.encode() if isinstance(default, str) else default


@only_pinned  # onnx corrects the type sets of old versions (Erf-13 after 1.19)
def test_inputs_and_outputs_are_those_of_the_schema() -> None:
    for schema in shared_versions():
        operator = found(schema)
        allowed = {c.type_param_str: {t.replace(" ", "") for t in c.allowed_type_strs} for c in schema.type_constraints}
        pairs = [*zip(operator.inputs, schema.inputs, strict=True), *zip(operator.outputs, schema.outputs, strict=True)]
        for formal, declared in pairs:
            assert (formal.name, formal.option) == (declared.name, declared.option.name.lower())
            assert formal.homogeneous == declared.is_homogeneous
            assert formal.type_var == (declared.type_str if declared.type_str in allowed else "")
            assert set(formal.types) == allowed.get(declared.type_str, {declared.type_str})
        assert (operator.min_inputs, operator.max_inputs) == (schema.min_input, schema.max_input)
        assert (operator.min_outputs, operator.max_outputs) == (schema.min_output, schema.max_output)
        assert operator.is_function == (schema.has_function or schema.has_context_dependent_function)


def test_every_default_lies_in_its_closed_set() -> None:
    closed = [(s, a) for s in shared_versions() for a in found(s).attributes.values() if a.values]
    assert len(closed) > 200
    for schema, attribute in closed:
        assert attribute.default is None or attribute.default in attribute.values, (schema.name, attribute)


@only_pinned
def test_the_schema_text_names_every_string_of_a_closed_set() -> None:
    for schema in shared_versions():
        for attribute in found(schema).attributes.values():
            text = schema.attributes[attribute.name].description
            for value in attribute.values:
                assert isinstance(value, int) or value in text, (schema.name, schema.since_version, attribute)


@pytest.mark.parametrize(
    ("op", "opset", "attribute", "value", "allowed"),
    [
        ("GridSample", 16, "mode", "bilinear", True),
        ("GridSample", 19, "mode", "linear", False),
        ("GridSample", 20, "mode", "bilinear", False),
        ("Pad", 18, "mode", "wrap", False),
        ("Pad", 19, "mode", "wrap", True),
        ("Resize", 11, "coordinate_transformation_mode", "tf_half_pixel_for_nn", True),
        ("Resize", 13, "coordinate_transformation_mode", "tf_half_pixel_for_nn", False),
        ("Resize", 18, "coordinate_transformation_mode", "half_pixel_symmetric", False),
        ("Resize", 19, "coordinate_transformation_mode", "half_pixel_symmetric", True),
        ("ScatterND", 17, "reduction", "max", False),
        ("ScatterND", 18, "reduction", "max", True),
        ("Upsample", 9, "mode", "bilinear", False),
    ],
)
def test_closed_sets_follow_the_opset(op: str, opset: int, attribute: str, value: str, allowed: bool) -> None:
    operator = schemas.operator("", op, opset)
    assert operator is not None
    assert (value in operator.attributes[attribute].values) is allowed


@only_pinned
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('["Trilu"]', '["Trilux"]', "there is no ai.onnx::Trilux-14"),
        ("until = 24", "until = 26", "there is no ai.onnx::Attention-26"),
        ('"upper"', '"uppr"', "Trilu-14.uppr: the schema has no such attribute"),
        ("values = [1, 2]", "values = [1, 3]", "LpNormalization-1.p: the default 2 is not among the values"),
        ("only 1 or 2 are supported", "only 1 and 2", "LpNormalization-1.p: the schema's text does not say"),
        ('["ConvInteger", "QLinearConv"]', '["ConvInteger", "ConvInteger"]', "ConvInteger-10.auto_pad: listed twice"),
    ],
)
def test_the_maker_stops_at_an_enumeration_that_fits_no_schema(
    maker: dict[str, Any], old: str, new: str, complaint: str
) -> None:
    assert old in ENUMERATIONS
    with pytest.raises(SystemExit) as stop:
        maker["table"](ENUMERATIONS.replace(old, new, 1))
    assert complaint in str(stop.value)


def test_the_domain_may_be_written_out() -> None:
    assert schemas.versions("ai.onnx", "Resize") == schemas.versions("", "Resize") == (10, 11, 13, 18, 19)
    assert schemas.operator("ai.onnx", "Resize", 17) is schemas.operator("", "Resize", 13)
    assert schemas.newest_opset("ai.onnx") == schemas.newest_opset()
    assert schemas.nearest("ai.onnx", "Rezise") == "Resize"


def test_what_the_standard_does_not_have_is_unknown() -> None:
    assert schemas.versions("", "FancyOp") == ()
    assert schemas.operator("", "FancyOp", 17) is None
    assert schemas.operator("com.microsoft", "Gelu", 1) is None
    assert schemas.operator("ai.onnx.ml", "Conv", 1) is None
    assert schemas.newest_opset("com.microsoft") == 0


def test_an_operator_newer_than_the_opset_is_none_but_has_versions() -> None:
    assert schemas.operator("", "Mish", 17) is None
    assert schemas.versions("", "Mish")[0] == 18


def test_deprecated_operators_are_found_and_marked() -> None:
    marks = {opset: op.deprecated for opset in (9, 10, 17) if (op := schemas.operator("", "Upsample", opset))}
    assert marks == {9: False, 10: True, 17: True}


@pytest.mark.parametrize(
    ("domain", "op", "name"),
    [("", "Rezise", "Resize"), ("", "GELU", "Gelu"), ("", "qqqqqqqq", None), ("com.acme", "Resize", None)],
)
def test_nearest_name(domain: str, op: str, name: str | None) -> None:
    assert schemas.nearest(domain, op) == name


def test_releases_of_opsets() -> None:
    assert schemas.release_for(17) == "1.12.0"
    assert schemas.release_for(9) == "1.4.1"
    assert schemas.release_for(4, "ai.onnx.ml") == "1.15.0"
    assert schemas.release_for(0) is None
    assert schemas.release_for(schemas.newest_opset() + 1) is None
    assert schemas.release_for(1, "com.microsoft") is None
    assert schemas.ir_version_for(schemas.newest_opset() + 1) is None
    for _, _, *opsets in helper.VERSION_TABLE:
        for domain, opset in zip(("", "ai.onnx.ml"), opsets, strict=False):
            if int(opset) <= schemas.newest_opset(domain):
                least = helper.find_min_ir_version_for([helper.make_opsetid(domain, int(opset))])
                assert schemas.ir_version_for(int(opset), domain) == least


def test_the_table_is_read_late_and_light() -> None:
    """Importing the module reads nothing; using it imports neither onnx nor numpy. The time is printed, not judged."""
    script = """if True:
        import json, sys, time
        from vexlint.model import schemas
        unread = schemas._table.cache_info().currsize == 0
        start = time.perf_counter()
        schemas.operator("", "Conv", 17)
        milliseconds = (time.perf_counter() - start) * 1e3
        heavy = sorted({"onnx", "numpy", "google.protobuf", "difflib"} & sys.modules.keys())
        print(json.dumps([unread, heavy, milliseconds]))
    """
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    unread, heavy, milliseconds = json.loads(run.stdout)
    print(f"first look-up: {milliseconds:.1f} ms")
    assert unread
    assert heavy == []
