"""From what a runtime answered to a `Probe` and to hits of VEX901 (refuses), VEX902 (build fails), VEX903 (falls
back)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from vexlint.engine import VERDICTS
from vexlint.model import tensors
from vexlint.model.graph import Node
from vexlint.model.model import Model
from vexlint.outcomes import Probe, ProbedOutput, Stage
from vexlint.probes import places
from vexlint.runtimes.base import Answer, one_line
from vexlint.tables import Target
from vexlint.values import Hit, Place, Severity, Verdict

REFUSES, BUILD_FAILS, FALLS_BACK = "VEX901", "VEX902", "VEX903"
BUILDS = ("build", "compile")
SAID = {
    "load": "does not load it",
    "read": "does not read it",
    "parse": "does not parse it",
    "build": "builds no engine",
    "compile": "does not compile it",
}
PROFILE = "give each open input its smallest, usual and largest shape in the model's contract: profile.NAME"
MORE = 3  # operators named in a message

Coded = tuple[str, Hit]


def fold(
    model: Model, target: Target, answers: Sequence[Answer], reason: str, skipped: bool
) -> tuple[Probe, list[Coded]]:
    """What one runtime said, as a value, and the hits in it with their rules' codes."""
    head = next((a for a in answers if "version" in a), {"version": "", "device": ""})
    stages = tuple(_stage(a) for a in answers if "stage" in a)
    undecided = [f"{s.name} undecided: {s.said}" for s in stages if s.outcome == "undecided"]
    undecided += [_inactive(a) for a in answers if "inactive" in a]
    probe = Probe(
        runtime=target.runtime,
        target=str(target),
        version=head["version"],
        device=head["device"],
        stages=stages,
        placement={k: v for a in answers for k, v in a.get("placement", {}).items()},
        outputs=tuple(_output(model, *entry) for a in answers for entry in a.get("outputs", ())),
        notes=tuple(a["note"] for a in answers if "note" in a),
        reason=reason or "; ".join(undecided),
        skipped=skipped,
    )
    return probe, list(_hits(model, target, probe, answers))


def _stage(answer: Answer) -> Stage:
    return Stage(answer["stage"], answer["outcome"], round(answer["seconds"], 3), one_line(answer["said"]))


def _hits(model: Model, target: Target, probe: Probe, answers: Sequence[Answer]) -> Iterator[Coded]:
    label = f"{probe.runtime}@{probe.version}"
    if _covers(probe.version, target):
        label = str(target)
    for answer in answers:
        if answer.get("outcome") == "failed":
            yield from _refused(model, target, label, answer)
        if "inactive" in answer:
            yield _hit(FALLS_BACK, target, label, "falls-back", [], _inactive(answer), {"active": answer["active"]})
        for device, nodes in answer.get("elsewhere", {}).items():
            if nodes:
                yield _fallen(model, target, label, probe, device, nodes)


def _covers(version: str, target: Target) -> bool:
    """Whether the installed version is the target's: equal, or equal as far as both go."""
    a, b = version.split("."), target.version.split(".")
    return all(x == y for x, y in zip(a, b, strict=False))


def _refused(model: Model, target: Target, label: str, answer: Answer) -> Iterator[Coded]:
    """One hit for each cause: nodes of one operator refused with the same words."""
    code = BUILD_FAILS if answer["stage"] in BUILDS else REFUSES
    causes: dict[tuple[str, str], list[Node]] = {}
    for refusal in answer["refusals"]:
        found = places.nodes(model, refusal)
        key = (refusal["text"], found[0].op if found else refusal.get("op", ""))
        causes.setdefault(key, []).extend(n for n in found if n not in causes.get(key, ()))
    for (text, op), nodes in causes.items():
        what = f"{op}: " if op and not nodes else ""
        message = f"{label} {SAID[answer['stage']]}: {what}{one_line(text)}"
        _, hit = _hit(code, target, label, "refuses", [n.place for n in nodes], message, {"stage": answer["stage"]})
        yield code, replace(hit, help=PROFILE if "optimization profile" in text else "")


def _fallen(
    model: Model, target: Target, label: str, probe: Probe, device: str, nodes: Sequence[Sequence[str]]
) -> Coded:
    by_name = {n.name: n for graph in model.graphs for n in graph.nodes if n.name}
    found = [by_name[name].place for name, _, _ in nodes if name in by_name]
    ops = Counter(op or (by_name[name].op if name in by_name else "?") for name, _, op in nodes).most_common()
    listed = ", ".join(f"{op} {count}" for op, count in ops[:MORE]) + (", …" if len(ops) > MORE else "")
    total = sum(probe.placement.values())
    wanted = probe.device.split(", ")[0]
    took = "takes none of the nodes" if len(nodes) == total else "leaves nodes"
    message = f"{wanted} {took}: {len(nodes)} of {total} run on {device} instead ({listed})"
    data = {"wanted": wanted, "on": device, "nodes": len(nodes), "of": total}
    return _hit(FALLS_BACK, target, label, "falls-back", found, message, data)


def _inactive(answer: Answer) -> str:
    return f"asked for {answer['inactive']}, the session has {', '.join(answer['active'])} only"


def _hit(
    code: str, target: Target, label: str, verdict: Verdict, found: Sequence[Place], message: str, data: dict[str, Any]
) -> Coded:
    """The severity is that of the target, also where the installed version is another one than the newest known."""
    place = found[0] if found else Place("file")
    severity: Severity | None = VERDICTS[verdict][0 if target.named else 1]
    hit = Hit(
        place,
        message,
        target=label,
        verdict=verdict,
        severity=severity,
        data=data,
        more=tuple(found[1:]),
        count=max(len(found), 1),
    )
    return code, hit


def _output(model: Model, name: str, dtype: str, sizes: Sequence[int | None] | None) -> ProbedOutput:
    """An output as the runtime sees it, beside what the file declares."""
    from vexlint.model.shapes import declared_shape

    entry = model.graph.outputs.get(name)
    declared = declared_shape(entry) if entry is not None else None
    shape = "?" if sizes is None else "[" + ",".join("?" if d is None else str(d) for d in sizes) + "]"
    if declared is None:
        return ProbedOutput(name, dtype, shape, "", True)
    written = tensors.NUMPY_NAMES.get(declared.dtype, declared.dtype)
    agrees = dtype == written and (sizes is None or _compatible(sizes, declared.dims))
    return ProbedOutput(name, dtype, shape, f"{written} {declared}", agrees)


def _compatible(sizes: Sequence[int | None], dims: Sequence[int | str | None]) -> bool:
    """Whether a shape may be the declared one. A size where the file has a symbol may: exporters leave names for sizes
    that they did not work out."""
    return len(sizes) == len(dims) and all(
        size == dim for size, dim in zip(sizes, dims, strict=True) if size is not None and isinstance(dim, int)
    )
