"""Runs a program as a child process and says what it cost.

The operating system's account of a child starts at the memory of the process that starts it: a peak can never be below
that. So whoever measures must stay small, and imports neither numpy nor onnx.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of one ru_maxrss
BLOCK = 512  # bytes of one ru_inblock


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, user and system, the child's own children included; peak bytes of the largest of them; bytes read
    from the disk; the exit status and what it said on stderr."""

    cpu: float
    peak: int
    read: int
    status: int
    errors: str


class Stopped(Exception):  # noqa: N818  what happened, not whose fault
    """A child ran longer than it may."""


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], deadline: float = 600) -> Cost:
    """Runs a command to its end. Raises `Stopped` after `deadline` seconds of wall time."""
    late = threading.Event()
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors)

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(deadline, stop)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        if late.is_set():
            raise Stopped(f"stopped after {deadline:g} s")
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, usage.ru_maxrss * MEMORY_UNIT, usage.ru_inblock * BLOCK, child.returncode, said)


def typical(costs: Sequence[Cost]) -> tuple[float, int]:
    """The medians of CPU seconds and of peak bytes."""
    return median(c.cpu for c in costs), round(median(c.peak for c in costs))


def drop_from_cache(path: Path) -> None:
    """Asks the operating system to forget the pages of a file that is on the disk."""
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def environment(folder: Path) -> dict[str, str]:
    """This process's environment with byte code cached under `folder`, whatever it says of byte code: an installed
    program has its byte code on the disk."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder)}
