"""`.ci/gpu`: every step runs, bounded and logged, whatever became of those before it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "gpu"

# Stands for Python: a step fails, one never ends, the goal case names its kernels.
PYTHON = r"""#!/bin/bash
echo "python $*"
case "$*" in
    *"device bits"*) echo "gini DIFFERENT"; exit 1 ;;
    "-c import xdist") exit 1 ;;
    "-m pytest"*) exit 124 ;;
    *--longest*) printf 'scan_chunks\ngather_rows\n' >"${*: -3:1}" ;;
esac
"""


@pytest.fixture
def run(tmp_path):
    """``run(*arguments)``: outcomes by step, the exit status, and the folder of results."""
    if not SCRIPT.exists():
        pytest.skip("the scripts of CI are not among what is installed")
    tools = tmp_path / "tools"
    tools.mkdir()

    def add_tool(name: str, text: str) -> None:
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)

    add_tool("python", PYTHON)

    def call(*arguments: str, **more: str):
        for name, text in more.items():
            add_tool(name.replace("_", "-"), text)
        folder = tmp_path / "results"
        path = f"{tools}:/usr/bin:/bin"
        done = subprocess.run(
            [str(SCRIPT), "-o", str(folder), *arguments],
            env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        lines = (folder / "summary.md").read_text().splitlines()[2:] if folder.exists() else []
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        return {row[0]: row[1] for row in rows}, done, folder

    return call


def test_a_step_that_fails_hides_no_later_one(run):
    outcomes, done, folder = run()
    assert done.returncode == 1
    assert outcomes == {
        "machine": "passed",
        "bits": "FAILED (1)",
        "tests": "FAILED: out of time",
        "memcheck": "skipped",
        "initcheck": "skipped",
        "goal": "passed",
        "ncu": "skipped",
        "cases": "passed",
        "racecheck": "skipped",
        "synccheck": "skipped",
    }
    assert "gini DIFFERENT" in (folder / "bits.log").read_text()
    assert "gini DIFFERENT" in (folder / "summary.md").read_text()
    assert "no compute-sanitizer" in (folder / "memcheck.log").read_text()
    assert (folder / "summary.md").read_text() in done.stdout


def test_tools_are_used_where_they_are(run):
    said = '#!/bin/bash\necho "$*"\n'
    outcomes, done, folder = run("memcheck", "goal", "ncu", compute_sanitizer=said, ncu=said)
    assert outcomes == dict.fromkeys(("memcheck", "goal", "ncu"), "passed")
    assert done.returncode == 0
    assert "--tool memcheck" in (folder / "memcheck.log").read_text()
    assert "regex:^(scan_chunks|gather_rows)$" in (folder / "ncu.log").read_text()


def test_every_file_of_tests_that_it_names_is_there():
    if not SCRIPT.exists():
        pytest.skip("the scripts of CI are not among what is installed")
    named = re.findall(r"tests/cuda/test_\w+\.py", SCRIPT.read_text("utf-8"))
    assert len(named) > 3
    assert [name for name in named if not (SCRIPT.parents[1] / name).exists()] == []


def test_steps_that_do_not_exist(run):
    _, done, _ = run("bitz")
    assert done.returncode == 2
    assert "no step bitz: machine bits" in done.stderr
