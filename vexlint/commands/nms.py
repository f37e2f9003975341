"""`vexlint nms`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vexlint.commands.common import CLEAN, NOT_JUDGED, ConfigFile, colour, settle
from vexlint.values import VexlintError


def nms(
    path: Annotated[Path, typer.Argument(help="One model.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write.", show_default=False)] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write over the source.")] = False,
    layout: Annotated[
        str | None,
        typer.Option(
            help="v8, v5, v7, corners, centres, corners01 or centres01, where the file cannot say.", show_default=False
        ),
    ] = None,
    score: Annotated[
        float | None, typer.Option(help="Scores must be above it.", show_default="contract, else 0.25")
    ] = None,
    iou: Annotated[
        float | None, typer.Option(help="Overlap above it goes.", show_default="contract, else 0.45")
    ] = None,
    max_detections: Annotated[
        int | None, typer.Option(help="Rows that come out.", show_default="contract, else 300")
    ] = None,
    pre: Annotated[int, typer.Option(help="Candidates that go in, at most 3840.")] = 1000,
    tail: Annotated[
        str, typer.Option(help="planes (NonMaxSuppression), loop (without it), plugin (TensorRT).")
    ] = "planes",
    multi_label: Annotated[bool, typer.Option("--multi-label", help="Every class of a box above the score.")] = False,
    agnostic: Annotated[bool, typer.Option("--agnostic", help="Classes suppress each other.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Cut a tail of vexlint's off again.")] = False,
    verify: Annotated[bool, typer.Option("--verify/--no-verify", help="Prove the tail before writing.")] = True,
    images: Annotated[
        Path | None, typer.Option(help="Folder of images for the proof, instead of noise.", show_default=False)
    ] = None,
    shape: Annotated[
        list[str], typer.Option(help="A dynamic input's size in the proof; repeatable.", show_default=False)
    ] = [],  # noqa: B006  typer copies it
    config: ConfigFile = None,
) -> None:
    """Insert non-maximum suppression behind a detector head, prove it, touch nothing else."""
    from vexlint.nms import insert
    from vexlint.report import nms_text
    from vexlint.verify.inputs import parse_shapes

    if [output is not None, in_place].count(True) != 1:
        raise VexlintError("say where to write: one of -o FILE, --in-place")
    to = output or path
    if remove:
        same = insert.remove(path, to, in_place)
        sys.stdout.write(nms_text.removed(str(path), str(to), same))
        raise typer.Exit(CLEAN)
    contract = settle(config, [], [], [], "").config.contract(path)
    options = insert.Options(
        layout, score, iou, max_detections, pre, tail, multi_label, agnostic, verify, images, parse_shapes(shape)
    )
    done = insert.insert(path, to, options, contract, in_place)
    made = done.plan
    thresholds = {"score": made.settings.score, "iou": made.settings.iou, "max_detections": made.settings.most}
    said = [f"{n} {v:g} ({made.origins[n]})" for n, v in thresholds.items()]
    said.append(f"pre {made.settings.candidates(made.head)}")
    facts = nms_text.Facts(str(path), str(made.head), ", ".join(said), tail, made.names)
    sys.stdout.write(nms_text.render(facts, done.proofs, str(to) if done.written else None, colour()))
    raise typer.Exit(CLEAN if done.written else NOT_JUDGED)
