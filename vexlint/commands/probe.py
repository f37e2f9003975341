"""`vexlint probe`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vexlint.commands.common import ConfigFile, FailOn, Format, Targets, check_format, exit_code, render, settle
from vexlint.values import Report, VexlintError

GIB = 1 << 30


def probe(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    target: Targets = [],  # noqa: B006  typer copies it
    provider: Annotated[
        list[str],
        typer.Option(help="ONNX Runtime's execution provider, e.g. cuda; repeatable, the first one wanted most."),
    ] = [],  # noqa: B006
    device: Annotated[str, typer.Option(help="OpenVINO's device, e.g. GPU.", show_default="CPU")] = "",
    compute_capability: Annotated[
        str, typer.Option(help="GPU that TensorRT-RTX builds for, e.g. 8.9.", show_default="any")
    ] = "",
    deadline: Annotated[
        float | None, typer.Option(help="Seconds for each step.", show_default="120; 1800 for TensorRT")
    ] = None,
    memory: Annotated[
        float | None, typer.Option(help="GiB that a runtime may take.", show_default="3/4 of this machine's")
    ] = None,
    fail_on: FailOn = "",
    output_format: Format = "text",
    config: ConfigFile = None,
) -> None:
    """Ask installed runtimes whether they take a model: parse, build, placement."""
    from vexlint import engine
    from vexlint import paths as files
    from vexlint.probes import ask

    check_format(output_format)
    for name, value in (("--deadline", deadline), ("--memory", memory)):
        if value is not None and value <= 0:
            raise VexlintError(f"{name} should be more than 0")
    run = settle(config, target, ["VEX9"], [], fail_on)
    options = ask.Options(
        names=tuple(target) or run.config.targets,
        providers=tuple(provider),
        device=device,
        capability=compute_capability,
        deadline=deadline,
        memory=None if memory is None else int(memory * GIB),
    )
    prober = ask.prober(options, run.targets)
    found = tuple(engine.check_file(path, run, prober=prober) for path in files.expand(paths))
    report = Report(found, tuple(str(t) for t in run.targets if t.runtime != "onnx"))
    sys.stdout.write(render(report, output_format))
    raise typer.Exit(exit_code(report, run.config.fail_on))
