"""Scores of bin boundaries, and bounds on cuts inside bins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Grower, to_device


class Scores(NamedTuple):
    """Best boundary of every (node, column) and the greatest bound of its bins, on the device."""

    total: Any  # (m, channels) int64
    best: Any  # (m, d) float64
    bin: Any  # (m, d) int32
    missing_left: Any  # (m, d) uint8
    bound: Any  # (m, d) float64
    cumulative: Any  # (m, cells x channels) int64: sums of the histogram over bins


def score(grower: Grower, histograms: Any, slots: Int64s) -> Scores:
    """Score every column of every node."""
    table, task, limits = grower.table, grower.task, grower.task.limits
    xp = cupy()
    m, d, channels = slots.size, table.columns, task.channels
    scores = Scores(
        total=xp.empty((m, channels), dtype=np.int64),
        best=xp.empty((m, d), dtype=np.float64),
        bin=xp.empty((m, d), dtype=np.int32),
        missing_left=xp.empty((m, d), dtype=np.uint8),
        bound=xp.empty((m, d), dtype=np.float64),
        cumulative=xp.empty((m, histograms.shape[1]), dtype=np.int64),
    )
    grower.kernels(
        "score", "score_columns", (m * d,), *grower.criterion, limits.min_samples_leaf,
        limits.min_weight_leaf, d, channels, table.offset, table.missing, table.single,
        histograms, to_device(slots), scores.cumulative, scores.total, scores.best, scores.bin,
        scores.missing_left, scores.bound, threads=32,
    )  # fmt: skip
    return scores
