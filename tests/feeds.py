"""Inputs for models nobody gave inputs for: small noise by declared type and shape, and whether two results agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

FREE = 2  # what an axis without a number is run with
LIMIT = 1 << 22  # elements; a larger input is not made


def feeds_for(model: onnx.ModelProto, given: Mapping[str, Any] | None = None, seed: int = 0) -> dict[str, Any] | None:
    """An array for every input that has no initializer: the given one where it fits the declaration, else noise
    (floats in [0, 1), integers in [0, 2)). None where an input is no tensor or too large to make."""
    dice = np.random.default_rng(seed)
    held = {t.name for t in model.graph.initializer}
    made: dict[str, Any] = {}
    for value in model.graph.input:
        if value.name in held:
            continue
        array = (given or {}).get(value.name)
        array = array if fits(array, value) else noise(value, dice)
        if array is None:
            return None
        made[value.name] = array
    return made


def fits(array: Any, value: onnx.ValueInfoProto) -> bool:
    """Whether an array has the declared element type and shape; what is no tensor is taken as it is."""
    if array is None:
        return False
    if not value.type.HasField("tensor_type"):
        return True
    kind, shape = value.type.tensor_type, np.shape(array)
    if np.asarray(array).dtype != _dtype(kind.elem_type):
        return False
    dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
    same = len(dims) == len(shape) and all(d in (None, s) for d, s in zip(dims, shape, strict=True))
    return same or not kind.HasField("shape")


def _dtype(elem_type: int) -> np.dtype[Any] | None:
    """Numpy's type for an element type, None where the number is none."""
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
    except KeyError:
        return None


def noise(value: onnx.ValueInfoProto, dice: np.random.Generator) -> Any:
    """Noise for a tensor input, None where there can be none."""
    kind = value.type.tensor_type
    dtype = _dtype(kind.elem_type)
    shape = [d.dim_value if d.HasField("dim_value") else FREE for d in kind.shape.dim]
    if dtype is None or not kind.HasField("shape") or min(shape, default=0) < 0 or np.prod(shape, dtype=float) > LIMIT:
        return None
    if dtype.kind == "O":
        return np.full(shape, "a", object)
    return dice.random(shape).astype(dtype) if dtype.kind not in "iub" else dice.integers(0, 2, shape).astype(dtype)


def agree(got: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether two lists of outputs are the same but for rounding: 1e-3 relative, 1e-5 absolute."""
    return len(got) == len(wanted) and all(_same(a, b) for a, b in zip(got, wanted, strict=True))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) or isinstance(b, list | tuple):
        return isinstance(a, list | tuple) and isinstance(b, list | tuple) and agree(a, b)
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.dtype.kind in "fc":
        return bool(np.allclose(x, y, rtol=1e-3, atol=1e-5, equal_nan=True))
    return bool((x == y).all())
