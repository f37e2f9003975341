"""ONNX Runtime: CPU, and any execution provider that is really there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vexlint.files import nearest
from vexlint.outcomes import Ran
from vexlint.runtimes.base import Answer, Loaded, Missing, Question, Refusal, Setup, failed, message, passed, stopwatch

CPU = "CPUExecutionProvider"
SUFFIX = "ExecutionProvider"

# How ONNX Runtime names what it refuses. It stops at the first: an operator it does not know stands for all its nodes.
NAMED = [
    re.compile(r"(?P<domain>[\w.\-]*):(?P<op>\w+)\(-?\d+\) is not a registered function/op"),
    re.compile(r"No Op registered for (?P<op>\w+) with domain_version"),
    re.compile(r"same node name \((?P<name>[^)]*)\)"),
    re.compile(r"Bad node spec for node\. Name: (?P<name>.*?) OpType: (?P<op>\w+)"),
    re.compile(r"implementation for (?P<op>\w+)\(\d+\) node with name '(?P<name>[^']*)'"),
    re.compile(
        r'In Node, \((?P<name>"[^"]*"|), (?P<op>\w+), "(?P<domain>[^"]*)", .*?-> \("(?P<value>[^"]*)"', re.DOTALL
    ),
    re.compile(r"Node \((?P<name>[^)]*)\) Op \((?P<op>\w+)\)"),
    re.compile(r"(?:Optype|operator) \((?P<op>\w+)\).*? in node \((?P<name>[^)]*)\)"),
    re.compile(r"onnxruntime::(?P<op>\w+)(?:<[^>]*>)?::(?P=op)\("),
]
WHOLE = NAMED[:3]  # of these, every node
FRAME = re.compile(
    r"^(?:Fatal error: |This is an invalid model\. (?:In Node, .*?, Error |Error: )?)|\s*==> Context: Bad node spec.*",
    re.DOTALL,
)
SOURCE = re.compile(r"/onnxruntime_src/\S+:\d+ .*?\)(?: const)?(?: \[with [^\]]*\])? (?=\S)")  # where it was said


def load(setup: Setup) -> Loaded:
    """A session through Polygraphy's runner.

    The CPU runs float32 as it is. At fp32 CUDA may not round to TF32 (10 bits of mantissa, its default) and TensorRT
    not to half. ONNX Runtime puts a session on the CPU without a word where a provider's libraries are missing: which
    providers it has is read back, and another one than asked for is no session. Raises `Missing` for that.
    """
    import onnxruntime
    from polygraphy.backend.onnxrt import OnnxrtRunner

    provider = _provider(onnxruntime, setup.device)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = setup.threads
    options.log_severity_level = 3  # errors only: warnings are about the model's style
    # several runtimes take turns on the same cores: a thread that spins takes another one's turn
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    model: Any = setup.model
    if setup.folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", setup.folder)
        model = Path(setup.model).read_bytes()
    providers = [(provider, _provider_options(provider, setup.precision)), *([CPU] if provider != CPU else [])]
    session = onnxruntime.InferenceSession(model, options, providers=providers)
    ran = Ran("onnxruntime", onnxruntime.__version__, provider, _placement(session, provider))
    runner = OnnxrtRunner(session)
    runner.activate()
    return Loaded(runner, ran)


def _provider(onnxruntime: Any, wanted: str) -> str:
    """The full name of a provider by any spelling of it: "cuda", "CUDAExecutionProvider"."""
    if not wanted:
        return CPU
    available = onnxruntime.get_available_providers()
    every: dict[str, str] = {p.removesuffix(SUFFIX).lower(): p for p in (*onnxruntime.get_all_providers(), *available)}
    short = wanted.removesuffix(SUFFIX).lower()
    has = ", ".join(available)
    if short not in every:
        raise Missing(f"ONNX Runtime knows no provider {wanted!r}{nearest(short, list(every))}; this one has {has}")
    if every[short] not in available:
        raise Missing(f"this build of onnxruntime has no {every[short]}, only {has}: pip install 'vexlint[gpu]'")
    return every[short]


def _provider_options(provider: str, precision: str) -> dict[str, str]:
    if provider == "CUDAExecutionProvider":
        return {"use_tf32": "0"} if precision == "fp32" else {}
    if provider == "TensorrtExecutionProvider":
        return {"trt_fp16_enable": "1" if precision == "fp16" else "0"}
    return {}


def _placement(session: Any, provider: str) -> str:
    """Which nodes went elsewhere than to the provider asked for; "" where none did. Raises `Missing` where all did."""
    if provider not in session.get_providers():
        raise Missing(
            f"asked for {provider}, onnxruntime made a session on {', '.join(session.get_providers())}: the libraries "
            f"of {provider.removesuffix(SUFFIX)} are missing or do not fit this version"
        )
    if provider == CPU:
        return ""
    try:
        assigned = session.get_provider_graph_assignment_info()
    except Exception:  # before 1.24 there is no such record, and a provider may keep none
        return "which nodes fell back to the CPU is not recorded"
    counts: Counter[str] = Counter()
    for subgraph in assigned:
        counts[subgraph.ep_name] += len(subgraph.get_nodes())
    if not counts[provider]:
        raise Missing(f"{provider} took none of the nodes: all {counts.total()} went to {', '.join(counts)}")
    elsewhere = [f"{count} on {name}" for name, count in counts.items() if name != provider]
    return f"{counts[provider]} of {counts.total()} nodes ({', '.join(elsewhere)})" if elsewhere else ""


def probe(question: Question) -> Iterator[Answer]:
    """Whether a session can be made, on which provider each node sits, the outputs' shapes as it infers them."""
    import onnxruntime

    wanted = [_provider(onnxruntime, name) for name in question.devices] or [CPU]
    yield {"version": onnxruntime.__version__, "device": ", ".join(wanted)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it has to say comes with the exception
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    seconds = stopwatch()
    try:
        session = onnxruntime.InferenceSession(question.model, options, providers=list(dict.fromkeys([*wanted, CPU])))
    except Exception as error:
        yield failed("load", seconds(), _words(message(error)), _refusals(message(error)))
        return
    yield passed("load", seconds())
    yield from _sits(session, wanted[0])
    yield {"outputs": [[port.name, _dtype(port.type), _sizes(port.shape)] for port in session.get_outputs()]}


def _sits(session: Any, first: str) -> Iterator[Answer]:
    """The nodes on each provider, and those that are not on the first one asked for. A session that lacks it (its
    libraries are missing, or do not fit) says nothing about it."""
    here = first in session.get_providers()
    if not here:
        yield {"inactive": first, "active": session.get_providers()}
    try:
        assigned = session.get_provider_graph_assignment_info()
    except Exception:  # before 1.24 there is no such record, and a provider may keep none
        yield {"note": "which node sits on which provider is not recorded"}
        return
    counts: Counter[str] = Counter()
    elsewhere: dict[str, list[list[str]]] = {}
    for part in assigned:
        nodes = part.get_nodes()
        counts[part.ep_name] += len(nodes)
        if here and part.ep_name != first:
            elsewhere.setdefault(part.ep_name, []).extend([n.name, n.domain, n.op_type] for n in nodes)
    yield {"placement": dict(counts), "elsewhere": elsewhere}


def _words(error: str) -> str:
    """The message without the status before it, the path in it and the places in ONNX Runtime's own source."""
    told = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Load model from .*? failed:)?", "", error)
    return FRAME.sub("", SOURCE.sub("", told)).strip()


def _refusals(error: str) -> list[Refusal]:
    for pattern in NAMED:
        if found := pattern.search(error):
            named = {key: (value or "").strip('"') for key, value in found.groupdict().items()}
            return [{"text": _words(error), "every": pattern in WHOLE, **named}]
    return []


def _dtype(text: str) -> str:
    """ "float32" of "tensor(float)"; what is no tensor stays as it is."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(inner, inner)


def _sizes(shape: Any) -> list[int | None]:
    return [d if isinstance(d, int) else None for d in shape or []]
