"""The child process: loads one model on one runtime and runs what it is told. Started as a script by `child`.

Its one argument is the folder of the tensors' files. A request is one line of JSON on stdin, an answer one line on
stdout: {"do": "load", "runtime": ..., "task": {...}} is answered by {"ran": {...}}, {"do": "run", "slot": ...,
"input": header} by {"output": header}, {"do": "probe", "runtime": ..., "task": {...}} by a line for each `Answer` and
an empty object at the end; either by {"error": text, "kind": "missing" | "refused" | "failed"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vexlint.runtimes.base import Loaded

PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Worker:
    """Answers requests; keeps the loaded model between them."""

    def __init__(self, folder: Path) -> None:
        from vexlint.runtimes import arena

        self.reader = arena.Reader(folder)
        self.writer = arena.Writer(folder, f"out-{os.getpid()}")
        self.loaded: Loaded | None = None

    def answers(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The answer to one request, or to a question the answers. Whatever a runtime raises is an answer, too."""
        from vexlint.runtimes.base import Missing, Refused, message

        try:
            if request["do"] == "probe":
                yield from self._probe(request)
            else:
                yield self._load(request) if request["do"] == "load" else self._run(request)
        except (Missing, ImportError) as error:
            yield {"error": str(error), "kind": "missing"}
        except Refused as error:
            yield {"error": str(error), "kind": "refused"}
        except Exception as error:
            kind = "refused" if request["do"] == "load" else "failed"
            yield {"error": message(error), "kind": kind}

    def _load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from vexlint.runtimes.base import Setup

        self.loaded = _module(request).load(Setup(**request["task"]))
        assert self.loaded is not None
        return {"ran": asdict(self.loaded.ran)}

    def _probe(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        from vexlint.runtimes.base import Question

        question = Question(**request["task"])
        limit(question.memory)
        yield from _module(request).probe(question)
        yield {}

    def _run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self.loaded is not None
        feed = self.reader.read(request["input"])
        found = self.loaded.runner.infer(feed, check_inputs=False)
        return {"output": self.writer.write(request["slot"], {k: _numbers(k, v) for k, v in found.items()})}


def _module(request: Mapping[str, Any]) -> Any:
    return importlib.import_module(f"vexlint.runtimes.{request['runtime'].replace('-', '_')}")


def limit(memory: int) -> None:
    """Keeps this process from taking more than that many bytes; 0 is no limit. Address space that is only reserved
    does not count, which drivers of GPUs reserve without measure. Windows has no such limit."""
    with contextlib.suppress(ImportError):
        import resource

        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _numbers(name: str, value: Any) -> Any:
    import numpy as np

    if not isinstance(value, np.ndarray):
        raise TypeError(f"output {name} is a {type(value).__name__}, not a tensor")
    return value


def behave() -> None:
    """A crash of native code is an answer and leaves no core file; a loop in it ends when the parent does."""
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    behave()
    # native code and Polygraphy print on stdout: answers go through a copy of it, prints to stderr
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    worker = Worker(Path(sys.argv[1]))
    del sys.path[0]  # beside the package may lie anything; its own modules are found through the package now
    for line in sys.stdin:
        for answer in worker.answers(json.loads(line)):
            out.write(json.dumps(answer) + "\n")
            out.flush()
    os._exit(0)  # some runtimes take seconds to tidy up what the operating system frees at once


if __name__ == "__main__":
    main()
