"""Trees whose predictions only rise, or only fall, with some columns."""

import dataclasses
import re

import numpy as np
import pytest
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact_tree
from sklearn import tree as sklearn_tree
from sklearn_twins import assert_same_tree, fit_both, make_table
from strategies import is_regression, make_task, monotonic_problems, random_sample, suit
from tunings import DEVICE, DRAWN, HOST, RANKED, SORTED, SPARSE, WIDE, tuned
from twins import as_dtype
from twins import assert_same_tree as assert_equal_trees

from gputree import CodedTable, DecisionTreeClassifier, DecisionTreeRegressor, load_model
from gputree.backends.base import Monotonic
from gputree.cli.options import _signs
from gputree.datasets import load_iris
from gputree.export import export_text, path_rules, to_sklearn
from gputree.pruning import CostComplexity, Pessimistic, ReducedError

KINDS = (("gini", False), ("entropy", True), ("squared_error", True), ("poisson", False))


def held_task(problem, **options):
    criterion, sample, signs = problem
    n_classes = None if is_regression(criterion) else 2
    return make_task(criterion, sample, n_classes=n_classes, monotonic=Monotonic(signs), **options)


# ------------------------------------------------------------------------- growth
@given(monotonic_problems(kinds=KINDS), st.sampled_from([2, 5, 256]), st.sampled_from([1, 20]))
def test_trees_are_those_of_the_definition(grow_tree, problem, max_bins, finish_rows):
    """With the root as a small node, and with large nodes that are split by histograms."""
    sample, task = problem[1], held_task(problem)
    expected = exact_tree(sample.values, task)
    assert grow_tree(sample, task) == expected
    assert grow_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins) == expected


@given(
    monotonic_problems(kinds=KINDS),
    st.integers(1, 8),
    st.integers(0, 9),
    st.integers(1, 3),
    st.sampled_from([1, 30, None]),
    st.booleans(),
)
def test_limits_and_drawn_columns(
    grow_tree, device, problem, leaf, weight, max_features, finish_rows, ties
):
    sample = problem[1]
    limits = {"min_samples_leaf": leaf, "min_weight_leaf": weight, "max_depth": 6}
    limits["random_ties"] = ties
    drawn = min(max_features, sample.values.shape[1])
    task = held_task(problem, max_features=drawn, **limits)
    expected = exact_tree(sample.values, task)
    assert grow_tree(sample, task, finish_rows=finish_rows, max_bins=4) == expected
    for tuning in [*DRAWN, *RANKED, SORTED, *SPARSE, WIDE] if device == "cpu" else []:
        with tuned(tuning):
            assert grow_tree(sample, task, finish_rows=finish_rows, max_bins=4) == expected


@given(monotonic_problems(150, KINDS[::2]), st.integers(2, 9))
def test_cells_do_not_change_the_tree(grow_tree, device, problem, max_bins):
    sample, task = problem[1], held_task(problem)
    expected = exact_tree(sample.values, task)
    for name, tuning in (HOST if device == "cpu" else DEVICE).items():
        with tuned(tuning):
            tree = grow_tree(sample, task, n_threads=2, finish_rows=1, max_bins=max_bins)
        assert tree == expected, name


@pytest.mark.parametrize(("warps", "copied"), [(1, (0, 0)), (3, (200, 0)), (8, (200, 200))])
def test_subtrees_in_global_and_in_shared_memory(cuda_device, monkeypatch, warps, copied):
    """Bounds are handed down where all warps of a block split a node, and where one does."""
    tune(monkeypatch, "cuda", scratch_bytes=5000, finish_warps=warps, warp_rows=7)
    monkeypatch.setattr("gputree.backends.cuda.finish.shared_rows", lambda _: copied)
    for criterion, weighted in KINDS:
        n_classes = 0 if is_regression(criterion) else 2
        sample = as_dtype(random_sample(5, 200, 5, n_classes, weighted), np.float32)
        for limits in ({}, {"max_features": 2, "max_depth": 7, "min_samples_leaf": 3}):
            signs = np.array([1, -1, 0, 1, -1], np.int8)
            task = held_task((criterion, sample, signs), **limits)
            assert_equal_trees(sample, task, finish_rows=None)


# -------------------------------------------------------------------------- order
def answers(model, X):
    """The probability of the second class, or the mean target."""
    return model.predict_proba(X)[:, -1] if hasattr(model, "classes_") else model.predict(X)


def assert_in_order(model, X, signs):
    """Predictions at every value that the tree distinguishes, in rows that are equal otherwise."""
    tree = model.tree_
    for f in np.flatnonzero(signs):
        at = np.unique(tree.threshold[(tree.feature == f) & np.isfinite(tree.threshold)])
        if at.size == 0:
            continue
        steps = np.append(at, np.nextafter(at[-1], np.inf))
        rows = np.repeat(X[:40].astype(np.float64), steps.size, axis=0)
        rows[:, f] = np.tile(steps, min(len(X), 40))
        found = answers(model, rows).reshape(-1, steps.size)
        assert (np.diff(found, axis=1) * signs[f] >= 0).all(), f


PRUNERS = [
    None,
    CostComplexity(0.01),
    CostComplexity(0.01, risk="error"),
    ReducedError(0.3),
    Pessimistic(),
]


@given(
    monotonic_problems(300, KINDS),
    st.sampled_from(PRUNERS),
    st.fixed_dictionaries(
        {
            "splitter": st.sampled_from(["exact", "binned"]),
            "max_bins": st.sampled_from([4, 256]),
            "max_leaf_nodes": st.sampled_from([None, 2, 7]),
            "min_samples_leaf": st.sampled_from([1, 5]),
            "max_features": st.sampled_from([None, 1]),
            "max_depth": st.sampled_from([None, 3]),
        }
    ),
)
def test_answers_are_in_order(problem, pruning, options):
    """To the last bit, with missing values and weights, whatever limits growth or prunes."""
    criterion, sample, signs = problem
    kind = DecisionTreeRegressor if is_regression(criterion) else DecisionTreeClassifier
    if kind is DecisionTreeRegressor and isinstance(pruning, Pessimistic):
        pruning = None
    if pruning is not None and len(sample.y) < 10:
        pruning = None
    if getattr(pruning, "risk", "impurity") == "error" and kind is DecisionTreeRegressor:
        pruning = None
    y = suit(criterion, sample.y) if is_regression(criterion) else sample.y
    model = kind(
        criterion=criterion, monotonic_cst=signs, pruning=pruning, random_state=0, **options
    )
    if criterion == "poisson" and not y.any():
        y = y + 1.0
    model.fit(sample.values, y, sample.weight)
    model.tree_.check()
    assert_in_order(model, sample.values, signs)


def test_a_cut_of_another_column_leads_out_of_the_bounds():
    """x at most 1.5 predicts at most the middle, whatever z is there, and keeps its rows."""
    X = np.array([[1, 0]] * 6 + [[1, 1]] + [[2, 0]] * 6, np.float64)
    y = np.array([0.0] * 6 + [7.0] + [5.0] * 6)
    model = DecisionTreeRegressor(monotonic_cst=[1, 0]).fit(X, y)
    free = DecisionTreeRegressor().fit(X, y)
    assert free.predict([[1, 1], [2, 1]]).tolist() == [7.0, 5.0]
    assert model.tree_.feature.tolist() == [0, 1, -2, -2, -2]
    assert model.predict([[1, 0], [1, 1], [2, 1]]).tolist() == [0.0, 3.0, 5.0]
    assert model.tree_.statistics[1:, 0].tolist() == [1.0, 5.0, 0.0, 7.0]
    assert model.tree_.upper.tolist() == [np.inf, 3.0, np.inf, 3.0, 3.0]
    assert [rule.prediction for rule in path_rules(model)] == ["0", "3", "5"]
    assert "7" not in export_text(model)


# ------------------------------------------------------------------- scikit-learn
@pytest.mark.full
@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": 20}, {"max_depth": 4}])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_trees_are_those_of_scikit_learn(criterion, options):
    kind = DecisionTreeRegressor if is_regression(criterion) else DecisionTreeClassifier
    X, y = make_table(0 if is_regression(criterion) else 2, seed=4)
    y = np.abs(y) if criterion == "poisson" else y
    free = kind(criterion=criterion, min_samples_leaf=20, **options).fit(X, y)
    for signs in ([1, 0, 0, 0, -1], [1, 1, 0, 0, 1], [-1, 0, 1, 0, 0]):
        ours, theirs = fit_both(kind, X, y, criterion=criterion, monotonic_cst=signs, **options)
        assert_same_tree(ours, theirs, ties=1)
        assert not ours.tree_.equals(free.tree_)


def test_binary_labels_of_any_kind_rise_with_the_second():
    data = load_iris()
    rows = data.target != data.target[0]
    X, y = data.data[rows], data.target[rows]
    up = DecisionTreeClassifier(monotonic_cst=[1, 1, 1, 1], max_depth=3).fit(X, y)
    down = DecisionTreeClassifier(monotonic_cst=[-1, -1, -1, -1], max_depth=3).fit(X, y)
    assert_in_order(up, X, np.ones(4))
    assert_in_order(down, X, -np.ones(4))
    assert up.score(X, y) > 0.9 > down.score(X, y)


# --------------------------------------------------------------------- parameters
X4 = np.arange(24.0).reshape(8, 3)
Y4 = np.array([0, 1, 1, 0, 1, 1, 0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 0], r"monotonic_cst has shape \(2,\) but the input data X has 3 features"),
        ([1, 0, 2], "monotonic_cst must be an array-like of -1, 0 or 1"),
        ([0.5, 0, 0], "monotonic_cst must be an array-like of -1, 0 or 1"),
        ([[1, 0, 0]], "a dict or an array-like of one dimension, but got one of 2"),
        ({"a": 1}, "was not fitted on data with feature names"),
        ("up", "'monotonic_cst' parameter of DecisionTree.* must be an array-like, an instance"),
    ],
)
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_constraints_that_are_refused(kind, given, message):
    with pytest.raises(ValueError, match=message):
        kind(monotonic_cst=given).fit(X4, Y4)


def test_more_than_two_classes_are_refused():
    model = DecisionTreeClassifier(monotonic_cst=[1, 0, 0])
    words = r"not supported with multiclass classification\. .* got y with 3 classes"
    with pytest.raises(ValueError, match=words):
        model.fit(X4, [0, 1, 2, 0, 1, 2, 0, 1])


def test_categories_are_refused_by_name():
    import pandas as pd

    frame = pd.DataFrame({"size": X4[:, 0], "colour": list("rgbrgbrg")})
    model = DecisionTreeClassifier(monotonic_cst={"size": 1, "colour": -1})
    words = r"not supported with categories.* got monotonic_cst with -1 for column 'colour'"
    with pytest.raises(ValueError, match=words):
        model.fit(frame, Y4)
    with pytest.raises(ValueError, match=r"1 unexpected feature names: \['weight'\]"):
        model.set_params(monotonic_cst={"weight": 1}).fit(frame, Y4)
    with pytest.raises(ValueError, match=r"monotonic_cst\['size'\] must be either -1, 0 or 1"):
        model.set_params(monotonic_cst={"size": "up"}).fit(frame, Y4)
    fitted = model.set_params(monotonic_cst={"size": 1}).fit(frame, Y4)
    same = model.set_params(monotonic_cst=np.array([1, 0])).fit(frame, Y4)
    assert fitted.tree_.equals(same.tree_)


def test_a_single_class_and_no_signs_hold_nothing():
    tree = DecisionTreeClassifier(monotonic_cst=[1, 0, 0]).fit(X4, np.zeros(8)).tree_
    assert tree.n_nodes == 1
    assert tree.lower is None
    free = DecisionTreeClassifier(monotonic_cst=[0, 0, 0]).fit(X4, Y4).tree_
    assert free.equals(DecisionTreeClassifier().fit(X4, Y4).tree_)


def test_tables_are_shared_by_tasks_with_and_without():
    X, y = make_table(2, n=400)
    table = CodedTable(X)
    for signs in (None, [1, 0, 0, 0, 0], [-1, 0, 0, 0, 1]):
        model = DecisionTreeClassifier(monotonic_cst=signs, max_depth=4)
        assert model.fit(table, y).tree_.equals(model.fit(X, y).tree_)


# -------------------------------------------------------------------------- files
@pytest.fixture(scope="module")
def held():
    X, y = make_table(2, n=300, seed=6)
    return DecisionTreeClassifier(monotonic_cst=[1, 0, 0, -1, 0]).fit(X, y), X


def test_a_scikit_learn_tree_answers_as_it(held):
    model, X = held
    twin = to_sklearn(model)
    assert isinstance(twin, sklearn_tree.DecisionTreeClassifier)
    assert (twin.predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.parametrize(
    "change",
    [
        {"upper": None},
        {"lower": lambda b: np.full_like(b, 2.0)},
        {"lower": lambda b: np.full_like(b, np.nan)},
        {"lower": lambda b: b[1:]},
    ],
)
def test_bounds_that_are_none(held, change):
    tree = held[0].tree_
    new = {name: f and f(getattr(tree, name)) for name, f in change.items()}
    with pytest.raises(ValueError, match=re.escape("Invalid tree")):
        dataclasses.replace(tree, **new).check()


# ------------------------------------------------------------------------ command
def test_columns_are_named_on_the_command_line(gputree, misused, tmp_path):
    path, model = tmp_path / "flats.csv", tmp_path / "model"
    rows = [f"{area},{area % 7},{area + area % 5}" for area in range(40)]
    path.write_text("\n".join(['"area, net",noise,rent', *rows]))
    for signs in ("area, net=+1,noise=-1", '"area, net"=1,noise=-1'):
        command = ("train", path, "--target", "rent", "--monotonic-cst", signs, "-o", model)
        status, _, errors = gputree(*command, "--task", "regression", "--quiet")
        assert status == 0, errors
        found = load_model(model)
        assert found.monotonic_cst == {"area, net": 1, "noise": -1}
        assert found.tree_.lower is not None
    for wrong in ("noise", "noise=2", "=1", "noise=1,"):
        given = ("train", path, "--target", "rent", "--monotonic-cst", wrong, "-o", model)
        assert "must be COLUMN=1 or COLUMN=-1" in misused(*given)
    odd = {"x=1,y": 1, 'a "b"': -1, "c": 1}  # only quotes distinguish these
    assert _signs('"x=1,y"=1,"a ""b"""=-1,c=+1') == odd
