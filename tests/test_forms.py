"""Nodes written alike share a form; what is judged of it is told of each of them, once, in the order of the file."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from tests.support import DETECTOR, RULES, judge, load, save
from vexlint import engine
from vexlint.checks import arguments, attributes, ranges, types
from vexlint.checks.context import Context
from vexlint.config import Config
from vexlint.engine import Settings
from vexlint.model import forms
from vexlint.model import read as reading
from vexlint.model.graph import Node
from vexlint.model.kinds import Kind
from vexlint.model.model import Model
from vexlint.targets import resolve
from vexlint.values import FileReport

HEAD = (
    '<ir_version: 8, opset_import: ["" : 17{more}]> g (float[1,4,6,6] x) => (float[1,4,6,6] y) {{\n{body}\n}}\n{rest}'
)


def model(body: str, folder: Path, more: str = "", rest: str = "") -> Model:
    return load(HEAD.format(body=body, more=more, rest=rest), folder)


def nodes(body: str, folder: Path) -> list[Node]:
    return model(body, folder).graph.nodes


ALIKE = "a = LeakyRelu <alpha = 0.1> (x)\ny = {second}"


@pytest.mark.parametrize(
    ("second", "alike"),
    [
        ("LeakyRelu <alpha = 0.1> (a)", True),
        ("LeakyRelu <alpha = 0.2> (a)", False),
        ("LeakyRelu (a)", False),
        ("LeakyRelu <alpha = 1> (a)", False),
        ("Elu <alpha = 0.1> (a)", False),
        ("LeakyRelu <alpha = 0.1> (a, a)", False),
    ],
)
def test_nodes_written_alike_and_no_others_share_a_form(second: str, alike: bool, tmp_path: Path) -> None:
    one, other = nodes(ALIKE.format(second=second), tmp_path)
    assert (one.form is other.form) is alike
    assert one.attribute("alpha") == pytest.approx(0.1)


def test_an_argument_left_out_is_another_form(tmp_path: Path) -> None:
    one, other, third = nodes('a = Clip (x, "", x)\nb = Clip (a, x, "")\ny = Clip (b, x, x)', tmp_path)
    assert len({one.form, other.form, third.form}) == 3
    assert (one.input(1), other.input(2)) == (None, None)


def test_nodes_that_hold_tensors_have_each_its_own(tmp_path: Path) -> None:
    body = (
        "a = Constant <value = float {1.0}> ()\nb = Constant <value = float {2.0}> ()\nc = Add (a, b)\ny = Add (x, c)"
    )
    one, other, *_ = nodes(body, tmp_path)
    assert one.form is not other.form
    assert one.attribute("value") != other.attribute("value")


def test_a_function_at_another_opset_shares_none_with_the_main_graph(tmp_path: Path) -> None:
    rest = '<domain: "f", opset_import: ["" : 12]> F (v) => (w) { w = Softmax (v) }'
    both = model("a = Softmax (x)\ny = f.F (a)", tmp_path, ', "f" : 1', rest)
    here, there = (node for node in both.nodes("Softmax"))
    assert (here.attribute("axis"), there.attribute("axis")) == (-1, 1)


def test_a_call_of_a_function_that_has_a_standard_name_is_not_taken_for_the_standard(tmp_path: Path) -> None:
    rest = '<domain: "", opset_import: ["" : 17]> Relu (v) => (w) { w = Shape (v) }'
    called = model("a = Relu (x)\nb = Relu (x)\nc = Cast <to = 1> (b)\ny = Add (x, c)", tmp_path, "", rest)
    read = [use.inputs[0] for use in called.uses if use.node.op == "Cast"]
    assert [(kind.type, kind.rank) for kind in read] == [("tensor(int64)", 1)]


FLAWED = """
    a = Concat <axis = 1> (x, x)
    b = Concat (x, x)
    c = LeakyRelu <alpha = 0.1, slope = 2> (a)
    d = LeakyRelu <alpha = 0.1> (c)
    e = Concat (d, b)
    f = LeakyRelu <alpha = 0.2, slope = 3> (e)
    h = Softmax <axis = 7> (d)
    i = Softmax <axis = 1> (h)
    j = Softmax <axis = 7> (i)
    k = Not (j)
    l = Not (x)
    y = Identity (k)
"""


def test_every_node_of_a_flawed_form_is_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    flawed = model(FLAWED, tmp_path)
    found = {
        check.__name__: [[p.index for p in (hit.place, *hit.more)] for hit in check(flawed, Context())]
        for check in (
            arguments.node_arguments,
            attributes.unknown_attribute,
            ranges.attribute_range,
            types.node_types,
        )
    }
    assert found == {
        "node_arguments": [[1, 4]],
        "unknown_attribute": [[2, 5]],
        "attribute_range": [[6, 8]],
        "node_types": [[9, 10]],
    }


def test_a_node_of_a_function_called_in_two_ways_is_told_once(tmp_path: Path) -> None:
    rest = '<domain: "f", opset_import: ["" : 17]> F (v) => (w) { w = Softmax <axis = 9> (v) }'
    twice = model(
        "a = f.F (x)\nb = Shape (x)\nc = Cast <to = 1> (b)\nd = f.F (c)\ny = Add (a, d)", tmp_path, ', "f" : 1', rest
    )
    assert [hit.count for hit in ranges.attribute_range(twice, Context())] == [1]
    assert len({(hit.place.graph, hit.place.index) for hit in ranges.attribute_range(twice, Context())}) == 1


OPERATORS = "a = Relu (x)\ny = {then}"
RELU = '<domain: "", opset_import: ["" : 17]> Relu (v) => (w) { w = Shape (v) }'
SEEN = {
    "another opset": (HEAD.replace("17", "6"), "Add (a, x)", ""),
    "another type": (HEAD.replace("float[1,4,6,6] x", "int64[1,4,6,6] x"), "Cast <to = 1> (a)", ""),
    "another size": (HEAD.replace("[1,4,6,6] x", "[1,4,5,5] x"), "Add (a, x)", ""),
    "a function of that name": (HEAD, "Cast <to = 1> (a)", RELU),
    "the same": (HEAD, "Add (a, x)", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", SEEN)
def test_what_one_file_told_is_not_told_of_another(what: str, tmp_path: Path) -> None:
    """Alone, and after a file in which the same words meant something else."""
    head, then, rest = SEEN[what]
    path = save(head.format(body=OPERATORS.format(then=then), more="", rest=rest), tmp_path)
    before = save(HEAD.format(body=OPERATORS.format(then="Add (a, x)"), more="", rest=""), tmp_path, "before.onnx")

    def told() -> tuple[FileReport, list[tuple[Kind, ...]]]:
        return judge(path, rules=RULES), [use.inputs for use in reading.read(path).uses]

    forms._shared.clear()
    alone = told()
    forms._shared.clear()
    judge(before, rules=RULES)
    assert told() == alone


def test_a_folder_is_judged_as_its_files_are(tmp_path: Path) -> None:
    files = sorted(DETECTOR.glob("*.onnx"))
    alone = []
    for path in files:
        forms._shared.clear()
        alone.append(judge(path, rules=RULES))
    assert [judge(path, rules=RULES) for path in files] == alone


def test_what_is_remembered_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MANY", 50)
    for number in range(200):
        body = "a = LeakyRelu <alpha = {}> (x)\ny = Relu (a)"
        model(body.format(number), tmp_path)
    assert sum(kept.size for kept in forms._shared.values()) <= 60


def test_nothing_keeps_a_model_that_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    def read(path: Path) -> Model:
        found = reading.read(path)
        kept.append(weakref.ref(found))
        return found

    monkeypatch.setattr(engine, "read", read)
    settings = Settings(RULES, Config(), resolve([])[0])
    for path in sorted(DETECTOR.glob("*.onnx"))[:3]:
        engine.check_file(path, settings)
    gc.collect()
    assert kept and [ref() for ref in kept] == [None] * len(kept)
