"""What models are fed: pictures of a folder, seeded noise, or inputs that somebody recorded.

Samples are made one at a time, straight into the memory that the runtimes read: a run over 2,000 pictures takes no
more memory than one over 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vexlint.config import Contract
from vexlint.values import VexlintError
from vexlint.verify import preprocess
from vexlint.verify.inputs import Inputs, Spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".npy")


class Samples(Protocol):
    """A fixed number of samples. `unit` is what one is ("image"), `origin` where they come from."""

    @property
    def unit(self) -> str: ...

    @property
    def origin(self) -> str: ...

    def __len__(self) -> int: ...

    def label(self, index: int) -> str:
        """The name of a sample in messages."""

    def fill(self, index: int, room: Mapping[str, Array]) -> None:
        """Writes a sample into its share of each input, by the input's name."""


@dataclass(frozen=True)
class Pictures:
    """The pictures of a folder, through the contract's preprocessing, in the order of their names."""

    files: tuple[Path, ...]
    recipe: preprocess.Recipe
    name: str
    origin: str
    unit: str = "image"

    def __len__(self) -> int:
        return len(self.files)

    def label(self, index: int) -> str:
        return self.files[index].name

    def fill(self, index: int, room: Mapping[str, Array]) -> None:
        preprocess.fill(self.recipe, read_picture(self.files[index]), room[self.name])


@dataclass(frozen=True)
class Noise:
    """White noise. Pictures are random pixels through the contract's preprocessing where it has one; other floats
    are evenly spread over 0..1. One sample depends on the seed and its own number only."""

    specs: tuple[Spec, ...]
    recipe: preprocess.Recipe | None
    count: int
    seed: int
    unit: str = "noise sample"

    @property
    def origin(self) -> str:
        return f"seed {self.seed}"

    def __len__(self) -> int:
        return self.count

    def label(self, index: int) -> str:
        return f"noise {index}"

    def fill(self, index: int, room: Mapping[str, Array]) -> None:
        import numpy as np

        rng = np.random.default_rng([self.seed, index])
        for spec in self.specs:
            target = room[spec.name]
            if self.recipe is not None and target.ndim == 3:
                picture = rng.integers(0, 256, preprocess.pixels(self.recipe), np.uint8)
                preprocess.normalise(self.recipe, picture, target)
            elif spec.dtype == "float32":
                rng.random(dtype=np.float32, out=target)
            elif spec.dtype.startswith("float"):
                target[...] = rng.random(target.shape, np.float32)
            else:
                target[...] = rng.integers(0, 2 if spec.dtype == "bool" else 256, target.shape)


@dataclass(frozen=True)
class Recorded:
    """Inputs from a file: arrays by input name, whose first axis runs over the samples."""

    arrays: Mapping[str, Array]
    count: int
    origin: str
    unit: str = "recorded input"

    def __len__(self) -> int:
        return self.count

    def label(self, index: int) -> str:
        return f"input {index}"

    def fill(self, index: int, room: Mapping[str, Array]) -> None:
        for name, target in room.items():
            target[...] = self.arrays[name][index].reshape(target.shape)


def pictures(folder: Path, inputs: Inputs, contract: Contract, where: str) -> Pictures:
    """The pictures of a folder, or the one that `folder` is. Raises VexlintError where there are none, where the
    model has other inputs besides, and where the contract does not say how a picture becomes its input."""
    if not inputs.batched:
        names = ", ".join(f"{s.name} {list(s.shape)}" for s in inputs.specs)
        raise VexlintError(f"{where}: --images feeds a model with one picture input, and it has {names}: use --inputs")
    if contract.preprocessing is None:
        raise VexlintError(
            f"{where}: nothing says how a picture becomes the input: write preprocessing into the model's contract "
            f"(vexlint contract {where} drafts it)"
        )
    made = preprocess.recipe(inputs.specs[0], contract.preprocessing, where)
    return Pictures(tuple(_files(folder)), made, inputs.specs[0].name, str(folder))


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise VexlintError(f"{folder}: no such folder of images")
    found = [p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES]
    kept = [p for p in found if not any(part.startswith(".") for part in p.relative_to(folder).parts)]
    if not kept:
        raise VexlintError(f"{folder}: no images in this folder (looked for {', '.join(SUFFIXES)})")
    return sorted(kept)


def noise(inputs: Inputs, contract: Contract, count: int, seed: int, where: str) -> Noise:
    """Seeded noise for these inputs. Raises VexlintError for an integer input that is no picture: what numbers it may
    take only a person knows."""
    if count < 1 or seed < 0:
        raise VexlintError("--samples should be 1 or more and --seed 0 or more")
    for spec in inputs.specs:
        if spec.dtype.startswith(("int", "uint")) and not (spec.is_picture and spec.dtype == "uint8"):
            raise VexlintError(
                f"{where}: input {spec.name} is {spec.dtype} {list(spec.shape)}: noise would hardly mean anything to "
                "it; give inputs that do (verify --inputs FILE.npz; fix --expect FILE.npz with inputs and outputs)"
            )
    made = None
    if inputs.batched and contract.preprocessing is not None:
        made = preprocess.recipe(inputs.specs[0], contract.preprocessing, where)
    return Noise(inputs.specs, made, count, seed)


def recorded(arrays: Mapping[str, Array], inputs: Inputs, origin: str) -> Recorded:
    """Recorded inputs for a model. Raises VexlintError where an input is missing or has another shape."""
    counts = {}
    for spec in inputs.specs:
        if spec.name not in arrays:
            raise VexlintError(f"{origin}: no input {spec.name} in it, only {', '.join(arrays) or 'nothing'}")
        array, unit = arrays[spec.name], inputs.unit(spec)
        inner = array.shape[1:]
        if inner != unit and (unit[:1] != (1,) or inner != unit[1:]):
            raise VexlintError(
                f"{origin}: {spec.name} is {list(array.shape)}; wanted are samples of {list(unit)} along a first axis"
            )
        counts[spec.name] = len(array)
    if len(set(counts.values())) > 1 or 0 in counts.values():
        said = ", ".join(f"{n} has {c}" for n, c in counts.items())
        raise VexlintError(f"{origin}: every input should hold the same number of samples, 1 or more, but {said}")
    return Recorded(arrays, next(iter(counts.values())), origin)


def read_picture(path: Path) -> Any:
    """A picture as uint8 [H, W, 3] RGB. `.npy` holds uint8 [H, W, 3] RGB or [H, W]; all else is read with Pillow.

    Raises VexlintError naming a file that cannot be read as one, or the line that installs Pillow.
    """
    import numpy as np

    try:
        if path.suffix.lower() == ".npy":
            found = np.load(path, allow_pickle=False)
            if found.dtype != np.uint8 or found.shape[2:] not in ((), (3,)) or found.ndim < 2 or 0 in found.shape:
                raise VexlintError(f"{path}: holds {found.dtype} {list(found.shape)}, not uint8 [H, W, 3] or [H, W]")
            return found if found.ndim == 3 else np.repeat(found[:, :, None], 3, 2)
        from PIL import Image

        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except ImportError:
        raise VexlintError(f"{path}: reading it takes Pillow: pip install 'vexlint[images]'") from None
    except (OSError, ValueError, EOFError, SyntaxError) as error:  # what Pillow raises for a damaged file
        raise VexlintError(f"{path}: not an image that can be read: {error}") from None
    except Exception as error:
        if type(error).__name__ != "DecompressionBombError":
            raise
        raise VexlintError(f"{path}: too large for an image: {error}") from None
