"""Options of the test suite."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

from tests import scratch
from tests.scratch import CLEAN, MISH

# The suite runs the same examples every time; `--hypothesis-profile=default` looks for new ones.
settings.register_profile("suite", derandomize=True)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        help="write golden texts and the outputs in README and docs anew; read the diff before committing it",
    )


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules stand in for the runtimes, here and in the children."""
    folder = tmp_path / "fakes"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])))
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one model that has an error and one that has none."""
    shutil.copy(MISH, tmp_path / "mish.onnx")
    shutil.copy(CLEAN, tmp_path / "clean.onnx")
    return tmp_path


@pytest.fixture
def repository(project: Path) -> Path:
    (project / "models").mkdir()
    for name in ("mish.onnx", "clean.onnx"):
        (project / name).rename(project / "models" / name)
    scratch.commit(project)
    return project
