"""What a fix costs beside a copy of the file: `python -m tests.benchmarks.fix [--folder F]` prints Markdown.

The models are rows of Add nodes with 8 MB of weights each, two of the nodes with one name, which the fix mends; it runs
with --no-verify, so that what is measured is reading, editing and writing. Times are of the clock, because copying is
waiting, and medians of interleaved rounds; source files are in the cache. A fix asks the disk to keep what it wrote
(fsync) before it takes the destination's place: `cp` does not, and is measured with `sync` for that. What a program
takes to start is in the row of the small file; the limits are for what a large file takes more. Exits with 1 where one
is missed, and with a traceback where a file is not what it should be.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.benchmarks import measure

FIX = [sys.executable, "-c", "from vexlint.cli import main; main()", "fix", "--no-verify"]
WIDTH = 2_000_000  # floats of a tensor: 8 MB
TENSORS = {"small": 0, "600 MB": 75, "2.4 GB": 300}
TIME_LIMIT, MEMORY_LIMIT = 1.5, 80  # times cp and sync, MB; both over what the small file takes


@dataclass(slots=True)
class Bench:
    """The folder, the environment of children, and for each row of the table seconds and peak bytes of every round."""

    folder: Path
    environment: dict[str, str]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    peaks: dict[str, list[int]] = field(default_factory=dict)

    def run(self, row: str, command: Sequence[str], count: bool) -> None:
        """Runs a command that writes out.onnx, which is taken away before."""
        (self.folder / "out.onnx").unlink(missing_ok=True)
        os.sync()
        start = time.perf_counter()
        cost = measure.run(command, self.folder, self.environment)
        took = time.perf_counter() - start
        if cost.status:
            raise RuntimeError(f"{row} ended with {cost.status}: {cost.errors}")
        if count:
            self.seconds.setdefault(row, []).append(took)
            self.peaks.setdefault(row, []).append(cost.peak)

    def time(self, row: str) -> float:
        return median(self.seconds[row])

    def peak(self, row: str) -> float:
        return median(self.peaks[row]) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.fix", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured (5)")
    parser.add_argument("--folder", help="where a temporary folder for 5.5 GB may be made")
    parser.add_argument("--make", metavar="FILE=TENSORS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        path, _, tensors = options.make.rpartition("=")
        make(Path(path), int(tensors))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="vexlint_fix_", dir=options.folder))
    try:
        bench = Bench(folder, measure.environment(folder / "bytecode"))
        for name, tensors in TENSORS.items():
            child("--make", f"{folder / name}.onnx={tensors}")
        rounds(bench, options.rounds)
        prove(bench)
    finally:
        shutil.rmtree(folder)
    print(conditions(options.rounds), table(bench), sep="\n\n")
    return 0 if held(bench) else 1


def child(*words: str) -> None:
    """Whoever measures must stay small: what needs numpy and onnx is done elsewhere."""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-m", "tests.benchmarks.fix", *words], cwd=root, check=True)


def make(path: Path, tensors: int) -> None:
    from tests.benchmarks import models

    net = models.Net()
    net.add("Abs", ["x"], "twin")
    net.add("Abs", ["x"], "other")
    net.nodes[1].name = "twin"
    last = "twin_output_0"
    for i in range(tensors):
        last = net.one("Add", [last, net.weight(f"w{i}", WIDTH)], f"add{i}")
    net.nodes[-1].output[0] = "y"
    models.write(path, net, ("x", [WIDTH]), ("y", [WIDTH]), {})


def rounds(bench: Bench, count: int) -> None:
    """One round more fills the caches and does not count; each begins with another row, for what the disk still has to
    write delays whoever comes next."""
    rows: dict[str, list[str]] = {}
    for name, tensors in TENSORS.items():
        source = f"{name}.onnx"
        if tensors:
            rows[f"cp, {name}"] = ["cp", source, "out.onnx"]
            rows[f"cp and sync, {name}"] = ["sh", "-c", f"cp '{source}' out.onnx && sync out.onnx"]
        rows[f"fix, {name}"] = [*FIX, source, "-o", "out.onnx"]
    for number in range(count + 1):
        names = list(rows)
        for row in names[number % len(names) :] + names[: number % len(names)]:
            bench.run(row, rows[row], number > 0)


def prove(bench: Bench) -> None:
    """Asserts that the largest file is written whole: its weights are those of the source, the name is mended."""
    bench.run("prove", [*FIX, "2.4 GB.onnx", "-o", "out.onnx"], False)
    source, out = (bench.folder / name for name in ("2.4 GB.onnx", "out.onnx"))
    block = 1 << 20
    assert b"twin_1" in read(out, 0, block)
    grown = out.stat().st_size - source.stat().st_size
    assert 0 < grown < 1000
    far = source.stat().st_size - 2000 * block
    assert read(source, far, block) in read(out, far, block + grown)


def read(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)


def longer(bench: Bench, name: str) -> float:
    """What a fix takes longer than one of the small file, in times of a copy."""
    return (bench.time(f"fix, {name}") - bench.time("fix, small")) / bench.time(f"cp and sync, {name}")


def more(bench: Bench, name: str) -> float:
    return bench.peak(f"fix, {name}") - bench.peak("fix, small")


def held(bench: Bench) -> bool:
    big = [name for name, tensors in TENSORS.items() if tensors]
    return all(longer(bench, n) <= TIME_LIMIT and more(bench, n) <= MEMORY_LIMIT for n in big)


def conditions(count: int) -> str:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    return f"{datetime.date.today()}: {system}; medians of {count} rounds in turn, clock time, files in the cache."


def table(bench: Bench) -> str:
    heads = [
        "what",
        "seconds",
        "times cp",
        "over the small file, times cp and sync",
        "peak, MB",
        "over the small file, MB",
    ]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in sorted(bench.seconds, key=lambda r: (TENSORS[r.partition(", ")[2]], r)):
        what, _, name = row.partition(", ")
        cells = [row, f"{bench.time(row):.2f}", "", "", f"{bench.peak(row):.0f}", ""]
        if what == "fix" and TENSORS[name]:
            cells[2] = f"{bench.time(row) / bench.time(f'cp, {name}'):.2f}"
            cells[3], cells[5] = f"**{longer(bench, name):.2f}**", f"**{more(bench, name):.0f}**"
        rows.append(f"| {' | '.join(cells)} |")
    said = "held" if held(bench) else "**missed**"
    limits = f"Limits over the small file: {TIME_LIMIT} times cp and sync, {MEMORY_LIMIT} MB: {said}."
    return "\n".join([*rows, "", limits])


if __name__ == "__main__":
    sys.exit(main())
