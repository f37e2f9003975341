"""OpenVINO, on its CPU unless another device is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vexlint.runtimes.base import Loaded, Missing, Setup
from vexlint.values import Ran

PRECISIONS = {"fp32": "f32", "int8": "f32", "fp16": "f16"}  # the contract's -> INFERENCE_PRECISION_HINT


def load(setup: Setup) -> Loaded:
    """A compiled model behind a runner of Polygraphy's kind; Polygraphy has none for OpenVINO.

    OpenVINO chooses a narrower type by itself on hardware that has one (bfloat16 on newer CPUs, half on GPUs), and a
    plain Resize is then off by 4e-3: the precision is always forced. What was granted is read back.
    """
    import openvino

    core = openvino.Core()
    device = (setup.device or "CPU").upper()
    if device.partition(".")[0] not in {d.partition(".")[0] for d in core.available_devices}:
        raise Missing(f"OpenVINO has no device {device} here, only {', '.join(core.available_devices)}")
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
