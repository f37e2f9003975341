"""What a check costs beside `import onnx`: `python -m tests.benchmarks.speed [--peers]` prints Markdown.

Every number is the median of interleaved rounds, in CPU seconds of child processes; one round before them fills the
caches and does not count. Exits with 1 where a limit is missed, and with a traceback where a child did not do its work.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.benchmarks import measure
from tests.benchmarks.measure import Cost

PYTHON = sys.executable
CHECK = [PYTHON, "-c", "from vexlint.cli import main; main()", "check"]  # what the program `vexlint` does
FILES = 200
PEER_ROUNDS, PEER_DEADLINE = 3, 120.0  # seconds of wall time
PEERS = {"onnx-doctor": ["check"], "polygraphy": ["check", "lint"]}
IMPORT, COMMON, SHAPES, HUGE, ONE, MANY = "import onnx", "detector", "shapes", "huge", "one", "many"
NODES, NODES_DECLARED, NODES_SHAPES = "nodes", "nodes_declared", "nodes_shapes"
COMMON_ONE, COMMON_THREE, NODES_ONE, NODES_THREE = "detector_one", "detector_three", "nodes_one", "nodes_three"
SUBJECTS = {  # name -> what `vexlint check` is given, and how a table calls it
    COMMON: ("detector.onnx", "255 nodes, {size}"),
    SHAPES: ("shapes.onnx", "255 nodes, {size}, a rule needs shapes"),
    HUGE: ("huge.onnx", "255 nodes, {size} in one file"),
    NODES: ("nodes.onnx", "100,000 nodes, {size}"),
    NODES_DECLARED: ("nodes_declared.onnx", "100,000 nodes, {size}, every shape declared"),
    NODES_SHAPES: ("nodes_shapes.onnx", "100,000 nodes, {size}, a rule needs shapes"),
    COMMON_ONE: ("detector.onnx", "255 nodes, {size}, one named target"),
    COMMON_THREE: ("detector.onnx", "255 nodes, {size}, three named targets"),
    NODES_ONE: ("nodes.onnx", "100,000 nodes, {size}, one named target"),
    NODES_THREE: ("nodes.onnx", "100,000 nodes, {size}, three named targets"),
    ONE: ("many/detector_000.onnx", "255 nodes, {size}: one of the folder"),
    MANY: ("many", f"folder of {FILES} files, {{size}}"),
}

ONE_TARGET = ("--target", "onnxruntime")
THREE_TARGETS = (*ONE_TARGET, "--target", "tensorrt", "--target", "openvino")
OPTIONS = {  # subject -> what is said besides the path
    COMMON_ONE: ONE_TARGET,
    COMMON_THREE: THREE_TARGETS,
    NODES_ONE: ONE_TARGET,
    NODES_THREE: THREE_TARGETS,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table of limits. `measured` and `limit` are in `unit`."""

    what: str
    measured: float
    limit: float
    unit: str

    @property
    def held(self) -> bool:
        return self.measured <= self.limit

    def __str__(self) -> str:
        verdict = "held" if self.held else "**missed**"
        return f"| {self.what} | {self.measured:.2f}{self.unit} | {self.limit:g}{self.unit} | {verdict} |"


@dataclass(slots=True)
class Bench:
    """The folder with the models, the environment of the children, and what each subject has cost so far."""

    folder: Path
    environment: Mapping[str, str]
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    def run(self, command: Sequence[str], deadline: float = 600) -> Cost:
        return measure.run(command, self.folder, self.environment, deadline)

    def vexlint(self, name: str) -> Cost:
        cost = self.run([*CHECK, SUBJECTS[name][0], *OPTIONS.get(name, ())])
        if cost.status != 0:
            raise RuntimeError(f"vexlint check {SUBJECTS[name][0]} ended with {cost.status}: {cost.errors}")
        return cost

    def rounds(self, count: int) -> None:
        """Measures every subject `count` times, in turn."""
        for number in range(count + 1):
            for name in (IMPORT, *SUBJECTS):
                say(f"round {number} of {count}: {name}")
                cost = self.run([PYTHON, "-c", "import onnx"]) if name == IMPORT else self.vexlint(name)
                if number:
                    self.costs.setdefault(name, []).append(cost)

    def cpu(self, name: str) -> float:
        return measure.typical(self.costs[name])[0]

    def peak(self, name: str) -> int:
        return measure.typical(self.costs[name])[1]

    def title(self, name: str) -> str:
        path, text = SUBJECTS[name]
        place = self.folder / path
        files = place.iterdir() if place.is_dir() else [place]
        return text.format(size=size_text(sum(f.stat().st_size for f in files)))


def main() -> int:
    options = parse()
    folder = Path(tempfile.mkdtemp(prefix="vexlint_speed_", dir=options.folder))
    try:
        bench = Bench(folder, measure.environment(folder / "bytecode"))
        say("making the models")
        root = Path(__file__).resolve().parent.parent.parent
        subprocess.run([PYTHON, "-m", "tests.benchmarks.models", str(folder)], cwd=root, check=True)
        prove(bench)
        bench.rounds(options.rounds)
        lines = limits(bench)
        print(conditions(options.rounds), table(bench, lines), cold(bench), sep="\n\n")
        if options.peers:
            print("\n" + peers(bench, {"onnx-doctor": options.onnx_doctor, "polygraphy": options.polygraphy}))
    finally:
        shutil.rmtree(folder)
    return 0 if all(line.held for line in lines) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="how often everything is measured (9)")
    parser.add_argument("--folder", help="where a temporary folder for 2.2 GB of models may be made")
    parser.add_argument("--peers", action="store_true", help="measure other linters on the same files")
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PATH", default=shutil.which(name), help=f"the program {name}")
    return parser.parse_args()


def prove(bench: Bench) -> None:
    """Asserts that the subjects are what their names say, so that nobody measures the cost of doing nothing."""
    for name, (path, _) in SUBJECTS.items():
        command = [*CHECK, path, *OPTIONS.get(name, ()), "--format", "json"]
        done = subprocess.run(command, cwd=bench.folder, env=bench.environment, capture_output=True, check=True)
        report = json.loads(done.stdout)
        found = [f for file in report["files"] for f in file["findings"]]
        assert len(report["files"]) == (FILES if name == MANY else 1), name
        assert all(file["status"] == "checked" for file in report["files"]), name
        heads = 0 if path.startswith("nodes") else len(report["files"])
        assert sum(f["code"] == "VEX501" for f in found) == heads, name
        pixels = [f["data"]["image_px"] for f in found if f["code"] == "VEX301"]
        assert [p is not None for p in pixels] == ([True] if name in (SHAPES, NODES_SHAPES) else []), name


def limits(bench: Bench) -> list[Line]:
    """What was measured against what was promised."""
    title, cpu = bench.title, bench.cpu
    files = 1000 / FILES, 1000 / (FILES - 1)
    return [
        Line(f"{title(COMMON)}: CPU beside `import onnx`", cpu(COMMON) / cpu(IMPORT), 1.2, " x"),
        Line(f"{title(SHAPES)}: CPU beside `import onnx`", cpu(SHAPES) / cpu(IMPORT), 1.5, " x"),
        Line(f"{title(HUGE)}: CPU beside the 13 MB file", cpu(HUGE) / cpu(COMMON), 1.1, " x"),
        Line(f"{title(HUGE)}: peak memory beside the 13 MB file", bench.peak(HUGE) / bench.peak(COMMON), 1.2, " x"),
        Line(f"{title(NODES)}: CPU beside `import onnx`", cpu(NODES) / cpu(IMPORT), 6, " x"),
        Line(f"{title(NODES_DECLARED)}: CPU beside `import onnx`", cpu(NODES_DECLARED) / cpu(IMPORT), 6, " x"),
        Line(f"{title(COMMON_THREE)}: CPU beside one", cpu(COMMON_THREE) / cpu(COMMON_ONE), 1.3, " x"),
        Line(f"{title(NODES_THREE)}: CPU beside one", cpu(NODES_THREE) / cpu(NODES_ONE), 1.3, " x"),
        Line(f"{title(MANY)}: CPU a file, start included", cpu(MANY) * files[0], 8, " ms"),
        Line(f"{title(MANY)}: CPU of one file more", (cpu(MANY) - cpu(ONE)) * files[1], 8, " ms"),
    ]


def conditions(rounds: int) -> str:
    names = ("vexlint", "onnx", "numpy", "protobuf", "typer", "pydantic")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{datetime.date.today()}: {system}, {python}, {versions}. Medians of {rounds} interleaved rounds. CPU seconds "
        "(user and system, of a process and its children); peak resident memory of the largest process."
    )


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def table(bench: Bench, lines: Sequence[Line]) -> str:
    rows = ["| limit on | measured | limit | |", "|---|---|---|---|", *map(str, lines), ""]
    rows += ["| | CPU s | spread | peak MiB |", "|---|---|---|---|"]
    for name in (IMPORT, *SUBJECTS):
        said = "`import onnx`, nothing else" if name == IMPORT else f"`vexlint check`: {bench.title(name)}"
        every = [cost.cpu for cost in bench.costs[name]]
        spread = f"{min(every):.3f} to {max(every):.3f}"
        rows.append(f"| {said} | {bench.cpu(name):.3f} | {spread} | {bench.peak(name) / 2**20:.0f} |")
    return "\n".join(rows)


def cold(bench: Bench) -> str:
    """What a check reads of the largest file when nothing of it is in memory; "" where that cannot be measured."""
    path = bench.folder / SUBJECTS[HUGE][0]
    size = path.stat().st_size
    reader = "import pathlib, sys\nwith open(sys.argv[1], 'rb', 0) as file:\n    while file.read(1 << 20): pass"
    measure.drop_from_cache(path)
    control = bench.run([PYTHON, "-c", reader, str(path)]).read
    if control < 0.9 * size:
        return "Reads from a cold disk: not measured, the file stays in memory here or reads are not counted."
    measured = []
    for _ in range(3):
        measure.drop_from_cache(path)
        measured.append(bench.vexlint(HUGE).read)
    return (
        f"Read from the disk by a check of the {size_text(size)} file with none of it in memory: "
        f"{median(measured) / 1e6:.1f} MB (a program that reads all of it: {size_text(control)})."
    )


def peers(bench: Bench, programs: Mapping[str, str | None]) -> str:
    """A table of other linters on the same files; both without what they can only do by running the model."""
    heads = [f"{name} {peer_version(path)}" if path else name for name, path in programs.items()]
    rows = ["| CPU s, peak MiB | vexlint | " + " | ".join(heads) + " |", "|---" * (2 + len(heads)) + "|"]
    for name in (COMMON, HUGE, NODES, MANY):
        cells = [f"{bench.cpu(name):.2f} s, {bench.peak(name) / 2**20:.0f} MiB"]
        cells += [peer(bench, name, program, path) for program, path in programs.items()]
        rows.append(f"| {bench.title(name)} | " + " | ".join(cells) + " |")
    rounds = f"Medians of {PEER_ROUNDS} runs; in brackets CPU beside vexlint's on the same file."
    return "\n".join([*rows, "", rounds])


def peer(bench: Bench, name: str, program: str, path: str | None) -> str:
    """One cell: what a peer costs on a file, or why there is no number."""
    if path is None:
        return f"not run: no {program} here"
    if program == "polygraphy" and name == MANY:
        return "not run: takes one file at a time"
    costs = []
    for number in range(PEER_ROUNDS + 1):
        say(f"{program}, round {number} of {PEER_ROUNDS}: {name}")
        try:
            cost = bench.run([path, *PEERS[program], SUBJECTS[name][0]], PEER_DEADLINE)
        except measure.Stopped as stopped:
            return str(stopped)
        broken = [line for line in cost.errors.splitlines() if line.startswith(("Traceback", "[!]"))]
        if cost.status < 0 or broken:
            return f"fails (exit status {cost.status}): {''.join(broken[:1])[:80].replace('|', '/')}"
        costs.append(cost)
    cpu, peak = measure.typical(costs[1:])
    return f"{cpu:.2f} s, {peak / 2**20:.0f} MiB ({cpu / bench.cpu(name):.1f} x)"


def peer_version(path: str) -> str:
    """The version of a program from its own environment, "" where that has no metadata of it."""
    python = Path(path).absolute().with_name("python")
    code = f"from importlib.metadata import version; print(version({Path(path).name!r}))"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def size_text(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB" if size >= 1e7 else f"{size / 1e6:.1f} MB"


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
