"""Attribute lists on CUDA: CuPy arrays, kernels in ``score.cu`` and ``partition.cu``.

Assign entries to the parts of tests, and make the entries and lists of the next level.

The best test of every column in every node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import (
    CURSORS,
    ENTRIES,
    LANES,
    LEVEL_NODES,
    LIST_TASK,
    NEW_ENTRIES,
    NEW_LISTS,
    PARTS,
    ROUTES,
    TESTS,
    Kernels,
    Packed,
    cupy,
)
from gputree.backends.cuda.layout import offsets, to_device
from gputree.backends.cuda.lists.memory import (
    CURSOR_BYTES,
    MOST_WARPS,
    DeviceEntries,
    DeviceLists,
    Ledger,
    LevelArrays,
    LevelData,
    Share,
    assign_bytes,
    by_length,
    in_turns,
    level_bytes,
    most_entries,
    move_bytes,
    nbytes_of,
    score_bytes,
)
from gputree.backends.cuda.workspace import DeviceChunks
from gputree.backends.lists import CandidateTests, ColumnCodes, ListTask, TestParts, Tests
from gputree.base.dtypes import Int64s


class CudaLists:
    """`gputree.backends.lists.ListBackend` on a CUDA device."""

    name = "cuda"

    def __init__(self, codes: ColumnCodes, task: ListTask, n_threads: int) -> None:
        if task.one_against_rest:
            raise NotImplementedError("One-vs-rest splits of categories are not supported on CUDA.")
        ledger, (d, n) = Ledger(task), codes.order.shape
        ledger.used = nbytes_of(task.nominal, task.information.terms)
        ledger.require_table(task, d, n)
        self.most_entries = most_entries(task, d, n, ledger.left)
        self.codes = codes
        self.task = task
        categorical, terms = to_device(task.nominal, np.uint8), to_device(task.information.terms)
        self.table = LevelData(Kernels(None, False, 32), task, categorical, terms, ledger)

    def root(self) -> CudaLevel:
        """Return the level of the root: the sorted columns become its lists."""
        task, (d, n), weight = self.task, self.codes.order.shape, self.task.weight
        weights = np.zeros((1, task.n_classes), np.int64)
        np.add.at(weights[0], task.target, 1 if weight is None else weight)
        return CudaLevel(
            self.table,
            DeviceEntries(
                to_device(task.target, np.int32),
                None if weight is None else to_device(weight, np.int64),
            ),
            DeviceLists(
                to_device(self.codes.order, np.int32), to_device(self.codes.code, np.uint32)
            ),
            np.array([0]),
            np.array([n]),
            weights,
            np.zeros((d, 1), np.bool_),
        )


@dataclass
class CudaLevel(LevelArrays):
    """`gputree.backends.lists.Level` on a CUDA device."""

    _assigned: AssignedTests | None = None

    def __post_init__(self) -> None:
        self._used = nbytes_of(*self.entries, *self.lists)
        self.table.ledger.used += self._used

    @property
    def rows(self) -> int:
        return self.entries.target.size

    def score(self) -> CandidateTests:
        found = score(self)
        self.resting = self.resting | (found.parts == 1)
        return found

    def assign(self, tests: Tests) -> TestParts:
        ledger, n_parts = self.table.ledger, int(tests.part[-1])
        needed = assign_bytes(self.table.task.n_classes, tests.node.size, n_parts, self.rows)
        ledger.require(needed, f"A level of {n_parts:,} parts")
        ledger.used += needed
        self._used += needed
        self._assigned = assign(self, tests)
        return self._assigned.parts

    def descend(self, parts: Int64s) -> CudaLevel:
        done = self._assigned
        assert done is not None
        tests, sizes = done.tests, done.parts.rows[parts]
        end = np.cumsum(sizes)
        is_tested = tests.feature[None, :] == np.arange(len(self.resting))[:, None]
        skip = self.resting[:, tests.node] | (is_tested & self.table.task.nominal[:, None])
        free_bytes = cursor_room(self, done, parts)
        routes, entries = move_entries(self, done, parts)
        lists = move_lists(self, done, routes, skip, int(end[-1]), free_bytes)
        test = np.repeat(np.arange(tests.node.size), np.diff(tests.part))[parts]
        resting = np.ascontiguousarray(skip[:, test])
        weights = done.parts.weights[parts]
        return CudaLevel(self.table, entries, lists, end - sizes, end, weights, resting)

    def close(self) -> None:
        self._assigned = None
        del self.lists, self.entries
        self.table.ledger.used -= self._used


class AssignedTests(NamedTuple):
    """Tests and their parts, on the host and on the device."""

    tests: Tests
    parts: TestParts
    sizes: Int64s  # entries of the tested nodes
    missing: Int64s  # entries of them that are in no part
    device: DeviceTests

    @property
    def is_long(self) -> NDArray[np.bool_]:
        """True for nodes whose lists are partitioned by many warps each.

        A long list of many parts would need more cursors than it has entries.
        """
        most = np.diff(self.tests.part) * MOST_WARPS
        return (self.sizes >= tuning.TUNING.lists_long) & (most <= self.sizes)

    @property
    def cursor_begin(self) -> Int64s:
        """Offsets of the cursors of each node in one column, and the end."""
        return offsets(np.diff(self.tests.part) * np.where(self.is_long, MOST_WARPS, 1))


class DeviceTests(NamedTuple):
    """Tests, their parts, and pieces of the nodes' entries, for kernels."""

    tests: Packed
    parts: Packed
    chunks: DeviceChunks


def assign(level: LevelArrays, tests: Tests) -> AssignedTests:
    """See `gputree.backends.lists.Level.assign`."""
    xp, task = cupy(), level.table.task
    m, n_parts, n_classes = tests.node.size, int(tests.part[-1]), task.n_classes
    begin, end = level.begin[tests.node], level.end[tests.node]
    report = xp.zeros(n_parts * (n_classes + 2) + m, dtype=np.int64)
    bounds = np.cumsum([n_parts * n_classes, n_parts, n_parts]).tolist()
    weights, rows, code, missing = (
        report[a:b] for a, b in zip([0, *bounds], [*bounds, report.size], strict=True)
    )
    first, last, present = (xp.empty(n_parts, dtype=np.int64) for _ in range(3))
    test = to_device(np.repeat(np.arange(m), np.diff(tests.part)))
    device = DeviceTests(
        TESTS.pack(
            m, to_device(begin), to_device(end), to_device(tests.feature, np.int32),
            to_device(tests.cut, np.uint32), to_device(tests.part), missing,
            xp.zeros(m, dtype=np.int64),
        ),
        PARTS.pack(test, first, last, code, rows, present, weights),
        DeviceChunks.of(begin, end, tuning.TUNING.lists_chunk_places),
    )  # fmt: skip
    columns = level.lists.pack(level.table.categorical)
    for share in by_length(end - begin >= tuning.TUNING.lists_long):
        level.table.kernels(
            "lists/partition", "find_parts", (share.chosen.size,), to_device(share.chosen),
            columns, int(task.missing_is_category), device.tests, device.parts,
            threads=share.threads,
        )  # fmt: skip
    _sum_up(level, columns, device, n_parts)
    found = report.get()
    weights, rows, code, missing = np.split(found, bounds)
    parts = TestParts(
        code.astype(np.uint32), rows.copy(), weights.reshape(n_parts, n_classes).copy()
    )
    return AssignedTests(tests, parts, end - begin, missing.copy(), device)


def _sum_up(level: LevelArrays, columns: Packed, device: DeviceTests, n_parts: int) -> None:
    """Sum class weights and entries of the parts, fractions included."""
    kernels, task, entries = level.table.kernels, level.table.task, ENTRIES.pack(*level.entries)
    n_classes, (tests, parts, chunks) = task.n_classes, device
    kernels(
        "lists/partition", "sum_parts", (chunks.number,), chunks.packed, columns, entries,
        n_classes, tests, parts,
    )  # fmt: skip
    kernels("lists/partition", "weigh_parts", (n_parts,), n_classes, tests, parts, threads=LANES)
    if not task.missing_is_category:
        kernels(
            "lists/partition", "add_fractions", (n_parts,), columns, entries, n_classes, tests,
            parts, threads=LANES,
        )  # fmt: skip


def move_entries(
    level: LevelArrays, assigned: AssignedTests, parts: Int64s
) -> tuple[Packed, DeviceEntries]:
    """Move the entries of a level: returns routes, and the entries of the level of `parts`."""
    xp, kernels, (tests, own_parts, chunks) = cupy(), level.table.kernels, assigned.device
    fractions, size = _fractions(assigned, parts), int(assigned.parts.rows[parts].sum())
    weight = None if level.entries.weight is None else xp.empty(size, dtype=np.int64)
    new = DeviceEntries(xp.empty(size, dtype=np.int32), weight)
    routes = _pack_routes(assigned, parts, fractions, level.entries.target.size)
    columns, to = level.lists.pack(level.table.categorical), NEW_ENTRIES.pack(*new)
    shared = columns, ENTRIES.pack(*level.entries), tests, own_parts, routes, to
    kernels("lists/partition", "move_entries", (chunks.number,), chunks.packed, *shared)
    if fractions[-1] > 0:
        kernels("lists/partition", "place_fractions", (parts.size,), *shared, threads=LANES)
    return routes, new


def _pack_routes(
    assigned: AssignedTests, parts: Int64s, fractions: Int64s, n_entries: int
) -> Packed:
    """Pack routes of `n_entries` to the level of `parts`, with places for `fractions`."""
    xp, part, sizes = cupy(), assigned.tests.part, assigned.parts.rows[parts]
    begin = np.full(int(part[-1]), -1)
    begin[parts] = np.cumsum(sizes) - sizes
    return ROUTES.pack(
        to_device(begin), to_device(parts), to_device(np.searchsorted(parts, part)),
        to_device(fractions), xp.empty(n_entries, dtype=np.int64),
        xp.empty(max(int(fractions[-1]), 1), dtype=np.int32),
    )  # fmt: skip


def _fractions(assigned: AssignedTests, parts: Int64s) -> Int64s:
    """Offsets of the fractions that the parts of each test get, and the end."""
    opened = np.diff(np.searchsorted(parts, assigned.tests.part))
    return offsets(assigned.missing * opened)


def cursor_room(level: LevelArrays, assigned: AssignedTests, parts: Int64s) -> int:
    """Bytes for the cursors of `move_lists`, in addition to the level of `parts` and its routes.

    Raises
    ------
    MemoryError
        The minimum, cursors for one column, does not fit the memory limit.
    """
    (d, n_entries), ledger = level.lists.item.shape, level.table.ledger
    size = int(assigned.parts.rows[parts].sum())
    fractions = int(_fractions(assigned, parts)[-1])
    taken = level_bytes(level.table.task, d, size)
    taken += move_bytes(d, assigned.sizes.size, assigned.parts.rows.size, n_entries, fractions)
    one = CURSOR_BYTES * int(assigned.cursor_begin[-1])
    ledger.require(taken + one, f"A level of {size:,} entries")
    return ledger.left - taken


def move_lists(
    level: LevelArrays,
    assigned: AssignedTests,
    routes: Packed,
    skip: NDArray[np.bool_],
    size: int,
    free_bytes: int,
) -> DeviceLists:
    """Lists of the next level, of `size` entries; those to `skip` (d, m) are undefined.

    Columns are processed in groups if the cursors of all exceed `free_bytes` bytes.
    """
    xp, d, table, begin = cupy(), skip.shape[0], level.table, assigned.cursor_begin
    n_cursors = int(begin[-1])
    new = DeviceLists(xp.empty((d, size), dtype=np.int32), xp.empty((d, size), dtype=np.uint32))
    turns = in_turns(d, free_bytes // (CURSOR_BYTES * n_cursors))
    cursors = xp.empty(turns[0][1] * n_cursors, dtype=np.int32)
    skipped, shares = to_device(skip, np.uint8), by_length(assigned.is_long)
    packed = CURSORS.pack(n_cursors, to_device(begin), cursors)
    for first, last in turns:
        columns = level.lists.pack(table.categorical, first, last)
        to = NEW_LISTS.pack(size, new.item[first:last], new.code[first:last])
        for share in shares:
            pairs = share.chosen.size * (last - first)
            table.kernels(
                "lists/partition", "move_lists", (min(pairs, tuning.TUNING.lists_most_blocks),),
                to_device(share.chosen), share.chosen.size, columns, assigned.device.tests,
                skipped[first:last], routes, packed, to, threads=share.threads,
            )  # fmt: skip
    return new


def score(level: LevelArrays) -> CandidateTests:
    """See `gputree.backends.lists.Level.score`; columns are scored in groups within the limit."""
    table, (d, m), ledger = level.table, level.resting.shape, level.table.ledger
    sent_bytes, column_bytes = score_bytes(table.task.n_classes, d, m)
    ledger.require(sent_bytes + column_bytes, f"Scoring a level of {m:,} nodes")
    shares = by_length(level.end - level.begin >= tuning.TUNING.lists_long)
    nodes = tuple(map(to_device, (level.begin, level.end, level.weights)))
    resting, task = to_device(level.resting, np.uint8), _pack_task(level)
    out = np.empty((6, d, m), np.int64)
    for first, last in in_turns(d, (ledger.left - sent_bytes) // max(column_bytes, 1)):
        found = cupy().empty((6, last - first, m), dtype=np.int64)
        free_bytes = ledger.left - sent_bytes - found.nbytes
        columns = level.lists.pack(table.categorical, first, last)
        packed = task, columns, LEVEL_NODES.pack(m, *nodes, resting[first:last])
        for share in shares:
            _score_columns(table, packed, share, free_bytes, found)
        out[:, first:last] = found.get()
        del found
    gain, split, tries, parts, cut, after = out
    codes = (place.astype(np.uint32) for place in (cut, after))
    return CandidateTests(gain, split, tries, parts.astype(np.int32), *codes)


def _pack_task(level: LevelArrays) -> Packed:
    """Pack the rules by which entries are scored, for kernels."""
    task, terms, info = level.table.task, level.table.terms, level.table.task.information
    return LIST_TASK.pack(
        (info.unit, info.scale, info.shift, info.row_bits, terms, terms.size),
        task.limits,
        level.entries,
        task.n_classes,
        int(task.missing_is_category),
    )


def _score_columns(
    table: LevelData, packed: tuple[Packed, Packed, Packed], share: Share, free_bytes: int, out: Any
) -> None:
    """Score columns in the nodes of one share, given task, columns and all nodes.

    Class weights that exceed shared memory use at most `free_bytes` bytes.
    """
    sizes, (_, d, _) = tuning.TUNING, out.shape
    block_bytes = (share.warps + 1) * table.task.n_classes * 8
    blocks = min(share.chosen.size * d, sizes.lists_most_blocks)
    scratch = None
    shared = block_bytes if block_bytes <= sizes.lists_shared_bytes else 0
    if not shared:
        table.ledger.require(table.ledger.left - free_bytes + block_bytes, "Scoring a column")
        blocks = min(blocks, max(min(sizes.lists_scratch_bytes, free_bytes) // block_bytes, 1))
        scratch = cupy().empty(blocks * block_bytes // 8, dtype=np.int64)
    table.kernels(
        "lists/score", "score_columns", (blocks,), *packed, to_device(share.chosen),
        share.chosen.size, scratch, out, threads=share.threads, shared=shared,
    )  # fmt: skip
