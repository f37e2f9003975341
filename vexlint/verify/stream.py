"""Feeds the same samples to several models at once and gives back their outputs, step by step.

A step is as many pictures as every model takes in whole runs: where one takes 1 and another 4 it is 4, which the one
computes in four runs. What the last step lacks is filled up with its last picture and cut off again. While the models
compute a step, the caller compares the one before it; two steps of memory are all that is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import lcm, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.runtimes.arena import Header, Writer
from vexlint.runtimes.child import SLOTS, Child, Failed
from vexlint.verify.inputs import Inputs, Spec
from vexlint.verify.samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass
class Player:
    """One model on one runtime. `feeds` pairs the samples' inputs with its own; `failed` says why it has left."""

    child: Child
    inputs: Inputs
    feeds: list[tuple[Spec, Spec]]
    failed: str = ""


@dataclass(frozen=True)
class Step:
    """Samples `first` to `first + count` and, by player, their outputs; None for a player that has failed. `rooms`
    holds the inputs [pictures, ...]. All arrays hold until the next step is asked for."""

    first: int
    count: int
    outputs: list[dict[str, Array] | None]
    rooms: Mapping[str, Array]


class Stream:
    """`players` computing `samples`, whose inputs are `inputs`; tensors pass through files in `folder`."""

    def __init__(self, players: list[Player], samples: Samples, inputs: Inputs, folder: Path) -> None:
        self.players = players
        self.samples = samples
        self.inputs = inputs
        self.writer = Writer(folder, "in")
        self.pictures = lcm(*(p.inputs.batch for p in players)) if inputs.batched else 1
        self.kept: dict[int, tuple[int, int, Mapping[str, Array]]] = {}

    def __iter__(self) -> Iterator[Step]:
        """The steps, in order; ends early where no player is left."""
        steps = -(-len(self.samples) // self.pictures)
        for step in range(steps + 1):
            if step < steps:
                self._send(step)
            if step > 0:
                yield self._receive(step - 1)
            if all(p.failed for p in self.players):
                return

    def _send(self, step: int) -> None:
        first = step * self.pictures
        count = min(self.pictures, len(self.samples) - first)
        header, every = self._reserve(step % SLOTS)
        rooms = {s.name: every[f"{s.dtype}:{s.name}"] for s in self.inputs.specs}
        for k in range(count):
            self.samples.fill(first + k, {n: r[k] for n, r in rooms.items()} if self.inputs.batched else rooms)
        for room in rooms.values():
            if count < self.pictures:
                room[count:] = room[count - 1]
        for name, room in every.items():
            dtype, _, plain = name.partition(":")
            if rooms[plain].dtype != dtype:
                room[...] = rooms[plain]
        self.kept[step % SLOTS] = first, count, rooms
        what = self.samples.label(first) + (f" to {self.samples.label(first + count - 1)}" if count > 1 else "")
        for player in self.players:
            if not player.failed:
                try:
                    self._ask(player, step, header, what)
                except Failed as error:
                    player.failed = str(error)

    def _reserve(self, slot: int) -> tuple[Header, dict[str, Array]]:
        """Room for a step: for each input, in every element type that a player wants, named dtype:input."""
        specs = []
        for spec in self.inputs.specs:
            shape = (self.pictures, *self.inputs.unit(spec)) if self.inputs.batched else spec.shape
            wanted = {spec.dtype, *(own.dtype for p in self.players for s, own in p.feeds if s.name == spec.name)}
            specs += [(f"{dtype}:{spec.name}", _code(dtype), shape) for dtype in sorted(wanted)]
        return self.writer.reserve(slot, specs)

    def _ask(self, player: Player, step: int, header: Header, what: str) -> None:
        places = {name: offset for name, _, _, offset in header["tensors"]}
        runs = self.pictures // player.inputs.batch
        for run in range(runs):
            tensors = []
            for spec, own in player.feeds:
                at = places[f"{own.dtype}:{spec.name}"] + run * _bytes(own)
                tensors.append([own.name, _code(own.dtype), list(own.shape), at])
            player.child.send(step % SLOTS * runs + run, {"file": header["file"], "tensors": tensors}, what)

    def _receive(self, step: int) -> Step:
        first, count, rooms = self.kept[step % SLOTS]
        outputs: list[dict[str, Array] | None] = []
        for player in self.players:
            try:
                outputs.append(None if player.failed else self._join(player, count))
            except Failed as error:
                player.failed = str(error)
                outputs.append(None)
        return Step(first, count, outputs, rooms)

    def _join(self, player: Player, count: int) -> dict[str, Array]:
        """The outputs of all runs of a step as if they were one, without what only fills it up."""
        import numpy as np

        parts = [player.child.receive() for _ in range(self.pictures // player.inputs.batch)]
        if len(parts) == 1 and count == self.pictures:
            return parts[0]
        batch = player.inputs.batch
        for name, array in parts[0].items():
            if not array.ndim or array.shape[0] != batch:
                raise Failed(
                    f"output {name} of {player.child.model} has the shape {list(array.shape)} for {batch} pictures: "
                    "which part belongs to which picture cannot be told, so compare models of one batch size"
                )
        return {name: np.concatenate([p[name] for p in parts])[:count] for name in parts[0]}


@cache
def _code(dtype: str) -> str:
    import numpy as np

    return np.dtype(dtype).str


def _bytes(spec: Spec) -> int:
    """The size of an input in memory."""
    import numpy as np

    return prod(spec.shape) * np.dtype(spec.dtype).itemsize
