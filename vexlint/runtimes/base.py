"""What every runtime of this folder offers, called in the child process only: `load(Setup) -> Loaded`, and
`probe(Question) -> Iterator[Answer]`.

A runtime is one module here and one line in `NAMES`. Its packages are imported in `load`, never before.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vexlint.outcomes import Ran
from vexlint.values import VexlintError

# Runtime -> the package it needs, and the line that installs it
NAMES = {
    "onnxruntime": ("onnxruntime", "pip install 'vexlint[cpu]' (or 'vexlint[gpu]')"),
    "openvino": ("openvino", "pip install 'vexlint[openvino]'"),
    "tensorrt": ("tensorrt", "pip install 'vexlint[tensorrt]'"),
}
# Those, and what is asked about a model without running it
PROBED = {**NAMES, "tensorrt-rtx": ("tensorrt_rtx", "pip install 'vexlint[rtx]'")}
ALIASES = {"onnxruntime-cpu": "onnxruntime", "ort": "onnxruntime", "trt": "tensorrt"}


NO_MEMORY = re.compile(r"bad.?alloc|out of memory|cannot allocate memory|MemoryError", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Question:
    """What a runtime is asked about a model.

    `model` is a path. `devices` are execution providers of ONNX Runtime, or one device of OpenVINO; empty for the CPU.
    `precision` is the contract's; `profiles` gives the smallest, usual and largest shape of an input to runtimes that
    build for shapes; `capability` a GPU's compute capability ("8.9") to build for, "" for any. `memory` is the number
    of bytes that the process may take, 0 for no limit.
    """

    model: str
    devices: Sequence[str] = ()
    precision: str = "fp32"
    profiles: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    capability: str = ""
    memory: int = 0


# What `probe` yields, as JSON can say it. First {"version", "device"}; then in any order
#   {"stage", "outcome", "seconds", "said", "refusals": [Refusal]}, one for each step in turn,
#   {"placement": {device: count}, "elsewhere": {device: [[name, domain, op]]}}: nodes not on the first one asked for,
#   {"inactive": device, "active": [devices]}: that the first one asked for is not in use at all,
#   {"outputs": [[name, dtype, [size or None]]]}, {"note": text}.
Answer = dict[str, Any]
# A node, or every node of an operator, that was refused: {"text"} and any of "index" (in the main graph), "name",
# "domain", "op", "value" (an output's name), "every" (the whole operator), "words" (in which names may hide).
Refusal = dict[str, Any]


def passed(stage: str, seconds: float) -> Answer:
    """The answer that a step went well."""
    return {"stage": stage, "outcome": "passed", "seconds": seconds, "said": "", "refusals": []}


def failed(stage: str, seconds: float, said: str, refusals: Sequence[Refusal] = ()) -> Answer:
    """The answer that a step did not go well: the runtime's words, and which nodes it names (the whole file where it
    names none). A process that may take no more memory has decided nothing."""
    outcome = "undecided" if NO_MEMORY.search(said) else "failed"
    found = [] if outcome == "undecided" else list(refusals or [{"text": said}])
    return {"stage": stage, "outcome": outcome, "seconds": seconds, "said": said, "refusals": found}


def message(error: Exception) -> str:
    """What an exception says; where it says nothing (MemoryError does), what it is."""
    return str(error) or type(error).__name__


def stopwatch() -> Callable[[], float]:
    """A function that gives the seconds since this call."""
    begun = time.perf_counter()
    return lambda: time.perf_counter() - begun


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
    package, line = PROBED[name]
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed: {line}"
    return ""


def one_line(text: str, most: int = 400) -> str:
    """A runtime's message without line breaks and cut to a length that can be printed."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
