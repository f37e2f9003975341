"""What TensorRT and TensorRT-RTX say of a model: their parser and their builder are one interface, asked apart.

A parse is no build: on TensorRT-RTX every NonMaxSuppression parses and no engine with one is built.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from vexlint.runtimes.base import Answer, Missing, Question, Refusal, failed, passed

PARSING = re.compile(r"While parsing node number (\d+)")
NO_DRIVER = re.compile(r"CUDA driver version is insufficient|no CUDA-capable device|Cuda Error in", re.IGNORECASE)
NOISE = re.compile(
    r"^(IBuilder::buildSerializedNetwork: )?(\[[^\]]*::\d+\] )?Error Code \d+: [^(]*\((.*)\)\s*$", re.DOTALL
)
SOURCE = re.compile(r"\s*In \w+ at \S+:\d+")


def probe(trt: Any, question: Question, device: str) -> Iterator[Answer]:
    """The parser's verdict on every node, then the builder's on the network, and the network's outputs.

    `trt` is the module tensorrt or tensorrt_rtx, from version 10 (1.0) on. Raises `Missing` for a compute capability
    that it cannot build for.
    """
    log = _log(trt)
    builder = trt.Builder(log)
    yield {"version": trt.__version__, "device": device}
    network = builder.create_network(_flags(trt, question.precision))
    parser = trt.OnnxParser(network, log)
    begun = time.perf_counter()
    if not parser.parse_from_file(question.model):
        yield _parse_failed(parser, log, begun)
        return
    yield passed("parse", begun)
    yield {"outputs": [_output(network.get_output(i)) for i in range(network.num_outputs)]}
    config = _config(trt, builder, network, question)
    log.errors.clear()
    begun = time.perf_counter()
    engine = builder.build_serialized_network(network, config)
    if engine is not None:
        yield passed("build", begun)
        yield {"note": f"engine of {engine.nbytes / 1e6:.1f} MB"}
        return
    said = " ".join(_words(line) for line in log.errors) or "no engine, and no reason given"
    yield failed("build", begun, said, [{"text": said, "words": re.split(r"[\s\[\](){},:;'\"]+", said)}])


def _log(trt: Any) -> Any:
    """A logger that keeps errors, and the nodes whose plugin asked a CUDA driver that is not there."""

    class Log(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.errors: list[str] = []
            self.undecided: set[int] = set()
            self.driverless = False

        def log(self, severity: Any, text: str) -> None:
            if severity not in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                return
            self.errors.append(text)
            if node := PARSING.search(text):
                self.undecided |= {int(node[1])} if self.driverless else set()
                self.driverless = False
            self.driverless |= bool(NO_DRIVER.search(text))

    return Log()


def _flags(trt: Any, precision: str) -> int:
    """Strongly typed, where the version knows it and the contract does not leave half to the builder, as `load`."""
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    half = precision == "fp16" and hasattr(trt.BuilderFlag, "FP16")
    return 0 if flag is None or half else 1 << int(flag)


def _parse_failed(parser: Any, log: Any, begun: float) -> Answer:
    errors = [parser.get_error(i) for i in range(parser.num_errors)]
    refused: list[Refusal] = [
        {"text": " ".join(e.desc().split()), "index": e.node(), "name": e.node_name(), "op": e.node_operator()}
        for e in errors
        if e.node() not in log.undecided
    ]
    said = "; ".join(dict.fromkeys(f"{e.node_operator()}: {' '.join(e.desc().split())}" for e in errors))
    answer = failed("parse", begun, said, refused)
    if errors and not refused:
        ops = ", ".join(sorted({e.node_operator() for e in errors}))
        answer |= {"outcome": "undecided", "refusals": [], "said": f"the parser needs a CUDA driver to judge {ops}"}
    return answer


def _config(trt: Any, builder: Any, network: Any, question: Question) -> Any:
    config = builder.create_builder_config()
    if question.precision == "fp16" and hasattr(trt.BuilderFlag, "FP16"):
        config.set_flag(trt.BuilderFlag.FP16)
    if question.capability:
        name = f"SM{question.capability.replace('.', '')}"
        known = getattr(trt, "ComputeCapability", None)
        if not hasattr(known, name):
            has = ", ".join(f"{n[2:-1]}.{n[-1]}" for n in dir(known) if re.fullmatch(r"SM\d+", n))
            raise Missing(f"it cannot build for compute capability {question.capability}, only for {has or 'this GPU'}")
        config.num_compute_capabilities = 1
        config.set_compute_capability(getattr(known, name), 0)
    shapes = {network.get_input(i).name for i in range(network.num_inputs)} & set(question.profiles)
    if shapes:
        profile = builder.create_optimization_profile()
        for name in sorted(shapes):
            profile.set_shape(name, *map(tuple, question.profiles[name]))
        config.add_optimization_profile(profile)
    return config


def _output(tensor: Any) -> list[Any]:
    dtype = str(tensor.dtype).rpartition(".")[2].lower()
    names = {"float": "float32", "half": "float16", "bf16": "bfloat16"}
    try:
        sizes = [None if size < 0 else int(size) for size in tensor.shape]
    except ValueError:  # a rank that is not known
        sizes = None
    return [tensor.name, names.get(dtype, dtype), sizes]


def _words(error: str) -> str:
    """The message without its number and the places in TensorRT's own source."""
    whole = NOISE.match(error.strip())
    return SOURCE.sub("", whole[3] if whole else error).strip()
