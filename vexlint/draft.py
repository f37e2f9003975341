"""The editable model: a ModelProto whose weights stay in the source file until it is saved.

Only a draft edits. What was not edited is written as the source has it: payloads are copied byte for byte from where
they are, everything else is the same protobuf field, unknown ones included.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vexlint.files import check_regular
from vexlint.model import tensors
from vexlint.model.model import Model
from vexlint.model.read import TEXT_SUFFIXES
from vexlint.model.restore import fill, restore
from vexlint.model.wire import PAYLOAD_KEY, Piece, payload_of
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from io import BufferedReader

    from onnx import ModelProto

WRITABLE = 0o222  # permission of anybody to write
CHUNK = 1 << 20  # bytes copied at a time where the system does not copy by itself
PAGE = 4096  # bytes that a system copies fastest, or multiples of them


class Draft:
    """An editable copy of a model's proto. `source` is the model as it was read."""

    def __init__(self, source: Model) -> None:
        self.source = source
        self.proto = type(source.proto)()
        self.proto.CopyFrom(source.proto)
        self._state = _state(source.path)

    @property
    def changed(self) -> bool:
        return self.proto != self.source.proto

    def model(self) -> Model:
        """A fresh view over what the draft is now."""
        return Model(self.proto, self.source.path, self.source.stripped)

    def save(self, path: Path, in_place: bool = False) -> None:
        """Writes the model, at once or not at all: beside the destination, then renamed.

        A draft that was not edited is written as an identical copy of its source. Data files beside the source go
        along into another folder. A destination that is a link is replaced, what it points to stays; so it is with a
        source that is one. A process that is killed leaves the destination as it was, and beside it `.vexlint-*.part`.
        Raises VexlintError as `check_destination` does, and where anything cannot be written.
        """
        self.check_destination(path, in_place)
        source = self.source.path
        with _telling(path):
            if _state(source) != self._state:
                raise VexlintError(f"{source} was changed by somebody else while it was read: nothing was written")
            whole: list[Piece] = [(0, source.stat().st_size)]
            pieces = self._pieces() if self.changed or self.source.stripped is None else whole
            with (
                _with_data_files(self.source, path.parent),
                _replacing(path, source) as out,
                source.open("rb") as given,
            ):
                _write(out, given, pieces)

    def check_destination(self, path: Path, in_place: bool = False) -> None:
        """Raises VexlintError where the model must not be written to a path: the source where `in_place` is not said,
        one of its data files, a read-only file, a folder that is not there, a name that promises ONNX text; and where
        a data file would have to go to where other data are."""
        if path.suffix in TEXT_SUFFIXES:
            raise VexlintError(f"{path}: what is written is ONNX protobuf, not text: call it .onnx")
        if not path.parent.is_dir():
            raise VexlintError(f"{path}: cannot be written: there is no folder {path.parent}")
        with _telling(path):
            self._check_files(path, in_place)

    def _check_files(self, path: Path, in_place: bool) -> None:
        source = self.source.path
        locations = _locations(self.source)
        if any(_is_same(path, folder / name) for folder in (source.parent, path.parent) for name in locations):
            raise VexlintError(
                f"{path} holds the model's weights, and they stay where they are: write elsewhere with -o"
            )
        if path.exists():
            if not in_place and path.samefile(source):
                raise VexlintError(f"{path} is the source itself: write elsewhere with -o, or say --in-place")
            check_regular(path)
            if not path.stat().st_mode & WRITABLE or not os.access(path, os.W_OK):
                raise VexlintError(f"{path}: cannot be written: it is read-only")
        for given, target in _data_files(self.source, path.parent):
            if target.exists() and not _same(given, target):
                raise VexlintError(f"{target} exists and holds other data: write the model into a folder of its own")

    def _pieces(self) -> list[Piece]:
        data = self.proto.SerializeToString()
        return restore(data, self.source.stripped) if self.source.stripped is not None else [data]


def runnable(proto: ModelProto, source: Model) -> bytes:
    """A stripped model as bytes that a runtime takes whose external data lies in the source's folder.

    Raw payloads stay in the source file: their records lose the key that only vexlint knows. Others (varints, strings)
    are put back, because no record can say them.
    """
    copy = type(proto)()
    copy.CopyFrom(proto)
    for tensor in tensors.everywhere(copy):
        payload = payload_of(tensor, source.stripped) if source.stripped is not None else None
        if payload is None:
            continue
        if payload.raw:
            for index, entry in reversed(list(enumerate(tensor.external_data))):
                if entry.key == PAYLOAD_KEY:
                    del tensor.external_data[index]
        else:
            fill(tensor, payload, source.path)
    data: bytes = copy.SerializeToString()
    return data


@contextlib.contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Says of what the operating system refuses that the file at `path` cannot be written."""
    try:
        yield
    except OSError as error:
        raise VexlintError(f"{path}: cannot be written: {error.strerror}; nothing was changed") from None


@contextlib.contextmanager
def _replacing(path: Path, source: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when the block ends well, and is gone when it does not.

    It gets the permissions of the file that it replaces, else those of the source.
    """
    handle, name = tempfile.mkstemp(prefix=".vexlint-", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        shutil.copymode(path if path.exists() else source, name)
        Path(name).replace(path)
    except BaseException:  # Ctrl-C too must leave nothing behind
        Path(name).unlink(missing_ok=True)
        raise


def _write(out: IO[bytes], source: BufferedReader, pieces: list[Piece]) -> None:
    for piece in pieces:
        if isinstance(piece, bytes):
            out.write(piece)
        else:
            _copy(out, source, *piece)


def _copy(out: IO[bytes], source: BufferedReader, start: int, end: int) -> None:
    """Copies [start, end) of the source to the end of `out`.

    Inside the system where pages go to pages (the whole file, mostly): a file system may even share them. Where they
    would have to be shifted that takes two and a half times as long as by hand.
    """
    out.flush()
    while start < end and (out.seek(0, os.SEEK_END) - start) % PAGE == 0 and hasattr(os, "copy_file_range"):
        try:
            done = os.copy_file_range(source.fileno(), out.fileno(), end - start, start)
        except OSError:  # another file system: copy by hand; a full disk shows there again
            break
        if not done:
            break
        start += done
    source.seek(start)
    out.seek(0, os.SEEK_END)
    buffer = memoryview(bytearray(min(CHUNK, end - start)))
    while start < end:
        size = source.readinto(buffer[: end - start])
        if not size:
            raise OSError(0, "the source became shorter while it was read")
        out.write(buffer[:size])
        start += size


@contextlib.contextmanager
def _with_data_files(model: Model, folder: Path) -> Iterator[None]:
    """Copies the model's data files into another folder, where they are not there yet; takes them away again when the
    block fails."""
    with contextlib.ExitStack() as undo:
        for source, target in _data_files(model, folder):
            if target.exists():
                continue
            for made in reversed([p for p in target.parents if not p.exists()]):
                made.mkdir()
                undo.callback(made.rmdir)
            with _replacing(target, source) as out, source.open("rb") as given:
                _copy(out, given, 0, source.stat().st_size)
            undo.callback(target.unlink)
        yield
        undo.pop_all()


def _data_files(model: Model, folder: Path) -> list[tuple[Path, Path]]:
    """The model's external data files that are there (VEX711 speaks of the others), each with its place in a folder;
    none where that is the model's own."""
    if folder.resolve() == model.folder.resolve():
        return []
    return [(model.folder / n, folder / n) for n in sorted(_locations(model)) if (model.folder / n).is_file()]


def _locations(model: Model) -> set[str]:
    found = set()
    for tensor in tensors.everywhere(model.proto):
        record = tensors.external(tensor)
        if record is None or (model.stripped is not None and payload_of(tensor, model.stripped) is not None):
            continue
        location = record.get("location", "")
        if location and (model.folder / location).resolve().is_relative_to(model.folder.resolve()):
            found.add(location)
    return found


def _state(path: Path) -> tuple[int, ...] | None:
    """What tells one content of a file from another, without reading it; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, be it there or not."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _same(one: Path, other: Path) -> bool:
    if one.samefile(other):
        return True
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as a, other.open("rb") as b:
        while chunk := a.read(CHUNK):
            if chunk != b.read(CHUNK):
                return False
    return True
