"""The result of `verify` for people: what was compared and how far apart it is, one block a runtime."""

from __future__ import annotations

from collections.abc import Iterator

from vexlint.outcomes import Comparison, Drift, Proof, Ran, SetDrift
from vexlint.report.text import many, paint, wrap

COLOURS = {"proven": "32", "drifts": "31", "not proven": "33"}
WORDS = {"proven": "PASS", "drifts": "FAIL", "not proven": "NOT PROVEN"}
SHOWN = 5  # outputs that are listed, the furthest apart first


def render(proof: Proof, colour: bool = False) -> str:
    """The whole report, ending in a newline: the comparisons, then what ran where."""
    lines = [f"{proof.candidate} against {proof.reference}"]
    for comparison in proof.comparisons:
        lines += _comparison(proof, comparison, colour)
    lines += wrap(f"reference: {_ran(proof.ran)}", 0, 2)
    for comparison in proof.comparisons:
        lines += wrap(f"candidate: {_ran(comparison.ran, comparison.runtime)}", 0, 2)
    return "\n".join(lines) + "\n"


def _ran(ran: Ran | None, runtime: str = "") -> str:
    if ran is None:
        return f"{runtime} did not run" if runtime else "did not run, or does not say what computed it"
    return str(ran)


def _comparison(proof: Proof, comparison: Comparison, colour: bool) -> Iterator[str]:
    verdict = WORDS[comparison.status]
    said = paint(verdict, COLOURS[comparison.status], colour)
    text = f"{comparison.runtime}: {', '.join(_findings(proof, comparison))}".removesuffix(": ") + f": {verdict}"
    for line in wrap(text, 2, 2):
        yield line.replace(verdict, said) if line.endswith(verdict) else line
    if comparison.reason:
        yield from wrap(comparison.reason, 4, 2)
    if comparison.sets is not None and comparison.status != "proven":
        yield from _sets(comparison.sets)
    yield from _drifts(comparison)


def _findings(proof: Proof, comparison: Comparison) -> Iterator[str]:
    if not comparison.samples:
        return
    yield many(comparison.samples, proof.unit)
    if (sets := comparison.sets) is not None:
        yield f"{many(sets.matched, 'detection')} matched"
        yield f"max IoU drift {number(sets.iou_drift)} (limit {sets.limits.iou_drift:g})"
        yield f"class match {share(sets.class_match)}"
        yield f"max centre shift {number(sets.centre_px)} px"
    elif comparison.drifts:
        worst = max(comparison.drifts, key=lambda d: (not d.passed, d.max_rel))
        yield many(len(comparison.drifts), "output")
        yield f"max abs {_short(worst.max_abs)}"
        yield f"max rel {_short(worst.max_rel)} (limit {worst.limit:g})"


def _sets(sets: SetDrift) -> Iterator[str]:
    if sets.sizes:
        yield "    centre shift by the larger side of the object:"
        yield f"      {'object':<15}{'matched':>9}{'unmatched':>11}{'median':>12}{'max':>12}"
        for size in sets.sizes:
            counts = f"{size.matched:>9,}{size.unmatched:>11,}"
            shifts = f"{number(size.median):>9} px{number(size.largest):>9} px" if size.matched else ""
            yield f"      {size!s:<15}{counts}{shifts}"
    limits = sets.limits
    text = (
        f"{sets.missing:,} missing, {sets.extra:,} extra, {many(sets.class_flips, 'class flip')}, "
        f"{many(sets.threshold_flips, 'threshold flip')}; max score drift {number(sets.score)}; limits: centre "
        f"{limits.centre_px:g} px, score {limits.score:g}, class match {share(limits.class_match)}"
    )
    yield from wrap(text, 4, 2)
    if sets.worst:
        yield from wrap(f"worst: {sets.worst}", 4, 2)


def _drifts(comparison: Comparison) -> Iterator[str]:
    if comparison.sets is None and len(comparison.drifts) < 2 and comparison.status == "proven":
        return
    ranked = sorted(comparison.drifts, key=lambda d: (d.passed, -d.max_rel))
    for drift in ranked[:SHOWN]:
        yield from wrap(_drift(drift, decides=comparison.sets is None), 4, 2)
    if len(ranked) > SHOWN:
        yield f"    and {len(ranked) - SHOWN} more outputs"


def _drift(drift: Drift, decides: bool) -> str:
    if drift.note:
        return f"{drift.output}: not compared element by element, {drift.note}"
    text = f"{drift.output}: max abs {_short(drift.max_abs)}, max rel {_short(drift.max_rel)}"
    if decides:
        text += f" (limit {drift.limit:g})"
    if drift.nonfinite:
        text += f", {many(drift.nonfinite, 'element')} NaN or infinite"
    return text + (f", worst in {drift.worst}" if drift.worst and not drift.passed else "")


def number(value: float) -> str:
    """A small number as people write it: 0.0006, 1.98, 12; very small ones with an exponent."""
    if value == 0 or value >= 100:
        return f"{value:.0f}"
    return f"{value:.1e}" if value < 1e-4 else f"{value:.4f}" if value < 0.01 else f"{value:.3g}"


def _short(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def share(value: float) -> str:
    """A share in per cent, never rounded up to 100."""
    if value == 1:
        return "100 %"
    return f"{min(value * 100, 99.99):.4g} %"
