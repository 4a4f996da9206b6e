"""Trees whose cuts are drawn: against one that is grown row by row, and drawn evenly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles import tie_rank
from scipy.stats import chisquare, kstest
from sklearn import ensemble

from gputree import (
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)
from gputree.arithmetic.bits import child_key, mix
from gputree.backends.cpu import drawn_values as columns_kernels
from gputree.backends.cpu.cut import drawn_columns
from gputree.backends.cpu.drawn_values import first_difference
from gputree.backends.cpu.ranked import drawn as ranked_drawn
from gputree.backends.cpu.ranked import grower
from gputree.compilation.tiers import forced
from gputree.estimators import cart


def hashed(key, f, what):
    with np.errstate(over="ignore"):
        return mix(mix(np.uint64(key) ^ (np.uint64(what) << np.uint64(56))) + np.uint64(f))


def fraction(bits):
    return int(bits >> np.uint64(11)) * 2.0**-53


def gini(y, weight):
    """Sum of squared class weights over their sum: more is better."""
    sums = np.bincount(y, weight)
    return (sums**2).sum() / sums.sum()


def squared_error(y, weight):
    """Squared sum over the weight."""
    return (y * weight).sum() ** 2 / weight.sum()


def absolute_error(y, weight):
    """Minimum loss by a prediction, negative."""
    return -min((weight * np.abs(y - m)).sum() for m in y)


class Naive:
    """A tree of drawn cuts, one decision at a time, by the sum of a score over targets (n, k).

    `found` has the nodes of the tree that is checked, as `in_preorder`.
    """

    def __init__(self, X, y, weight, score, categories, tree, found):
        self.X, self.y, self.weight, self.categories = X, y, weight, categories
        self.max_features, self.lowest = tree.max_features, tree.min_samples_leaf
        self.random_ties, self.score_of, self.found = tree.ties == "random", score, iter(found)

    def numbers(self, rows, f, key):
        x = self.X[rows, f].astype(float)
        if not self.categories[f]:
            return x
        with np.errstate(over="ignore"):
            of = [np.nan if c != c else fraction(mix(hashed(key, f, 3) + np.uint64(c))) for c in x]
        return np.array(of, self.X.dtype).astype(float)

    def cut(self, rows, f, key):
        """Mask of the rows that go left of the drawn cut; None for a constant column."""
        x = self.numbers(rows, f, key)
        missing = np.isnan(x)
        if missing.all():
            return None
        low, high = np.nanmin(x), np.nanmax(x)
        if low == high:
            return ~missing if missing.any() else None
        if self.categories[f]:
            digits = np.array([list(format(int(np.nan_to_num(v) * 2**53), "054b")) for v in x])
            differ = (digits[~missing] != digits[~missing][0]).any(axis=0)
            left = (digits[:, np.argmax(differ)] == "0") & ~missing
            return left | missing if missing.any() and self.sends_missing_left(f, key) else left
        share = fraction(hashed(key, f, 1))
        threshold = max(low * (1.0 - share) + high * share, low)
        left = x <= (threshold if threshold < high else low)
        if missing.any() and self.sends_missing_left(f, key):
            left = left | missing
        return left

    def sends_missing_left(self, f, key):
        return int(hashed(key, f, 2) >> np.uint64(63)) == 0

    def score(self, rows, left):
        """Sum over sides and targets; of equal absolute errors, the most even cut is better."""
        sides = [rows[left], rows[~left]]
        total = sum(self.score_of(y[side], self.weight[side]) for side in sides for y in self.y.T)
        by_loss = self.score_of is absolute_error
        return total, by_loss * min(self.weight[side].sum() for side in sides)

    def grow(self, rows, key):
        """Nodes in preorder: a column and the rows on the left, or the rows of a leaf."""
        chosen = next(self.found)
        if rows.size < 2 or (self.y[rows] == self.y[rows[0]]).all():
            return [rows]
        cuts = []
        order = drawn_columns(self.max_features, np.uint64(key), np.ones(self.X.shape[1], np.bool_))
        for c, f in enumerate(order):
            if c >= self.max_features and cuts:
                break
            left = self.cut(rows, f, key)
            if left is None or min(left.sum(), (~left).sum()) < self.lowest:
                continue
            score, evenness = self.score(rows, left)
            rank = tie_rank(self.random_ties, int(key), int(f))
            cuts.append((-score, -evenness, rank, int(f), left))
        if not cuts:
            return [rows]
        best = min(cuts)[:2]
        if self.y.shape[1] > 1:  # rounding decides among equal sums over targets
            cuts = [cut for cut in cuts if cut[3] == chosen[0] and np.allclose(cut[:2], best)]
        *_, f, left = min(cuts)
        with np.errstate(over="ignore"):
            below = [
                self.grow(rows[side], child_key(np.uint64(key), ordinal))
                for ordinal, side in enumerate((left, ~left))
            ]
        return [(f, rows[left]), *below[0], *below[1]]


def in_preorder(tree, reached, node=0):
    """Like `Naive.grow`, for a tree whose nodes the rows have reached."""
    rows = np.flatnonzero(reached[:, node].toarray()[:, 0])
    if tree.is_leaf[node]:
        return [rows]
    first = tree.first_child[node]
    left = np.flatnonzero(reached[:, first].toarray()[:, 0])
    below = [in_preorder(tree, reached, int(first) + side) for side in range(2)]
    return [(int(tree.feature[node]), left), *below[0], *below[1]]


def assert_same(expected, found):
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        if isinstance(one, tuple):
            assert one[0] == other[0]
            one, other = one[1], other[1]
        np.testing.assert_array_equal(one, other)


def test_categories_whose_hashes_are_equal_in_a_node_may_differ_below_it(monkeypatch):
    """A hash says 0 or a half only: other than numbers, columns are not constant for good."""
    monkeypatch.setattr(columns_kernels, "fraction_of", lambda bits: int(bits >> np.uint64(63)) / 2)
    monkeypatch.setitem(globals(), "fraction", lambda bits: int(bits >> np.uint64(63)) / 2)
    with forced("never"):
        for seed in range(8):
            check_against_the_naive_tree(seed, np.float64)
            check_against_the_naive_tree(seed, np.float64, squared_error, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(6))
def test_the_tree_is_the_naive_one(seed, dtype):
    check_against_the_naive_tree(seed, dtype)


@pytest.mark.parametrize("score", [gini, squared_error, absolute_error])
@pytest.mark.parametrize("seed", range(6))
def test_the_tree_of_several_targets_is_the_naive_one(seed, score, monkeypatch):
    """Also where nodes are searched by several threads."""
    monkeypatch.setattr(grower, "FEWEST_SHARED", 8)
    monkeypatch.setattr(grower, "MOST_WHOLE", [8, 60][seed % 2])
    monkeypatch.setattr(grower, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(ranked_drawn, "BLOCK_COLUMNS", [2, 64][seed // 2 % 2])
    with forced("never"):
        check_against_the_naive_tree(seed, [np.float32, np.float64][seed % 2], score, 3)


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_by_absolute_error_is_the_naive_one(seed):
    with forced("never"):
        check_against_the_naive_tree(seed, np.float64, absolute_error)


def check_against_the_naive_tree(seed, dtype, score=gini, k=1):
    rng = np.random.default_rng(seed)
    n = 60
    X = np.round(rng.normal(size=(n, 4)), 1).astype(dtype)
    X[rng.random((n, 4)) < 0.15] = np.nan
    X[:, 3] = 1.0
    words = rng.choice(list("abcdef"), n)
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(word=words)
    y = rng.integers(0, 2 if score is gini else 9, (n, k))
    weight = rng.integers(1, 4, n).astype(float)
    least, n_columns = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    kind = DecisionTreeClassifier if score is gini else DecisionTreeRegressor
    tree = kind(
        splitter="random",
        criterion=score.__name__,
        max_features=n_columns,
        n_jobs=2,
        min_samples_leaf=least,
        random_state=seed,
        ties=["first", "random"][seed % 2],
    ).fit(frame, y if k > 1 else y[:, 0], sample_weight=weight)
    values = np.column_stack([X, np.searchsorted(np.unique(words), words)]).astype(dtype)
    found = in_preorder(tree.tree_, tree.decision_path(frame).tocsc())
    naive = Naive(values, y, weight, score, [0, 0, 0, 0, 6], tree, found)
    key = np.random.RandomState(seed).randint(np.iinfo(np.int32).max)
    assert_same(naive.grow(np.arange(n), key), found)


def test_cuts_are_drawn_evenly_between_the_ends():
    X = np.array([[2.0], [3.0], [6.0]])
    cuts = [
        DecisionTreeRegressor(splitter="random", max_depth=1, random_state=seed)
        .fit(X, [0.0, 1.0, 5.0])
        .tree_.threshold[0]
        for seed in range(400)
    ]
    assert kstest(cuts, "uniform", (2.0, 4.0)).pvalue > 1e-3


def test_every_subset_of_categories_is_drawn_as_often():
    """Draw the 14 subsets of four categories, without none and all."""
    drawn = []
    for key in range(1_500):
        with np.errstate(over="ignore"):
            numbers = [fraction(mix(hashed(key, 0, 3) + np.uint64(c))) for c in range(4)]
        threshold = first_difference(min(numbers), max(numbers))
        drawn.append(sum((x <= threshold) << c for c, x in enumerate(numbers)))
    subsets, counts = np.unique(drawn, return_counts=True)
    assert subsets.tolist() == list(range(1, 15))
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(
    ("low", "high", "middle"),
    [
        (0.0, 2.0**-53, 2.0**-53),
        (0.25, np.nextafter(0.25, 1.0), np.nextafter(0.25, 1.0)),
        (1.0 - 2.0**-24, 1.0, 1.0 - 2.0**-25),  # of float32, rounded up
        (0.1, 0.9, 0.5),
    ],
)
def test_the_first_difference_lies_between_the_ends(low, high, middle):
    assert low <= first_difference(low, high) < middle <= high


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_targets_are_parted_until_they_are_equal(criterion):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 4, 80).astype(float)
    tree = DecisionTreeRegressor(splitter="random", criterion=criterion, random_state=0).fit(X, y)
    if criterion == "squared_error":
        assert (tree.predict(X) == y).all()
    else:  # of which no leaf predicts 0
        assert tree.get_n_leaves() > 20
        assert (tree.predict(X) > 0).all()
    tree.tree_.check()
    limited = DecisionTreeRegressor(
        splitter="random", criterion=criterion, max_depth=3, min_samples_leaf=9, random_state=0
    ).fit(X, y)
    assert limited.get_depth() <= 3
    assert limited.tree_.n_rows.min() >= 9


def test_predictions_rise_with_a_column_that_they_are_to_rise_with():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    forest = DecisionTreeRegressor(splitter="random", monotonic_cst=[1, 0], random_state=0)
    grid = np.column_stack([np.linspace(-3, 3, 50), np.zeros(50)])
    assert (np.diff(forest.fit(X, y).predict(grid)) >= 0).all()


def test_tables_in_batches_are_refused():
    X, y = np.arange(8.0)[:, None], [0, 1] * 4
    table = CodedTable.from_batches(lambda: iter([X[:4], X[4:]]))
    for estimator in (
        ExtraTreesClassifier(n_estimators=1),
        DecisionTreeClassifier(splitter="random"),
    ):
        for labels in (y, np.stack([y, y], axis=1)):
            with pytest.raises(ValueError, match="Cuts are drawn on the CPU, in tables in memory"):
                estimator.fit(table, labels)


def test_cuts_are_drawn_on_the_cpu_where_there_is_a_device(monkeypatch):
    monkeypatch.setattr(cart, "resolve_device", lambda device, verbose: "cuda")
    tree = DecisionTreeClassifier(splitter="random").fit([[1.0], [2.0]], [0, 1])
    assert tree.growth_report_["device"] == "cpu"


@pytest.mark.parametrize("criterion", ["squared_error", "poisson", "absolute_error", "gini"])
def test_a_target_given_four_times_has_the_cuts_of_one(criterion):
    rng = np.random.default_rng(4)
    X, weight = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.integers(0, 5, 90)
    kind = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    given = {"min_samples_leaf": 2, "max_leaf_nodes": 20, "max_features": 2, "ties": "random"}
    model = kind(splitter="random", criterion=criterion, random_state=0, **given)
    one = model.fit(X, y, weight).tree_
    several = model.fit(X, np.stack([y] * 4, axis=1), weight).tree_
    for name in ("first_child", "feature", "threshold", "missing_child", "impurity", "gain"):
        np.testing.assert_array_equal(getattr(one, name), getattr(several, name), err_msg=name)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_forests_of_several_targets_predict_as_well_as_those_of_scikit_learn(criterion):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(220, 4))
    Y = np.stack([X[:, 0] + X[:, 1], X[:, 1] * X[:, 2]], axis=1) + 0.2 * rng.normal(size=(220, 2))
    found = []
    for kind in (ExtraTreesRegressor, ensemble.ExtraTreesRegressor):
        given = {"n_estimators": 10, "max_depth": 5, "criterion": criterion, "random_state": 0}
        forest = kind(**given).fit(X[:150], Y[:150])
        found.append(forest.score(X[150:], Y[150:]))
    assert abs(found[0] - found[1]) < 0.06
    again = ExtraTreesRegressor(**given, n_jobs=2).fit(X[:150], Y[:150])
    np.testing.assert_array_equal(again.score(X[150:], Y[150:]), found[0])


@pytest.mark.full  # 10 s, of compiling
def test_the_compiled_tree_is_the_interpreted_one():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.choice(list("xyz"), 150)})
    X.loc[::9, "a"] = np.nan
    weight = rng.integers(1, 4, 150)
    for tree, y in [
        (DecisionTreeClassifier(splitter="random", random_state=0), rng.integers(0, 3, 150)),
        (DecisionTreeRegressor(splitter="random", random_state=0), rng.normal(size=150)),
        (DecisionTreeRegressor(splitter="random", random_state=0), rng.normal(size=(150, 3))),
        (DecisionTreeClassifier(splitter="random"), rng.integers(0, 3, (150, 2))),
        (
            DecisionTreeRegressor(splitter="random", criterion="absolute_error"),
            rng.normal(size=(150, 3)),
        ),
    ]:
        found = []
        for tier in ("never", "always"):
            with forced(tier):
                found.append(tree.fit(X, y, sample_weight=weight).tree_)
        assert found[0].equals(found[1])
