"""Subsets of categories under limits: against brute force, under other names, on both devices."""

import itertools

import numpy as np
import pytest
from category_oracle import Case, cells_of, check_case, draw_case, gains, statistics_of
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


# ------------------------------------------------------------------- sides without events
def case_of_events(code, y) -> Case:
    X = np.array(code, float)[:, None]
    parameters = {"categorical_split": "ordered", "max_depth": 1}
    return Case(X, np.array([True]), np.array(y), None, "poisson", parameters)


def test_the_best_subset_with_events_on_both_sides_need_not_be_a_prefix():
    """{A} | {B, C}: rates are 16/9, 1 and 2, and {B} | {A, C} has none on the left."""
    code = [0] * 9 + [1] + [2] * 4
    case = case_of_events(code, [2.0] * 8 + [1.0, 0.0] + [2.0] * 4)
    assert_held(case, 0)
    assert case.fit().decision_path(case.X)[:, 1].toarray().ravel().tolist() == [1] * 9 + [0] * 5


def best_of_events(cells: np.ndarray) -> float:
    """Best gain with events on both sides: some category left, another right, the rest in order.

    Scores are convex, so that the rest, on which nothing is required, is split at a mean.
    """
    total, best = cells.sum(axis=0), -np.inf
    order = np.argsort(cells[:, 2] / cells[:, 1], kind="stable")
    for one, other in itertools.permutations(np.flatnonzero(cells[:, 2] > 0), 2):
        rest = cells[order[~np.isin(order, (one, other))]]
        left = cells[one] + np.vstack([np.zeros(4), np.cumsum(rest, axis=0)])
        best = max(best, gains("poisson", left, total).max())
    return best


@pytest.mark.parametrize(("categories", "rows"), [(12, 200), (300, 60)])
def test_events_are_split_best_among_any_number_of_categories(categories, rows):
    """Four categories have events, at rates that differ little, in a few rows or in many."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        code = np.append(np.repeat(np.arange(4), rng.integers(2, rows, 4)), np.arange(categories))
        y = np.where(code < 4, rng.choice([2.0, 2.0, 3.0], code.size), 0.0)
        case = case_of_events(code, y)
        expected = best_of_events(cells_of(case.X[:, 0], statistics_of(case)).known)
        found = case.fit().tree_
        assert found.gain[0] * found.weight[0] == pytest.approx(expected, rel=1e-9)


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
