"""Subtrees of small nodes whose rows lie in parts: gathered some nodes at a time, grown whole.

What is asked of finished nodes later, sums and categories, is kept; their rows are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s, Subtrees, Task
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.table import CpuTable
from gputree.backends.partitioned.ranges import join_ranges

# Of a row that is gathered: entries, statistics and keys of sorted columns, beside its values.
ROW_BYTES = 64

Kind = TypeVar("Kind", bound=CpuBackend)


class Finished:
    """Sums and categories of nodes of finished subtrees, by their ranges among all entries."""

    def __init__(self) -> None:
        self._begin: list[Int64s] = []
        self._sums: list[Int64s] = []
        self._codes: dict[tuple[int, int], NDArray[np.uint32]] = {}
        self._joined: tuple[Int64s, Int64s] | None = None

    def add(self, subtrees: Subtrees, backend: CpuBackend, shift: Int64s) -> None:
        """Keep what is asked of the nodes of subtrees that lie `shift` behind their rows' places.

        `backend` has grown them, and their rows still.
        """
        leaf = (subtrees.first_child < 0) & _is_reached(subtrees)
        begin, end = subtrees.begin[leaf], subtrees.end[leaf]
        self._begin.append(begin + shift[leaf])
        self._sums.append(backend.node_statistics(begin, end))
        self._joined = None
        split = np.flatnonzero(subtrees.first_child >= 0)
        nominal = backend.table.categories[subtrees.feature[split]] > 0
        child = (subtrees.first_child[split[nominal]][:, None] + np.arange(2)).ravel()
        self._keep(backend, subtrees, child, subtrees.feature[split[nominal]].repeat(2), shift)
        if not backend.table.categories.any():  # cuts of two categories at most are numbers
            split = split[subtrees.threshold[split] == np.inf]
            coded = [_holds_codes(backend, subtrees, int(j)) for j in split]
            split = split[np.array(coded, np.bool_)]
            self._keep(backend, subtrees, split, subtrees.feature[split], shift)

    def take(self, other: Finished) -> None:
        """Keep what another one keeps, of other nodes."""
        self._begin += other._begin
        self._sums += other._sums
        self._codes.update(other._codes)
        self._joined = None

    def _keep(
        self,
        backend: CpuBackend,
        subtrees: Subtrees,
        node: Int64s,
        feature: NDArray[np.int32],
        shift: Int64s,
    ) -> None:
        """Keep the categories of a column that each of some nodes holds."""
        begin, end = subtrees.begin[node], subtrees.end[node]
        counts, code = backend.categories(begin, end, feature)
        ranges = zip((begin + shift[node]).tolist(), (end + shift[node]).tolist(), strict=True)
        for place, own in zip(ranges, np.split(code, np.cumsum(counts))[:-1], strict=True):
            self._codes[place] = own.copy()

    def statistics(self, begin: Int64s, end: Int64s, width: int) -> tuple[NDArray, Int64s]:
        """Which of m nodes are finished, and the sums of those, of shape (m, width)."""
        starts, upto = self._leaves(width)
        first, last = np.searchsorted(starts, begin), np.searchsorted(starts, end)
        found = first < starts.size
        found[found] = starts[first[found]] == begin[found]
        return found, upto[last] - upto[first]

    def categories(self, begin: int, end: int) -> NDArray[np.uint32] | None:
        """Categories of the column that the parent of a node tests; None if none is known."""
        return self._codes.get((begin, end))

    def _leaves(self, width: int) -> tuple[Int64s, Int64s]:
        """Where leaves begin, ascending, and the sums of all before each of them."""
        if self._joined is None:
            begin = np.concatenate([np.empty(0, np.int64), *self._begin])
            sums = np.concatenate([np.empty((0, width), np.int64), *self._sums])
            order = np.argsort(begin)
            upto = np.zeros((begin.size + 1, width), np.int64)
            np.cumsum(sums[order], axis=0, out=upto[1:])
            self._joined = begin[order], upto
        return self._joined


def _is_reached(subtrees: Subtrees) -> NDArray[np.bool_]:
    """Nodes that are roots or children: a device leaves others behind, which stand twice."""
    reached = np.zeros(subtrees.first_child.size, np.bool_)
    child = subtrees.first_child[subtrees.first_child >= 0]
    reached[subtrees.root] = reached[child] = reached[child + 1] = True
    return reached


def _holds_codes(backend: CpuBackend, subtrees: Subtrees, j: int) -> bool:
    """Whether the column that node j tests holds nothing but 0, 1 and missing values there."""
    rows = backend.entries[subtrees.begin[j] : subtrees.end[j]]
    values = backend.table.values[rows, subtrees.feature[j]]
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


class Gatherer:
    """Gathers the rows of nodes from all parts.

    Parameters
    ----------
    head : CpuBackend
        Over a table without rows, coded if the parts are.
    parts : list of CpuBackend
    most_bytes : int
        Of the rows that are gathered at once.
    """

    def __init__(self, head: CpuBackend, parts: list[CpuBackend], most_bytes: int) -> None:
        self.head, self.parts = head, parts
        row = head.table.values.dtype.itemsize + 1 + 8  # a value, its code, a sorted key
        d = head.table.values.shape[1]
        self.most_rows = max(most_bytes // (d * row + ROW_BYTES), 1)

    def groups(self, sizes: Int64s) -> Iterator[slice]:
        """Nodes whose rows are held at once."""
        first = rows = 0
        for j, n in enumerate(sizes.tolist()):
            if rows and rows + n > self.most_rows:
                yield slice(first, j)
                first, rows = j, 0
            rows += n
        if first < sizes.size:
            yield slice(first, sizes.size)

    def gather(self, first: NDArray, last: NDArray) -> CpuBackend:
        """Nodes whose entries are ``first .. last``, (m, parts), as a table of their own.

        Its entries are those of the nodes, one after another, in the order that they have.
        """
        sizes = last - first
        n = int(sizes.sum())
        places = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        bare, task = self.head.table, self.head.task
        coded = bare.codes.shape[0] > 0 or any(part.table.codes.size for part in self.parts)
        values = np.empty((n, bare.values.shape[1]), bare.values.dtype)
        codes = np.empty((n if coded else 0, values.shape[1]), bare.codes.dtype)
        own = [_room(column, n) for column in _columns(task)]
        for p, part in enumerate(self.parts):
            places_p = join_ranges(places[:, p], places[:, p] + sizes[:, p])
            if places_p.size == 0:
                continue
            rows = part.entries[join_ranges(first[:, p], last[:, p])]
            ascending = np.argsort(rows, kind="stable")  # a file is read from front to back
            rows, places_p = rows[ascending], places_p[ascending]
            values[places_p] = part.table.values[rows]
            if coded:
                codes[places_p] = part.table.codes[rows]
            for out, column in zip(own, _columns(part.task), strict=True):
                if out is not None and column is not None:
                    out[places_p] = column[rows]
        return backend_of(self.head, values, codes, own)


def backend_of(
    head: CpuBackend,
    values: NDArray,
    codes: NDArray,
    columns: list[NDArray | None],
    entries: NDArray[np.int32] | None = None,
    kind: type[Kind] = CpuBackend,  # type: ignore[assignment]
) -> Kind:
    """A backend of rows on their own, whose statistics are `columns`; `head` has all else.

    `entries` are not copied; None for all rows.
    """
    target, weight, square, rest = columns
    assert target is not None
    task = replace(head.task, target=target, weight=weight, square=square, square_rest=rest)
    table: Table = head.table._replace(values=values, codes=codes)
    held = CpuTable(values, table.missing, table.categories)
    none = np.empty(0, np.int64)
    backend = kind(held, task, head.n_threads, None if entries is None else none)
    backend.table = table
    if entries is not None:
        backend.entries = entries
    return backend


def grow_gathered(
    backend: CpuBackend,
    finished: Finished,
    begin: Int64s,
    sizes: Int64s,
    depth: Int64s,
    keys: NDArray[np.uint64],
    bounds: Bounds | None,
) -> Subtrees:
    """The subtrees of nodes that `backend` holds the rows of, one node after another.

    Their places are among all entries, where each node lies from `begin` on; what is asked of
    them later is kept in `finished`.
    """
    last = np.cumsum(sizes)
    first = last - sizes
    subtrees = backend.finish(first, last, depth, keys, bounds)
    shift = (begin - first)[owners(first, subtrees.begin)]
    finished.add(subtrees, backend, shift)
    return subtrees._replace(begin=subtrees.begin + shift, end=subtrees.end + shift)


def join_subtrees(groups: Iterable[Subtrees]) -> Subtrees:
    """Subtrees of some nodes after those of others."""
    done: list[Subtrees] = []
    free = 0
    for subtrees in groups:
        child = subtrees.first_child
        root, child = subtrees.root + free, np.where(child < 0, -1, child + free)
        done.append(subtrees._replace(root=root, first_child=child))
        free += child.size
    return Subtrees(*(np.concatenate(field) for field in zip(*done, strict=True)))


def split_pairs(pairs: NDArray[np.int64], nodes: int) -> list[NDArray[np.uint32]]:
    """Of ascending pairs of a node and a category, (2, k), the categories of each node."""
    bounds = np.searchsorted(pairs[0], np.arange(nodes + 1))
    return [pairs[1, a:b].astype(np.uint32) for a, b in zip(bounds, bounds[1:], strict=False)]


def _columns(task: Task) -> list[NDArray | None]:
    return [task.target, task.weight, task.square, task.square_rest]


def _room(column: NDArray | None, n: int) -> NDArray | None:
    return None if column is None else np.empty(n, column.dtype)


def owners(begin: Int64s, places: Int64s) -> Int64s:
    """The node, of those beginning at `begin` ascending, that each place lies in."""
    found: Int64s = np.searchsorted(begin, places, side="right") - 1
    return found
