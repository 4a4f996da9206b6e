"""Sizes that decide how work is cut up on the CPU; no tree depends on them."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.cpu.layout import CHUNK_ROWS


class Tuning(NamedTuple):
    """What hardware will tune, and tests change: see `TUNING`.

    Sizes that kernels are compiled with stand beside the kernels. What other values take is in
    ``docs/decisions/kernels_cpu.md``.
    """

    # Rows of a node that one thread takes at a time.
    chunk_rows: int = CHUNK_ROWS
    # Cells of histograms that one thread scores at a time, at least. To hand work to another thread
    # costs a twentieth of a millisecond and more.
    scored_cells: int = 1 << 12
    # Partial histograms, in all, that threads may fill side by side.
    partial_bytes: int = 1 << 25
    # Histograms of one level, at least; beyond it the table's own size sets the budget.
    least_histogram_bytes: int = 1 << 25

    # Tables of so many rows x columns, at most, are grown from their values, in one block, while
    # kernels of levels are not compiled; and processor seconds that this takes more, for each.
    uncoded_cells: int = 1 << 20
    uncoded_cell_seconds: float = 4e-8

    # Tables of so many rows, at most, are not coded either where bins would take more memory than
    # this: they take about as much as the values of so many rows, and to sort costs less. CPU
    # seconds of 300 x 50,000 float32, depth 1 and grown out, coded and not: 12.5 and 0.9, 14.3 and
    # 3.9; scikit-learn 1.5 and 8.1.
    wide_rows: int = 1 << 11
    wide_bin_bytes: int = 1 << 25
    # What a block may take in which all columns of small nodes are kept sorted. In place of a
    # larger one, each node sorts its columns; grown out, that takes 3.9 s for 1.5 s above.
    block_bytes: int = 1 << 26

    # Smaller tables are not counted into cells: their kernels would take longer to compile
    # than they save.
    counted_table_rows: float = 1 << 16
    # Nodes of fewer rows are refined by sorting alone; infinity: all are.
    counted_rows: float = 1 << 13
    # Of a column's rows, from where it is counted into cells: noise takes a seventh more with 0.5.
    candidate_share: float = 0.25
    # Of a table's rows, in the smallest node that is counted: cells are the same for all nodes.
    node_share: float = 1 / 16
    # Of a table's rows, in nodes in which a column had the greatest bound: then its fine codes are
    # made.
    led_share: float = 0.5
    # Rows of a node a sub-bin, at least, for each statistic of columns that are not counted as a
    # whole.
    sub_bin_rows: float = 2
    # Rows of the table a cell, at least.
    cell_rows: int = 32
    # Counters of a column, at most: they stay in a cache.
    column_bytes: int = 1 << 18
    # Only the columns that a node draws are counted where they are one in so many, or fewer.
    drawn_share: float = 16
    # Of tables of so many rows, at most, each node then sorts what it draws, from the root on; and
    # what such a column counts as in `Finishing`.
    drawn_rows: float = 1 << 14
    sorted_column: float = 3.0

    # See `Finishing`.
    rows_per_statistic: float = 9.0
    # What a column that codes decide counts as there: its values are sorted by counting codes.
    coded_column: float = 0.5
    # Nodes of more rows are finished only where each thread has some to take.
    shared_rows: int = 1 << 12
    # A level takes its time however few rows are left.
    level_cells: int = 1 << 15

    # Of multiway trees: entries x columns that one thread takes at a time, at least; and entries
    # of a span of nodes: what is known of them stays in a core's own cache while all their lists
    # are read.
    lists_span_cells: int = 1 << 15
    lists_span_entries: int = 1 << 16


TUNING = Tuning()
