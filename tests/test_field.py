"""Models rebuilt from public bug reports: what is due is found where it is due, and other targets are left in peace.

`python -m tests.test_field` prints the table without stopping at the first miss.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from tests.field import limits, meanings, numbers, operators, opsets, resizes, shapes, structure, suppression
from tests.field.case import Case, Verdict
from tests.mutants.common import nodes
from tests.support import judge
from vexlint import rulebook
from vexlint.values import FileReport, Finding, Place, VexlintError

TOPICS = (operators, limits, opsets, meanings, resizes, shapes, suppression, numbers, structure)
CASES: tuple[Case, ...] = tuple(case for topic in TOPICS for case in topic.CASES)
EVERY = rulebook.select(rulebook.load(), ["ALL"], [])
DUE = [(case, verdict, target) for case in CASES for verdict in case.verdicts for target in verdict.targets or ("",)]
# What is due and not found yet, with the reason; a row that comes to hold has to leave the list
NOT_YET = {
    "pad_reflect-VEX207-coreml": "its list has no Pad, and what is not listed is unknown",
    "pre_nhwc_input_transpose-VEX804-contract": "the deployment record (8xx) comes later",
    "pre_channel_flip_in_graph-VEX803-contract": "the deployment record (8xx) comes later",
    "resize_scales_from_shape_math-VEX305-coreml": "its list names no condition on the scales",
    "dtype_double_weights-VEX601-rknn": "an info: nobody has said what it makes of float64",
}
SILENT = [(case, target) for case in CASES for target in case.silent_on]


def due_name(row: tuple[Case, Verdict, str]) -> str:
    case, verdict, target = row
    return "-".join(filter(None, (case.name, verdict.codes[0], "contract" if verdict.contract else "", target)))


def saved(case: Case, folder: Path) -> Path:
    path = folder / f"{case.name}.onnx"
    path.write_bytes(case.model().SerializeToString())
    return path


def places(finding: Finding) -> Iterator[Place]:
    yield finding.place
    yield from finding.more


def missing(report: FileReport, verdict: Verdict) -> str:
    """What the report lacks of the verdict, "" where it is all there."""
    coded = [f for f in report.findings if f.code in verdict.codes]
    if not coded:
        return f"no {' or '.join(verdict.codes)}, only {', '.join(f.code for f in report.findings) or 'nothing'}"
    placed = [f for f in coded if not verdict.at or any({p.value, p.name} & {*verdict.at} for p in places(f))]
    if not placed:
        return f"not at {' or '.join(verdict.at)}: {'; '.join(str(p) for f in coded for p in places(f))}"
    if not any(f.severity.value in verdict.severities for f in placed):
        return f"not {' or '.join(verdict.severities)}: {', '.join(f.severity.value for f in placed)}"
    return ""


def found(case: Case, verdict: Verdict, target: str, folder: Path) -> str:
    """What a report of every rule lacks of a verdict."""
    named = (target,) if target else ()
    return missing(judge(saved(case, folder), verdict.contract, named, rules=EVERY), verdict)


def loud(case: Case, target: str, folder: Path) -> list[str]:
    """The errors for a target that runs the model."""
    report = judge(saved(case, folder), named=(target,))
    return [f"{f.code} {f.message}" for f in report.findings if f.severity.value == "error"]


@pytest.mark.parametrize("row", DUE, ids=due_name)
def test_what_is_due_is_found_at_its_place(row: tuple[Case, Verdict, str], tmp_path: Path) -> None:
    lacks = found(*row, tmp_path)
    assert bool(lacks) == (due_name(row) in NOT_YET), lacks


@pytest.mark.parametrize(("case", "target"), SILENT, ids=lambda value: getattr(value, "name", value))
def test_no_error_for_a_target_that_runs_it(case: Case, target: str, tmp_path: Path) -> None:
    errors = loud(case, target, tmp_path)
    assert bool(errors) == (f"{case.name}, no error for {target}" in NOT_YET), errors


def test_there_are_69_cases_each_with_a_verdict_or_a_reason() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 69
    assert all(bool(case.verdicts) != bool(case.nothing) for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_models_are_those_of_the_reports(case: Case) -> None:
    model = case.model()
    assert onnx.ModelProto.FromString(model.SerializeToString()) == model
    named = {name for node in nodes(model) for name in (node.name, *node.output)}
    named |= {v.name for v in (*model.graph.input, *model.graph.output, *model.graph.initializer)}
    assert all(set(verdict.at) <= named for verdict in case.verdicts)


def main() -> int:
    """Prints one line a row; the status says whether every one holds."""
    held = 0
    with tempfile.TemporaryDirectory() as scratch:
        for title, said in rows(Path(scratch)):
            held += not said
            print(f"| {title} | {said or 'holds'} |")
    print(f"\n{held} of {len(DUE) + len(SILENT)} rows hold")
    return int(held < len(DUE) + len(SILENT))


def rows(folder: Path) -> Iterator[tuple[str, str]]:
    """Each row's title and what it lacks."""
    for row in DUE:
        try:
            yield due_name(row), found(*row, folder)
        except VexlintError as error:
            yield due_name(row), str(error)
    for case, target in SILENT:
        try:
            yield f"{case.name}, no error for {target}", "; ".join(loud(case, target, folder))
        except VexlintError as error:
            yield f"{case.name}, no error for {target}", str(error)


if __name__ == "__main__":
    sys.exit(main())
