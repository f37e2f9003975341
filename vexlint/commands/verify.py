"""`vexlint verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vexlint.commands.common import CLEAN, FINDINGS, NOT_JUDGED, ConfigFile, Format, check_format, colour
from vexlint.values import VexlintError

EXITS = {"proven": CLEAN, "drifts": FINDINGS, "not proven": NOT_JUDGED}


def verify(
    reference: Annotated[
        Path, typer.Argument(help="What is right: a model, or recorded outputs (.npz, Polygraphy's .json).")
    ],
    candidate: Annotated[Path, typer.Argument(help="The model that has to compute the same.")],
    runtime: Annotated[
        list[str],
        typer.Option(
            help="Where the candidate runs: onnxruntime, openvino, tensorrt, with a device as onnxruntime:cuda; "
            "repeatable, and each has to run."
        ),
    ] = ["onnxruntime"],  # noqa: B006  typer copies it
    reference_runtime: Annotated[str, typer.Option(help="Where the reference runs.")] = "onnxruntime",
    provider: Annotated[
        str, typer.Option(help="ONNX Runtime's execution provider for the candidate, e.g. cuda.", show_default="CPU")
    ] = "",
    images: Annotated[
        Path | None, typer.Option(help="Folder of images, fed through the contract's preprocessing.")
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option(help="Recorded inputs instead: .npz, or Polygraphy's .json.", show_default=False)
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="How many samples of noise, where nothing else is fed.", show_default="8")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 0,
    shape: Annotated[
        list[str], typer.Option(help="A dynamic input's size, e.g. images=1x3x320x320; repeatable.", show_default=False)
    ] = [],  # noqa: B006
    raw: Annotated[
        bool, typer.Option("--raw", help="Judge tensors alone, also where the model is a detector.")
    ] = False,
    save_outputs: Annotated[
        Path | None, typer.Option(help="Record the reference's outputs in this .npz.", show_default=False)
    ] = None,
    deadline: Annotated[float, typer.Option(help="Seconds that one sample may take.")] = 120.0,
    output_format: Format = "text",
    config: ConfigFile = None,
) -> None:
    """Run two models on the same inputs and say whether they compute the same."""
    from vexlint.config import Config, find, load
    from vexlint.report import drift_json, drift_text
    from vexlint.verify import proof
    from vexlint.verify.inputs import parse_shapes

    check_format(output_format)
    if deadline <= 0:
        raise VexlintError("--deadline should be more than 0 seconds")
    request = proof.Request(
        runtimes=tuple(runtime),
        reference_runtime=reference_runtime,
        provider=provider,
        images=images,
        inputs=inputs,
        samples=samples,
        seed=seed,
        shapes=parse_shapes(shape),
        save=save_outputs,
        raw=raw,
        deadline=deadline,
    )
    found = config or find(Path.cwd())
    result = proof.verify(reference, candidate, request, load(found) if found else Config())
    sys.stdout.write(drift_json.render(result) if output_format == "json" else drift_text.render(result, colour()))
    raise typer.Exit(EXITS[result.status])
