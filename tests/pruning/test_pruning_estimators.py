"""Every method on every way to a tree: in a grid search, after a fit, on a loaded model."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    load_model,
    save_model,
)
from gputree.pruning import (
    CostComplexity,
    CostComplexityCV,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    ValidationPrePruning,
)

# Each method, the rows it takes afterwards, and values of a parameter that prune to more
# and more leaves.
METHODS = {
    "cost_complexity": (CostComplexity(0.01), None, "alpha", [1.0, 0.005]),
    "cost_complexity_cv": (CostComplexityCV(3, random_state=0), "grown", "rule", ["1se", "min"]),
    "penalized_loss": (PenalizedLoss(3.0), None, "alpha", [1e3, 3.0]),
    "pessimistic": (Pessimistic(0.1), "grown", "confidence", [0.25, 0.7]),
    "reduced_error": (ReducedError(random_state=0), "held", "validation_fraction", [0.9, 0.3]),
    "validation_pre_pruning": (
        ValidationPrePruning(random_state=0),
        "held",
        "validation_fraction",
        [0.95, 0.3],
    ),
}


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["malignant", "benign"])[y]
    return {"grown": (X[::2], y[::2]), "held": (X[1::2], y[1::2]), None: ()}


@pytest.fixture(scope="module")
def fitted(rows):
    return DecisionTreeClassifier().fit(*rows["grown"])


def save_and_load(model, folder):
    save_model(model, folder / "model.gputree")
    return load_model(folder / "model.gputree")


@pytest.mark.full
@pytest.mark.parametrize("name", METHODS)
def test_a_grid_search_reaches_the_parameters(name, rows):
    pruner, _, parameter, values = METHODS[name]
    search = GridSearchCV(
        DecisionTreeClassifier(pruning=pruner),
        {f"pruning__{parameter}": values},
        scoring=lambda model, X, y: model.get_n_leaves(),
        cv=2,
    ).fit(*rows["grown"])
    assert search.best_params_ == {f"pruning__{parameter}": values[1]}
    fewest, most = search.cv_results_["mean_test_score"]
    assert fewest < most
    assert search.best_estimator_.pruning.get_params()[parameter] == values[1]


@pytest.mark.full
@pytest.mark.parametrize("name", METHODS)
def test_a_loaded_model_is_pruned_like_the_fitted_one(name, fitted, rows, tmp_path):
    pruner, takes, *_ = METHODS[name]
    pruned = pruner.prune(save_and_load(fitted, tmp_path), *rows[takes])
    assert pruned.tree_.equals(pruner.prune(fitted, *rows[takes]).tree_)
    assert 1 < pruned.get_n_leaves() < fitted.get_n_leaves()
    assert pruned.unpruned_tree_.equals(fitted.tree_)
    X, _ = rows["held"]
    assert set(pruned.predict(X)) <= {"benign", "malignant"}


@pytest.mark.parametrize("name", METHODS)
def test_a_loaded_model_that_was_pruned_is_pruned_further(name, rows, tmp_path):
    # The file holds the pruned tree alone: that is what later prunings start from.
    pruner, takes, *_ = METHODS[name]
    small = CostComplexity(0.01).prune(DecisionTreeClassifier().fit(*rows["grown"]))
    again = pruner.prune(save_and_load(small, tmp_path), *rows[takes])
    assert again.unpruned_tree_.equals(small.tree_)
    assert again.get_n_leaves() <= small.get_n_leaves() < small.unpruned_tree_.n_leaves


@pytest.mark.parametrize("name", [name for name in METHODS if name != "pessimistic"])
def test_loaded_regression(name, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    fitted = DecisionTreeRegressor().fit(X[::2], y[::2])
    pruner, takes, *_ = METHODS[name]
    pruner = {"cost_complexity": CostComplexity(100.0), "penalized_loss": PenalizedLoss(2e4)}.get(
        name, pruner
    )
    held = {"grown": (X[::2], y[::2]), "held": (X[1::2], y[1::2]), None: ()}[takes]
    pruned = pruner.prune(save_and_load(fitted, tmp_path), *held)
    assert pruned.tree_.equals(pruner.prune(fitted, *held).tree_)
    assert 1 < pruned.get_n_leaves() < fitted.get_n_leaves()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cost_complexity_cv", "pass the training X and y"),
        ("pessimistic", "pass X and y as used for growing, or set subtree_raising=False"),
        ("reduced_error", "pass X and y of a validation set"),
        ("validation_pre_pruning", "pass X and y of a validation set"),
    ],
)
def test_a_loaded_model_without_the_rows_that_a_method_needs(name, message, fitted, tmp_path):
    with pytest.raises(ValueError, match=message):
        METHODS[name][0].prune(save_and_load(fitted, tmp_path))


def test_parameters_of_a_pruner_by_name():
    tree = C45Classifier().set_params(pruning__confidence=0.1)
    assert tree.pruning.confidence == 0.1
    tree = C45Classifier().set_params(pruning="penalized_loss", pruning__alpha=2.0)
    assert tree.pruning.alpha == 2.0
    assert C45Classifier().set_params(max_depth=3).pruning == "pessimistic"
