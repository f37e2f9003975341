"""One runtime in a process of its own: a model that crashes or hangs it costs one probe."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from vexlint.values import VexlintError

DEADLINE = 30.0  # seconds for one model
NEWEST = 40  # opset and IR numbers tried


class Child:
    """Tries models on one runtime, one after the other. `crashes` counts those that ended or hung the process."""

    def __init__(self, runtime: str) -> None:
        self.runtime = runtime
        self.crashes = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.version = self._start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def try_(self, data: bytes) -> str:
        """Why the runtime refuses a serialized model, "" where it takes it."""
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # a process that ended says so when its answer is read
            self._process.stdin.write(base64.b64encode(data) + b"\n")
            self._process.stdin.flush()
        answer = self._answer()
        if answer is None:
            self.crashes += 1
            self._stop()
            return "the process ended or hung"
        return str(answer["refused"])

    def limits(self) -> dict[str, int | None]:
        """The newest opset and IR version that a trivial model may carry, None where any number is taken."""
        found: dict[str, int | None] = {}
        for kind in ("opset", "ir"):
            highest = NEWEST
            while highest > 1 and self.try_(_identity(**{"opset": 13, "ir": 7, kind: highest})):
                highest -= 1
            found[kind] = None if highest == NEWEST else highest
        return found

    def _start(self) -> str:
        worker = Path(__file__).with_name("worker.py")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(worker), self.runtime],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        answer = self._answer()
        if answer is None:
            self._stop()
            raise VexlintError(f"{self.runtime} does not start")
        return ".".join(re.findall(r"\d+", str(answer["version"]))[:3])

    def _answer(self) -> dict[str, Any] | None:
        """The process's next line, None where it ends or the deadline passes."""
        assert self._process is not None
        assert self._process.stdout is not None
        timer = threading.Timer(DEADLINE, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        answer: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return answer

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self._process = None


def _identity(opset: int, ir: int) -> bytes:
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    made: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir
    ).SerializeToString()
    return made
