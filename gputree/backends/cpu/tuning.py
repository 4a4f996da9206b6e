"""Sizes that decide how work is cut up on the CPU; no tree depends on them."""

from __future__ import annotations

from typing import NamedTuple

from gputree.backends.cpu.layout import CHUNK_ROWS


class Tuning(NamedTuple):
    """What hardware will tune, and tests change: see `TUNING`.

    Sizes that kernels are compiled with stand beside the kernels. Figures of cells are measured
    on 1,000,000 rows x 14, depth 8, processor seconds of a fit, on a busy machine.
    """

    # Rows of a node that one thread takes at a time.
    chunk_rows: int = CHUNK_ROWS
    # Cells of histograms that one thread scores at a time, at least. To hand work to another thread
    # costs a twentieth of a millisecond and more. Skin grown out, 2 threads: 23.7 ms where little
    # was handed out as well, 20.9 ms where a span takes a tenth.
    scored_cells: int = 1 << 12
    # Partial histograms, in all, that threads may fill side by side.
    partial_bytes: int = 1 << 25
    # Histograms of one level, at least; beyond it the table's own size sets the budget.
    least_histogram_bytes: int = 1 << 25

    # Tables of so many rows x columns, at most, are grown from their values, in one block, while
    # kernels of levels are not compiled; and processor seconds that this takes more, for each.
    # 20,000 x 28, grown out, depth 8, depth 3: 62, 45, 35 ms in place of 45, 29, 14, or 3e-8 to
    # 4e-8 a cell; 5,000 x 28 takes as long as by levels, 100,000 x 28 6e-8 a cell more.
    uncoded_cells: int = 1 << 20
    uncoded_cell_seconds: float = 4e-8

    # Smaller tables are not counted into cells: their kernels would take longer to compile
    # than they save.
    counted_table_rows: float = 1 << 16
    # Nodes of fewer rows are refined by sorting alone; infinity: all are. Normal columns with
    # signal: 0.49 from 16,384 on, 0.42 from 8,192.
    counted_rows: float = 1 << 13
    # Of a column's rows, from where it is counted into cells: 0.25 and 0.5 are alike.
    alive_share: float = 0.25
    # Of a table's rows, in the smallest node that is counted: cells are the same for all nodes.
    node_share: float = 1 / 16
    # Rows of the table a cell, at least.
    cell_rows: int = 64
    # Counters of a column, at most. Noise of 2 classes: 1.08 with 64 KiB or more (128 rows a
    # cell), 1.00 with 32 KiB, 1.31 with 16 KiB, of which gathering took most then.
    column_bytes: int = 1 << 17
    # Counters that are filled at once, at most. Root of the noise: 71 ms with 4 columns of
    # 64 KiB at once, 88 ms with 2, 106 ms with all 14.
    group_bytes: int = 1 << 18
    sift_rows: int = 256  # bins of so many rows are sifted before they are sorted
    sifted_rows: int = 64  # rows a cell then

    # See `Finishing`. Grown out, processor seconds with 3, 6, 9, 12, 18: 1,000,000 x 28 distinct
    # values 3.78, 3.37, 3.33, 3.35, 3.39; 300,000 x 28, 7 classes 1.14, 1.12, 1.16, 1.19, 1.19.
    rows_per_statistic: float = 9.0
    # What a column that codes decide counts as there: its values are sorted by counting codes.
    # 580,000 x 54, most columns binary, grown out, seconds of two threads where nodes of 1, 2, 3, 6
    # times the rows that 6 a statistic make are finished: 0.75, 0.68, 0.66, 0.66. At depth 8,
    # processor seconds with 1/2 and 1/8: 0.38, 0.40.
    coded_column: float = 0.5
    # Nodes of more rows are finished only where each thread has some to take. Letter, 20,000 rows,
    # two threads, with nodes of up to 5,000, 7,500, 10,000, 20,000 rows: 18, 16, 17, 23 ms.
    shared_rows: int = 1 << 12
    # Skin grown out, of which a level takes 0.6 ms however few rows are left: 36 ms with 0, 28 ms.
    level_cells: int = 1 << 15

    # Of multiway trees: entries x columns that one thread takes at a time, at least; and entries
    # of a span of nodes: what is known of them stays in a core's own cache while all their lists
    # are read.
    lists_span_cells: int = 1 << 15
    lists_span_entries: int = 1 << 16


TUNING = Tuning()
