"""Every command of README and docs runs, and prints what the page shows.

A `console` block holds `$ command` lines, each followed by its output. `sh` blocks set up an environment: `.ci/run`
runs those, and this file asserts that it does. `pytest --regenerate-golden` writes the outputs anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vexlint import config

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = re.compile(r"(^```console\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)


def run(command: str) -> str:
    """stdout and stderr of a command, run in the repository with this environment's programs first on the path."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def plain(text: str) -> str:
    """Without rounding errors: numbers like 3.4e-05 depend on the processor. Line breaks move with them."""
    return " ".join(re.sub(r"\b\d(\.\d+)?e-\d\d\b", "tiny", text).split())


def session(block: str) -> str:
    """A console block with each command's output as it is now."""
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{run(line.removeprefix('$ '))}" for line in commands)


@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text("utf-8")], ids=lambda p: p.name)
def test_commands_print_what_the_page_shows(page: Path, request: pytest.FixtureRequest) -> None:
    text = page.read_text("utf-8")
    for left in set(re.findall(r"/tmp/[\w.-]+\.\w+", text)):  # an earlier run must not change what is printed
        Path(left).unlink(missing_ok=True)
    now = CONSOLE.sub(lambda block: block[1] + session(block[2]) + block[3], text)
    if request.config.getoption("--regenerate-golden"):
        page.write_text(now, "utf-8")
    assert plain(now) == plain(page.read_text("utf-8"))


def test_ci_runs_the_set_up_commands_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    commands = re.findall(r"^```sh\n(.*?)\n```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert command in script


def test_the_configuration_page_shows_a_configuration(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1
    path = tmp_path / "vexlint.toml"
    path.write_text(blocks[0], "utf-8")
    loaded = config.load(path)
    assert len(loaded.models) == len(loaded.waivers) == len(loaded.plugins) == 1


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "rules").glob("*.md"))], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_rule_is_in_the_changelog_count() -> None:
    count = len(list((ROOT / "rules").glob("VEX*.md")))
    assert f"{count} rules" in (ROOT / "CHANGELOG.md").read_text("utf-8")
