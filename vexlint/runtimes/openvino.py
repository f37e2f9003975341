"""OpenVINO, on its CPU unless another device is named."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vexlint.outcomes import Ran
from vexlint.runtimes.base import Answer, Loaded, Missing, Question, Refusal, Setup, failed, message, passed, stopwatch

PRECISIONS = {"fp32": "f32", "int8": "f32", "fp16": "f16"}  # the contract's -> INFERENCE_PRECISION_HINT

LACKING = re.compile(r"No conversion rule found for operations: ([^\n]+)")
NODE = re.compile(r"ONNX node '<Node\((\w+)\): ([^>]*)>'")
# Lines around the cause: C++ files, and what was being done
FRAME = re.compile(
    r"^(Exception from |Check .* failed at |FrontEnd API |Model wasn't |Summary:|-- |While validating |Shape inference)"
)
DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "boolean": "bool"}


def load(setup: Setup) -> Loaded:
    """A compiled model behind a runner of Polygraphy's kind; Polygraphy has none for OpenVINO.

    OpenVINO chooses a narrower type by itself on hardware that has one (bfloat16 on newer CPUs, half on GPUs), and a
    plain Resize is then off by 4e-3: the precision is always forced. What was granted is read back.
    """
    import openvino

    core = openvino.Core()
    device = _device(core, setup.device)
    hint = PRECISIONS[setup.precision] if device != "CPU" else "f32"  # its CPU has no half of its own
    settings = {"INFERENCE_PRECISION_HINT": hint, "EXECUTION_MODE_HINT": "ACCURACY", "PERFORMANCE_HINT": "LATENCY"}
    if device == "CPU":
        settings["INFERENCE_NUM_THREADS"] = str(setup.threads)
    compiled = core.compile_model(_read(core, setup), device, settings)
    granted = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    where = ", ".join(compiled.get_property("EXECUTION_DEVICES"))
    runner = _runner(compiled)
    runner.activate()
    return Loaded(runner, Ran("openvino", openvino.__version__.partition("-")[0], where, granted))


def _device(core: Any, wanted: str) -> str:
    """The device as OpenVINO spells it; of HETERO:GPU,CPU every part. Raises `Missing` for one that is not here."""
    device = (wanted or "CPU").upper()
    here = {d.partition(".")[0] for d in core.available_devices}
    for name in device.rpartition(":")[2].split(","):
        if name.partition(".")[0] not in here:
            raise Missing(f"OpenVINO has no device {name} here, only {', '.join(core.available_devices)}")
    return device


def _read(core: Any, setup: Setup) -> Any:
    if not setup.folder:
        return core.read_model(setup.model)
    data = Path(setup.model).read_bytes()
    os.chdir(setup.folder)  # of bytes, OpenVINO looks for external data in the working directory
    return core.read_model(data)


def _runner(compiled: Any) -> Any:
    """A Polygraphy runner for a compiled model. Its base class exists only once Polygraphy is imported."""
    import time
    from collections import OrderedDict

    from polygraphy.backend.base import BaseRunner
    from polygraphy.common import TensorMetadata

    class OpenVinoRunner(BaseRunner):  # type: ignore[misc]
        """Runs numpy arrays, float32 [B, ...] and the like, by input name."""

        def activate_impl(self) -> None:
            self.request = compiled.create_infer_request()
            self.outputs = [port.get_any_name() for port in compiled.outputs]

        def get_input_metadata_impl(self) -> Any:
            metadata = TensorMetadata()
            for port in compiled.inputs:
                shape = [d.get_length() if d.is_static else None for d in port.get_partial_shape()]
                metadata.add(port.get_any_name(), port.get_element_type().to_dtype(), shape)
            return metadata

        def infer_impl(self, feed_dict: Any) -> Any:
            start = time.perf_counter()
            self.request.infer(feed_dict, share_inputs=True)
            found = OrderedDict((n, self.request.get_output_tensor(i).data) for i, n in enumerate(self.outputs))
            self.inference_time = time.perf_counter() - start
            return found

        def deactivate_impl(self) -> None:
            del self.request

    return OpenVinoRunner(prefix="openvino-runner")


def probe(question: Question) -> Iterator[Answer]:
    """Whether it reads the file, where it would place each of its own operations, whether it compiles them."""
    import openvino

    core = openvino.Core()
    device = _device(core, next(iter(question.devices), ""))
    yield {"version": openvino.__version__.partition("-")[0], "device": device}
    seconds = stopwatch()
    try:
        model = core.read_model(question.model)
    except Exception as error:
        yield failed("read", seconds(), _words(message(error)), _refusals(message(error)))
        return
    yield passed("read", seconds())
    outputs = [[p.get_any_name(), _dtype(p), _sizes(p)] for p in model.outputs]
    yield _sits(core, model, device)
    seconds = stopwatch()
    try:
        core.compile_model(model, device, {"INFERENCE_NUM_THREADS": "1"} if device == "CPU" else {})
        yield passed("compile", seconds())
    except Exception as error:
        said = _words(message(error))
        yield failed("compile", seconds(), said, [{"text": said, "words": str(error).split()}])
    yield {"outputs": outputs}


def _sits(core: Any, model: Any, device: str) -> Answer:
    """The device of each operation, and those that are not on the first one asked for."""
    try:
        placed: dict[str, str] = core.query_model(model, device)
    except Exception as error:  # not every plugin can be asked
        return {"note": f"which operation sits on which device is not told: {_words(message(error))}"}
    first = device.rpartition(":")[2].split(",")[0]
    elsewhere: dict[str, list[list[str]]] = {}
    for name, where in placed.items():
        if where != first:
            elsewhere.setdefault(where, []).append([name, "", ""])
    return {"placement": dict(Counter(placed.values())), "elsewhere": elsewhere}


def _words(error: str) -> str:
    """What is said of the cause, without the C++ files around it."""
    lines = [line.strip() for line in error.splitlines()]
    told = [line for line in lines if line and not FRAME.match(line)]
    lacking = LACKING.search(error)
    return lacking[0] if lacking else " ".join(told) or " ".join(error.split())


def _refusals(error: str) -> list[Refusal]:
    """Every operator it cannot convert; where it knows all of them, the nodes that it could not convert. A node behind
    one of the former fails because of it."""
    if lacking := LACKING.search(error):
        names = [name.strip().rpartition(".") for name in lacking[1].split(",")]
        return [{"text": "no conversion rule for it", "domain": d, "op": op, "every": True} for d, _, op in names]
    found: list[Refusal] = []
    for match in NODE.finditer(error):
        told = [line.strip() for line in error[match.end() :].split("ONNX node '", maxsplit=1)[0].splitlines()[1:]]
        text = " ".join(line for line in told if line and not FRAME.match(line)) or "it cannot be converted"
        found.append({"text": text, "op": match[1], "name": match[2], "value": match[2]})
    return found


def _dtype(port: Any) -> str:
    name = port.get_element_type().get_type_name()
    return DTYPES.get(name, re.sub(r"^i(\d+)$", r"int\1", re.sub(r"^u(\d+)$", r"uint\1", name)))


def _sizes(port: Any) -> list[int | None] | None:
    shape = port.get_partial_shape()
    return None if shape.rank.is_dynamic else [d.get_length() if d.is_static else None for d in shape]
