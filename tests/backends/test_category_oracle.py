"""Subsets of categories under limits: against brute force, under other names, on both devices."""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np
import pytest
from category_oracle import Case, check_case, draw_case
from twins import fit_both

from gputree import DecisionTreeClassifier

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
    """What the CPU finds, and held to the same."""

    def fit(case: Case):
        return fit_both(case.model(), case.X, case.y, case.weight)

    for seed in range(EMULATED):
        assert_held(draw_case(seed, categories), seed, fit)


# ------------------------------------------------------------------------ one table by hand
CLASS_COUNTS = {
    "a": (0, 1), "b": (0, 4), "c": (3, 4), "high": (1, 2), "prof": (0, 1), "univ": (4, 8),
    "unk": (1, 0),
}  # fmt: skip


def rows_by_name(names) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array(list(CLASS_COUNTS.values()))
    X = np.repeat(np.array(names, dtype=object), counts.sum(axis=1))[:, None]
    return X, np.concatenate([np.repeat([0, 1], pair) for pair in counts])


def test_a_limit_hides_no_subset_under_any_names():
    """high and univ have one share of the classes: as names, they must not decide."""
    found = set()
    for names in islice(permutations(CLASS_COUNTS), 0, None, 41):
        X, y = rows_by_name(names)
        model = DecisionTreeClassifier(max_depth=1, min_samples_leaf=7, device="cpu").fit(X, y)
        found.add((model.tree_.gain[0], *model.tree_.n_rows.tolist()))
    assert len(found) == 1
    assert next(iter(found))[0] * y.size == pytest.approx(1.036, abs=5e-4)


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
