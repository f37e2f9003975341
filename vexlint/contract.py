"""Drafts the `[[model]]` entry of `vexlint.toml` from a file: what can be read off it, and room for what cannot."""

from __future__ import annotations

import json
from pathlib import Path

from vexlint.checks import resize
from vexlint.config import RESIZE_MODES, TASKS
from vexlint.model import heads, tensors
from vexlint.model.model import Model
from vexlint.model.read import read
from vexlint.model.shapes import Shape
from vexlint.model.wire import Unreadable
from vexlint.values import VexlintError

PREPROCESSING = (
    '# preprocessing = { colour = "RGB", layout = "NCHW", fit = "letterbox", interpolation = "linear", pad = 114, '
    "scale = 255, mean = [0, 0, 0], std = [1, 1, 1] }"
)
NMS = '# nms = {{ layout = "{}", score = 0.25, iou = 0.45, max_detections = 300 }}'


def draft(path: Path) -> str:
    """The entry as TOML. What a file cannot say (preprocessing, NMS thresholds) stands as a comment to fill in.

    Raises VexlintError where the file is no readable model.
    """
    try:
        model = read(path)
    except Unreadable as error:
        raise VexlintError(f"{path}: {error}") from None
    lines = ["# from the file as it is, faults included: compare each line with what the network was trained with"]
    lines += ["[[model]]", f"path = {json.dumps(path.as_posix(), ensure_ascii=False)}"]
    if task := _task(model):
        lines.append(f'task = "{task}"')
    if "" in model.opsets:
        lines.append(f"opset = {model.opsets['']}")
    if mode := _resize(model):
        lines.append(f'resize = "{mode}"')
    lines += [f"inputs.{_key(name)} = {{ {_input(model.graph.shape(name))} }}" for name in model.graph.inputs]
    lines += ["# how pictures become the input; the file cannot say:", PREPROCESSING]
    if found := model.heads:
        lines += ["# say this where NMS belongs inside the graph:", NMS.format(found[0].layout.name)]
    return "\n".join(lines) + "\n"


def _task(model: Model) -> str | None:
    named = model.metadata.get("task")
    if named in TASKS:
        return named
    return "detect" if heads.selects(model) or model.heads else None


def _resize(model: Model) -> str | None:
    """The one coordinate mode of the interpolating Resizes; None where there are none, or several."""
    modes = {resize.canonical(n) for n in resize.interpolating(model)}
    mode = modes.pop() if len(modes) == 1 else None
    return mode if mode in RESIZE_MODES else None


def _input(shape: Shape | None) -> str:
    if shape is None:
        return ""
    sizes = [json.dumps(d if d is not None else f"axis{i}") for i, d in enumerate(shape.dims)]
    return f'shape = [{", ".join(sizes)}], dtype = "{tensors.NUMPY_NAMES.get(shape.dtype, shape.dtype)}"'


def _key(name: str) -> str:
    """A TOML key: bare where it may be."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else json.dumps(name, ensure_ascii=False)
