"""`vexlint fix`: what it repairs at every depth, what it refuses to write, and how it speaks on the command line."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

sys.path.insert(0, str(Path(__file__).parents[1] / "golden_models"))
from shapes_detector import measure

from tests.support import DETECTOR, ROOT, RULES, save
from vexlint import cli, composites, engine, fixer, inline, repairs, targets
from vexlint.checks.context import Context
from vexlint.config import Config, Contract, Input
from vexlint.engine import Settings
from vexlint.model import wire
from vexlint.model.model import Model
from vexlint.outcomes import FixReport
from vexlint.repairs import Options
from vexlint.rulebook import Rule
from vexlint.values import Change, Hit, VexlintError

CUSTOM = DETECTOR / "custom_mish.onnx"
HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1, "own" : 1]>\n'
X = np.linspace(-3, 3, 16, dtype=np.float32).reshape(1, 1, 4, 4)
Array = NDArray[np.float32]


def settings(folder: Path, contract: Contract | None = None, named: tuple[str, ...] = (), **config: Any) -> Settings:
    """Every rule, and the default targets unless some are named."""
    found = Config(folder=folder, models=(contract,) if contract else (), **config)
    return Settings(RULES, found, targets.resolve(list(named))[0])


def fix(path: Path, run: Settings | None = None, output: str = "fixed.onnx", **options: Any) -> FixReport:
    run = run or settings(path.parent)
    return repairs.carry_out(repairs.plan(path, run, Options(**options)), path.parent / output, run)


def compute(path: Path, **feed: Any) -> Array:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0])


def statuses(report: FixReport) -> dict[str, str]:
    return {p.stage: p.status for p in report.proofs}


# At every depth

TYPE = "float[1,1,4,4]"
PLACES = {  # where a fragment, from {0} to {1}, can be
    "main": f"net ({TYPE} x) => ({TYPE} y) {{{{ {{main}} }}}}",
    "if": f"""net (bool c, {TYPE} x) => ({TYPE} y) {{{{
      y = If (c) <then_branch = a () => ({TYPE} p) {{{{
          p = If (c) <then_branch = b () => ({TYPE} bp) {{{{ {{then}} }}}},
                      else_branch = d () => ({TYPE} dp) {{{{ {{other}} }}}}>
      }}}}, else_branch = e () => ({TYPE} ep) {{{{ ep = Identity (x) }}}}> }}}}""",
    "loop": f"""net (bool c, {TYPE} x) => ({TYPE} y) <int64 n = {{{{1}}}}> {{{{
      y = If (c) <then_branch = a () => ({TYPE} p) {{{{
          p = Loop (n, c, x) <body = b (int64 i, bool on, {TYPE} state) => (bool go, {TYPE} out) {{{{
              go = Identity (on)
              {{body}} }}}}>
      }}}}, else_branch = e () => ({TYPE} ep) {{{{ ep = Identity (x) }}}}> }}}}""",
    "scan": f"""net (bool c, {TYPE} x) => ({TYPE} y) {{{{
      y = If (c) <then_branch = a () => ({TYPE} p) {{{{
          p = Scan <num_scan_inputs = 1, body = b (float[1,4,4] row) => (float[1,4,4] out) {{{{
              batch = Constant <value = int64[1] {{{{0}}}}> ()
              state = Unsqueeze (row, batch)
              {{scan}}
              out = Squeeze (made, batch) }}}}> (x)
      }}}}, else_branch = e () => ({TYPE} ep) {{{{ ep = Identity (x) }}}}> }}}}""",
    "function": f"""net ({TYPE} x) => ({TYPE} y) {{{{ y = own.Outer (x) }}}}
      <domain: "own", opset_import: ["" : 17, "com.acme" : 1]> Inner (u) => (v) {{{{ {{inner}} }}}}
      <domain: "own", opset_import: ["" : 17, "own" : 1]> Outer (r) => (s) {{{{ s = own.Inner (r) }}}}""",
}
ENDS = {"main": "x y", "then": "x bp", "other": "x dp", "body": "state out", "scan": "state made", "inner": "u v"}
CORNERS = '<mode = "linear", coordinate_transformation_mode = "align_corners">'
FRAGMENTS = {
    "VEX101": "{1} = com.acme.Mish ({0})",
    "VEX103": "{1} = com.microsoft.QuickGelu ({0})",
    "VEX205": "{1} = ai.onnx.ml.Binarizer ({0})",
    "VEX301": """{1}_twice = Constant <value = float[4] {{1,1,2,2}}> ()
        {1}_up = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> ({0}, , {1}_twice)
        {1} = MaxPool <kernel_shape = [2,2], strides = [2,2]> ({1}_up)""",
    "VEX701": '["n"] {1}_t = Abs ({0})\n ["n"] {1} = Neg ({1}_t)',
    "VEX703": "{1} = Neg ({1}_t)\n {1}_t = Abs ({0})",
}
STAGES = {"VEX101": "numbers", "VEX103": "numbers", "VEX301": "meaning"}


def upsampled(x: Array) -> Array:
    """Twice as wide and high, by pixel centres, then the largest of each 2x2."""
    wide = x
    for axis in (2, 3):
        n = wide.shape[axis]
        at = np.clip((np.arange(2 * n) + 0.5) / 2 - 0.5, 0, n - 1)
        low = np.floor(at).astype(int)
        share = (at - low).reshape([-1 if a == axis else 1 for a in range(4)])
        high = np.minimum(low + 1, n - 1)
        wide = np.take(wide, low, axis) * (1 - share) + np.take(wide, high, axis) * share
    return np.asarray(wide.reshape(1, 1, 4, 2, 4, 2).max((3, 5)), np.float32)


COMPUTES: dict[str, Callable[[Array], Array]] = {
    "VEX101": lambda x: np.asarray(x * np.tanh(np.log1p(np.exp(x)))),
    "VEX103": lambda x: x / (1 + np.exp(-1.702 * x)),
    "VEX205": lambda x: (x > 0).astype(np.float32),
    "VEX301": upsampled,
    "VEX701": lambda x: -np.abs(x),
    "VEX703": lambda x: -np.abs(x),
}


def placed(code: str, place: str) -> str:
    fragments = {name: FRAGMENTS[code].format(*ends.split()) for name, ends in ENDS.items()}
    text = HEAD + PLACES[place].format(**fragments)
    return text.replace('"com.acme"', '"com.microsoft"') if code == "VEX103" else text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("code", FRAGMENTS)
def test_every_fix_works_at_every_depth_and_is_idempotent(code: str, place: str, tmp_path: Path) -> None:
    path = save(placed(code, place), tmp_path)
    run = settings(tmp_path, Contract("*", resize="half_pixel"), composites={"com.acme::Mish": "Mish"})
    assert code in [f.code for f in engine.check_file(path, run).findings]
    report = fix(path, run, unsafe=True)
    assert report.reason is None
    assert {c.code for c in report.changes} == {code}
    assert statuses(report) == {STAGES.get(code, "structure"): "on purpose" if code == "VEX301" else "proven"}
    assert report.remaining is not None
    assert code not in [f.code for f in report.remaining.findings]
    feed = {"x": X} if place in ("main", "function") else {"x": X, "c": np.array(True)}
    assert np.abs(compute(tmp_path / "fixed.onnx", **feed) - COMPUTES[code](X)).max() < 1e-6
    again = fix(tmp_path / "fixed.onnx", run, "again.onnx", unsafe=True)
    assert again.changes == ()
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "fixed.onnx").read_bytes()


@pytest.mark.parametrize("by", ["contract", "--shape"])
def test_axes_are_frozen_by_contract_and_by_option_through_subgraphs(by: str, tmp_path: Path) -> None:
    text = """net (bool c, float[N,3,H,W] x) => (float[N,3,H,W] y) {
      t = Relu (x)
      y = If (c) <then_branch = a () => (float[N,3,H,W] p) { p = Abs (t) },
                  else_branch = b () => (float[N,3,H,W] q) { q = Neg (t) }>
    }"""
    path = save(HEAD + text, tmp_path)
    shape = (2, 3, 8, 6)
    contract = Contract("*", inputs={"x": Input(shape)}) if by == "contract" else None
    report = fix(path, settings(tmp_path, contract), shapes={"x": shape} if by == "--shape" else {})
    assert statuses(report) == {"numbers": "proven"}
    made = onnx.load(tmp_path / "fixed.onnx").graph
    branches = [a.g for a in made.node[1].attribute]
    entries = [made.input[1], made.output[0], *(b.output[0] for b in branches)]
    assert [[d.dim_value for d in e.type.tensor_type.shape.dim] for e in entries] == [list(shape)] * 4
    assert fix(tmp_path / "fixed.onnx", settings(tmp_path, contract), "again.onnx").changes == ()


def test_a_symbol_that_would_be_two_sizes_is_said_of_nobody(tmp_path: Path) -> None:
    path = save(HEAD + "net (float[S,S] x, float[S] z) => (float[S,S] y) { y = Relu (x) }", tmp_path)
    fix(path, shapes={"x": (2, 3)}, verify=False)
    made = onnx.load(tmp_path / "fixed.onnx").graph
    other = made.input[1].type.tensor_type.shape.dim[0]
    assert (other.HasField("dim_param"), other.HasField("dim_value")) == (False, False)
    assert [d.dim_value for d in made.output[0].type.tensor_type.shape.dim] == [2, 3]


def test_imports_are_dropped_and_those_of_functions_kept(tmp_path: Path) -> None:
    text = HEAD.replace('"own" : 1', '"own" : 1, "ai.onnx.training" : 99') + placed("VEX701", "function")[len(HEAD) :]
    report = fix(save(text, tmp_path))
    assert {c.code for c in report.changes} == {"VEX206", "VEX701"}
    made = onnx.load(tmp_path / "fixed.onnx")
    assert [o.domain for o in made.opset_import] == ["", "com.acme", "own"]
    assert [o.domain for o in made.functions[0].opset_import] == ["", "com.acme"]


# Composites


def test_a_custom_node_that_nobody_listed_is_left_alone(tmp_path: Path) -> None:
    path = save(HEAD + "net (float[4] x) => (float[4] y) { y = com.acme.Mish (x) }", tmp_path)
    report = fix(path)
    assert report.changes == ()
    assert (tmp_path / "fixed.onnx").read_bytes() == path.read_bytes()
    assert report.remaining is not None
    assert [f.code for f in report.remaining.findings] == ["VEX101"]
    assert fix(path, settings(tmp_path, composites={"com.acme::Mish": "Mish"})).changes != ()


@pytest.mark.parametrize("call", ["<alpha = 2.0> (x)", "(x, x)"])
def test_a_call_that_may_be_another_function_stays(call: str, tmp_path: Path) -> None:
    path = save(HEAD + f"net (float[4] x) => (float[4] y) {{ y = com.acme.Mish {call} }}", tmp_path)
    assert fix(path, settings(tmp_path, composites={"com.acme::Mish": "Mish"})).changes == ()


@pytest.mark.parametrize(("op", "opset"), [("Gelu", 17), ("QuickGelu <alpha = 1.5>", 13)])
def test_onnxruntimes_own_operators_are_compared_with_its_kernel(op: str, opset: int, tmp_path: Path) -> None:
    """ONNX Runtime runs its kernel in the file before the fix, whatever function stands beside it."""
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n'
    path = save(head + f"net (float[4] x) => (float[4] y) {{ y = com.microsoft.{op} (x) }}", tmp_path)
    x = np.array([-2, -0.5, 0.5, 3], np.float32)
    before = compute(path, x=x)
    assert statuses(fix(path)) == {"numbers": "proven"}
    assert np.abs(compute(tmp_path / "fixed.onnx", x=x) - before).max() < 1e-6


@pytest.mark.parametrize(("ir", "opset"), [(3, 8), (6, 11), (7, 13), (11, 23)])
def test_old_files_are_proven_too(ir: int, opset: int, tmp_path: Path) -> None:
    """A function needs IR version 8: the file before the fix gets one for the proof only."""
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "com.acme" : 1]>\n'
    path = save(head + "net (float[4] x) => (float[4] y) { y = com.acme.Mish (x) }", tmp_path)
    report = fix(path, settings(tmp_path, composites={"com.acme::Mish": "Mish"}))
    assert statuses(report) == {"numbers": "proven"}
    assert onnx.load(tmp_path / "fixed.onnx").ir_version == ir


def test_a_function_may_be_the_only_one_to_import_a_domain(tmp_path: Path) -> None:
    text = placed("VEX101", "function").replace('"com.acme" : 1, "own" : 1]>\nnet', '"own" : 1]>\nnet')
    report = fix(save(text, tmp_path), settings(tmp_path, composites={"com.acme::Mish": "Mish"}))
    assert statuses(report) == {"numbers": "proven"}


@pytest.mark.parametrize("name", ["link.onnx", "hard link.onnx", "détecteur 模型 %20.onnx"])
def test_weights_are_found_by_the_proof_whatever_the_file_is_called(name: str, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    blob = tmp_path / "cache" / "blob"
    blob.write_bytes(CUSTOM.read_bytes())
    path = tmp_path / name
    if name == "link.onnx":
        path.symlink_to(blob)
    else:
        path.hardlink_to(blob)
    assert statuses(fix(path)) == {"numbers": "proven"}


# What is not proven is not written


def recording(folder: Path) -> Path:
    """PyTorch's outputs of the golden detector, with the inputs that they were made from."""
    path = folder / "pytorch.npz"
    np.savez(path, output0=measure.recorded()["clean"], images=measure.inputs())
    return path


@pytest.fixture
def custom(tmp_path: Path) -> Path:
    path = tmp_path / "custom_mish.onnx"
    path.write_bytes(CUSTOM.read_bytes())
    return path


def assert_refused(report: FixReport, path: Path, stage: str) -> str:
    """That nothing was written; returns the reason."""
    assert (report.output, report.remaining) == (None, None)
    assert not (path.parent / "fixed.onnx").exists()
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []
    assert statuses(report)[stage] == "not proven"
    assert report.reason is not None
    assert report.reason.startswith(f"{stage}: ")
    return report.reason


def test_recorded_outputs_prove_the_right_composite(custom: Path) -> None:
    report = fix(custom, expect=recording(custom.parent))
    assert statuses(report) == {"recorded outputs": "proven"}


def test_recorded_outputs_are_compared_where_nothing_was_fixed(custom: Path) -> None:
    clean = custom.with_name("clean.onnx")
    clean.write_bytes((DETECTOR / "clean.onnx").read_bytes())
    assert statuses(fix(clean, expect=recording(custom.parent))) == {"recorded outputs": "proven"}
    other = custom.with_name("other.onnx")
    other.write_bytes((DETECTOR / "align_corners.onnx").read_bytes())
    assert statuses(fix(other, expect=recording(custom.parent))) == {"recorded outputs": "not proven"}


def test_recorded_outputs_find_a_wrong_composite_out(custom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against itself a composite that computes something else is consistent; against PyTorch it is not."""
    known = composites.load()
    wrong = {**known, "Mish": replace(known["Mish"], forms=known["SiLU"].forms)}
    monkeypatch.setattr(composites, "load", lambda folder=None: wrong)
    report = fix(custom, expect=recording(custom.parent))
    assert "max abs" in assert_refused(report, custom, "recorded outputs")


def test_a_rewrite_that_computes_something_else_is_found_out(custom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = inline.expand

    def wrong(*given: Any) -> Any:
        made = right(*given)
        made[-1].op_type = "Add"
        return made

    monkeypatch.setattr(inline, "expand", wrong)
    assert "max abs" in assert_refused(fix(custom), custom, "numbers")


def test_what_nothing_can_run_is_not_proven(custom: Path, tmp_path: Path) -> None:
    made = onnx.load(custom)
    made.graph.node.append(onnx.helper.make_node("Other", ["images"], ["other"], domain="shapes"))
    made.graph.output.append(onnx.helper.make_tensor_value_info("other", 1, [1, 3, 320, 320]))
    onnx.save(made, custom)
    assert "Other" in assert_refused(fix(custom), custom, "numbers")


def test_numbers_that_are_none_are_not_proven_and_are_named(tmp_path: Path) -> None:
    text = """net (float[4] x) => (float[4] y) <float[4] w = {1,1,1,0}> {
      t = Div (w, w)
      u = com.acme.Mish (x)
      y = Add (t, u)
    }"""
    path = save(HEAD + text, tmp_path)
    reason = assert_refused(fix(path, settings(tmp_path, composites={"com.acme::Mish": "Mish"})), path, "numbers")
    assert "8 elements are NaN or infinite" in reason


def plain(path: Path) -> Path:
    """A model with two nodes of one name, a dead node and a weight."""
    text = """net (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> {
      ["n"] t = Add (x, w)
      ["n"] y = LeakyRelu <alpha = 0.5> (t)
      ["dead"] u = Abs (x)
    }"""
    return save(HEAD + text, path)


def dead_node(m: ModelProto) -> None:
    del m.graph.node[2]


def weight(m: ModelProto) -> None:
    m.graph.initializer[0].float_data[0] = 2


def attribute(m: ModelProto) -> None:
    m.graph.node[1].attribute[0].f = 0.25


def opset(m: ModelProto) -> None:
    m.opset_import[0].version = 18


def metadata(m: ModelProto) -> None:
    m.metadata_props.add(key="a", value="b")


def input_of_a_node(m: ModelProto) -> None:
    m.graph.node[1].input[0] = "x"


def unknown_field(m: ModelProto) -> None:
    m.graph.MergeFromString(b"\xfa\x3e\x03abc")


SABOTEURS = (dead_node, weight, attribute, opset, metadata, input_of_a_node, unknown_field)


@pytest.mark.parametrize("sabotage", SABOTEURS, ids=lambda f: f.__name__)
def test_a_structural_fix_that_does_more_than_it_may_is_found_out(
    sabotage: Callable[[ModelProto], None], tmp_path: Path
) -> None:
    path, rule = plain(tmp_path), RULES["VEX701"]

    def greedy(model: Model, *given: Any) -> Any:
        assert rule.fix is not None
        changes = rule.fix(model, *given)
        sabotage(model.proto)
        return changes

    run = replace(settings(tmp_path), rules={**RULES, "VEX701": replace(rule, fix=greedy)})
    reason = assert_refused(fix(path, run), path, "structure")
    assert reason == "structure: more than names differs"


def test_an_unsafe_fix_that_does_more_than_it_may_is_found_out(tmp_path: Path) -> None:
    path, rule = save(placed("VEX301", "main"), tmp_path), RULES["VEX301"]

    def greedy(model: Model, *given: Any) -> Any:
        assert rule.fix is not None
        model.graph.nodes[2].proto.attribute[0].ints[0] = 1
        return rule.fix(model, *given)

    contract = Contract("*", resize="half_pixel")
    run = replace(settings(tmp_path, contract), rules={**RULES, "VEX301": replace(rule, fix=greedy)})
    assert assert_refused(fix(path, run, unsafe=True), path, "meaning") == "meaning: more than modes differs"


def test_a_fix_that_breaks_a_good_file_is_our_mistake(tmp_path: Path) -> None:
    path, rule = plain(tmp_path), RULES["VEX701"]

    def breaking(model: Model, *_: Any) -> list[Change]:
        for index, found in enumerate(model.graph.nodes):
            found.proto.op_type, found.proto.name = "Nothing", f"n{index}"
        return [Change("VEX701", model.graph.nodes[0].place, "a", "b")]

    run = replace(settings(tmp_path), rules={"VEX701": replace(rule, fix=breaking)})
    with pytest.raises(VexlintError, match=r"VEX701 makes a file that onnx\.checker refuses, please report it"):
        fix(path, run)


def test_order_means_something_where_two_nodes_make_one_value() -> None:
    text = HEAD + "net (float[4] x) => (float[4] y) { t = Abs (x)\n t = Neg (x)\n y = Relu (t) }"
    one, other = onnx.parser.parse_model(text), onnx.parser.parse_model(text)
    other.graph.node[0].op_type, other.graph.node[1].op_type = "Neg", "Abs"
    assert fixer.same_computation(one, one)
    assert not fixer.same_computation(one, other)


# Fixes that fight


def renaming(code: str, this: str, that: str) -> Rule:
    """A rule that minds one name and its fix gives another."""

    def check(model: Model, context: Context) -> Iterator[Hit]:
        yield from (Hit(n.place, this, "", fix="safe") for n in model.graph.nodes if n.name == this)

    def mend(model: Model, findings: list[Any], context: Context) -> list[Change]:
        for found in findings:
            model.graph.nodes[found.place.index].proto.name = that
        return [Change(code, f.place, this, that) for f in findings]

    return replace(RULES["VEX701"], code=code, check=check, fix=mend)


def test_fixes_that_undo_each_other_are_named_after_ten_rounds(tmp_path: Path) -> None:
    path = plain(tmp_path)
    rules = {r.code: r for r in (renaming("VEX997", "dead", "b"), renaming("VEX998", "b", "dead"))}
    with pytest.raises(VexlintError, match="fixes undo each other: VEX997, VEX998 still change something"):
        repairs.plan(path, replace(settings(tmp_path), rules=rules), Options())
    del rules["VEX998"]
    assert len(repairs.plan(path, replace(settings(tmp_path), rules=rules), Options()).changes) == 1
    rows = {
        f"VEX9{i}": renaming(f"VEX9{i}", "dead" if i == 10 else f"n{i - 1}", f"n{i}") for i in range(10, 10 + fixer.CAP)
    }
    backwards = dict(reversed(rows.items()))  # one step a round: more than the cap
    with pytest.raises(VexlintError, match="fixes undo each other"):
        repairs.plan(path, replace(settings(tmp_path), rules=backwards), Options())
    assert len(repairs.plan(path, replace(settings(tmp_path), rules=rows), Options()).changes) == fixer.CAP


# Contracts, waivers, records


def test_what_remains_is_judged_by_the_contract_of_the_source(tmp_path: Path) -> None:
    path = save(placed("VEX701", "main"), tmp_path)
    contract = Contract("model.onnx", opset=13)
    report = fix(path, settings(tmp_path, contract))
    assert report.remaining is not None
    assert [(f.code, f.severity.value) for f in report.remaining.findings] == [("VEX204", "error")]
    run = settings(tmp_path, contract)
    both = replace(run, config=replace(run.config, models=(contract, Contract("board.onnx", opset=17))))
    assert fix(path, both, "board.onnx").remaining == replace(
        report.remaining, path=str(tmp_path / "board.onnx"), findings=()
    )


def test_what_a_person_waived_is_not_fixed(tmp_path: Path) -> None:
    from vexlint.config import Waiver

    path = save(placed("VEX301", "main"), tmp_path)
    contract = Contract("*", resize="half_pixel")
    waiver = Waiver(rule="VEX301", path="*", reason="trained with align_corners=True")
    assert fix(path, settings(tmp_path, contract, waivers=(waiver,)), unsafe=True).changes == ()
    assert fix(path, settings(tmp_path, contract), unsafe=True).changes != ()
    assert fix(path, settings(tmp_path, contract, waivers=(replace(waiver, reason=""),)), unsafe=True).changes != ()


def record(path: Path) -> Mapping[str, str]:
    return {e.key: e.value for e in onnx.load(path).metadata_props}


def test_a_file_says_how_it_was_proven_and_does_not_forget(tmp_path: Path) -> None:
    run = settings(tmp_path, Contract("*", resize="half_pixel"))
    path = save(
        placed("VEX301", "main").replace("y_up = Resize", '["a"] y_up = Resize').replace("y = Max", '["a"] y = Max'),
        tmp_path,
    )
    fix(path, run, "one.onnx", verify=False)
    assert record(tmp_path / "one.onnx")["vexlint.proof"] == "not verified (--no-verify)"
    fix(tmp_path / "one.onnx", run, "two.onnx", unsafe=True)
    found = record(tmp_path / "two.onnx")
    assert found["vexlint.fixed"] == "VEX301, VEX701"
    assert found["vexlint.proof"] == "not verified (--no-verify); meaning: on purpose"
    assert list(found) == ["vexlint.version", "vexlint.fixed", "vexlint.proof"]


def test_sizes_that_the_network_was_not_made_for_are_said(custom: Path) -> None:
    with pytest.raises(VexlintError, match=r"give sizes it was made for: .*node name: /neck/Add"):
        repairs.plan(DETECTOR / "dynamic.onnx", settings(custom.parent), Options(shapes={"images": (1, 3, 300, 330)}))


def test_shapes_that_the_file_contradicts_are_errors(tmp_path: Path) -> None:
    path = save(HEAD + "net (float[N,4] images) => (float[N,4] y) { y = Relu (images) }", tmp_path)
    for shape, said in {
        (1, 4, 1): r"\[1,4,1\] has 3 axes, the file says \[N,4\]",
        (1, 5): r"\[1,5\] is not what the file fixes, \[N,4\]",
    }.items():
        with pytest.raises(VexlintError, match=said):
            repairs.plan(path, settings(tmp_path), Options(shapes={"images": shape}))
    with pytest.raises(VexlintError, match=r"--shape image: no such input; did you mean images\?; there is images"):
        repairs.plan(path, settings(tmp_path), Options(shapes={"image": (1, 4)}))


# Must-show 1


def test_the_custom_detector_becomes_one_that_every_runtime_loads(custom: Path) -> None:
    """ONNX Runtime and OpenVINO load the fixed file and give what PyTorch recorded; nothing else in it is changed."""
    assert statuses(fix(custom)) == {"numbers": "proven"}
    fixed, known, images = custom.parent / "fixed.onnx", measure.recorded()["clean"], measure.inputs()
    drifts = [measure.drift(measure.run(fixed, images), known)]
    try:
        import openvino
    except ImportError:
        print("OpenVINO is not installed: only ONNX Runtime was asked")
    else:
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(fixed), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found = np.concatenate([np.asarray(compiled(image[None])[0]) for image in images])
        drifts.append(measure.drift(found, known))
    assert all(d.box_px < 1e-3 and d.score < 1e-5 for d in drifts), drifts
    assert_untouched(custom, fixed)


def assert_untouched(source: Path, fixed: Path) -> None:
    """Everything but the seven calls, their domain's import and the record is equal, the weights byte for byte."""
    one, other = onnx.load(source), onnx.load(fixed)
    calls = [n for n in one.graph.node if n.domain]
    names = {n.name for n in one.graph.node}
    assert len(calls) == 7
    assert [n for n in one.graph.node if not n.domain] == [n for n in other.graph.node if n.name in names]
    made = [n for n in other.graph.node if n.name not in names]
    assert {n.name.rpartition("/")[0] for n in made} == {n.name for n in calls}
    assert [o.domain for o in other.opset_import] == [""]
    for m in (one, other):
        del m.graph.node[:], m.opset_import[:]
        kept = [e for e in m.metadata_props if not e.key.startswith("vexlint.")]
        del m.metadata_props[:]
        m.metadata_props.extend(kept)
    assert one.SerializeToString() == other.SerializeToString()
    given, written = source.read_bytes(), fixed.read_bytes()
    pieces = [given[a:b] for payload in wire.strip(source).payloads for a, b in payload.fields]
    assert len(pieces) > 10
    assert all(piece in written for piece in pieces)


# The command line

PROGRAM = [sys.executable, "-m", "vexlint"]


def vexlint(*words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*PROGRAM, *map(str, words)], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_one_document_of_json_and_exit_codes(tmp_path: Path) -> None:
    path = plain(tmp_path)
    done = vexlint("fix", path, "-o", "fixed.onnx", "--format", "json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["output"], found["reason"]) == ("fixed.onnx", None)
    assert [(c["code"], c["before"], c["after"]) for c in found["changes"]] == [
        ("VEX701", "name n", "name n_1"),
        ("VEX705", "Abs that no output needs", "dropped"),
    ]
    assert [(p["stage"], p["status"]) for p in found["proofs"]] == [("structure", "proven"), ("numbers", "proven")]
    again = vexlint("fix", "fixed.onnx", "-o", "again.onnx", "--fail-on", "info", folder=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    assert "no fix applies, an identical copy written to again.onnx" in again.stdout
    assert (tmp_path / "fixed.onnx").read_bytes() == (tmp_path / "again.onnx").read_bytes()
    save(HEAD + "net (float[4] x) => (float[4] y) { y = com.acme.Mish (x) }", tmp_path, "left.onnx")
    assert vexlint("fix", "left.onnx", "-o", "out.onnx", folder=tmp_path).returncode == 1
    assert (
        vexlint(
            "fix", "left.onnx", "-o", "out.onnx", "--fail-on", "error", "--ignore", "VEX101", folder=tmp_path
        ).returncode
        == 0
    )


def test_what_is_selected_is_fixed_and_what_remains_is_judged_by_every_rule(custom: Path) -> None:
    words = ("--select", "VEX101", "--no-verify", "--format", "json")
    done = vexlint("fix", custom.name, "-o", "fixed.onnx", *words, folder=custom.parent)
    remaining = json.loads(done.stdout)["remaining"]["findings"]
    assert [f["code"] for f in remaining] == ["VEX501"]


def test_a_difference_is_shown_and_nothing_is_written(custom: Path) -> None:
    before = custom.read_bytes()
    done = vexlint("fix", custom.name, "--diff", folder=custom.parent)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["--- custom_mish.onnx", "+++ fixed"]
    assert sum(line.startswith("-") and "shapes.Mish" in line for line in lines) == 7
    assert max(map(len, lines)) < 1000, "no weights"
    assert [p.name for p in custom.parent.iterdir()] == [custom.name]
    assert custom.read_bytes() == before
    clean = vexlint("fix", DETECTOR / "clean.onnx", "--diff", folder=custom.parent)
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "", "")


MISTAKES = [
    (["plain.onnx"], "say where to write: one of -o FILE, --in-place, --diff"),
    (["plain.onnx", "-o", "x.onnx", "--expect", "y.npz", "--no-verify"], "--expect asks for a proof and --no-verify"),
    (["plain.onnx", "--diff", "--format", "json"], "--diff shows text: leave --format out"),
    (["plain.onnx", "-o", "out.onnx", "--in-place"], "say where to write"),
    (["plain.onnx", "--diff", "--in-place"], "say where to write"),
    (["plain.onnx", "-o", "plain.onnx"], "plain.onnx is the source itself"),
    (["plain.onnx", "-o", "link.onnx"], "link.onnx is the source itself"),
    (["plain.onnx", "-o", "hard.onnx"], "hard.onnx is the source itself"),
    (["plain.onnx", "-o", "none/out.onnx"], "none/out.onnx: cannot be written: there is no folder none"),
    (["plain.onnx", "-o", "."], "it is a folder"),
    (["plain.onnx", "-o", "out.onnx", "--shape", "z=4"], "--shape z: no such input"),
    (["plain.onnx", "-o", "out.onnx", "--shape", "x=1x4"], "has 2 axes, the file says [4]"),
    (["plain.onnx", "-o", "out.onnx", "--shape", "x"], "write it as NAME=1x3x320x320"),
    (["plain.onnx", "-o", "out.onnx", "--select", "VEX999"], "'VEX999' names no rule"),
    (["plain.onnx", "-o", "out.onnx", "--format", "jsn"], "unknown format 'jsn'; did you mean json?"),
    (["broken.onnx", "-o", "out.onnx"], "broken.onnx: not an ONNX model"),
    (["none.onnx", "-o", "out.onnx"], "none.onnx: cannot be opened"),
    ([".", "-o", "out.onnx"], ".: "),
]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workplace")
    path = plain(folder).rename(folder / "plain.onnx")
    (folder / "link.onnx").symlink_to(path)
    (folder / "hard.onnx").hardlink_to(path)
    (folder / "broken.onnx").write_bytes(b"no model")
    return folder


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    words: list[str], said: str, workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {p.name: p.read_bytes() for p in workplace.iterdir()}
    monkeypatch.chdir(workplace)
    monkeypatch.setattr(sys, "argv", ["vexlint", "fix", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.startswith("vexlint: ")
    assert said in err
    assert len(err.splitlines()) == 1
    assert {p.name: p.read_bytes() for p in workplace.iterdir()} == before


def test_in_place_is_said_aloud_and_keeps_permissions(custom: Path) -> None:
    custom.chmod(0o640)
    done = vexlint("fix", custom.name, "--in-place", "--no-verify", folder=custom.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "8 changes, written to custom_mish.onnx, not verified" in done.stdout
    assert record(custom)["vexlint.proof"] == "not verified (--no-verify)"
    assert stat.S_IMODE(custom.stat().st_mode) == 0o640
    assert [p.name for p in custom.parent.iterdir()] == [custom.name]


def test_what_is_not_proven_exits_with_2_and_says_why(custom: Path) -> None:
    wrong = custom.parent / "wrong.npz"
    np.savez(wrong, output0=measure.recorded()["clean"][::-1], images=measure.inputs())
    done = vexlint(
        "fix", custom.name, "-o", "fixed.onnx", "--expect", "wrong.npz", "--format", "json", folder=custom.parent
    )
    assert done.returncode == 2
    found = json.loads(done.stdout)
    assert found["reason"].startswith("recorded outputs: ")
    assert "max abs" in found["reason"]
    assert (found["output"], found["remaining"]) == (None, None)
    assert not (custom.parent / "fixed.onnx").exists()


@pytest.mark.parametrize(
    ("sent", "code", "said"), [(signal.SIGINT, 2, "vexlint: interrupted\n"), (signal.SIGTERM, 128 + 15, "")]
)
def test_stopped_while_it_is_being_proven_it_leaves_nothing(
    sent: signal.Signals, code: int, said: str, custom: Path
) -> None:
    made = custom.parent / "made"
    made.mkdir()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(made)}
    child = subprocess.Popen(
        [*PROGRAM, "fix", custom.name, "--in-place"], cwd=custom.parent, env=env, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not list(made.rglob("the fixed model.onnx")) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(sent)
    assert child.communicate(timeout=30)[1] == said
    assert child.returncode == code
    assert list(made.iterdir()) == []
    assert custom.read_bytes() == CUSTOM.read_bytes()


def test_a_missing_runtime_is_named_with_the_line_that_installs_it(
    custom: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vexlint.runtimes import base

    monkeypatch.setitem(base.PROBED, "onnxruntime", ("onnxruntime_that_is_not_here", base.PROBED["onnxruntime"][1]))
    monkeypatch.setattr(sys, "argv", ["vexlint", "fix", str(custom), "-o", str(custom.parent / "fixed.onnx")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().out
    assert "pip install 'vexlint[cpu]'" in said
    assert said.endswith("\nnothing was written\n")
    assert [p.name for p in custom.parent.iterdir()] == [custom.name]


# Sizes of -1


def test_axes_of_minus_one_are_frozen_in_inputs_and_outputs(tmp_path: Path) -> None:
    """Paddle's exporter writes -1 for "any", in inputs and outputs alike."""
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 12]> net (float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Sigmoid (x) }'
    )
    for entry in (*proto.graph.input, *proto.graph.output):
        for axis in (0, 2, 3):
            entry.type.tensor_type.shape.dim[axis].dim_value = -1
    onnx.save(proto, tmp_path / "open.onnx")
    done = vexlint("fix", "open.onnx", "--shape", "x=1x3x8x8", "-o", "closed.onnx", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    closed = onnx.load(tmp_path / "closed.onnx").graph
    for entry in (*closed.input, *closed.output):
        assert [d.dim_value for d in entry.type.tensor_type.shape.dim] == [1, 3, 8, 8]


# A private operator that is called like a composite


def test_what_a_mapping_takes_for_granted_is_said(tmp_path: Path) -> None:
    """The composite is compared with itself: that com.acme::Mish means it is the configuration's word."""
    save(PRIVATE, tmp_path, "private.onnx")
    (tmp_path / "vexlint.toml").write_text('[composites]\n"com.acme::Mish" = "Mish"\n')
    done = vexlint("fix", "private.onnx", "-o", "fixed.onnx", folder=tmp_path)
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert "com.acme::Mish = Mish is taken from [composites]: only --expect proves that" in said


def test_what_remains_says_what_would_change_it(tmp_path: Path) -> None:
    save(PRIVATE, tmp_path, "private.onnx")
    done = vexlint("fix", "private.onnx", "-o", "copy.onnx", folder=tmp_path)
    said = " ".join(done.stdout.split())
    assert "1 error, 0 warnings, 0 infos remain: error VEX101 custom-node: known by name only? say it in" in said


PRIVATE = """<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
net (float[1,3,8,8] x) => (float[1,3,8,8] y) { ["/act"] y = com.acme.Mish (x) }"""
MEANT = {
    "Mish": "s = Softplus (x) t = Tanh (s) y = Mul (x, t)",
    "SiLU": "s = Sigmoid (x) y = Mul (x, s)",
}


@pytest.mark.parametrize(("meant", "code"), [("Mish", 0), ("SiLU", 2)])
def test_a_namesake_is_replaced_only_where_recorded_outputs_prove_it(meant: str, code: int, tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> net (float[1,3,8,8] x) => (float[1,3,8,8] y) {'
    save(f"{head} {MEANT[meant]} }}", tmp_path, "meant.onnx")
    save(PRIVATE, tmp_path, "private.onnx")
    recording = vexlint("verify", "meant.onnx", "meant.onnx", "--save-outputs", "out.npz", folder=tmp_path)
    assert recording.returncode == 0, recording.stdout + recording.stderr
    alone = vexlint("fix", "private.onnx", "-o", "alone.onnx", folder=tmp_path)
    assert alone.returncode == 1, "a name alone is a guess: the finding remains"
    assert "no fix applies" in alone.stdout
    proven = vexlint("fix", "private.onnx", "-o", "fixed.onnx", "--expect", "out.npz", folder=tmp_path)
    assert proven.returncode == code, proven.stdout + proven.stderr
    assert (tmp_path / "fixed.onnx").exists() == (code == 0)
