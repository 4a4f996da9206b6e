"""Scores of bin boundaries, and bounds on cuts inside bins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Bounds, Int64s
from gputree.backends.cuda.layout import Grower, own_slots, pack_bounds
from gputree.backends.cuda.structs import SCORES, Packed
from gputree.backends.cuda.workspace import Shaped, bytes_of


class Scores(NamedTuple):
    """Best boundary of every (node, column) and the greatest bound of its bins, on the device."""

    total: Any  # (m, channels) int64
    best: Any  # (m, d) float64
    bin: Any  # (m, d) int32
    missing_left: Any  # (m, d) uint8
    bound: Any  # (m, d) float64
    cumulative: Any  # (m, cells x channels) int64: sums of the histogram over bins
    held: Packed  # what the nodes' means keep within, for kernels

    @property
    def fields(self) -> tuple[Any, ...]:
        """What is known of every (node, column), as kernels take it."""
        return self.best, self.bin, self.missing_left, self.bound

    def pack(self) -> Packed:
        """For kernels."""
        return SCORES.pack(*self.fields)


def score(grower: Grower, histograms: Any, slots: Int64s, bounds: Bounds | None) -> Scores:
    """Score every column of every node, whose means keep within `bounds`."""
    table, m, d = grower.table, slots.size, grower.table.columns
    room, most = grower.workspace.scores, lambda: bytes_of(*_arrays(grower, grower.most_nodes))
    order, held = _send(grower, own_slots(slots), bounds)
    scores = Scores._make([*room.carve(_arrays(grower, m), most), held])
    grower.kernels(
        "score", "score_columns", (m * d,), grower.rules, table.packed, histograms,
        order, scores.cumulative, scores.total, held, scores.pack(),
        threads=32,
    )  # fmt: skip
    return scores


def _send(grower: Grower, order: Int64s | None, bounds: Bounds | None) -> tuple[Any, Packed]:
    """The nodes' slots, or None, and what their means keep within, on the device."""
    told = [array for array in (order, *(bounds or ())) if array is not None]
    shapes = 3 * ((grower.most_nodes, np.int64),)
    sent = grower.workspace.bounds.send(told, lambda: bytes_of(*shapes)) if told else []
    held = pack_bounds(grower, None if bounds is None else sent[-2:])
    return None if order is None else sent[0], held


def _arrays(grower: Grower, m: int) -> list[Shaped]:
    """Fields of the scores of m nodes."""
    d, channels, f8 = grower.table.columns, grower.task.channels, np.float64
    return [
        ((m, channels), np.int64), ((m, d), f8), ((m, d), np.int32), ((m, d), np.uint8),
        ((m, d), f8), ((m, grower.cells * channels), np.int64),
    ]  # fmt: skip
