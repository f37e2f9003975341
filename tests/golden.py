"""Golden texts: compared, or written anew with `pytest --regenerate-golden`."""

from __future__ import annotations

from pathlib import Path

import pytest


def compare(request: pytest.FixtureRequest, path: Path, text: str) -> None:
    """Asserts that the file holds the text; with the switch it is written first."""
    if request.config.getoption("--regenerate-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.exists(), f"{path} is missing: pytest --regenerate-golden writes it"
    assert text == path.read_text("utf-8")
