"""How fast the forms of a composite are on a whole detector: `python -m tests.benchmarks.composites` prints Markdown.

The seven Mish nodes of the golden detector `custom_mish.onnx` are replaced by each form of each activation that has
more than one. What a detector computes with another activation than its own is of no use, but how long that takes is
what is measured here: CPU time, which other programs disturb less than they do wall time, on one thread. Needs
onnxruntime; openvino is measured where it is installed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2] / "golden_models"))
from shapes_detector import measure

from vexlint import composites, inline

Array = NDArray[np.float32]
Run = Callable[[Array], Array]  # images, float32 [1, 3, 320, 320] -> output0, float32 [1, 7, 2100]

OPSET, DTYPE = 17, "float"  # of the detector
CALL = onnx.helper.make_node("Op", ["x"], ["y"], domain="benchmark")
RUNTIMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}  # package -> how a table calls it


@dataclass(slots=True)
class Subject:
    """One form in the detector: the file, and on each runtime the CPU time of every run, in ms."""

    composite: str
    form: str
    model: bytes
    nodes: int
    times: dict[str, list[float]] = field(default_factory=dict)

    def ms(self, runtime: str) -> float:
        return median(self.times[runtime])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.composites", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="how often every form is run (100)")
    rounds = parser.parse_args().rounds
    subjects = [s for c in composites.load().values() for s in forms_of(c)]
    loaders = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}
    runtimes = [name for name in RUNTIMES if version(name)]
    images = measure.inputs()
    for name in runtimes:
        runs = [loaders[name](s.model) for s in subjects]
        take_turns(subjects, name, runs, images, rounds)
    print(conditions(runtimes, rounds), table(subjects, runtimes), mish(subjects, runtimes), sep="\n\n")


def forms_of(composite: composites.Composite) -> list[Subject]:
    """The forms that can stand in for `Mish(x)` at the detector's opset and differ; none where there is no choice."""
    subjects: dict[tuple[str, ...], Subject] = {}
    for form in composite.forms:
        alone = replace(composite, signatures=(), forms=(form,))
        try:
            operators = tuple(n.op_type for n in inline.expand(CALL, alone, OPSET, DTYPE, set()))
        except inline.NoComposite:
            continue
        if operators not in subjects:
            subjects[operators] = subject(alone)
    return list(subjects.values()) if len(subjects) > 1 else []


def subject(composite: composites.Composite) -> Subject:
    """The detector with this composite in the place of its seven Mish nodes."""
    model = onnx.load(measure.FOLDER / "custom_mish.onnx")
    taken = {n.name for n in model.graph.node} | {o for n in model.graph.node for o in n.output}
    nodes: list[onnx.NodeProto] = []
    count = 0
    for node in model.graph.node:
        made = inline.expand(node, composite, OPSET, DTYPE, taken) if node.domain else [node]
        count = len(made) if node.domain else count
        nodes += made
    del model.graph.node[:], model.opset_import[1:]
    model.graph.node.extend(nodes)
    return Subject(composite.name, composite.forms[0].name, model.SerializeToString(), count)


def onnxruntime_run(model: bytes) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda images: np.asarray(session.run(None, {"images": images})[0])


def openvino_run(model: bytes) -> Run:
    import openvino

    settings: dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    return lambda images: np.asarray(compiled({"images": images})[0])


def take_turns(subjects: Sequence[Subject], runtime: str, runs: Sequence[Run], images: Array, rounds: int) -> None:
    """Times every form in turn, so that a disturbance meets all of them; the first ten rounds do not count."""
    for number in range(rounds + 10):
        image = images[number % len(images)][None]
        for one, run in zip(subjects, runs, strict=True):
            start = time.process_time()
            run(image)
            if number >= 10:
                one.times.setdefault(runtime, []).append(1000 * (time.process_time() - start))


def conditions(runtimes: Sequence[str], rounds: int) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in [*runtimes, "onnx"])
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    return (
        f"{datetime.date.today()}: {system}, {versions}. The golden detector `custom_mish.onnx`, 320x320, float32, one "
        f"thread, with each form in the place of its seven activations; CPU time, medians of {rounds} rounds in turn."
    )


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def table(subjects: Sequence[Subject], runtimes: Sequence[str]) -> str:
    """A row a form; bold is what `vexlint fix` takes for that runtime."""
    heads = " | ".join(f"{RUNTIMES[name]}, ms a picture" for name in runtimes)
    rows = [f"| activation | form | nodes | {heads} |", "|---" * (3 + len(runtimes)) + "|"]
    for one in subjects:
        cells = [f"**{one.ms(r):.2f}**" if chosen(one, r) else f"{one.ms(r):.2f}" for r in runtimes]
        rows.append(f"| {one.composite} | {one.form} | {one.nodes} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", "Bold is the form that is taken for that runtime."])


def chosen(one: Subject, runtime: str) -> bool:
    composite = composites.load()[one.composite]
    known = replace(composite, signatures=())
    taken = inline.expand(CALL, known, OPSET, DTYPE, set(), runtime)
    forms = tuple(f for f in composite.forms if f.name == one.form)
    return taken == inline.expand(CALL, replace(known, forms=forms), OPSET, DTYPE, set())


def mish(subjects: Sequence[Subject], runtimes: Sequence[str]) -> str:
    """How much faster the first form is than the definition, and how far both are from what PyTorch recorded."""
    known, images, lines = measure.recorded()["clean"], measure.inputs(), []
    for one in subjects:
        if one.composite == "Mish":
            found = measure.run(one.model, images)
            apart = measure.drift(found, known)
            sure = known[:, 4:].max(1) > 0.25
            same = (found[:, 4:].argmax(1) == known[:, 4:].argmax(1))[sure].mean()
            lines.append(f"{one.form}: boxes {apart.box_px:.1e} px, scores {apart.score:.1e}, same class {same:.2%}")
    first, definition = (next(s for s in subjects if (s.composite, s.form) == ("Mish", f)) for f in ("exp", "softplus"))
    ratios = ", ".join(f"{definition.ms(r) / first.ms(r):.1f} times on {RUNTIMES[r]}" for r in runtimes)
    return f"Mish `exp` beside `softplus`: {ratios} as fast. Largest differences from PyTorch: {'; '.join(lines)}."


if __name__ == "__main__":
    main()
