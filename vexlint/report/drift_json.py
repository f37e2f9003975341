"""The result of `verify` for programs: one JSON document, schema 1. Keys are only ever added within a schema.

A number that is infinite or NaN is null; `nonfinite` counts such elements.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from typing import Any

from vexlint import __version__
from vexlint.outcomes import Proof

SCHEMA = 1


def render(proof: Proof) -> str:
    """The proof as JSON, ending in a newline."""
    document = {
        "vexlint": __version__,
        "schema": SCHEMA,
        "status": proof.status,
        "reference": {"path": proof.reference, "ran": asdict(proof.ran) if proof.ran else None},
        "candidate": {"path": proof.candidate},
        "samples": {"unit": proof.unit, "origin": proof.origin},
        "comparisons": [asdict(c) for c in proof.comparisons],
    }
    return json.dumps(_finite(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not isfinite(value) else value
