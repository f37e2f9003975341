"""A target's table from the runtime installed here: `vexlint targets probe`.

`corpus` makes small models, `child` tries each on the runtime in a process of its own, `fold` reads a table out of what
ran and what was refused. A third of every operator's probes is held out first, to say how well a table predicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from vexlint.files import check_regular, nearest
from vexlint.values import VexlintError

RUNTIMES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "tensorrt-rtx": "tensorrt_rtx"}  # -> its package


def probe(runtime: str, out: Path, operators: frozenset[str] = frozenset()) -> Iterator[str]:
    """Writes the table of an installed runtime to `out` (all operators where none are named); yields what to tell the
    user. Raises VexlintError where the runtime is not known or not installed, or `out` cannot be written."""
    import importlib.util

    from vexlint.probing import child, corpus, fold, kernels

    if runtime not in RUNTIMES:
        raise VexlintError(f"no probe for {runtime!r}{nearest(runtime, list(RUNTIMES))}; known: {', '.join(RUNTIMES)}")
    if importlib.util.find_spec(RUNTIMES[runtime]) is None:
        raise VexlintError(f"{runtime} is not installed here: there is nothing to probe")
    _writable(out)
    probes = list(corpus.make(operators))
    yield f"{len(probes)} probes of {len({p.op for p in probes})} operators"
    with child.Child(runtime) as worker:
        version, limits = worker.version, worker.limits()
        results = [worker.try_(p.data) for p in probes]
        yield f"{sum(r == '' for r in results)} ran, {worker.crashes} ended the process"
    yield fold.prediction(runtime, version, limits, probes, results)
    table = fold.table(runtime, version, limits, probes, results)
    if runtime == "onnxruntime" and not operators:
        kernels.complete(table)
    text = fold.text(table)
    try:
        out.write_text(text, "utf-8")
    except OSError as error:
        raise VexlintError(f"{out}: cannot be written: {error.strerror}") from None
    yield f"{out}: {runtime}@{version}, {len(json.loads(text)['operators'])} operators"


def _writable(out: Path) -> None:
    """Raises VexlintError where a table could not be written: before the minutes that it takes to make one."""
    import os

    check_regular(out)
    if not out.absolute().parent.is_dir():
        raise VexlintError(f"{out}: cannot be written: there is no folder {out.absolute().parent}")
    if not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        raise VexlintError(f"{out}: cannot be written: permission denied")
