"""`vexlint show`, and git diff through it."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import onnx.parser
from hypothesis import given
from hypothesis import strategies as st

from tests import scratch
from tests.malformed import corpus
from tests.scratch import CLEAN, vexlint
from tests.support import DETECTOR, ROOT, save
from vexlint import show


def test_git_diff_of_a_model_reads(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gating.md").read_text("utf-8")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    scratch.git(tmp_path, "init", "-q")
    assert scratch.run("bash", "-ec", block, folder=tmp_path).returncode == 0
    shutil.copy(CLEAN, tmp_path / "m.onnx")
    scratch.commit(tmp_path)
    shutil.copy(DETECTOR / "align_corners.onnx", tmp_path / "m.onnx")
    shown = scratch.git(tmp_path, "diff", "-U0")
    lines = [line for line in shown.splitlines() if line.startswith(("+ ", "- ")) and "Resize(" in line]
    assert [line[0] for line in lines] == ["-", "+", "-", "+"]
    assert 'coordinate_transformation_mode="half_pixel"' in lines[0]
    assert 'coordinate_transformation_mode="align_corners"' in lines[1]
    (tmp_path / "m.onnx").write_bytes(CLEAN.read_bytes()[:5000])
    shown = scratch.git(tmp_path, "diff")
    assert re.search(r"^\+unreadable: ", shown, re.MULTILINE)
    scratch.git(tmp_path, "rm", "-qf", "m.onnx")
    assert "-ir_version 8" in scratch.git(tmp_path, "diff", "--cached")


def test_the_same_model_gives_the_same_text_wherever_it_lies(tmp_path: Path) -> None:
    shutil.copy(CLEAN, tmp_path / "temporary_name.onnx")
    one, other = (vexlint("show", str(p), folder=tmp_path).stdout for p in (CLEAN, tmp_path / "temporary_name.onnx"))
    assert one == other
    assert len(one.splitlines()) > 100


def test_a_node_in_front_changes_one_line(tmp_path: Path) -> None:
    model = onnx.load(CLEAN)
    model.graph.node.insert(0, onnx.helper.make_node("Identity", ["images"], ["front"], "front"))
    onnx.save(model, tmp_path / "m.onnx")
    one, other = (vexlint("show", str(p), folder=tmp_path).stdout.splitlines() for p in (CLEAN, tmp_path / "m.onnx"))
    assert [line for line in other if line not in one] == ["  front = Identity(images)  # front"]
    assert [line for line in one if line not in other] == []


EVERYTHING = """<ir_version: 10, opset_import: ["" : 17, "f" : 1], producer_name: "me", metadata_props: ["k": "v"]>
g (float[N,3] x, bool c) => (float[N,3] y)
<float[2] w = {0.5, -1}, int64[9] big = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
{
  z = Relu(x)
  a = f.Twice<k = 2.0>(z)
  y = If (c) <then_branch = t () => (float[N,3] p) { p = Neg(a) }, else_branch = e () => (float[N,3] q) { q = Abs(a) }>
}
<domain: "f", opset_import: ["" : 17]>
Twice <k> (a) => (b) { b = LeakyRelu<alpha: float = @k>(a) }
"""


SMALL = onnx.parser.parse_model(EVERYTHING).SerializeToString()


def test_subgraphs_functions_and_tensors_are_shown(tmp_path: Path) -> None:
    path = save(EVERYTHING, tmp_path)
    digest = f"sha256:{hashlib.sha256(repr([('int64_data', list(range(1, 10)))]).encode()).hexdigest()[:16]}"
    done = vexlint("show", str(path), folder=tmp_path)
    assert done.stdout.splitlines() == [
        "ir_version 10",
        "producer me",
        "opset ai.onnx 17",
        "opset f 1",
        "metadata k = v",
        "graph g",
        "  input x: float[N,3]",
        "  input c: bool[]",
        "  output y: float[N,3]",
        f"  initializer big: int64[9] {digest}",
        "  initializer w: float[2] {0.5, -1}",
        "  z = Relu(x)",
        "  a = f::Twice(z) k=2",
        "  y = If(c)",
        "    else_branch: graph e",
        "      output q: float[N,3]",
        "      q = Abs(a)",
        "    then_branch: graph t",
        "      output p: float[N,3]",
        "      p = Neg(a)",
        "function f::Twice(a) -> (b)",
        "  opset ai.onnx 17",
        "  attribute k",
        "  b = LeakyRelu(a) alpha=@k",
    ]


def test_show_says_what_is_no_model_and_fails_on_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    done = vexlint("show", "a.onnx", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unreadable: not an ONNX model: it looks like a Git LFS pointer")
    done = vexlint("show", "none.onnx", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "vexlint: none.onnx: no such file\n")


def test_no_malformed_file_stops_a_diff(tmp_path: Path) -> None:
    for name, data in corpus().items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(data)
        assert [line[:12] for line in show.lines(path)] == ["unreadable: "], name


@given(st.integers(0, 2**32 - 1))
def test_a_damaged_file_is_shown_or_said_to_be_unreadable(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(SMALL)
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.onnx")
        path.write_bytes(data)
        lines = list(show.lines(path))
    assert lines
    assert all(line.isprintable() for line in lines)


def test_show_imports_nothing_heavy() -> None:
    code = (
        "import sys; from vexlint import show; n = len(list(show.lines(__import__('pathlib').Path(sys.argv[1]))));"
        "heavy = {'numpy', 'onnx', 'onnxruntime'}; print(n > 100, sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(CLEAN)], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True []\n"
