"""Blocks interleaved at atomics, in many orders: kernels give the same results in all."""

import pytest
from cuda_comparisons import COMPARISONS, compare_places
from cuda_emulator import LaunchError, emulated_cuda
from devices import needs_emulator, of_source

pytestmark = needs_emulator

SCHEDULES = range(12)

# Two columns that read the number of sub-bins before either adds its own have the same ones. One
# block after the other, none does.
READ_THEN_ADDED = {
    "? i64(atomicAdd((u64*)tally + CELLS, u64(cells)))": "? i64(atomicAdd((u64*)tally + CELLS, 0))",
    "grid.start[pair] = start;": "atomicAdd((u64*)tally + CELLS, u64(cells));"
    " grid.start[pair] = start;",
}


@pytest.mark.full
@pytest.mark.parametrize("seed", SCHEDULES)
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_all_schedules_give_the_same(comparison, seed):
    with emulated_cuda("random", check=True, seed=seed):
        COMPARISONS[comparison]()


def test_blocks_that_run_side_by_side_stay_within_their_list():
    with emulated_cuda("random", check=True):
        compare_places()


@of_source
def test_a_race_between_blocks_is_found():
    """A race that no order of blocks that run one after another shows."""
    compare_read_then_added("ascending", 0)
    with pytest.raises(LaunchError, match=r"mark_candidates: .*race .*sub_bins\.cu"):
        any(compare_read_then_added("random", seed) for seed in SCHEDULES)


def compare_read_then_added(order: str, seed: int) -> None:
    with emulated_cuda(order, check=True, seed=seed, replace=READ_THEN_ADDED):
        compare_places()
