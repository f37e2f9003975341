"""A model on a runtime, in a child process with a deadline.

Every model runs in a process of its own, for its whole life, rather than being tried once in a child and then run
here: native code that loads a foreign file can still crash or loop for ever at the hundredth picture, and a Loop node
needs no more than an input to do so. A process a model has a second virtue: reference and candidate compute at the
same time, each on its share of the cores. The price, measured: 0.15 s of CPU to start one (Python, numpy, the
runtime, Polygraphy), then 0.2 ms a sample of 1.2 MB, because tensors pass through mapped files (`arena`) and a pipe
carries one line each way. `tests/benchmarks/verify.py` compares all of it with a bare loop.

Two requests may be under way at once (`SLOTS`), so that a runtime computes while its last result is compared.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vexlint.outcomes import Ran
from vexlint.runtimes import base
from vexlint.runtimes.arena import Header, Reader
from vexlint.runtimes.base import Answer, Question, Setup

if TYPE_CHECKING:
    from vexlint.runtimes.arena import Array

SLOTS = 2
RUNNING = 120.0  # seconds for one sample, and at least as many to load a model
BUILDING = {"tensorrt": 1800.0}  # seconds to load, where that means to build an engine
TICK = 1.0  # seconds between two looks at the clock


class Failed(Exception):  # noqa: N818  what happened, not whose fault
    """The runtime is missing, refused the model, crashed or hung: the message says which, and where."""


class NotHere(Failed):
    """The runtime, or the device asked for, is not on this machine."""


class Child:
    """One runtime with one model. `close` ends the process; so does the end of a `with` block."""

    def __init__(self, runtime: str, task: Setup | Question, folder: Path, deadline: float = RUNNING) -> None:
        """Starts the process and has it load the model (`loaded` waits for that) or answer the question (`answers`).
        `folder` is for tensors' files, `deadline` in seconds for one sample or one answer. Raises `NotHere` where the
        runtime's package is not installed."""
        if reason := base.missing(runtime):
            raise NotHere(reason)
        self.runtime = runtime
        self.model = Path(task.model).name
        self.deadline = deadline
        self._reader = Reader(folder)
        self._waiting: deque[str] = deque()  # what was asked and not answered yet, in words
        self._due: float | None = None
        self._hung = False
        self._closed = threading.Event()
        self._errors: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed with the child
        command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py")), str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=_environment()
        )
        threading.Thread(target=self._watch, daemon=True).start()
        do, verb = ("load", "loading") if isinstance(task, Setup) else ("probe", "probing")
        self._send({"do": do, "runtime": runtime, "task": asdict(task)}, f"{verb} {self.model}")

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def loaded(self) -> Ran:
        """Waits until the model is ready; what will really compute. Raises `Failed`."""
        return Ran(**self._receive(max(BUILDING.get(self.runtime, RUNNING), self.deadline))["ran"])

    def answers(self) -> Iterator[Answer]:
        """What the runtime answers to a question, as it comes. Raises `Failed`; what came before that stands."""
        while answer := self._receive(self.deadline):
            self._waiting.append(f"probing {self.model}")
            yield answer

    def send(self, slot: int, header: Header, what: str) -> None:
        """Asks for one run on the tensors behind a header; `what` names the sample in messages. Its outputs lie in
        `slot` until it is used again. Raises `Failed`."""
        self._send({"do": "run", "slot": slot, "input": header}, f"running {self.model} on {what}")

    def receive(self) -> dict[str, Array]:
        """The outputs of the oldest run asked for, by name: views that hold until its slot is used again."""
        return self._reader.read(self._receive(self.deadline)["output"])

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self._closed.set()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was left to write has nobody to read it
                    pipe.close()

    def _send(self, request: Mapping[str, Any], what: str) -> None:
        self._waiting.append(what)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise Failed(self._end(self._waiting[0])) from None

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._due = time.monotonic() + seconds
        line = self._process.stdout.readline()
        self._due = None
        what = self._waiting.popleft()
        if not line.endswith(b"\n"):
            raise Failed(self._end(what, seconds))
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            text = base.one_line(answer["error"])
            if answer["kind"] == "missing":
                raise NotHere(text)
            raise Failed(f"{self._verb(answer['kind'], what)}: {text}")
        return answer

    def _verb(self, kind: str, what: str) -> str:
        return f"{self.runtime} refuses {self.model}" if kind == "refused" else f"{self.runtime} failed {what}"

    def _end(self, what: str, seconds: float = RUNNING) -> str:
        """What to say of a process that is no more."""
        status = self._process.wait()
        if self._hung:
            return f"{self.runtime} did not end {what} within {seconds:g} s"
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"{self.runtime} crashed {what} ({how}){self._last_words()}"

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-4096:].decode("utf-8", "replace").split("\n")
        said = [line for line in lines if line.strip()]
        return f": {base.one_line(said[-1])}" if said else ""

    def _watch(self) -> None:
        """Kills the process once it is past its deadline. One thread that looks now and then costs nothing; a timer
        for every sample would cost 0.1 ms."""
        while not self._closed.wait(min(TICK, self.deadline / 4)):
            due = self._due
            if due is not None and time.monotonic() > due:
                self._hung = True
                self._process.kill()
                return


def _environment() -> dict[str, str]:
    """What a child may not do: report to anybody (ONNX Runtime 1.32 would, and keeps a database in the home folder
    for it), install packages (Polygraphy can), start threads for numpy (nobody multiplies matrices here)."""
    silent = {"ORT_DISABLE_TELEMETRY": "1", "POLYGRAPHY_AUTOINSTALL_DEPS": "0", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **silent}
