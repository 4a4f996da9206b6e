"""Tests in a given order: a pytest plugin.

    PYTHONPATH=tools python -m pytest -p chosen --chosen FILE TEST_FILE ...

FILE names a test a line; others, and names that no test has, are left out.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chosen", type=Path, required=True, metavar="FILE")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = config.getoption("chosen").read_text().splitlines()
    by_name = {item.nodeid: item for item in items}
    items[:] = [by_name[name] for name in names if name in by_name]
