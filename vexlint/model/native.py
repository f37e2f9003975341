"""ONNX's own native code, run on foreign files in a child process with a deadline.

A crafted file can make shape inference loop for ever or crash the interpreter (182 bytes are enough), so none of it
runs in this process. One child serves a whole run; it is started when first needed and replaced after a hang.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import struct
import subprocess
import sys
import threading
from pathlib import Path

from vexlint.values import VexlintError

DEADLINE = 30.0  # seconds for one request
HEADER = struct.Struct("<cQ")  # status or operation, then the length of what follows
OPERATIONS = {"infer": b"i", "parse": b"p", "check": b"c", "print": b"t"}
NAMES = {
    "infer": "shape inference",
    "parse": "the ONNX text parser",
    "check": "onnx.checker",
    "print": "the ONNX text printer",
}

_child: subprocess.Popen[bytes] | None = None


class Stopped(Exception):  # noqa: N818  what happened, not whose fault
    """The child hung past the deadline or crashed; the message says which and in what operation."""


class Refused(Exception):  # noqa: N818
    """The operation refused the bytes; the message is ONNX's own."""


def call(operation: str, payload: bytes, deadline: float | None = None) -> bytes:
    """Runs "infer" (ModelProto bytes -> the same with shapes), "parse" (ONNX text -> ModelProto bytes), "print" (the
    other way round) or "check" (`check_request` -> b"", the full check).

    `deadline` is in seconds, `DEADLINE` where None. Raises `Refused` where ONNX says no, `Stopped` where the child
    hung or crashed.
    """
    seconds = DEADLINE if deadline is None else deadline
    child = _start()
    hung = threading.Event()

    def end() -> None:
        hung.set()
        child.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        status, answer = _ask(child, OPERATIONS[operation], payload)
    except (OSError, EOFError):
        close()
        how = f"did not end within {seconds:g} s" if hung.is_set() else f"crashed (exit status {child.returncode})"
        raise Stopped(f"{NAMES[operation]} {how}") from None
    finally:
        timer.cancel()
    if status == b"e":
        raise Refused(answer.decode("utf-8", "replace"))
    return answer


def check_request(model: bytes, folder: Path) -> bytes:
    """The payload of a "check": onnx.checker looks for external data in the folder that it runs in."""
    name = str(folder.resolve()).encode()
    return struct.pack("<I", len(name)) + name + model


def close() -> None:
    """Ends the child, if there is one."""
    global _child  # one child a process, on purpose
    child, _child = _child, None
    if child is not None:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was left to write has nobody to read it
                    pipe.close()


def _ask(child: subprocess.Popen[bytes], operation: bytes, payload: bytes) -> tuple[bytes, bytes]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(HEADER.pack(operation, len(payload)) + payload)
    child.stdin.flush()
    head = child.stdout.read(HEADER.size)
    if len(head) < HEADER.size:
        raise EOFError
    status, length = HEADER.unpack(head)
    answer = child.stdout.read(length)
    if len(answer) < length:
        raise EOFError
    return status, answer


def _start() -> subprocess.Popen[bytes]:
    global _child
    if _child is None or _child.poll() is not None:
        close()
        spec = importlib.util.find_spec("onnx")
        if spec is None or spec.origin is None:
            raise VexlintError("the onnx package is not installed: pip install onnx")
        package = Path(spec.origin).parent
        script = Path(__file__).with_name("native_child.py")
        # -I and -S: the child needs nothing of the environment, and starts in 15 ms instead of 40
        command = [sys.executable, "-I", "-S", str(script), str(package)]
        _child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        atexit.register(close)
    return _child
