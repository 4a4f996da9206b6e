"""`.ci/gpu`: every step runs, bounded and logged, whatever became of those before it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_emulator import unavailable
from devices import absent

SCRIPT = Path(__file__).parents[2] / ".ci" / "gpu"

# Stands for Python: a step fails, one never ends, the goal case names its kernels.
PYTHON = r"""#!/bin/bash
echo "python $*"
case "$*" in
    *getDeviceProperties*) echo "one device" ;;
    *"device bits"*) echo "gini DIFFERENT"; exit 1 ;;
    "-c import xdist") exit 1 ;;
    *--showlocals*) echo "blocking: $CUDA_LAUNCH_BLOCKING" ;;
    "-m pytest"*)
        [[ $* =~ --failures\ ([^ ]*) ]]
        printf 'test_a.py::test[1 2]\ntest_b.py::test\n' >"${BASH_REMATCH[1]}"
        exit 124 ;;
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
        lines = (folder / "summary.md").read_text().splitlines()[4:] if folder.exists() else []
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        return {row[0]: row[1] for row in rows}, done, folder

    return call


def test_a_step_that_fails_hides_no_later_one(run):
    outcomes, done, folder = run()
    assert done.returncode == 1
    assert outcomes == {
        "machine": "passed",
        "bits": "FAILED (1)",
        "warm": "passed",
        "tests": "FAILED: out of time",
        "cause": "passed",
        "growth": "passed",
        "ncu": "skipped",
        "memcheck": "skipped",
        "initcheck": "skipped",
        "racecheck": "skipped",
        "synccheck": "skipped",
        "check": "passed",
        "depths": "passed",
    }
    assert "gini DIFFERENT" in (folder / "bits.log").read_text()
    assert "gini DIFFERENT" in (folder / "summary.md").read_text()
    assert "no compute-sanitizer" in (folder / "memcheck.log").read_text()
    cause = (folder / "cause.log").read_text()  # of the test that failed first, alone
    assert "--showlocals test_a.py::test[1 2]\nblocking: 1\n" in cause
    assert (folder / "summary.md").read_text() in done.stdout


def test_the_first_line_names_what_it_ran_on(run):
    """A rehearsal on the emulator cannot be taken for a run on a GPU."""
    _, _, folder = run("machine")
    assert (folder / "summary.md").read_text().startswith("# .ci/gpu on one device\n")
    _, _, folder = run("-e", "machine")
    title = "# emulated, not a run on a GPU: .ci/gpu on one device\n"
    assert (folder / "summary.md").read_text().startswith(title)


def test_groups_end_within_ten_minutes_and_have_every_step(run):
    outcomes, _, _ = run()
    _, done, _ = run("list")
    lines = [(line[0] == " ", *line.split()[:2]) for line in done.stdout.splitlines()]
    assert [name for is_step, name, _ in lines if is_step] == list(outcomes)
    totals = [int(seconds) for is_step, _, seconds in lines if not is_step]
    assert sum(totals) == sum(int(seconds) for is_step, _, seconds in lines if is_step)
    assert max(totals) <= 570
    assert run("first")[0].keys() == {"machine", "bits"}


def test_tools_are_used_where_they_are(run):
    said = '#!/bin/bash\necho "$* --padding"\n'
    outcomes, done, folder = run("memcheck", "goal", compute_sanitizer=said, ncu=said)
    assert outcomes == dict.fromkeys(("memcheck", "growth", "ncu"), "passed")
    assert done.returncode == 0
    assert "memcheck --padding 4096" in (folder / "memcheck.log").read_text()
    assert "--tool memcheck" in (folder / "memcheck.log").read_text()
    assert "regex:^(scan_chunks|gather_rows)$" in (folder / "ncu.log").read_text()


def test_every_file_of_tests_that_it_names_is_there(run):
    _, _, folder = run("tests")
    named = re.findall(r"tests/cuda/test_\w+\.py", (folder / "tests.log").read_text())
    assert len(named) > 3
    assert [name for name in named if not (SCRIPT.parents[1] / name).exists()] == []


def test_steps_that_do_not_exist(run):
    _, done, _ = run("bitz")
    assert done.returncode == 2
    assert "no group or step 'bitz'" in done.stderr


@pytest.mark.process
@pytest.mark.emulated
def test_a_rehearsal_without_a_device(tmp_path):
    """The first group in full, with the emulator in the place of CuPy: two trees."""
    if not SCRIPT.exists():
        pytest.skip("the scripts of CI are not among what is installed")
    if reason := unavailable():
        absent("EMULATOR", reason)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(SCRIPT), "-e", "-o", str(tmp_path), "first"],
        env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    summary = (tmp_path / "summary.md").read_text()
    title = "# emulated, not a run on a GPU: .ci/gpu on an emulated device\n"
    assert summary.startswith(title)
    assert [line.split("|")[2].strip() for line in summary.splitlines()[4:]] == ["passed"] * 2
    assert (tmp_path / "bits.log").read_text().count("  equal\n") == 2
