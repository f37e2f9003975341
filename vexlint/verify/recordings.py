"""Recorded outputs: a reference that does not have to run.

Three forms are read.
* Our own, written by `--save-outputs FILE.npz`: a zip of `<sample>/<output>.npy`, one array a sample and output as
  the runtime gave it (with its batch axis, of size 1), and `recording.json`: {"recording": 1, "model", "ran",
  "outputs", "digests"}. A digest is the CRC-32 of the inputs of a sample: other inputs are noticed.
* A plain .npz, as any framework's numpy code writes it: an array [N, ...] for each output by the model's own name,
  along whose first axis the N samples lie; and, if it holds them, one for each input. Other keys do no harm.
* Polygraphy's JSON (`polygraphy run --save-outputs`), of one runner.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.files import check_regular
from vexlint.outcomes import Ran
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

SUFFIXES = (".npz", ".json")
CONTENTS = "recording.json"


@dataclass(frozen=True)
class Recording:
    """Outputs by sample. `origin` is the file; `ran` what computed them, where the file says so; `inputs` the inputs
    it holds besides, [N, ...] each; `digests` those of the samples' inputs, () where it has none."""

    origin: str
    count: int
    load: Callable[[int], dict[str, Array]]
    ran: Ran | None = None
    inputs: Mapping[str, Array] = field(default_factory=dict)
    digests: Sequence[int] = ()

    def __len__(self) -> int:
        return self.count

    def outputs(self, index: int) -> dict[str, Array]:
        """The outputs of one sample. Raises VexlintError where the file is damaged there."""
        try:
            return self.load(index)
        except (KeyError, ValueError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise VexlintError(f"{self.origin}: sample {index} cannot be read: {error}") from None


def is_recording(path: Path) -> bool:
    """Whether a file is a recording, by its name."""
    return path.suffix.lower() in SUFFIXES


def read(path: Path, inputs: Sequence[str], outputs: Sequence[str], batch: int) -> Recording:
    """A recording; `inputs` and `outputs` name those of the model that it will be compared with, and `batch` is how
    many pictures that takes at once (what Polygraphy recorded of one run is taken apart by it).

    A plain .npz may hold inputs besides the outputs, and other arrays: where some have the names of the model's
    outputs, only those count. Raises VexlintError where the file is none of the three forms.
    """
    if path.suffix.lower() == ".json":
        return _polygraphy(path, batch)
    file = _npz(path)
    if CONTENTS in file.files:
        return _own(path, file)
    arrays = {name: _array(path, file, name) for name in file.files}
    rest = {n: a for n, a in arrays.items() if n not in inputs and a.ndim}
    found = {n: a for n, a in rest.items() if n in outputs} or rest
    counts = sorted({len(a) for a in found.values()})
    if not found or counts[0] == 0:
        raise VexlintError(f"{path}: holds no recorded outputs, only {', '.join(arrays) or 'nothing'}")
    if len(counts) > 1:
        said = ", ".join(f"{n} {list(a.shape)}" for n, a in found.items())
        raise VexlintError(f"{path}: its arrays hold different numbers of samples: {said}")
    held = {n: a for n, a in arrays.items() if n in inputs}
    return Recording(str(path), counts[0], lambda i: {n: a[i : i + 1] for n, a in found.items()}, inputs=held)


def read_inputs(path: Path) -> dict[str, Array]:
    """Inputs by name, [N, ...] each, from a .npz or Polygraphy's JSON (`--save-inputs`)."""
    if not is_recording(path):
        raise VexlintError(f"{path}: inputs are read from .npz, or from Polygraphy's .json")
    if path.suffix.lower() == ".npz":
        file = _npz(path)
        return {name: _array(path, file, name) for name in file.files}
    feeds = _json(path)
    if not isinstance(feeds, list) or not feeds or not all(isinstance(f, Mapping) for f in feeds):
        raise VexlintError(f"{path}: not the inputs that polygraphy run --save-inputs writes")
    import numpy as np

    try:
        return {name: np.concatenate([np.asarray(f[name]) for f in feeds]) for name in feeds[0]}
    except (KeyError, ValueError) as error:
        raise VexlintError(f"{path}: its samples do not fit together: {error}") from None


def _npz(path: Path) -> Any:
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise VexlintError(f"{path}: not a .npz file: {error}") from None
    if not hasattr(found, "files"):
        raise VexlintError(f"{path}: one bare array, not a .npz of named ones")
    return found


def _array(path: Path, file: Any, name: str) -> Array:
    try:
        found: Array = file[name]
    except (ValueError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise VexlintError(f"{path}: {name} cannot be read: {error}") from None
    return found


def _own(path: Path, file: Any) -> Recording:
    try:
        told = json.loads(file[CONTENTS])
        version, names, digests = told["recording"], list(told["outputs"]), list(told["digests"])
        ran = Ran(**told["ran"]) if told["ran"] else None
    except (ValueError, KeyError, TypeError) as error:
        raise VexlintError(f"{path}: its {CONTENTS} is damaged: {error}") from None
    if version != 1:
        raise VexlintError(f"{path}: recording {version} was written by a newer vexlint")
    return Recording(str(path), len(digests), lambda i: {n: file[f"{i:06}/{n}"] for n in names}, ran, digests=digests)


def _json(path: Path) -> Any:
    """What Polygraphy decodes from its JSON; arrays come through numpy, and nothing in it is run."""
    from polygraphy import config
    from polygraphy.exception import PolygraphyException
    from polygraphy.json import load_json
    from polygraphy.logger import G_LOGGER

    config.AUTOINSTALL_DEPS = False
    try:
        with G_LOGGER.verbosity(G_LOGGER.CRITICAL + 1):  # it writes on stdout
            return load_json(str(path))
    except (OSError, ValueError, KeyError, TypeError, AssertionError, PolygraphyException) as error:
        raise VexlintError(f"{path}: not JSON of Polygraphy: {str(error) or type(error).__name__}") from None


def _polygraphy(path: Path, batch: int) -> Recording:
    found = _json(path)
    runners = getattr(found, "lst", None)
    if not isinstance(runners, list) or not runners:
        raise VexlintError(f"{path}: not the outputs that polygraphy run --save-outputs writes")
    if len(runners) > 1:
        names = ", ".join(name for name, _ in runners)
        raise VexlintError(f"{path}: holds {len(runners)} runners ({names}): record the one that is right")
    runner, iterations = runners[0]
    samples: list[dict[str, Array]] = []
    for result in iterations:
        whole = dict(result.items())
        samples += [_picture(whole, k, batch) for k in range(batch)]
    return Recording(str(path), len(samples), samples.__getitem__, Ran("polygraphy", "", runner))


def _picture(outputs: Mapping[str, Array], k: int, batch: int) -> dict[str, Array]:
    """One picture's part of what one run over a batch gave."""
    return {n: a[k : k + 1] if a.ndim and len(a) == batch else a for n, a in outputs.items()}


class Recorder:
    """Writes our own form, one sample after another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.beside = path.with_name(f".{path.name}.part")
        self.digests: list[int] = []
        self.names: list[str] = []
        self.archive = zipfile.ZipFile(self.beside, "w", zipfile.ZIP_STORED)

    def add(self, outputs: Mapping[str, Array], digest: int) -> None:
        """Appends the outputs of the next sample."""
        from numpy.lib import format as npy

        self.names = list(outputs)
        for name, array in outputs.items():
            with self.archive.open(f"{len(self.digests):06}/{name}.npy", "w", force_zip64=True) as stream:
                npy.write_array(stream, array, allow_pickle=False)
        self.digests.append(digest)

    def finish(self, model: str, ran: Ran | None) -> None:
        """Writes the table of contents and puts the file in its place."""
        told = {"recording": 1, "model": model, "ran": asdict(ran) if ran else None, "outputs": self.names}
        self.archive.writestr(CONTENTS, json.dumps({**told, "digests": self.digests}, indent=1))
        self.archive.close()
        self.beside.replace(self.path)

    def abandon(self) -> None:
        """Leaves nothing behind."""
        self.archive.close()
        self.beside.unlink(missing_ok=True)

    @property
    def finished(self) -> bool:
        """Whether the file is written to its end, or abandoned."""
        return self.archive.fp is None


@contextlib.contextmanager
def recorder(path: Path | None) -> Iterator[Recorder | None]:
    """A recorder that leaves no half-written file, None for no path. Raises VexlintError where it cannot write."""
    if path is None:
        yield None
        return
    if path.suffix.lower() != ".npz":
        raise VexlintError(f"{path}: recorded outputs are written as .npz")
    check_regular(path)
    try:
        made = Recorder(path)
    except OSError as error:
        raise VexlintError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        yield made
    finally:
        if not made.finished:
            made.abandon()


def digest(arrays: Mapping[str, Array]) -> int:
    """The CRC-32 over the inputs of one sample, in the order of their names."""
    import numpy as np

    code = 0
    for name in sorted(arrays):
        code = zlib.crc32(np.ascontiguousarray(arrays[name]).data, code)
    return code
