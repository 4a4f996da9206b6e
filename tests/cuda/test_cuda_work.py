"""What kernels read, as the emulator counts it: no more than their work takes."""

import numpy as np
import pytest
from cuda_emulator import accesses, emulated_cuda, launches
from devices import needs_emulator, new_backend
from strategies import Sample, make_task
from tunings import DEVICE, tuned
from twins import grown

pytestmark = needs_emulator

ROWS = 400


def numbers_beside(others: int) -> Sample:
    """A column of numbers and one that tells less; `others` of two values, which have no cuts."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (ROWS, others + 2)).astype(np.float32)
    values[:, :2] = rng.normal(size=(ROWS, 2))
    classes = (values[:, 0] + 0.8 * values[:, 1] + rng.normal(size=ROWS)) > 0
    return Sample(values, classes.astype(np.uint8), None)


def loads(sample: Sample, **limits) -> dict[str, int]:
    """Loads from device arrays by kernel while a tree is grown."""
    with emulated_cuda(check=True):
        launches.clear()
        accesses.clear()
        task = make_task("gini", sample, **limits)
        grown(new_backend("cuda", sample, task), sample, task, max_bins=4, finish_rows=1)
        return {name: accesses[name, "loads"] for name in launches}


@pytest.mark.parametrize("way", ["never", "asked", "always"])
def test_columns_without_candidates_are_not_visited(way):
    """They are seen once a chunk of rows, not once a row."""
    with tuned(DEVICE[way]):
        few, many = (loads(numbers_beside(others), max_depth=1) for others in (2, 40))
    gathering = {"gather_inside", "gather_rows", "count_sub_bins"} & few.keys()
    assert gathering
    for name in gathering:
        assert few[name] > ROWS
        assert many[name] - few[name] < ROWS
