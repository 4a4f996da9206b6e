"""What a comparison says: one row a library and table, as markdown or JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from benchmarks.compare.timing import THREADS

LIBRARIES = ("gputree-learn", "scikit-learn", "lightgbm", "xgboost", "numpy", "numba")
COLUMNS = ("case", "table", "library", "best", "median", "gputree is", "quality", "notes")


@dataclass(frozen=True)
class Row:
    """One library on one table.

    `ratio` is the library's best over gputree's best: above 1, gputree is faster (or smaller).
    `unit` is "s" for seconds or "x" for multiples of the input's bytes.
    """

    case: str
    table: str
    library: str
    best: float
    median: float
    ratio: float | None = None
    quality: str = ""
    notes: str = ""
    unit: str = "s"

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x"
        best, median = (quantity(value, self.unit) for value in (self.best, self.median))
        return (self.case, self.table, self.library, best, median, ratio, self.quality, self.notes)


def quantity(value: float, unit: str) -> str:
    if unit == "s" and value < 0.1:
        return f"{value * 1e3:.2f} ms"
    return f"{value:.2f} {unit}" if unit == "s" else f"{value:.2f}{unit}"


def table_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def header() -> str:
    return "\n".join([table_line(COLUMNS), table_line("---" for _ in COLUMNS)])


def machine() -> dict[str, str]:
    """Versions and processors: what the figures depend on besides the code."""
    versions = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    processors = {"processors": str(os.cpu_count()), "threads": str(THREADS)}
    return versions | processors | {"machine": platform.machine(), "system": platform.system()}


def machine_line() -> str:
    return ", ".join(f"{name} {value}" for name, value in machine().items())


def as_markdown(rows: Iterable[Row]) -> str:
    lines = [header(), *(table_line(row.cells()) for row in rows), "", machine_line()]
    return "\n".join(lines) + "\n"


def as_json(rows: Iterable[Row]) -> str:
    content = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    return json.dumps(content, indent=1) + "\n"
