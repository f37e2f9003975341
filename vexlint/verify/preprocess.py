"""From a picture to a network's input, by the contract's `preprocessing`.

value = (pixel / scale - mean) / std, per channel, after the picture was brought to the input's size and its channels
into the order of `colour`. Resampling works on pixel centres and rounds to whole pixels, as camera pipelines do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vexlint.config import PICTURES
from vexlint.values import VexlintError
from vexlint.verify.inputs import Shape, Spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]
    Floats = NDArray[np.float32]

LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601, of R, G and B


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a picture becomes one input.

    `fit`: letterbox scales the whole picture into the middle and fills the rest with `pad`, crop scales it until it
    covers the input and cuts the middle out, stretch ignores the aspect ratio. `interpolation`: linear mixes the
    nearest pixels (no smoothing, as OpenCV's INTER_LINEAR), nearest takes the pixel at floor(i * scale), area
    averages what an output pixel covers. `scale`, `mean` and `std`: see the head of this module.
    """

    height: int
    width: int
    channels: int
    dtype: str
    colour: str = "RGB"
    layout: str = "NCHW"
    fit: str = "letterbox"
    interpolation: str = "linear"
    pad: float = 114
    scale: float = 255.0
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)


def recipe(spec: Spec, settings: Mapping[str, Any], where: str) -> Recipe:
    """The recipe for an input, [B,C,H,W] or [B,H,W,C], from the contract's table; what it leaves out is as in
    `Recipe`. Raises VexlintError for a setting that cannot be, naming it; `where` names the contract."""
    layout = settings.get("layout", "NCHW")
    channels, height, width = spec.shape[1:] if layout == "NCHW" else (spec.shape[3], *spec.shape[1:3])
    colour = settings.get("colour", "RGB")
    if channels != (1 if colour == "GRAY" else 3):
        raise VexlintError(
            f"{where}: input {spec.name} {list(spec.shape)} has {channels} channels as {layout}, which is not "
            f"{colour}: mend layout or colour in preprocessing"
        )
    kept: dict[str, Any] = {key: settings[key] for key in PICTURES if key in settings}
    kept |= {key: _number(settings, key, where) for key in ("pad", "scale") if key in settings}
    kept |= {key: _numbers(settings[key], channels, key, where) for key in ("mean", "std") if key in settings}
    made = Recipe(height, width, channels, spec.dtype, **kept)
    _check(made, spec, where)
    return made


def _number(settings: Mapping[str, Any], key: str, where: str) -> Any:
    value = settings[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise VexlintError(f"{where}: preprocessing.{key} should be a number, not {value!r}")
    return value


def _numbers(value: Any, channels: int, key: str, where: str) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    good = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not good or len(values) not in (1, channels):
        raise VexlintError(f"{where}: preprocessing.{key} should be one number a channel ({channels}), not {value!r}")
    return tuple(float(v) for v in values)


def _check(made: Recipe, spec: Spec, where: str) -> None:
    if not 0 <= made.pad <= 255 or made.scale <= 0 or min(made.std) <= 0:
        raise VexlintError(f"{where}: preprocessing wants pad in 0..255, and scale and std above 0")
    plain = made.scale == 1 and not any(made.mean) and set(made.std) == {1.0}
    if not spec.dtype.startswith("float") and (spec.dtype in ("int8", "bool") or not plain):
        raise VexlintError(
            f"{where}: input {spec.name} is {spec.dtype}: only an unsigned or wider one takes pixels, as "
            "they are, and preprocessing must say scale = 1, mean = [0, 0, 0], std = [1, 1, 1]"
        )


def fill(made: Recipe, picture: Picture, room: NDArray[Any]) -> None:
    """Writes a picture, uint8 [H, W, 3] RGB of any size, into one sample's share of the input: [C, h, w] or
    [h, w, C]."""
    normalise(made, fitted(made, picture), room)


def fitted(made: Recipe, picture: Picture) -> Picture:
    """The picture at the input's size, uint8 [h, w, 3] RGB."""
    import numpy as np

    height, width = picture.shape[:2]
    if (height, width) == (made.height, made.width):
        return picture
    if made.fit == "stretch":
        return resize(picture, made.height, made.width, made.interpolation)
    ratios = made.height / height, made.width / width
    scale = min(ratios) if made.fit == "letterbox" else max(ratios)
    high, wide = max(round(height * scale), 1), max(round(width * scale), 1)
    scaled = resize(picture, high, wide, made.interpolation)
    if made.fit == "crop":
        top, left = (high - made.height) // 2, (wide - made.width) // 2
        return scaled[top : top + made.height, left : left + made.width]
    canvas = np.full((made.height, made.width, 3), round(made.pad), np.uint8)
    top, left = (made.height - high) // 2, (made.width - wide) // 2
    canvas[top : top + high, left : left + wide] = scaled
    return canvas


def normalise(made: Recipe, picture: Picture, room: NDArray[Any]) -> None:
    """Writes a picture of the input's size, uint8 [h, w, 3] RGB, into one sample's share of the input."""
    import numpy as np

    values: NDArray[Any] = picture
    if made.colour == "BGR":
        values = picture[:, :, ::-1]
    elif made.colour == "GRAY":
        values = np.rint(picture @ np.array(LUMA, np.float32)).astype(np.uint8)[:, :, None]
    if made.layout == "NCHW":
        values = values.transpose(2, 0, 1)
    if not made.dtype.startswith("float"):
        room[...] = values
        return
    side = (-1, 1, 1) if made.layout == "NCHW" else (1, 1, -1)
    mean, std = (np.array(v, np.float32).reshape(side) for v in (made.mean, made.std))
    exact = room if room.dtype == np.float32 else np.empty(room.shape, np.float32)
    np.divide(values, np.float32(made.scale), out=exact, dtype=np.float32)
    if any(made.mean):
        exact -= mean
    if set(made.std) != {1.0}:
        exact /= std
    if exact is not room:
        room[...] = exact


def resize(picture: Picture, height: int, width: int, interpolation: str) -> Picture:
    """The picture, uint8 [H, W, C], at another size; see `Recipe` for what the interpolations do."""
    import numpy as np

    if interpolation == "nearest":
        rows = np.arange(height) * picture.shape[0] // height
        columns = np.arange(width) * picture.shape[1] // width
        chosen: Picture = picture[rows[:, None], columns]
        return chosen
    along = _averaged if interpolation == "area" else _mixed
    tall = along(picture.astype(np.float32), height, 0)
    resized: Picture = np.rint(along(tall, width, 1)).astype(np.uint8)
    return resized


def _mixed(values: Floats, size: int, axis: int) -> Floats:
    """Linear interpolation along an axis: output i lies at (i + 0.5) * scale - 0.5, held to the outermost pixels."""
    import numpy as np

    length = values.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * (length / size) - 0.5, 0, length - 1)
    below = at.astype(np.int64)
    above = np.minimum(below + 1, length - 1)
    side = [1] * values.ndim
    side[axis] = size
    share = (at - below).astype(np.float32).reshape(side)
    first, second = values.take(below, axis), values.take(above, axis)
    mixed: Floats = first + (second - first) * share
    return mixed


def _averaged(values: Floats, size: int, axis: int) -> Floats:
    """The mean along an axis of what output i covers, from i * scale to (i + 1) * scale, parts of pixels included."""
    import numpy as np

    length = values.shape[axis]
    moved = np.moveaxis(values, axis, 0).astype(np.float64)
    sums = np.concatenate([np.zeros_like(moved[:1]), moved.cumsum(0)])
    edges = np.arange(size + 1) * (length / size)
    whole = np.minimum(edges.astype(np.int64), length - 1)
    share = (edges - whole).reshape(-1, *[1] * (values.ndim - 1))
    upto = sums[whole] + (sums[whole + 1] - sums[whole]) * share
    means: Floats = np.moveaxis(np.diff(upto, axis=0) * (size / length), 0, axis).astype(np.float32)
    return means


def pixels(made: Recipe) -> Shape:
    """Height, width and channels of the pictures that a recipe fits."""
    return made.height, made.width, 3
