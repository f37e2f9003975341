"""What once broke `vexlint check`: files that are wrong in ways no exporter writes, names that steer terminals,
configurations that say nothing. Each test is of a whole kind."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from tests.support import DETECTOR, RULES, codes, judge
from vexlint import engine, paths, targets
from vexlint.checks import resize
from vexlint.config import Config, Contract, Plugin, Waiver, parse
from vexlint.engine import Settings
from vexlint.model.read import read
from vexlint.report import json as json_report
from vexlint.report import text as text_report
from vexlint.values import FileReport, Report, VexlintError

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
CONTRACT = Contract(path="**", resize="half_pixel", nms={})
ALIGNED = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
NAN, INF = float("nan"), float("inf")
Functions = list[FunctionProto]


def value(name: str, *shape: int | str | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, shape)


def model(
    nodes: list[NodeProto],
    inputs: list[ValueInfoProto] | None = None,
    outputs: list[ValueInfoProto] | None = None,
    weights: list[TensorProto] | None = None,
    opset: int = 18,
    functions: Functions | None = None,
) -> ModelProto:
    inputs = [value("x", 1, 3, 8, 8)] if inputs is None else inputs
    outputs = [value("y", None, None, None, None)] if outputs is None else outputs
    graph = helper.make_graph(nodes, "net", inputs, outputs, weights or [])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=functions or [])


def check(made: ModelProto, folder: Path, contract: Contract | None = CONTRACT) -> FileReport:
    """The report of a file, which every format can print."""
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    report = judge(path, contract)
    whole = Report((report,), ("onnx",))
    json.loads(json_report.render(whole), parse_constant=pytest.fail)
    assert all(c.isprintable() or c == "\n" for c in text_report.render(whole))
    return report


WRONG: list[Any] = [3, 2.5, NAN, "words", [1], [1.5, NAN], ["a", "b"], helper.make_tensor("t", FLOAT, [1], [1.0])]
ATTRIBUTES = [
    ("Resize", "mode"),
    ("Resize", "coordinate_transformation_mode"),
    ("Resize", "axes"),
    ("Concat", "axis"),
    ("Constant", "value"),
    ("Constant", "value_int"),
    ("Constant", "value_floats"),
]


@pytest.mark.parametrize(("op", "name"), ATTRIBUTES)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: type(w).__name__ + str(w)[:8].strip())
@pytest.mark.parametrize("opset", [0, 6, 18])
def test_an_attribute_of_another_type_is_said_and_not_used(
    op: str, name: str, wrong: Any, opset: int, tmp_path: Path
) -> None:
    inputs = {"Resize": ["x", "", "s"], "Concat": ["x", "x"], "Constant": []}[op]
    attributes = {**(ALIGNED if op == "Resize" else {}), name: wrong}
    output = "m" if op == "Constant" else "y"
    nodes = [helper.make_node(op, inputs, [output], **attributes)]
    if op == "Constant":
        nodes.append(helper.make_node("NonMaxSuppression", ["b", "c", "m", "m"], ["y"]))
    boxes = [value("x", 1, 3, 64, 64), value("b", 1, 50, 4), value("c", 1, 2, 50)]
    scales = helper.make_tensor("s", FLOAT, [4], [1, 1, 2, 2])
    made = model(nodes, boxes, [value("y", 1, 6, 84)], [scales], opset or 18)
    if not opset:
        del made.opset_import[:]
    report = check(made, tmp_path)
    assert report.status == "checked"
    kind = helper.make_attribute(name, wrong).type
    takes = {"mode": 3, "coordinate_transformation_mode": 3, "axes": 7, "axis": 2, "value": 4, "value_int": 2}
    if opset == 18 and kind != takes.get(name, 6):
        assert "VEX106" in [f.code for f in report.findings]


@pytest.mark.parametrize(
    "numbers", [[1, 1, INF, 2], [1, 1, NAN, 2], [1, 1, -2, 2], [1, 1, 0, 2], [1, 1, 1e-40, 2], [1, 1, 1e30, 2], []]
)
@pytest.mark.parametrize("kind", ["scales", "sizes", "attribute"])
def test_any_number_may_stand_in_a_resize(numbers: list[float], kind: str, tmp_path: Path) -> None:
    tensor = helper.make_tensor("s", FLOAT, [len(numbers)], numbers)
    if kind == "attribute":
        made = model([helper.make_node("Upsample", ["x"], ["y"], mode="linear", scales=numbers or [1.0])], opset=7)
    else:
        inputs = ["x", "", "s"] if kind == "scales" else ["x", "", "", "s"]
        made = model([helper.make_node("Resize", inputs, ["y"], **ALIGNED)], weights=[tensor])
    assert check(made, tmp_path).status == "checked"


@pytest.mark.parametrize("numbers", [[1, 3, 2**40, 2**40], [1, 3, -5, 16], [1, 3, 0, 0]])
def test_any_size_may_stand_in_a_resize(numbers: list[int], tmp_path: Path) -> None:
    sizes = helper.make_tensor("s", INT64, [4], numbers)
    made = model([helper.make_node("Resize", ["x", "", "", "s"], ["y"], **ALIGNED)], weights=[sizes])
    assert check(made, tmp_path).status == "checked"


@pytest.mark.parametrize("inputs", [[], ["", "", "s"], ["nothing", "", "s"]])
@pytest.mark.parametrize("outputs", [[], [""], ["y"]])
def test_a_resize_may_lack_inputs_and_outputs(inputs: list[str], outputs: list[str], tmp_path: Path) -> None:
    scales = helper.make_tensor("s", FLOAT, [4], [1, 1, 2, 2])
    made = model([helper.make_node("Resize", inputs, outputs, **ALIGNED)], weights=[scales])
    assert check(made, tmp_path).status == "checked"


@pytest.mark.parametrize("length", [1, 2, 7, 20])
@pytest.mark.parametrize("size", [1, 2, 5, 13, 40, 61])
def test_the_shift_is_the_largest_over_all_samples(length: int, size: int) -> None:
    for scale in (size / length, 0.3, 1.7, 2.0):
        axis = resize.Axis(2, length, size, scale)
        for one, other in itertools.combinations(resize.MODES.values(), 2):

            def at(mode: Any, x: int, axis: resize.Axis = axis) -> float:
                return float(min(max(mode(x, axis.length, axis.size, axis.scale), 0.0), length - 1))

            expected = max(abs(at(one, x) - at(other, x)) for x in range(size))
            assert resize._distance(axis, one, other) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_numbers_that_their_type_does_not_hold_are_no_constant(kind: int, tmp_path: Path) -> None:
    scales = TensorProto(name="s", data_type=kind, dims=[4], int32_data=[1, 70000, -3, 5])
    made = model([helper.make_node("Resize", ["x", "", "s"], ["y"], **ALIGNED)], weights=[scales])
    assert check(made, tmp_path).status == "checked"


@pytest.mark.parametrize(
    "names", ["{[]:1}", "{1,2}", "[" * 5000, "9" * 5000, "\0", '["\\d"]', "{0:" * 200 + "1" + "}" * 200]
)
def test_metadata_may_hold_anything(names: str, tmp_path: Path) -> None:
    parts = [value("x", 1, 3, 64, 64), value("a", 1, 4, 84), value("b", 1, 2, 84)]
    made = model([helper.make_node("Concat", ["a", "b"], ["y"], axis=1)], parts, [value("y", 1, 6, 84)])
    made.metadata_props.add(key="names", value=names)
    assert ("info", "VEX501") in codes(check(made, tmp_path, None))


@pytest.mark.parametrize("op", ["Transpose", "Identity", "Concat", "Relu", "Resize"])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_rings_end(op: str, length: int, tmp_path: Path) -> None:
    names = [*(f"v{i}" for i in range(length - 1)), "y"]
    given: dict[str, dict[str, Any]] = {"Concat": {"axis": 1}, "Resize": ALIGNED}
    attributes = given.get(op, {})
    nodes = [helper.make_node(op, [names[i - 1]], [n], **attributes) for i, n in enumerate(names)]
    made = model(nodes, [value("x", "N", 3, 64, 64)], [value("y", 1, 6, 84)])
    assert check(made, tmp_path).status == "checked"


def test_functions_may_call_each_other_thousands_deep(tmp_path: Path) -> None:
    def function(number: int, calls: str) -> FunctionProto:
        node = helper.make_node(calls, ["x"], ["y"], domain="own")
        return helper.make_function("own", f"F{number}", ["x"], ["y"], [node], [helper.make_opsetid("own", 1)])

    functions = [function(i, f"F{i + 1}" if i < 2999 else "Stranger") for i in range(3000)]
    made = model([helper.make_node("F0", ["x"], ["y"], domain="own")], functions=functions)
    assert ("error", "VEX101") in codes(check(made, tmp_path))


@pytest.mark.parametrize("called", ["", "other"])
def test_a_call_means_the_function_of_its_overload(called: str, tmp_path: Path) -> None:
    bodies = {"": "Relu", "other": "Stranger"}
    functions = []
    for overload, op in bodies.items():
        node = helper.make_node(op, ["x"], ["y"])
        made = helper.make_function("own", "F", ["x"], ["y"], [node], [helper.make_opsetid("", 18)])
        made.overload = overload
        functions.append(made)
    call = helper.make_node("F", ["x"], ["y"], domain="own")
    call.overload = called
    found = codes(check(model([call], functions=functions), tmp_path))
    assert (("error", "VEX101") in found) == (called == "other")


def test_a_mode_that_the_caller_gives_is_not_judged(tmp_path: Path) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    node.attribute.add(name="coordinate_transformation_mode", ref_attr_name="where", type=3)
    body = helper.make_function("own", "F", ["x", "s"], ["y"], [node], [helper.make_opsetid("", 18)], ["where"])
    scales = helper.make_tensor("s", FLOAT, [4], [1, 1, 2, 2])
    call = helper.make_node("F", ["x", "s"], ["y"], domain="own", where="half_pixel")
    found = codes(check(model([call], weights=[scales], functions=[body]), tmp_path))
    assert found == [("warning", "VEX109")]


@pytest.mark.parametrize("location", ["a\0b", "x" * 5000, "ring", ".", "~", "a/\0/../b", "\x1b[2J"])
@pytest.mark.parametrize("op", ["Add", "Resize"])
def test_external_data_may_be_called_anything(location: str, op: str, tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to("ring")
    weights = TensorProto(name="s", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value=location)
    attributes, inputs = (ALIGNED, ["x", "", "s"]) if op == "Resize" else ({}, ["x", "s"])
    report = check(model([helper.make_node(op, inputs, ["y"], **attributes)], weights=[weights]), tmp_path)
    assert report.status == "checked"
    assert ("error", "VEX711") in codes(report)


def test_only_the_bytes_of_a_constant_are_read(tmp_path: Path) -> None:
    with (tmp_path / "weights").open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no space, and no memory holds it
    weights = TensorProto(name="s", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="weights")
    made = model([helper.make_node("Resize", ["x", "", "s"], ["y"], **ALIGNED)], weights=[weights])
    assert check(made, tmp_path).status == "checked"


@pytest.mark.parametrize(
    "evil", ["\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "\r", "\x7f", "\u202e", "\n  error VEX999", "\u2028"]
)
def test_names_do_not_steer_the_terminal(evil: str, tmp_path: Path) -> None:
    node = helper.make_node(f"Op{evil}", ["x"], [f"y{evil}"], f"name{evil}", domain=f"own{evil}")
    made = model([node], [value("x", f"N{evil}", 3)], [value(f"y{evil}", f"N{evil}", 3)])
    report = check(made, tmp_path)
    whole = text_report.render(Report((report,), ("onnx",)))
    assert not any(line.strip().startswith("error VEX999") for line in whole.splitlines())


def test_a_name_of_a_megabyte_does_not_fill_the_screen(tmp_path: Path) -> None:
    node = helper.make_node("O" * 1_000_000, ["x"], ["y"], "n" * 1_000_000, domain="own")
    report = check(model([node]), tmp_path)
    assert len(text_report.render(Report((report,), ("onnx",)))) < 5000
    assert len(json_report.render(Report((report,), ("onnx",)))) > 2_000_000


def test_a_file_name_need_not_be_text(tmp_path: Path) -> None:
    name = b"n\xff\n\x1b[2J.onnx"
    path = Path(str(tmp_path), name.decode("utf-8", "surrogateescape"))
    try:
        path.symlink_to(DETECTOR / "clean.onnx")
    except OSError:
        pytest.skip("this file system has no such names")
    report = Report((judge(path),), ("onnx",))
    text_report.render(report).encode("ascii")
    assert json.loads(json_report.render(report))["files"][0]["path"] == str(path)


class TestPaths:
    def test_a_contract_holds_for_a_link_by_its_name_and_by_what_it_leads_to(self, tmp_path: Path) -> None:
        (tmp_path / "blobs").mkdir()
        (tmp_path / "models").mkdir()
        (tmp_path / "blobs" / "abc").write_bytes(b"")
        link = tmp_path / "models" / "detector.onnx"
        link.symlink_to("../blobs/abc")
        config = Config(folder=tmp_path)
        assert config.covers("models/*.onnx", link)
        assert config.covers("blobs/*", link)
        assert not config.covers("*.onnx", link)

    @pytest.mark.parametrize(
        "glob", ["../models/*.onnx", "./../models/a.onnx", "{folder}/models/a.onnx", "../**/a.onnx"]
    )
    def test_a_glob_may_leave_the_folder_of_the_configuration(self, glob: str, tmp_path: Path) -> None:
        config = Config(folder=tmp_path / "set[1]up")
        assert config.covers(glob.replace("{folder}", str(tmp_path)), tmp_path / "models" / "a.onnx")

    def test_a_ring_of_links_is_an_unreadable_file(self, tmp_path: Path) -> None:
        ring = tmp_path / "ring.onnx"
        ring.symlink_to(ring)
        assert paths.expand([str(ring)]) == [ring]
        report = judge(ring, CONTRACT)
        assert (report.status, codes(report)) == ("incomplete", [("error", "VEX001")])

    def test_an_empty_path_is_not_the_working_directory(self) -> None:
        with pytest.raises(VexlintError, match="an empty path"):
            paths.expand([""])


class TestConfiguration:
    @pytest.mark.parametrize("shape", [[-1, 3], [0], [True], [1.5], [""], [None]])
    def test_a_size_is_1_or_more(self, shape: list[Any], tmp_path: Path) -> None:
        with pytest.raises(VexlintError, match="sizes of 1 or more"):
            parse({"model": [{"path": "a", "inputs": {"x": {"shape": shape}}}]}, tmp_path / "vexlint.toml")

    def test_a_misspelt_element_type_is_the_configurations_fault(self, tmp_path: Path) -> None:
        with pytest.raises(VexlintError, match="did you mean float32"):
            parse({"model": [{"path": "a", "inputs": {"x": {"dtype": "flot32"}}}]}, tmp_path / "vexlint.toml")

    @pytest.mark.parametrize("rule", ["VEX501", "vex501", "nms-outside"])
    def test_a_waiver_sets_aside_under_every_name_that_is_taken(self, rule: str) -> None:
        waiver = Waiver(rule=rule, path="clean.onnx", reason="the application does it")
        report = judge(DETECTOR / "clean.onnx", waivers=(waiver,))
        assert [w.finding.code for w in report.waived] == ["VEX501"]

    @pytest.mark.parametrize("name", ["tensorrt", "trt", "tensorrt@11", "trt@11.5", "tensorrt@11.5"])
    def test_a_plugin_names_targets_as_the_command_line_does(self, name: str) -> None:
        plugin = Plugin("shapes::Mish", (name,))
        report = judge(DETECTOR / "custom_mish.onnx", named=("tensorrt@11.5",), plugins=(plugin,))
        assert "VEX101" not in [f.code for f in report.findings]

    def test_a_plugin_for_another_version_does_not_cover(self) -> None:
        plugin = Plugin("shapes::Mish", ("tensorrt@1",))
        report = judge(DETECTOR / "custom_mish.onnx", named=("tensorrt@11.5",), plugins=(plugin,))
        assert ("error", "VEX101") in codes(report)

    def test_a_mistake_that_only_a_check_sees_is_the_users(self) -> None:
        with pytest.raises(VexlintError, match="no composite is named"):
            judge(DETECTOR / "custom_mish.onnx", composites={"a::b": "Nope"})


def test_a_bug_in_reading_ends_one_file_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise RecursionError("deep")

    monkeypatch.setattr(engine, "read", broken)
    settings = Settings(RULES, Config(folder=tmp_path), targets.resolve([])[0])
    report = engine.check_file(tmp_path / "model.onnx", settings)
    assert (report.status, report.reason) == ("incomplete", "reading failed, please report it: RecursionError: deep")


def test_a_subgraph_is_looked_at_once(tmp_path: Path) -> None:
    """Thousands of small branches: time grows with their number, not with its square."""
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["t"])], "then", [], [value("t")])
    nodes = [helper.make_node("If", ["c"], [f"q{i}"], then_branch=branch, else_branch=branch) for i in range(1500)]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    made = model(nodes, [value("x", 1), condition], [value("q0", 1)])
    assert check(made, tmp_path).status == "checked"
    graph = read(tmp_path / "model.onnx").graph
    assert len(graph.inner) == 3000
    assert graph.downstream(["x"]) == {"x", *(f"q{i}" for i in range(1500))}
