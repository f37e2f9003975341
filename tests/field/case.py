"""What a field case is."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.parser
from onnx import ModelProto, numpy_helper

from vexlint.config import Contract

ANY = ("error", "warning", "info")
SERIOUS = ("error", "warning")
ERROR, WARNING, INFO = ("error",), ("warning",), ("info",)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One finding that is due: one of `codes`, with one of `severities`, at a place whose value or name is one of `at`
    (() is anywhere in the file), whenever one of `targets` is named. Without targets the default ones are judged."""

    codes: tuple[str, ...]
    at: tuple[str, ...]
    severities: tuple[str, ...]
    targets: tuple[str, ...] = ()
    contract: Contract | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """`text` is the model in ONNX text but for `weights` (name -> shape: seeded float32 noise) and what `edit` does to
    it. For a target of `silent_on` nothing may be an error. Where nothing is due, `nothing` says why."""

    name: str
    symptom: str
    source: str
    text: str
    verdicts: tuple[Verdict, ...]
    nothing: str = ""
    silent_on: tuple[str, ...] = ()
    weights: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    edit: Callable[[ModelProto], None] | None = None

    def model(self) -> ModelProto:
        made: ModelProto = onnx.parser.parse_model(self.text)
        for name, shape in self.weights.items():
            dice = np.random.default_rng(zlib.crc32(f"{self.name} {name}".encode()))
            noise = dice.standard_normal(shape).astype(np.float32)
            made.graph.initializer.append(numpy_helper.from_array(noise, name))
        if self.edit:
            self.edit(made)
        return made
