"""What a real runtime says of a model: asked in a child process, so that a crash or a hang costs one model.

The child is `python -m tests.benchmarks.truth RUNTIME`; it answers pickled questions on its standard output.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

Feeds = Mapping[str, Any]  # input name -> array or list of arrays
LENGTH = struct.Struct("<Q")
RUNTIMES = ("onnxruntime", "openvino", "tensorrt-rtx", "reference", "checker")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`stage` is "" where the model was loaded and, with feeds, ran; else where it failed: "load", "run", "crash" or
    "hang". `words` are the runtime's own, `outputs` the arrays by position, () where nothing ran."""

    stage: str
    words: str = ""
    outputs: tuple[Any, ...] = ()

    @property
    def accepted(self) -> bool:
        return not self.stage


class Runtime:
    """One child that answers for one runtime; started when first asked, and anew after a crash or a hang."""

    def __init__(self, name: str, deadline: float = 20.0) -> None:
        assert name in RUNTIMES, name
        self.name, self.deadline = name, deadline
        self.child: subprocess.Popen[bytes] | None = None

    def ask(self, model: bytes, feeds: Feeds | None, optimise: bool = True, folder: str | None = None) -> Verdict:
        """Loads a model and runs it once where there are feeds (None: load only); external data is in `folder`."""
        child = self._start()
        late = threading.Event()

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(self.deadline, stop)
        timer.start()
        try:
            assert child.stdin is not None and child.stdout is not None
            send(child.stdin, (model, dict(feeds) if feeds is not None else None, optimise, folder))
            stage, words, outputs = receive(child.stdout)
            return Verdict(stage, words, tuple(outputs))
        except (OSError, EOFError):
            self.close()
            return Verdict("hang" if late.is_set() else "crash", f"exit status {child.returncode}")
        finally:
            timer.cancel()

    def close(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        if self.child is None or self.child.poll() is not None:
            self.close()
            command = [sys.executable, "-m", "tests.benchmarks.truth", self.name]
            quiet = subprocess.DEVNULL
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet)
        return self.child


def send(pipe: IO[bytes], value: object) -> None:
    data = pickle.dumps(value)
    pipe.write(LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next value of a pipe of our own child. Raises EOFError at its end."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    return pickle.loads(pipe.read(LENGTH.unpack(head)[0]))


# --- in the child --------------------------------------------------------------------------------------------------

Answer = Iterator[Any]  # yields once when loaded, once more with the outputs


def onnxruntime(model: bytes, feeds: Feeds | None, optimise: bool) -> Answer:
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    yield None
    try:
        yield session.run(None, {name: feed(value) for name, value in (feeds or {}).items()})
    except RuntimeError as error:
        if "Numpy" not in str(error):
            raise
        yield []  # an element type that numpy lacks: the Python binding's limit, not the runtime's


def feed(value: Any) -> Any:
    """Numpy's scalars as the arrays without axes that runtimes take."""
    import numpy as np

    return np.asarray(value) if isinstance(value, np.generic) else value


def openvino(model: bytes, feeds: Feeds | None, optimise: bool) -> Answer:
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"}
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    yield None
    kept = {name for port in compiled.inputs for name in port.get_names()}  # those that decide nothing are folded away
    given = {name: feed(value) for name, value in (feeds or {}).items() if name in kept}
    if any(hasattr(value, "dtype") and value.dtype.type.__module__ != "numpy" for value in given.values()):
        yield []  # an element type that numpy lacks, as above
    results = compiled(given)
    yield [results[port] for port in compiled.outputs]


def tensorrt_rtx(model: bytes, feeds: Feeds | None, optimise: bool) -> Answer:
    """Parses and builds for compute capability 8.9; nothing is run, for that takes a device."""
    import tensorrt_rtx as trt

    builder = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR))
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, trt.Logger(trt.Logger.INTERNAL_ERROR))
    if not parser.parse(model):
        said = [parser.get_error(i).desc() for i in range(parser.num_errors)]
        raise RuntimeError("parse: " + "; ".join(said))
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        given = network.get_input(i)
        if given.is_shape_tensor:
            continue
        dims = [2 if d < 0 else d for d in given.shape]
        if any(d < 0 for d in given.shape):
            profile.set_shape(given.name, dims, dims, dims)
    config.add_optimization_profile(profile)
    if builder.build_serialized_network(network, config) is None:
        raise RuntimeError("build: no engine")
    yield None
    yield []


def reference(model: bytes, feeds: Feeds | None, optimise: bool) -> Answer:
    import onnx
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(onnx.load_from_string(model))
    yield None
    yield evaluator.run(None, dict(feeds or {}))


def checker(model: bytes, feeds: Feeds | None, optimise: bool) -> Answer:
    import onnx

    onnx.checker.check_model(model, full_check=True)
    yield None
    yield []


ASKED: dict[str, Callable[[bytes, Feeds | None, bool], Answer]] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "tensorrt-rtx": tensorrt_rtx,
    "reference": reference,
    "checker": checker,
}


def answer(name: str, model: bytes, feeds: Feeds | None, optimise: bool) -> tuple[str, str, list[Any]]:
    stage, words = "load", ""
    outputs: list[Any] = []
    try:
        steps = ASKED[name](model, feeds, optimise)
        next(steps)
        stage = "run"
        outputs = next(steps) if feeds is not None else []
        stage = ""
    except Exception as error:  # whatever a runtime raises is its verdict
        words = f"{type(error).__name__}: {error}"
        if "construct locale" in words:  # this machine lacks what StringNormalizer asks it for
            stage = ""
    return stage, " ".join(words.split())[:400], list(outputs)


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what native code prints must not land among the answers
    home = Path.cwd()
    while True:
        try:
            model, feeds, optimise, folder = receive(sys.stdin.buffer)
        except EOFError:
            return
        os.chdir(folder or home)  # of bytes, runtimes look for external data in the working directory
        send(out, answer(sys.argv[1], model, feeds, optimise))


if __name__ == "__main__":
    main()
