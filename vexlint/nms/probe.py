"""Runs models in child processes, for the probe of a head and the proof of a tail."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.model import heads
from vexlint.model.layouts import APART
from vexlint.nms.heads import Head
from vexlint.runtimes.arena import Writer
from vexlint.runtimes.base import Setup
from vexlint.runtimes.child import Child
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

FOLLOWS = 0.8  # correlation from which numbers follow the grid


def run(data: bytes, folder: Path, feeds: Iterable[dict[str, Array]], runtime: str) -> Iterator[dict[str, Array]]:
    """The outputs of a model for each feed, in a child process; external data lies in `folder`. Raises `Failed`."""
    with tempfile.TemporaryDirectory(prefix="vexlint-", ignore_cleanup_errors=True) as made:
        file = Path(made) / "model.onnx"
        file.write_bytes(data)
        writer = Writer(Path(made), "in")
        child: Child | None = None
        try:
            for number, feed in enumerate(feeds):
                if child is None:
                    shapes = {n: list(a.shape) for n, a in feed.items()}
                    setup = Setup(str(file), str(folder.resolve()), "fp32", "", 1, shapes)
                    child = Child(runtime, setup, Path(made))
                    child.loaded()
                child.send(0, writer.write(0, feed), f"sample {number}")
                yield {n: a.copy() for n, a in child.receive().items()}
        finally:
            if child is not None:
                child.close()


def contradict(head: Head, outputs: list[dict[str, Array]], image: tuple[int, int], where: Path) -> None:
    """Raises VexlintError where the numbers of some runs say that a head is not what its layout says, or where neither
    they nor anything else says that it is. `image` is height and width in px."""
    import numpy as np

    rows = [_rows(head, found) for found in outputs]
    boxes, scores = (np.concatenate(part) for part in zip(*rows, strict=True))
    known = scores[~np.isnan(scores)]
    if not known.size:
        raise VexlintError(
            f"{where}: every score of {head} is NaN: there is nothing to prove (--no-verify writes without)"
        )
    low, high = float(known.min()), float(known.max())
    if low < -1e-3 or high > 1 + 1e-3:
        raise VexlintError(
            f"{where}: scores of {head} lie in {low:.3g}..{high:.3g}: they are no probabilities, and no threshold "
            "in 0..1 fits them. Export the head with its sigmoid"
        )
    seen = _form(boxes.mean(0), image)
    if seen is None:
        if not head.sure:
            raise VexlintError(
                f"{where}: a run says nothing of the boxes of {head}, and no metadata names classes. "
                f"Are they centres in px? Say it with --layout {head.layout.name}"
            )
        return
    centres, normalised = seen
    if (centres, normalised) != (head.layout.centres, head.layout.normalised):
        form = f"{'centres' if centres else 'corners'} in {'0..1' if normalised else 'px'}"
        way = f"say --layout {'|'.join(APART)}" if head.layout.outputs == 2 else "no layout with one output has them"
        raise VexlintError(f"{where}: layout {head.layout.name}, but run on noise its boxes are {form}: {way}")


def _rows(head: Head, found: dict[str, Array]) -> tuple[Array, Array]:
    """Boxes [B, N, 4] as the head has them, and all scores [B, X]."""
    first = found[head.outputs[0]].astype(float)
    if head.layout.outputs == 2:
        return first, found[head.outputs[1]].astype(float).reshape(len(first), -1)
    rows = first.transpose(0, 2, 1) if head.layout.places == 2 else first
    return rows[..., :4], rows[..., 4:].reshape(len(first), -1)


def _form(boxes: Array, image: tuple[int, int]) -> tuple[bool, bool] | None:
    """(centres?, in 0..1?) of boxes [N, 4], by how they follow the grid of cells; None where they do not."""
    import numpy as np

    grid = _grid(len(boxes), image)
    if grid is None or not np.isfinite(boxes).all():
        return None
    follows = [[_correlation(boxes[:, k], axis) for axis in grid] for k in range(4)]
    if follows[0][0] < FOLLOWS or follows[1][1] < FOLLOWS:
        return None
    ends = follows[2][0] > FOLLOWS and follows[3][1] > FOLLOWS
    slope = np.polyfit(grid[0], boxes[:, 0], 1)[0]
    return not ends, bool(slope < 0.1)


def _grid(places: int, image: tuple[int, int]) -> tuple[Array, Array] | None:
    """Centres x and y in px of the cells in the order of levels, rows, columns; None where no strides fit."""
    import numpy as np

    high, wide = image
    for strides in heads.STRIDES:
        for anchors in heads.ANCHORS:
            levels = [np.mgrid[0 : -(-high // s), 0 : -(-wide // s)].reshape(2, -1) * s + s / 2 for s in strides]
            cells = np.concatenate([np.tile(level, anchors) for level in levels], 1)
            if cells.shape[1] == places:
                return cells[1], cells[0]
    return None


def _correlation(one: Array, other: Array) -> float:
    import numpy as np

    if not one.std() or not other.std():
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
