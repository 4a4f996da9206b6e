"""Laws for every model: of weights, of the order of rows, of the form of the table."""

import re
from dataclasses import fields

import numpy as np
import pytest
from mixed_tables import mixed_table
from sklearn.base import clone

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.estimators.cart import Cart
from gputree.evaluation import Moments, answers_by_target
from gputree.pruning import (
    CostComplexity,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    ValidationPrePruning,
)

N = 30
C45 = {"min_samples_leaf": 1}
COSTS = {"misclassification_costs": [[0, 1, 2], [5, 0, 1], [20, 4, 0]]}
CLASSIFIERS = {
    "gini": DecisionTreeClassifier(),
    "entropy": DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=6),
    "binned": DecisionTreeClassifier(splitter="binned", max_bins=255),
    "cost complexity": DecisionTreeClassifier(pruning=CostComplexity(0.01)),
    "penalized": DecisionTreeClassifier(pruning=PenalizedLoss(0.5)),
    "C4.5": C45Classifier(**C45),
    "C4.5 binary": C45Classifier(binary_splits=True, pruning=None, collapse=False, **C45),
    "soft": C45Classifier(soft_thresholds=True, laplace=True, **C45),
    "ID3": ID3Classifier(max_depth=3),
    "costs": DecisionTreeClassifier(**COSTS),
    "rules": C45Rules(C45Classifier(**C45)),
    "rules of CART": C45Rules(DecisionTreeClassifier()),
    "rules of ID3": C45Rules(ID3Classifier()),
    "boosted": BoostedC45Classifier(n_trials=2, **C45),
    "boosted costs": BoostedC45Classifier(n_trials=2, **COSTS, **C45),
    "boosted rules": BoostedC45Rules(n_trials=2, **C45),
}
REGRESSORS = {
    "squared error": DecisionTreeRegressor(max_depth=4),
    "poisson": DecisionTreeRegressor(criterion="poisson", max_depth=4),
    "absolute error": DecisionTreeRegressor(criterion="absolute_error", max_depth=4),
}
MODELS = {name: (model, False) for name, model in CLASSIFIERS.items()}
MODELS |= {name: (model, True) for name, model in REGRESSORS.items()}
FORESTS = {
    "forest": (RandomForestClassifier(n_estimators=8, oob_score=True, random_state=0), False),
    "regression forest": (RandomForestRegressor(n_estimators=2, random_state=0), True),
    "extra-trees": (ExtraTreesClassifier(n_estimators=2, random_state=0), False),
}


def rows_of(name, of_numbers):
    """Numbers, categories, missing values; for ID3 few different ones."""
    X, y = mixed_table(3, N)
    X = X[:, :3]
    if "ID3" in name:
        X[:, 1:] = np.where(X[:, 1:].astype(float) > 0, "high", "low")
    return X, np.unique(y, return_inverse=True)[1] * 1.5 + 0.25 if of_numbers else y


def numbers(model, X):
    """Collect the numbers and texts of a fitted model, but for the numbers of rows."""
    found = {"predict": model.predict(X)}
    if hasattr(model, "predict_proba"):
        found["proba"] = model.predict_proba(X)
    for k, tree in enumerate([model, *getattr(model, "estimators_", [])]):
        if hasattr(tree, "rules_"):
            found[f"{k} rules"] = re.sub(r"\d+\.\d+", rounded, tree.rules_.to_json())
        elif hasattr(tree, "tree_"):
            names = {field.name for field in fields(tree.tree_)} - {"n_rows"}
            found |= {f"{k} {name}": getattr(tree.tree_, name) for name in names}
    for name in ("feature_importances_", "estimator_weights_", "estimator_errors_", "oob_score_"):
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name))
    return found


def rounded(number):
    return f"{float(number[0]):.9g}"


def assert_same(found, expected, *skipped):
    """Equal but for rounding: fractional weights depend on the unit."""
    assert found.keys() == expected.keys()
    for name in found.keys() - set(skipped):
        value = found[name]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(value, expected[name], rtol=1e-10, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(value, expected[name], err_msg=name)


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_is_that_many_copies(name):
    """But for where values would go that no row of a node lacks: the side of more rows."""
    model, of_numbers = MODELS[name]
    X, y = rows_of(name, of_numbers)
    weight = np.random.default_rng(1).integers(1, 4, N)
    copies = np.repeat(np.arange(N), weight)
    expected = numbers(model.fit(X[copies], y[copies]), X)
    assert_same(numbers(model.fit(X, y, weight.astype(float)), X), expected, "0 missing_child")


@pytest.mark.parametrize("name", MODELS)
def test_a_row_without_weight_is_left_out(name):
    """And the root has the weight of all others."""
    model, of_numbers = MODELS[name]
    X, y = rows_of(name, of_numbers)
    weight = np.random.default_rng(2).choice([1.0, 2.5], N)
    weight[::5] = 0.0
    kept = np.flatnonzero(weight)
    expected = numbers(model.fit(X[kept], y[kept], weight[kept]), X)
    found = numbers(model.fit(X, y, weight), X)
    assert_same(found, expected)
    if "0 weight" in found:
        assert found["0 weight"][0] == pytest.approx(weight.sum(), rel=1e-14)


@pytest.mark.parametrize("name", REGRESSORS)
def test_targets_without_weight_may_be_far_away(name):
    """They would make the units of all others coarse."""
    X, y = rows_of(name, True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    expected = clone(REGRESSORS[name]).fit(X[::2], y[::2], weight[::2]).tree_
    weight[1::2] = 0.0
    y[1::2] = 1e80
    assert clone(REGRESSORS[name]).fit(X, y, weight).tree_.equals(expected)


def test_soft_thresholds_without_rows_of_no_weight():
    """Leave out rows that lie between two others, or cost errors."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(40, 2)), 1)
    y = (X[:, 0] + 0.7 * rng.normal(size=40) > 0).astype(int)
    weight = rng.choice([1.0, 2.5], 40)
    weight[::4] = 0.0
    kept = np.flatnonzero(weight)
    model = C45Classifier(soft_thresholds=True)
    expected = numbers(model.fit(X[kept], y[kept], weight[kept]), X)
    assert expected["0 soft_lower"].size > 1
    assert_same(numbers(model.fit(X, y, weight), X), expected)


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_rows_threads_and_codes_change_nothing(name):
    model, of_numbers = MODELS[name]
    X, y = rows_of(name, of_numbers)
    rng = np.random.default_rng(3)
    weight, order = rng.uniform(0.2, 3.0, N), rng.permutation(N)
    expected = numbers(model.fit(X, y, weight), X)
    moved = clone(model).fit(X[order], y[order], weight[order])
    one = clone(model).set_params(n_jobs=1).fit(CodedTable(X), y, weight)
    for other in (moved, one):
        found = numbers(other, X)
        assert found.keys() == expected.keys()
        for field, value in expected.items():
            np.testing.assert_array_equal(found[field], value, err_msg=field)


# C4.5's limits, costs and pruning are in rows.
LIMITLESS = {
    "mdl_correction": False, "pruning": None, "min_samples_leaf": 1e-9, "min_samples_split": 1e-9,
}  # fmt: skip
SCALED = {"C4.5": (C45Classifier(**LIMITLESS), False)}
SCALED |= {
    name: case for name, case in MODELS.items() if isinstance(case[0], Cart) or name == "ID3"
}
del SCALED["penalized"]


@pytest.mark.parametrize("name", SCALED | FORESTS)
def test_one_weight_for_all_is_none(name):
    """But for the weights themselves, unless rows are drawn by them."""
    model, of_numbers = (SCALED | FORESTS)[name]
    scale = 1.0 if "forest" in name else 2.5
    X, y = rows_of(name, of_numbers)
    if name in FORESTS:
        X = X[:, 1:]
    expected = numbers(model.fit(X, y), X)
    for field in expected:
        if field.endswith(" weight") or (field.endswith(" statistics") and not of_numbers):
            expected[field] = scale * expected[field]
    assert_same(numbers(model.fit(X, y, np.full(N, 2.5)), X), expected)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_copies_of_rows_of_many_classes(criterion):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 70
    weight = rng.integers(1, 4, 90)
    copies = np.repeat(np.arange(90), weight)
    model = DecisionTreeClassifier(criterion=criterion, max_depth=3)
    expected = numbers(model.fit(X[copies], y[copies]), X)
    assert_same(numbers(model.fit(X, y, weight), X), expected, "0 missing_child")


# ------------------------------------------------------------------ other numbers
MEASURED = [DecisionTreeClassifier(max_depth=1), DecisionTreeRegressor(max_depth=1)]


@pytest.mark.parametrize("model", MEASURED)
def test_measures_of_weighted_rows(model):
    """Weights give the measures of copies; one weight for all changes no standard error either."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=N), [-0.5, 0.5])
    model.fit(X, y)
    weight = rng.integers(0, 4, N)
    copies = np.repeat(np.arange(N), weight)
    weighted = model.report(X, y, weight.astype(float))
    assert weighted.measures == pytest.approx(model.report(X[copies], y[copies]).measures)
    plain, doubled = (
        answers_by_target(model, X, y, w)[0].measures for w in (None, np.full(N, 2.0))
    )
    for name, measure in plain.items():
        assert measure.error > 0
        assert doubled[name] == pytest.approx(measure, rel=1e-12)


def test_the_standard_error_of_weighted_losses():
    """Test a mean of independent losses with known weights, with n - 1 degrees of freedom."""
    loss, weight = np.array([0.0, 1.0, 4.0]), np.array([1.0, 1.0, 2.0])
    found = Moments.of(loss, weight).error
    deviation, share = loss - 2.25, weight / 4
    assert found == pytest.approx(np.sqrt(1.5 * (share**2 * deviation**2).sum()))


def pruned_on(pruner, grown, *rows):
    return pruner.prune(grown, *rows).tree_


PRUNERS = [
    ReducedError(), ValidationPrePruning(), Pessimistic(subtree_raising=False), Pessimistic(),
]  # fmt: skip


@pytest.mark.parametrize("pruner", PRUNERS, ids=repr)
def test_rows_that_prune(pruner):
    """Copies and rows without weight, where a pruner takes rows."""
    rng = np.random.default_rng(6)
    X = np.round(rng.normal(size=(N, 2)), 1)
    y = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
    weight = rng.integers(0, 4, N)
    copies = np.repeat(np.arange(N), weight)
    grown = C45Classifier(pruning=None, collapse=False, **C45).fit(X, y, weight.astype(float))
    expected = pruned_on(pruner, grown, X[copies], y[copies])
    found = pruned_on(pruner, grown, X, y, weight.astype(float))
    assert 1 <= found.n_nodes < grown.tree_.n_nodes
    assert_same(
        *({f.name: getattr(t, f.name) for f in fields(t)} for t in (found, expected)), "n_rows"
    )
