"""Runs rules over a model and turns what they hit into findings: code, severity, fingerprint, waivers, order."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vexlint.checks.context import Context
from vexlint.config import Config, Waiver
from vexlint.model import native
from vexlint.model.model import Model
from vexlint.model.read import read
from vexlint.model.wire import Unreadable
from vexlint.rulebook import Rule
from vexlint.tables import Target
from vexlint.values import FileReport, Finding, Hit, Place, Severity, Status, Verdict, VexlintError, Waived

if TYPE_CHECKING:
    from vexlint.outcomes import Probe

UNREADABLE, TIMED_OUT, LAPSED = "VEX001", "VEX002", "VEX003"
STANDING = (UNREADABLE, TIMED_OUT, LAPSED)  # what neither a waiver nor a baseline sets aside

# What a target's verdict is worth: (the user named it, it is a default target); None says nothing
VERDICTS: dict[Verdict, tuple[Severity | None, Severity | None]] = {
    "refuses": (Severity.ERROR, Severity.WARNING),
    "differs": (Severity.ERROR, Severity.WARNING),
    "falls-back": (Severity.WARNING, Severity.INFO),
    "needs-plugin": (Severity.WARNING, Severity.INFO),
    "unknown": (None, None),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What one run judges with: the selected rules, the configuration, the targets, what to tell the user."""

    rules: Mapping[str, Rule]
    config: Config
    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What runtimes answered about one file: hits with their rules' codes, what each said, and why that is not the
    whole answer (None where it is)."""

    hits: tuple[tuple[str, Hit], ...]
    probes: tuple[Probe, ...]
    reason: str | None = None


Prober = Callable[[Model, Context], Asked]


def context_of(path: Path, settings: Settings) -> Context:
    """What checks are told of one file."""
    config = settings.config
    return Context(config.contract(path), settings.targets, config.plugins, config.composites)


def check_file(
    path: Path, settings: Settings, known_as: Path | None = None, prober: Prober | None = None
) -> FileReport:
    """Reads and judges one file, by the contract and the waivers of `known_as` where that is given; `prober` adds what
    runtimes say. Never raises for what is in the file: that is a finding, and where it keeps a check from being
    carried out the file is incomplete."""
    rules = settings.rules
    context = context_of(known_as or path, settings)
    try:
        model = read(path)
    except Unreadable as error:
        return _failed(path, rules[UNREADABLE], str(error))
    except native.Stopped as error:
        return _failed(path, rules[TIMED_OUT], str(error))
    except VexlintError:
        raise
    except Exception as error:  # as below
        return FileReport(str(path), "incomplete", (), (), f"reading failed, please report it: {_said(error)}")
    findings = list[Finding]()
    reason: str | None = None
    probes: tuple[Probe, ...] = ()
    try:
        findings = check(model, rules, context)
        if prober is not None:
            asked = prober(model, context)
            findings += _numbered([_finding(rules[code], hit, context) for code, hit in asked.hits if code in rules])
            probes, reason = asked.probes, asked.reason
    except VexlintError:  # the user's mistake, e.g. in [composites]
        raise
    except Exception as error:  # a bug of ours on one file must not end the run for the others, nor pass the file
        reason = f"a check failed, please report it: {_said(error)}"
    if model.stopped is not None:
        findings.append(_finding(rules[TIMED_OUT], Hit(Place("file"), model.stopped), context))
        reason = reason or model.stopped
    model.release()
    kept, waived = waive(known_as or path, findings, settings.config, rules)
    status: Status = "incomplete" if reason else "checked"
    return FileReport(str(path), status, tuple(_ordered(kept)), tuple(waived), reason, probes=probes)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def check(model: Model, rules: Mapping[str, Rule], context: Context) -> list[Finding]:
    """The findings of these rules on one model, in the rules' order."""
    findings = []
    planned = context.contract.precision
    contexts = {deep: replace(context, deep=deep) for deep in (False, True)}
    for rule in rules.values():
        waits = rule.precision and (rule.waits if planned is None else planned not in rule.precision)
        if rule.check is not None and not waits:
            hits: list[Hit] = list(rule.check(model, contexts[rule.deep]))
            findings += [_finding(rule, hit, context) for hit in hits if severity(rule, hit, context) is not None]
    return _numbered(findings)


def severity(rule: Rule, hit: Hit, context: Context) -> Severity | None:
    """What a hit is worth: what the check says, else what the contract, else what the target's verdict makes of it,
    else what the page says. None where a verdict is worth nothing."""
    if hit.severity is not None:
        return hit.severity
    if hit.contract:
        return Severity.ERROR
    if hit.verdict is not None:
        named = any(t.named for t in context.targets if str(t) == hit.target)
        return VERDICTS[hit.verdict][0 if named else 1]
    return rule.severity


def _finding(rule: Rule, hit: Hit, context: Context) -> Finding:
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=severity(rule, hit, context) or Severity.INFO,
        target=hit.target,
        verdict=hit.verdict,
        message=hit.message,
        count=hit.count,
        place=hit.place,
        more=hit.more,
        data=dict(hit.data),
        fix=hit.fix or rule.fix_safety,
        help=hit.help,
        fingerprint=fingerprint(rule.code, hit.target, hit.place),
    )


def fingerprint(code: str, target: str | None, place: Place, ordinal: int = 0) -> str:
    """Identifies a finding over re-exports: code, runtime without its version, domain::op, output name (else the
    place's name), and a number among equals. Neither message nor index are in it."""
    runtime = (target or "").partition("@")[0]
    operator = f"{place.domain}::{place.op}" if place.op else place.kind
    axis = "" if place.axis is None else f"[{place.axis}]"
    return f"{code}|{runtime}|{operator}|{place.value or place.name}{axis}|{ordinal}"


def _numbered(findings: list[Finding]) -> list[Finding]:
    seen: dict[str, int] = {}
    numbered = []
    for finding in findings:
        ordinal = seen.get(finding.fingerprint, 0)
        seen[finding.fingerprint] = ordinal + 1
        mark = fingerprint(finding.code, finding.target, finding.place, ordinal)
        numbered.append(replace(finding, fingerprint=mark))
    return numbered


def _ordered(findings: list[Finding]) -> list[Finding]:
    """Worst first, then by code; the order of the file among equals."""
    return sorted(findings, key=lambda f: (-f.severity.rank, f.code))


def _failed(path: Path, rule: Rule, message: str) -> FileReport:
    finding = _finding(rule, Hit(Place("file"), message), Context())
    return FileReport(str(path), "incomplete", (finding,), (), message)


def waive(
    path: Path, findings: list[Finding], config: Config, rules: Mapping[str, Rule]
) -> tuple[list[Finding], list[Waived]]:
    """Sets aside what a waiver covers. A waiver that has lapsed sets nothing aside and is a finding itself."""
    today = datetime.date.today()
    kept, waived = list(findings), list[Waived]()
    for waiver in config.waivers:
        if not config.covers(waiver.path, path):
            continue
        if flaw := _flaw(waiver, today):
            message = f"the waiver of {waiver.rule} for {waiver.path} {flaw}: it sets nothing aside"
            kept.append(_finding(rules[LAPSED], Hit(Place("file"), message), Context()))
            continue
        remaining = []
        for finding in kept:
            left, aside = _split(waiver, finding)
            remaining += [left] if left else []
            waived += [Waived(aside, waiver.reason, str(waiver.until or ""))] if aside else []
        kept = remaining
    return kept, waived


def _flaw(waiver: Waiver, today: datetime.date) -> str:
    if not waiver.reason.strip():
        return "gives no reason"
    if waiver.until is not None and waiver.until < today:
        return f"ended on {waiver.until}"
    return ""


def _split(waiver: Waiver, finding: Finding) -> tuple[Finding | None, Finding | None]:
    """The finding at the places that the waiver leaves, and at those that it sets aside."""
    named = waiver.rule in (finding.code, finding.code.lower(), finding.name)  # as `rulebook.find` takes it
    if not named or finding.code in STANDING:
        return finding, None
    places = (finding.place, *finding.more)
    aside = [p for p in places if waiver.output in (None, p.value) and waiver.op in (None, p.op)]
    left = [p for p in places if p not in aside]
    return _at(finding, left), _at(finding, aside)


def _at(finding: Finding, places: list[Place]) -> Finding | None:
    if len(places) == 1 + len(finding.more):
        return finding
    return replace(finding, place=places[0], more=tuple(places[1:]), count=len(places)) if places else None
