"""Scores of bin boundaries, and bounds on cuts inside bins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Bounds
from gputree.backends.cuda.kernels import LANES, SCORES, Packed
from gputree.backends.cuda.layout import Grower, constraints_of, own_slots, pack_constraints
from gputree.backends.cuda.workspace import Shaped, bytes_of
from gputree.base.dtypes import Int64s


class DeviceScores(NamedTuple):
    """Best boundary of every (node, column) and the largest bound of its bins, on the device."""

    total: Any  # (m, channels) int64
    best: Any  # (m, d) float64
    bin: Any  # (m, d) int32
    missing_left: Any  # (m, d) uint8
    bound: Any  # (m, d) float64
    cumulative: Any  # (m, cells x channels) int64: sums of the histogram over bins
    monotonic: Packed  # constraints on the nodes' means, for kernels
    sets: Any  # (m,) int64: of columns that may split each node; None where all may

    def pack(self) -> Packed:
        """Pack the results for every (node, column) for kernels."""
        return SCORES.pack(*self[1:5])


def score(
    grower: Grower, histograms: Any, larger: Packed, slots: Int64s, bounds: Bounds | None
) -> DeviceScores:
    """Score every column that may split a node, for nodes with the constraints `bounds`."""
    m, workspace = slots.size, grower.workspace
    order, sent = own_slots(slots), []
    if given := [*(() if order is None else (order,)), *constraints_of(grower.task, bounds)]:
        most = bytes_of(*4 * ((grower.most_nodes, np.int64),))
        sent = workspace.bounds.send(given, lambda: most)
    constraints = pack_constraints(grower, sent if order is None else sent[1:])
    return score_nodes(
        grower, m, histograms, larger, constraints, None if order is None else sent[0]
    )


def score_nodes(
    grower: Grower,
    m: int,
    histograms: Any,
    larger: Packed,  # histograms that are not counted, but differences
    constraints: tuple[Packed, Any],  # see `pack_constraints`
    slots: Any = None,
    ranks: Any = None,
    number: Any = None,
) -> DeviceScores:
    """Score the columns of m nodes, or of the first `number`, with arrays on the device.

    With `ranks` (m, d), int32, those that nodes visit first.
    """
    workspace, (monotonic, sets) = grower.workspace, constraints
    arrays = workspace.scores.allocate(
        _arrays(grower, m), lambda: bytes_of(*_arrays(grower, grower.most_nodes))
    )
    scores = DeviceScores._make([*arrays, monotonic, sets])
    grower.kernels(
        "score", "score_columns", (m * grower.table.columns,), grower.rules, grower.table.packed,
        histograms, larger, slots, scores.cumulative, scores.total, monotonic,
        grower.interactions, sets, scores.pack(), ranks, number, threads=LANES,
    )  # fmt: skip
    return scores


def _arrays(grower: Grower, m: int) -> list[Shaped]:
    """Arrays of the scores of m nodes."""
    d, channels, f8 = grower.table.columns, grower.channels, np.float64
    return [
        ((m, channels), np.int64), ((m, d), f8), ((m, d), np.int32), ((m, d), np.uint8),
        ((m, d), f8), ((m, grower.table.cells * channels), np.int64),
    ]  # fmt: skip
