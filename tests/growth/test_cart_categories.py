"""CART with categories: lists against histograms, subsets against brute force, what users see."""

from __future__ import annotations

from itertools import product

import numpy as np
import oracles
import pytest
from devices import tune
from hypothesis import example, given
from hypothesis import strategies as st
from mixed_tables import MixedTable, mixed_tables, random_mixed_table, random_mixed_tables
from tunings import finishing

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_text,
    prediction,
)
from gputree.backends.cpu.runs import MOST_CELLS
from gputree.columns import Columns
from gputree.dtypes import SUBSET_SPLIT
from gputree.estimators.growing import Options, grow_tree, new_task
from gputree.estimators.held import Held, View
from gputree.fixed_point import fix_targets, fix_weights
from gputree.tree import Tree

CRITERIA = ("gini", "entropy", "squared_error")


def whole(values: np.ndarray) -> View:
    """All rows of a table without categories."""
    return View(Held(Columns.numeric(values.shape[1]), values, None))


def make_options(criterion: str, y: np.ndarray, d: int, **limits) -> Options:
    """Options without limits but those given."""
    options = {
        "n_classes": 0 if criterion in ("squared_error", "poisson") else int(y.max()) + 1,
        "max_depth": None,
        "min_samples_split": 2,
        "min_samples_leaf": 1,
        "min_weight_fraction_leaf": 0.0,
        "min_impurity_decrease": 0.0,
        "max_features": d,
        "max_leaf_nodes": None,
        "exact": True,
        "max_bins": 256,
        "device": "cpu",
        "n_threads": 1,
        "max_device_memory": None,
        "key": 7,
        "verbose": False,
    }
    return Options(criterion, **(options | limits))


def columns_of(table: MixedTable) -> Columns:
    """Columns whose categories are their codes."""
    categories = tuple(
        np.arange(np.nanmax(np.append(column, -1.0)) + 1) if nominal else None
        for column, nominal in zip(table.X.T, table.nominal, strict=True)
    )
    return Columns(table.nominal, categories)


def grow(table: MixedTable, criterion: str, split="auto", **limits) -> Tree:
    limits["categorical_split"] = split
    options = make_options(criterion, table.y, table.nominal.size, **limits)
    view = View(Held(columns_of(table), table.X, None))
    tree = grow_tree(view, target_of(table, criterion), table.weight, options).tree
    tree.check()
    return tree


def target_of(table: MixedTable, criterion: str) -> np.ndarray:
    if criterion == "poisson":
        return table.y + 0.5
    return table.y.astype(np.float64 if criterion == "squared_error" else np.uint8)


# ---------------------------------------------------------- histograms, and subtrees at once
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_depth": st.integers(1, 5),
        "min_samples_split": st.integers(2, 20),
        "min_samples_leaf": st.integers(1, 8),
        "min_weight_fraction_leaf": st.floats(0.0, 0.2),
        "min_impurity_decrease": st.floats(0.0, 0.05),
        "max_leaf_nodes": st.integers(2, 20),
        "max_features": st.just(1),
        "key": st.integers(0, 99),
        "n_threads": st.just(2),
    },
)
SPLITS = ("auto", "exhaustive", "ordered", "one_vs_rest")


@pytest.mark.parametrize("criterion", [*CRITERIA, "poisson"])
@given(
    table=st.one_of(mixed_tables(), random_mixed_tables(200)),
    split=st.sampled_from(SPLITS),
    limits=LIMITS,
)
def test_the_tree_does_not_depend_on_where_subtrees_are_finished(criterion, table, split, limits):
    if criterion in ("entropy", "poisson"):  # each kind is compiled twice over
        table = table._replace(weight=None)
    expected = grow(table, criterion, split, **limits)
    for rows in (1, 30):
        with finishing(rows):
            assert grow(table, criterion, split, **limits).equals(expected)


@pytest.mark.parametrize("categories", [7, 400])
@pytest.mark.parametrize("split", SPLITS)
def test_a_column_may_be_missing_throughout_a_node(split, categories):
    rng = np.random.default_rng(0)
    X = np.stack([rng.random(900), rng.integers(0, categories, 900)], axis=1)
    X[X[:, 0] < 0.5, 1] = np.nan
    y = np.where(X[:, 0] < 0.5, X[:, 0] * 20 % 3, X[:, 1] % 4 + 3).astype(int)
    table = MixedTable(X, np.array([False, True]), y, None)
    expected = grow(table, "gini", split, max_depth=6)
    with finishing(1):
        assert grow(table, "gini", split, max_depth=6).equals(expected)


@pytest.mark.full
@pytest.mark.parametrize("criterion", CRITERIA)
@given(seed=st.integers(0, 10**6), split=st.sampled_from(SPLITS))
def test_columns_of_many_categories_too(criterion, seed, split):
    """More than there are bins; in chains of single categories, among others."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(300, 700))
    code = np.floor(n * rng.random(n) ** rng.integers(1, 3)) + 300 * (rng.random(n) < 0.2)
    X = np.stack([code, rng.integers(0, 4, n), rng.random(n).round(1)], axis=1)
    X[rng.random(X.shape) < rng.choice([0.0, 0.1])] = np.nan
    table = MixedTable(X, np.array([True, True, False]), rng.integers(0, 3, n), None)
    table = table._replace(X=X[:, : rng.integers(1, 4)])
    table = table._replace(nominal=table.nominal[: table.X.shape[1]])
    expected = grow(table, criterion, split)
    with finishing(20):
        assert grow(table, criterion, split).equals(expected)


# ------------------------------------------------------------------- brute force
def splits_of(column: np.ndarray, nominal: bool) -> list[np.ndarray]:
    """All ways to part the rows in two by a column: masks of the rows that go left."""
    known = ~np.isnan(column)
    values = np.unique(column[known])
    if nominal:
        chosen = product([False, True], repeat=values.size)
        heads = [np.isin(column, values[np.array(mask, np.bool_)]) for mask in chosen]
    else:
        heads = [known & (column <= value) for value in values]
    return [side for head in heads for side in (head, head | ~known) if side.any() and ~side.all()]


def greatest_gain(table: MixedTable, task, rows: np.ndarray) -> float:
    """Greatest decrease of impurity of the rows by any split; -inf where there is none."""
    statistics = oracles.row_statistics(task)[rows]
    total = statistics.sum(axis=0)
    lefts = [
        statistics[side].sum(axis=0)
        for f in range(table.nominal.size)
        for side in splits_of(table.X[rows, f], table.nominal[f])
    ]
    if not lefts:
        return -np.inf
    best = oracles.scores(task.criterion, np.array(lefts), total).max()
    return oracles.gain(task.criterion, best, total)


def rows_of_nodes(table: MixedTable, tree: Tree) -> list[np.ndarray]:
    path = prediction.decision_path(tree, table.X, 1)
    return [np.flatnonzero(path[:, [node]].toarray()[:, 0]) for node in range(tree.n_nodes)]


def task_of(table: MixedTable, criterion: str):
    weights = fix_weights(table.weight, table.y.size)
    y = target_of(table, criterion)
    targets = fix_targets(y, weights) if criterion == "squared_error" else None
    target = y if targets is None else targets.target
    options = make_options(criterion, table.y, table.nominal.size)
    return new_task(target, weights, targets, options)


@given(mixed_tables(max_rows=20), st.sampled_from(CRITERIA))
def test_every_split_is_the_best_of_all(table, criterion):
    """Up to 5 categories; sums of two orders of work differ in their last digits."""
    tree = grow(table, criterion)
    task = task_of(table, criterion)
    for node, rows in enumerate(rows_of_nodes(table, tree)):
        assert rows.size == tree.n_rows[node]
        if np.unique(table.y[rows]).size == 1:
            assert tree.is_leaf[node]
            continue
        best = greatest_gain(table, task, rows)
        assert tree.is_leaf[node] == (best == -np.inf)
        if not tree.is_leaf[node]:
            assert tree.gain[node] == pytest.approx(best, rel=1e-9, abs=1e-12)


def assert_branches_of_those_present(table: MixedTable, tree: Tree) -> None:
    """No other category has a branch; without missing values, these go with most rows."""
    for node, rows in enumerate(rows_of_nodes(table, tree)):
        if tree.split_kind[node] != SUBSET_SPLIT:
            continue
        column = table.X[rows, tree.feature[node]]
        present = np.unique(column[~np.isnan(column)]).astype(int)
        assert tree.branches(node).code.tolist() == present.tolist()
        if not np.isnan(column).any():
            left, right = tree.n_rows[tree.children(node)]
            assert tree.missing_child[node] == (0 if left > right else 1)


@given(mixed_tables(), st.sampled_from(["gini", "squared_error"]))
def test_branch_tables_name_the_categories_of_a_node(table, criterion):
    tree = grow(table, criterion)
    assert_branches_of_those_present(table, tree)


@given(st.integers(0, 10**6), st.sampled_from(["auto", "exhaustive", "ordered", "one_vs_rest"]))
def test_neither_threads_nor_the_order_of_rows_change_the_tree(seed, split):
    table = random_mixed_table(seed, 300, weighted=seed % 2 == 0)
    tree = grow(table, "gini", split)
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, "cpu", chunk_rows=50)
        assert grow(table, "gini", split, n_threads=3).equals(tree)
    order = np.random.default_rng(seed).permutation(table.y.size)
    assert grow(table.take(order), "gini", split).equals(tree)


# ------------------------------------------------------------------------- searches
@given(st.integers(0, 10**6))
def test_more_subsets_are_no_worse(seed):
    """Heads of orders, and single categories, are subsets: of the root none gains more."""
    table = random_mixed_table(seed, 200, weighted=False)
    gains = [
        grow(table, "gini", split, max_depth=1).gain[0]
        for split in ("exhaustive", "ordered", "one_vs_rest")
    ]
    assert gains[0] >= max(gains) - 1e-12


# Two categories tie at the root, of which columns take the first and lists the purer.
_x = np.array([0, 0, 0, 0, 0, 1, 1, 2, 1])[:, None].astype(np.float64)
TIED = MixedTable(_x, np.array([True]), np.array([0, 0, 0, 0, 1, 0, 0, 0, 1]), None)


@given(mixed_tables(max_rows=25), st.booleans())
@example(TIED, False)
def test_one_vs_rest_splits_as_one_hot_columns_do(table, weighted):
    """Every node gains what columns of ones and zeros would there, without missing values.

    Not the whole trees: of categories that tie, each takes its own first.
    """
    table = table._replace(X=np.nan_to_num(table.X), weight=table.weight if weighted else None)
    columns = [
        (column[:, None] == np.arange(5)) if nominal else column[:, None]
        for column, nominal in zip(table.X.T, table.nominal, strict=True)
    ]
    encoded = np.concatenate(columns, axis=1).astype(np.float64)
    options = make_options("gini", table.y, encoded.shape[1], max_depth=1)
    tree = grow(table, "gini", "one_vs_rest")
    for node, rows in enumerate(rows_of_nodes(table, tree)):
        weight = None if table.weight is None else table.weight[rows]
        y = table.y[rows].astype(np.uint8)
        one_hot = grow_tree(whole(encoded[rows]), y, weight, options).tree
        assert tree.is_leaf[node] == one_hot.is_leaf[0]
        assert tree.gain[node] == pytest.approx(one_hot.gain[0], abs=1e-12)


@pytest.mark.full
def test_statistics_of_very_many_categories_and_classes_are_not_held():
    """One row a category: 2**24 statistics would not do. A single one is parted off."""
    n, n_classes = 180_000, 100
    assert n * n_classes > MOST_CELLS
    table = MixedTable(
        np.arange(n, dtype=np.float64)[:, None], np.array([True]), np.arange(n) % n_classes, None
    )
    tree = grow(table, "gini", "ordered", max_depth=1)
    assert tree.n_rows.tolist() == [n, 1, n - 1]
    whole, rest = n * (n / n_classes / n) ** 2 * n_classes, np.full(n_classes, n // n_classes)
    rest[0] -= 1
    gain = (1 + (rest**2).sum() / (n - 1) - whole) / n
    assert tree.gain[0] == pytest.approx(gain, abs=1e-12)


def test_a_head_of_the_order_beats_single_categories():
    """Two of six categories hold the second class: one split tells them, one vs rest cannot."""
    X = np.array(list("abcdef") * 10, dtype=object)[:, None]
    y = np.isin(X[:, 0], ["b", "e"]).astype(int)
    tree = DecisionTreeClassifier().fit(X, y).tree_
    assert tree.n_leaves == 2
    assert tree.branches(0).child.tolist() == [0, 1, 0, 0, 1, 0]
    assert DecisionTreeClassifier(categorical_split="one_vs_rest").fit(X, y).get_n_leaves() == 3


CLASS_WEIGHTS = [[0, 3, 3, 4], [4, 4, 0, 4], [0, 3, 0, 0], [4, 2, 3, 0], [0, 1, 4, 2]]


def test_more_than_two_classes_may_need_every_subset():
    """The best subset of these five categories is no head of an order by one class."""
    code, y = np.nonzero(CLASS_WEIGHTS)
    weight = np.array(CLASS_WEIGHTS, np.float64)[code, y]
    table = MixedTable(code[:, None].astype(float), np.array([True]), y, weight)
    gains = {s: grow(table, "gini", s).gain[0] for s in ("auto", "exhaustive", "ordered")}
    assert gains["auto"] == gains["exhaustive"] > gains["ordered"] > 0.0


def test_an_id_column_does_not_win():
    """Each row its own category: an order of them would fit noise without an error."""
    rng = np.random.default_rng(1)
    signal = rng.normal(size=300)
    X = np.stack([np.arange(300.0), signal], axis=1)
    y = (signal + 0.3 * rng.normal(size=300) > 0).astype(int)
    with (
        pytest.warns(UserWarning, match="Column 0 of X has a unique value in every row"),
        pytest.warns(UserWarning, match="chose column 0 of X, .* at the root"),
    ):
        stumps = {
            split: DecisionTreeClassifier(
                categorical_features=[0], categorical_split=split, max_depth=1
            ).fit(X, y)
            for split in ("auto", "ordered")
        }
    assert stumps["auto"].tree_.feature[0] == 1
    assert stumps["ordered"].tree_.feature[0] == 0
    assert stumps["ordered"].score(X, y) == 1.0


# ------------------------------------------------------------------ missing and unseen
def test_missing_values_go_the_way_that_is_learned():
    X = np.array(["a"] * 5 + ["b"] * 5 + ["c"] * 2 + [None] * 4, dtype=object)[:, None]
    y = [0] * 5 + [1] * 5 + [0] * 2 + [1] * 4
    model = DecisionTreeClassifier().fit(X, y)
    assert model.get_n_leaves() == 2
    assert model.predict(np.array([[None], ["new"], ["c"]], dtype=object)).tolist() == [1, 1, 0]


def test_missing_against_present():
    X = np.array(["a", "b", "c"] * 4 + [None] * 6, dtype=object)[:, None]
    model = DecisionTreeClassifier().fit(X, [0] * 12 + [1] * 6)
    assert model.tree_.branches(0).child.tolist() == [0, 0, 0]
    assert model.predict(np.array([[None], ["b"]], dtype=object)).tolist() == [1, 0]


def test_unseen_values_go_with_most_rows_where_nothing_was_missing():
    X = np.array(["a"] * 5 + ["b"] * 3 + ["c"] * 3, dtype=object)[:, None]
    y = [1] * 5 + [0] * 6
    model = DecisionTreeClassifier().fit(X, y)
    assert model.predict(np.array([["new"], [None]], dtype=object)).tolist() == [0, 0]


# --------------------------------------------------------------------- two categories
@given(st.integers(0, 10**6), st.sampled_from(CRITERIA))
def test_columns_of_two_categories_split_alike_as_numbers_and_as_subsets(seed, criterion):
    """Up to the side that a category lies on; without missing values, whose ties see sides."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (60, 5)).astype(float)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.integers(0, 2, 60)).astype(int)
    table = MixedTable(X, np.array([True, True, False, True, False]), y, None)
    numbers = grow(table, criterion)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("held", "growing_categories"):
            name = f"gputree.estimators.{module}.categories_in_growth"
            patch.setattr(name, lambda columns: columns.n_categories)
        subsets = grow(table, criterion)
    of_subsets = [(tree.split_kind == SUBSET_SPLIT).any() for tree in (numbers, subsets)]
    assert of_subsets[0] == of_subsets[1]
    assert sorted(numbers.gain) == pytest.approx(sorted(subsets.gain), abs=1e-12)


@given(st.integers(0, 10**6), st.sampled_from(CRITERIA), st.integers(1, 4))
def test_of_two_categories_too_the_absent_one_goes_as_missing_values_do(seed, criterion, leaf):
    """Nodes that missing values alone are cut off from may hold one category, or both."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    X = rng.integers(0, 2, (n, 3)).astype(float)
    X[rng.random((n, 3)) < 0.4] = np.nan
    nominal = np.array([True, rng.random() < 0.5, True])
    table = MixedTable(X, nominal, rng.integers(0, 3, n), None)
    tree = grow(table, criterion, min_samples_leaf=leaf)
    assert_branches_of_those_present(table, tree)


def test_an_absent_category_of_two_goes_with_missing_values_in_prediction_and_text():
    """Below the first split every known row of the column is a "b"."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"deep": [False] * 4 + [True] * 8, "name": ["a"] * 4 + ["b"] * 8})
    X.loc[8:, "name"] = None
    y = [0] * 4 + [1] * 4 + [2] * 4
    model = DecisionTreeClassifier().fit(X, y)
    asked = pandas.DataFrame({"deep": [True] * 3, "name": ["a", "b", None]})
    assert model.predict(asked).tolist() == [2, 1, 2]
    assert "name = b: 1 (4)" in export_text(model)


# ---------------------------------------------------------------------- estimators
def mixed_frame(n: int = 400):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    colour = rng.choice(["red", "green", "blue", None], n)
    size = rng.normal(size=n)
    size[rng.random(n) < 0.1] = np.nan
    frame = pandas.DataFrame({"colour": colour, "size": size, "round": rng.random(n) < 0.5})
    y = (colour == "red") ^ (np.nan_to_num(size) > 0.5)
    return frame, y.astype(int) + (rng.random(n) < 0.1)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_depth": 3},
        {"min_samples_leaf": 0.05},
        {"min_samples_split": 40},
        {"min_weight_fraction_leaf": 0.1},
        {"min_impurity_decrease": 0.01},
        {"max_leaf_nodes": 5},
        {"max_features": 1, "random_state": 3},
        {"splitter": "binned", "max_bins": 4},
        {"ccp_alpha": 0.01},
        {"criterion": "entropy", "class_weight": "balanced"},
    ],
)
def test_parameters_of_cart_hold_with_categories(limits):
    frame, y = mixed_frame()
    model = DecisionTreeClassifier(**limits).fit(frame, y)
    tree = model.tree_
    tree.check()
    assert 1 < tree.n_leaves < DecisionTreeClassifier().fit(frame, y).get_n_leaves()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    if "min_samples_leaf" in limits:
        assert tree.n_rows.min() >= 20
    if "min_weight_fraction_leaf" in limits:
        assert tree.weight.min() >= 40
    if "max_leaf_nodes" in limits:
        assert tree.n_leaves == 5


def test_weight_two_is_a_row_twice():
    frame, y = mixed_frame(100)
    twice = np.arange(100) % 3 == 0
    rows = np.concatenate([np.arange(100), np.flatnonzero(twice)])
    for model in (DecisionTreeClassifier(), DecisionTreeRegressor()):
        weighted = model.fit(frame, y, 1.0 + twice).predict(frame)
        assert np.array_equal(model.fit(frame.iloc[rows], y[rows]).predict(frame), weighted)


def test_categories_by_name_index_and_mask():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 2)).astype(float)
    y = np.isin(X[:, 1], [1, 4]).astype(int)
    assert DecisionTreeClassifier().fit(X, y).get_n_leaves() > 2
    for listed in ([1], [False, True]):
        tree = DecisionTreeClassifier(categorical_features=listed).fit(X, y).tree_
        assert tree.n_leaves == 2
        assert tree.split_kind[0] == SUBSET_SPLIT
    with pytest.raises(ValueError, match="'categorical_split' parameter of DecisionTreeClassifier"):
        DecisionTreeClassifier(categorical_split="pca").fit(X, y)


@pytest.mark.full
def test_categories_may_be_very_many():
    """100,000 of them, two rows each; the order of means tells half of them from the others."""
    code = np.repeat(np.arange(100_000), 2)
    y = (code * 7919 % 10 < 5).astype(float)
    model = DecisionTreeRegressor(categorical_features=[0], categorical_split="ordered")
    model.fit(code[:, None], y)
    assert model.get_n_leaves() == 2
    assert (model.predict(code[:, None]) == y).all()


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.0, 1.0]])
def test_a_single_column_of_categories(values):
    """Leaves have no column: none is looked up for them."""
    X = np.array(values)[:, None]
    model = DecisionTreeClassifier(categorical_features=[0], device="cpu").fit(X, [0, 1])
    assert model.get_n_leaves() == len(set(values))
