"""External data: payloads of tensors in files beside the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.model import tensors
from vexlint.model.model import Model
from vexlint.values import Hit, Place, Severity

if TYPE_CHECKING:
    from onnx import TensorProto

OUTSIDE = "lies outside the model's folder: runtimes refuse to follow it"
LINKED = "is a link out of the folder, as the model is: OpenVINO and onnx.checker refuse to follow it"


def external_data(model: Model, context: Context) -> Iterator[Hit]:
    """VEX711: external data that is missing, too short, absolute or outside the model's folder; one hit a file and
    fault."""
    sizes: dict[str, int | None] = {}
    found: dict[tuple[str, str], list[Place]] = {}
    for held in model.held:
        record = held.record
        if record is None or held.payload is not None:
            continue  # in the file itself
        fault = _fault(model, record, held.tensor, sizes)
        if fault:
            found.setdefault((record.get("location", ""), fault), []).append(held.place)
    for (location, fault), places in found.items():
        yield Hit(
            places[0],
            f"external data {location!r} {fault}",
            "keep the data file in the model's folder and ship both together",
            severity=Severity.WARNING if fault == LINKED else None,  # ONNX Runtime follows it
            data={"location": location},
            more=tuple(places[1:]),
            count=len(places),
        )


def _fault(model: Model, record: dict[str, str], tensor: TensorProto, sizes: dict[str, int | None]) -> str:
    folder, location = model.folder, record.get("location", "")
    if not location:
        return "has no location"
    if Path(location).is_absolute() or location[1:2] == ":":
        return "is an absolute path: it exists on one machine only"
    try:
        place = Path(os.path.realpath(folder / location))
    except (OSError, ValueError):  # what no file can be named
        return "is missing"
    if not place.is_relative_to(folder.resolve()):
        linked = place.is_relative_to(model.path.resolve().parent)
        return LINKED if linked and not Path(location).is_absolute() else OUTSIDE
    if location not in sizes:
        sizes[location] = place.stat().st_size if os.path.isfile(place) else None  # noqa: PTH113  never raises
    size = sizes[location]
    if size is None:
        return "is missing"
    return _short(record, tensor, size)


def _short(record: dict[str, str], tensor: TensorProto, size: int) -> str:
    """Where the record asks for bytes that the file does not have, or for fewer than the tensor's shape needs."""
    try:
        offset = int(record.get("offset") or 0)
        length = int(record["length"]) if record.get("length") else None
    except ValueError:
        return "has an offset or length that is no number"
    needed = -(-tensors.size(tensor) * tensors.BITS.get(tensor.data_type, 0) // 8)
    if offset < 0 or (length is not None and length < 0):
        return "has a negative offset or length"
    if offset + (needed if length is None else length) > size:
        return f"is too short: {size} bytes, needed up to {offset + (needed if length is None else length)}"
    if length is not None and length < needed:
        return f"gives {length} bytes to a tensor that needs {needed}"
    return ""
