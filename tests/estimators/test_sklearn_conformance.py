"""The estimators are scikit-learn's in manner: its own checks, and its tools around them."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
from gputree.compilation import tiers
from gputree.pruning import CostComplexity, PenalizedLoss, ReducedError

ESTIMATORS = [
    DecisionTreeClassifier(),
    DecisionTreeRegressor(),
    DecisionTreeClassifier(splitter="binned", max_bins=16, criterion="entropy"),
    DecisionTreeRegressor(max_leaf_nodes=8, pruning=CostComplexity(0.001)),
    C45Classifier(),
    ID3Classifier(),
    BoostedC45Classifier(n_trials=3),
    C45Rules(),
    BoostedC45Rules(n_trials=3),
]


@pytest.mark.filterwarnings("ignore:.*boosting reduced to 1 of 3 trials")  # labels of chance
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check, request):
    if "check_array_api_input" in request.node.name:
        pytest.skip("for estimators that compute on array API arrays; these need NumPy's")
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


# ---------------------------------------------------------------- composition
@pytest.mark.full
def test_pipeline_and_cross_validation(iris, diabetes):
    for tree, (X, y) in [
        (DecisionTreeClassifier(max_depth=3), iris),
        (DecisionTreeRegressor(max_depth=3), diabetes),
    ]:
        alone = cross_val_score(tree, X, y)
        assert alone.shape == (5,)
        scaled = cross_val_score(make_pipeline(StandardScaler(), tree), X, y)
        np.testing.assert_allclose(scaled, alone, atol=0.03)  # thresholds may round over


@pytest.mark.process
def test_cross_validation_in_processes(iris):
    X, y = iris
    tree = DecisionTreeClassifier(n_jobs=1)
    here = cross_val_score(tree, X, y, cv=2)
    np.testing.assert_array_equal(cross_val_score(tree, X, y, cv=2, n_jobs=2), here)


def test_joblib_threads(iris):
    """Concurrent fits in one process share no state."""
    X, y = iris
    expected = [DecisionTreeClassifier(max_depth=d).fit(X, y).tree_ for d in (1, 2, 3, 4)]
    fits = (joblib.delayed(DecisionTreeClassifier(max_depth=d).fit)(X, y) for d in (1, 2, 3, 4))
    found = joblib.Parallel(n_jobs=2, prefer="threads")(fits)
    assert all(a.tree_.equals(b) for a, b in zip(found, expected, strict=True))


def test_grid_search(iris):
    X, y = iris
    search = GridSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 3], "min_samples_leaf": [1, 9]}
    )
    search.fit(X, y)
    assert search.best_params_["max_depth"] == 3
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("pruner", [CostComplexity, PenalizedLoss])
def test_grid_search_over_a_parameter_of_the_pruner(iris, pruner):
    X, y = iris
    search = GridSearchCV(
        DecisionTreeClassifier(pruning=pruner()), {"pruning__alpha": [0.0, 0.02, 1e6]}
    )
    search.fit(X, y)
    assert search.best_params_["pruning__alpha"] < 1e6
    assert search.cv_results_["mean_test_score"][2] == pytest.approx(1 / 3)  # a root alone
    assert search.best_estimator_.pruning.alpha == search.best_params_["pruning__alpha"]


def test_select_from_model(iris):
    X, y = iris
    chosen = SelectFromModel(DecisionTreeClassifier()).fit(X, y)
    assert set(np.flatnonzero(chosen.get_support())) <= {2, 3}


def test_clone(iris):
    pruner = ReducedError(validation_fraction=0.2, random_state=3)
    tree = DecisionTreeClassifier(max_depth=4, class_weight={"setosa": 2.0}, pruning=pruner)
    copy = clone(tree)
    assert copy.pruning is not pruner
    assert str(copy.get_params()) == str(tree.get_params())
    assert not hasattr(clone(tree.fit(*iris)), "tree_")


def test_fit_leaves_parameters_alone(iris):
    pruner = ReducedError(random_state=0)
    tree = DecisionTreeClassifier(pruning=pruner)
    before = str(tree.get_params())
    tree.fit(*iris)
    assert str(tree.get_params()) == before
    assert tree.pruning is pruner


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(iris, protocol):
    X, y = iris
    tree = DecisionTreeClassifier(pruning="penalized_loss").fit(X, y)
    again = pickle.loads(pickle.dumps(tree, protocol))
    assert again.tree_.equals(tree.tree_)
    assert again.unpruned_tree_.equals(tree.unpruned_tree_)
    np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))


def test_random_state():
    X = np.random.default_rng(0).normal(size=(300, 8))
    y = (X.sum(axis=1) > 0).astype(int)

    def fit(state, **params):
        return DecisionTreeClassifier(random_state=state, **params).fit(X, y).tree_

    assert fit(0).equals(fit(1))  # nothing to draw
    assert fit(0, max_features=2).equals(fit(0, max_features=2))
    assert not fit(0, max_features=2).equals(fit(1, max_features=2))
    generator = np.random.RandomState(0)
    assert not fit(generator, max_features=2).equals(fit(generator, max_features=2))


# -------------------------------------------------------------------- routing
def test_sample_weight_is_routed(iris):
    X, y = iris
    weight = np.where(y == "virginica", 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeClassifier().set_fit_request(sample_weight=True)
        tree.set_score_request(sample_weight=True)
        found = cross_validate(
            make_pipeline(StandardScaler().set_fit_request(sample_weight=False), tree),
            X,
            y,
            params={"sample_weight": weight},
            return_estimator=True,
        )
    for fitted in found["estimator"]:
        assert "virginica" not in fitted.predict(X)


def test_sample_weight_is_not_routed_unasked(iris):
    X, y = iris
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="sample_weight"),
    ):
        cross_validate(DecisionTreeClassifier(), X, y, params={"sample_weight": np.ones(len(y))})


def test_score_takes_weights(iris, diabetes):
    for kind, (X, y) in [(DecisionTreeClassifier, iris), (DecisionTreeRegressor, diabetes)]:
        tree = kind(max_depth=2).fit(X, y)
        right = tree.predict(X) == y
        weight = right + 1e-3 if kind is DecisionTreeClassifier else None
        if weight is not None:
            assert tree.score(X, y, weight) > tree.score(X, y)
        assert 0.3 < tree.score(X, y) < 1.0


# --------------------------------------------------------------------- inputs
def layouts(X):
    wide = np.zeros((X.shape[0], 2 * X.shape[1]), X.dtype)
    wide[:, ::2] = X
    tall = np.repeat(X, 2, axis=0)
    read_only = X.copy()
    read_only.flags.writeable = False
    return {
        "fortran": np.asfortranarray(X),
        "every other column": wide[:, ::2],
        "every other row": tall[::2],
        "backwards": X[::-1].copy()[::-1],
        "big-endian": X.astype(X.dtype.newbyteorder(">")),
        "read-only": read_only,
        "lists": X.tolist(),
        "objects": X.astype(object),
        "long double": X.astype(np.longdouble),
    }


@pytest.mark.parametrize("layout", layouts(np.zeros((2, 2))))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layout_of_the_table(iris, dtype, layout):
    X, y = iris
    X = X.astype(dtype)
    plain = DecisionTreeClassifier().fit(X, y)
    other = layouts(X)[layout]
    assert DecisionTreeClassifier().fit(other, y).tree_.equals(plain.tree_)
    np.testing.assert_array_equal(plain.predict_proba(other), plain.predict_proba(X))


@pytest.mark.parametrize(
    "dtype", ["f2", "i1", "u1", "i2", "i4", "i8", "u8", ">i4", ">u2", "<f2", "bool"]
)
def test_types_of_numbers(iris, dtype):
    """Columns are taken by value; truth values are numbers where no column is nominal."""
    X, y = iris
    X = np.round(X * 10).astype(np.uint8) if dtype != "bool" else X > 2.0
    typed = DecisionTreeClassifier(categorical_features=None).fit(X.astype(dtype), y)
    plain = DecisionTreeClassifier().fit(X.astype(np.float64), y)
    assert typed.tree_.equals(plain.tree_)
    np.testing.assert_array_equal(typed.predict(X.astype(dtype)), plain.predict(X.astype(float)))


def test_a_read_only_table_compiles_nothing_new(iris):
    from gputree.prediction.descent import walk

    X, y = iris
    plain = DecisionTreeClassifier().fit(X, y)
    with tiers.forced("always"):
        plain.predict(X)
        known = len(walk.dispatcher.signatures)
        plain.predict(layouts(X)["read-only"])
    assert len(walk.dispatcher.signatures) == known > 0


def test_memory_map(iris, tmp_path):
    X, y = iris
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    labels = np.load(tmp_path / "y.npy", mmap_mode="r")
    tree = DecisionTreeClassifier().fit(mapped, labels)
    assert tree.tree_.equals(DecisionTreeClassifier().fit(X, y).tree_)
    np.testing.assert_array_equal(tree.predict(mapped), tree.predict(X))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_input_is_left_as_it_is(kind):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(400, 3)), rng.integers(0, 3, 400), rng.uniform(0, 2, 400)
    kept = X.copy(), y.copy(), weight.copy()
    kind().fit(X, y, weight).predict(X)
    for before, after in zip(kept, (X, y, weight), strict=True):
        np.testing.assert_array_equal(before, after)


# --------------------------------------------------------------------- frames
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


def make_frame(package, X, names=NAMES):
    library = pytest.importorskip(package)
    columns = {name: X[:, f] for f, name in enumerate(names)}
    return library.table(columns) if package == "pyarrow" else library.DataFrame(columns)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_frames(iris, package):
    X, y = iris
    frame = make_frame(package, X)
    tree = DecisionTreeClassifier().fit(frame, y)
    assert tree.feature_names_in_.tolist() == NAMES
    assert tree.tree_.equals(DecisionTreeClassifier().fit(X, y).tree_)
    np.testing.assert_array_equal(tree.predict(frame), y)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        tree.predict(make_frame(package, X, NAMES[::-1]))
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        tree.predict(make_frame(package, X, ["a", *NAMES[1:]]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        tree.predict(X)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_targets_of_frames(iris, package):
    X, y = iris
    library = pytest.importorskip(package)
    series = library.array(y) if package == "pyarrow" else library.Series(y)
    tree = DecisionTreeClassifier().fit(X, series)
    assert tree.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(tree.predict(X), y)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_nulls_of_frames(package):
    a, b = [1.0, None, 3.0, None] * 10, [1, 2, None, 4] * 10
    library = pytest.importorskip(package)
    make = library.table if package == "pyarrow" else library.DataFrame
    plain = np.array([a, b], dtype=np.float64).T
    y = np.arange(40) % 4
    tree = DecisionTreeClassifier().fit(make({"a": a, "b": b}), y)
    assert tree.tree_.equals(DecisionTreeClassifier().fit(plain, y).tree_)


def test_nullable_and_mixed_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    a, b, c = [1, None, 3, 4] * 10, [True, False, None, True] * 10, [0.5, 1.5, 2.5, 3.5] * 10
    frame = pandas.DataFrame(
        {
            "a": pandas.array(a, dtype="Int16"),
            "b": pandas.array(b, dtype="boolean"),
            "c": pandas.array(c, dtype="Float32"),
            "d": np.arange(40) % 2 == 0,
        }
    )
    plain = np.array([a, b, c, np.arange(40) % 2 == 0], dtype=np.float64).T
    y = np.arange(40) % 4
    tree = DecisionTreeClassifier().fit(frame, y)
    assert tree.tree_.equals(DecisionTreeClassifier().fit(plain, y).tree_)


@pytest.mark.parametrize("pruner", ["reduced_error", "pessimistic", "cost_complexity_cv"])
@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_pruning_with_frames(iris, package, pruner):
    X, y = iris
    tree = DecisionTreeClassifier(pruning=pruner).fit(make_frame(package, X), y)
    assert tree.score(make_frame(package, X), y) > 0.8


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_set_output(iris, package):
    """Steps that hand frames on."""
    X, y = iris
    pytest.importorskip(package)
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    pipeline.set_output(transform=package).fit(make_frame(package, X), y)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES
    assert pipeline.score(make_frame(package, X), y) == 1.0
