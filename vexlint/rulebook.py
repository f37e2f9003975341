"""Reads `rules/VEX*.md` into rules. All a machine reads of a page is its title and its fenced blocks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from vexlint.files import nearest, rules_folder
from vexlint.values import PROFILES, FixSafety, Severity, VexlintError

Fix = Callable[..., Any]  # (Model over a draft, findings, Context) -> list[Change]
Check = Callable[..., Any]  # (Model, Context) -> Iterator[Hit]; none where `source` is not "model"

KEYS = {"code", "name", "severity", "since", "from", "check", "fix", "fix_safety"}
KEYS |= {"profile", "thorough", "precision"}
BLOCK = re.compile(
    r"^## (?P<title>[^\n]+)$|^```(?P<language>\w+) (?P<kind>\w+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
EXAMPLE_BLOCKS = {
    ("toml", "contract"): "contract",
    ("onnx", "bad"): "bad",
    ("python", "bad"): "bad_maker",
    ("text", "finds"): "finds",
    ("onnx", "good"): "good",
}


@dataclass(frozen=True, slots=True)
class Example:
    """One `##` section of a page: files in ONNX text, or a Python maker that returns a path, and what is found."""

    title: str
    line: int
    contract: str = ""
    bad: str = ""
    bad_maker: str = ""
    finds: str = ""
    good: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A page's head. `source` says who calls the check: "model" the engine; for "reader" and "probe" nobody: reading
    reports it, or what a runtime answers.

    `profile` is the first of `PROFILES` that has the rule, `thorough` the first for which it also looks where that
    costs (weights, shape inference); `deep` says whether it does so in this selection. A rule with `precision` runs for
    files whose contract says one of these, whatever the profile; where `waits` is false for those too whose contract
    says nothing of it.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    since: str
    source: Literal["model", "reader", "probe"]
    check: Check | None
    fix: Fix | None
    fix_safety: FixSafety
    page: str
    path: Path
    profile: str = PROFILES[0]
    thorough: str = PROFILES[0]
    precision: tuple[str, ...] = ()
    waits: bool = True
    deep: bool = True

    def examples(self) -> list[Example]:
        """The page's examples, in order. Raises VexlintError for a block of an unknown kind."""
        sections: list[dict[str, Any]] = []
        for part in BLOCK.finditer(self.page):
            line = self.page.count("\n", 0, part.start()) + 1
            kind = (part["language"], part["kind"])
            if part["title"]:
                sections.append({"title": part["title"], "line": line})
            elif kind in EXAMPLE_BLOCKS and sections:
                sections[-1][EXAMPLE_BLOCKS[kind]] = part["body"]
            elif kind != ("toml", "rule"):
                raise VexlintError(f"{self.path.name}:{line}: a block of unknown kind {' '.join(map(str, kind))!r}")
        return [Example(**section) for section in sections if len(section) > 2]


def load(folder: Path | None = None) -> dict[str, Rule]:
    """Code -> rule, in the order of codes, from `rules/`. Raises VexlintError for a page that is not in order."""
    pages = sorted((folder or rules_folder()).glob("VEX*.md"))
    return {rule.code: rule for rule in map(read, pages)}


def read(path: Path) -> Rule:
    """One page as a rule. Raises VexlintError that names the page where its head is not in order."""
    page = path.read_text("utf-8")
    head = re.search(r"^```toml rule\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    title = re.match(r"# ([^\n]+)\n", page)
    if head is None or title is None:
        raise VexlintError(f"{path.name}: a page starts with a # title and has a ```toml rule block")
    try:
        data = tomllib.loads(head[1])
    except tomllib.TOMLDecodeError as error:
        raise VexlintError(f"{path.name}: {error}") from None
    for key in data:
        if key not in KEYS:
            raise VexlintError(f"{path.name}: unknown key {key!r}{nearest(key, sorted(KEYS))}")
    if path.stem != f"{data.get('code')}-{data.get('name')}":
        raise VexlintError(f"{path.name}: should be named {data.get('code')}-{data.get('name')}.md")
    try:
        return Rule(
            code=data["code"],
            name=data["name"],
            severity=Severity(data["severity"]),
            summary=title[1],
            since=data["since"],
            source=data["from"],
            check=_function(data["check"]) if data["from"] == "model" else None,
            fix=_late(data["fix"]) if "fix" in data else None,
            fix_safety=_safety(data),
            page=page,
            path=path,
            profile=PROFILES[PROFILES.index(data.get("profile", PROFILES[0]))],
            thorough=PROFILES[PROFILES.index(data.get("thorough", PROFILES[0]))],
            precision=tuple(data.get("precision", ())),
        )
    except (KeyError, ValueError) as error:
        raise VexlintError(f"{path.name}: {type(error).__name__}: {error}") from None


def _safety(data: dict[str, Any]) -> FixSafety:
    safety: FixSafety = data.get("fix_safety", "none")
    if (safety in ("safe", "unsafe")) != ("fix" in data):
        raise ValueError("fix and fix_safety (safe or unsafe) go together")
    return safety


def _function(name: str) -> Callable[..., Any]:
    """The function of that name (`module:function`)."""
    try:
        return _resolved(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{name!r}: {error}") from None


def _late(name: str) -> Callable[..., Any]:
    """The function of that name, imported when it is first called: `check` needs no fixes."""

    def late(*arguments: Any) -> Any:
        return _resolved(name)(*arguments)

    return late


def _resolved(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def select(
    rules: dict[str, Rule], chosen: Sequence[str], ignored: Sequence[str], profile: str = PROFILES[0]
) -> dict[str, Rule]:
    """The rules named by `chosen` (those of the profile where empty) without those named by `ignored`.

    A rule that waits for a contract's precision keeps waiting unless it was chosen or the profile has it; so does what
    a rule looks at only for a thorough profile.

    Raises VexlintError where nothing is left to judge with: that is never a pass.

    A name is a code (VEX301), the start of codes (VEX3), a rule's name (resize-align-corners) or ALL. Raises
    VexlintError with the nearest name for one that names no rule: a gate must not pass because of a typing error.
    Rules of the reader (VEX0xx) always run: a file that cannot be read is never a pass.
    """
    held = PROFILES[: PROFILES.index(profile) + 1]
    taken = {code for name in chosen for code in named(rules, name)}
    taken = taken if chosen else {code for code, rule in rules.items() if rule.profile in held}
    waiting = set() if chosen else {code for code, rule in rules.items() if rule.precision} - taken
    dropped = {code for name in ignored for code in named(rules, name)}
    kept = {code for code in taken | waiting if code not in dropped}
    if not kept - {code for code, rule in rules.items() if rule.source == "reader" and not chosen}:
        raise VexlintError("no rule is left to judge with: what is selected is ignored, too")
    return {
        code: replace(
            rule,
            precision=() if chosen else rule.precision,
            waits=code in waiting,
            deep=bool(chosen) or rule.thorough in held,
        )
        for code, rule in rules.items()
        if rule.source == "reader" or code in kept
    }


def named(rules: dict[str, Rule], name: str) -> list[str]:
    """The codes that one name stands for, see `select`. Raises VexlintError with the nearest name where none."""
    if name == "ALL":
        return list(rules)
    found = [c for c, r in rules.items() if r.name == name or (name.startswith("VEX") and c.startswith(name))]
    if not found:
        names = [*rules, *(r.name for r in rules.values())]
        raise VexlintError(f"{name!r} names no rule{nearest(name, names)}; `vexlint rules` lists them")
    return found


def find(rules: dict[str, Rule], name: str) -> Rule:
    """The one rule of this code or name. Raises VexlintError with the nearest name."""
    for rule in rules.values():
        if name in (rule.code, rule.name, rule.code.lower()):
            return rule
    names = [*rules, *(r.name for r in rules.values())]
    raise VexlintError(f"{name!r} names no rule{nearest(name, names)}; `vexlint rules` lists them")
