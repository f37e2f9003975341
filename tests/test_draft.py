"""Saving a draft: at once or not at all, whatever happens meanwhile; weights and data files as they were."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.fidelity import model, node, value
from tests.support import ROOT
from vexlint import draft as drafting
from vexlint.draft import Draft
from vexlint.model import restore, wire
from vexlint.model.read import read
from vexlint.values import VexlintError

WIDTH = 100_000  # floats: 400 kB


def weight(name: str) -> TensorProto:
    return numpy_helper.from_array(np.random.default_rng(7).normal(size=WIDTH).astype(np.float32), name)


def twins() -> ModelProto:
    """Two nodes of one name, and weights in the file and in a Constant."""
    constant = helper.make_node("Constant", [], ["c"], name="n", value=weight(""))
    nodes = [constant, node("Add", "x w", "t", name="n"), node("Mul", "t c", "y", name="n")]
    ends = [value("x", (WIDTH,))], [value("y", (WIDTH,))]
    return model(nodes, *ends, [weight("w")])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(twins().SerializeToString())
    return path


def external(folder: Path, location: str = "weights.bin") -> Path:
    """A model whose initializer lies in another file."""
    made = twins()
    tensor = made.graph.initializer[0]
    data = folder / location
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def edited(path: Path) -> Draft:
    draft = Draft(read(path))
    for index, found in enumerate(draft.proto.graph.node):
        found.name = f"n{index}"
    return draft


def good(path: Path) -> bool:
    """Whether a file is the edited model, weights and all."""
    wanted = twins()
    for index, found in enumerate(wanted.graph.node):
        found.name = f"n{index}"
    return onnx.load(path) == wanted


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# What is written


def test_weights_in_the_file_and_in_a_constant_come_along(source: Path) -> None:
    edited(source).save(source.parent / "out.onnx")
    assert good(source.parent / "out.onnx")


def test_a_draft_that_was_not_edited_is_copied_byte_for_byte(source: Path) -> None:
    odd = (
        source.read_bytes() + b"\xfa\x3e\x03abc" + b"\x08\x08"
    )  # an unknown field, and ir_version once more at the end
    source.write_bytes(odd)
    Draft(read(source)).save(source.parent / "out.onnx")
    assert (source.parent / "out.onnx").read_bytes() == odd


def test_the_system_may_be_unable_to_copy(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two file systems of an old kernel, for example; and it may stop in the middle."""
    first = list[int]()

    def half(given: int, out: int, count: int, offset: int) -> int:
        if first:
            raise OSError(18, "Invalid cross-device link")
        first.append(os.sendfile(out, given, offset, count // 2))
        return first[0]

    monkeypatch.setattr(os, "copy_file_range", half)
    Draft(read(source)).save(source.parent / "half.onnx")
    assert first[0] > 1000
    monkeypatch.delattr(os, "copy_file_range")
    Draft(read(source)).save(source.parent / "none.onnx")
    assert (source.parent / "half.onnx").read_bytes() == source.read_bytes()
    assert (source.parent / "none.onnx").read_bytes() == source.read_bytes()


def test_in_place_keeps_permissions_and_a_new_file_has_those_of_the_source(source: Path) -> None:
    source.chmod(0o640)
    edited(source).save(source.parent / "new.onnx")
    edited(source).save(source, in_place=True)
    other = source.parent / "old.onnx"
    other.write_bytes(b"old")
    other.chmod(0o604)
    edited(source).save(other)
    modes = [stat.S_IMODE((source.parent / n).stat().st_mode) for n in ("model.onnx", "new.onnx", "old.onnx")]
    assert modes == [0o640, 0o640, 0o604]
    assert all(good(p) for p in source.parent.iterdir())


def test_a_read_only_source_is_read_and_stays(source: Path) -> None:
    source.chmod(0o444)
    edited(source).save(source.parent / "out.onnx")
    assert good(source.parent / "out.onnx")
    with pytest.raises(VexlintError, match=r"model\.onnx: cannot be written: it is read-only"):
        edited(source).save(source, in_place=True)
    with pytest.raises(VexlintError, match="read-only"):
        edited(source).save(source.parent / "out.onnx")  # it has the source's permissions


def test_a_link_is_replaced_and_what_it_points_to_stays(source: Path) -> None:
    """What a cache of downloads links to by its checksum must never change."""
    (source.parent / "cache").mkdir()
    blob = source.rename(source.parent / "cache" / "blob")
    before = blob.read_bytes()
    source.symlink_to(blob)
    edited(source).save(source, in_place=True)
    assert good(source)
    assert not source.is_symlink()
    assert blob.read_bytes() == before
    hard = source.parent / "hard.onnx"
    hard.hardlink_to(blob)
    edited(hard).save(hard, in_place=True)
    assert blob.read_bytes() == before
    assert good(hard)


def test_more_than_two_gigabytes(tmp_path: Path) -> None:
    """The lengths of all messages around a tensor count what is put back; nothing of it is read."""
    count = 600_000_000
    tensor = TensorProto(name="w", data_type=1, dims=[count]).SerializeToString() + wire.header(9, 4 * count)
    graph = model().graph.SerializeToString() + wire.header(5, len(tensor) + 4 * count) + tensor
    rest = model()
    rest.ClearField("graph")
    head = rest.SerializeToString() + wire.header(7, len(graph) + 4 * count) + graph
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + 4 * count)
    draft = Draft(read(path))
    assert draft.source.stripped is not None
    draft.proto.graph.node[0].name = "x" * 100
    pieces = restore.restore(draft.proto.SerializeToString(), draft.source.stripped)
    assert wire.size(pieces) == len(head) + 4 * count + 98
    assert [end - start for start, end in (p for p in pieces if not isinstance(p, bytes))] == [4 * count + 6]
    longer = wire.header(7, len(graph) + 4 * count + 98)
    assert longer in b"".join(p for p in pieces if isinstance(p, bytes))


# Where nothing is written


def test_the_source_is_not_overwritten_by_any_of_its_names(source: Path) -> None:
    before = source.read_bytes()
    (source.parent / "link.onnx").symlink_to(source)
    (source.parent / "hard.onnx").hardlink_to(source)
    (source.parent / "folder").symlink_to(source.parent)
    for name in ("model.onnx", "link.onnx", "hard.onnx", "folder/model.onnx"):
        with pytest.raises(VexlintError, match="is the source itself"):
            edited(source).save(source.parent / name)
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none/out.onnx", "there is no folder"),
        ("model.onnx/out.onnx", "there is no folder"),
        ("folder", "it is a folder"),
        ("pipe", "it is no regular file"),
        ("link", "it is no regular file"),
        ("out.onnxtxt", "ONNX protobuf, not text"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_a_destination_that_cannot_be_is_one_sentence(name: str, said: str, source: Path) -> None:
    (source.parent / "folder").mkdir()
    pipe, link = source.parent / "pipe", source.parent / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(VexlintError, match=said):
        edited(source).save(source.parent / name)
    assert (pipe.is_fifo(), link.is_symlink()) == (True, True)
    pipe.unlink()
    link.unlink()
    assert sorted(p.name for p in source.parent.iterdir()) == ["folder", source.name]


def test_a_source_that_changes_meanwhile_is_noticed(source: Path) -> None:
    draft = edited(source)
    data = bytearray(source.read_bytes())
    data[-1] ^= 1
    source.write_bytes(data)
    os.utime(source, ns=(1, 1))
    with pytest.raises(VexlintError, match="changed by somebody else"):
        draft.save(source.parent / "out.onnx")
    draft = edited(source)
    source.unlink()
    with pytest.raises(VexlintError):
        draft.save(source.parent / "out.onnx")
    assert content(source.parent) == {}


def test_a_source_that_is_text_is_written_as_protobuf(tmp_path: Path) -> None:
    path = tmp_path / "model.onnxtxt"
    path.write_text('<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Relu (x) }')
    Draft(read(path)).save(tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx").graph.node[0].op_type == "Relu"
    with pytest.raises(VexlintError, match="not text"):
        Draft(read(path)).save(path, in_place=True)


@pytest.mark.skipif(
    os.geteuid() == 0, reason="root may write everywhere: see the file systems that are full or read-only"
)
def test_a_folder_that_may_not_be_written_to(source: Path) -> None:
    (source.parent / "closed").mkdir(mode=0o555)
    with pytest.raises(VexlintError, match="cannot be written: Permission denied; nothing was changed"):
        edited(source).save(source.parent / "closed" / "out.onnx")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 kB, for less than the model's 800."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(options, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip(f"a file system of its own needs root: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(source: Path, small_disk: Path) -> None:
    (small_disk / "out.onnx").write_bytes(b"before")
    for name in ("out.onnx", "new.onnx"):
        with pytest.raises(VexlintError, match="cannot be written: No space left on device; nothing was changed"):
            edited(source).save(small_disk / name)
    assert content(small_disk) == {"out.onnx": b"before"}


def test_a_full_disk_in_place(source: Path, small_disk: Path) -> None:
    made = twins()
    del made.graph.node[0], made.graph.node[1]  # half of it fits, twice does not
    path = small_disk / "model.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(VexlintError, match="No space left"):
        edited(path).save(path, in_place=True)
    assert content(small_disk) == {"model.onnx": made.SerializeToString()}


def test_a_disk_that_is_read_only(source: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(VexlintError, match=r"cannot be written: (Read-only file system|it is read-only)"):
        edited(source).save(small_disk / "out.onnx")


@pytest.mark.parametrize("system", [True, False], ids=["system", "by hand"])
def test_a_limit_on_the_size_of_files(source: Path, system: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not system:
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    before = content(source.parent)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
    try:
        with pytest.raises(VexlintError, match="cannot be written: File too large"):
            edited(source).save(source, in_place=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert content(source.parent) == before


# External data


@pytest.mark.parametrize("location", ["weights.bin", "data/deep/weights.bin"])
def test_data_files_stay_and_go_along_into_another_folder(location: str, tmp_path: Path) -> None:
    path = external(tmp_path / "here", location)
    (tmp_path / "there").mkdir()
    data = (path.parent / location).read_bytes()
    edited(path).save(path.parent / "out.onnx")
    edited(path).save(tmp_path / "there" / "out.onnx")
    edited(path).save(tmp_path / "there" / "again.onnx")  # the data file is there now
    edited(path).save(path, in_place=True)
    assert sorted(content(path.parent)) == sorted(["model.onnx", "out.onnx", location])
    assert sorted(content(tmp_path / "there")) == sorted(["again.onnx", "out.onnx", location])
    assert (path.parent / location).read_bytes() == (tmp_path / "there" / location).read_bytes() == data
    records = [onnx.load(p, load_external_data=False).graph.initializer[0] for p in tmp_path.rglob("*.onnx")]
    assert all(r == records[0] and r.data_location == TensorProto.EXTERNAL for r in records)
    one, other = (onnx.load(p).graph.initializer[0].raw_data for p in (path, tmp_path / "there" / "out.onnx"))
    assert one == other == data


def test_other_data_of_that_name_are_not_overwritten(tmp_path: Path) -> None:
    path = external(tmp_path / "here")
    (tmp_path / "there").mkdir()
    for other in (b"short", bytes(4 * WIDTH)):
        (tmp_path / "there" / "weights.bin").write_bytes(other)
        with pytest.raises(VexlintError, match=r"weights\.bin exists and holds other data"):
            edited(path).save(tmp_path / "there" / "out.onnx")
        assert content(tmp_path / "there") == {"weights.bin": other}


@pytest.mark.parametrize("folder", ["here", "there"])
def test_a_model_is_not_written_over_its_own_weights(folder: str, tmp_path: Path) -> None:
    path = external(tmp_path / "here")
    (tmp_path / "there").mkdir()
    before = content(tmp_path)
    (path.parent / "hard.onnx").hardlink_to(path.parent / "weights.bin")
    for name in ("weights.bin", "./weights.bin", *(["hard.onnx"] if folder == "here" else [])):
        with pytest.raises(VexlintError, match="holds the model's weights"):
            edited(path).save(tmp_path / folder / name)
    (path.parent / "hard.onnx").unlink()
    assert content(tmp_path) == before


def test_data_files_are_taken_back_where_the_model_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = external(tmp_path / "here", "data/deep/weights.bin")
    (tmp_path / "there").mkdir()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(drafting, "_write", fail)
    with pytest.raises(VexlintError, match="No space left"):
        edited(path).save(tmp_path / "there" / "out.onnx")
    assert list((tmp_path / "there").iterdir()) == []


def test_data_outside_the_folder_are_left_alone(tmp_path: Path) -> None:
    """Whoever writes such a path into a model may mean any file of the reader's."""
    path = external(tmp_path / "here")
    (tmp_path / "secret").write_bytes(bytes(4 * WIDTH))
    (tmp_path / "here" / "link.bin").symlink_to(tmp_path / "secret")
    (tmp_path / "there" / "deeper").mkdir(parents=True)
    for location in ("../secret", str(tmp_path / "secret"), "link.bin", "gone.bin"):
        made = onnx.load(path, load_external_data=False)
        made.graph.initializer[0].external_data[0].value = location
        path.write_bytes(made.SerializeToString())
        edited(path).save(tmp_path / "there" / "deeper" / "out.onnx")
        assert list(content(tmp_path / "there")) == ["deeper/out.onnx"]


# Interrupted

MOMENTS = {
    "before a byte is written": ("draft", "_write", False),
    "in the middle": ("draft", "_copy", True),
    "before it takes its place": ("shutil", "copymode", True),
}
SAVING = """
import sys, time
from vexlint import draft, cli
from vexlint.draft import shutil
place, name, after = {moment!r}
whole = getattr(globals()[place], name)
def wait(*given):
    if after:
        whole(*given)
        if hasattr(given[0], "flush"):
            given[0].flush()
    print("now", flush=True)
    time.sleep(60)
setattr(globals()[place], name, wait)
sys.argv = ["vexlint", "fix", "model.onnx", "--no-verify", *sys.argv[1:]]
cli.main()
"""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("words", [["--in-place"], ["-o", "out.onnx"]], ids=["in place", "output"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=["kill", "ctrl-c"])
def test_interrupted_at_any_moment(moment: str, words: list[str], sent: signal.Signals, source: Path) -> None:
    """Ctrl-C leaves nothing; kill leaves what was being written, beside the destination and never in its place."""
    (source.parent / "out.onnx").write_bytes(b"before")
    before = content(source.parent)
    program = [sys.executable, "-c", SAVING.format(moment=MOMENTS[moment]), *words]
    child = subprocess.Popen(
        program,
        cwd=source.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"now\n"
    child.send_signal(sent)
    _, said = child.communicate(timeout=30)
    left = content(source.parent)
    parts = [n for n in left if n not in before]
    if sent is signal.SIGINT:
        assert (child.returncode, said, parts) == (2, b"vexlint: interrupted\n", [])
    else:
        assert all(n.startswith(".vexlint-") and n.endswith(".part") for n in parts)
        assert len(parts) == 1
    assert {n: left[n] for n in before} == before
