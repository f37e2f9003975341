"""What tools keep of a file that they have no reason to change: `python -m tests.benchmarks.fidelity` prints Markdown.

Every tool is given each of the 53 models of `tests.fidelity`, in a child process of its own with a deadline, and asked
for as little as it can be asked for; what it wrote is looked through for the model's one feature. `vexlint fix` has to
mend something in each: two nodes of one name. Tools that cannot be imported are left out and named.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto

from tests.fidelity import FEATURES, node

DEADLINE = 120  # seconds of one tool with one model
KEPT, LOST, FAILED = "kept", "**lost**", "*fails*"


def vexlint(source: Path, output: Path) -> None:
    from vexlint import repairs, settings

    run = settings.settle()
    repair = repairs.plan(source, run, repairs.Options(verify=False))
    assert repair.changes
    repairs.carry_out(repair, output, run)


def onnxsim(source: Path, output: Path) -> None:
    import onnxsim

    made, _ = onnxsim.simplify(onnx.load(source))
    onnx.save(made, output)


def onnxslim(source: Path, output: Path) -> None:
    import onnxslim  # type: ignore[import-not-found]

    onnx.save(onnxslim.slim(onnx.load(source)), output)


def sanitize(source: Path, output: Path, *options: str) -> None:
    program = Path(sys.executable).with_name("polygraphy")
    subprocess.run([program, "surgeon", "sanitize", source, "-o", output, *options], check=True, capture_output=True)


def cleanup(source: Path, output: Path) -> None:
    sanitize(source, output, "--cleanup")


def version_converter(source: Path, output: Path) -> None:
    """One opset up: it does nothing where it has nothing to do."""
    from onnx import version_converter as converter

    made = onnx.load(source)
    opset = next(o.version for o in made.opset_import if not o.domain)
    onnx.save(
        converter.convert_version(made, opset + 1 if opset < onnx.defs.onnx_opset_version() else opset - 1), output
    )


def graphsurgeon(source: Path, output: Path) -> None:
    import onnx_graphsurgeon

    onnx.save(onnx_graphsurgeon.export_onnx(onnx_graphsurgeon.import_onnx(onnx.load(source))), output)


@dataclass(frozen=True, slots=True)
class Tool:
    """`package` is what has to be installed."""

    title: str
    package: str
    run: Callable[[Path, Path], None]


TOOLS = {
    "vexlint": Tool("vexlint fix", "vexlint", vexlint),
    "onnxsim": Tool("onnxsim", "onnxsim", onnxsim),
    "onnxslim": Tool("onnxslim", "onnxslim", onnxslim),
    "sanitize": Tool("polygraphy surgeon sanitize", "polygraphy", sanitize),
    "cleanup": Tool("polygraphy surgeon sanitize --cleanup", "polygraphy", cleanup),
    "version_converter": Tool("onnx.version_converter", "onnx", version_converter),
    "graphsurgeon": Tool("GraphSurgeon import and export", "onnx-graphsurgeon", graphsurgeon),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.fidelity", description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("TOOL", "FEATURE", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", choices=list(TOOLS), default=list(TOOLS), help="some of the tools")
    options = parser.parse_args()
    one = options.one
    if one:
        sys.stdout.write(judge(TOOLS[one[0]], one[1], Path(one[2])))
        return
    asked = [tool for tool in options.only if version(TOOLS[tool].package)]
    found = {tool: {name: ask(tool, name) for name in FEATURES} for tool in asked}
    if dead := [tool for tool in asked if KEPT not in found[tool].values()]:
        raise RuntimeError(f"{', '.join(dead)} kept nothing at all: was it run?")
    print(conditions(), table(found), sep="\n\n")


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def ask(tool: str, name: str) -> str:
    """Has a tool run in a child: some of them crash, and what they print on stdout is not the answer."""
    sys.stderr.write(f"{tool}: {name}\n")
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory(prefix="vexlint_fidelity_") as folder:
        command = [sys.executable, "-m", "tests.benchmarks.fidelity", "--one", tool, name, folder]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=DEADLINE, check=False)
        except subprocess.TimeoutExpired:
            return FAILED
    last = done.stdout.splitlines()[-1:] or [""]
    return last[0] if last[0] in (KEPT, LOST) else FAILED


def judge(tool: Tool, name: str, folder: Path) -> str:
    source, output = folder / "model.onnx", folder / "out.onnx"
    feature = FEATURES[name]()
    made = feature.model
    if tool.title == "vexlint fix":
        twins = [node("Relu", read_by(made), f"twin{i}", name="twin") for i in range(2)]
        made.graph.node.extend(twins)
    if feature.external:
        onnx.save(made, source, save_as_external_data=True, location="weights.bin", size_threshold=0)
    else:
        source.write_bytes(made.SerializeToString())
    tool.run(source, output)
    found = onnx.load(output, load_external_data=False)
    found.graph.CopyFrom(without_twins(found))
    try:
        return f"\n{KEPT if feature.kept(found) else LOST}"
    except (StopIteration, IndexError, ValueError):  # its node, tensor or function is gone
        return f"\n{LOST}"


def read_by(made: onnx.ModelProto) -> str:
    """An input of float numbers, else an output."""
    ends = [*made.graph.input, *made.graph.output]
    floats = [str(e.name) for e in ends if e.type.tensor_type.elem_type == TensorProto.FLOAT]
    return floats[0]


def without_twins(made: onnx.ModelProto) -> onnx.GraphProto:
    graph = onnx.GraphProto()
    graph.CopyFrom(made.graph)
    for index, found in reversed(list(enumerate(graph.node))):
        if found.name.startswith("twin"):
            del graph.node[index]
    return graph


def conditions() -> str:
    packages = dict.fromkeys(tool.package for tool in TOOLS.values())
    said = ", ".join(f"{p} {version(p) or '(not installed)'}" for p in packages)
    return f"{datetime.date.today()}: Python {sys.version.split()[0]}, {said}."


def table(found: dict[str, dict[str, str]]) -> str:
    titles = " | ".join(TOOLS[tool].title for tool in found)
    rows = [f"| feature | {titles} |", "|---" * (1 + len(found)) + "|"]
    rows += [f"| {name} | {' | '.join(found[tool][name] for tool in found)} |" for name in FEATURES]
    for what in (KEPT, LOST, FAILED):
        counts = (str(sum(answer == what for answer in found[tool].values())) for tool in found)
        rows.append(f"| all: {what} | {' | '.join(counts)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
