"""CART with categories: lists against histograms, subsets against brute force, what users see."""

import json

import numpy as np
import pytest
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import MixedTable, mixed_tables, random_mixed_table, random_mixed_tables
from tables import REFERENCE, needs_reference
from tunings import finishing

from benchmarks.data import frame_table
from gputree import DecisionTreeClassifier, DecisionTreeRegressor, prediction
from gputree.backends.cpu.runs import MOST_CELLS
from gputree.base.dtypes import SUBSET_SPLIT
from gputree.columns import Columns
from gputree.estimators.growing import Options, grow_tree
from gputree.inputs.tables import Table
from gputree.tree import Tree

CRITERIA = ("gini", "entropy", "squared_error")


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
    view = Table(table.X, columns_of(table))
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
    X = np.stack([rng.random(500), rng.integers(0, categories, 500)], axis=1)
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


def rows_of_nodes(table: MixedTable, tree: Tree) -> list[np.ndarray]:
    path = prediction.decision_path(tree, table.X, 1)
    return [np.flatnonzero(path[:, [node]].toarray()[:, 0]) for node in range(tree.n_nodes)]


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
    table = random_mixed_table(seed, 150, weighted=seed % 2 == 0)
    tree = grow(table, "gini", split)
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, "cpu", chunk_rows=50)
        assert grow(table, "gini", split, n_threads=3).equals(tree)
    order = np.random.default_rng(seed).permutation(table.y.size)
    assert grow(table.take(order), "gini", split).equals(tree)


# ------------------------------------------------------------------------- searches


@pytest.mark.full
def test_statistics_of_very_many_categories_and_classes_are_not_held():
    """One row a category: 2**24 statistics would not do. A single one is separated."""
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
        patch.setattr(Columns, "grown_categories", Columns.n_categories)
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


# ---------------------------------------------------------------------- estimators
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


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.0, 1.0]])
def test_a_single_column_of_categories(values):
    """Leaves have no column: none is looked up for them."""
    X = np.array(values)[:, None]
    model = DecisionTreeClassifier(categorical_features=[0], device="cpu").fit(X, [0, 1])
    assert model.get_n_leaves() == len(set(values))


# ----------------------------------------------------------------------------- rpart's first splits
PROGRAMS = {"rpart_default": "gini", "rpart_information": "entropy"}
LEAST_LEAF = 7  # of rpart, for a node of 20 rows and more
FEWEST_ROWS = 20
ROUNDING = 1e-9  # rpart's figures have 11 digits


def printed_splits():
    """Tables with categories, programs and what those printed."""
    if REFERENCE is None:
        return
    datasets = json.loads((REFERENCE / "reference.json").read_text("utf-8"))["datasets"]
    for name, dataset in datasets.items():
        for program in PROGRAMS:
            printed = dataset["results"].get(program, {})
            if dataset["n_nominal"] and "first_split" in printed:
                yield pytest.param(
                    name, program, printed, id=f"{name}-{program}", marks=needs_reference
                )


def improvement(tree, criterion: str) -> float:
    """Improvement as in rpart: weight x decrease, of entropy in nats; 1 - relative error."""
    if tree.task == "regression":
        return tree.gain[0] / tree.impurity[0]
    unit = np.log(2.0) if criterion == "entropy" else 1.0
    return tree.gain[0] * tree.weight[0] * unit


@pytest.mark.parametrize(("name", "program", "printed"), list(printed_splits()))
def test_first_splits_are_those_of_rpart(name, program, printed):
    table = frame_table(name)
    rows = np.load(REFERENCE / "splits" / f"{name}.npz")["train"]
    X, y = table.X.iloc[rows], table.y[rows]
    if X[printed["first_feature"]].isna().any() or len(X) < FEWEST_ROWS:
        pytest.skip("rpart's first column has missing values, or there are too few rows")
    limits = {"max_depth": 1, "min_samples_leaf": LEAST_LEAF, "categorical_split": "exhaustive"}
    if table.classes:
        model = DecisionTreeClassifier(criterion=PROGRAMS[program], **limits).fit(X, y)
    else:
        model = DecisionTreeRegressor(**limits).fit(X, y)
    tree = model.tree_
    feature = X.columns[tree.feature[0]]
    assert feature == printed["first_feature"]
    expected = pytest.approx(printed["first_improve"], rel=ROUNDING)
    assert improvement(tree, PROGRAMS[program]) == expected
    if tree.split_kind[0] == SUBSET_SPLIT:
        named = set(printed["first_split"].removeprefix(f"{feature}=").split(","))
        categories = model.columns_.categories[tree.feature[0]]
        sides = [set(categories[tree.categories(1 + side)].tolist()) for side in (0, 1)]
        assert named in sides


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_pure_nodes_of_many_categories_are_leaves(criterion):
    """Targets that follow the category: chains of single ones end where one target is left."""
    rng = np.random.default_rng(0)
    for n_targets in (5, 20):
        code = rng.permutation(np.arange(80) % 40)
        y = rng.permutation(np.arange(40) % n_targets)[code] + 1.0
        tree = DecisionTreeRegressor(criterion=criterion, categorical_features=[0])
        found = tree.fit(code[:, None], y).tree_
        assert (found.gain[~found.is_leaf] > 0).all()
        np.testing.assert_allclose(tree.predict(code[:, None]), y)
