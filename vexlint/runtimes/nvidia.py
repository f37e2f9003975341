"""What TensorRT and TensorRT-RTX say of a model: their parser and their builder are one interface, asked apart.

A parse is no build: on TensorRT-RTX every NonMaxSuppression parses and no engine with one is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vexlint.runtimes import remainder
from vexlint.runtimes.base import Answer, Missing, Question, Refusal, failed, passed, stopwatch

PARSING = re.compile(r"While parsing node number (\d+)")
NO_DRIVER = re.compile(r"CUDA driver version is insufficient|no CUDA-capable device|Cuda Error in", re.IGNORECASE)
NOISE = re.compile(r"^(?:\S+: )?(?:\[[^\]]*::\d+\] )?Error Code \d+: [^(]*\((.*)\)\s*$", re.DOTALL)
# The parser's assertions, in three forms: what they say for people stands behind what they test
ASSERTION = re.compile(r"^(?:Assertion failed: .*?\S: (?=\S)|Assertion .*? failed\. (?=\S))")
QUOTED = re.compile(r'&& "([^"]*(?:" "[^"]*)*)"$')
LARGE = 1 << 30  # bytes: a larger file is not parsed again and again
LOOKING = 20.0  # seconds for nodes behind the first that is refused
WORD = re.compile(r"[^\s\[\](){},;'\"]+")
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
    seconds = stopwatch()
    if not parser.parse_from_file(question.model):
        yield from _parse_failed(trt, builder, parser, log, question, seconds())
        return
    yield passed("parse", seconds())
    yield {"outputs": [_output(network.get_output(i)) for i in range(network.num_outputs)]}
    config = _config(trt, builder, network, question)
    log.errors.clear()
    seconds = stopwatch()
    engine = builder.build_serialized_network(network, config)
    if engine is not None:
        yield passed("build", seconds())
        yield {"note": f"engine of {engine.nbytes / 1e6:.1f} MB"}
        return
    text = " ".join(_words(line) for line in log.errors) or "no engine, and no reason given"
    yield failed("build", seconds(), text, [{"text": text, "words": WORD.findall(text)}])


def _log(trt: Any) -> Any:
    """A logger that keeps errors, and for each node that the parser refuses what was said before it did."""

    class Log(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.errors: list[str] = []
            self.causes: dict[int, list[str]] = {}

        def log(self, severity: Any, text: str) -> None:
            if severity not in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                return
            if node := PARSING.search(text):
                self.causes[int(node[1])] = [e for e in self.errors if not e.startswith("ModelImporter.cpp")]
                self.errors = []
            self.errors.append(text)

    return Log()


@dataclass(frozen=True, slots=True)
class Said:
    """What the parser says of one node: `index` in the main graph, also where the node is in a subgraph of it.

    `undecided` where it would have needed a CUDA driver to know.
    """

    index: int
    name: str
    op: str
    text: str
    undecided: bool


def _said(parser: Any, log: Any) -> list[Said]:
    """The parser's errors. Where it only calls a node invalid, the reason is what was logged before."""
    found = []
    for error in map(parser.get_error, range(parser.num_errors)):
        before = log.causes.get(error.node(), [])
        reasons = [e for e in before if not NO_DRIVER.search(e)]
        text = _asserted(" ".join(error.desc().split()))
        if text.startswith("Invalid Node") and reasons:
            text = _words(reasons[0])
        if text == "false":  # an assertion without words
            text = str(error.code()).rpartition(".")[2].lower().replace("_", " ")
        found.append(Said(error.node(), error.node_name(), error.node_operator(), text, bool(before) and not reasons))
    return found


def _rest(trt: Any, builder: Any, log: Any, question: Question, gone: set[int]) -> tuple[list[Said], str]:
    """What the parser says of the nodes after the one it stopped at, and a word on those it was not asked about.

    It lists every operator without an importer, then stops at the first node that an importer refuses. What is refused
    is taken out, and the rest parsed again until nothing more is.
    """
    found: list[Said] = []
    if -1 in gone:  # not about a node: the file as a whole
        return found, ""
    if Path(question.model).stat().st_size > LARGE:
        return found, "nodes after the first that an importer refuses were not judged: the file is too large for that"
    import onnx

    seconds = stopwatch()
    model = onnx.load(question.model, load_external_data=False)
    types = remainder.types(model)
    while True:
        rest, kept, behind = remainder.without(model, types, gone)
        said = _parse_again(trt, builder, log, question, rest) if kept else None
        if said is None:
            break
        fresh = [replace(s, index=kept[s.index]) for s in said if 0 <= s.index < len(kept)]
        found += fresh
        gone = gone | {s.index for s in fresh}
        if not fresh or seconds() > LOOKING:
            behind += len(kept) - len(fresh)
            break
    return found, f"not judged, for what they read comes of refused nodes: {behind} nodes" if behind else ""


def _parse_again(trt: Any, builder: Any, log: Any, question: Question, model: Any) -> list[Said] | None:
    """What the parser says against a ModelProto with the external data of the file asked about; None for nothing."""
    log.errors.clear()
    log.causes.clear()
    network = builder.create_network(_flags(trt, question.precision))
    parser = trt.OnnxParser(network, log)
    said = None if parser.parse(model.SerializeToString(), question.model) else _said(parser, log)
    del parser  # before the network that it writes to
    return said


def _flags(trt: Any, precision: str) -> int:
    """Strongly typed, where the version knows it and the contract does not leave half to the builder, as `load`."""
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    half = precision == "fp16" and hasattr(trt.BuilderFlag, "FP16")
    return 0 if flag is None or half else 1 << int(flag)


def _parse_failed(
    trt: Any, builder: Any, parser: Any, log: Any, question: Question, seconds: float
) -> Iterator[Answer]:
    """The parser's no, of every node that it can be asked about."""
    said = _said(parser, log)
    rest, note = _rest(trt, builder, log, question, {s.index for s in said})
    said += rest
    refused: list[Refusal] = [
        {"text": s.text, "index": s.index, "name": s.name, "op": s.op} for s in said if not s.undecided
    ]
    undecided = ", ".join(sorted({s.op for s in said if s.undecided}))
    needs = f"the parser needs a CUDA driver to judge {undecided}"
    if refused or not undecided:
        told = "; ".join(dict.fromkeys(f"{s.op}: {s.text}" for s in said if not s.undecided))
        yield failed("parse", seconds, told or "the parser gives no reason", refused)
    else:
        yield failed("parse", seconds, needs) | {"outcome": "undecided", "refusals": []}
    if refused and undecided:
        yield {"note": needs}
    if note:
        yield {"note": note}


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
    return _asserted(SOURCE.sub("", whole[1] if whole else error).strip())


def _asserted(text: str) -> str:
    quoted = QUOTED.search(text)
    return quoted[1].replace('" "', "") if quoted else ASSERTION.sub("", text)
