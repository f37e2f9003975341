"""A fix changes what it says and nothing else: every fix in each of the 53 models of `tests.fidelity`.

A fix's bad construct is planted in the model, and what the fix should make of it in a copy. Fixed and planned file must
be equal, field by field, but for vexlint's own record; what was left on disk while fixing must be there byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.fidelity import FEATURES, UNKNOWN, Feature, node, value, weights
from vexlint import repairs, rulebook, targets
from vexlint.config import Config, Contract, Input
from vexlint.draft import Draft
from vexlint.engine import Settings
from vexlint.model import wire
from vexlint.model.read import read
from vexlint.repairs import Options

RULES = rulebook.load()
HALF = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
CORNERS = HALF | {"coordinate_transformation_mode": "align_corners"}
PICTURE, DOUBLED = (1, 1, 4, 4), (1, 1, 8, 8)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody needs a thousand small files after a power cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@dataclass(frozen=True, slots=True)
class Graft:
    """What one fix is for, what it makes of it, and what it has to be told."""

    bad: Callable[[ModelProto], None]
    good: Callable[[ModelProto], None]
    contract: Contract = field(default_factory=Contract)
    composites: Mapping[str, str] = field(default_factory=dict)


def twins(second: str) -> Callable[[ModelProto], None]:
    def plant(m: ModelProto) -> None:
        m.graph.node.extend([node("Abs", "ballast", "tw1", name="twin"), node("Neg", "ballast", "tw2", name=second)])

    return plant


def rows(*order: int) -> Callable[[ModelProto], None]:
    """Three nodes, the second reads the first and the third the second."""
    nodes = [node("Abs", "ballast", "r0"), node("Neg", "r0", "r1"), node("Abs", "r1", "r2")]
    return lambda m: m.graph.node.extend(nodes[i] for i in order)


def classical(imported: bool) -> Callable[[ModelProto], None]:
    """The opset of ai.onnx.ml is the one of the release that brought the model's own."""

    def plant(m: ModelProto) -> None:
        m.graph.node.append(node("Normalizer", "ballast", "ml", domain="ai.onnx.ml"))
        opset = next(o.version for o in m.opset_import if not o.domain)
        paired = next(row[3] for row in helper.VERSION_TABLE if row[2] == opset)
        m.opset_import.extend([helper.make_opsetid("ai.onnx.ml", paired)] if imported else [])

    return plant


def newer(m: ModelProto) -> None:
    m.opset_import.add(domain="ai.onnx.training", version=99)


def nothing(m: ModelProto) -> None:
    pass


def batch(size: int | str) -> Callable[[ModelProto], None]:
    """An input more, and what depends on it."""

    def plant(m: ModelProto) -> None:
        m.graph.input.append(value("late", (size, 4)))
        m.graph.input[-1].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
        m.graph.node.append(node("Abs", "late", "later"))
        m.graph.output.append(value("later", (size, 4)))

    return plant


def upsampled(attributes: Mapping[str, str]) -> Callable[[ModelProto], None]:
    def plant(m: ModelProto) -> None:
        m.graph.input.append(value("picture", PICTURE))
        m.graph.initializer.append(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "twice"))
        m.graph.node.append(node("Resize", "picture - twice", "up", name="up", **attributes))
        m.graph.node[-1].attribute[0].doc_string = "as trained"
        m.graph.output.append(value("up", DOUBLED))

    return plant


def gate(m: ModelProto) -> None:
    m.graph.node.append(node("SiLU", "ballast", "gated", name="act", domain="acme"))
    m.opset_import.add(domain="acme", version=1)


def gate_in_full(m: ModelProto) -> None:
    sigmoid = node("Sigmoid", "ballast", "act/Sigmoid_output_0", name="act/Sigmoid")
    for made in (sigmoid, node("Mul", "ballast act/Sigmoid_output_0", "gated", name="act/Mul")):
        made.metadata_props.add(key="vexlint.composite", value="acme::SiLU -> SiLU")
        m.graph.node.append(made)


def fused(m: ModelProto) -> None:
    m.graph.node.append(node("QuickGelu", "ballast", "q", name="quick", domain="com.microsoft", alpha=1.5))
    m.opset_import.add(domain="com.microsoft", version=1)


def unfused(m: ModelProto) -> None:
    alpha = helper.make_node("Constant", [], ["quick/Constant_output_0"], name="quick/Constant")
    alpha.attribute.add(name="value", type=4).t.CopyFrom(TensorProto(data_type=1, raw_data=np.float32(1.5).tobytes()))
    scaled = node("Mul", "ballast quick/Constant_output_0", "quick/Mul_output_0", name="quick/Mul")
    sigmoid = node("Sigmoid", "quick/Mul_output_0", "quick/Sigmoid_output_0", name="quick/Sigmoid")
    for made in (alpha, scaled, sigmoid, node("Mul", "ballast quick/Sigmoid_output_0", "q", name="quick/Mul_1")):
        made.metadata_props.add(key="vexlint.composite", value="com.microsoft::QuickGelu -> QuickGelu")
        m.graph.node.append(made)


GRAFTS = {
    "VEX101": Graft(gate, gate_in_full, composites={"acme::SiLU": "SiLU"}),
    "VEX103": Graft(fused, unfused),
    "VEX205": Graft(classical(imported=False), classical(imported=True)),
    "VEX206": Graft(newer, nothing),
    "VEX301": Graft(upsampled(CORNERS), upsampled(HALF), Contract("*", resize="half_pixel")),
    "VEX401": Graft(batch("late_batch"), batch(1), Contract("*", inputs={"late": Input((1, 4))})),
    "VEX701": Graft(twins("twin"), twins("twin_1")),
    "VEX703": Graft(rows(1, 2, 0), rows(0, 1, 2)),
}


@cache
def loaded(name: str) -> Feature:
    """A feature's model with weights of every kind that stays on disk, and unknown fields at every depth."""
    feature = FEATURES[name]()
    m = feature.model
    words = TensorProto(name="words", data_type=TensorProto.STRING, dims=[2], string_data=[b"\xff" * 1500, b"b"])
    typed = helper.make_tensor("typed", TensorProto.INT64, [40, 40], list(range(-800, 800)))
    floats = TensorProto(name="floats", data_type=1, dims=[400], float_data=np.linspace(-1, 1, 400).tolist())
    constant = helper.make_node("Constant", [], ["ballast"], name="ballast", value=weights("", 1024))
    constant.attribute[0].t.dims[:] = [1, 1024]
    inner = helper.make_graph([constant_of("inner")], "inner", [], [value("inner", (600,))], [weights("in_then", 600)])
    branches = {"then_branch": inner, "else_branch": inner}
    m.graph.initializer.extend([words, typed, floats, weights("raw", 700)])
    yes = numpy_helper.from_array(np.array(True), "yes")
    m.graph.initializer.append(yes)
    m.graph.node.extend([constant, helper.make_node("If", ["yes"], ["either"], name="either", **branches)])
    for message in (m, m.graph, constant, constant.attribute[0], m.graph.initializer[-2], m.graph.input[0]):
        message.MergeFromString(UNKNOWN)
    m.graph.node[-2].MergeFromString(UNKNOWN)
    return feature


def constant_of(name: str) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=weights("", 600))


def planted(name: str, plants: Sequence[Callable[[ModelProto], None]] = ()) -> ModelProto:
    made = ModelProto()
    made.CopyFrom(loaded(name).model)
    for plant in plants:
        plant(made)
    return made


def write(made: ModelProto, path: Path, external: bool) -> Path:
    """Saves a model; an external one has its initializer `w` in a file of its own."""
    if external:
        tensor = next(t for t in made.graph.initializer if t.name == "w")
        path.with_name("w.data").write_bytes(b"before" + tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", "w.data"), ("offset", "6"), ("length", "2048"), ("checksum", "theirs")):
            tensor.external_data.add(key=key, value=text)
    path.write_bytes(made.SerializeToString())
    return path


def settings(folder: Path, codes: list[str]) -> Settings:
    grafts = [GRAFTS[c] for c in codes]
    contract = Contract(
        "*",
        inputs={k: v for g in grafts for k, v in g.contract.inputs.items()},
        resize=next((g.contract.resize for g in grafts if g.contract.resize), None),
    )
    composites = {k: v for g in grafts for k, v in g.composites.items()}
    config = Config(folder=folder, models=(contract,), composites=composites)
    return Settings({c: RULES[c] for c in RULES if c in codes or c < "VEX100"}, config, targets.resolve([])[0])


def fixed(source: Path, output: Path, codes: list[str]) -> set[str]:
    """Fixes a file without running it; returns the codes of what changed."""
    run = settings(source.parent, codes)
    repair = repairs.plan(source, run, Options(unsafe=True, verify=False))
    assert repairs.carry_out(repair, output, run).output == str(output)
    return {c.code for c in repair.changes}


def unrecorded(path: Path) -> ModelProto:
    """What a file holds, less what a fix says of itself."""
    found = onnx.load(path, load_external_data=False)
    for index, entry in reversed(list(enumerate(found.metadata_props))):
        if entry.key.startswith("vexlint."):
            del found.metadata_props[index]
    return found


def test_there_are_fifty_three_features_and_each_model_has_its_own(tmp_path: Path) -> None:
    assert len(FEATURES) == 53
    for name, make in FEATURES.items():
        made = make()
        path = write(made.model, tmp_path / "model.onnx", made.external)
        assert made.kept(onnx.load(path, load_external_data=False)) is True, name


@pytest.mark.parametrize("codes", [[c] for c in GRAFTS] + [list(GRAFTS)], ids=lambda c: c[0] if len(c) == 1 else "all")
def test_every_feature_is_kept_by_every_fix(codes: list[str], tmp_path: Path) -> None:
    for name in FEATURES:
        external = loaded(name).external
        bad = planted(name, [GRAFTS[c].bad for c in codes])
        good = planted(name, [GRAFTS[c].good for c in codes])
        folder = tmp_path / name
        (folder / "good").mkdir(parents=True)
        source, wanted = write(bad, folder / "model.onnx", external), write(good, folder / "good/model.onnx", external)
        before = source.read_bytes()
        assert fixed(source, folder / "fixed.onnx", codes) == set(codes), name
        assert source.read_bytes() == before
        found = unrecorded(folder / "fixed.onnx")
        assert found == onnx.load(wanted, load_external_data=False), name
        assert found.SerializeToString() == ModelProto.FromString(wanted.read_bytes()).SerializeToString(), name
        assert_payloads_stand(source, folder / "fixed.onnx")


@pytest.mark.parametrize("pair", list(combinations(GRAFTS, 2)), ids="+".join)
def test_two_fixes_come_to_the_same_file_in_any_order(pair: tuple[str, str], tmp_path: Path) -> None:
    """Fixes that fight would undo each other, or end differently."""
    source = write(planted("node names", [GRAFTS[c].bad for c in pair]), tmp_path / "model.onnx", False)
    wanted = planted("node names", [GRAFTS[c].good for c in pair])
    for order in (pair, pair[::-1]):
        assert fixed(source, tmp_path / "first.onnx", [order[0]]) == {order[0]}
        assert fixed(tmp_path / "first.onnx", tmp_path / "second.onnx", [order[1]]) == {order[1]}
        assert fixed(tmp_path / "second.onnx", tmp_path / "third.onnx", list(pair)) == set()
        assert unrecorded(tmp_path / "second.onnx") == wanted
    assert fixed(source, tmp_path / "both.onnx", list(pair)) == set(pair)
    assert unrecorded(tmp_path / "both.onnx") == wanted


def assert_payloads_stand(source: Path, output: Path) -> None:
    """What was never read is in the output, tag and length included."""
    given, made = source.read_bytes(), output.read_bytes()
    payloads = wire.strip(source).payloads
    assert len(payloads) >= 7
    for payload in payloads:
        for start, end in payload.fields:
            assert given[start:end] in made


@pytest.mark.parametrize("name", FEATURES)
def test_nothing_to_fix_is_an_identical_copy(name: str, tmp_path: Path) -> None:
    source = write(planted(name), tmp_path / "model.onnx", loaded(name).external)
    assert fixed(source, tmp_path / "copy.onnx", list(GRAFTS)) == set()
    assert (tmp_path / "copy.onnx").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", FEATURES)
def test_a_draft_that_was_not_edited_is_not_changed(name: str, tmp_path: Path) -> None:
    """NaN is not equal to itself, and must not make an edit of nothing."""
    draft = Draft(read(write(planted(name), tmp_path / "model.onnx", loaded(name).external)))
    assert not draft.changed
    draft.proto.graph.doc_string += "!"
    assert draft.changed
