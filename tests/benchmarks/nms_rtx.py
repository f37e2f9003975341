"""Which tails TensorRT-RTX builds an engine of: `python -m tests.benchmarks.nms_rtx` (no GPU needed, extra `rtx`).

Parsing and building are told apart: its parser takes a NonMaxSuppression that its builder has no implementation of.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from vexlint.model.layouts import LAYOUTS
from vexlint.model.shapes import Shape
from vexlint.nms import tail
from vexlint.nms.heads import Head
from vexlint.nms.tail import Settings


def head(batch: int | str) -> Head:
    """A v8 head of 80 classes on 320 x 320."""
    shape = Shape("float", (batch, 84, 2100))
    return Head(LAYOUTS["v8"], ("raw",), (shape,), 80, 2100, 1, (320, 320), True)


def verdict(kind: str, batch: int | str) -> tuple[bool, bool, str]:
    """Whether the parser takes a tail, whether an engine is built, and what is said. An open batch gets the profile
    1, 2, 4."""
    import tensorrt_rtx as trt

    said: list[str] = []

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            if severity in (trt.ILogger.ERROR, trt.ILogger.INTERNAL_ERROR):
                said.append(" ".join(message.split()))

    logger = Logger()
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    parsed = parser.parse(tail.build(head(batch), Settings(0.25, 0.45, 300, tail=kind), 17).SerializeToString())
    if not parsed:
        return False, False, str(parser.get_error(0).desc())
    config = builder.create_builder_config()
    if isinstance(batch, str):
        profile = builder.create_optimization_profile()
        profile.set_shape("raw", (1, 84, 2100), (2, 84, 2100), (4, 84, 2100))
        config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    return True, engine is not None, f"{engine.nbytes / 1e6:.1f} MB" if engine is not None else (said or ["?"])[0]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| tail | batch | parsed | engine | |\n|---|---|---|---|---|")
    wrong = False
    for kind in ("loop", "planes"):
        for batch in (1, "batch"):
            parsed, built, text = verdict(kind, batch)
            wrong |= built != (kind == "loop")
            print(
                f"| {kind} | {batch} | {'yes' if parsed else 'refused'} | {'built' if built else 'refused'} | {text} |"
            )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
