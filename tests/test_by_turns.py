"""`pytest --turn K/N`: every case of the files named has its turn, all others run always."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import BY_TURNS

TESTS = Path(__file__).parent


def collected(*arguments: str) -> list[str]:
    """Cases that pytest finds in two files, of which the first takes turns."""
    files = ["test_interrupts.py", "test_branches.py"]
    plain = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", *arguments, *files],
        cwd=TESTS, env=plain, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_every_case_has_its_turn():
    every = collected()
    turns = [collected("--turn", f"{k}/3") for k in (0, 1, 5)]
    always = [case for case in every if "test_branches" in case]
    assert always
    assert len(every) > len(always)
    for turn in turns:
        assert [case for case in turn if "test_branches" in case] == always
    by_turns = [case for turn in turns for case in turn if "test_interrupts" in case]
    assert sorted(by_turns) == sorted(set(every) - set(always))


def test_files_that_take_turns_exist():
    assert [name for name in BY_TURNS if not (TESTS / name).exists()] == []
