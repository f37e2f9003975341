"""What a proof costs beside the bare sessions: `python -m tests.benchmarks.verify` prints Markdown.

Two copies of one model run over the same pictures: in a loop of two ONNX Runtime sessions and nothing else, with
`vexlint verify`, and with `polygraphy run` twice (the second compares with what the first saved). The small model is
the golden detector, whose 200 scenes are also the acceptance of `verify`; the usual one has the size of a YOLOv8n at
640x640 and random weights, so that its tensors are compared and not its detections.

CPU seconds are of the process and its children. What starting costs is told from what a picture costs by a run over a
single picture. Exits with 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.benchmarks import measure
from tests.benchmarks.measure import Cost

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
VERIFY = [PYTHON, "-c", "from vexlint.cli import main; main()", "verify"]  # what the program `vexlint` does
POLYGRAPHY = [PYTHON, "-c", "from polygraphy.tools import main; import sys; sys.exit(main())", "run"]
PICTURES, MANY = 200, 2000
OVERHEAD = 5.0  # per cent of the CPU that a picture takes in the loop
DEFAULT = "two sessions in a loop, as ONNX Runtime sets them up"
BARE = "two sessions in a loop, one thread each"
PROOF = "`vexlint verify`"
PEER = "`polygraphy run`, twice"
GROWTH = 10.0  # MiB that ten times the pictures may add to the peak

LOOP = """
import sys
import numpy as np, onnxruntime
from pathlib import Path
from PIL import Image
one, other, folder, threads = sys.argv[1:]
options = onnxruntime.SessionOptions()
if threads != "default":
    options.intra_op_num_threads = int(threads)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
a, b = (onnxruntime.InferenceSession(m, options, providers=["CPUExecutionProvider"]) for m in (one, other))
worst = 0
for path in sorted(Path(folder).glob("*.png")):
    picture = np.asarray(Image.open(path).convert("RGB"))
    images = np.ascontiguousarray(picture.transpose(2, 0, 1)[None].astype(np.float32) / 255)
    worst = max(worst, np.abs(a.run(None, {"images": images})[0] - b.run(None, {"images": images})[0]).max())
"""

LOADER = """
import numpy as np
from pathlib import Path
from PIL import Image
def load_data():
    for path in sorted(Path(FOLDER).glob("*.png")):
        picture = np.asarray(Image.open(path).convert("RGB"))
        yield {"images": np.ascontiguousarray(picture.transpose(2, 0, 1)[None].astype(np.float32) / 255)}
"""

CONTRACT = """
[[model]]
path = "*.onnx"
precision = "fp32"
preprocessing = { colour = "RGB", layout = "NCHW", scale = 255 }
"""

DRAW = """
import sys
from pathlib import Path
from PIL import Image
sys.path.insert(0, sys.argv[1])
from shapes_detector import scenes
folder = Path(sys.argv[2])
folder.mkdir()
for index in range(int(sys.argv[3])):
    Image.fromarray(scenes.scene(20261, index, int(sys.argv[4]))[0]).save(folder / f"scene{index:04}.png")
"""

YOLO = "from tests.benchmarks.models import COMMON, detector; from pathlib import Path; import sys; detector(Path(sys.argv[1]), COMMON)"  # noqa: E501


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, the pictures it looks at, and the folder with the first of them alone; how often to measure.
    `options` are vexlint's."""

    name: str
    model: str
    pictures: str
    first: str
    rounds: int
    options: tuple[str, ...] = ()


SUBJECTS = (
    Subject("golden detector, 320x320, detections", "golden.onnx", "scenes320", "first320", 5),
    Subject("YOLOv8n's size, 640x640, tensors", "yolo.onnx", "scenes640", "first640", 2, ("--raw",)),
)


@dataclass(frozen=True, slots=True)
class Bench:
    """The folder with models and pictures, and the environment of the children."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, command: Sequence[str]) -> Cost:
        cost = measure.run(command, self.folder, self.environment)
        if cost.status != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {cost.status}: {cost.errors}")
        return cost

    def loop(self, subject: Subject, pictures: str, threads: str) -> Cost:
        return self.run([PYTHON, "-c", LOOP, subject.model, f"copy_{subject.model}", pictures, threads])

    def verify(self, subject: Subject, pictures: str) -> Cost:
        pair = [subject.model, f"copy_{subject.model}"]
        return self.run([*VERIFY, *pair, "--images", pictures, *subject.options])

    def polygraphy(self, subject: Subject, pictures: str) -> Cost:
        """Both runs as one cost: seconds add up, the peak is the higher one."""
        loader = self.folder / f"load_{pictures}.py"
        loader.write_text(LOADER.replace("FOLDER", repr(str(self.folder / pictures))), "utf-8")
        common = ["--onnxrt", "--data-loader-script", str(loader)]
        first = self.run([*POLYGRAPHY, subject.model, *common, "--save-outputs", "saved.json"])
        second = self.run([*POLYGRAPHY, f"copy_{subject.model}", *common, "--load-outputs", "saved.json"])
        return Cost(first.cpu + second.cpu, max(first.peak, second.peak), 0, 0, "")


def prepare(bench: Bench) -> None:
    """Makes models, pictures and the contract."""
    shutil.copy(ROOT / "golden_models" / "shapes_detector" / "clean.onnx", bench.folder / "golden.onnx")
    measure.run([PYTHON, "-c", YOLO, str(bench.folder / "yolo.onnx")], ROOT, bench.environment)
    for subject in SUBJECTS:
        shutil.copy(bench.folder / subject.model, bench.folder / f"copy_{subject.model}")
        size = subject.pictures.removeprefix("scenes")
        bench.run([PYTHON, "-c", DRAW, str(ROOT / "golden_models"), subject.pictures, str(PICTURES), size])
        (bench.folder / subject.first).mkdir()
        shutil.copy(bench.folder / subject.pictures / "scene0000.png", bench.folder / subject.first)
    (bench.folder / "vexlint.toml").write_text(CONTRACT, "utf-8")
    many = bench.folder / "many"
    many.mkdir()
    for index in range(MANY):
        source = bench.folder / SUBJECTS[0].pictures / f"scene{index % PICTURES:04}.png"
        (many / f"{index:05}.png").symlink_to(source)


def table(bench: Bench, subject: Subject) -> float:
    """Prints one subject's table; what a picture costs over the loop with as many threads, in per cent."""
    ways: dict[str, Callable[[str], Cost]] = {
        DEFAULT: lambda pictures: bench.loop(subject, pictures, "default"),
        BARE: lambda pictures: bench.loop(subject, pictures, "1"),
        PROOF: lambda pictures: bench.verify(subject, pictures),
        PEER: lambda pictures: bench.polygraphy(subject, pictures),
    }
    starts: dict[str, list[Cost]] = {way: [] for way in ways}
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for measured in ways.values():
        measured(subject.first)  # fills the caches
    for _ in range(subject.rounds):
        for way, measured in ways.items():
            starts[way].append(measured(subject.first))
            costs[way].append(measured(subject.pictures))
    each = {way: median(b.cpu - a.cpu for a, b in zip(starts[way], costs[way], strict=True)) for way in ways}
    head = f"| way | to start, CPU s | {PICTURES} pictures, CPU s | a picture, ms | beside | peak, MiB |"
    print(f"\n{subject.name}, {subject.rounds} interleaved rounds\n\n{head}")
    print("|---|---|---|---|---|---|")
    for way in ways:
        begin, (cpu, peak) = measure.typical(starts[way])[0], measure.typical(costs[way])
        beside = f"{100 * (each[way] / each[BARE] - 1):+.1f} %" if way != BARE else ""
        ms = 1000 * each[way] / (PICTURES - 1)
        print(f"| {way} | {begin:.2f} | {cpu:.2f} | {ms:.1f} | {beside} | {peak / (1 << 20):.0f} |")
    return 100 * (each[PROOF] / each[BARE] - 1)


def growth(bench: Bench) -> float:
    """Prints the memory of few and many pictures; how many MiB the many add."""
    few = median(bench.verify(SUBJECTS[0], SUBJECTS[0].pictures).peak for _ in range(3))
    many = bench.verify(SUBJECTS[0], "many").peak
    print(f"\n| pictures | peak of the largest process, MiB |\n|---|---|\n| {PICTURES} | {few / (1 << 20):.1f} |")
    print(f"| {MANY} | {many / (1 << 20):.1f} |")
    return (many - few) / (1 << 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, choices=range(len(SUBJECTS)), help="one subject, by its number")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        bench = Bench(folder, measure.environment(folder / "bytecode") | {"PYTHONPATH": str(ROOT)})
        prepare(bench)
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("onnxruntime", "polygraphy", "numpy"))
        cores = len(os.sched_getaffinity(0))
        print(f"{datetime.date.today()}, {platform.machine()}, {cores} cores, {versions}; medians")
        over = {s.name: table(bench, s) for i, s in enumerate(SUBJECTS) if only in (None, i)}
        more = growth(bench)
    limits = [(f"a picture, {name}", found, OVERHEAD, " %") for name, found in over.items()]
    limits.append((f"growth from {PICTURES} to {MANY} pictures", more, GROWTH, " MiB"))
    print("\n| limit | measured | allowed | |\n|---|---|---|---|")
    for what, found, allowed, unit in limits:
        print(f"| {what} | {found:.1f}{unit} | {allowed:g}{unit} | {'held' if found <= allowed else '**missed**'} |")
    sys.exit(any(found > allowed for _, found, allowed, _ in limits))


if __name__ == "__main__":
    main()
