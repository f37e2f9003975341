"""How many broken models are caught: `python -m tests.benchmarks.mutants [--count N] [--only KIND]` prints Markdown.

Originals are the node tests that the installed onnx package generates (as they are, and with weights in place of
inputs), small networks and compositions. Each is broken in every kind of `tests.mutants`; what ONNX Runtime
(optimisations off) then refuses, or runs with another result, is kept. Unsorted nodes, which it sorts by itself, are
judged by ONNX's reference evaluator. Caught is what vexlint, with that runtime named as its target, reports as an error
or a warning on the mutant and not on the original; onnx.checker what it refuses, onnx-doctor as vexlint.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import multiprocessing
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import onnx

from tests import mutants
from tests.benchmarks.doctor import diagnose
from tests.benchmarks.judging import errors, judged, told
from tests.benchmarks.truth import Runtime, Verdict
from tests.compositions import composition
from tests.feeds import agree, feeds_for
from tests.networks import networks
from tests.node_tests import NodeTest, frozen, node_tests
from vexlint.values import FileReport

NEWEST = onnx.defs.onnx_opset_version()
REPEATS = 24  # how often a network is broken, each time elsewhere
CHAINS = range(10_000, 10_600)  # seeds of compositions that are broken too, none of those that `agreement` judges
BATCH = 60
JUDGES: dict[str, tuple[str, str]] = {"unsorted nodes": ("reference", "onnx")}  # kind -> who refuses it, the target
USUAL = ("onnxruntime", "onnxruntime")
BOARD = "board"  # the profile that runs ONNX's own inference too


@dataclass(frozen=True, slots=True)
class Original:
    name: str
    model: bytes
    inputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Base:
    """What an original came to: its run, and what vexlint says of it by default and with the profile "board"."""

    verdict: Verdict
    usual: Counter[str]
    board: Counter[str]


@dataclass(frozen=True, slots=True)
class Mutant:
    """`how` is "refused" or "changed", `words` what the runtime said, `edit` the ONNX text that came, `found` vexlint's
    new findings as "CODE severity", `board` whether the profile "board" finds something new, `unclear` why a report is
    incomplete."""

    kind: str
    original: str
    how: str
    words: str
    edit: str
    vexlint: bool
    board: bool
    checker: bool
    found: tuple[str, ...]
    digest: str
    unclear: str = ""


@dataclass(slots=True)
class Outcome:
    """What one original came to: whether it runs, what the profile "board" wrongly calls an error, its mutants."""

    name: str
    runs: bool = False
    false_errors: list[str] = field(default_factory=list)
    mutants: list[Mutant] = field(default_factory=list)
    verdicts: dict[str, tuple[str, str]] = field(default_factory=dict)


ORIGINALS: list[Original] = []  # filled before the workers fork
CACHE: dict[str, tuple[str, str]] = {}
_runtimes: dict[str, Runtime] = {}


def originals(seed: int) -> list[Original]:
    """Everything that is broken, in a seeded order."""
    tests: list[NodeTest] = []
    for test in node_tests(NEWEST):
        tests += [test, frozen(test)] if len(test.inputs) > 1 else [test]
    made = networks().items()
    tests += [NodeTest(f"{name}#{turn}", model, {}) for name, model in made for turn in range(REPEATS)]
    tests += [NodeTest(f"composition {seed}", composition(seed, NEWEST), {}) for seed in CHAINS]
    random.Random(seed).shuffle(tests)
    return [Original(t.name, t.model.SerializeToString(), t.inputs) for t in tests]


def news(before: Counter[str], after: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(after - before))


def judge(model: bytes, target: str, folder: Path, profile: str = "") -> FileReport:
    path = folder / "mutant.onnx"
    path.write_bytes(model)
    return judged(path, target, profile)


def runtime(name: str) -> Runtime:
    if name not in _runtimes:
        _runtimes[name] = Runtime(name)
    return _runtimes[name]


def work(task: tuple[int, tuple[str, ...], int]) -> Outcome:
    """Breaks one original in every kind asked for, and has everybody judge what became of it."""
    index, kinds, seed = task
    original = ORIGINALS[index]
    outcome = Outcome(original.name)
    model = onnx.load_from_string(original.model)
    feeds = feeds_for(model, original.inputs)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        bases: dict[tuple[str, str], Base] = {}
        for usual in {JUDGES.get(kind, USUAL) for kind in kinds}:
            verdict = _steady(original.model, feeds, usual[0])
            if feeds is None or verdict is None:
                continue
            report, board = (judge(original.model, usual[1], folder, profile) for profile in ("", BOARD))
            bases[usual] = Base(verdict, told(report), told(board))
            if usual == USUAL:
                outcome.runs = True
                outcome.false_errors = list(errors(board))
        plain = runtime("checker").ask(original.model, None).accepted
        for kind in kinds:
            base = bases.get(JUDGES.get(kind, USUAL))
            if base is None:
                continue
            dice = random.Random(f"{seed} {original.name} {kind}")
            broken = mutants.mutate(model, kind, dice)
            if broken is None:
                continue
            made = _judge(kind, original, broken, base, folder, plain, outcome.verdicts)
            outcome.mutants += [made] if made else []
    return outcome


def _steady(model: bytes, feeds: dict[str, Any] | None, name: str) -> Verdict | None:
    """The verdict on an original that runs and gives the same result twice, else None."""
    first, second = (runtime(name).ask(model, feeds, optimise=False) for _ in range(2))
    return first if first.accepted and second.accepted and agree(first.outputs, second.outputs) else None


def _judge(
    kind: str,
    original: Original,
    broken: onnx.ModelProto,
    base: Base,
    folder: Path,
    plain: bool,
    verdicts: dict[str, tuple[str, str]],
) -> Mutant | None:
    """The mutant with everybody's word on it, None where the runtime does not mind."""
    name, target = JUDGES.get(kind, USUAL)
    data = broken.SerializeToString()
    digest = hashlib.sha256(data + original.model + name.encode()).hexdigest()[:20]
    verdicts[digest] = CACHE.get(digest) or _truth(data, broken, original, base.verdict, name)
    how, words = verdicts[digest]
    if not how:
        return None
    report, board = (judge(data, target, folder, profile) for profile in ("", BOARD))
    found, more = news(base.usual, told(report)), news(base.board, told(board))
    refused = plain and not runtime("checker").ask(data, None).accepted
    unclear = (report.reason or "") if report.status == "incomplete" else ""
    edit = difference(onnx.load_from_string(original.model), broken)
    return Mutant(kind, original.name, how, words, edit, bool(found), bool(more), refused, found, digest, unclear)


def _truth(data: bytes, broken: onnx.ModelProto, original: Original, base: Verdict, name: str) -> tuple[str, str]:
    """("refused", words), ("changed", by how much) or ("", "")."""
    given = feeds_for(onnx.load_from_string(original.model), original.inputs)
    feeds = feeds_for(broken, given)
    verdict = runtime(name).ask(data, feeds, optimise=False)
    if not verdict.accepted:
        return "refused", f"{verdict.stage}: {verdict.words}"
    if feeds is None or given is None or feeds.keys() != given.keys():
        return "", ""
    if agree([*feeds.values()], [*given.values()]) and not agree(verdict.outputs, base.outputs):
        return "changed", "another result"
    return "", ""


def difference(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """The first lines of ONNX text that came, else that went, without what they share with the line before."""
    try:
        old, new = (onnx.printer.to_text(m).splitlines() for m in (before, after))
    except Exception as error:
        return f"not printable: {error}"[:100]
    gone, come = (list(Counter(a) - Counter(b)) for a, b in ((old, new), (new, old)))
    return " // ".join([_excerpt(line, gone) for line in come[:2]] or [f"- {line.strip()[:160]}" for line in gone[:2]])


def _excerpt(line: str, others: Sequence[str]) -> str:
    """The 160 characters around the place where a line leaves the one it is most like."""
    shared = max(
        (sum(1 for _ in takewhile(lambda p: p[0] == p[1], zip(line, o, strict=False))) for o in others), default=0
    )
    start = max(0, shared - 60) if len(line) > 160 else 0
    return " ".join(f"{'…' if start else ''}{line[start : start + 160]}".split())


# --- the run -------------------------------------------------------------------------------------------------------


def run(kinds: Sequence[str], count: int, seed: int, jobs: int) -> list[Outcome]:
    """Breaks originals in order until every kind has `count` mutants or the originals are at their end."""
    open_kinds, have, seen = list(kinds), Counter[str](), set[str]()
    outcomes: list[Outcome] = []
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for start in range(0, len(ORIGINALS), BATCH):
            tasks = [(i, tuple(open_kinds), seed) for i in range(start, min(start + BATCH, len(ORIGINALS)))]
            for outcome in pool.imap(work, tasks):
                outcome.mutants = [m for m in outcome.mutants if _counted(have, seen, m, count)]
                outcomes.append(outcome)
            open_kinds = [kind for kind in open_kinds if have[kind] < count]
            say(f"{start + len(tasks)} originals, {sum(have.values())} mutants, open: {len(open_kinds)} kinds")
            if not open_kinds:
                break
    return outcomes


def _counted(have: Counter[str], seen: set[str], mutant: Mutant, count: int) -> bool:
    """Whether a mutant is new and its kind still lacks some."""
    if mutant.digest in seen or have[mutant.kind] >= count:
        return False
    seen.add(mutant.digest)
    have[mutant.kind] += 1
    return True


def doctored(outcomes: Iterable[Outcome], program: str, folder: Path, seed: int) -> dict[str, bool]:
    """digest -> whether onnx-doctor (with its checks for ONNX Runtime) reports something new on the mutant."""
    by_name = {original.name: original for original in ORIGINALS}
    pairs: list[tuple[str, Path, Path]] = []
    for outcome in outcomes:
        original = by_name[outcome.name]
        before = folder / f"original_{len(pairs)}.onnx"
        before.write_bytes(original.model)
        model = onnx.load_from_string(original.model)
        for mutant in outcome.mutants:
            broken = mutants.mutate(model, mutant.kind, random.Random(f"{seed} {original.name} {mutant.kind}"))
            assert broken is not None, mutant
            after = folder / f"{mutant.digest}.onnx"
            after.write_bytes(broken.SerializeToString())
            pairs.append((mutant.digest, before, after))
    paths = sorted({path for _, *both in pairs for path in both})
    said: dict[str, Counter[str]] = {}
    for start in range(0, len(paths), 100):
        said |= diagnose(program, paths[start : start + 100])
        say(f"onnx-doctor: {start} of {len(paths)}")
    return {digest: bool(said[after.name] - said[before.name]) for digest, before, after in pairs}


# --- the report ----------------------------------------------------------------------------------------------------


def table(kinds: Sequence[str], outcomes: Sequence[Outcome], doctor: dict[str, bool]) -> str:
    found: dict[str, list[Mutant]] = defaultdict(list)
    for outcome in outcomes:
        for mutant in outcome.mutants:
            found[mutant.kind].append(mutant)
    rows = ["| kind | mutants | refused | vexlint | --profile board | onnx.checker | onnx-doctor |", "|---" * 7 + "|"]
    every = [m for kind in kinds for m in found[kind]]
    for kind, group in [*((kind, found[kind]) for kind in kinds), ("**all**", every)]:
        refused = sum(m.how == "refused" for m in group)
        theirs = share(sum(doctor[m.digest] for m in group), len(group)) if doctor else "not run"
        ours = [share(sum(getattr(m, who) for m in group), len(group)) for who in ("vexlint", "board", "checker")]
        rows.append(f"| {kind} | {len(group)} | {refused} | {' | '.join(ours)} | {theirs} |")
    return "\n".join(rows)


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def missed(outcomes: Sequence[Outcome], limit: int) -> str:
    """What vexlint does not catch: by kind, then by the words of the runtime."""
    lines, shown = ["", "## Missed"], Counter[str]()
    every = [m for outcome in outcomes for m in outcome.mutants if not m.vexlint]
    for mutant in sorted(every, key=lambda m: (m.kind, m.words)):
        shown[mutant.kind] += 1
        if shown[mutant.kind] <= limit:
            note = f" [incomplete: {mutant.unclear}]" if mutant.unclear else ""
            lines.append(f"- {mutant.kind}: {mutant.original}: `{mutant.edit}`: {mutant.how}, {mutant.words}{note}")
    lines += [f"- {kind}: {count} missed in all" for kind, count in sorted(shown.items())]
    return "\n".join(lines)


def false_alarms(outcomes: Sequence[Outcome], limit: int) -> str:
    ran = [o for o in outcomes if o.runs]
    wrong = [o for o in ran if o.false_errors]
    lines = [f"{len(ran)} originals that ONNX Runtime runs, {len(wrong)} of them with an error of vexlint."]
    return "\n".join([*lines, *(f"- {o.name}: {o.false_errors[0]}" for o in wrong[:limit])])


def main() -> int:
    options = parse()
    kinds = [kind for kind in mutants.KINDS if options.only in kind]
    if not kinds:
        sys.exit(f"--only {options.only!r} is part of no kind: {', '.join(mutants.KINDS)}")
    cache = Path(options.cache) if options.cache else None
    if cache and cache.exists():
        CACHE.update({key: (how, words) for key, (how, words) in json.loads(cache.read_text()).items()})
    ORIGINALS.extend(originals(options.seed))
    outcomes = run(kinds, options.count, options.seed, options.jobs)
    if cache:
        known = CACHE | {key: verdict for outcome in outcomes for key, verdict in outcome.verdicts.items()}
        cache.write_text(json.dumps(known))
    doctor: dict[str, bool] = {}
    if options.onnx_doctor:
        with tempfile.TemporaryDirectory() as scratch:
            doctor = doctored(outcomes, options.onnx_doctor, Path(scratch), options.seed)
    print(f"{datetime.date.today()}: onnx {onnx.__version__}, seed {options.seed}, {options.count} a kind at most.\n")
    print(table(kinds, outcomes, doctor), false_alarms(outcomes, options.missed), sep="\n\n")
    if options.missed:
        print(missed(outcomes, options.missed))
    if options.json:
        rows = [asdict(mutant) for outcome in outcomes for mutant in outcome.mutants]
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants of each kind, at most (200)")
    parser.add_argument("--only", default="", help="only kinds whose name has this in it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--missed", type=int, default=0, metavar="N", help="list up to N missed mutants of each kind")
    parser.add_argument("--cache", help="a file that keeps the runtime's verdicts between runs")
    parser.add_argument("--json", help="write every mutant and what was said of it to this file")
    parser.add_argument("--onnx-doctor", default=shutil.which("onnx-doctor"), help="the program onnx-doctor")
    return parser.parse_args()


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
