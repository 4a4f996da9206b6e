"""Subtrees of small nodes: their rows meet on a worker, group by group of nodes.

part 0   | group 0 | group 1 | ...        pieces, made where the part lies
part 1   | group 0 | group 1 | ...
              v         v
           worker     worker               grows the subtrees; they, and sums, come back
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Bounds, Int64s, Subtrees
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.partitioned.finish import Finished, Gatherer, backend_of, grow_gathered
from gputree.backends.partitioned.ranges import join_ranges
from gputree.backends.workers import tuning
from gputree.backends.workers.counters import Head, grower_on
from gputree.backends.workers.parts import Ordered, Part, WorkerParts, own_arrays
from gputree.compilation.arrays import writable

# Values, codes and statistics of the rows of a group that lie in one part, node after node.
Piece = tuple[NDArray, NDArray, list[NDArray | None]]


def finish_groups(
    remote: WorkerParts,
    head: CpuBackend,
    ranges: tuple[NDArray, NDArray],
    begin: Int64s,
    end: Int64s,
    depth: Int64s,
    keys: NDArray[np.uint64],
    bounds: Bounds | None,
) -> Iterator[tuple[Subtrees, Finished]]:
    """The subtrees of nodes in groups, places as among all entries, and what is asked of them."""
    tasks, futures = remote.tasks, []
    for own in Gatherer(head, [], _group_bytes(remote, head, end - begin)).groups(end - begin):
        first, last = ranges[0][own], ranges[1][own]
        held = np.flatnonzero((first < last).any(axis=0)).tolist()
        pieces = tasks.map(piece_of, *remote.of_parts(held, first, last))
        sizes = (last - first)[:, held]
        given = tasks.share((begin[own], depth[own], keys[own], bounds and bounds.take(own)))
        futures.append(tasks.submit(finish_group, remote.counted_on, pieces, sizes, given))
    for future in futures:
        yield tasks.fetch([future])[0]


def _group_bytes(remote: WorkerParts, head: CpuBackend, sizes: Int64s) -> int:
    """Bytes of the rows of a group, so that all threads have some, if it is worth the tasks."""
    values = head.table.values
    whole = int(sizes.sum()) * values.shape[1] * (values.dtype.itemsize + 9)
    own = whole // remote.tasks.pieces(whole, remote.sizes.size) + 1
    return min(tuning.TUNING.group_bytes, own)


def piece_of(head: Head, part: Part, own: Ordered, first: Int64s, last: Int64s) -> Piece:
    """The rows of some nodes in one part."""
    rows = own.entries[join_ranges(first, last)]
    columns = [None if column is None else column[rows] for column in part.rows]
    return part.table.values[rows], part.table.codes[rows], columns


def finish_group(
    head: Head,
    pieces: list[Piece],
    sizes: NDArray,
    given: tuple[Int64s, Int64s, NDArray[np.uint64], Bounds | None],
) -> tuple[Subtrees, Finished]:
    """Grow the subtrees of nodes of which ``sizes[j, p]`` rows lie in each piece."""
    begin, depth, keys, bounds = given
    places = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
    order = [join_ranges(a, a + n) for a, n in zip(places.T, sizes.T, strict=True)]
    values = _placed([piece[0] for piece in pieces], order)
    codes = _placed([piece[1] for piece in pieces], order)
    assert values is not None
    assert codes is not None
    columns = [_placed([piece[2][k] for piece in pieces], order) for k in range(4)]
    gathered: CpuBackend = backend_of(own_arrays(head.backend), values, codes, columns)
    backend = grower_on(head.choose(), gathered)
    finished, own = Finished(), bounds and Bounds(*map(writable, bounds))
    depth, keys = writable(depth), writable(keys)
    subtrees = grow_gathered(backend, finished, begin, sizes.sum(axis=1), depth, keys, own)
    return subtrees, finished


def _placed(pieces: list[NDArray | None], order: list[Int64s]) -> NDArray | None:
    """Rows of all pieces at their places."""
    if pieces[0] is None:
        return None
    out = np.empty((sum(map(len, order)), *pieces[0].shape[1:]), pieces[0].dtype)
    for piece, places in zip(pieces, order, strict=True):
        out[places] = piece
    return out
