"""Sizes that decide how work is cut up on the CPU; no tree depends on them."""

from typing import NamedTuple

from gputree.backends.cpu.layout import CHUNK_ROWS


class CpuTuning(NamedTuple):
    """Sizes that were chosen by measurement, and that tests change: see `TUNING`.

    Sizes that kernels are compiled with are next to the kernels. Measurements of other values are
    in ``docs/decisions/kernels_cpu.md``.
    """

    # Rows of a node that one thread processes at a time.
    chunk_rows: int = CHUNK_ROWS
    # Minimum number of histogram cells that one thread scores at a time. To give work to another
    # thread costs a twentieth of a millisecond and more.
    scored_cells: int = 1 << 12
    # Bytes of all partial histograms that threads may fill at the same time.
    partial_bytes: int = 1 << 25
    # Minimum bytes of the histograms of one level; for larger tables their size sets the limit.
    least_histogram_bytes: int = 1 << 25

    # Maximum rows x columns of tables that are grown from their values, in one block, while kernels
    # of levels are not compiled; and the CPU seconds that this takes more, per cell.
    uncoded_cells: int = 1 << 20
    uncoded_cell_seconds: float = 4e-8

    # Maximum rows of tables that are not coded either where bins would take more memory than this:
    # they take about as much as the values of so many rows, and sorting costs less. CPU seconds of
    # 300 x 50,000 float32, depth 1 and full depth, coded and not: 12.5 and 0.9, 14.3 and 3.9;
    # scikit-learn 1.5 and 8.1.
    wide_rows: int = 1 << 11
    wide_bin_bytes: int = 1 << 25
    # Maximum bytes of a block in which all columns of small nodes are kept sorted. In place of a
    # larger one, each node sorts its columns; to full depth, that takes 3.9 s for 1.5 s above.
    block_bytes: int = 1 << 26

    # Minimum rows of a table that is counted into sub-bins: for smaller ones their kernels would
    # take longer to compile than they save.
    counted_table_rows: float = 1 << 16
    # Minimum rows of a node that is not refined by sorting only; infinity: all are.
    counted_rows: float = 1 << 13
    # Minimum fraction of a column's rows in candidate bins where it is counted into sub-bins as a
    # whole: noise takes a seventh more with 0.5.
    candidate_share: float = 0.25
    # Fraction of a table's rows in the smallest node that is counted: sub-bins are the same for all
    # nodes.
    node_share: float = 1 / 16
    # Fraction of a table's rows, over nodes in which a column had the highest bound, from which on
    # its fine codes are made.
    led_share: float = 0.5
    # Minimum rows of a node per sub-bin and statistic, in columns that are not counted as a whole.
    sub_bin_rows: float = 2
    # Minimum rows of the table per sub-bin.
    cell_rows: int = 32
    # Maximum bytes of the counters of a column: they stay in a cache.
    column_bytes: int = 1 << 18
    # Minimum ratio of columns to drawn columns with which nodes count only the drawn ones.
    drawn_share: float = 16
    # Maximum rows of tables in which each node then sorts the columns that it draws, from the root
    # on; and the weight of such a column in `Finishing`.
    drawn_rows: float = 1 << 14
    sorted_column: float = 3.0

    # Maximum rows x columns of tables that are ranked as a whole where nodes draw columns, whose
    # trees are then grown from the root on.
    ranked_cells: int = 1 << 20
    # The same for the trees of a forest, which share the ranks, where cuts of at least
    # `ranked_share` of the columns are by code.
    coded_ranked_cells: int = 1 << 24
    # The same for at least `ranked_trees` trees where they are not.
    shared_ranked_cells: int = 1 << 22
    ranked_trees: int = 8
    # Maximum number of distinct values that are listed by rank, as many of each column. Those of
    # columns of more are read from rows, which takes a twentieth of a fit; to list all of a large
    # table takes twice the memory of its ranks.
    listed_values: int = 1 << 19
    # Minimum fraction of columns whose cuts are by code with which nodes of larger tables are
    # ranked some at a time, and nodes that draw few of many columns read ranks, too.
    ranked_share: float = 0.5
    # Maximum rows of a node whose ranks, targets and weights are copied before its subtree is
    # grown: where all ranks take more bytes than `copied_bytes`, a cache of a core, and the table
    # has at most `copied_columns` columns for each one that a node draws.
    copied_rows: int = 1 << 12
    copied_bytes: int = 1 << 20
    copied_columns: float = 8.0

    # Maximum fraction of values other than 0, and minimum number of columns, with which trees are
    # grown from the root on over these values alone.
    sparse_share: float = 1 / 16
    sparse_columns: int = 64
    # Maximum number of bits of a column of theirs for each of its rows; else it has none.
    bits_per_row: float = 256

    # See `Finishing`.
    rows_per_statistic: float = 9.0
    # Weight in `Finishing` of a column whose cuts are by code: its values are sorted by counting
    # codes.
    coded_column: float = 0.5
    # Nodes of more rows are small only where each thread has some to build.
    shared_rows: int = 1 << 12
    # A level takes time however few rows are left.
    level_cells: int = 1 << 15
    # The same where nodes draw columns, which they read alone; weighted by `coded_column`.
    drawn_level_cells: int = 1 << 17

    # Of multiway trees: minimum entries x columns that one thread processes at a time; and entries
    # of a span of nodes, whose data stay in the cache of a core while all their lists are read.
    lists_span_cells: int = 1 << 15
    lists_span_entries: int = 1 << 16


TUNING = CpuTuning()
