"""Forests: each tree is the tree of its rows and columns, whatever grows it."""

from __future__ import annotations

import pickle
import warnings
import weakref
from copy import deepcopy
from functools import cache, partial
from itertools import chain, count, repeat
from threading import Lock

import numpy as np
import pandas as pd
import pytest
from frames import mixed
from scipy.stats import chisquare
from sklearn.base import ClassifierMixin, clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import f1_score
from tunings import RANKED, TUNING, tuned
from twin_lists import assert_same_trees

from gputree import (
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    export_json,
    load_model,
    save_model,
)
from gputree.backends.cpu.table import CpuTable
from gputree.ensemble.compact import CompactTree, Trees
from gputree.ensemble.draws import Strata, bootstrap_counts, class_counts
from gputree.ensemble.trees import TableRows
from gputree.estimators.cart import Cart
from gputree.export import shap_values
from gputree.prediction.forest import JoinedTrees, PackedForest, SplitTree
from gputree.pruning import CostComplexity, CostComplexityCV

TREE_OF = {
    RandomForestClassifier: DecisionTreeClassifier,
    RandomForestRegressor: DecisionTreeRegressor,
}
DRAWN = {
    ExtraTreesClassifier: partial(DecisionTreeClassifier, splitter="random"),
    ExtraTreesRegressor: partial(DecisionTreeRegressor, splitter="random"),
}


@cache
def fitted_once(kind):
    X, labels, y = mixed()
    target = labels if issubclass(kind, ClassifierMixin) else y
    forest = kind(n_estimators=4, random_state=3, max_features=2, bootstrap=True, oob_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few trees, some rows are out of no bag
        return forest.fit(X, target), X, target


@pytest.fixture(params=[*TREE_OF, *DRAWN])
def fitted(request):
    return deepcopy(fitted_once(request.param))  # some tests change it


def assert_same_forest(first, second):
    assert len(first.estimators_) == len(second.estimators_)
    for a, b in zip(first.estimators_, second.estimators_, strict=True):
        assert_same_trees(a.tree_, b.tree_)


# ---------------------------------------------------------------- trees
def test_each_tree_is_that_of_the_rows_that_it_has_drawn(fitted):
    forest, X, y = fitted
    for member, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        counts = np.bincount(rows, minlength=len(X))
        kind = (TREE_OF | DRAWN)[type(forest)]
        alone = kind(max_features=2, random_state=member.random_state, ties="random")
        alone.fit(X, y, sample_weight=counts)
        assert_same_trees(alone.tree_, member.tree_)
        assert (member.predict(X) == alone.predict(X)).all()


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_rows_are_drawn_by_class(kind, tmp_path):
    """Evenly within a class, apart from other classes; each tree is that of its draws."""
    X, labels, _ = mixed()
    classes, sizes = np.unique(labels, return_counts=True)
    given = dict(zip(classes, (3, 50, 7)[: len(classes)], strict=True))
    for most in (given, "balanced"):
        wanted = [*given.values()] if most is given else [sizes.min()] * len(classes)
        forest = kind(n_estimators=3, bootstrap=True, max_samples=most, random_state=0)
        forest.fit(X, labels)
        for member, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            assert np.unique(labels[rows], return_counts=True)[1].tolist() == wanted
            counts = np.bincount(rows, minlength=len(X))
            tree = (TREE_OF | DRAWN)[kind](
                max_features="sqrt", random_state=member.random_state, ties="random"
            )
            assert_same_trees(tree.fit(X, labels, sample_weight=counts).tree_, member.tree_)
    assert (forest.oob_permutation_importance(X, labels).importances.shape[1]) == 3
    save_model(forest, tmp_path / "forest.gputree")
    again = load_model(tmp_path / "forest.gputree")
    assert_same_forest(again, forest)
    with pytest.raises(ValueError, match="or by class, which neither files"):
        again.estimators_samples_  # noqa: B018
    with pytest.raises(ValueError, match="leave out sample_weight and class_weight"):
        forest.fit(X, labels, np.ones(len(X)))
    for numbers in (0, 2.5, True):
        with pytest.raises(ValueError, match="integers from 1 on"):
            clone(forest).set_params(max_samples=given | {classes[0]: numbers}).fit(X, labels)


def test_rows_of_a_class_are_drawn_evenly():
    """In their class as `bootstrap_counts` in a table: by the chi-squared statistic."""
    target = np.arange(300) % 3
    strata = Strata.of(target, np.array([100, 1000, 10]))
    found = sum(class_counts(5, tree, strata) for tree in range(100))
    for k, draws in enumerate(strata.draws):
        assert found[target == k].sum() == 100 * draws
        assert chisquare(found[target == k]).pvalue > 1e-3
    assert not np.array_equal(class_counts(5, 0, strata), class_counts(6, 0, strata))


@pytest.mark.parametrize("weight", [1e17 / 3, 2.0**60, 1 / 91, 1 / 75, 0.1, "drawn", "huge"])
@pytest.mark.parametrize("model", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_compact_trees_have_the_weights_of_grown_ones(model, weight, tmp_path):
    """Include sums of leaves that exceed the largest integer, or are rounded otherwise."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(273, 3)), rng.integers(0, 2, 273)
    y[X[:, 0] > 0.5] = 1
    drawn = {"drawn": rng.uniform(0, 1, 273), "huge": rng.uniform(1e17, 5e17, 273)}
    weights = drawn.get(weight, np.full(273, weight))
    for depth in (1, None):
        tree = model(max_depth=depth).fit(X, y, sample_weight=weights).tree_
        assert_same_trees(tree, CompactTree.of(tree).expand())
    forest = {DecisionTreeClassifier: ExtraTreesClassifier}.get(model, ExtraTreesRegressor)
    forest = forest(n_estimators=2, random_state=0).fit(X, y, sample_weight=weights)
    for member in forest.estimators_:
        assert member.tree_.weight[0] == pytest.approx(weights.sum(), rel=1e-9)
    save_model(forest, tmp_path / "forest")
    assert (load_model(tmp_path / "forest").predict(X) == forest.predict(X)).all()


def grown_for_packing():
    """Compact trees by the name of what is particular about them."""
    X, labels, y = mixed()
    numbers, weight = X[["a", "b", "d"]], np.linspace(0.1, 2.0, len(X))
    monotonic = {"monotonic_cst": [1, 0, 0], "max_depth": 4}
    return {
        "classes": DecisionTreeClassifier().fit(numbers, labels),
        "mixed leaves": DecisionTreeClassifier(min_samples_leaf=5).fit(numbers, labels, weight),
        "targets": DecisionTreeRegressor().fit(numbers, y, weight),
        "bounds": DecisionTreeClassifier(**monotonic).fit(numbers, labels == "low"),
        "categories": DecisionTreeClassifier().fit(X, labels),
        "a leaf": DecisionTreeRegressor().fit(numbers, np.ones(len(X))),
    }


def test_trees_are_not_taken_for_values_of_another_thread():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, y)
    wide, narrow = (
        (np.dtype(dtype), Trees(forest._trees).packed(dtype, 1))
        for dtype in (np.float64, np.float32)
    )
    states = chain([wide, wide], repeat(narrow))

    class Replaced(Trees):  # by another thread, while this one looks
        _packed = property(lambda self: next(states), lambda self, value: None)

    assert Replaced(forest._trees).packed(np.float64, 1) is wide[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("few_nodes", [0, 1000])
def test_compact_trees_are_packed_like_others(monkeypatch, dtype, few_nodes):
    monkeypatch.setattr("gputree.prediction.descent.FEW_NODES", few_nodes)
    expanded, expand = [], CompactTree.expand
    monkeypatch.setattr(CompactTree, "expand", lambda of: expanded.append(1) or expand(of))
    for name, model in grown_for_packing().items():
        tree, made = model.tree_, len(expanded)
        (found,) = Trees([CompactTree.of(tree)]).packed(dtype, 1)
        assert (len(expanded) > made) == (name in ("bounds", "categories"))
        if name == "categories":
            continue
        (expected,) = PackedForest([JoinedTrees.of([SplitTree.of(tree)], np.dtype(dtype), 1)])
        assert found.nodes.nodes.tolist() == expected.nodes.nodes.tolist()
        assert found.depth.tolist() == expected.depth.tolist() == [tree.max_depth]
        np.testing.assert_array_equal(found.place, expected.place)
        leaf = np.flatnonzero(tree.is_leaf)
        packed = found.place[leaf]
        for one in (found, expected):
            shown = one.predictions[one.number[packed]]
            np.testing.assert_array_equal(shown, tree.value[leaf, 0])


@pytest.mark.parametrize("n_classes", [0, 2, 7])
@pytest.mark.parametrize("min_samples_leaf", [1, 4])
def test_predictions_are_those_of_trees_one_by_one(monkeypatch, n_classes, min_samples_leaf):
    """Trees whose nodes move and others in one kernel, and blocks with missing values."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    y = rng.integers(0, n_classes, 60) if n_classes else X[:, 0] + rng.normal(size=60)
    monkeypatch.setattr("gputree.prediction.forest.BLOCK_BYTES", 20 * (12 + 8 * n_classes))
    kind = RandomForestClassifier if n_classes else RandomForestRegressor
    forest = kind(4, min_samples_leaf=min_samples_leaf, random_state=0).fit(X, y)
    few = min(tree.n_nodes for tree in forest._trees)
    monkeypatch.setattr("gputree.prediction.descent.FEW_NODES", few)
    forest.fit(X, y)
    placed = [tree.place for tree in forest._trees.packed(X.dtype, 1)]
    moved = [bool((place != np.arange(place.size)).any()) for place in placed]
    assert {*moved} == {True, False}
    X[30, 0] = X[35, 1] = np.nan
    expected = np.zeros((60, max(n_classes, 1)))
    for t, tree in enumerate(forest.estimators_):
        expected += tree.predict_proba(X) if n_classes else tree.predict(X)[:, None]
        assert (forest.apply(X)[:, t] == tree.apply(X)).all()
    found = forest.predict_proba(X) if n_classes else forest.predict(X)[:, None]
    assert (found == expected / 4).all()


@pytest.mark.parametrize("kind", list(TREE_OF))
def test_forests_draw_among_columns_that_tie(kind):
    """Forests use all of five equal columns; a tree by itself uses the first."""
    x = np.arange(80.0)
    X, y = np.repeat(x[:, None], 5, axis=1), x % 7 > 2
    forest = kind(n_estimators=8, max_features=None, random_state=0).fit(X, y)
    nodes = np.concatenate([packed.expand().feature for packed in forest._trees])
    assert chisquare(np.bincount(nodes[nodes >= 0], minlength=5)).pvalue > 1e-3
    tree = forest.estimators_[0]
    assert clone(tree).set_params(ties="first").fit(X, y).feature_importances_[0] == 1.0


@pytest.mark.parametrize("kind", list(TREE_OF))
def test_one_tree_of_all_rows_and_columns_is_a_decision_tree(kind):
    X, labels, y = mixed()
    target = labels if kind is RandomForestClassifier else y
    for limits in ({}, {"max_leaf_nodes": 7}, {"ccp_alpha": 0.01}, {"min_samples_leaf": 0.1}):
        forest = kind(n_estimators=1, bootstrap=False, max_features=None, **limits)
        tree = TREE_OF[kind](**limits).fit(X, target)
        assert_same_trees(tree.tree_, forest.fit(X, target).estimators_[0].tree_)


def test_trees_with_monotonic_predictions_and_fractional_weights_are_kept():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150, :4], y[:150]
    weight = np.random.default_rng(0).random(150)
    options = {"monotonic_cst": [1, 0, -1, 0], "min_samples_leaf": 3}
    forest = RandomForestRegressor(n_estimators=1, bootstrap=False, **options)
    tree = DecisionTreeRegressor(**options)
    labels = y > 140
    for grown, alone, target in [
        (forest, tree, y),
        (
            RandomForestClassifier(n_estimators=1, bootstrap=False, max_features=None, **options),
            DecisionTreeClassifier(**options),
            labels,
        ),
    ]:
        grown.fit(X, target, sample_weight=weight)
        alone.fit(X, target, sample_weight=weight)
        assert_same_trees(alone.tree_, grown.estimators_[0].tree_)
        assert (grown.predict(X) == alone.predict(X)).all()


def test_threads_tables_and_steps_grow_the_same_forest(fitted):
    forest, X, y = fitted
    plain = clone(forest).set_params(oob_score=False)
    assert_same_forest(forest, clone(plain).set_params(n_jobs=1).fit(X, y))
    assert_same_forest(forest, clone(plain).set_params(n_jobs=3).fit(X, y))
    assert_same_forest(forest, clone(plain).fit(CodedTable(X), y))
    if type(forest) in TREE_OF:
        halves = CodedTable.from_batches(lambda: iter([X[:50], X[50:]]))
        assert_same_forest(forest, clone(plain).fit(halves, y))
    stepwise = clone(plain).set_params(warm_start=True, n_estimators=1).fit(X, y)
    first = stepwise.estimators_[0].tree_
    stepwise.set_params(n_estimators=4).fit(X, y)
    assert_same_trees(first, stepwise.estimators_[0].tree_)
    assert_same_forest(forest, stepwise)


@pytest.mark.parametrize(
    ("kind", "rows", "options"),
    [
        (RandomForestClassifier, 24, {}),
        (RandomForestClassifier, 24, {"criterion": "log_loss", "max_depth": 3, "max_samples": 0.6}),
        (RandomForestClassifier, 24, {"bootstrap": False, "min_weight_fraction_leaf": 0.1}),
        (RandomForestClassifier, 24, {"max_features": 1, "splitter": "binned"}),
        (RandomForestClassifier, 3, {}),  # some draw a row three times, or all rows once
        (ExtraTreesClassifier, 24, {}),
        (ExtraTreesClassifier, 24, {"bootstrap": True}),  # one by one: weights differ
        (RandomForestRegressor, 24, {"max_features": 2}),
        (RandomForestRegressor, 24, {"criterion": "poisson", "max_depth": 3}),
        (RandomForestRegressor, 24, {"bootstrap": False, "min_samples_leaf": 2}),
        (RandomForestRegressor, 3, {}),
        (RandomForestRegressor, 24, {"max_samples": 3}),  # most draw no row twice
        (ExtraTreesRegressor, 24, {}),
    ],
)
def test_trees_grown_together_are_those_grown_one_by_one(monkeypatch, kind, rows, options):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(rows, 2)), rng.integers(0, 5, (rows, 3))])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.arange(rows) % 3
    if not issubclass(kind, ClassifierMixin):  # some trees lack the extremes: their units differ
        y = np.exp(rng.integers(0, 3, rows) ** 2.0)
    forest = kind(n_estimators=5, random_state=0, n_jobs=1, **options)
    together = clone(forest).fit(X, y)
    part = CodedTable(np.concatenate([X, X])).take(np.arange(rows))
    assert_same_forest(together, clone(forest).fit(part, y))
    monkeypatch.setattr(Cart, "_grows_whole", lambda *_: False)
    assert_same_forest(together, clone(forest).fit(X, y))


@pytest.mark.parametrize(
    "kind",
    [
        RandomForestClassifier,
        *(pytest.param(kind, marks=pytest.mark.full) for kind in [RandomForestRegressor, *DRAWN]),
    ],
)
def test_wide_tables_grow_the_same_forest(kind):
    """Grow from the columns that a node draws, from all, and from a table in parts."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(160, 40)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0]) + rng.normal(size=160) > 0
    forest = kind(n_estimators=2, max_features=2, random_state=0).fit(X, y)
    with tuned(TUNING._replace(drawn_share=np.inf)):
        assert_same_forest(forest, clone(forest).fit(X, y))
    with tuned(TUNING._replace(drawn_rows=0)):
        assert_same_forest(forest, clone(forest).fit(X, y))
    if kind in TREE_OF:
        halves = CodedTable.from_batches(lambda: iter([X[:80], X[80:]]))
        assert_same_forest(forest, clone(forest).fit(halves, y))


@pytest.mark.parametrize("tuning", RANKED)
def test_ranks_of_a_whole_table_of_codes_grow_the_same_forest(tuning):
    """They are of the table, or of some nodes at a time; otherwise of none, as in large tables."""
    X, labels, _ = mixed()
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, labels)
    with tuned(tuning):
        assert_same_forest(forest, clone(forest).fit(X, labels))


@pytest.mark.parametrize(
    ("n_trees", "max_features", "digits", "shares"),
    [(3, 3, 9, True), (2, 3, 9, False), (3, 4, 9, False), (3, 3, 1, False)],
)
def test_many_trees_share_the_ranks_of_a_larger_table(n_trees, max_features, digits, shares):
    """If nodes draw at most half of the columns, which have more values than there are codes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(350, 6)).round(digits)
    y = (X[:, 0] > X[:, 1] * X[:, 2]).astype(int)
    forest = RandomForestClassifier(n_trees, max_features=max_features, random_state=0).fit(X, y)
    sizes = {"ranked_cells": 0, "ranked_trees": 3, "copied_bytes": 0, "copied_rows": 50}
    with tuned(TUNING._replace(listed_values=0, **sizes)):
        assert_same_forest(forest, clone(forest).fit(X, y))
        table = CpuTable(X, np.zeros(6, np.bool_))
        assert table.rank_for(max_features, n_trees, 1) == table.is_ranked == shares


@pytest.mark.parametrize(("most", "kind"), [(40, np.uint32), (60, np.uint16)])
def test_ranks_of_many_rows_are_narrow_where_values_are_few(monkeypatch, most, kind):
    """Limits for 16 bits are between the numbers of rows and of values; some are missing."""
    X = np.random.default_rng(0).integers(0, 50, (200, 3)).astype(float)
    y = (X[:, 0] > X[:, 1]).astype(int)
    X[::9, 1] = np.nan
    forest = RandomForestClassifier(3, max_features=1, random_state=0).fit(X, y)
    for module in ("ranks", "drawn_ranks"):
        monkeypatch.setattr(f"gputree.backends.cpu.{module}.MANY_ROWS", most)
    table = CpuTable(X, np.isnan(X).any(axis=0))
    assert table.ranks(0, True, False, 1).rank.dtype == kind
    with tuned(TUNING._replace(copied_bytes=0, copied_rows=50)):
        assert_same_forest(forest, clone(forest).fit(X, y))


def test_scores_and_quantiles_are_of_trees_that_a_warm_start_kept():
    X, _, y = mixed(20)
    forest = RandomForestRegressor(n_estimators=20, warm_start=True, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        forest.set_params(oob_score=True, quantreg=True).fit(X, y)
    afresh = clone(forest).fit(X, y)
    assert forest.oob_score_ == afresh.oob_score_
    assert (forest.predict_quantiles(X) == afresh.predict_quantiles(X)).all()


def test_kept_trees_take_little_memory():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    forest = RandomForestClassifier(n_estimators=2).fit(X, y)
    nodes = sum(tree.n_nodes for tree in forest._trees)
    assert sum(tree.nbytes for tree in forest._trees) <= 15 * nodes


# ----------------------------------------------------------- prediction
def test_predictions_are_means_over_trees(fitted):
    forest, X, _ = fitted
    if isinstance(forest, ClassifierMixin):
        each = [tree.predict_proba(X) for tree in forest.estimators_]
        mean = sum(each) / len(each)
        assert (forest.predict_proba(X) == mean).all()
        assert (forest.predict(X) == forest.classes_[mean.argmax(axis=1)]).all()
        np.testing.assert_array_equal(np.exp(forest.predict_log_proba(X)) > 0, mean > 0)
    else:
        each = [tree.predict(X) for tree in forest.estimators_]
        assert (forest.predict(X) == sum(each) / len(each)).all()


def test_leaves_paths_and_proximity_are_those_of_the_trees(fitted):
    forest, X, _ = fitted
    leaves = forest.apply(X)
    indicator, ends = forest.decision_path(X)
    for t, tree in enumerate(forest.estimators_):
        assert (leaves[:, t] == tree.apply(X)).all()
        part = indicator[:, ends[t] : ends[t + 1]]
        assert (part != tree.decision_path(X)).nnz == 0
    shared = (leaves[:, None] == leaves[None]).mean(axis=2)
    np.testing.assert_array_equal(forest.proximity(X).toarray(), shared)
    np.testing.assert_array_equal(forest.proximity(X[:3], X).toarray(), shared[:3])


def test_a_pickled_forest_is_the_same(fitted):
    forest, X, _ = fitted
    again = pickle.loads(pickle.dumps(forest))
    assert_same_forest(forest, again)
    assert (again.predict(X) == forest.predict(X)).all()
    assert again.estimators_[1:3][0].random_state == forest.estimators_[1].random_state


def test_importances_are_the_mean_of_the_trees(fitted):
    forest, *_ = fitted
    mean = np.mean([tree.feature_importances_ for tree in forest.estimators_], axis=0)
    np.testing.assert_allclose(forest.feature_importances_, mean / mean.sum())
    alone = RandomForestRegressor(n_estimators=2).fit([[1.0], [1.0]], [1.0, 2.0])
    assert alone.feature_importances_ == [0.0]


# ----------------------------------------------------------- out of bag
def test_rows_out_of_the_bag_are_predicted_by_the_trees_that_have_not_drawn_them(fitted):
    forest, X, y = fitted
    votes = [[] for _ in range(len(X))]
    for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        is_class = isinstance(forest, ClassifierMixin)
        answers = tree.predict_proba(X) if is_class else tree.predict(X)
        for row in set(range(len(X))) - set(rows):
            votes[row].append(answers[row])
    mean = np.array(
        [
            np.mean(of_row, axis=0) if of_row else np.full_like(answers[0], np.nan)
            for of_row in votes
        ]
    )
    known = np.array([bool(of_row) for of_row in votes])
    assert not known.all()
    if is_class:
        np.testing.assert_allclose(forest.oob_decision_function_, mean)
        hits = forest.classes_[mean[known].argmax(axis=1)] == y[known]
        assert forest.oob_score_ == hits.mean()
    else:
        np.testing.assert_allclose(forest.oob_prediction_, mean)
        rest = ((y - mean)[known] ** 2).sum() / ((y[known] - y[known].mean()) ** 2).sum()
        np.testing.assert_allclose(forest.oob_score_, 1.0 - rest)


def test_out_of_bag_rows_of_one_class():
    forest = RandomForestClassifier(40, oob_score=True, random_state=0)
    forest.fit(np.arange(8.0)[:, None], ["a"] * 8)
    assert forest.oob_decision_function_.tolist() == [[1.0]] * 8
    assert forest.oob_score_ == 1.0


def test_a_score_of_ones_own_is_taken_out_of_the_bag():
    X, y = load_iris(return_X_y=True)

    def score(y_true, y_pred):
        return f1_score(y_true, y_pred, average="macro")

    forest = RandomForestClassifier(n_estimators=40, oob_score=score, random_state=0).fit(X, y)
    answers = forest.classes_[forest.oob_decision_function_.argmax(axis=1)]
    assert forest.oob_score_ == score(y, answers)


# ----------------------------------------------------------------- draws
def test_a_fit_without_out_of_bag_scores_has_none_of_the_fit_before():
    X, labels, _ = mixed(10)
    forest = RandomForestClassifier(n_estimators=40, oob_score=True, random_state=0).fit(X, labels)
    forest.set_params(oob_score=False).fit(X, labels)
    assert not hasattr(forest, "oob_score_")
    assert not hasattr(forest, "oob_decision_function_")


def test_rows_are_drawn_evenly():
    counts = sum(bootstrap_counts(7, tree, 50, 50) for tree in range(400))
    assert counts.sum() == 400 * 50
    assert chisquare(counts).pvalue > 1e-3
    weight = np.arange(1.0, 51.0)
    counts = sum(bootstrap_counts(7, tree, 50, 50, weight) for tree in range(400))
    assert chisquare(counts, weight * (counts.sum() / weight.sum())).pvalue > 1e-3
    assert (bootstrap_counts(7, 0, 50, 50) != bootstrap_counts(8, 0, 50, 50)).any()


def test_rows_without_weight_are_not_drawn():
    X, labels, _ = mixed()
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    forest = RandomForestClassifier(n_estimators=3, random_state=0).fit(X, labels, weight)
    for rows in forest.estimators_samples_:
        assert rows.size == len(X)
        assert (weight[rows] > 0).all()


def test_columns_are_drawn_evenly():
    """One column of several alike that a node may cut: the root takes each as often."""
    X = np.tile([[0.0], [1.0]], (1, 6))
    forest = RandomForestClassifier(
        n_estimators=600, max_features=1, bootstrap=False, random_state=0
    ).fit(X, [0, 1])
    columns = [tree.feature[0] for tree in forest._trees]
    assert chisquare(np.bincount(columns, minlength=6)).pvalue > 1e-3


def test_classes_are_balanced_in_each_sample():
    X, labels, _ = mixed()
    options = {"n_estimators": 3, "random_state": 0, "max_features": 2}
    forest = RandomForestClassifier(class_weight="balanced_subsample", **options).fit(X, labels)
    for member, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        counts = np.bincount(rows, minlength=len(X))
        codes = np.searchsorted(forest.classes_, labels)
        of_class = np.bincount(codes, counts)
        weight = counts * (counts.sum() / (3 * of_class))[codes]
        alone = DecisionTreeClassifier(
            max_features=2, random_state=member.random_state, ties="random"
        )
        assert_same_trees(alone.fit(X, labels, weight).tree_, member.tree_)


# --------------------------------------------------------------- threads
@pytest.mark.parametrize(("n_jobs", "n_estimators"), [(1, 3), (2, 5), (3, 2), (6, 2)])
def test_threads_of_trees_are_no_more_than_asked_for(monkeypatch, n_jobs, n_estimators):
    growing, most, lock = [], [], Lock()

    def watched(rows, grower, t):
        with lock:
            growing.append(grower.n_jobs)
            most.append(sum(growing))
        try:
            return grow(rows, grower, t)
        finally:
            with lock:
                growing.pop()

    grow = TableRows.grow
    monkeypatch.setattr(TableRows, "grow", watched)
    X, labels, _ = mixed(150)
    RandomForestClassifier(n_estimators, n_jobs=n_jobs, random_state=0).fit(X, labels)
    assert len(most) == n_estimators
    assert max(most) <= n_jobs


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_fit_leaves_the_forest_as_it_was(fitted, monkeypatch, n_jobs):
    forest, X, y = fitted
    before = forest.predict(X)
    numbers = count()

    def interrupted(*arguments):
        if next(numbers) == 2:
            raise KeyboardInterrupt
        return grow(*arguments)

    grow = TableRows.grow
    monkeypatch.setattr(TableRows, "grow", interrupted)
    forest.set_params(n_estimators=20, warm_start=True, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        forest.fit(X, y)
    assert len(forest.estimators_) == 4
    assert (forest.predict(X) == before).all()
    assert hasattr(forest, "oob_score_")


def test_a_forest_is_a_sequence_of_its_trees(fitted):
    forest, *_ = fitted
    assert len(forest) == len(forest.estimators_) == 4
    assert_same_trees(forest[-1].tree_, forest.estimators_[3].tree_)
    assert [tree.tree_.n_nodes for tree in forest] == [
        tree.tree_.n_nodes for tree in [*forest.estimators_[:2], *forest.estimators_[2:]]
    ]
    for place in (4, -5):
        with pytest.raises(IndexError, match="out of range for"):
            forest.estimators_[place]


# ---------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bootstrap": False, "oob_score": True}, "only available if bootstrap=True"),
        ({"bootstrap": False, "max_samples": 3}, "`max_sample` cannot be set"),
        ({"n_estimators": 0}, "'n_estimators' parameter"),
        ({"max_samples": 0.0}, "'max_samples' parameter"),
        ({"max_samples": True}, "give a number of rows, or a fraction"),
        ({"max_samples": "balanced", "bootstrap": False}, "`max_sample` cannot be set"),
        ({"max_samples": {"a": 3}}, "a number of rows for each class of y"),
        ({"criterion": "squared_error"}, "For numbers use"),
        ({"splitter": "random"}, "ExtraTreesClassifier draws cuts"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RandomForestClassifier(**options).fit([[1.0], [2.0]], [0, 1])


def test_errors_of_trees_name_the_forest(fitted):
    forest, X, y = fitted
    name = type(forest).__name__
    with pytest.raises(TypeError, match=f"Pruning takes one tree, got {name}: pass one of its"):
        CostComplexity(0.01).prune(forest)
    with pytest.raises(TypeError, match=f"got {name}: pass one of its"):
        CostComplexityCV().prune(forest, X, y)
    with pytest.raises(ValueError, match=f"have no order. {name} got monotonic_cst with 1 for col"):
        clone(forest).set_params(monotonic_cst={"c": 1}).fit(X, y == y[0])
    assert CostComplexity(0.01).prune(forest.estimators_[0]).get_n_leaves() > 0


def test_a_warm_start_takes_no_other_table_and_no_fewer_trees():
    X, labels, _ = mixed()
    forest = RandomForestClassifier(n_estimators=2, warm_start=True).fit(X, labels)
    with pytest.warns(UserWarning, match="without increasing n_estimators"):
        forest.fit(X, labels)
    forest.set_params(n_estimators=1)
    with pytest.raises(ValueError, match="must be larger or equal to"):
        forest.fit(X, labels)
    forest.set_params(n_estimators=3)
    with pytest.raises(ValueError, match="the classes of the fit before"):
        forest.fit(X, labels == "low")
    with pytest.raises(ValueError, match="the columns and the categories of the fit before"):
        forest.fit(X.assign(c="v"), labels)
    assert len(forest.estimators_) == 2


@pytest.mark.parametrize("read", [pd.DataFrame, CodedTable])
def test_a_warm_start_takes_columns_by_their_names_as_predict_does(read):
    X, _, target = mixed()
    forest = ExtraTreesRegressor(n_estimators=2, warm_start=True, random_state=0).fit(X, target)
    names = "names should match those that were passed during fit"
    others = {
        "order": (X[X.columns[::-1]], names),
        "renamed": (X.rename(columns={"c": "e"}), names),
        "fewer": (
            X.drop(columns="c"),
            names if read is pd.DataFrame else "is expecting 4 features",
        ),
    }
    for other, words in others.values():
        with pytest.raises(ValueError, match=words) as of_predict:
            forest.predict(read(other))
        with pytest.raises(ValueError, match=words) as of_fit:
            forest.set_params(n_estimators=4).fit(read(other), target)
        assert str(of_fit.value) == str(of_predict.value)
    assert len(forest.estimators_) == 2


def test_names_of_columns_stay_where_a_warm_start_has_none():
    X, _, target = mixed()
    forest = ExtraTreesRegressor(n_estimators=2, warm_start=True, random_state=0).fit(X, target)
    forest.set_params(n_estimators=4)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        forest.fit(X.to_numpy(dtype=object), target)
    assert forest.feature_names_in_.tolist() == X.columns.tolist()
    assert forest.predict(X).tolist() == clone(forest).fit(X, target).predict(X).tolist()


def test_few_rows_drawn_and_rows_out_of_no_bag_are_told():
    X, labels, _ = mixed()
    with pytest.warns(UserWarning, match="draws 3 rows for a tree"):
        RandomForestClassifier(n_estimators=1, max_samples=0.05).fit(X, labels)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        RandomForestClassifier(n_estimators=1, oob_score=True).fit(X, labels)
    for samples, weights in ((2**31, None), (0.5, np.full(len(labels), 1e90))):
        with pytest.raises(ValueError, match=r"draws .* at most 2147483647 can be drawn"):
            RandomForestClassifier(max_samples=samples).fit(X, labels, sample_weight=weights)


# ----------------------------------------------------------------- files
def test_trees_are_written_one_by_one(fitted, monkeypatch, tmp_path):
    forest, *_ = fitted
    alive, most = [], 0

    def expand(packed):
        nonlocal most
        tree = original(packed)
        alive.append(weakref.ref(tree))
        most = max(most, sum(one() is not None for one in alive))
        return tree

    original = CompactTree.expand
    monkeypatch.setattr(CompactTree, "expand", expand)
    save_model(forest, tmp_path / "forest.gputree")
    export_json(forest)
    assert len(alive) >= 8
    assert most <= 2  # one is let go of once there is the next


def test_a_forest_of_a_file_knows_what_its_trees_have_drawn(tmp_path):
    X, labels, _ = mixed()
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, labels)
    save_model(forest, tmp_path / "forest.gputree")
    again = load_model(tmp_path / "forest.gputree")
    for rows, others in zip(forest.estimators_samples_, again.estimators_samples_, strict=True):
        assert (rows == others).all()
    forest.fit(X, labels, sample_weight=np.linspace(1.0, 2.0, len(X)))
    save_model(forest, tmp_path / "forest.gputree")
    with pytest.raises(ValueError, match="drawn in proportion to weights"):
        load_model(tmp_path / "forest.gputree").estimators_samples_  # noqa: B018


def test_a_report_has_the_size_of_the_forest(fitted):
    forest, X, y = fitted
    size = forest.report(X, y).as_dict()
    assert size["trees"] == 4
    assert size["leaves"] == sum(tree.get_n_leaves() for tree in forest.estimators_)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_a_report_has_errors_relative_to_the_mean_of_the_rows_drawn(kind, tmp_path):
    X, _, y = mixed(60)
    forest = kind(n_estimators=4, random_state=0).fit(X, y)
    save_model(forest, tmp_path / "forest.gputree")
    mean = np.mean([tree.tree_.statistics[0, 0] for tree in forest.estimators_])
    if not forest.bootstrap:
        assert mean == pytest.approx(np.mean(y), rel=1e-9)
    off, apart = y - forest.predict(X), y - mean
    for one in (forest, load_model(tmp_path / "forest.gputree")):
        found = one.report(X, y).measures
        expected = np.abs(off).sum() / np.abs(apart).sum()
        assert found["relative_absolute_error"] == pytest.approx(expected)
        expected = np.sqrt((off**2).sum() / (apart**2).sum())
        assert found["root_relative_squared_error"] == pytest.approx(expected)


def test_shapley_values_are_means_over_trees(fitted):
    forest, X, _ = fitted
    values, base = shap_values(forest, X[:20])
    is_class = isinstance(forest, ClassifierMixin)
    answers = forest.predict_proba(X[:20]) if is_class else forest.predict(X[:20])
    np.testing.assert_allclose(values.sum(axis=1) + base, answers, atol=1e-12)


@pytest.mark.parametrize("kind", list(TREE_OF))
def test_a_device_grows_the_same_forest(cuda_device, kind):
    X, labels, y = mixed(40)
    forest = kind(n_estimators=2, max_features=2, random_state=0, device="cuda")
    target = labels if issubclass(kind, ClassifierMixin) else y
    assert_same_forest(clone(forest).set_params(device="cpu").fit(X, target), forest.fit(X, target))
