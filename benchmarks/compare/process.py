"""A measurement that needs a process of its own; prints one JSON object.

Run by `benchmarks.compare.uses` as ``process WHAT LIBRARY FOLDER DEPTH``; FOLDER holds X.npy
and y.npy.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.compare import libraries

TREES = {libraries.GPUTREE: libraries.gputree, libraries.SCIKIT_LEARN: libraries.scikit_learn}
WARM_ROWS = 300_000  # enough that every kernel of a large table has run


def cold(library: str, X: np.ndarray, y: np.ndarray, depth: int | None) -> dict[str, float]:
    """Seconds to import the library (NumPy is there already) and to fit once."""
    started = time.perf_counter()
    TREES[library](max_depth=depth)(X, y)
    return {"seconds": time.perf_counter() - started}


def memory(library: str, X: np.ndarray, y: np.ndarray, depth: int | None) -> dict[str, float]:
    """Peak memory of `fit` above what the process holds before it."""
    fit = TREES[library](max_depth=depth)
    fit(X[:WARM_ROWS].copy(), y[:WARM_ROWS].copy())  # loading compiled code is no part of the peak
    before = _peak_resident_bytes(reset=True)
    fit(X, y)
    return {"peak_bytes": _peak_resident_bytes() - before, "input_bytes": X.nbytes}


def _peak_resident_bytes(reset: bool = False) -> int:
    """Linux's high-water mark of resident memory; `reset` lowers it to what is resident now."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def main(what: str, library: str, folder: str, depth: str) -> None:
    X, y = (np.load(Path(folder, name)) for name in ("X.npy", "y.npy"))
    measure = {"cold": cold, "memory": memory}[what]
    print(json.dumps(measure(library, X, y, json.loads(depth))))


if __name__ == "__main__":
    main(*sys.argv[1:])
