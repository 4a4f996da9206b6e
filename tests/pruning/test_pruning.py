"""Pruners as parameter objects, and on fitted estimators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
from sklearn_trees import Classifier, Regressor, from_sklearn

from gputree import C45Classifier, ID3Classifier
from gputree.pruning import (
    PRUNERS,
    CostComplexity,
    PenalizedLoss,
    Pessimistic,
    Pruner,
    ReducedError,
    ValidationPrePruning,
    get_pruner,
)


@pytest.fixture(scope="module")
def table():
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.array(["malignant", "benign"])[y]


@pytest.fixture(scope="module")
def fitted(table):
    return Classifier().fit(table[0][::2], table[1][::2])


def test_pruning_leaves_the_estimator_as_it_is(fitted):
    before = fitted.tree_
    pruned = CostComplexity(0.02).prune(fitted)
    assert fitted.tree_ is before
    assert pruned.tree_.n_leaves < before.n_leaves
    assert pruned.unpruned_tree_ is before
    assert pruned.get_params() == fitted.get_params()


def test_pruning_starts_from_the_tree_as_grown(fitted):
    stump = CostComplexity(0.2).prune(fitted)
    again = CostComplexity(0.02).prune(stump)
    assert again.tree_.equals(CostComplexity(0.02).prune(fitted).tree_)
    assert again.tree_.n_leaves > stump.tree_.n_leaves


@pytest.mark.parametrize("pruner", [ReducedError(), ValidationPrePruning()])
def test_validation_rows_improve_on_them(pruner, fitted, table):
    X, y = table[0][1::2], table[1][1::2]
    stump = CostComplexity(0.2).prune(fitted)
    pruned = pruner.prune(stump, X, y)  # routed through the unpruned tree all the same
    assert 1 < pruned.tree_.n_leaves < fitted.tree_.n_leaves


def test_an_unseen_label_is_an_error_everywhere(fitted, table):
    X = table[0][1::2]
    assert ReducedError().prune(fitted, X, np.full(len(X), "unseen")).tree_.n_leaves == 1


def test_sample_weight_counts_like_rows(fitted, table):
    X, y = table[0][1::2], table[1][1::2]
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = ReducedError().prune(fitted, np.repeat(X, weight, axis=0), np.repeat(y, weight))
    weighted = ReducedError().prune(fitted, X, y, sample_weight=weight)
    assert weighted.tree_.equals(repeated.tree_)


def test_regression_by_validation_rows():
    X, y = load_diabetes(return_X_y=True)
    fitted = Regressor().fit(X[::2], y[::2])
    pruned = ReducedError().prune(fitted, X[1::2], y[1::2])
    assert 1 < pruned.tree_.n_leaves < fitted.tree_.n_leaves / 2


def test_pessimistic_takes_the_training_rows(fitted, table):
    X, y = table[0][::2], table[1][::2]
    raised = Pessimistic(0.05).prune(fitted, X, y)
    replaced = Pessimistic(0.05, subtree_raising=False).prune(fitted)
    assert 1 < raised.tree_.n_leaves <= replaced.tree_.n_leaves < fitted.tree_.n_leaves
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Pessimistic().prune(fitted, X, y[1:])
    with pytest.raises(ValueError, match=r"X has 3 features, but .*Classifier is expecting 30"):
        Pessimistic().prune(fitted, X[:, :3], y)
    with pytest.raises(ValueError, match=r"not grown on: \['unseen'\]"):
        Pessimistic().prune(fitted, X, np.where(np.arange(len(y)) == 3, "unseen", y))
    with pytest.raises(ValueError, match="needs the rows that the tree was grown on"):
        Pessimistic().prune(fitted, *table)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        CostComplexity().prune(Classifier())


def test_rows_and_targets_come_together(fitted, table):
    with pytest.raises(ValueError, match=r"ReducedError\.prune needs X and y together"):
        ReducedError().prune(fitted, table[0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ReducedError().prune(fitted, table[0], table[1][1:])
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        ReducedError().prune(fitted, *table, sample_weight=-np.ones(len(table[1])))
    with pytest.raises(ValueError, match="pass X and y of a validation set"):
        ReducedError().prune(fitted)


def test_parameters_are_reachable_in_a_grid_search(table):
    search = GridSearchCV(
        Classifier(CostComplexity()),
        {"pruning__alpha": [0.0, 0.05, 0.5]},
        scoring=lambda model, X, y: -model.tree_.n_leaves,
        cv=2,
    ).fit(*table)
    assert search.best_params_ == {"pruning__alpha": 0.5}
    assert search.best_estimator_.tree_.n_leaves == 1


@pytest.mark.parametrize("name", [name for name in PRUNERS if name != "cost_complexity"])
def test_a_short_name_is_its_pruner(name):
    pruner = get_pruner(name)
    assert type(pruner) is PRUNERS[name]
    assert clone(pruner).get_params() == pruner.get_params()
    assert get_pruner(pruner) is pruner


def test_cost_complexity_by_name_lacks_its_alpha():
    message = r"pass pruning=CostComplexity\(alpha\), or 'cost_complexity_cv'"
    with pytest.raises(ValueError, match=message):
        get_pruner("cost_complexity")


def test_unknown_pruners():
    with pytest.raises(ValueError, match=r"'pruning' parameter must be .* Got 'pessimist' instead"):
        get_pruner("pessimist")
    with pytest.raises(TypeError, match=r"'pruning' parameter must be .* Got 3 instead"):
        get_pruner(3)
    with pytest.raises(NotImplementedError):
        Pruner().prune_tree(None)


@given(st.floats(0, 1), st.floats(0.01, 0.5))
def test_a_single_leaf_stays(alpha, confidence):
    X = np.zeros((4, 1))
    tree = from_sklearn(DecisionTreeClassifier().fit(X, [0, 1, 0, 1]))
    for pruner in (CostComplexity(alpha), PenalizedLoss(alpha), Pessimistic(confidence, False)):
        assert pruner.prune_tree(tree).equals(tree)


def _table_with_holes(n=300):
    """Two nominal columns and a numeric one, holes in all; labels that are partly noise."""
    rng = np.random.default_rng(0)
    colour, size = rng.choice(["red", "green", "blue"], n), rng.choice(["s", "m", "l"], n)
    number = rng.integers(0, 6, n)
    y = np.where(((colour == "red") | (number > 3)) ^ (rng.random(n) < 0.1), "yes", "no")
    X = np.column_stack([colour.astype(object), size.astype(object), number.astype(object)])
    X[rng.random(X.shape) < 0.1] = None
    return X, y


@pytest.mark.parametrize("estimator", [C45Classifier, ID3Classifier])
@pytest.mark.parametrize("name", PRUNERS)
def test_multiway_trees_with_missing_values(name, estimator):
    X, y = _table_with_holes()
    grown = estimator(pruning=None, random_state=0).fit(X, y)
    pruner = {
        "cost_complexity": CostComplexity(0.01),
        "penalized_loss": PenalizedLoss(5.0),
    }.get(name, name)
    fitted = estimator(pruning=pruner, random_state=0).fit(X, y)
    fitted.tree_.check()
    assert fitted.tree_.n_leaves < grown.tree_.n_leaves
    shares = fitted.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert fitted.score(X, y) > 0.6
