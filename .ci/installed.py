"""What an installed gputree must do without its source tree: ``installed.py FOLDER``.

FOLDER has the wheel and the source distribution that `.ci/package` has built. Exits with an error
if one of them lacks a file, or the package that this interpreter imports does not work.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata, resources
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = Path(sys.executable).with_name("gputree")

# Top-level files and folders that the tests read, in addition to the package.
SOURCES = ("tests", "tools", "benchmarks", "docs", ".ci", ".github", "pyproject.toml", "README.md")


def package_files(root: Path) -> set[str]:
    """Paths of the package in a source tree, without what Python or numba has left there."""
    return {
        path.relative_to(root).as_posix()
        for path in (root / "gputree").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def check_files(folder: Path) -> None:
    """Compare the content of wheel and source distribution with the source tree."""
    expected = package_files(ROOT)
    (wheel,) = folder.glob("gputree_learn-*.whl")
    with zipfile.ZipFile(wheel) as file:
        found = {name for name in file.namelist() if ".dist-info/" not in name}
    assert found == expected, f"{wheel.name}: {sorted(found ^ expected)}"
    assert {".py", ".cu", ".cuh", ".csv", ".json", ".typed"} <= {Path(n).suffix for n in found}
    (sdist,) = folder.glob("gputree_learn-*.tar.gz")
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert expected <= names, f"{sdist.name} lacks {sorted(expected - names)}"
    absent = [
        name for name in SOURCES if not any(f"{found}/".startswith(f"{name}/") for found in names)
    ]
    assert not absent, f"{sdist.name} lacks {absent}"


def run(*words: object) -> str:
    """Output of the installed command."""
    result = subprocess.run(
        [SCRIPT, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert result.returncode == 0, f"gputree {words}: {result.stderr}"
    return result.stdout


def check_package() -> None:
    """Import the installed package, grow, save, show and predict."""
    import gputree
    from gputree.datasets import load_golf

    assert Path(gputree.__file__).is_relative_to(sys.prefix), gputree.__file__
    assert gputree.__version__ == metadata.version("gputree-learn")
    golf = load_golf()
    tree = gputree.C45Classifier().fit(golf.data, golf.target)
    assert "outlook" in gputree.export_text(tree, feature_names=golf.feature_names)
    assert gputree.json_schema()["type"] == "object"
    table = resources.files(gputree) / "datasets" / "data" / "iris.csv"
    assert run("--version").split()[-1] == gputree.__version__
    run("train", table, "--target", "species", "-o", "iris.gputree")
    assert "petal" in run("show", "iris.gputree")
    run("predict", "iris.gputree", table, "-o", "predictions.csv")
    assert len(Path("predictions.csv").read_text("utf-8").splitlines()) == 151
    print(run("info"))


if __name__ == "__main__":
    check_files(Path(sys.argv[1]))
    check_package()
