"""The process behind `child`: reads models, one base64 line each, and answers whether the runtime takes them.

Started by path; imports nothing of vexlint, so that it holds the runtime and nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

Load = Callable[[bytes], None]


def onnxruntime() -> tuple[str, Load]:
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL

    def load(data: bytes) -> None:
        ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    return ort.__version__, load


def openvino() -> tuple[str, Load]:
    import openvino as ov

    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})

    def load(data: bytes) -> None:
        core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    return ov.__version__, load


def tensorrt_rtx() -> tuple[str, Load]:
    import tensorrt_rtx as trt

    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    builder = trt.Builder(logger)

    def load(data: bytes) -> None:
        parser = trt.OnnxParser(builder.create_network(0), logger)
        if not parser.parse(data):
            raise ValueError("; ".join(parser.get_error(i).desc() for i in range(min(parser.num_errors, 2))))

    return trt.__version__, load


RUNTIMES: dict[str, Callable[[], tuple[str, Load]]] = {
    "onnxruntime": onnxruntime, "openvino": openvino, "tensorrt-rtx": tensorrt_rtx,
}  # fmt: skip


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)  # a runtime that prints shall not print into the answers
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    version, load = RUNTIMES[sys.argv[1]]()
    _say(answers, {"version": version})
    for line in sys.stdin:
        try:
            load(base64.b64decode(line))
            refused = ""
        except Exception as error:  # whatever a runtime raises is its answer
            refused = re.sub(r"\s+", " ", str(error))[:300] or type(error).__name__
        _say(answers, {"refused": refused})


def _say(answers: Any, answer: dict[str, str]) -> None:
    answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
