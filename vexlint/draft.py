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

from vexlint.model import tensors
from vexlint.model.model import Model
from vexlint.model.restore import fill, restore
from vexlint.model.wire import PAYLOAD_KEY, Piece, payload_of
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from onnx import ModelProto

CHUNK = 8 << 20  # bytes copied at a time where the system cannot copy by itself


class Draft:
    """An editable copy of a model's proto. `source` is the model as it was read."""

    def __init__(self, source: Model) -> None:
        self.source = source
        self.proto = type(source.proto)()
        self.proto.CopyFrom(source.proto)

    @property
    def changed(self) -> bool:
        return self.proto != self.source.proto

    def model(self) -> Model:
        """A fresh view over what the draft is now."""
        return Model(self.proto, self.source.path, self.source.stripped)

    def save(self, path: Path, in_place: bool = False) -> None:
        """Writes the model, at once or not at all: beside the destination, then renamed.

        A draft that was not edited is written as an identical copy of its source. Data files beside the source go
        along into another folder. Raises VexlintError where the destination is the source and `in_place` is not said,
        where it cannot be written, and where a data file of that name with other bytes is there already.
        """
        source = self.source.path
        if not in_place and path.exists() and path.samefile(source):
            raise VexlintError(f"{path} is the source itself: write elsewhere with -o, or say --in-place")
        try:
            _copy_data_files(self.source, path.parent)
            whole: list[Piece] = [(0, source.stat().st_size)]
            pieces = self._pieces() if self.changed else whole
            with _replacing(path, source) as out, source.open("rb") as given:
                _write(out, given, pieces)
        except OSError as error:
            raise VexlintError(f"{path}: cannot be written: {error.strerror}; nothing was changed") from None

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
    return copy.SerializeToString()


@contextlib.contextmanager
def _replacing(path: Path, source: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when the block ends well, and is gone when it does not.

    It gets the permissions of the file that it replaces, else those of the source.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
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


def _write(out: IO[bytes], source: IO[bytes], pieces: list[Piece]) -> None:
    for piece in pieces:
        if isinstance(piece, bytes):
            out.write(piece)
        else:
            out.flush()
            _copy(out, source, *piece)


def _copy(out: IO[bytes], source: IO[bytes], start: int, end: int) -> None:
    """Copies [start, end) of the source, inside the system where it can (no byte passes through this process)."""
    while start < end and hasattr(os, "copy_file_range"):
        try:
            done = os.copy_file_range(source.fileno(), out.fileno(), end - start, start)
        except OSError:  # another file system: copy by hand; a full disk shows there again
            break
        if not done:
            break
        start += done
    source.seek(start)
    out.seek(0, os.SEEK_END)
    while start < end:
        data = source.read(min(CHUNK, end - start))
        if not data:
            raise OSError(0, "the source became shorter while it was read")
        out.write(data)
        start += len(data)


def _copy_data_files(model: Model, folder: Path) -> None:
    """Copies the model's external data files into another folder, where they are not there yet."""
    if folder.resolve() == model.folder.resolve():
        return
    for location in sorted(_locations(model)):
        source, target = model.folder / location, folder / location
        if not source.is_file():
            continue  # VEX711 speaks of it
        if target.exists():
            if not _same(source, target):
                raise VexlintError(f"{target} exists and holds other data: write the model into a folder of its own")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(target, source) as out, source.open("rb") as given:
            _copy(out, given, 0, source.stat().st_size)


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
