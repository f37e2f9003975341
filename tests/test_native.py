"""ONNX's native code in its child: a hang or a crash is an answer, not the end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx.parser
import pytest
from onnx import helper

from tests.support import RULES, codes, judge, save
from vexlint.model import native, native_child
from vexlint.model.read import read
from vexlint.model.wire import Unreadable

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[1,3] x) => (float[n,m] y) { y = Relu (x) }'


@pytest.fixture(autouse=True)
def fresh_child() -> Iterator[None]:
    native.close()
    yield
    native.close()


def endless(path: Path) -> Path:
    """A valid file of some 200 bytes on which shape inference never ends: an Einsum with two ellipses."""
    node = helper.make_node("Einsum", ["a", "b"], ["c"], equation="......ii,...jj->...ij")
    shapes = [helper.make_tensor_value_info(n, 1, [2, 2, 3, 3]) for n in "ab"]
    out = helper.make_tensor_value_info("c", 1, None)
    head = helper.make_node("NonMaxSuppression", ["c", "c"], ["y"])
    end = helper.make_tensor_value_info("y", 7, None)
    graph = helper.make_graph([node, head], "g", shapes, [end], value_info=[out])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_parse_and_infer() -> None:
    data = native.call("parse", TEXT.encode())
    assert onnx.ModelProto.FromString(data) == onnx.parser.parse_model(TEXT)
    inferred = onnx.ModelProto.FromString(native.call("infer", data))
    assert [d.dim_value for d in inferred.graph.output[0].type.tensor_type.shape.dim] == [1, 3]


def test_a_refusal_carries_onnx_own_words() -> None:
    with pytest.raises(native.Refused, match="ParseError"):
        native.call("parse", b"<ir_version")


def test_one_child_serves_many_requests() -> None:
    native.call("parse", TEXT.encode())
    first = native._child
    native.call("parse", TEXT.encode())
    assert native._child is first


def test_a_hang_ends_at_the_deadline_and_the_next_request_works(tmp_path: Path) -> None:
    data = endless(tmp_path / "endless.onnx").read_bytes()
    start = time.monotonic()
    with pytest.raises(native.Stopped, match=r"shape inference did not end within 0\.5 s"):
        native.call("infer", data, deadline=0.5)
    assert time.monotonic() - start < 10
    assert native.call("parse", TEXT.encode())


def test_a_crash_is_said_with_its_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "native_child.py"
    script.write_text("import os, sys\nsys.stdin.buffer.read(9)\nos.abort()\n", "utf-8")
    monkeypatch.setattr(native, "__file__", str(tmp_path / "native.py"))
    with pytest.raises(native.Stopped, match=r"shape inference crashed \(exit status -6\)"):
        native.call("infer", b"x" * 100_000_000)


def test_a_file_that_hangs_inference_is_incomplete_and_the_rest_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "DEADLINE", 0.5)
    report = judge(endless(tmp_path / "endless.onnx"))
    assert report.status == "incomplete"
    assert report.reason == "shape inference did not end within 0.5 s"
    assert ("error", "VEX002") in codes(report)
    assert ("error", "VEX502") in codes(report), "rules judge on without shapes"
    assert judge(save(TEXT, tmp_path)).status == "checked", "the next file is not affected"


def test_onnx_text_is_read_and_its_faults_are_named(tmp_path: Path) -> None:
    good = tmp_path / "net.onnxtxt"
    good.write_text(TEXT, "utf-8")
    assert [n.op for n in read(good).graph.nodes] == ["Relu"]
    good.write_text(TEXT.replace("=> ", "="), "utf-8")
    with pytest.raises(Unreadable, match=r"not ONNX text: .*line: 1"):
        read(good)
    good.write_bytes(b"\xff\xfe")
    with pytest.raises(Unreadable, match="byte 0 is not UTF-8"):
        read(good)


def test_the_fall_back_is_the_onnx_package(tmp_path: Path) -> None:
    """Where the extension module is not where it was, the child imports the package (an empty folder beside it)."""
    package = Path(onnx.__file__).parent
    beside = package.parent / "no_such_extension_folder"
    code = (
        f"import sys; sys.path.insert(0, {str(Path(native_child.__file__).parent)!r})\n"
        "import native_child, pathlib\n"
        f"m = native_child.load_extension(pathlib.Path({str(beside)!r}))\n"
        f"print(native_child.answer(m, b'p', {TEXT!r}.encode())[:4] != b'', 'onnx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_the_extension_is_found_by_its_file_today() -> None:
    """Not by importing the package: if this fails, checks that need shapes have become 200 ms slower."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(native_child.__file__).parent)!r})\n"
        "import native_child, pathlib\n"
        f"native_child.load_extension(pathlib.Path({str(Path(onnx.__file__).parent)!r}))\n"
        "print('onnx' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_rules_of_the_reader_have_pages() -> None:
    assert {"VEX001", "VEX002", "VEX003"} <= set(RULES)
