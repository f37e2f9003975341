"""From a path to a `Model`."""

from __future__ import annotations

from pathlib import Path

from vexlint.model import native, proto, wire
from vexlint.model.model import Model
from vexlint.model.wire import Unreadable
from vexlint.values import VexlintError

TEXT_SUFFIXES = (".onnxtxt", ".onnxtext")


def read(path: Path) -> Model:
    """The model in a file, ONNX protobuf or, by its suffix, ONNX text; weights stay on disk.

    Raises `Unreadable` where the file is no readable model (the message says what is wrong and at which byte or line)
    and `native.Stopped` where the text parser hung or crashed.
    """
    try:
        if path.suffix in TEXT_SUFFIXES:
            return Model(proto.parse(_text(path)), path)
        stripped = wire.strip(path)
    except OSError as error:
        raise Unreadable(f"cannot be opened: {error.strerror}") from None
    return Model(proto.parse(stripped.data, stripped.origin), path, stripped)


def load(path: Path) -> Model:
    """As `read`, for what can do nothing without the model. Raises VexlintError that names the file."""
    try:
        return read(path)
    except (Unreadable, native.Stopped) as error:
        raise VexlintError(f"{path}: {error}") from None


def _text(path: Path) -> bytes:
    try:
        return native.call("parse", path.read_text("utf-8").encode())
    except native.Refused as error:
        raise Unreadable(f"not ONNX text: {error}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"not ONNX text: byte {error.start} is not UTF-8") from None
