"""Targets and plugins of one's own: what a configuration says of operators has to exist, and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import load, save
from vexlint import engine, targets
from vexlint.checks.support import judge
from vexlint.config import OwnTarget
from vexlint.settings import settle
from vexlint.values import VexlintError


def test_what_an_own_target_says_it_runs_is_no_custom_node_there(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "vx" : 1]> g (float[1,4] x) => (float[1,4] y)
{ a = vx.Thing(x) b = vx.Other(a) y = vx.Third(b) }"""
    path = save(text, tmp_path)
    (tmp_path / "vexlint.toml").write_text(
        '[[target]]\nname = "board"\nextends = "tensorrt@8.6"\nadd = ["vx::Thing"]\nplugins = ["vx::Other"]\n'
    )

    def custom(*names: str) -> list[str]:
        report = engine.check_file(path, settle(tmp_path / "vexlint.toml", names, ["VEX101"]))
        return sorted({f.place.op for f in report.findings})

    assert custom("board") == ["Third"]
    assert custom("tensorrt@8.6") == ["Other", "Thing", "Third"]
    assert custom("board", "openvino") == ["Other", "Thing", "Third"], "OpenVINO has none of them"


def test_a_limit_of_ones_own_says_that_it_is(tmp_path: Path) -> None:
    own = OwnTarget("board", "tensorrt@8.6", limits={"Resize": ({"attribute": {"mode": ["nearest"]}, "why": "none"},)})
    ((board,), _) = targets.resolve(["board"], (own,))
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,1,4,4] x) => (float[a,b,c,d] y)
<float[4] s = {1.0, 1.0, 2.0, 2.0}> { y = Resize<mode = "nearest", nearest_mode = "floor">(x, , s) }"""
    (node,) = load(text, tmp_path).graph.nodes
    assert [(j.why, j.data["evidence"]) for j in judge(node, board)] == [("none", "configuration")]
    entry = board.operator("", "Resize")
    assert entry is not None
    assert entry.evidence == "doc"


WRONG = {
    'add = ["Mosh"]': "target 1 (board): 'Mosh' is no operator of the standard; did you mean Mish?",
    'remove = ["vx:Thing"]': "target 1 (board): 'vx:Thing' is no operator: write Op, or domain::Op",
    'plugins = ["::Thing"]': "target 1 (board): '::Thing' is no operator",
    'add = ["ai.onnx.ml::Scalr"]': "did you mean Scaler?",
    'name = "trt"': "target 1 (trt): this is the name of a runtime that is known",
    '[[target]]\nname = "board"\nextends = "rknn"': "target 2 (board): another target has this name",
    '[[plugin]]\noperator = "shapes:Mish"': "plugin 1: 'shapes:Mish' is no operator: write Op, or domain::Op",
    '[[plugin]]\noperator = "shapes::Mish"\ntargets = ["rknm"]': "did you mean rknn?",
    '[[model]]\npath = "*.onnx"\nnms.layout = "v88"': "model 1: nms.layout = 'v88' is none of v8, v5",
    'op = "Rezise"': "'Rezise' is no operator of the standard; did you mean Resize?",
    'present = ["mod"]': "limit of Resize: Resize has no attribute 'mod'; did you mean mode?",
    'attribute = { mode = ["linaer"] }': "limit of Resize: mode of Resize is never 'linaer'; did you mean linear?",
    'types = { 0 = ["flot"] }': "limit of Resize: types.0: 'flot' is no element type; did you mean float?",
    'types = { x = ["float"] }': "types should be whole numbers, not 'x'",
    'given = ["x"]': "given should be whole numbers, not 'x'",
    'above = { 0 = "many" }': "above should be whole numbers, not 'many'",
    'given = [1]\nverdict = "refuse"': "verdict = 'refuse' is none of refuses, differs, falls-back, needs-plugin",
    'given = [1]\nrule = "VEX999"': "'VEX999' names no rule",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_a_configuration_says_of_operators_has_to_exist(line: str, tmp_path: Path) -> None:
    """Whether or not the target is the one that is judged for."""
    own = {"name": 'name = "board"', "extends": 'extends = "tensorrt@8.6"'}
    limit = {"op": 'op = "Resize"', "given": "given = [1]"}
    key, rest = line.partition(" ")[0], line
    if key in own:
        own[key], rest = line, ""
    elif not line.startswith("[[") and key not in ("add", "remove", "plugins"):
        limit |= {"op": line} if key == "op" else {"given": line}
        rest = "[[target.limit]]\n" + "\n".join(limit.values())
    path = tmp_path / "vexlint.toml"
    path.write_text("[[target]]\n" + "\n".join([*own.values(), rest]) + "\n")
    with pytest.raises(VexlintError) as error:
        settle(path)
    assert WRONG[line] in str(error.value)
