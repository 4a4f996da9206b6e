"""Ties are ties of the rounded score, and every way of growing takes the same one of them.

Tables full of cuts that are equal in exact arithmetic: mirrored and repeated columns, rows
twice, few values. Where their scores round differently, the highest rounded one is taken.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import admissible, column_cuts, exact_tree, row_statistics
from strategies import PROBLEMS, Sample, make_task
from twins import fit_both

from gputree import DecisionTreeClassifier, DecisionTreeRegressor

# Scores that round: of a node of so few rows, to a few units of the last of 53 bits.
ROUNDING = Fraction(1, 2**46)

CRITERIA = ("gini", "entropy", "squared_error")


def tied_sample(seed: int, criterion: str, weighted: bool) -> Sample:
    """Columns, the same mirrored and the same again; half the tables have every row twice."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 30)), int(rng.integers(1, 4))
    columns = rng.integers(0, 5, (n, d)).astype(float)
    if rng.random() < 0.3:
        columns[rng.random((n, d)) < 0.2] = np.nan
    values = np.concatenate([columns, -columns, columns + 1.0], axis=1)
    y = rng.integers(0, 4, n) / 4.0 if criterion == "squared_error" else rng.integers(0, 3, n)
    shares = np.array(
        [0.25, 0.5, 0.75, 1.75, 1.0] if criterion == "gini" else [0.1, 0.2, 0.3, 0.7, 1.0]
    )
    weight = rng.choice(shares, n) if weighted else None  # gini is for few units of weight
    rows = np.tile(np.arange(n), rng.integers(1, 3))
    return Sample(values, y, weight).take(rows)


@given(st.integers(0, 2**32 - 1), st.sampled_from(PROBLEMS))
def test_every_path_takes_the_same_of_equal_cuts(grow_tree, seed, problem):
    """Boundaries of bins, cuts refined inside them, subtrees finished in one go."""
    criterion, weighted = problem
    sample = tied_sample(seed, criterion, weighted)
    task = make_task(criterion, sample)
    expected = exact_tree(sample.values, task)
    for finish_rows, max_bins in ((None, 256), (1, 256), (1, 2), (1, 3), (6, 4)):
        assert grow_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins) == expected


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("criterion", CRITERIA)
def test_beside_a_category_on_both_devices(cuda_device, criterion, seed):
    sample = tied_sample(seed, criterion, weighted=seed % 2 == 0)
    model = DecisionTreeRegressor if criterion == "squared_error" else DecisionTreeClassifier
    X = np.column_stack([sample.values, np.arange(len(sample.y)) % 3])  # and a category
    fitted = model(criterion=criterion, categorical_features=[X.shape[1] - 1])
    fit_both(fitted, X, sample.y, sample.weight)


# ---------------------------------------------------------------- exact arithmetic
def exact_score(task, left, total) -> Fraction:
    """The score of a cut as a fraction: gini, or squared error in squared units."""
    left, total = [int(x) for x in left], [int(x) for x in total]
    if task.n_classes:
        right = [t - a for a, t in zip(left, total, strict=True)]
        return sum(Fraction(sum(a * a for a in side), sum(side)) for side in (left, right))
    (w, s), (whole, whole_sum) = left[:2], total[:2]
    return Fraction((s * whole - whole_sum * w) ** 2, whole**2 * w * (whole - w))


def node_scores(sample: Sample, task, rows) -> dict[tuple[int, float, bool], Fraction]:
    """Exact scores of all cuts of a node, in the order of the tie rule."""
    statistics, found = row_statistics(task)[rows], {}
    total = statistics.sum(axis=0)
    for feature, column in enumerate(sample.values[rows].T):
        for missing_left in (False, True)[: 1 + np.isnan(column).any()]:
            _, _, counts, left, thresholds = column_cuts(column, statistics, missing_left)
            for i in np.flatnonzero(admissible(task, left, total, counts, len(rows))):
                cut = feature, thresholds[i], missing_left
                found[cut] = exact_score(task, left[i], total)
    return found


@pytest.mark.parametrize(
    "problem",
    [p for p in PROBLEMS if p[0] not in ("entropy", "poisson")],
    ids=lambda p: f"{p[0]}-{p[1]}",
)
def test_the_cut_taken_is_the_best_but_for_rounding(problem):
    """Also where it is not the first of those that are equal in exact arithmetic."""
    criterion, weighted = problem
    tied = 0
    for seed in range(12):
        sample = tied_sample(seed, criterion, weighted)
        task = make_task(criterion, sample)
        tree = exact_tree(sample.values, task)
        for node in np.flatnonzero(np.array(tree.first_child) >= 0):
            rows = np.array(tree.rows[node])
            found = node_scores(sample, task, rows)
            seen = np.isnan(sample.values[rows, tree.feature[node]]).any()
            side = bool(tree.missing_left[node]) if seen else False
            taken = found[tree.feature[node], tree.threshold[node], side]
            best = max(found.values())
            assert best - taken <= ROUNDING * best
            tied += sum(score == best for score in found.values()) > 1
    assert tied > 50
