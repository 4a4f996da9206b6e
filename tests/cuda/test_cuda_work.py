"""Reads of kernels, counted by the emulator: no more than their work needs."""

import numpy as np
import pytest
from cuda_emulator import accesses, emulated_cuda, launches
from devices import needs_emulator, new_backend, tune
from strategies import Sample, make_task
from tunings import DEVICE, tuned
from twins import grown, table

from gputree.backends import binning
from gputree.backends.cuda import encode, kernels

pytestmark = needs_emulator

ROWS = 400


def numbers_beside(others: int) -> Sample:
    """A column of numbers and one less informative; `others` of two values, which have no cuts."""
    rng = np.random.default_rng(0)
    numbers, noise = rng.normal(size=(ROWS, 2)), rng.normal(size=ROWS)  # for any `others` the same
    values = np.hstack([numbers, rng.integers(0, 2, (ROWS, others))]).astype(np.float32)
    classes = (values[:, 0] + 0.8 * values[:, 1] + noise) > 0
    return Sample(values, classes.astype(np.uint8), None)


def loads(sample: Sample, max_bins: int = 4, max_depth: int = 1) -> dict[str, int]:
    """Loads from device arrays by kernel while a tree is grown."""
    with emulated_cuda(check=True):
        launches.clear()
        accesses.clear()
        task = make_task("gini", sample, max_depth=max_depth)
        grown(new_backend("cuda", sample, task), sample, task, max_bins=max_bins, finish_rows=1)
        return {name: accesses[name, "loads"] for name in launches}


@pytest.mark.parametrize("way", ["never", "asked", "always"])
def test_columns_without_candidates_are_not_visited(way):
    """They are seen once a chunk of rows, not once a row."""
    with tuned(DEVICE[way]):
        few, many = (loads(numbers_beside(others)) for others in (2, 40))
    for name in ("gather_rows", "count_sub_bins"):
        assert few[name] > ROWS
        assert many[name] - few[name] < ROWS


def test_bins_of_single_values_are_not_searched():
    sample = numbers_beside(3)
    sample = sample._replace(values=np.ascontiguousarray(sample.values[:, 2:]))
    assert not loads(sample).keys() & {"mark_candidates", "gather_rows", "scan_candidates"}


def test_where_edges_lie_in_shared_memory():
    assert f"#define EDGE_STRIDE {encode.EDGE_STRIDE} " in kernels.source("encode")


def test_a_code_takes_a_value_and_a_flag():
    """Edges are read once a chunk of rows."""
    sample = table("gini", False, n=ROWS, d=5)
    edges = 5 * binning.MAX_BINS
    assert loads(sample, max_bins=200)["encode_values"] < 3 * sample.values.size + edges


def test_listed_pairs_are_gathered_without_their_rows(monkeypatch):
    """A sub-bin a pair, and row, value and places of the few that are candidates."""
    sample, found = numbers_beside(0), {}
    for listed in (0.0, 4.0):
        tune(monkeypatch, "cuda", cell_rows=4, listed_share=listed)
        found[listed] = loads(sample)["gather_rows"]
    assert found[4.0] < 0.5 * found[0.0]
