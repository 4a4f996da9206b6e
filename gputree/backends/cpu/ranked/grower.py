"""Growth of a tree over ranked lists, in threads: large nodes by column, small ones whole."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import child_key
from gputree.backends.base import Limits
from gputree.backends.cpu.cut import drawn_columns
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.partition import node_categories
from gputree.backends.cpu.ranked.counts import MOST_CODES, Codes, code_column
from gputree.backends.cpu.ranked.drawn import TableValues
from gputree.backends.cpu.ranked.formulas import no_cut, precedes
from gputree.backends.cpu.ranked.lists import MOST_RANKS, presort
from gputree.backends.cpu.ranked.nodes import (
    Ranked,
    grow_subtree,
    may_split,
    measure_node,
    new_nodes,
    open_large,
    partition_lists,
    search_node,
    split_node,
)
from gputree.backends.interactions import Interactions
from gputree.backends.lists import NodeRows, RankedNodes
from gputree.base.dtypes import Int64s
from gputree.base.memory import require_memory
from gputree.base.threads import even_spans, run
from gputree.compilation.tiers import is_cheaper_without
from gputree.criteria.multi_output import OF_SUMS
from gputree.errors import InputError

# Rows of a node that is searched by several threads, at least; larger ones are so in any tree that
# takes long, for a fit can be interrupted between calls.
FEWEST_SHARED, MOST_WHOLE = 1 << 10, 1 << 14
# Distinct values of columns that are counted, missing ones included, at most.
MOST_COUNTED = MOST_CODES
# Number of subtrees for each thread, at least.
SUBTREES_PER_THREAD = 4
# Kernels of large nodes. While they are not compiled, it can be cheaper to grow the whole tree as
# one subtree, by one thread and in one call, which cannot be interrupted: so only if that takes
# `MOST_SECONDS` at most, by about `SECONDS` for each value, level and target.
LARGE_KERNELS = (measure_node, open_large, search_node, split_node, partition_lists)
SECONDS, MOST_SECONDS = 4e-9, 2.0


class Open(NamedTuple):
    """A node that may be split: its number, range, depth and key, and its set of columns."""

    number: int
    s: int
    t: int
    depth: int
    key: np.uint64
    columns: int


class RankedGrower:
    """Growth over some rows of a table.

    Parameters
    ----------
    table : Table
        Codes are not read.
    criterion : named tuple
        Its type is that of the sweep.
    limits : Limits
    rows : NodeRows
        They are used up; afterwards they are in the order of the leaves.
    interactions : Interactions or None
    draws_cuts : bool
        One cut of each column is drawn, and no column has a list.
    """

    def __init__(
        self,
        table: Table,
        criterion: Any,
        limits: Limits,
        rows: NodeRows,
        n_threads: int,
        interactions: Interactions | None = None,
        draws_cuts: bool = False,
    ) -> None:
        n, d = rows.row.size, table.missing.size
        if n > MOST_RANKS:
            raise InputError(f"Ranked lists have at most {MOST_RANKS:,} rows, got {n:,}.")
        self._run = partial(run, n_threads)
        self._n_threads = n_threads
        self._table = table
        if draws_cuts:
            drawn = TableValues(table.values.reshape(-1), table.categories)
            none = np.empty((d, 0), np.int32)
            codes = Codes(
                none.T.astype(np.uint8), np.arange(d), np.full(d, -1), np.zeros(d + 1, np.int64)
            )
            self._ranked = Ranked(criterion, limits, none, codes, rows, None, interactions, drawn)
            return
        require_memory(4 * n * d, f"Ranking {n:,} rows in {d:,} columns", "Use fewer rows.")
        lists = np.empty((d, n), np.int32)

        nominal = table.categories > 0
        of_sums = isinstance(criterion, OF_SUMS)
        may_count = ~nominal & of_sums

        # the ranks of sums are those of rows
        row = slice(None) if of_sums and n == len(table.values) else rows.row

        def rank(f: int) -> tuple[NDArray[np.uint8], int, int] | None:
            values = np.ascontiguousarray(table.values[row, f])
            coded = code_column(values, MOST_COUNTED) if may_count[f] else None
            if coded is None:
                lists[f] = presort(values)
            return coded

        codes = _codes_of(self._run(rank, [(f,) for f in range(d)]), row, len(table.values))
        some = nominal if nominal.any() else None
        self._ranked = Ranked(criterion, limits, lists, codes, rows, some, interactions, None)

    def grow(self, key: int) -> RankedNodes:
        """Grow the tree; the root's draws are hashed with `key`. The root is the first node."""
        n = self._ranked.rows.row.size
        whole = self._most_whole(n)
        parts: list[RankedNodes] = [self._new_nodes(1)]  # of one node each
        interactions = self._ranked.interactions
        root = 0 if interactions is None else interactions.root
        level, small = [Open(0, 0, n, 0, np.uint64(key), root)], []
        while level:
            large = [node for node in level if node.t - node.s > whole]
            small += [node for node in level if node.t - node.s <= whole]
            level = self._split(large, parts)
        small.sort(key=lambda node: node.s - node.t)
        return _join(parts, small, self._run(self._grow_subtree, [(node,) for node in small]))

    def _most_whole(self, n: int) -> int:
        """Rows of the largest node that is grown whole, in a table of n."""
        ranked, alone = self._ranked, self._n_threads == 1
        levels = min(ranked.limits.max_depth, n.bit_length())
        seconds = len(ranked.lists) * ranked.rows.target.size * levels * SECONDS
        if seconds <= MOST_SECONDS and (alone or is_cheaper_without(LARGE_KERNELS, seconds)):
            return n
        shared = n if alone else n // (SUBTREES_PER_THREAD * self._n_threads)
        return min(MOST_WHOLE, max(shared, FEWEST_SHARED))

    def categories(
        self, begin: Int64s, end: Int64s, feature: NDArray[np.int32]
    ) -> tuple[Int64s, NDArray[np.uint32]]:
        """Categories of a column in each node, as of `gputree.backends.base.Backend`."""
        row = self._ranked.rows.row
        return node_categories(self._table, row, begin, end, feature, self._n_threads)

    def _split(self, level: list[Open], parts: list[RankedNodes]) -> list[Open]:
        """Split the nodes of a level; returns their children."""
        ranked = self._ranked
        self._run(measure_node, [(ranked, node.s, node.t, parts[node.number]) for node in level])
        level = [
            node for node in level if may_split(ranked.limits, parts[node.number], 0, node.depth)
        ]
        opened = self._run(open_large, [(ranked, node.s, node.t) for node in level])
        found = list(zip(level, opened, strict=True))
        cuts = self._search(found)
        ranks = [np.empty(node.t - node.s, np.int32) for node, *_ in found]
        splits = [
            (ranked, (node.s, node.t, node.key), cut, parts[node.number], of_node, *totals)
            for (node, totals), cut, of_node in zip(found, cuts, ranks, strict=True)
        ]
        children, partitions = [], []
        lefts = self._run(split_node, splits)
        for (node, *_), cut, left, of_node in zip(found, cuts, lefts, ranks, strict=True):
            if left:
                parts[node.number].first_child[0] = first = len(parts)
                parts += [self._new_nodes(1), self._new_nodes(1)]
                middle, keys = node.s + left, child_key(np.array([node.key]), np.arange(2))
                columns = 0
                if ranked.interactions is not None:
                    of = np.array([node.columns]), np.array([cut.column])
                    columns = int(ranked.interactions.children(*of)[0])
                below = node.depth + 1
                children.append(Open(first, node.s, middle, below, keys[0], columns))
                children.append(Open(first + 1, middle, node.t, below, keys[1], columns))
                for a, b in self._column_spans(node):
                    partitions.append((ranked, a, b, node.s, node.t, of_node))
        self._run(partition_lists, partitions)
        return children

    def _column_spans(self, node: Open) -> list[tuple[int, int]]:
        """Spans of columns, as parts of the work on a node."""
        d = len(self._ranked.lists)
        return even_spans(d, node.t - node.s, self._n_threads, FEWEST_SHARED)

    def _search(self, found: list[tuple[Open, Any]]) -> list[Any]:
        """The best cut of each node, given with what `open_large` returns."""
        d, most = len(self._ranked.lists), self._ranked.limits.max_features
        criterion = self._ranked.criterion
        allowed = np.ones((len(found), d), np.bool_)
        if self._ranked.interactions is not None:
            sets = np.array([node.columns for node, _ in found], np.int64)
            allowed = self._ranked.interactions.mask(sets, d)
        number = allowed.sum(axis=1)
        order = [
            drawn_columns(most, node.key, allowed[j])[: number[j]]
            for j, (node, _) in enumerate(found)
        ]
        cuts, done = [no_cut(criterion) for _ in found], min(most, d)
        tasks = [
            (j, order[j][a:b])
            for j, (node, *_) in enumerate(found)
            for a, b in even_spans(
                min(done, int(number[j])), node.t - node.s, self._n_threads, FEWEST_SHARED
            )
        ]
        while tasks:
            parts = [(self._ranked, *found[j], columns) for j, columns in tasks]
            results = self._run(_search_part, parts)
            for (j, _), cut in zip(tasks, results, strict=True):
                cuts[j] = cut if precedes(criterion, cut, cuts[j]) else cuts[j]
            # of a node without a cut, one column more
            without = [j for j, cut in enumerate(cuts) if cut.column < 0 and done < number[j]]
            tasks = [(j, order[j][done : done + 1]) for j in without]
            done += 1
        return cuts

    def _new_nodes(self, size: int) -> RankedNodes:
        ranked = self._ranked
        of_sums = isinstance(ranked.criterion, OF_SUMS)
        return new_nodes(size, 0 if of_sums else len(ranked.rows.target))

    def _grow_subtree(self, node: Open) -> RankedNodes:
        limits, rows = self._ranked.limits, node.t - node.s
        most = 2 * (rows // max(limits.min_samples_leaf, 1)) + 1
        levels = min(max(limits.max_depth - node.depth, 0), 40)
        out = self._new_nodes(min(most, (2 << levels) - 1))
        root = node.s, node.t, node.depth, node.key, node.columns
        count = grow_subtree(self._ranked, *root, out)
        return RankedNodes._make(field[:count].copy() for field in out)


def _codes_of(
    found: list[tuple[NDArray[np.uint8], int, int] | None], row: NDArray[np.int32] | slice, n: int
) -> Codes:
    """Codes by row of n, from those of each column by rank; None where it has a list."""
    counted = {f: coded for f, coded in enumerate(found) if coded is not None}
    code = np.zeros((n if counted else 0, len(counted)), np.uint8)
    place, missing = np.full(len(found), -1), np.full(len(found), -1)
    first = np.zeros(len(counted) + 1, np.int64)
    for c, (f, coded) in enumerate(counted.items()):
        place[f] = c
        code[row, c], missing[f], first[c + 1] = coded
    return Codes(code, place, missing, np.cumsum(first))


def _search_part(ranked: Ranked, node: Open, opened: Any, columns: Int64s) -> Any:
    cut = search_node(ranked, node.s, node.t, node.key, columns, *opened)
    # a Python integer is an int64 or a uint64 by its value: kernels would take either
    return cut._replace(rank=np.uint64(cut.rank))


def _join(parts: list[RankedNodes], roots: list[Open], subtrees: list[RankedNodes]) -> RankedNodes:
    """Join nodes with the subtrees of `roots` among them: their other nodes follow all parts."""
    free = len(parts)
    for root, subtree in zip(roots, subtrees, strict=True):
        child = subtree.first_child
        child[child >= 0] += free - 1
        parts[root.number] = RankedNodes._make(field[:1] for field in subtree)
        parts.append(RankedNodes._make(field[1:] for field in subtree))
        free += subtree.begin.size - 1
    return RankedNodes._make(np.concatenate(field) for field in zip(*parts, strict=True))
