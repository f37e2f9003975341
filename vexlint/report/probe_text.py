"""What one runtime said of a model, for people: a block of a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.outcomes import Probe, ProbedOutput, Stage
from vexlint.report.text import many, paint, wrap

COLOURS = {"passed": "32", "failed": "31", "undecided": "33"}
SHOWN = 5  # outputs that are listed


def block(probe: Probe, colour: bool) -> Iterator[str]:
    """The runtime, its steps, where the nodes sit, the outputs, what kept it from answering."""
    head = f"{probe.runtime} {probe.version}, {probe.device}" if probe.version else probe.target
    yield paint(f"  {head}", "1", colour)
    for stage in probe.stages:
        yield _stage(stage, colour)
    if probe.placement:
        yield from _entry("nodes", ", ".join(f"{count:,} on {device}" for device, count in probe.placement.items()))
    for output in probe.outputs[:SHOWN]:
        yield from _entry("output", _output(output))
    if len(probe.outputs) > SHOWN:
        yield from _entry("", f"and {many(len(probe.outputs) - SHOWN, 'more output')}")
    for note in probe.notes:
        yield from _entry("note", note)
    if probe.reason:
        yield from _entry("not asked" if not probe.stages else "open", probe.reason)


def _entry(label: str, text: str) -> Iterator[str]:
    yield from wrap(f"{label:<9} {text}", 4, 10)


def _stage(stage: Stage, colour: bool) -> str:
    said = paint(f"{stage.outcome:<9}", COLOURS[stage.outcome], colour)
    return f"    {stage.name:<9} {said} in {stage.seconds:.2f} s"


def _output(output: ProbedOutput) -> str:
    seen = f"{output.dtype} {output.shape}"
    if not output.agrees:
        return f"{output.name} {seen}, against the declared {output.declared}"
    return f"{output.name} {seen}" + ("" if output.declared in ("", seen) else f", declared {output.declared}")
