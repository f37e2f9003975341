"""What `nms` did, for people."""

from __future__ import annotations

from dataclasses import dataclass

from vexlint.outcomes import StageProof
from vexlint.report.fix_text import COLOURS
from vexlint.report.text import paint, wrap

DEPRECATED = (
    "warning: EfficientNMS_TRT is deprecated by TensorRT and runs nowhere else; it is multi-label, and nothing here "
    "can check it"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """The file, its head, the thresholds and where they come from, the tail, the names of the new outputs."""

    path: str
    head: str
    thresholds: str
    tail: str
    outputs: tuple[str, ...]


def render(facts: Facts, proofs: tuple[StageProof, ...], output: str | None, colour: bool = False) -> str:
    """The whole report, ending in a newline."""
    lines = [paint(facts.path, "1", colour)]
    for text in (
        f"head {facts.head}",
        f"tail {facts.tail}: {facts.thresholds}",
        f"outputs {', '.join(facts.outputs)}",
        *([DEPRECATED] if facts.tail == "plugin" else []),
    ):
        lines += wrap(text, 2, 2)
    for proof in proofs:
        lines += wrap(f"{proof.stage} {paint(proof.status, COLOURS[proof.status], colour)}: {proof.text}", 2, 2)
    done = "nothing was written" if output is None else f"written to {output}"
    return "\n".join([*lines, "", done if proofs else f"{done}, not verified (--no-verify)"]) + "\n"


def removed(path: str, output: str, same: bool) -> str:
    """What `--remove` says."""
    what = "byte for byte the file that it was put on" if same else "the bytes differ from the file that it was put on"
    return f"{path}: the tail is cut off, written to {output}: {what}\n"
