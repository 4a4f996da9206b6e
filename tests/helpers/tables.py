"""Tables of real things: those of GPUTREE_DATA."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import Sample

from benchmarks.data import real_table


def _real_names() -> tuple[str, ...]:
    """Names of the tables in the folder that GPUTREE_DATA names."""
    if "GPUTREE_DATA" not in os.environ:
        return ()
    folder = Path(os.environ["GPUTREE_DATA"])
    manifests = [p for d in (folder, folder.parent) if (p := d / "manifest.json").is_file()]
    found = {path.name.partition(".")[0] for path in folder.glob("*.csv*")}
    return tuple(n for n in json.loads(manifests[0].read_text("utf-8")) if n in found)


REAL = _real_names()


def each_real_table(test: Any) -> Any:
    """Run a test of a `name` for each table of GPUTREE_DATA."""
    absent = pytest.mark.skipif(not REAL, reason="GPUTREE_DATA names no folder of real tables")
    return pytest.mark.tables(absent(pytest.mark.parametrize("name", REAL or ["none"])(test)))


def real(name: str, most_rows: int) -> tuple[str, Sample]:
    """A criterion for a table of GPUTREE_DATA, and some of its rows."""
    table = real_table(name)
    rows = np.random.default_rng(0).permutation(len(table.y))[:most_rows]
    values, y = np.ascontiguousarray(table.X[rows]), table.y[rows]
    if y.dtype.kind == "f":
        return "squared_error", Sample(values, y, None)
    return "gini", Sample(values, np.unique(y, return_inverse=True)[1].astype(np.uint8), None)


def _reference_folder() -> Path | None:
    """The folder of GPUTREE_DATA, or that above it, where `reference.json` is."""
    folder = Path(os.environ.get("GPUTREE_DATA", "absent"))
    found = [d for d in (folder, folder.parent) if (d / "reference.json").is_file()]
    return found[0] if found else None


REFERENCE = _reference_folder()
needs_reference = [
    pytest.mark.tables,
    pytest.mark.skipif(
        REFERENCE is None, reason="GPUTREE_DATA names no folder with a reference.json"
    ),
]
