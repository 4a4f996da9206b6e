"""Claims of a release: one version, bounds that are tested, files that a host or a tool reads."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import gputree
from gputree.base.optional import OPTIONAL, REQUIRED, versions
from gputree.compilation import decorators
from gputree.errors import MissingPackageError

ROOT = Path(gputree.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")


def requirement(name: str) -> str:
    (found,) = (line for line in PROJECT["dependencies"] if re.match(rf"{name}\b", line))
    return found


# ------------------------------------------------------------------ versions
def test_one_version():
    newest = re.search(r"^## \[(\d.+?)\](?: - (.+))?$", CHANGELOG, re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert newest[1] == gputree.__version__ == str(cited["version"])
    assert newest[2] == str(cited["date-released"])
    assert cited["license"] == PROJECT["license"]


def test_the_changelog_begins_with_one_screen():
    newest = CHANGELOG.split("\n## ")[1]
    assert len(newest.splitlines()) <= 60


def test_show_versions(capsys):
    gputree.show_versions()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == list(versions())
    found = versions()
    for name in REQUIRED:
        assert found[name] == importlib.metadata.version(name)
    assert {found[name] for name in OPTIONAL} != {"not installed"}
    assert {"gputree", "python", "system", "CUDA driver", "cupy", "CUDA devices"} <= set(found)
    assert {"threads", "compilation", "cache"} <= set(found)


def test_the_command_prints_the_same(capsys):
    gputree.show_versions()
    expected = capsys.readouterr().out
    from gputree.cli import main

    assert main(["info"]) == 0
    assert capsys.readouterr().out == expected


class DriverError(Exception):
    pass


def fake_cupy(count):
    """CuPy as far as it is read, with one kind of device."""

    def device_count():
        if isinstance(count, Exception):
            raise count
        return count

    runtime = SimpleNamespace(
        CUDARuntimeError=DriverError,
        getDeviceCount=device_count,
        getDeviceProperties=lambda number: {"name": f"Card {number}".encode()},
    )
    nvrtc = SimpleNamespace(getVersion=lambda: (13, 0))
    return SimpleNamespace(__version__="14.2", cuda=SimpleNamespace(runtime=runtime, nvrtc=nvrtc))


@pytest.mark.parametrize(
    ("count", "devices"),
    [
        (2, "cuda:0 Card 0, cuda:1 Card 1"),
        (0, "none"),
        (DriverError("no driver"), "none (no driver)"),
    ],
)
def test_devices_are_named(count, devices, monkeypatch):
    monkeypatch.setattr("gputree.base.optional.require", lambda *_: fake_cupy(count))
    monkeypatch.setattr("gputree.base.optional.driver_version", lambda: (13, 0))
    found = versions()
    assert found["CUDA driver"] == "for CUDA 13.0"
    assert (found["cupy"], found["NVRTC"], found["CUDA devices"]) == ("14.2", "13.0", devices)


def test_a_cupy_that_cannot_start_is_said(monkeypatch):
    def fail(*_):
        raise MissingPackageError("cupy cannot start: read-only") from OSError("read-only")

    monkeypatch.setattr("gputree.base.optional.require", fail)
    found = versions()
    assert found["cupy"] == "cupy cannot start: read-only"
    assert found["CUDA devices"] == "none"


def test_reported_requirements_are_those_of_the_project():
    needed = {re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]}
    assert set(REQUIRED) == needed - {"platformdirs", "tqdm"}  # they decide nothing


# -------------------------------------------------------------------- bounds
def test_numba_is_bounded_by_the_newest_release_that_was_tested():
    major, minor = decorators.NEWEST
    assert requirement("numba").endswith(f",<{major}.{minor + 1}")
    installed = importlib.metadata.version("numba").split(".")
    assert (int(installed[0]), int(installed[1])) <= decorators.NEWEST


@pytest.fixture
def checked_again():
    decorators.warn_of_newer.cache_clear()
    yield
    decorators.warn_of_newer.cache_clear()


@pytest.mark.parametrize("version", ["0.69.0", "0.69.0rc1", "0.69.0dev0+12.g1", "1.0"])
def test_a_newer_numba_is_named(version, monkeypatch, checked_again):
    monkeypatch.setattr("numba.__version__", version)
    with pytest.warns(UserWarning, match=f'up to 0.68, found {re.escape(version)}.*"numba<0.69"'):
        decorators.warn_of_newer()
    decorators.warn_of_newer()  # once


@pytest.mark.parametrize("version", ["0.61.2", "0.68.0rc1", "0.68.9", "unknown"])
def test_other_numbas_are_not(version, monkeypatch, checked_again):
    monkeypatch.setattr("numba.__version__", version)
    decorators.warn_of_newer()


def test_the_oldest_versions_include_what_is_bounded_above():
    lines = subprocess.run(
        [sys.executable, ROOT / ".ci" / "oldest.py"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    floors = {line.partition("==")[0]: line.partition("==")[2] for line in lines}
    assert {re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]} <= set(floors)
    assert requirement("numba").startswith(f"numba>={floors['numba']},")


def test_pythons_that_are_claimed_are_run():
    claimed = set(re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
    wheel = yaml.safe_load((ROOT / ".github/workflows/wheel.yml").read_text("utf-8"))
    assert set(wheel["jobs"]["build"]["strategy"]["matrix"]["python"]) == claimed
    assert PROJECT["requires-python"] == f">={min(claimed, key=lambda v: int(v[2:]))}"


def test_one_operating_system_is_claimed():
    systems = [line for line in PROJECT["classifiers"] if line.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


# --------------------------------------------------------------------- files
@pytest.mark.parametrize(
    "path",
    [
        *sorted((ROOT / ".github").rglob("*.yml")),
        *(ROOT / name for name in (".pre-commit-config.yaml", ".readthedocs.yaml")),
    ],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_yaml_is_read(path):
    assert yaml.safe_load(path.read_text("utf-8"))


def test_workflows_run_programs_of_the_tree():
    found = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
            found |= {step["run"].split()[0] for step in job["steps"] if "run" in step}
    assert found == {".ci/run", ".ci/package"}
    assert all(os.access(ROOT / name, os.X_OK) for name in found)


def test_reports_contain_versions():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug_report.yml").read_text("utf-8"))
    (field,) = (part for part in form["body"] if part.get("id") == "versions")
    assert "gputree.show_versions()" in field["attributes"]["description"]
    assert field["validations"]["required"]


def test_hooks_check_as_the_stages_do():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = {hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]}
    assert entries == {
        "ruff check --force-exclude",
        "ruff format --force-exclude",
        "mypy gputree",
    }


def test_pages_are_built_from_the_extra():
    settings = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text("utf-8"))
    (install,) = settings["python"]["install"]
    assert set(install["extra_requirements"]) <= set(PROJECT["optional-dependencies"])
    assert (ROOT / settings["sphinx"]["configuration"]).is_file()


def test_readme_has_two_blocks_for_a_shell():
    """`.ci/run` runs them verbatim: a new user's, and the tests."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 2
    assert "gputree train" in blocks[0]
    assert "pytest" in blocks[1]
