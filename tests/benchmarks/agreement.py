"""Whether vexlint says of a file what the runtime says: `python -m tests.benchmarks.agreement [FOLDER...] [--generated]
[--compositions N]` prints Markdown.

A runtime accepts a model that it loads with its default options and, where inputs can be made, runs once; OpenVINO
reads and compiles for its CPU; TensorRT-RTX parses and builds for compute capability 8.9. vexlint predicts a refusal by
an error, with that runtime named as its target; an error that says the model runs and computes something else is none.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import multiprocessing
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import onnx

from tests.benchmarks.judging import errors, judged
from tests.benchmarks.truth import Runtime
from tests.compositions import composition
from tests.feeds import feeds_for
from tests.node_tests import node_tests
from vexlint import targets
from vexlint.values import FileReport

NEWEST = onnx.defs.onnx_opset_version()
TARGETS = {"onnxruntime": "onnxruntime", "openvino": "openvino", "tensorrt-rtx": "tensorrt-rtx"}
LARGE = 1 << 30  # bytes; larger files are left out, and said so


@dataclass(frozen=True, slots=True)
class Subject:
    """One model: a file, or bytes with inputs (arrays by name) that were made for it."""

    group: str
    name: str
    path: Path | None = None
    model: bytes = b""
    inputs: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`stage` and `words` are the runtime's (see `truth.Verdict`), `errors` vexlint's, `reason` why it stopped."""

    group: str
    name: str
    key: str
    stage: str
    words: str
    errors: tuple[str, ...]
    reason: str = ""


SUBJECTS: list[Subject] = []  # filled before the workers fork
CACHE: dict[str, tuple[str, str]] = {}
_runtimes: dict[str, Runtime] = {}


def subjects(options: argparse.Namespace) -> Iterator[Subject]:
    for folder in map(Path, options.folders):
        for path in sorted(folder.rglob("*.onnx")):
            if path.stat().st_size > LARGE:
                say(f"left out, larger than {LARGE >> 20} MiB: {path}")
                continue
            yield Subject(str(folder), str(path.relative_to(folder)), path)
    if options.package:
        data = Path(onnx.__file__).parent / "backend/test/data"
        for path in sorted(data.rglob("*.onnx")):
            yield Subject("models of the onnx package", str(path.relative_to(data)), path)
    if options.generated:
        for test in node_tests():
            held = zlib.crc32(test.name.encode()) % 3 == 0
            group = "node tests, held-out third" if held else "node tests, two thirds"
            yield Subject(group, test.name, None, test.model.SerializeToString(), test.inputs)
    for index in range(options.compositions):
        seed = options.seed + index
        model = composition(seed, NEWEST)
        yield Subject("compositions", f"seed {seed}", None, model.SerializeToString(), {})


def work(task: tuple[int, str]) -> Answer:
    """The runtime's and vexlint's word on one subject."""
    index, name = task
    subject = SUBJECTS[index]
    data = subject.path.read_bytes() if subject.path else subject.model
    key = hashlib.sha256(data + name.encode()).hexdigest()[:24]
    stage, words = CACHE.get(key) or _truth(subject, data, name)
    if subject.path:
        report = judged(subject.path, TARGETS[name])
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(data)
            report = judged(path, TARGETS[name])
    return Answer(subject.group, subject.name, key, stage, words, _refusals(report), report.reason or "")


def _refusals(report: FileReport) -> tuple[str, ...]:
    """The errors that say that it does not run."""
    return errors(replace(report, findings=tuple(f for f in report.findings if f.verdict != "differs")))


def _truth(subject: Subject, data: bytes, name: str) -> tuple[str, str]:
    if name not in _runtimes:
        _runtimes[name] = Runtime(name, deadline=60)
    verdict = _runtimes[name].ask(
        data, _feeds(subject, data), folder=str(subject.path.parent.resolve()) if subject.path else None
    )
    return verdict.stage, verdict.words


def _feeds(subject: Subject, data: bytes) -> dict[str, Any] | None:
    """Given inputs, those recorded beside the file, else noise; None where there can be none."""
    try:
        model = onnx.load_from_string(data)
    except Exception:  # the runtime is the one to say what is wrong with it
        return None
    recorded = subject.path and subject.path.parent / "test_data_set_0"
    if recorded and recorded.is_dir():
        tensors = {}
        for value, file in zip(model.graph.input, sorted(recorded.glob("input_*.pb")), strict=False):
            tensors[value.name] = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
        return feeds_for(model, tensors)
    return feeds_for(model, subject.inputs)


def table(answers: Sequence[Answer], name: str) -> str:
    rows = [f"| {name} | models | refused | predicted | | accepted | called an error | |", "|---" * 8 + "|"]
    for group in dict.fromkeys(a.group for a in answers):
        mine = [a for a in answers if a.group == group]
        refused, accepted = [a for a in mine if a.stage], [a for a in mine if not a.stage]
        hit, wrong = sum(bool(a.errors) for a in refused), sum(bool(a.errors) for a in accepted)
        shares = [f"{100 * n / len(of):.1f} %" if of else "none" for n, of in ((hit, refused), (wrong, accepted))]
        cells = [group, len(mine), len(refused), hit, shares[0], len(accepted), wrong, shares[1]]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows)


def disagreements(answers: Sequence[Answer], limit: int) -> str:
    lines = []
    for title, chosen in (
        ("Refused, and no error of vexlint", [a for a in answers if a.stage and not a.errors]),
        ("Accepted, and an error of vexlint", [a for a in answers if not a.stage and a.errors]),
    ):
        lines += ["", f"## {title}: {len(chosen)}"]
        for a in sorted(chosen, key=lambda a: (a.group, a.words))[:limit]:
            said = f"{a.stage}: {a.words}" if a.stage else "; ".join(a.errors)
            note = f" [incomplete: {a.reason}]" if a.reason else ""
            lines.append(f"- {a.group}: {a.name}: {said[:300]}{note}")
    return "\n".join(lines)


def main() -> int:
    options = parse()
    known = {name.partition("@")[0] for name in targets.known()}
    if TARGETS[options.target] not in known:
        sys.exit(f"vexlint has no target {TARGETS[options.target]} yet; known: {', '.join(sorted(known))}")
    cache = Path(options.cache) if options.cache else None
    if cache and cache.exists():
        CACHE.update({key: (stage, words) for key, (stage, words) in json.loads(cache.read_text()).items()})
    SUBJECTS.extend(islice(subjects(options), 0, None, options.every))
    if not SUBJECTS:
        sys.exit("nothing to compare: give a folder with .onnx files, --package, --generated or --compositions N")
    tasks = [(index, options.target) for index in range(len(SUBJECTS))]
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        answers = pool.map(work, tasks, chunksize=8)
    if cache:
        cache.write_text(json.dumps(CACHE | {a.key: (a.stage, a.words) for a in answers}))
    (target,), _ = targets.resolve([TARGETS[options.target]])
    print(f"{datetime.date.today()}: onnx {onnx.__version__}, seed {options.seed}.\n")
    print(table(answers, str(target)), disagreements(answers, options.list), sep="\n")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.agreement", description=__doc__)
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="every .onnx file below it")
    parser.add_argument("--target", choices=TARGETS, default="onnxruntime")
    parser.add_argument("--package", action="store_true", help="the models that the onnx package brings")
    parser.add_argument("--generated", action="store_true", help="the node tests that the onnx package generates")
    parser.add_argument("--compositions", type=int, default=0, metavar="N", help="N seeded chains of two to six nodes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only each K-th of all these")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--list", type=int, default=10_000, metavar="N", help="list N disagreements of each sort")
    parser.add_argument("--cache", help="a file that keeps the runtime's verdicts between runs")
    return parser.parse_args()


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
