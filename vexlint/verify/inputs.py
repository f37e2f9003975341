"""What a model is fed: name, type and fixed shape of each input, and how many pictures it takes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vexlint.config import Contract
from vexlint.model.model import Model
from vexlint.values import VexlintError

# ONNX's name of an element type -> numpy's; the others have no numbers that samples could be made of
NUMPY = {
    "float": "float32", "double": "float64", "float16": "float16", "uint8": "uint8", "int8": "int8",
    "uint16": "uint16", "int16": "int16", "uint32": "uint32", "int32": "int32", "uint64": "uint64", "int64": "int64",
    "bool": "bool",
}  # fmt: skip

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """One input: its name, its element type as numpy calls it, its shape with every axis known."""

    name: str
    dtype: str
    shape: Shape

    @property
    def is_picture(self) -> bool:
        """Whether it has the four axes of a batch of pictures."""
        return len(self.shape) == 4


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one model. They are `batched` where there is one and it is a batch of pictures: a sample is one
    picture then, else everything that is fed at once."""

    specs: tuple[Spec, ...]
    batched: bool

    @property
    def batch(self) -> int:
        """How many samples one run takes."""
        return self.specs[0].shape[0] if self.batched else 1

    def unit(self, spec: Spec) -> Shape:
        """The shape of one sample's share of an input."""
        return spec.shape[1:] if self.batched else spec.shape


def parse_shapes(texts: Sequence[str]) -> dict[str, Shape]:
    """`--shape images=1x3x320x320` -> {"images": (1, 3, 320, 320)}. Raises VexlintError for any other form."""
    shapes = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        parts = sizes.lower().split("x")
        if not name or not all(p.isascii() and p.isdigit() and int(p) > 0 for p in parts):
            raise VexlintError(f"--shape {text!r}: write it as NAME=1x3x320x320, each size 1 or more")
        shapes[name] = tuple(int(p) for p in parts)
    return shapes


def resolve(model: Model, contract: Contract, given: Mapping[str, Shape]) -> Inputs:
    """The inputs of a model with every axis fixed: what the file fixes stands; an open axis takes what `given` (the
    option --shape) says, else the contract's shape, else the `opt` of its profile.

    Raises VexlintError for an axis that none of them fixes, and for a given shape that contradicts the file.
    """
    names = list(model.graph.inputs)
    if not names:
        raise VexlintError(f"{model.path}: it has no inputs, so there is nothing to feed it")
    specs = tuple(_spec(model, name, contract, given.get(name)) for name in names)
    return Inputs(specs, batched=len(specs) == 1 and specs[0].is_picture)


def _spec(model: Model, name: str, contract: Contract, given: Shape | None) -> Spec:
    shape = model.graph.shape(name)
    if shape is None or shape.dtype not in NUMPY:
        what = "no tensor of a known rank" if shape is None else f"of type {shape.dtype}, which has no numbers"
        raise VexlintError(f"{model.path}: input {name} is {what}: verify cannot feed it")
    wanted = contract.inputs[name].shape if name in contract.inputs else None
    usual = contract.profile[name].opt if name in contract.profile else None
    for source, sizes in (("--shape", given), ("the contract's shape", wanted), ("the profile", usual)):
        if sizes is not None and len(sizes) != shape.rank:
            raise VexlintError(f"{model.path}: input {name} is {shape}, but {source} has {len(sizes)} axes")
    dims = []
    for axis, dim in enumerate(shape.dims):
        offers = [s[axis] for s in (given, wanted, usual) if s is not None]
        if isinstance(dim, int):
            if given is not None and given[axis] != dim:
                said = f"--shape sets axis {axis} of input {name} to {given[axis]}"
                raise VexlintError(f"{model.path}: {said}, the file fixes it to {dim}")
            dims.append(dim)
            continue
        size = next((o for o in offers if isinstance(o, int)), None)
        if size is None:
            raise VexlintError(_open_axis(model, name, axis, dim, shape.dims))
        dims.append(size)
    return Spec(name, NUMPY[shape.dtype], tuple(dims))


def _open_axis(model: Model, name: str, axis: int, dim: str | None, dims: Sequence[int | str | None]) -> str:
    label = f" ({dim})" if dim else ""
    example = "x".join(str(d) if isinstance(d, int) else "1" if i == 0 else "320" for i, d in enumerate(dims))
    return (
        f"{model.path}: input {name} axis {axis}{label} has no fixed size: say it with --shape {name}={example}, "
        "or with inputs or profile in the model's contract"
    )


def matched(reference: Inputs, candidate: Inputs, where: str) -> list[tuple[Spec, Spec]]:
    """Pairs of inputs that take the same numbers, in the reference's order: by name, else by position.

    They may differ in the number of pictures a run, and in the width of a float. Raises VexlintError where anything
    else differs; `where` names the two files.
    """
    theirs = {s.name: s for s in candidate.specs}
    if len(theirs) != len(reference.specs):
        counts = f"{len(reference.specs)} and {len(theirs)}"
        raise VexlintError(f"{where}: they have {counts} inputs, so no sample can go to both")
    by_name = all(s.name in theirs for s in reference.specs)
    pairs = []
    for position, spec in enumerate(reference.specs):
        other = theirs[spec.name] if by_name else candidate.specs[position]
        floats = spec.dtype.startswith("float") and other.dtype.startswith("float")
        if reference.unit(spec) != candidate.unit(other) or (spec.dtype != other.dtype and not floats):
            raise VexlintError(
                f"{where}: input {spec.name} is {spec.dtype} {list(spec.shape)} in the one and {other.dtype} "
                f"{list(other.shape)} in the other: no sample can go to both"
            )
        pairs.append((spec, other))
    return pairs
