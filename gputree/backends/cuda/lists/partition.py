"""Entries are assigned to the parts of tests, and become the entries and lists of a level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Chunks, to_device
from gputree.backends.cuda.lists import launch
from gputree.backends.cuda.lists.launch import (
    Entries,
    Lists,
    Table,
    by_length,
    flags,
    in_turns,
    offsets,
)
from gputree.backends.cuda.lists.memory import cursor_bytes, level_bytes, move_bytes
from gputree.backends.lists import Parts, Tests


class Assigned(NamedTuple):
    """Tests and their parts, on the host and on the device."""

    tests: Tests
    parts: Parts
    sizes: Int64s  # entries of the tested nodes
    missing: Int64s  # of them without a part of their own
    device: DeviceTests


class DeviceTests(NamedTuple):
    """Tests of m nodes and their P parts."""

    begin: Any  # (m,) int64: the nodes' entries
    end: Any
    feature: Any  # (m,) int32
    part: Any  # (m + 1,) int64: their parts
    missing: Any  # (m,) int64: entries without a part of their own
    whole: Any  # (m,) int64: known weight
    test: Any  # (P,) int64: the test of a part
    first: Any  # (P,) int64: its places in the list of the tested column
    last: Any
    known: Any  # (P,) int64: its known weight
    chunks: Chunks


def assign(
    table: Table, entries: Entries, lists: Lists, begin: Int64s, end: Int64s, tests: Tests
) -> Assigned:
    """See `gputree.backends.lists.Level.assign`."""
    xp, task, kernels = cupy(), table.task, table.kernels
    m, n_parts, n_classes = tests.node.size, int(tests.part[-1]), task.n_classes
    begin, end = begin[tests.node], end[tests.node]
    report = xp.zeros(n_parts * (n_classes + 2) + m, dtype=np.int64)
    bounds = np.cumsum([n_parts * n_classes, n_parts, n_parts]).tolist()
    weights, rows, code, missing = (
        report[a:b] for a, b in zip([0, *bounds], [*bounds, report.size], strict=True)
    )
    first, last, known = (xp.empty(n_parts, dtype=np.int64) for _ in range(3))
    test = to_device(np.repeat(np.arange(m), np.diff(tests.part)))
    device = DeviceTests(
        to_device(begin), to_device(end), to_device(tests.feature, np.int32),
        to_device(tests.part), missing, xp.zeros(m, dtype=np.int64), test, first, last, known,
        Chunks.of(begin, end, tuning.TUNING.lists_chunk_places),
    )  # fmt: skip
    n_entries, cut = lists.item.shape[1], to_device(tests.cut, np.uint32)
    for share in by_length(end - begin >= tuning.TUNING.lists_long):
        kernels(
            "lists/partition", "find_parts", (share.chosen.size,), to_device(share.chosen),
            table.nominal, int(task.missing_is_category), n_entries, lists.code, device.begin,
            device.end, device.feature, cut, device.part, first, last, code, missing,
            threads=share.threads,
        )  # fmt: skip
    _sum_up(table, entries, lists, device, rows, weights)
    found = report.get()
    weights, rows, code, missing = np.split(found, bounds)
    parts = Parts(code.astype(np.uint32), rows.copy(), weights.reshape(n_parts, n_classes).copy())
    return Assigned(tests, parts, end - begin, missing.copy(), device)


def _sum_up(
    table: Table, entries: Entries, lists: Lists, tests: DeviceTests, rows: Any, weights: Any
) -> None:
    """Class weights and entries of the parts, fractions included."""
    kernels, n_classes = table.kernels, table.task.n_classes
    n_entries, n_parts = lists.item.shape[1], tests.test.size
    kernels(
        "lists/partition", "sum_parts", (tests.chunks.number,), tests.chunks.owner,
        tests.chunks.first, tests.chunks.last, n_entries, *lists, *entries, n_classes, tests.end,
        tests.feature, tests.part, tests.last, tests.missing, weights,
    )  # fmt: skip
    kernels(
        "lists/partition", "weigh_parts", (n_parts,), tests.test, tests.first, tests.last,
        n_classes, weights, rows, tests.known, tests.whole, threads=launch.LANES,
    )  # fmt: skip
    if not table.task.missing_is_category:
        kernels(
            "lists/partition", "add_fractions", (n_parts,), tests.test, n_entries, *lists,
            *entries, n_classes, tests.end, tests.feature, tests.missing, tests.known,
            tests.whole, rows, weights, threads=launch.LANES,
        )  # fmt: skip


class Opened(NamedTuple):
    """Parts that become nodes of the next level, on the device."""

    begin: Any  # (P,) int64: the first entry of each part, -1 where it is not opened
    part: Any  # int64: those that are, in order
    test: Any  # (m + 1,) int64: the first of them of each test, and the end

    @classmethod
    def of(cls, parts: Int64s, sizes: Int64s, part: Int64s) -> Opened:
        """`parts` of so many entries, of tests with the parts ``part[j] .. part[j + 1]``."""
        begin = np.full(int(part[-1]), -1)
        begin[parts] = np.cumsum(sizes) - sizes
        return cls(to_device(begin), to_device(parts), to_device(np.searchsorted(parts, part)))


class Routes(NamedTuple):
    """Where the entries of a level go."""

    opened: Opened
    route: Any  # (E,) int64
    spread: Any  # int32: places of fractions


def move_entries(
    table: Table, entries: Entries, lists: Lists, assigned: Assigned, parts: Int64s
) -> tuple[Routes, Entries]:
    """Where the entries of a level go, and those of the next, which consists of `parts`."""
    xp, tests, kernels = cupy(), assigned.device, table.kernels
    part, sizes = assigned.tests.part, assigned.parts.rows[parts]
    opened = Opened.of(parts, sizes, part)
    room = _fractions(assigned, parts)
    spread_begin = to_device(room)
    routes = Routes(
        opened,
        xp.empty(entries.target.size, dtype=np.int64),
        xp.empty(max(int(room[-1]), 1), dtype=np.int32),
    )
    size = int(sizes.sum())
    new = Entries(
        xp.empty(size, dtype=np.int32),
        None if entries.weight is None else xp.empty(size, dtype=np.int64),
    )
    n_entries = lists.item.shape[1]
    kernels(
        "lists/partition", "move_entries", (tests.chunks.number,), tests.chunks.owner,
        tests.chunks.first, tests.chunks.last, n_entries, lists.item, *entries, tests.end,
        tests.feature, tests.part, tests.first, tests.last, tests.missing, opened.begin,
        opened.test, spread_begin, routes.route, *new,
    )  # fmt: skip
    if room[-1] > 0:
        kernels(
            "lists/partition", "place_fractions", (parts.size,), opened.part, tests.test,
            n_entries, lists.item, *entries, tests.end, tests.feature, tests.first, tests.last,
            tests.missing, tests.known, tests.whole, opened.begin, opened.test, spread_begin,
            routes.spread, *new, threads=launch.LANES,
        )  # fmt: skip
    return routes, new


def _fractions(assigned: Assigned, parts: Int64s) -> Int64s:
    """Where the fractions begin that the parts of each test get, and the end."""
    opened = np.diff(np.searchsorted(parts, assigned.tests.part))
    return offsets(assigned.missing * opened)


class Moves(NamedTuple):
    """Nodes whose lists are partitioned: on the host, and on the device."""

    is_long: NDArray[np.bool_]
    cursor_begin: Int64s  # (m + 1,): of each node in one column
    begin: Any
    end: Any
    part: Any  # (m + 1,) int64: their parts

    @classmethod
    def of(cls, assigned: Assigned) -> Moves:
        """Of the nodes of tests."""
        parts, sizes, tests = np.diff(assigned.tests.part), assigned.sizes, assigned.device
        # a long list of many parts would need more cursors than it has entries
        most = parts * launch.MOST_WARPS
        is_long = (sizes >= tuning.TUNING.lists_long) & (most <= sizes)
        cursor_begin = offsets(np.where(is_long, most, parts))
        return cls(is_long, cursor_begin, tests.begin, tests.end, tests.part)


def room_to_move(
    table: Table, lists: Lists, assigned: Assigned, parts: Int64s, moves: Moves
) -> int:
    """Bytes for the cursors of `move_lists`, beside the level of `parts` and the routes to it.

    Raises
    ------
    MemoryError
        There are not as many as one column needs.
    """
    (d, n_entries), m = lists.item.shape, moves.is_long.size
    size = int(assigned.parts.rows[parts].sum())
    fractions = int(_fractions(assigned, parts)[-1])
    taken = level_bytes(table.task, d, size)
    taken += move_bytes(d, m, assigned.parts.rows.size, n_entries, fractions)
    one = cursor_bytes(int(moves.cursor_begin[-1]))
    table.ledger.require(taken + one, f"A level of {size:,} entries")
    return table.ledger.left - taken


def move_lists(
    table: Table,
    lists: Lists,
    moves: Moves,
    routes: Routes,
    skip: NDArray[np.bool_],
    size: int,
    room: int,
) -> Lists:
    """The lists of the next level, of `size` entries; those to `skip` (d, m) hold anything.

    Columns take turns where the cursors of all exceed `room`.
    """
    xp, (d, m) = cupy(), skip.shape
    n_cursors = int(moves.cursor_begin[-1])
    new = Lists(xp.empty((d, size), dtype=np.int32), xp.empty((d, size), dtype=np.uint32))
    turns = in_turns(d, room // cursor_bytes(n_cursors))
    cursors = xp.empty(turns[0][1] * n_cursors, dtype=np.int32)
    skipped, starts, shares = flags(skip), to_device(moves.cursor_begin), by_length(moves.is_long)
    for first, last in turns:
        for share in shares:
            columns = last - first
            blocks = min(share.chosen.size * columns, tuning.TUNING.lists_most_blocks)
            table.kernels(
                "lists/partition", "move_lists", (blocks,), to_device(share.chosen),
                share.chosen.size, columns, m, lists.item.shape[1], *lists.columns(first, last),
                moves.begin, moves.end, moves.part, skipped[first:last], routes.route,
                routes.spread, *routes.opened, starts, n_cursors, cursors, size,
                *new.columns(first, last), threads=share.threads,
            )  # fmt: skip
    return new
