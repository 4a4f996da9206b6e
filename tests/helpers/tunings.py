"""Ways that growth may take over one table, none of which changes the tree."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from gputree.backends.cpu import tuning as cpu_tuning
from gputree.backends.cpu.tuning import TUNING, CpuTuning
from gputree.backends.cuda import tuning as cuda_tuning

NEVER = TUNING._replace(counted_rows=np.inf)
# Every column of every node is counted, into cells of a row on average.
ALWAYS = CpuTuning(
    counted_table_rows=0, counted_rows=0, candidate_share=0.0, node_share=0.0, cell_rows=1,
    column_bytes=1 << 17, sub_bin_rows=0.0,
)  # fmt: skip
HOST = {
    "never": NEVER,
    "default": TUNING,
    # The rows found in candidate bins are counted: of columns with fine codes, or without.
    "found": ALWAYS._replace(candidate_share=2.0, led_share=0.0),
    "found by value": ALWAYS._replace(candidate_share=2.0, led_share=np.inf, sub_bin_rows=0.04),
    "few cells": ALWAYS._replace(column_bytes=1 << 8, candidate_share=0.5),
    "always": ALWAYS,
}
# Of nodes that draw columns, these alone are looked at: sorted from the root on, or counted.
_DRAWN = TUNING._replace(drawn_share=1, ranked_share=np.inf)
DRAWN = [_DRAWN._replace(drawn_rows=rows) for rows in (np.inf, 0)]
# Nodes that draw columns read ranks: of the table, or of some nodes at a time.
RANKED = [
    TUNING._replace(ranked_share=0.0, ranked_cells=cells, coded_ranked_cells=cells)
    for cells in (np.inf, 0)
]
# Small nodes have copies of the ranks of their rows, and thresholds are made of values of rows.
_COPIED = RANKED[0]._replace(copied_bytes=0, copied_columns=np.inf, listed_values=0)
RANKED += [_COPIED._replace(copied_rows=rows) for rows in (6, 100)]
# Nodes read the values other than 0, from the root on; columns have bits or not.
SPARSE = [
    TUNING._replace(sparse_share=1.0, sparse_columns=1, bits_per_row=bits) for bits in (256, 0)
]
# All columns of the rows of such nodes are kept sorted.
SORTED = TUNING._replace(ranked_share=np.inf, ranked_cells=0)
# All columns of a small node are sorted anew in each node below it.
WIDE = TUNING._replace(block_bytes=0)
DEVICE = {
    "never": cuda_tuning.TUNING._replace(fewest_slots=np.inf),
    "asked": cuda_tuning.TUNING._replace(fewest_slots=0, slot_share=0.0),
    "few cells": cuda_tuning.CudaTuning(
        fewest_slots=1, slot_share=0.0, cell_rows=5, listed_share=0.0
    ),
    "always": cuda_tuning.CudaTuning(fewest_slots=1, slot_share=0.0, cell_rows=1),
}


@contextmanager
def tuned(tuning: CpuTuning | cuda_tuning.CudaTuning) -> Iterator[None]:
    """Refine nodes with these sizes within the block, on the host or on a device."""
    module = cpu_tuning if isinstance(tuning, CpuTuning) else cuda_tuning
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TUNING", tuning)
        yield


@contextmanager
def finishing(rows: int):
    """Make nodes of up to `rows` rows small within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gputree.growth.grower.finish_rows", lambda *_: rows)
        patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
        yield
