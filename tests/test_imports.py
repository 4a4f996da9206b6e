"""What `import gputree` brings along: seen from a fresh interpreter."""

import subprocess
import sys

import pytest

LAZY = ["cupy", "dask", "distributed", "matplotlib", "pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("module", ["gputree", "gputree.cli"])
def test_import_is_light(module):
    # scikit-learn itself imports some of them where they are installed
    assert imported_by(module) <= imported_by("sklearn.tree")


def imported_by(module):
    code = f"import sys, {module}; print(*{set(LAZY)} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(result.stdout.split())
