"""What the estimate for many rows and workers rests on, measured one by one.

    python -m benchmarks.dask_constants

    count       a value that is counted into histograms
    score       a statistic (bin x class) of a histogram that is scored
    sum         arrays that are added up
    scheduler   a trivial task of trees of them: of the process of scheduler and client, whose two
                workers do it
    transfer    between two worker processes of this machine

Processor seconds, so that other work on the machine does not show; those of transfers are of a
clock, and do. Medians of five, with the least and the greatest.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from distributed import Client, wait

from benchmarks.dask_cluster import cluster
from gputree.backends import new_backend
from gputree.backends.base import Limits, Rows, Task
from gputree.backends.cpu.table import CpuTable
from gputree.backends.sharded import tuning
from gputree.backends.sharded.histograms import add_up
from gputree.backends.sharded.tasks import Tasks
from gputree.criteria import Gini

NO_LIMITS = Limits(1 << 20, 2, 1, 0, -np.inf, 1 << 20, False)


def measured(name: str, unit: str, work: Callable[[], float], factor: float) -> None:
    """Print the figure that `work` returns, in units of ``1 / factor``."""
    work()
    found = sorted(work() * factor for _ in range(5))
    print(f"{name:44} {found[2]:9.3g} {unit}   ({found[0]:.3g} to {found[-1]:.3g})", flush=True)


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    start = clock()
    work()
    return clock() - start


# ------------------------------------------------------------------- in one process
def counting(rows: int, columns: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), np.float32)
    y = rng.integers(0, classes, rows).astype(np.uint8)
    task = Task(Gini(classes, 1.0), NO_LIMITS, Rows(y, None, None, None), False)
    backend = new_backend(CpuTable(X, np.zeros(columns, np.bool_)), task, 1, None)
    backend.encode(256)
    rng.shuffle(backend.entries)  # as in deep nodes
    begin, end = np.zeros(1, np.int64), np.array([rows])
    slots, cells = np.zeros(1, np.int64), backend.new_histograms(1)

    def count() -> float:
        cells[:] = 0
        return seconds(lambda: backend.histogram(begin, end, cells, slots)) / (rows * columns)

    name = f"{columns} columns, {classes} classes"
    measured(f"count   {name}", "ns a value", count, 1e9)
    measured(
        f"score   {name}", "ns a statistic",
        lambda: seconds(lambda: backend.score(cells, slots)) / cells.size, 1e9,
    )  # fmt: skip


def adding() -> None:
    pieces = [np.ones(1 << 22, np.int64) for _ in range(8)]
    size = sum(piece.nbytes for piece in pieces)
    measured(
        "sum     8 arrays of 32 MiB", "GB/s", lambda: size / seconds(lambda: add_up(pieces)), 1e-9
    )


# --------------------------------------------------------------------- in a cluster
def one(number: int) -> int:
    return number


def total(numbers: list[int]) -> int:
    return sum(numbers)


def scheduling(client: Client, leaves: int) -> None:
    tasks = leaves + sum(leaves // tuning.TUNING.fan_in**depth for depth in range(1, 5))

    def tree() -> float:
        return seconds(lambda: Tasks(client).combine(one, total, list(range(leaves)))) / tasks

    measured(f"scheduler   a tree over {leaves:,} tasks", "ms a task", tree, 1e3)


def transferring(client: Client, size: int) -> None:
    here, there = list(client.scheduler_info()["workers"])

    def move() -> float:
        array = client.submit(np.ones, size // 8, pure=False, workers=[here])
        wait(array)
        moved = client.submit(len, array, pure=False, workers=[there])
        return size / seconds(lambda: wait(moved), time.perf_counter)

    measured(f"transfer    {size >> 20} MiB between workers", "GB/s", move, 1e-9)


def main() -> None:
    for columns, classes in ((28, 2), (100, 2), (500, 2), (500, 10)):
        counting(500_000 if columns <= 100 else 100_000, columns, classes)
    adding()
    with cluster(2) as (_, client):
        for leaves in (tuning.TUNING.fan_in**3, tuning.TUNING.fan_in**4):
            scheduling(client, leaves)
        for size in (1 << 20, 1 << 24, 1 << 27):
            transferring(client, size)


if __name__ == "__main__":
    main()
