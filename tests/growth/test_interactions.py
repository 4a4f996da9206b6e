"""Trees no path of which uses columns together that are not to interact."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import columns_allowed, exact_tree
from shard_kinds import Case, in_shards
from shard_kinds import device as device_shards
from sklearn.base import clone
from strategies import PROBLEMS, is_regression, make_task, random_problems, random_sample
from tunings import DEVICE, DRAWN, RANKED, SPARSE, WIDE, finishing, tuned
from twin_lists import assert_same_trees

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
    load_model,
    save_model,
)
from gputree.backends import interactions
from gputree.backends.base import Monotonic
from gputree.backends.interactions import interactions_of, pairs_of
from gputree.check.cases import InParts


@st.composite
def grouped_problems(draw):
    """A criterion, a table for it, and groups that have all of its columns, some in several."""
    criterion, sample = draw(random_problems(200))
    d = sample.values.shape[1]
    groups = draw(st.lists(st.frozensets(st.integers(0, d - 1)), max_size=4))
    return criterion, sample, (*groups, frozenset(range(d)).difference(*groups))


def grouped_task(problem, **limits):
    criterion, sample, groups = problem
    task = make_task(criterion, sample, **limits)
    return replace(task, interactions=interactions_of(groups))


# ------------------------------------------------------------------------- growth
@given(grouped_problems(), st.sampled_from([2, 5, 256]), st.sampled_from([1, 20, None]))
def test_trees_are_those_of_the_definition(grow_tree, problem, max_bins, finish_rows):
    """With the root as a small node, and with large nodes that are split by histograms."""
    sample, task = problem[1], grouped_task(problem)
    expected = exact_tree(sample.values, task, groups=problem[2])
    assert grow_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins) == expected


@given(
    grouped_problems(),
    st.integers(1, 8),
    st.integers(1, 3),
    st.sampled_from([1, 30, None]),
    st.booleans(),
)
def test_limits_and_drawn_columns(grow_tree, device, problem, leaf, drawn, finish_rows, ties):
    sample = problem[1]
    limits = {"min_samples_leaf": leaf, "max_depth": 6, "random_ties": ties}
    limits["max_features"] = min(drawn, sample.values.shape[1])
    task = grouped_task(problem, **limits)
    expected = exact_tree(sample.values, task, groups=problem[2])
    assert grow_tree(sample, task, finish_rows=finish_rows, max_bins=4) == expected
    for tuning in [*DRAWN, *RANKED, *SPARSE, WIDE] if device == "cpu" else [DEVICE["asked"]]:
        with tuned(tuning):
            assert grow_tree(sample, task, finish_rows=finish_rows, max_bins=4) == expected


@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS[:2])
@pytest.mark.parametrize("finish_rows", [1, None])
def test_with_monotonic_constraints(grow_tree, criterion, weighted, finish_rows):
    sample = random_sample(3, 200, 4, 0 if is_regression(criterion) else 2, weighted)
    groups = (frozenset({0, 1}), frozenset({1, 2}), frozenset({3}))
    monotonic = Monotonic(np.array([1, -1, 0, 1], np.int8))
    task = grouped_task((criterion, sample, groups), n_classes=2, monotonic=monotonic)
    expected = exact_tree(sample.values, task, groups=groups)
    assert grow_tree(sample, task, finish_rows=finish_rows) == expected


# --------------------------------------------------------------------- estimators
def paths(tree):
    """The set of columns on the way to each leaf."""
    used = [frozenset()] * tree.n_nodes
    for node in range(1, tree.n_nodes):  # parents have lower numbers
        above = int(tree.parent[node])
        used[node] = used[above] | {int(tree.feature[above])}
    return {used[node] for node in np.flatnonzero(tree.is_leaf)}


def trees_of(model):
    """The trees of a fitted model of any kind."""
    return [model.tree_] if hasattr(model, "tree_") else [one.tree_ for one in model.estimators_]


def assert_equal(one, other):
    """Two models have the same trees."""
    for expected, found in zip(trees_of(one), trees_of(other), strict=True):
        assert_same_trees(expected, found)


def mixed_table(n=200, seed=0):
    """Rows of numbers with missing values and of two columns of categories, and their classes."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 6)), 1)
    X[:, 4] = rng.integers(0, 5, n)
    X[:, 5] = rng.integers(0, 30, n)
    signal = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + (X[:, 4] == 2) * (X[:, 5] % 3)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.digitize(signal, [-1, 0.5])


GROUPS = {
    "pairwise": list(combinations(range(6), 2)),
    "no_interactions": [{f} for f in range(6)],
    "lists": [{0, 1, 4}, {1, 2}, {3, 5}],
}
SHORT = ["pairwise", "no_interactions"]
FULL = pytest.mark.full
KINDS = [
    DecisionTreeClassifier(max_leaf_nodes=40),
    DecisionTreeClassifier(max_features=2, splitter="binned", max_bins=8, random_state=0),
    DecisionTreeRegressor(min_samples_leaf=3),
    DecisionTreeRegressor(splitter="random", random_state=0, device="cpu"),
    RandomForestClassifier(n_estimators=3, random_state=0),
    RandomForestRegressor(n_estimators=3, max_features=3, random_state=0),
    DecisionTreeRegressor(criterion="absolute_error"),
    RandomForestRegressor(2, criterion="quantile", quantile=0.3, max_features=2, random_state=0),
    ExtraTreesClassifier(n_estimators=3, random_state=0),
    ExtraTreesRegressor(n_estimators=3, random_state=0),
    C45Classifier(pruning=None, min_samples_leaf=1, average_gain_rule=False),
    C45Classifier(pruning=None, binary_splits=True),
    C45Classifier(winnow=True, random_state=0),
    BoostedC45Classifier(n_trials=3),
    ID3Classifier(max_depth=3),
]


@pytest.mark.parametrize("model", KINDS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("groups", ["lists", *(pytest.param(g, marks=FULL) for g in SHORT)])
@pytest.mark.parametrize("nominal", [pytest.param(None, marks=FULL), [4, 5]])
@pytest.mark.filterwarnings("ignore:BoostedC45Classifier. boosting reduced:UserWarning")
def test_no_path_uses_columns_together_that_must_not(model, groups, nominal):
    X, y = mixed_table()
    given = GROUPS[groups] if groups == "lists" else groups
    if isinstance(model, ID3Classifier):
        X = np.round(X)
    model = clone(model).set_params(interaction_cst=given, categorical_features=nominal)
    found = [paths(tree) for tree in trees_of(model.fit(X, y))]
    for path in set().union(*found):
        assert any(path <= set(group) for group in GROUPS[groups])
    free = [
        paths(tree) for tree in trees_of(clone(model).set_params(interaction_cst=None).fit(X, y))
    ]
    if not isinstance(model, (C45Classifier, BoostedC45Classifier)):  # whose trees are small
        assert any(all(not path <= set(g) for g in GROUPS[groups]) for path in set().union(*free))


@pytest.mark.parametrize("model", KINDS, ids=lambda model: type(model).__name__)
def test_groups_that_have_all_columns_change_nothing(model):
    X, y = mixed_table(80)
    X = np.round(X) if isinstance(model, ID3Classifier) else X
    one, other = clone(model), clone(model).set_params(interaction_cst=[range(6), {0, 1}])
    assert_equal(one.fit(X, y), other.fit(X, y))


@given(st.integers(0, 10**6), st.sampled_from(list(GROUPS)), st.sampled_from([None, 2]))
def test_shards_grow_the_tree_of_the_whole_table(seed, groups, max_features):
    rng = np.random.default_rng(seed)
    X, y = mixed_table(int(rng.integers(20, 300)), seed)
    model = DecisionTreeClassifier(
        interaction_cst=[list(group) for group in GROUPS[groups]], max_features=max_features,
        random_state=seed, max_bins=int(rng.choice([4, 40])),
    )  # fmt: skip
    case = Case(model, X, y, None, [4, 5])
    table = in_shards(case.coded(), np.array([0, len(X) // 3, len(X)]))
    assert_same_trees(case.expected(), clone(model).fit(table, y).tree_)


def test_threads_and_whole_trees_in_a_call_change_nothing():
    """A forest grows trees in one call; as trees by themselves they are the same."""
    X, y = mixed_table()
    forests = [
        RandomForestClassifier(3, random_state=1, interaction_cst="pairwise", n_jobs=n).fit(X, y)
        for n in (1, 3)
    ]
    assert_equal(*forests)
    limited = clone(forests[0]).set_params(max_leaf_nodes=10**6).fit(X, y)  # one by one, by levels
    assert_equal(limited, forests[0])


@pytest.mark.parametrize("is_large", [True, False])
def test_ranked_lists(monkeypatch, is_large):
    """Nodes searched column by column, and in subtrees: each has the cut of a tree of one split.

    That is grown on the rows of the node and on the columns that may split it.
    """
    if is_large:
        monkeypatch.setattr("gputree.backends.cpu.ranked.grower.MOST_SECONDS", 0.0)
        monkeypatch.setattr("gputree.backends.cpu.ranked.grower.MOST_WHOLE", 1)
    X, classes = mixed_table(150)
    y = classes + np.nan_to_num(X[:, 1])
    one = DecisionTreeRegressor(criterion="absolute_error", max_depth=1, n_jobs=1)
    grown = clone(one).set_params(max_depth=5, interaction_cst=GROUPS["lists"]).fit(X, y)
    tree, reached = grown.tree_, grown.decision_path(X).toarray() > 0
    used = [frozenset()] * tree.n_nodes
    for node in np.flatnonzero(~tree.is_leaf):
        columns, rows = columns_allowed(used[node], GROUPS["lists"]), reached[:, node]
        alone = clone(one).fit(X[rows][:, columns], y[rows]).tree_
        found = columns[alone.feature[0]], alone.threshold[0]
        assert (tree.feature[node], tree.threshold[node]) == found
        assert tree.gain[node] == pytest.approx(alone.gain[0])  # in other units
        for child in tree.first_child[node] + np.arange(2):
            used[child] = used[node] | {int(tree.feature[node])}


ON_DEVICES = [
    C45Classifier(pruning=None, min_samples_leaf=1),
    DecisionTreeClassifier(max_leaf_nodes=20),
    DecisionTreeClassifier(max_features=2, splitter="binned", max_bins=8, random_state=0),
    pytest.param(DecisionTreeRegressor(monotonic_cst=[1, 0, -1, 0, 0, 0]), marks=FULL),
    RandomForestClassifier(n_estimators=2, random_state=0),
]


@pytest.mark.parametrize("model", ON_DEVICES, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("groups", ["lists", *(pytest.param(g, marks=FULL) for g in SHORT)])
def test_devices(cuda_device, model, groups):
    """Levels down to the leaves, and subtrees of small nodes."""
    X, y = mixed_table(120)
    given = GROUPS[groups] if groups == "lists" else groups
    nominal = None if getattr(model, "monotonic_cst", None) else [4, 5]
    model = clone(model).set_params(
        interaction_cst=given, categorical_features=nominal, n_jobs=1, device="cpu"
    )
    expected = clone(model).fit(X, y)
    for rows in (1, 10**6):
        with finishing(rows):
            found = clone(model).set_params(device="cuda").fit(X, y)
            trees = zip(trees_of(expected), trees_of(found), strict=True)
            assert all(one.equals(other) for one, other in trees)


def test_shards_on_a_device(cuda_device):
    """Shards that the device counts, with subtrees that it grows of gathered rows."""
    X, y = mixed_table(150)
    for groups in ("lists", "pairwise"):
        model = InParts(
            interaction_cst=[list(group) for group in GROUPS[groups]], max_bins=8, n_jobs=1,
            max_features=2, random_state=1, categorical_features=[4, 5],
        )  # fmt: skip
        for rows in (1, 40):
            with finishing(rows):
                expected = clone(model).set_params(device="cpu").fit(X, y)
                found = clone(model).set_params(device="cuda").fit(X, y)
                assert expected.tree_.equals(found.tree_)


def test_shards_that_pass_through_a_device(emulated_device):
    X, y = mixed_table(300)
    model = DecisionTreeClassifier(
        interaction_cst=[list(group) for group in GROUPS["lists"]], max_bins=8, max_depth=5,
        max_features=2, random_state=1, n_jobs=1,
    )  # fmt: skip
    case = Case(model, X, y, None, [4, 5])
    expected = case.expected()
    assert all(tree.equals(expected) for tree in device_shards(case, 1))


# --------------------------------------------------------------------- parameters
def test_columns_by_name_and_those_in_no_group(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = mixed_table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    by_name = DecisionTreeClassifier(interaction_cst=[("a", "b"), ("b", 2)]).fit(frame, y)
    by_place = DecisionTreeClassifier(interaction_cst=[{0, 1}, {1, 2}, {3, 4, 5}]).fit(X, y)
    assert_same_trees(by_name.tree_, by_place.tree_)
    save_model(by_name, tmp_path / "model")
    assert load_model(tmp_path / "model").interaction_cst == [("a", "b"), ("b", 2)]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], r"must be a sequence of tuples or lists, got: \[0, 1\]"),
        (["ab"], r"must be a sequence of tuples or lists, got: \['ab'\]"),
        ([[0, 6]], "have 6, which is no column: .* indices from 0 to 5"),
        ([["a"]], "have 'a', which is no column"),
        ([[True, False]], "have True: a group lists columns by name or index, and is no mask"),
        ("some", "must be an instance of 'list', an instance of 'tuple'"),
    ],
)
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier, C45Classifier])
def test_errors_are_those_of_scikit_learn(kind, groups, message):
    with pytest.raises(ValueError, match=message):
        kind(interaction_cst=groups).fit(*mixed_table())


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_pairs_are_the_groups_of_two(d):
    groups = tuple(map(frozenset, combinations(range(d), min(2, d))))
    for found, expected in zip(pairs_of(d), interactions_of(groups), strict=True):
        assert np.array_equal(found, expected)


def test_pairs_of_too_many_columns():
    """They are refused before they are listed."""
    with pytest.raises(ValueError, match="of 4,999,950,000 groups lead to too many sets"):
        pairs_of(100_000)


def test_too_many_sets_of_columns(monkeypatch):
    """Groups each without one column: every subset of the columns is a set."""
    monkeypatch.setattr(interactions, "MOST_COLUMNS", 1000)
    groups = tuple(frozenset(range(24)) - {f} for f in range(24))
    with pytest.raises(ValueError, match="24 groups lead to too many sets of columns"):
        interactions_of(groups)


@given(st.lists(st.frozensets(st.integers(0, 5)), max_size=6), st.lists(st.integers(0, 5)))
def test_sets_below_a_path(groups, path):
    groups = (*groups, frozenset(range(6)).difference(*groups))
    found, here, used = interactions_of(groups), np.array([0]), frozenset()
    for f in path:
        if not found.mask(here, 6)[0, f]:
            continue
        here, used = found.children(here, np.array([f])), used | {f}
        assert np.flatnonzero(found.mask(here, 6)[0]).tolist() == columns_allowed(used, groups)
