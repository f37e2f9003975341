"""Options of the test suite."""

import pytest
from hypothesis import settings

# The suite runs the same examples every time; `--hypothesis-profile=default` looks for new ones.
settings.register_profile("suite", derandomize=True)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        help="write golden texts and the outputs in README and docs anew; read the diff before committing it",
    )
