"""The child process: loads one model on one runtime and runs what it is told. Started as a script by `child`.

Its one argument is the folder of the tensors' files. A request is one line of JSON on stdin, an answer one line on
stdout: {"do": "load", "runtime": ..., "setup": {...}} is answered by {"ran": {...}}, {"do": "run", "slot": ...,
"input": header} by {"output": header}, either by {"error": text, "kind": "missing" | "refused" | "failed"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Mapping
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

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request. Whatever a runtime raises is an answer, too."""
        from vexlint.runtimes.base import Missing, Refused

        try:
            return self._load(request) if request["do"] == "load" else self._run(request)
        except (Missing, ImportError) as error:
            return {"error": str(error), "kind": "missing"}
        except Refused as error:
            return {"error": str(error), "kind": "refused"}
        except Exception as error:
            kind = "refused" if request["do"] == "load" else "failed"
            return {"error": str(error) or type(error).__name__, "kind": kind}

    def _load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from vexlint.runtimes.base import Setup

        runtime = importlib.import_module(f"vexlint.runtimes.{request['runtime']}")
        self.loaded = runtime.load(Setup(**request["setup"]))
        assert self.loaded is not None
        return {"ran": asdict(self.loaded.ran)}

    def _run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self.loaded is not None
        feed = self.reader.read(request["input"])
        found = self.loaded.runner.infer(feed, check_inputs=False)
        return {"output": self.writer.write(request["slot"], {k: _numbers(k, v) for k, v in found.items()})}


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
        out.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        out.flush()
    os._exit(0)  # some runtimes take seconds to tidy up what the operating system frees at once


if __name__ == "__main__":
    main()
