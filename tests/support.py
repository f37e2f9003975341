"""Small helpers that several test files share."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser

from vexlint import engine, rulebook, targets
from vexlint.config import Config, Contract
from vexlint.engine import Settings
from vexlint.model.model import Model
from vexlint.model.read import read
from vexlint.rulebook import Rule
from vexlint.values import FileReport

ROOT = Path(__file__).resolve().parent.parent
DETECTOR = ROOT / "golden_models" / "shapes_detector"
RULES = rulebook.load()
DEFAULT = rulebook.select(RULES, [], [])


def save(text: str, folder: Path, name: str = "model.onnx") -> Path:
    """A file from ONNX text."""
    path = folder / name
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def load(text: str, folder: Path) -> Model:
    return read(save(text, folder))


def judge(
    path: Path,
    contract: Contract | None = None,
    named: tuple[str, ...] = (),
    rules: dict[str, Rule] | None = None,
    **config: object,
) -> FileReport:
    """What the rules (those of the default profile unless given) say of a file; targets are the defaults unless named,
    `config` goes into the Config."""
    models = (contract,) if contract else ()
    judged = targets.resolve(list(named))[0]
    settings = Settings(rules or DEFAULT, Config(folder=path.parent, models=models, **config), judged)  # type: ignore[arg-type]
    return engine.check_file(path, settings)


def codes(report: FileReport) -> list[tuple[str, str]]:
    """(severity, code) of each finding, in order."""
    return [(f.severity.value, f.code) for f in report.findings]
