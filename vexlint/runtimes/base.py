"""What every runtime of this folder offers: `load(Setup) -> Loaded`, called in the child process only.

A runtime is one module here and one line in `NAMES`. Its packages are imported in `load`, never before.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vexlint.values import Ran, VexlintError

# Runtime -> the package it needs, and the line that installs it
NAMES = {
    "onnxruntime": ("onnxruntime", "pip install 'vexlint[cpu]' (or 'vexlint[gpu]')"),
    "openvino": ("openvino", "pip install 'vexlint[openvino]'"),
    "tensorrt": ("tensorrt", "pip install 'vexlint[tensorrt]'"),
}
ALIASES = {"onnxruntime-cpu": "onnxruntime", "ort": "onnxruntime", "trt": "tensorrt"}


class Missing(Exception):  # noqa: N818  what is so, not whose fault
    """The runtime, or the device asked for, is not on this machine; the message says what to install or to choose."""


class Refused(Exception):  # noqa: N818
    """The runtime does not take the model; the message is the runtime's own."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What to load and how.

    `model` is a path. Where `folder` is not "", the file at `model` is a model whose external data lies relative to
    that folder instead of its own. `precision` is the contract's (fp32, fp16, int8): fp32 forbids everything narrower.
    `device` is an execution provider of ONNX Runtime or a device of OpenVINO, "" for the CPU. `shapes` are those of
    the inputs, for runtimes that build for a shape.
    """

    model: str
    folder: str = ""
    precision: str = "fp32"
    device: str = ""
    threads: int = 1
    shapes: Mapping[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that is ready to run: an active Polygraphy runner, and what will really compute."""

    runner: Any
    ran: Ran


def named(text: str) -> tuple[str, str]:
    """A runtime and its device, "" for its usual one, as a user writes them: `openvino`, `onnxruntime:cuda`.

    Raises VexlintError for a runtime that vexlint cannot run.
    """
    name, _, device = text.partition(":")
    found = ALIASES.get(name.lower(), name.lower())
    if found not in NAMES:
        from vexlint.files import nearest

        known = [*NAMES, *ALIASES]
        raise VexlintError(f"unknown runtime {name!r}{nearest(name, known)}; known: {', '.join(NAMES)}")
    return found, device


def missing(name: str) -> str:
    """Why a runtime cannot run because its package is not installed; "" where it is."""
    package, line = NAMES[name]
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed: {line}"
    return ""


def one_line(text: str, most: int = 400) -> str:
    """A runtime's message without line breaks and cut to a length that can be printed."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
