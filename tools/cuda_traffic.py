"""Calls of the host to a device per level of a tree, counted on the emulator.

    PYTHONPATH=tests/helpers python tools/cuda_traffic.py [--rows N] [--columns D] [--depth D]
        [--bins N] [--cases NAME ...] [--work [PART ...]]

Kernels launched, copies to the device and to the host, arrays allocated (what CuPy's functions
return included), and waits for the device, as means over the levels of a tree that is grown by
histograms down to its leaves: of two classes, exact and binned, of targets, of a table with nominal
columns, and with monotonic or interaction constraints. The buffers of the workspace, which the
first two levels allocate for all, are counted separately, once a tree.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_emulator import KINDS, accesses, emulated_cuda, launches, memory, transfers
from strategies import Sample, is_regression, make_task
from twins import grown

from gputree.backends.base import Backend, Monotonic, Task
from gputree.backends.binning import fewest_rows
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.cuda.table import CudaTable
from gputree.backends.interactions import interactions_of
from gputree.estimators.growing_categories import search_of
from gputree.growth import grower


class Traffic(NamedTuple):
    """Means over the levels; `rooms`, the buffers of the workspace, are allocated once a tree."""

    launches: float
    uploads: float
    downloads: float
    waits: float
    allocations: float
    rooms: float = 0

    @classmethod
    def now(cls) -> Traffic:
        """Return the counts since the start of the process."""
        copies = (transfers[name] for name in ("to device", "to host"))
        return cls(launches.total(), *copies, transfers["waits"], memory.allocations)


class Case(NamedTuple):
    """Options of a tree that is grown."""

    criterion: str = "gini"
    exact: bool = True
    nominal: int = 0  # columns
    is_monotonic: bool = False
    is_grouped: bool = False  # columns interact in overlapping groups, and some are drawn


CASES = {
    "exact": Case(),
    "binned": Case(exact=False),
    "of targets": Case("squared_error"),
    "nominal": Case(nominal=2),
    "monotonic": Case(is_monotonic=True),
    "interactions": Case(is_grouped=True),
}

# Of a nominal column.
CATEGORIES = 12

# Levels that allocate buffers: histograms of a level are kept while the next one is counted.
OPENING = 2


def numeric_table(rows: int, columns: int, criterion: str) -> Sample:
    """Normal columns, and targets, or their signs, that depend on some columns, with noise."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, columns)).astype(np.float32)
    signal = values[:, 0] + values[:, 1] * values[:, 2] + rng.normal(size=rows)
    return Sample(
        values, signal if is_regression(criterion) else (signal > 0).astype(np.uint8), None
    )


def prepared(
    case: Case, rows: int, columns: int, depth: int, bins: int
) -> tuple[Sample, Task, Backend]:
    """Make the sample, task and backend of a case; the table is coded."""
    sample = numeric_table(rows, columns, case.criterion)
    limits: dict[str, Any] = {"max_depth": depth}
    if case.is_monotonic:
        limits["monotonic"] = Monotonic(np.resize(np.array([1, -1, 0], np.int8), columns))
    if case.is_grouped:
        limits["max_features"] = 2
    task = make_task(case.criterion, sample, exact=case.exact, **limits)
    if case.is_grouped:
        groups = zip(range(columns), range(2, columns), strict=False)
        task = replace(task, interactions=interactions_of(tuple(map(frozenset, groups))))
    categories = np.where(np.arange(columns) < case.nominal, CATEGORIES, 0)
    if case.nominal:
        task = replace(task, search=search_of("auto"))
        codes = np.floor((CATEGORIES / 2 + 2 * sample.values).clip(0, CATEGORIES - 1))
        sample = sample._replace(values=np.where(categories > 0, codes, sample.values))
    backend = CudaBackend(CudaTable(sample.values, sample.missing, categories), task, 1)
    backend.encode(bins)
    return sample, task, backend


def traffic(
    case: Case, rows: int = 3000, columns: int = 5, depth: int = 8, bins: int = 64
) -> Traffic:
    """Per level of a tree on the emulated device that is there, which the host waits for."""
    sample, task, backend = prepared(case, rows, columns, depth, bins)
    spent = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "ahead_levels", 0)
        whole = grower._grow_level

        def counted(*arguments):
            before = Traffic.now()
            result = whole(*arguments)
            if arguments[1].size:
                spent.append(np.subtract(Traffic.now(), before))
            return result

        patch.setattr(grower, "_grow_level", counted)
        grown(backend, sample, task, max_bins=bins, finish_rows=1)
    assert len(spent) == depth
    means, allocated = (
        np.mean(spent, axis=0),
        np.array(spent)[:, Traffic._fields.index("allocations")],
    )
    found = Traffic(*means.tolist())
    rooms, others = allocated[:OPENING].sum(), allocated[OPENING:].mean()
    return found._replace(allocations=float(others), rooms=float(rooms))


def traffic_ahead(
    case: Case, rows: int = 3000, columns: int = 5, depth: int = 8, bins: int = 64
) -> Traffic:
    """Sums over the levels of a tree that the device splits by itself; no buffers apart."""
    _, task, backend = prepared(case, rows, columns, depth, bins)
    root = np.array([0]), np.array([rows]), np.array([7], np.uint64)
    before = Traffic.now()
    assert len(backend.grow_ahead(*root, depth, fewest_rows(task.limits))) == depth
    return Traffic(*np.subtract(Traffic.now()[:-1], before[:-1]).tolist())


def work(case: Case, parts: list[str], **sizes: int) -> dict[str, list[int]]:
    """Work of kernels whose names contain a part, or of all, for a whole tree."""
    launches.clear()
    accesses.clear()
    traffic(case, **sizes)
    chosen = [name for name in launches if not parts or any(part in name for part in parts)]
    return {
        name: [launches[name], *(accesses[name, kind] for kind in KINDS)] for name in sorted(chosen)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, size in (("rows", 3000), ("columns", 5), ("depth", 8), ("bins", 64)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=[*CASES])
    parser.add_argument("--work", nargs="*", metavar="PART", help="parts of names of kernels")
    sizes = vars(parser.parse_args())
    cases, parts = sizes.pop("cases"), sizes.pop("work")
    fields = Traffic._fields if parts is None else ("launches", *KINDS)
    print(f"{'':24}" + "".join(f"{field:>14}" for field in fields))
    with emulated_cuda(check=parts is not None):
        for case in cases:
            workload = CASES[case]
            found = (
                {"": traffic(workload, **sizes)}
                if parts is None
                else work(workload, parts, **sizes)
            )
            for name, counts in found.items():
                numbers = "".join(f"{count:14,.{int(parts is None)}f}" for count in counts)
                print(f"{case + ' ' + name:24}{numbers}")


if __name__ == "__main__":
    main()
