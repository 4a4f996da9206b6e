"""Sizes that decide how work on a table in parts is cut up; no tree depends on them."""

from __future__ import annotations

from typing import NamedTuple


class Tuning(NamedTuple):
    """What hardware will tune, and tests change: see `TUNING`. None of it is measured."""

    # Histograms of one level, at most: the table does not fit into memory, so they must.
    most_histogram_bytes: int = 1 << 27
    # Rows that are gathered at once, to look into bins or to grow small nodes on, at most; one
    # small node's at least, whose size is bounded (`gputree.growth.stopping.MOST_CELLS`).
    gathered_bytes: int = 1 << 27
    # Bits of the values that are told apart in one pass: 4,096 cells.
    digit: int = 12
    # See `Finishing`: less than where rows need not be gathered.
    rows_per_statistic: float = 6.0


TUNING = Tuning()
