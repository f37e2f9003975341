"""TensorRT: builds an engine for the shapes of this run and runs it, where there is a GPU."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import Any

from vexlint.outcomes import Ran
from vexlint.runtimes import nvidia
from vexlint.runtimes.base import Answer, Loaded, Missing, Question, Refused, Setup

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def load(setup: Setup) -> Loaded:
    """An engine through Polygraphy's loaders and its TrtRunner.

    At fp32 and int8 the network is strongly typed: the engine computes in the types that the file writes, and TF32 is
    off. At fp16 the builder may choose half for any layer, as `trtexec --fp16` lets it. Raises `Missing` where the
    driver or a GPU is.
    """
    gpu = _gpu()
    import tensorrt
    from polygraphy.backend.trt import CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, Profile, TrtRunner

    if setup.folder:
        raise Refused("TensorRT reads external data beside the file only: write the model there first")
    half = setup.precision == "fp16" and hasattr(tensorrt.BuilderFlag, "FP16")
    profile = Profile()
    for name, shape in setup.shapes.items():
        profile.add(name, min=shape, opt=shape, max=shape)
    config = CreateConfig(tf32=False, fp16=half, profiles=[profile] if setup.shapes else None)
    network = NetworkFromOnnxPath(setup.model, strongly_typed=not half)
    runner = TrtRunner(EngineFromNetwork(network, config))
    runner.activate()
    return Loaded(runner, Ran("tensorrt", tensorrt.__version__, gpu, "fp16 allowed" if half else "strongly typed"))


def probe(question: Question) -> Iterator[Answer]:
    """See `nvidia.probe`. Raises `Missing` where the driver or a GPU is."""
    gpu = _gpu()
    import tensorrt

    yield from nvidia.probe(tensorrt, question, gpu)


def _gpu() -> str:
    """The name of the first GPU, asked of the driver itself: TensorRT would abort the process without one."""
    try:
        driver: Any = ctypes.CDLL(DRIVER)
    except OSError:
        raise Missing(f"no NVIDIA GPU here: the driver's {DRIVER} is not installed") from None
    count, device, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(256)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        raise Missing("no NVIDIA GPU here: the driver is installed but finds none")
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    return name.value.decode("utf-8", "replace")
