"""Entries are assigned to the parts of tests, and become the entries and lists of a level."""

from __future__ import annotations

from typing import NamedTuple

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
from gputree.backends.cuda.structs import (
    CURSORS,
    NEW_ENTRIES,
    NEW_LISTS,
    PARTS,
    ROUTES,
    TESTS,
    Packed,
)
from gputree.backends.lists import Parts, Tests


class Assigned(NamedTuple):
    """Tests and their parts, on the host and on the device."""

    tests: Tests
    parts: Parts
    sizes: Int64s  # entries of the tested nodes
    missing: Int64s  # of them without a part of their own
    device: OnDevice


class OnDevice(NamedTuple):
    """Tests, their parts, and pieces of the nodes' entries, for kernels."""

    tests: Packed
    parts: Packed
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
    device = OnDevice(
        TESTS.pack(
            m, to_device(begin), to_device(end), to_device(tests.feature, np.int32),
            to_device(tests.cut, np.uint32), to_device(tests.part), missing,
            xp.zeros(m, dtype=np.int64),
        ),
        PARTS.pack(test, first, last, code, rows, known, weights),
        Chunks.of(begin, end, tuning.TUNING.lists_chunk_places),
    )  # fmt: skip
    columns = lists.pack(table.nominal)
    for share in by_length(end - begin >= tuning.TUNING.lists_long):
        kernels(
            "lists/partition", "find_parts", (share.chosen.size,), to_device(share.chosen),
            columns, int(task.missing_is_category), device.tests, device.parts,
            threads=share.threads,
        )  # fmt: skip
    _sum_up(table, columns, entries.pack(), device, n_parts)
    found = report.get()
    weights, rows, code, missing = np.split(found, bounds)
    parts = Parts(code.astype(np.uint32), rows.copy(), weights.reshape(n_parts, n_classes).copy())
    return Assigned(tests, parts, end - begin, missing.copy(), device)


def _sum_up(table: Table, columns: Packed, entries: Packed, device: OnDevice, n_parts: int) -> None:
    """Class weights and entries of the parts, fractions included."""
    kernels, n_classes = table.kernels, table.task.n_classes
    tests, parts, chunks = device
    kernels(
        "lists/partition", "sum_parts", (chunks.number,), chunks.packed, columns, entries,
        n_classes, tests, parts,
    )  # fmt: skip
    kernels(
        "lists/partition", "weigh_parts", (n_parts,), n_classes, tests, parts,
        threads=launch.LANES,
    )  # fmt: skip
    if not table.task.missing_is_category:
        kernels(
            "lists/partition", "add_fractions", (n_parts,), columns, entries, n_classes, tests,
            parts, threads=launch.LANES,
        )  # fmt: skip


def move_entries(
    table: Table, entries: Entries, lists: Lists, assigned: Assigned, parts: Int64s
) -> tuple[Packed, Entries]:
    """Where the entries of a level go, and those of the next, which consists of `parts`."""
    xp, kernels, (tests, own_parts, chunks) = cupy(), table.kernels, assigned.device
    room, size = _fractions(assigned, parts), int(assigned.parts.rows[parts].sum())
    new = Entries(
        xp.empty(size, dtype=np.int32),
        None if entries.weight is None else xp.empty(size, dtype=np.int64),
    )
    routes = _pack_routes(assigned, parts, room, entries.target.size)
    columns, to = lists.pack(table.nominal), NEW_ENTRIES.pack(*new)
    shared = columns, entries.pack(), tests, own_parts, routes, to
    kernels("lists/partition", "move_entries", (chunks.number,), chunks.packed, *shared)
    if room[-1] > 0:
        kernels("lists/partition", "place_fractions", (parts.size,), *shared, threads=launch.LANES)
    return routes, new


def _pack_routes(assigned: Assigned, parts: Int64s, room: Int64s, n_entries: int) -> Packed:
    """From a level of so many entries to that of `parts`, with `room` for fractions."""
    xp, part, sizes = cupy(), assigned.tests.part, assigned.parts.rows[parts]
    begin = np.full(int(part[-1]), -1)
    begin[parts] = np.cumsum(sizes) - sizes
    return ROUTES.pack(
        to_device(begin), to_device(parts), to_device(np.searchsorted(parts, part)),
        to_device(room), xp.empty(n_entries, dtype=np.int64),
        xp.empty(max(int(room[-1]), 1), dtype=np.int32),
    )  # fmt: skip


def _fractions(assigned: Assigned, parts: Int64s) -> Int64s:
    """Where the fractions begin that the parts of each test get, and the end."""
    opened = np.diff(np.searchsorted(parts, assigned.tests.part))
    return offsets(assigned.missing * opened)


class Moves(NamedTuple):
    """Nodes whose lists are partitioned."""

    is_long: NDArray[np.bool_]
    cursor_begin: Int64s  # (m + 1,): of each node in one column
    tests: Packed  # theirs, for kernels

    @classmethod
    def of(cls, assigned: Assigned) -> Moves:
        """Of the nodes of tests."""
        parts, sizes = np.diff(assigned.tests.part), assigned.sizes
        # a long list of many parts would need more cursors than it has entries
        most = parts * launch.MOST_WARPS
        is_long = (sizes >= tuning.TUNING.lists_long) & (most <= sizes)
        cursor_begin = offsets(np.where(is_long, most, parts))
        return cls(is_long, cursor_begin, assigned.device.tests)


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
    routes: Packed,
    skip: NDArray[np.bool_],
    size: int,
    room: int,
) -> Lists:
    """The lists of the next level, of `size` entries; those to `skip` (d, m) hold anything.

    Columns take turns where the cursors of all exceed `room`.
    """
    xp, d = cupy(), skip.shape[0]
    n_cursors = int(moves.cursor_begin[-1])
    new = Lists(xp.empty((d, size), dtype=np.int32), xp.empty((d, size), dtype=np.uint32))
    turns = in_turns(d, room // cursor_bytes(n_cursors))
    cursors = xp.empty(turns[0][1] * n_cursors, dtype=np.int32)
    skipped, starts, shares = flags(skip), to_device(moves.cursor_begin), by_length(moves.is_long)
    packed = CURSORS.pack(n_cursors, starts, cursors)
    for first, last in turns:
        columns = lists.columns(first, last).pack(table.nominal[first:last])
        to = NEW_LISTS.pack(size, *new.columns(first, last))
        for share in shares:
            pairs = share.chosen.size * (last - first)
            table.kernels(
                "lists/partition", "move_lists", (min(pairs, tuning.TUNING.lists_most_blocks),),
                to_device(share.chosen), share.chosen.size, columns, moves.tests,
                skipped[first:last], routes, packed, to, threads=share.threads,
            )  # fmt: skip
    return new
