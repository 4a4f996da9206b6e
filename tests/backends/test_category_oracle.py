"""Subsets of categories under limits: against brute force, under other names, on both devices."""

import pytest
from category_oracle import Case, check_case, draw_case
from twins import fit_both

TABLES = 300  # of 20,000 and more that `category_oracle` runs through at length
MANY_CATEGORIES = 30
EMULATED = 40


def assert_held(case: Case, seed: int, fit=Case.fit) -> None:
    _, found = check_case(case, seed, fit)
    assert not found, (seed, case.criterion, case.parameters, found)


@pytest.mark.full
def test_no_node_of_small_tables_misses_a_subset():
    for seed in range(TABLES):
        assert_held(draw_case(seed), seed)


def test_names_decide_nothing_among_many_categories():
    for seed in range(MANY_CATEGORIES):
        assert_held(draw_case(seed, 13), seed)


@pytest.mark.parametrize("categories", [8, 13])
def test_no_node_of_small_tables_misses_a_subset_on_cuda(cuda_device, categories):
    """CUDA finds the subsets that the CPU finds, checked by the same oracle."""

    def fit(case: Case):
        return fit_both(case.model(), case.X, case.y, case.weight)

    for seed in range(EMULATED):
        assert_held(draw_case(seed, categories), seed, fit)


# ----------------------------------------------------------------------------- the oracle
@pytest.mark.full
@pytest.mark.parametrize(
    ("spoilt", "kinds"),
    [
        ({"min_samples_leaf": 5}, {"leaf", "subset"}),
        ({"min_samples_leaf": 1, "min_weight_fraction_leaf": 0.0}, {"limits"}),
        ({"categorical_split": "one_vs_rest"}, {"subset"}),
    ],
)
def test_the_oracle_sees_trees_of_other_limits(spoilt, kinds):
    seen: set[str] = set()
    for seed in range(60):
        _, found = check_case(draw_case(seed), seed, lambda case: case.fit(**spoilt))
        seen |= {violation.kind for violation in found}
    assert kinds <= seen
