"""Activations as standard operators: reads `rules/composites/*.onnxtxt`.

A file holds one activation: a header of comments, then one ONNX function for each form of it, the best first.

    # Name: its formula
    # where the formula comes from
    #
    # stands for domain::Op <alpha = 1.0, beta, mode == "fast"> (x, bias)  where that operator is defined
    #
    # form name (float16, float) best on openvino: why it is safe
    <domain: "vexlint.composites", opset_import: ["" : 8]>
    Name <alpha: float = 1.0, beta> (x, bias) => (y) { … }

`stands for` says which calls are this activation: `alpha` is 1.0 where a call does not say, `beta` has to be said,
`mode` is "fast" or left out, and means nothing here. A form is for the element types it names, from its opset on. Its
Constants are written as double and get the element type of the call. Other comments are for people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from vexlint.files import nearest, rules_folder
from vexlint.model.model import OperatorKey
from vexlint.model.schemas import plain_domain
from vexlint.values import VexlintError

DTYPES = ("float16", "float", "double")  # as ONNX text names them
TITLE = re.compile(r"# (?P<name>\w+): (?P<summary>.+)\n# (?P<source>\S+)\n")
STANDS = re.compile(r"# stands for ([\w.-]+)::(\w+)(?: <([^>]+)>)? \(([\w, ]+)\)  (\S+)")
ATTRIBUTE = re.compile(r'(\w+)(?: = (?P<default>-?[\d.]+)| == (?P<text>"[^"]*")| == (?P<number>-?\d+))?')
FORM = re.compile(r"# form (\w+) \(([\w, ]+)\)(?: best on ([\w, -]+))?: \S.*")
HEADER = '<domain: "vexlint.composites", opset_import: ["" : 8]>'
OPSET = re.compile(r'^<domain: "vexlint\.composites", opset_import: \["" : (\d+)\]>', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Signature:
    """Calls of one operator that are the activation.

    `attributes` are floats: name -> default, None where a call has to say it. `fixed` are attributes that mean nothing
    here: name -> the only value that a call may give. `source` is where the operator is defined.
    """

    operator: OperatorKey
    attributes: Mapping[str, float | None]
    fixed: Mapping[str, str | int]
    inputs: int
    source: str


@dataclass(frozen=True, slots=True)
class Form:
    """One way to compute the activation: an ONNX function as text, for these element types, from an opset on.

    `best_on` names runtimes (without a version) where it is faster than the forms before it.
    """

    name: str
    dtypes: tuple[str, ...]
    best_on: tuple[str, ...]
    opset: int
    text: str
    file: str


@dataclass(frozen=True, slots=True)
class Composite:
    """One file. `signatures` are the calls it stands for without anybody saying so; `forms` the best first."""

    name: str
    summary: str
    source: str
    signatures: tuple[Signature, ...]
    forms: tuple[Form, ...]


@cache
def load(folder: Path | None = None) -> Mapping[str, Composite]:
    """Name -> composite, from `rules/composites/` or another folder. Imports nothing heavy.

    Raises VexlintError naming file and line for a header that is not as this module says, and for an operator that
    two files claim.
    """
    found = {c.name: c for c in map(_read, sorted((folder or rules_folder() / "composites").glob("*.onnxtxt")))}
    owners: dict[OperatorKey, str] = {}
    for composite in found.values():
        for operator in (s.operator for s in composite.signatures):
            if owners.setdefault(operator, composite.name) != composite.name:
                raise VexlintError(f"{composite.name}.onnxtxt: {owners[operator]} stands for {'::'.join(operator)} too")
    return found


def find(
    domain: str, op: str, mapping: Mapping[str, str], known: Mapping[str, Composite] | None = None
) -> Composite | None:
    """The composite of an operator: the one that `mapping` (the configuration's "domain::Op" -> name) says, else the
    one that lists it, else None.

    Raises VexlintError with the nearest name where the mapping names a composite that does not exist.
    """
    known = load() if known is None else known
    said: dict[OperatorKey, Composite] = {}
    for operator, name in mapping.items():
        if name not in known:
            raise VexlintError(f"[composites] {operator}: no composite is named {name!r}{nearest(name, [*known])}")
        there, _, what = operator.rpartition("::")
        said[plain_domain(there), what] = known[name]
    wanted = plain_domain(domain), op
    listed = (c for c in known.values() if any(s.operator == wanted for s in c.signatures))
    return said.get(wanted) or next(listed, None)


def _read(path: Path) -> Composite:
    text = path.read_text("utf-8")
    title = TITLE.match(text)
    if title is None or title["name"] != path.stem:
        raise _fault(path, text, 0, f"starts with '# {path.stem}: its formula' and '# where the formula comes from'")
    signatures = [_signature(path, text, line) for line in re.finditer(r"^# *stands\b.*$", text, re.MULTILINE)]
    starts = [line.start() for line in re.finditer(r"^# *form\b", text, re.MULTILINE)]
    forms = tuple(_form(path, text, start, end) for start, end in pairwise([*starts, len(text)]))
    if not forms:
        raise _fault(path, text, len(text), "has no '# form'")
    names = [form.name for form in forms]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise _fault(path, text, 0, f"has two forms named {twice}")
    return Composite(path.stem, title["summary"], title["source"], tuple(signatures), forms)


def _signature(path: Path, text: str, line: re.Match[str]) -> Signature:
    parts = STANDS.fullmatch(line[0])
    written = parts[3].split(", ") if parts and parts[3] else []
    attributes = [ATTRIBUTE.fullmatch(a) for a in written]
    if parts is None or None in attributes:
        raise _fault(path, text, line.start(), "should be '# stands for domain::Op <alpha = 1.0> (x)  source'")
    floats: dict[str, float | None] = {}
    fixed: dict[str, str | int] = {}
    for a in filter(None, attributes):
        if a["text"] or a["number"]:
            fixed[a[1]] = a["text"][1:-1] if a["text"] else int(a["number"])
        else:
            floats[a[1]] = float(a["default"]) if a["default"] else None
    return Signature((plain_domain(parts[1]), parts[2]), floats, fixed, parts[4].count(",") + 1, parts[5])


def _form(path: Path, text: str, start: int, end: int) -> Form:
    head, opset = FORM.match(text, start, end), OPSET.search(text, start, end)
    if head is None:
        raise _fault(path, text, start, "should be '# form name (float16, float): why it is safe'")
    if opset is None:
        raise _fault(path, text, start, f"is not followed by {HEADER!r}")
    dtypes, best_on = (tuple((part or "").replace(",", " ").split()) for part in head.group(2, 3))
    if unknown := next((d for d in dtypes if d not in DTYPES), ""):
        raise _fault(path, text, start, f"{unknown} is none of {', '.join(DTYPES)}{nearest(unknown, [*DTYPES])}")
    return Form(head[1], dtypes, best_on, int(opset[1]), text[opset.start() : end], path.name)


def _fault(path: Path, text: str, at: int, message: str) -> VexlintError:
    line = text.count("\n", 0, at) + 1
    return VexlintError(f"{path.name}:{line}: {message}")
