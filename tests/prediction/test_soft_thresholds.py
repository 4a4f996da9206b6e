"""Soft thresholds: bounds found the slow, obvious way, and rows that go both ways."""

from dataclasses import replace

import numpy as np
import pytest
from entropy_tree_oracle import C45, collapse
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table, random_mixed_tables
from multiway_trees import answer, passes, random_multiway_tree, random_rows, stops
from strategies import examples

from gputree import (
    C45Classifier,
    export_json,
    export_text,
    load_model,
    read_json,
    save_model,
    to_rules,
)
from gputree.base.dtypes import THRESHOLD_SPLIT
from gputree.datasets import load_golf
from gputree.estimators.c45 import soften
from gputree.export import (
    explain,
    export_c,
    export_lightgbm,
    export_python,
    export_sql,
    path_rules,
    shap_values,
    to_dict,
    to_sklearn,
)
from gputree.prediction import apply, class_distributions, decision_path, stopping_shares
from gputree.pruning import CostComplexity, Pessimistic


# ------------------------------------------------------------------ the oracle
def distribution(tree, row, node=0):
    return sum(share * answer(tree, at) for at, share in stops(tree, row, node).items())


def slow_bounds(tree, values, target, weight, node):
    """Bounds of one threshold: move it to every value that its node has, and count errors."""
    entries = []
    for row, label, w in zip(values, target, weight, strict=True):
        share = {at: part for at, part, _ in passes(tree, row)}.get(node, 0.0)
        x = row[tree.feature[node]]
        if share > 0 and not np.isnan(x):
            sides = [
                distribution(tree, row, child).argmax() != label for child in tree.children(node)
            ]
            entries.append((x, w * share, sides))
    cut = tree.threshold[node]

    def errors(at):
        return sum(w * sides[int(x > at)] for x, w, sides in entries)

    total, base = sum(w for _, w, _ in entries), errors(cut)
    limit = base + np.sqrt((base + 0.5) * (total - base + 0.5) / (total + 1))
    places = sorted({x for x, *_ in entries})
    bounds = []
    for way in ([x for x in places if x <= cut][::-1], [x for x in places if x > cut]):
        last, spent = cut, base
        for x in way:
            now = errors(x)
            if now > limit:
                last = x + (last - x) * (now - limit) / (now - spent)
                break
            last, spent = x, now
        bounds.append(last)
    return bounds


def fit(table, **given):
    settings_ = {"device": "cpu", "soft_thresholds": True, "min_samples_leaf": 1} | given
    model = C45Classifier(categorical_features=table.nominal, **settings_)
    return model.fit(table.X, table.y, table.weight)


@given(random_mixed_tables())
@examples(15)
def test_bounds_are_the_oracles(table):
    table = table.take(np.arange(min(len(table.y), 80)))
    model = fit(table)
    tree = model.tree_
    tree.check()
    hard = replace(tree, soft_lower=None, soft_upper=None)
    values = model.columns_.encode(table.X).astype(float)
    target = np.searchsorted(model.classes_, table.y)
    weight = np.ones(len(target)) if table.weight is None else table.weight
    for node in range(tree.n_nodes):
        found = tree.soft_lower[node], tree.soft_upper[node]
        expected = [tree.threshold[node]] * 2
        if tree.split_kind[node] == THRESHOLD_SPLIT:
            expected = slow_bounds(hard, values, target, weight, node)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([np.float32, np.float64]))
def test_rows_go_both_ways_as_the_oracle_says(seed, dtype):
    rng = np.random.default_rng(seed)
    tree = random_multiway_tree(rng, 12)
    soft = (tree.split_kind == THRESHOLD_SPLIT) & np.isfinite(tree.threshold)
    soft &= np.abs(tree.threshold) < 10
    width = np.where(soft, rng.choice([0.0, 0.4, 2.0], (2, soft.size)), 0.0)
    lower, upper = tree.threshold - width[0], tree.threshold + width[1]
    tree = replace(tree, soft_lower=lower, soft_upper=upper)
    tree.check()
    values = random_rows(rng, 30, dtype)
    expected = np.array([distribution(tree, row) for row in values.astype(float)])
    np.testing.assert_allclose(class_distributions(tree, values), expected, atol=1e-12)
    shares = stopping_shares(tree, values).toarray()
    for row, found in zip(values.astype(float), shares, strict=True):
        of_node = np.zeros(tree.n_nodes)
        for node, share in stops(tree, row).items():
            of_node[node] = share
        np.testing.assert_allclose(found, of_node, atol=1e-12)
    np.testing.assert_array_equal(apply(tree, values), shares.argmax(axis=1))
    assert (decision_path(tree, values).toarray()[:, 0] == 1).all()


# --------------------------------------------------------------- by hand, and promises


def test_bounds_whose_difference_exceeds_all_numbers():
    x = np.array([-1.5e308] * 10 + [0.9e308] + [1.5e308] * 9)[:, None]
    y = np.array([1] * 2 + [0] * 9 + [1] * 9)
    soft = C45Classifier(soft_thresholds=True, min_samples_leaf=1, mdl_correction=False)
    answers = soft.fit(x, y).predict_proba(x)
    smaller = soft.fit(x / 4, y).predict_proba(x / 4)
    np.testing.assert_allclose(answers, smaller, atol=1e-12)


def test_without_the_option_there_are_none():
    table = random_mixed_table(1, 300, False)
    plain, soft = fit(table, soft_thresholds=False), fit(table)
    assert plain.tree_.soft_lower is None
    assert replace(soft.tree_, soft_lower=None, soft_upper=None).equals(plain.tree_)
    assert not np.array_equal(soft.predict_proba(table.X), plain.predict_proba(table.X))


@pytest.mark.parametrize("weighted", [False, True])
def test_neither_the_order_of_rows_nor_threads_matter(weighted):
    table = random_mixed_table(2, 150, weighted)
    expected = fit(table, n_jobs=1)
    order = np.random.default_rng(0).permutation(150)
    assert fit(table.take(order), n_jobs=2).tree_.equals(expected.tree_)


@pytest.mark.parametrize("pruner", [Pessimistic(subtree_raising=False), CostComplexity(0.001)])
def test_pruning_starts_without_them(pruner, tmp_path):
    table = random_mixed_table(3, 300, False)
    model = fit(table, pruning=None)
    assert (model.tree_.soft_lower < model.tree_.soft_upper).any()
    save_model(model, tmp_path / "model")
    expected = pruner.prune(fit(table, pruning=None, soft_thresholds=False)).tree_
    for fitted in (model, load_model(tmp_path / "model")):
        pruned = pruner.prune(fitted)
        assert pruned.tree_.equals(expected)
        assert pruned.unpruned_tree_.soft_lower is None
        assert fitted.tree_.soft_lower is not None


STEP, STEP_Y = np.arange(8.0)[:, None], [0] * 4 + [1] * 4

FORMATS = {
    "python": export_python, "c": export_c, "sql": export_sql, "lightgbm": export_lightgbm,
    "sklearn": to_sklearn, "dict": to_dict, "rules": path_rules,
    "C4.5rules": lambda model: to_rules(model, STEP, STEP_Y),
    "explain": lambda model: explain(model, [[0.0]]),
    "shapley": lambda model: shap_values(model, [[0.0]]),
}  # fmt: skip


@pytest.mark.parametrize("export", FORMATS.values(), ids=FORMATS)
def test_formats_that_cannot_hold_them_say_so(export):
    model = C45Classifier(soft_thresholds=True).fit(STEP, STEP_Y)
    assert "x0 <= 3.5" in export_text(model)
    with pytest.raises(ValueError, match=r"has soft thresholds.*Fit with soft_thresholds=False"):
        export(model)


def test_bounds_must_lie_around_their_threshold():
    model = C45Classifier(soft_thresholds=True).fit(STEP, STEP_Y)
    tree = model.tree_
    with pytest.raises(ValueError, match="soft thresholds are incomplete, or do not lie around"):
        replace(tree, soft_lower=tree.threshold + 1.0).check()
    with pytest.raises(ValueError, match="soft thresholds are incomplete"):
        replace(tree, soft_lower=None).check()


def test_winnowed_trees_have_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 1] + 0.3 * rng.normal(size=400) > 0).astype(int)
    model = C45Classifier(soft_thresholds=True, winnow=True, random_state=0).fit(X, y)
    assert model.winnowed_.any()
    assert model.tree_.feature[0] == 1
    assert (model.tree_.soft_lower < model.tree_.soft_upper).any()


def test_a_tree_of_one_leaf_has_none_to_soften():
    model = C45Classifier(soft_thresholds=True).fit([[0.0], [1.0]], [1, 1])
    np.testing.assert_array_equal(model.predict_proba([[0.5]]), [[1.0]])
    assert soften(model.tree_, np.zeros((2, 1)), np.zeros(2, int), None).n_nodes == 1


# ------------------------ `laplace=True`: class proportions smoothed by one more row of each class
@given(random_mixed_tables())
def test_leaves_answer_as_the_oracles_do(table):
    """Every node has one more row of each class; those without rows have their parent's."""
    given_ = {"categorical_features": table.nominal, "pruning": None, "device": "cpu"}
    model = C45Classifier(laplace=True, **given_).fit(table.X, table.y, table.weight)
    columns, k = model.columns_, len(model.classes_)
    values = columns.encode(table.X).astype(float)
    oracle = C45(columns.nominal, columns.n_categories, k)
    root = oracle.grow(values, np.searchsorted(model.classes_, table.y), table.weight)
    collapse(root)

    def shares(node, row, prior=None):
        share = (node.weights + 1) / (node.total + k) if node.total > 0 else prior
        if not node.children:
            return share
        value, below = row[node.feature], node.children
        if np.isnan(value):
            sizes = np.array([child.total for child in below])
            return sizes / sizes.sum() @ [shares(child, row, share) for child in below]
        nominal = columns.nominal[node.feature]
        return shares(below[int(value) if nominal else int(value > node.threshold)], row, share)

    expected = [shares(root, row) for row in values]
    np.testing.assert_allclose(model.predict_proba(table.X), expected, rtol=0, atol=1e-6)


@given(random_mixed_tables(60))
def test_the_tree_is_the_same(table):
    trees = [
        C45Classifier(laplace=laplace, categorical_features=table.nominal, device="cpu")
        .fit(table.X, table.y, table.weight)
        .tree_
        for laplace in (False, True)
    ]
    np.testing.assert_array_equal(trees[0].feature, trees[1].feature)
    np.testing.assert_array_equal(trees[0].statistics, trees[1].statistics)
    assert [tree.smoothing for tree in trees] == [0.0, 1.0]


def model() -> C45Classifier:
    golf = load_golf()
    return C45Classifier(laplace=True, pruning=None).fit(golf.data, golf.target)


@pytest.mark.parametrize("smoothing", ['"1"', "-1", "true", '{"float": "nan"}'])
def test_documents_with_no_such_smoothing(smoothing):
    text = export_json(model()).replace('"smoothing": 1.0', f'"smoothing": {smoothing}')
    with pytest.raises(ValueError, match="smoothing"):
        read_json(text)


def test_formats_answer_with_it():
    fitted, X = model(), load_golf().data
    space: dict = {}
    exec(export_python(fitted), space)
    found = [space["predict_proba"](row) for row in X.tolist()]
    np.testing.assert_array_equal(found, fitted.predict_proba(X))
    assert (np.array(found) > 0).all()
    values = shap_values(fitted, X[:3])
    total = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(total, fitted.predict_proba(X[:3]), atol=1e-12)
