"""Trees of several targets: labels and shapes are scikit-learn's, and so are the trees.

Its cases of multi-output trees, with other data; what takes one target says so.
"""

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    C45Rules,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
from gputree.editing import TreeEditor
from gputree.prediction.losses import node_loss, route
from gputree.pruning import (
    CostComplexity,
    CostComplexityCV,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    ValidationPrePruning,
    cost_complexity_path,
)
from gputree.pruning.bottom_up import collapse_splits

# Two clouds and what is between them: the first target is the sign of x, the second that of both.
X, Y = [-3, -2, -1, -2, -3, 2, 1, 3, 2], [-1, -2, -3, 2, 1, 3, 2, -1, -2]
POINTS = np.column_stack([X, Y])
LABELS = np.array([[-1, 0], [-1, 0], [-1, 0], [-1, 1], [-1, 1], [1, 3], [1, 3], [1, 2], [1, 2]])
NUMBERS = LABELS * [1.0, 2.5] + [0.0, 0.25]


@pytest.fixture(scope="module")
def table():
    """Continuous columns, targets with noise, and labels of two and of three classes."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(60, 3))
    noisy = X + rng.normal(size=X.shape)
    targets = np.column_stack([noisy[:, 0], 3 * noisy[:, 1] + 100])
    labels = np.column_stack([noisy[:, 0] > 0, np.digitize(noisy[:, 1], [-0.5, 0.7])]).astype(int)
    return X, targets, labels


def pair(kind, **params):
    """A tree and scikit-learn's, of the same parameters."""
    ours = {"classes": DecisionTreeClassifier, "numbers": DecisionTreeRegressor}[kind]
    return ours(**params), getattr(sklearn.tree, ours.__name__)(random_state=0, **params)


# ------------------------------------------------------------- against scikit-learn


def test_classes_are_lists():
    tree = DecisionTreeClassifier().fit(POINTS, LABELS)
    assert (tree.n_outputs_, tree.n_classes_) == (2, [2, 4])
    assert [labels.tolist() for labels in tree.classes_] == [[-1, 1], [0, 1, 2, 3]]
    assert_array_equal(tree.predict([[-1, -1], [-1, 1], [1, 1], [1, -1]]), LABELS[[0, 3, 5, 7]])
    shares = tree.predict_proba([[-1, -1], [1, -1]])
    assert_array_equal(shares[0], [[1, 0], [0, 1]])
    assert_array_equal(shares[1], [[1, 0, 0, 0], [0, 0, 1, 0]])
    logs = tree.predict_log_proba([[1, -1]])
    assert [part.shape for part in logs] == [(1, 2), (1, 4)]
    assert logs[1][0, 2] == 0.0
    assert tree.score(POINTS, LABELS) == 1.0


def test_means_are_of_each_target():
    tree = DecisionTreeRegressor(max_depth=1).fit(POINTS, NUMBERS)
    theirs = sklearn.tree.DecisionTreeRegressor(max_depth=1).fit(POINTS, NUMBERS)
    assert tree.n_outputs_ == 2
    assert_allclose(tree.predict(POINTS), theirs.predict(POINTS), rtol=1e-14)
    assert tree.score(POINTS, NUMBERS) == pytest.approx(theirs.score(POINTS, NUMBERS))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize(
    "params",
    [
        {"min_samples_split": 20},
        {"max_depth": 3},
        {"max_leaf_nodes": 6},
        {"min_samples_leaf": 5},
        {"ccp_alpha": 0.02},
    ],
)
def test_trees_are_those_of_scikit_learn(table, kind, params):
    X, targets, labels = table
    ours, theirs = pair(kind, **params)
    Y = targets if kind == "numbers" else labels
    ours.fit(X.astype(np.float32), Y)
    theirs.fit(X, Y)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    assert ours.tree_.value.shape == theirs.tree_.value.shape
    # scikit-learn's impurity of numbers is a difference of mean squares: errors of sums of n terms
    eps = np.finfo(np.float64).eps
    rounding = len(X) * eps * np.square(targets).max() if kind == "numbers" else 0.0
    order = [ours.tree_.value, ours.tree_.impurity, ours.tree_.weight]
    expected = [theirs.tree_.value, theirs.tree_.impurity, theirs.tree_.weighted_n_node_samples]
    for found, other in zip(order, expected, strict=True):  # nodes are numbered in another order
        lines = [np.column_stack([a.reshape(len(a), -1)]) for a in (found, other)]
        ordered = [np.sort(line, axis=0) for line in lines]
        assert_allclose(*ordered, rtol=1e-9, atol=max(1e-12, rounding))
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)
    if kind == "classes":
        for mine, other in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
            assert_allclose(mine, other, rtol=1e-12)
            assert_allclose(mine.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_cost_complexity_is_that_of_scikit_learn(table, kind):
    X, targets, labels = table
    Y = targets if kind == "numbers" else labels
    ours, theirs = pair(kind, max_depth=5)
    mine, other = (tree.cost_complexity_pruning_path(X, Y) for tree in (ours, theirs))
    assert_allclose(mine.ccp_alphas, other.ccp_alphas, rtol=1e-8, atol=1e-14)
    assert_allclose(mine.impurities, other.impurities, rtol=1e-8, atol=1e-14)
    alpha = float(np.median(other.ccp_alphas))
    ours, theirs = (tree.set_params(ccp_alpha=alpha * 1.0001).fit(X, Y) for tree in (ours, theirs))
    assert ours.get_n_leaves() == theirs.get_n_leaves()


@pytest.mark.parametrize("weight", ["balanced", [{0: 2.0, 1: 1.0}, {0: 1.0, 1: 3.0, 2: 0.5}]])
def test_class_weights_are_multiplied(table, weight):
    X, _, labels = table
    given = np.linspace(0.5, 2.0, len(X))
    ours, theirs = pair("classes", class_weight=weight, max_depth=2)
    ours.fit(X, labels, given)
    theirs.fit(X, labels, given)
    assert_allclose(ours.tree_.weight[0], theirs.tree_.weighted_n_node_samples[0])
    assert_allclose(ours.tree_.value[0], theirs.tree_.value[0])


def test_probabilities_of_nodes_are_padded():
    tree = DecisionTreeClassifier(max_depth=1).fit(POINTS, LABELS).tree_
    assert tree.value.shape == (3, 2, 4)
    assert not tree.value[:, 0, 2:].any()
    assert_allclose(tree.value.sum(axis=2), 1.0)
    assert (tree.n_outputs, tree.target_classes, tree.target_ends) == (2, (2, 4), (0, 2, 6))
    assert_array_equal(tree.of_target(1).value[:, 0], tree.value[:, 1])
    tree.check()


# ------------------------------------------------------------- kinds of targets


def frames():
    frame = pd.DataFrame({"number": LABELS[:, 0], "word": np.array(list("abcd"))[LABELS[:, 1]]})
    return {
        "pandas": frame,
        "pyarrow": pa.Table.from_pandas(frame),
        "objects": frame.to_numpy(),
        "rows": frame.to_numpy().tolist(),
    }


@pytest.mark.parametrize("source", frames())
def test_columns_keep_their_types(source):
    y = frames()[source]
    tree = DecisionTreeClassifier().fit(POINTS, y)
    assert [labels.tolist() for labels in tree.classes_] == [[-1, 1], list("abcd")]
    found = tree.predict(POINTS)
    assert found.dtype == object
    assert found[0].tolist() == [-1, "a"]
    assert tree.score(POINTS, y) == 1.0


def test_words_are_predicted_as_text():
    words = np.array([["no", "a"], ["yes", "b"]])[(POINTS[:, 0] > 0).astype(int)]
    found = DecisionTreeClassifier().fit(POINTS, words).predict(POINTS)
    assert found.dtype.kind == "U"
    assert_array_equal(found, words)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_column_vector_is_one_target(kind):
    y = (LABELS if kind == "classes" else NUMBERS)[:, :1]
    tree, _ = pair(kind)
    with pytest.warns(UserWarning, match="column-vector"):
        tree.fit(POINTS, y)
    assert tree.n_outputs_ == 1
    assert tree.predict(POINTS).shape == (9,)


def test_a_coded_table_and_missing_values(table):
    X, targets, labels = table
    X = np.where(X > 1.2, np.nan, X)
    coded = CodedTable(X)
    tree = DecisionTreeClassifier(max_depth=3).fit(coded, labels)
    assert tree.tree_.equals(DecisionTreeClassifier(max_depth=3).fit(X, labels).tree_)
    assert tree.score(coded, labels) == tree.score(X, labels)
    assert DecisionTreeRegressor(max_depth=3).fit(coded, targets).predict(coded).shape == (60, 2)


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        ("numbers", np.where(NUMBERS == 0.25, np.nan, NUMBERS), "Input y contains NaN"),
        ("numbers", NUMBERS[:-1], "inconsistent numbers of samples"),
        ("numbers", NUMBERS[:, :, None], "dim 3"),
        ("numbers", LABELS.astype(str), "takes numeric targets"),
        ("classes", NUMBERS + 0.1, "Unknown label type: continuous"),
        ("classes", csr_array(LABELS), "Sparse data was passed for y"),
        ("classes", [[0], [1, 2], *[[1]] * 7], "legacy multi-label data representation"),
    ],
)
def test_other_targets_are_refused(kind, y, message):
    tree, _ = pair(kind)
    with pytest.raises(ValueError, match=message):
        tree.fit(POINTS, y)
    assert not hasattr(tree, "tree_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"class_weight": {0: 1}}, "class_weight should be a list of dicts, or the string"),
        ({"class_weight": [{0: 1}]}, "number of elements in class_weight should match"),
        ({"classes": [0, 1]}, "'classes' parameter of DecisionTreeClassifier takes one target"),
        ({"misclassification_costs": {(0, 1): 2.0}}, "'misclassification_costs' parameter"),
        ({"monotonic_cst": [1, 0]}, "not supported with multiple outputs"),
        ({"forced_splits": {"feature": 0, "threshold": 0.0}}, "forced_splits of DecisionTree"),
        ({"splitter": "binned"}, "Several targets are not supported with splitter='binned'"),
    ],
)
def test_parameters_of_one_target_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(**params).fit(POINTS, LABELS)


def test_a_list_of_class_weights_needs_several_targets():
    with pytest.raises(ValueError, match="must be a dict where y has one target"):
        DecisionTreeClassifier(class_weight=[{-1: 1, 1: 1}]).fit(POINTS, LABELS[:, 0])


@pytest.mark.parametrize(
    "estimator",
    [
        C45Classifier(),
        ID3Classifier(),
        BoostedC45Classifier(),
        C45Rules(),
        C45Rules(DecisionTreeClassifier()),
    ],
)
def test_others_take_one_target(estimator):
    with pytest.raises(ValueError, match="takes one target"):
        estimator.fit(POINTS, LABELS)


# ------------------------------------------------------------- pruning, edits, reports


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("pruner", [ReducedError(), ValidationPrePruning()])
def test_pruning_by_rows_adds_up_the_losses_of_targets(table, kind, pruner):
    X, targets, labels = table
    Y = targets if kind == "numbers" else labels
    tree = pair(kind)[0].fit(X[:40], Y[:40])
    pruned = pruner.prune(tree, X[40:], Y[40:])
    assert pruned.get_n_leaves() < tree.get_n_leaves()
    loss = node_loss(pruned.tree_, route(pruned, X[40:], Y[40:], None))
    found = pruned.predict(X[40:])
    wrong = found != Y[40:] if kind == "classes" else (found - Y[40:]) ** 2
    assert loss.stopped.sum() == pytest.approx(wrong.sum() / 2)


@pytest.mark.parametrize("pruner", [Pessimistic(), PenalizedLoss(), CostComplexityCV()])
def test_other_pruners_take_one_target(table, pruner):
    X, _, labels = table
    with pytest.raises(ValueError, match=f"{type(pruner).__name__} takes one target"):
        pruner.prune(DecisionTreeClassifier().fit(X, labels), X, labels)
    with pytest.raises(ValueError, match=f"{type(pruner).__name__} takes one target"):
        DecisionTreeClassifier(pruning=pruner).fit(X, labels)


def test_the_risk_of_errors_is_the_mean_of_targets(table):
    X, _, labels = table
    tree = DecisionTreeClassifier().fit(X, labels)
    path = cost_complexity_path(tree.tree_, "error")
    assert path.impurities[0] == pytest.approx((tree.predict(X) != labels).mean())
    assert CostComplexity(0.1, risk="error").prune(tree).get_n_leaves() < tree.get_n_leaves()


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_report_of_each_target_is_that_of_its_tree(table, kind):
    X, targets, labels = table
    Y = targets if kind == "numbers" else labels
    model = pair(kind)[0].set_params(max_depth=2).fit(X, Y)
    for j, found in enumerate(model.report(X, Y)):
        one = copy.copy(model)
        one.tree_, one.n_outputs_ = model.tree_.of_target(j), 1
        if kind == "classes":
            one.classes_, one.n_classes_ = model.classes_[j], model.n_classes_[j]
        assert found.as_dict() == one.report(X, Y[:, j]).as_dict()
    with pytest.raises(ValueError, match="y must have 2 targets, as in fit; got 1"):
        model.report(X, Y[:, 0])


def test_what_takes_one_target_says_so(table):
    X, _, labels = table
    tree = DecisionTreeClassifier().fit(X, labels)
    with pytest.raises(ValueError, match="TreeEditor takes one target"):
        TreeEditor(tree, X, labels)
    with pytest.raises(ValueError, match="collapse_splits takes one target"):
        collapse_splits(tree.tree_)
    with pytest.raises(ValueError, match="y must have 2 targets, as in fit; got 1"):
        tree.score(X, labels[:, 0])


def test_pickles_and_notebooks(table):
    X, targets, _ = table
    tree = DecisionTreeRegressor(max_depth=2).fit(X, targets)
    again = pickle.loads(pickle.dumps(tree))
    assert again.tree_.equals(tree.tree_)
    assert_array_equal(again.predict(X), tree.predict(X))
    assert "mse" in tree._repr_html_()
    assert tree.apply(X).shape == (60,)
    assert tree.decision_path(X).shape == (60, tree.tree_.n_nodes)
    assert tree.feature_importances_.sum() == pytest.approx(1.0)
