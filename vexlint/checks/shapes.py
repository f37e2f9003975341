"""Input shapes: left open, or closed to something the contract does not say."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.checks.context import Context
from vexlint.files import nearest
from vexlint.model import tensors
from vexlint.model.graph import value_place
from vexlint.model.model import Model
from vexlint.model.shapes import Dim, Shape
from vexlint.tables import Target
from vexlint.values import Hit

WAY_OUT = "export with a fixed size, or give the contract a profile (min, opt, max)"


def dynamic_axis(model: Model, context: Context) -> Iterator[Hit]:
    """VEX401: input axes without a fixed size; one hit an input.

    The contract's shape makes it an error where it says a number; else a target that needs an optimization profile
    which the contract does not give decides.
    """
    outputs: dict[str, Shape] | None = None
    for name in model.graph.inputs:
        shape = model.graph.shape(name)
        if shape is None:
            continue
        open_axes = [i for i, d in enumerate(shape.dims) if not isinstance(d, int)]
        if not open_axes:
            continue
        outputs = _open_outputs(model) if outputs is None else outputs
        said = (
            f"{_axes(shape, open_axes)} {'is' if len(open_axes) == 1 else 'are'} dynamic{_reach(model, name, outputs)}"
        )
        where = value_place("input", name, open_axes[0] if len(open_axes) == 1 else None)
        data = {"axes": open_axes, "kinds": [axis_kind(shape, i) for i in open_axes]}
        needing = (
            [] if _covered(context, name, shape) else [t for t in context.targets if t.dynamic_shapes == "profile"]
        )
        if _contradicted(context, name, shape, open_axes):
            said += f"; the contract says {_list(context.contract.inputs[name].shape or ())}"
            yield Hit(where, said, WAY_OUT, contract=True, data=data)
        elif needing:
            worst = next((t for t in needing if t.named), needing[0])
            yield Hit(where, said + _minding(needing, context), WAY_OUT, str(worst), "refuses", fix="none", data=data)
        elif not _allowed(context, name):
            yield Hit(where, said, WAY_OUT, fix="none", data=data)


def _minding(needing: list[Target], context: Context) -> str:
    """Who builds no engine for open axes, and who takes them."""
    taking = [str(t) for t in context.targets if t.dynamic_shapes == "runs" and t.runtime != "onnx"]
    others = f", {' and '.join(taking)} take{'s' if len(taking) == 1 else ''} it without" if taking else ""
    return f"; {', '.join(map(str, needing))} builds no engine without an optimization profile{others}"


def _allowed(context: Context, name: str) -> bool:
    """The contract speaks of this input and leaves what is open in the file open too."""
    entry = context.contract.inputs.get(name)
    return entry is not None and entry.shape is not None


def _contradicted(context: Context, name: str, shape: Shape, open_axes: list[int]) -> list[int]:
    entry = context.contract.inputs.get(name)
    if entry is None or entry.shape is None or len(entry.shape) != shape.rank:
        return []
    return [i for i in open_axes if isinstance(entry.shape[i], int)]


def _covered(context: Context, name: str, shape: Shape) -> bool:
    """Whether the contract's profile covers the input: one size an axis, and the file's own where it fixes one."""
    profile = context.contract.profile.get(name)
    if profile is None or len(profile.min) != shape.rank:
        return False
    axes = zip(shape.dims, profile.min, profile.max, strict=True)
    return all(low == dim == high for dim, low, high in axes if isinstance(dim, int))


def axis_kind(shape: Shape, axis: int) -> str:
    """batch, height, width, sequence or axis: what the symbol says, else by position.

    An image is NCHW, or NHWC where only its last axis is 1, 3 or 4; without a batch CHW.
    """
    return named_kind(shape.dims[axis]) or placed_kind(shape, axis)


def named_kind(dim: Dim) -> str:
    """The kind that a symbol's name says, "" where it says none."""
    symbol = str(dim).lower()
    for kind in ("batch", "height", "width", "sequence"):
        if kind in symbol or (kind == "sequence" and "seq" in symbol):
            return kind
    return ""


def placed_kind(shape: Shape, axis: int) -> str:
    """The kind that an axis has by its position."""
    grey = shape.size(0) == 1 and not isinstance(shape.dims[-1], int)
    if shape.rank == 3 and (shape.size(0) in (3, 4) or grey):
        return ("channels", "height", "width")[axis]
    if shape.rank == 4:
        last = shape.size(3) in (1, 3, 4) and shape.size(1) not in (1, 3, 4)
        kinds = ("batch", "height", "width", "channels") if last else ("batch", "channels", "height", "width")
        return kinds[axis]
    if shape.rank > 1 and axis == 0:
        return "batch"
    return "sequence" if shape.rank == 3 and axis == 1 else "axis"


def _axes(shape: Shape, axes: list[int]) -> str:
    return ", ".join(f"{axis_kind(shape, i)} (axis {i}{_symbol(shape.dims[i])})" for i in axes)


def _symbol(dim: Dim) -> str:
    return f", {dim!r}" if isinstance(dim, str) else ""


def _open_outputs(model: Model) -> dict[str, Shape]:
    """The outputs that have no fixed size either."""
    shapes = ((name, model.graph.shape(name)) for name in model.graph.outputs)
    return {name: s for name, s in shapes if s is not None and any(not isinstance(d, int) for d in s.dims)}


def _reach(model: Model, name: str, outputs: dict[str, Shape]) -> str:
    """Which of these outputs depend on the input."""
    dependent = model.graph.downstream([name])
    reached = [f"{output} {shape}" for output, shape in outputs.items() if output in dependent]
    more = f" and {len(reached) - 3} more" if len(reached) > 3 else ""
    return f", through to {', '.join(reached[:3])}{more}" if reached else ""


def not_contract(model: Model, context: Context) -> Iterator[Hit]:
    """VEX402: an input that the contract gives another rank, size or element type, or that the file does not have."""
    known = list(model.graph.inputs)
    for name, wanted in context.contract.inputs.items():
        if name not in known:
            message = f"the contract has an input {name!r}, the file has {', '.join(known) or 'none'}"
            way_out = "name the input as the file does, or export again"
            yield Hit(value_place("input", name), message + nearest(name, known), way_out, contract=True)
            continue
        shape = model.graph.shape(name)
        if shape is None:
            continue
        if wanted.shape is not None and _differs(shape, wanted.shape):
            message = f"shape {shape} where the contract says {_list(wanted.shape)}"
            yield Hit(value_place("input", name), message, "export again at the contract's shape", contract=True)
        if wanted.dtype is not None and shape.dtype != tensors.ONNX_NAMES.get(wanted.dtype, wanted.dtype):
            message = f"element type {shape.dtype} where the contract says {wanted.dtype}"
            yield Hit(value_place("input", name), message, "export again with that type", contract=True)


def _differs(shape: Shape, wanted: tuple[int | str, ...]) -> bool:
    if shape.rank != len(wanted):
        return True
    pairs = zip(shape.dims, wanted, strict=True)
    return any(isinstance(d, int) and isinstance(w, int) and d != w for d, w in pairs)


def _list(shape: tuple[int | str, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"
