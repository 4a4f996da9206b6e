"""Scores of bin boundaries, and bounds on cuts inside bins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Bounds, Int64s
from gputree.backends.cuda.kernels import LANES, SCORES, Packed
from gputree.backends.cuda.layout import Grower, own_slots, pack_bounds
from gputree.backends.cuda.workspace import Shaped, bytes_of


class DeviceScores(NamedTuple):
    """Best boundary of every (node, column) and the largest bound of its bins, on the device."""

    total: Any  # (m, channels) int64
    best: Any  # (m, d) float64
    bin: Any  # (m, d) int32
    missing_left: Any  # (m, d) uint8
    bound: Any  # (m, d) float64
    cumulative: Any  # (m, cells x channels) int64: sums of the histogram over bins
    monotonic: Packed  # constraints on the nodes' means, for kernels

    def pack(self) -> Packed:
        """Pack the results for every (node, column) for kernels."""
        return SCORES.pack(*self[1:5])


def score(grower: Grower, histograms: Any, slots: Int64s, bounds: Bounds | None) -> DeviceScores:
    """Score every column of every node whose means are within `bounds`."""
    m, workspace = slots.size, grower.workspace
    order, sent = own_slots(slots), []
    if arrays := [array for array in (order, *(bounds or ())[:2]) if array is not None]:
        most = bytes_of(*3 * ((grower.most_nodes, np.int64),))
        sent = workspace.bounds.send(arrays, lambda: most)
    monotonic = pack_bounds(grower, None if bounds is None else sent[-2:])
    arrays = workspace.scores.allocate(
        _arrays(grower, m), lambda: bytes_of(*_arrays(grower, grower.most_nodes))
    )
    scores = DeviceScores._make([*arrays, monotonic])
    grower.kernels(
        "score", "score_columns", (m * grower.table.columns,), grower.rules, grower.table.packed,
        histograms, None if order is None else sent[0], scores.cumulative, scores.total, monotonic,
        scores.pack(), threads=LANES,
    )  # fmt: skip
    return scores


def _arrays(grower: Grower, m: int) -> list[Shaped]:
    """Arrays of the scores of m nodes."""
    d, channels, f8 = grower.table.columns, grower.channels, np.float64
    return [
        ((m, channels), np.int64), ((m, d), f8), ((m, d), np.int32), ((m, d), np.uint8),
        ((m, d), f8), ((m, grower.table.cells * channels), np.int64),
    ]  # fmt: skip
