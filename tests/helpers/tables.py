"""Tables of real things: those shipped with the package, and those of GPUTREE_DATA."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
from strategies import Sample

from benchmarks.data import real_table
from gputree import datasets

TEXTBOOK = tuple(
    name.removeprefix("load_") for name in sorted(datasets.__all__) if name.startswith("load_")
)


def _real_names() -> tuple[str, ...]:
    """Names of the tables in the folder that GPUTREE_DATA names."""
    if "GPUTREE_DATA" not in os.environ:
        return ()
    folder = Path(os.environ["GPUTREE_DATA"])
    manifests = [p for d in (folder, folder.parent) if (p := d / "manifest.json").is_file()]
    found = {path.name.partition(".")[0] for path in folder.glob("*.csv*")}
    return tuple(n for n in json.loads(manifests[0].read_text("utf-8")) if n in found)


REAL = _real_names()


def textbook(name: str, weighted: bool) -> tuple[str, Sample]:
    """A criterion for a table of the package, and its rows; categories as codes."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    columns = [_numbers(X[:, f]) for f in range(X.shape[1])]
    weight = np.random.default_rng(0).choice([0.25, 1.0, 3.0], len(y)) if weighted else None
    return _sample(np.column_stack(columns), y, weight)


def _numbers(cells: np.ndarray) -> np.ndarray:
    """Cells as numbers: those of categories are their places in order."""
    if cells.dtype.kind != "O":
        return cells.astype(np.float64)
    missing = np.array([cell != cell or cell is None for cell in cells])
    codes = np.full(cells.size, np.nan)
    codes[~missing] = np.unique(cells[~missing].astype(str), return_inverse=True)[1]
    return codes


def real(name: str, most_rows: int) -> tuple[str, Sample]:
    """A criterion for a table of GPUTREE_DATA, and some of its rows."""
    table = real_table(name)
    rows = np.random.default_rng(0).permutation(len(table.y))[:most_rows]
    return _sample(table.X[rows], table.y[rows], None)


def _sample(values: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[str, Sample]:
    values = np.ascontiguousarray(values)
    if y.dtype.kind == "f":
        return "squared_error", Sample(values, y, weight)
    classes = np.unique(y, return_inverse=True)[1].astype(np.uint8)
    return "gini" if weight is None else "entropy", Sample(values, classes, weight)
