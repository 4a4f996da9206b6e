"""Blocks interleaved at atomics, in many orders: kernels give the same results in all."""

import pytest
from cuda_comparisons import COMPARISONS, compare_places
from cuda_emulator import LaunchError, emulated_cuda
from devices import needs_emulator, of_source

pytestmark = needs_emulator

SCHEDULES = range(12)

# Places in the list of bins are taken by columns whose rows do not fit, too: others are then behind
# the list's end. One block after the other, none of those fits.
OLD_TAKE = {"u64(fits ? bins : 0)": "u64(bins)"}


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
    compare_old_take("ascending", 0)
    with pytest.raises(LaunchError, match=r"mark_inside: .*out of bounds write .*inside\.cu"):
        any(compare_old_take("random", seed) for seed in SCHEDULES)


def compare_old_take(order: str, seed: int) -> None:
    with emulated_cuda(order, check=True, seed=seed, replace=OLD_TAKE):
        compare_places()
