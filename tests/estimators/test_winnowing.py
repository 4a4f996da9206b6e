"""Winnowing: the columns that a plain reading of the rule leaves, and trees on them."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

from gputree import BoostedC45Classifier, BoostedC45Rules, C45Classifier, CodedTable


def table(seed: int, n: int = 200):
    """Categories, numbers and missing values; two columns matter and six do not."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, 8), object)
    for f in range(8):
        words = np.array(["a", "b", "c"])[rng.integers(3, size=n)]
        X[:, f] = words if f % 3 == 0 else np.round(rng.normal(size=n), 1)
    score = X[:, 1].astype(float) + np.where(X[:, 3] == "a", 1.0, -1.0) + rng.normal(size=n) * 0.7
    X[rng.random(X.shape) < 0.05] = None
    return X, np.array(["no", "yes"])[(score > 0).astype(int)]


def oracle(X, y, state, weight=None, **params):
    """Mark the columns that stay."""
    weight = np.ones(len(y)) if weight is None else weight
    order = check_random_state(state).permutation(len(y))
    a, b = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 :])

    def errors(tree, columns, without=None):
        held = X[b].copy()
        if without is not None:
            held[:, without] = None
        return weight[b][tree.predict(held[:, columns]) != y[b]].sum()

    every = np.arange(X.shape[1])
    tree = C45Classifier(**params).fit(X[a], y[a], weight[a])
    before = errors(tree, every)
    tested = set(tree.tree_.feature[tree.tree_.feature >= 0].tolist())
    kept = [f for f in every if f in tested and errors(tree, every, f) >= before]
    if not kept:
        return np.ones(every.size, bool)
    again = C45Classifier(**params).fit(X[a][:, kept], y[a], weight[a])
    stay = np.isin(every, kept) | (errors(again, kept) > before)
    return stay


def on_kept(tree, kept):
    """Columns that a tree of the kept ones tests, by their places among all."""
    return np.where(tree.is_leaf, -2, np.flatnonzero(kept)[np.maximum(tree.feature, 0)])


def assert_same(tree, part, kept):
    np.testing.assert_array_equal(tree.feature, on_kept(part, kept))
    assert tree.n_features == kept.size
    for name in ("first_child", "threshold", "statistics", "gain", "missing_child", "branch_code"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(part, name))
    tree.check()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_that_do_not_help_are_left_out(seed, weighted):
    X, y = table(seed)
    weight = np.random.default_rng(0).integers(1, 4, len(y)) / 2.0 if weighted else None
    kept = oracle(X, y, seed, weight)
    model = C45Classifier(winnow=True, random_state=seed).fit(X, y, weight)
    np.testing.assert_array_equal(model.winnowed_, ~kept)
    part = C45Classifier().fit(X[:, kept], y, weight)
    assert_same(model.tree_, part.tree_, kept)
    assert_same(model.unpruned_tree_, part.unpruned_tree_, kept)
    np.testing.assert_array_equal(model.predict_proba(X), part.predict_proba(X[:, kept]))


def test_some_are_left_out_and_some_stay():
    left = [C45Classifier(winnow=True, random_state=s).fit(*table(s)).winnowed_ for s in range(4)]
    assert any(columns.sum() >= 3 for columns in left)
    assert not any(columns.all() for columns in left)


def test_boosted_trees_share_the_columns_that_are_left():
    X, y = table(1)
    kept = oracle(X, y, 0)
    boosted = BoostedC45Classifier(n_trials=4, winnow=True, random_state=0).fit(X, y)
    np.testing.assert_array_equal(boosted.winnowed_, ~kept)
    for tree in boosted.estimators_:
        np.testing.assert_array_equal(tree.winnowed_, ~kept)
    part = BoostedC45Classifier(n_trials=4).fit(X[:, kept], y)
    for tree, other in zip(boosted.estimators_, part.estimators_, strict=True):
        assert_same(tree.tree_, other.tree_, kept)
        np.testing.assert_array_equal(tree.predict(X), other.predict(X[:, kept]))
    np.testing.assert_array_equal(boosted.predict_proba(X), part.predict_proba(X[:, kept]))
    assert boosted.feature_importances_[~kept].tolist() == [0.0] * (~kept).sum()


@pytest.mark.parametrize("kind", [BoostedC45Classifier, BoostedC45Rules])
@pytest.mark.parametrize("groups", [[[0]], [[1, 3], [0, 2]]])
def test_interaction_constraints_are_of_the_columns_before_winnowing(kind, groups):
    X, y = table(1)
    given = {"n_trials": 2, "winnow": True, "random_state": 2}
    boosted = kind(interaction_cst=groups, **given).fit(X, y)
    kept = np.flatnonzero(~boosted.winnowed_)
    assert 2 <= kept.size < 8
    places = [np.flatnonzero(np.isin(kept, group)).tolist() for group in groups]
    part = kind(n_trials=2, interaction_cst=places).fit(X[:, kept], y)
    np.testing.assert_array_equal(boosted.predict_proba(X), part.predict_proba(X[:, kept]))


@pytest.mark.filterwarnings("ignore:.*boosting reduced to 1 of 10 trials")  # classes by chance
@pytest.mark.full
@pytest.mark.parametrize("kind", [C45Classifier, BoostedC45Classifier])
def test_all_columns_stay(kind):
    """Keep all columns by default, where no column is tested, and of one row."""
    X, y = table(0)
    assert not kind().fit(X, y).winnowed_.any()
    noise = np.zeros((20, 3))
    assert not kind(winnow=True).fit(noise, np.arange(20) % 2).winnowed_.any()
    assert not kind(winnow=True).fit([[1.0, 2.0]], ["a"]).winnowed_.any()


@pytest.mark.full
@pytest.mark.parametrize("pruning", [None, "reduced_error", "cost_complexity_cv"])
def test_other_parameters(pruning):
    X, y = table(2)
    params = {"pruning": pruning, "random_state": 0, "min_samples_split": 0.05}
    costs = {("yes", "no"): 3.0}
    model = C45Classifier(winnow=True, misclassification_costs=costs, **params).fit(X, y)
    again = C45Classifier(winnow=True, misclassification_costs=costs, **params).fit(X, y)
    assert model.tree_.equals(again.tree_)
    kept = ~model.winnowed_
    assert not kept.all()
    part = C45Classifier(misclassification_costs=costs, **params).fit(X[:, kept], y)
    assert_same(model.tree_, part.tree_, kept)
    assert set(model.predict(X)) <= {"no", "yes"}


def test_rows_of_weight_zero_take_no_part():
    X, y = table(3)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weighted = weight > 0
    one = C45Classifier(winnow=True, random_state=0).fit(X, y, weight)
    other = C45Classifier(winnow=True, random_state=0).fit(
        X[weighted], y[weighted], weight[weighted]
    )
    assert one.tree_.equals(other.tree_)


def test_coded_tables():
    X, y = table(1)
    model = C45Classifier(winnow=True, random_state=0).fit(X, y)
    coded = CodedTable(X)
    assert C45Classifier(winnow=True, random_state=0).fit(coded, y).tree_.equals(model.tree_)
    boosted = BoostedC45Classifier(n_trials=2, winnow=True, random_state=0)
    np.testing.assert_array_equal(
        boosted.fit(coded, y).predict(coded), boosted.fit(X, y).predict(X)
    )


def test_only_truth_values():
    with pytest.raises(ValueError, match="The 'winnow' parameter of C45Classifier must be"):
        C45Classifier(winnow="yes").fit([[0.0], [1.0]], [0, 1])
