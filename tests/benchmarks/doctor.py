"""What onnx-doctor says of files, with its checks for ONNX Runtime."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def diagnose(program: str, paths: Sequence[Path]) -> dict[str, Counter[str]]:
    """File name -> rule -> number of errors and warnings. It prints one JSON list a file; where one is lacking, the
    batch is asked in halves, and a single file that ends without a list counts as found ("crash")."""
    command = [program, "check", "--ort", "--severity", "warning", "--output-format", "json", *map(str, paths)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 2 * len(paths), check=False)
        lists = list(json_lists(done.stdout))
    except (json.JSONDecodeError, subprocess.TimeoutExpired):
        lists = []
    if len(lists) == len(paths):
        return {path.name: Counter(e["code"] for e in entries) for path, entries in zip(paths, lists, strict=True)}
    if len(paths) == 1:
        return {paths[0].name: Counter({"crash": 1})}
    half = len(paths) // 2
    return diagnose(program, paths[:half]) | diagnose(program, paths[half:])


def json_lists(text: str) -> Iterator[list[dict[str, Any]]]:
    """JSON values printed one after another."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text := text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        yield value
