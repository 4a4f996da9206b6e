"""Pruners as parameter objects, and on fitted estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn_trees import Classifier

from gputree import C45Classifier, DecisionTreeClassifier, ID3Classifier, load_model, save_model
from gputree.pruning import (
    PRUNERS,
    CostComplexity,
    CostComplexityCV,
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


def test_an_unseen_label_is_an_error_everywhere(fitted, table):
    X = table[0][1::2]
    assert ReducedError().prune(fitted, X, np.full(len(X), "unseen")).tree_.n_leaves == 1


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


def _table_with_holes(n=300):
    """Two nominal columns and a numeric one, all with missing values; labels partly noise."""
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
    pruner = {"cost_complexity": CostComplexity(0.01), "penalized_loss": PenalizedLoss(5.0)}.get(
        name, name
    )
    fitted = estimator(pruning=pruner, random_state=0).fit(X, y)
    fitted.tree_.check()
    assert fitted.tree_.n_leaves < grown.tree_.n_leaves
    shares = fitted.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert fitted.score(X, y) > 0.6


# -------------------------------------------------------------- every method on every way to a tree
# Each method, and the rows it takes afterwards.
METHODS = {
    "cost_complexity": (CostComplexity(0.01), None),
    "cost_complexity_cv": (CostComplexityCV(3, random_state=0), "grown"),
    "penalized_loss": (PenalizedLoss(3.0), None),
    "pessimistic": (Pessimistic(0.1), "grown"),
    "reduced_error": (ReducedError(random_state=0), "held"),
    "validation_pre_pruning": (ValidationPrePruning(random_state=0), "held"),
}


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["malignant", "benign"])[y]
    return {"grown": (X[::2], y[::2]), "held": (X[1::2], y[1::2]), None: ()}


@pytest.fixture(scope="module")
def grown(rows):
    return DecisionTreeClassifier().fit(*rows["grown"])


def save_and_load(model, folder):
    save_model(model, folder / "model.gputree")
    return load_model(folder / "model.gputree")


@pytest.mark.parametrize("name", METHODS)
def test_a_loaded_model_that_was_pruned_is_pruned_further(name, grown, rows, tmp_path):
    # The file holds the pruned tree alone: that is what later prunings start from.
    pruner, takes = METHODS[name]
    small = CostComplexity(0.01).prune(grown)
    again = pruner.prune(save_and_load(small, tmp_path), *rows[takes])
    assert again.unpruned_tree_.equals(small.tree_)
    assert again.get_n_leaves() <= small.get_n_leaves() < small.unpruned_tree_.n_leaves


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cost_complexity_cv", "pass the training X and y"),
        ("pessimistic", "pass X and y as used for growing, or set subtree_raising=False"),
        ("reduced_error", "pass X and y of a validation set"),
        ("validation_pre_pruning", "pass X and y of a validation set"),
    ],
)
def test_a_loaded_model_without_the_rows_that_a_method_needs(name, message, grown, tmp_path):
    with pytest.raises(ValueError, match=message):
        METHODS[name][0].prune(save_and_load(grown, tmp_path))


def test_parameters_of_a_pruner_by_name():
    tree = C45Classifier().set_params(pruning__confidence=0.1)
    assert tree.pruning.confidence == 0.1
    tree = C45Classifier().set_params(pruning="penalized_loss", pruning__alpha=2.0)
    assert tree.pruning.alpha == 2.0
    assert C45Classifier().set_params(max_depth=3).pruning == "pessimistic"
