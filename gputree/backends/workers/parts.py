"""Parts of a table on the workers of a cluster: pure tasks on futures, and their sums.

    part        values, codes, statistics of its rows; made once, never changed
    entries     the order of its rows: those of a level are made of those of the level before
    task        function(part, entries, ...), then a tree of sums

Nothing else is known of a table. Of a worker that is lost the scheduler makes both again, on
others, from the tasks that made them, and nobody else notices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Splits
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.layout import Rows, Table
from gputree.backends.cpu.table import CpuTable
from gputree.backends.partitioned.finish import backend_of
from gputree.backends.partitioned.reduction import Count, Sum
from gputree.backends.workers.counters import Counter, CpuPart, Head, counter_on
from gputree.backends.workers.tasks import Tasks
from gputree.compilation.arrays import writable
from gputree.dtypes import ROW


class Part(NamedTuple):
    """Rows that lie together, coded, with their statistics."""

    table: Table
    rows: Rows


class WorkerParts:
    """`gputree.backends.partitioned.reduction.Reducer` of parts on workers.

    Parameters
    ----------
    tasks : Tasks
    head : future of a CpuBackend
        Over a coded table without rows: what all parts share.
    choose : callable
        The device that a worker counts on, "cpu" or "cuda"; it is called there.
    parts : list of futures of Part
    sizes : int64 array of shape (parts,)
        Rows of each.
    """

    def __init__(
        self,
        tasks: Tasks,
        head: Any,
        choose: Callable[[], str],
        parts: list[Any],
        sizes: Int64s,
    ) -> None:
        self.tasks, self.head, self.parts, self.sizes = tasks, head, parts, sizes
        self.counted_on = tasks.submit(Head, head, choose)
        self.entries = tasks.map(all_entries, sizes.tolist())

    def map(
        self, function: Callable[..., Any], first: NDArray, last: NDArray, *shared: Any
    ) -> list[Any]:
        """Futures of what ``function(backend, first, last, *shared)`` finds in parts with rows.

        Of `shared` all parts are given the same.
        """
        given = self.tasks.share(shared)
        own = np.flatnonzero((first < last).any(axis=0)).tolist()
        return self.tasks.map(
            apply, *self.of_parts(own, first, last), [function] * len(own), [given] * len(own)
        )

    def of_parts(self, own: list[int], first: NDArray, last: NDArray) -> list[list[Any]]:
        """What tasks of some parts are given: what all share, the parts, and places of nodes."""
        return [
            [self.counted_on] * len(own),
            [self.parts[p] for p in own],
            [self.entries[p] for p in own],
            [first[:, p] for p in own],
            [last[:, p] for p in own],
        ]

    def map_combine(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        first: NDArray,
        last: NDArray,
        *shared: Any,
    ) -> Any:
        """What `combine` makes of what `map` finds, a few results at a time; or None."""
        found = self.map(function, first, last, *shared)
        return self.tasks.tree(combine, found) if found else None

    def map_reduce(
        self, count: Count, sums: Sequence[Sum], first: NDArray, last: NDArray, *shared: Any
    ) -> None:
        """See `gputree.backends.partitioned.reduction.Reducer`."""
        shapes = [(own.array.shape, own.array.dtype.str, own.how) for own in sums]
        found = self.map_combine(counted, combined, first, last, count, shapes, *shared)
        for own, other in zip(sums, found or [], strict=found is not None):
            own.combine(other.array)

    def partition(
        self, first: NDArray, last: NDArray, splits: Splits
    ) -> tuple[NDArray, NDArray[np.float64], NDArray[np.float64]]:
        """Partition the entries of nodes in all parts.

        Returns
        -------
        middle : int64 array of shape (m, parts)
            The first of each second child's entries.
        low, high : float64 arrays of shape (m,)
            The values beside each cut.
        """
        given = self.tasks.share(splits)
        middle = first.copy()
        low, high = np.full(len(first), -np.inf), np.full(len(first), np.inf)
        own = np.flatnonzero((first < last).any(axis=0)).tolist()
        ordered = self.tasks.map(partitioned, *self.of_parts(own, first, last), [given] * len(own))
        for p, entries in zip(own, ordered, strict=True):
            self.entries[p] = entries
        found = self.tasks.map(told, ordered)
        for p, (own_middle, own_low, own_high) in zip(own, self.tasks.fetch(found), strict=True):
            middle[:, p] = own_middle
            np.maximum(low, own_low, out=low)
            np.minimum(high, own_high, out=high)
        return middle, low, high


# ------------------------------------------------------------------------- tasks
class Ordered(NamedTuple):
    """The entries of a part, and of the nodes partitioned last: see `WorkerParts.partition`."""

    entries: NDArray[np.int32]
    middle: Int64s
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def all_entries(n: int) -> Ordered:
    """The rows of a part in their order."""
    none = np.empty(0)
    return Ordered(np.arange(n, dtype=ROW), none.astype(np.int64), none, none)


def told(own: Ordered) -> tuple[Int64s, NDArray[np.float64], NDArray[np.float64]]:
    """What partitioning tells of nodes."""
    return own.middle, own.low, own.high


def opened(head: Head, part: Part, own: Ordered) -> Counter:
    """What counts a part here; nothing that it is made of is changed by counting."""
    values, codes = writable(part.table.values), writable(part.table.codes)
    columns = [None if column is None else writable(column) for column in part.rows]
    shared = own_arrays(head.backend)
    host = backend_of(shared, values, codes, columns, writable(own.entries), CpuPart)
    return counter_on(head.choose(), host, part.table.codes, own.entries)


def own_arrays(head: CpuBackend) -> CpuBackend:
    """What parts share, with arrays as kernels are compiled for them."""
    table = Table(*(writable(field) for field in head.table))
    held = CpuTable(table.values, table.missing, table.categories)
    task, monotonic = head.task, head.task.limits.monotonic
    if monotonic is not None:
        own = monotonic._replace(signs=writable(monotonic.signs))
        task = replace(task, limits=task.limits._replace(monotonic=own))
    made = CpuBackend(held, task, head.n_threads, np.empty(0, np.int64))
    made.table = table
    return made


def apply(
    head: Head,
    part: Part,
    own: Ordered,
    first: Int64s,
    last: Int64s,
    function: Callable[..., Any],
    shared: tuple[Any, ...],
) -> Any:
    """What a function finds in one part."""
    return function(opened(head, part, own), writable(first), writable(last), *shared)


def counted(
    part: Counter,
    first: Int64s,
    last: Int64s,
    count: Count,
    shapes: list[tuple[Any, str, Any]],
    *shared: Any,
) -> list[Sum]:
    """What one part counts."""
    sums = [Sum(start_of(shape, dtype, how), how) for shape, dtype, how in shapes]
    count(part, [own.array for own in sums], first, last, *shared)
    return sums


def start_of(shape: tuple[int, ...], dtype: str, how: str) -> NDArray:
    """What changes no sum."""
    start = {"add": 0, "minimum": np.inf, "maximum": -np.inf}[how]
    return np.full(shape, start, dtype)


def combined(found: list[list[Sum]]) -> list[Sum]:
    """The sums of some parts."""
    total = [own._replace(array=own.array.copy()) for own in found[0]]
    for others in found[1:]:
        for own, other in zip(total, others, strict=True):
            own.combine(other.array)
    return total


def partitioned(
    head: Head, part: Part, own: Ordered, first: Int64s, last: Int64s, splits: Splits
) -> Ordered:
    """The entries of a part with nodes partitioned."""
    splits = Splits(*(writable(field) for field in splits))
    middle, low, high = first.copy(), np.full(first.size, -np.inf), np.full(first.size, np.inf)
    at = np.flatnonzero(first < last)
    entries, middle[at], low[at], high[at] = opened(head, part, own).reorder(
        first[at], last[at], splits.take(at)
    )
    return Ordered(entries, middle, low, high)
