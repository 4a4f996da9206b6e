"""ID3 and C4.5 trees against the slow, obvious way to grow them, node by node."""

import warnings
from functools import partial
from unittest import mock

import numpy as np
import pytest
from entropy_tree_oracle import C45, ID3, MISSING, Node, collapse, distribution, id3_distribution
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import MixedTable, mixed_tables, random_mixed_table, random_mixed_tables
from strategies import examples

from gputree import BoostedC45Classifier, C45Classifier, ID3Classifier
from gputree.base.dtypes import BRANCH_SPLIT, MISSING_TO_ALL, SUBSET_SPLIT, THRESHOLD_SPLIT
from gputree.tree import Tree

TABLES = st.one_of(mixed_tables(), random_mixed_tables())
C45_RULES = st.fixed_dictionaries(
    {
        "min_samples_leaf": st.sampled_from([0.5, 1, 2, 3.5]),
        "average_gain_rule": st.booleans(),
        "mdl_correction": st.booleans(),
        "max_depth": st.sampled_from([None, None, 2]),
        "min_samples_split": st.sampled_from([2, 2, 7]),
        "min_gain": st.sampled_from([0.0, 0.0, 0.1]),
        "criterion": st.sampled_from(["gain_ratio", "gain"]),
    }
)
ID3_RULES = st.fixed_dictionaries(
    {
        "max_depth": st.sampled_from([None, None, 2]),
        "min_samples_split": st.sampled_from([2, 2, 7]),
        "min_gain": st.sampled_from([0.0, 0.0, 0.1]),
    }
)


def fit_c45(table: MixedTable, **parameters) -> C45Classifier:
    settings = {"pruning": None, "collapse": False, "device": "cpu"} | parameters
    model = C45Classifier(categorical_features=table.nominal, **settings)
    return model.fit(table.X, table.y, table.weight)


def fit_id3(table: MixedTable, **parameters) -> ID3Classifier:
    model = ID3Classifier(categorical_features=table.nominal, device="cpu", **parameters)
    return model.fit(table.X, table.y, table.weight)


def coded(model, table: MixedTable) -> tuple[np.ndarray, np.ndarray]:
    """The table and its classes as the grower sees them."""
    return model.columns_.encode(table.X).astype(float), np.searchsorted(model.classes_, table.y)


def slow_c45(model: C45Classifier, table: MixedTable, **rules) -> Node:
    if rules.get("max_depth", 0) is None:
        rules["max_depth"] = np.inf
    columns = model.columns_
    by_gain = rules.pop("criterion", "gain_ratio") == "gain"
    rules |= {"one_against_rest": model.binary_splits, "by_gain": by_gain}
    oracle = C45(columns.nominal, columns.n_categories, len(model.classes_), **rules)
    return oracle.grow(*coded(model, table), table.weight)


def slow_id3(model: ID3Classifier, table: MixedTable, **rules) -> Node:
    if rules.get("max_depth", 0) is None:
        rules["max_depth"] = np.inf
    return ID3(len(model.classes_), **rules).grow(*coded(model, table), table.weight)


def assert_same(tree: Tree, root: Node) -> None:
    """Breadth-first, node by node: tests, branches, entries, class weights."""
    tree.check()
    nodes = list(root.walk())
    assert tree.n_children.tolist() == [len(node.children) for node in nodes]
    assert tree.n_rows.tolist() == [node.entries for node in nodes]
    inner = [i for i, node in enumerate(nodes) if node.children]
    assert tree.feature[inner].tolist() == [nodes[i].feature for i in inner]
    weights = [node.weights for node in nodes]
    np.testing.assert_allclose(tree.statistics, weights, rtol=0, atol=1e-6)
    gains = [nodes[i].gain for i in inner]
    np.testing.assert_allclose(tree.gain[inner], gains, rtol=0, atol=2e-6)
    for i in inner:
        assert_same_branches(tree, i, nodes[i])


def assert_same_branches(tree: Tree, i: int, node: Node) -> None:
    if node.category >= 0:
        assert tree.split_kind[i] == SUBSET_SPLIT
        code, child = tree.branches(i)
        assert code.tolist() == list(range(code.size))  # all of the column
        assert child.tolist() == (code != node.category).astype(int).tolist()
        return
    if not node.codes:
        assert tree.split_kind[i] == THRESHOLD_SPLIT
        assert tree.threshold[i] == node.threshold
        return
    assert tree.split_kind[i] == BRANCH_SPLIT
    known = [code for code in node.codes if code >= 0]
    assert [part.tolist() for part in tree.branches(i)] == [known, list(range(len(known)))]
    if tree.missing_child[i] >= 0:
        assert node.codes[tree.missing_child[i]] == MISSING


# -------------------------------------------------------------------- C4.5
@given(TABLES, C45_RULES, st.booleans())
@examples(150)
def test_c45_grows_as_the_oracle_does(table, rules, actual_values):
    placement = "data" if actual_values else "midpoint"
    model = fit_c45(table, threshold_placement=placement, **rules)
    root = slow_c45(model, table, actual_values=actual_values, **rules)
    assert_same(model.tree_, root)
    inner = ~model.tree_.is_leaf
    assert (model.tree_.missing_child[inner] == MISSING_TO_ALL).all()


@given(TABLES, C45_RULES)
@examples(150)
def test_c45_splits_in_two_as_the_oracle_does(table, rules):
    model = fit_c45(table, binary_splits=True, **rules)
    assert_same(model.tree_, slow_c45(model, table, **rules))
    assert model.tree_.is_binary


@pytest.mark.filterwarnings("ignore:C45Classifier excludes")
@given(
    TABLES, C45_RULES, st.booleans(), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.2])
)
@examples(150)
def test_the_rules_of_c50_are_those_of_the_oracle(table, rules, exclude, share, leaves):
    """The fraction of the description length is the one for tables of some thousand rows."""
    model = C45Classifier(
        categorical_features=table.nominal,
        exclude_high_cardinality=exclude,
        mdl_gain_threshold=share > 0.0,
        pruning=None,
        collapse=False,
        device="cpu",
        **rules,
    )
    model._leaves_per_weight = leaves  # as boosting sets it
    with mock.patch.object(C45Classifier, "_bits_share", return_value=share):
        model.fit(table.X, table.y, table.weight)
    given = {"exclude_high_cardinality": exclude, "leaves_per_weight": leaves}
    assert_same(model.tree_, slow_c45(model, table, bits_share=share, **given, **rules))


@pytest.mark.parametrize(
    ("rows", "share"), [(1499, 0.0), (1500, 0.0), (2250, 0.5), (3000, 1.0), (9000, 1.0)]
)
def test_the_average_counts_up_to_500_rows_a_class_and_not_from_1000_on(rows, share):
    model = C45Classifier(mdl_gain_threshold=True)
    model.n_classes_ = 3
    assert model._bits_share(rows) == share
    assert C45Classifier()._bits_share(rows) == 0.0


def test_columns_of_many_categories_are_not_tested_and_named_in_a_warning():
    """30 categories of 100 rows separate the classes; 29 do not count as many."""
    y = np.arange(100) % 2
    many = np.array([f"{i % 30}" for i in range(100)], object)
    few = np.array([f"{i % 29}" for i in range(100)], object)
    model = C45Classifier(exclude_high_cardinality=True, pruning=None)
    with pytest.warns(UserWarning, match=r"excludes column 0 \(30 categories\) of X") as told:
        model.fit(np.column_stack([many, few]), y)
    assert len(told) == 1
    assert 0 not in model.tree_.feature[~model.tree_.is_leaf]
    plain = C45Classifier(pruning=None).fit(np.column_stack([many, few]), y)
    assert plain.tree_.feature[0] == 0
    with warnings.catch_warnings():  # unless all columns are such
        warnings.simplefilter("error")
        model.fit(many[:, None], y)
    assert model.tree_.feature[0] == 0


@given(TABLES)
def test_c45_collapses_as_the_oracle_does(table):
    model = fit_c45(table, collapse=True)
    root = slow_c45(model, table)
    collapse(root)
    assert_same(model.tree_, root)


@given(TABLES, st.integers(0, 10**6), st.booleans())
def test_c45_answers_as_the_oracle_does(table, seed, binary_splits):
    """Rows seen and not seen, with missing values, and categories that were not in the table."""
    model = fit_c45(table, binary_splits=binary_splits)
    root = slow_c45(model, table)
    X = shuffled_columns(table, seed)
    X[:, table.nominal] = np.where(X[:, table.nominal] == 1.0, 99.0, X[:, table.nominal])
    rows = model.columns_.encode(X).astype(float)
    expected = [distribution(root, row, model.columns_.nominal) for row in rows]
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-6)


def shuffled_columns(table: MixedTable, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(column) for column in table.X.T], axis=1)


# --------------------------------------------------------------------- ID3
@given(TABLES, ID3_RULES)
@examples(100)
def test_id3_grows_as_the_oracle_does(table, rules):
    model = fit_id3(table, **rules)
    assert_same(model.tree_, slow_id3(model, table, **rules))


@given(TABLES, st.integers(0, 10**6))
def test_id3_answers_as_the_oracle_does(table, seed):
    """Rows seen and not seen: new missing values, and values without a branch."""
    model = fit_id3(table)
    root = slow_id3(model, table)
    X = shuffled_columns(table, seed)
    X[::3] += 0.25
    expected = [id3_distribution(root, row) for row in model.columns_.encode(X).astype(float)]
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- theorems
FITS = {"c45": fit_c45, "id3": fit_id3, "binary": partial(fit_c45, binary_splits=True)}


def assert_equal_trees(a: Tree, b: Tree, scale: float = 1.0) -> None:
    for name in ("feature", "threshold", "n_children", "branch_code", "missing_child"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_allclose(a.statistics * scale, b.statistics, rtol=0, atol=1e-9 * scale)


def test_rows_of_weight_zero_do_not_make_categories_few():
    """Categories of a column are few if they are less than 0.3 of the rows."""
    X = np.stack([np.zeros(8), [0, 0, 0, 0, 0, 1, 1, 2]], axis=1)
    table = MixedTable(X, np.array([False, True]), np.arange(8) // 7, None)
    twice = table.take(np.arange(8).repeat(2))
    twice = twice._replace(weight=np.tile([1.0, 0.0], 8))
    assert fit_c45(table).tree_.n_nodes == fit_c45(twice).tree_.n_nodes == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factor", [2.0**-250, 1e-12, 1e-6, 2.0**45, 1e80])
def test_weights_however_small_or_large_grow_the_same_tree_of_id3(factor, weighted):
    table = random_mixed_table(seed=1, n=400, weighted=weighted)
    weight = np.ones(len(table.y)) if table.weight is None else table.weight
    expected = fit_id3(table._replace(weight=weight)).tree_
    assert_equal_trees(expected, fit_id3(table._replace(weight=factor * weight)).tree_, factor)


# ------------------------------------------------------------- splits in two, by hand


@pytest.mark.parametrize("kind", [C45Classifier, BoostedC45Classifier])
def test_splits_in_two_are_grown_on_the_host(kind):
    message = f"^{kind.__name__} .* grows on the CPU alone: pass device='cpu' or 'auto'"
    with pytest.raises(ValueError, match=message):
        kind(binary_splits=True, device="cuda").fit([["a"], ["b"]], [0, 1])
