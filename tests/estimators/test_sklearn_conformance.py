"""The estimators are scikit-learn's in manner: its own checks, and its tools around them."""

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score, cross_validate
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
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.base.threads import n_threads
from gputree.compilation import tiers
from gputree.pruning import CostComplexity

ESTIMATORS = [
    DecisionTreeClassifier(),
    DecisionTreeRegressor(),
    DecisionTreeClassifier(splitter="binned", max_bins=16, criterion="entropy"),
    DecisionTreeRegressor(max_leaf_nodes=8, pruning=CostComplexity(0.001)),
    C45Classifier(),
    ID3Classifier(),
    BoostedC45Classifier(n_trials=2),
    C45Rules(),
    BoostedC45Rules(n_trials=2),
    RandomForestClassifier(n_estimators=2),
    RandomForestRegressor(n_estimators=2),
    ExtraTreesClassifier(n_estimators=2),
    ExtraTreesRegressor(n_estimators=2),
]
# Variants of others, and checks of seconds that a base class passes or fails for all of it.
VARIANTS = [ESTIMATORS[k] for k in (2, 3, 8, 11, 12)]
BASES = [ESTIMATORS[k] for k in (0, 1, 4, 9)]
LONG = (
    "check_classifiers_train",
    "check_regressors_train",
    "check_regressor_data_not_an_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_array",
    "check_dtype_object",
)
# As of scikit-learn's own forests: rows are drawn by their places.
DRAWN_BY_PLACE = "check_sample_weight_equivalence_on"


def checks():
    """Checks of each estimator; some of them `full`."""
    for estimator, check in parametrize_with_checks(ESTIMATORS).args[1]:
        name = check.func.__name__
        long = name in LONG and not any(estimator is base for base in BASES)
        marks = [pytest.mark.full] if long or any(estimator is one for one in VARIANTS) else []
        yield pytest.param(estimator, check, marks=marks, id=f"{estimator}-{name}")


@pytest.mark.filterwarnings("ignore:.*boosting reduced to 1 of 2 trials")  # labels of chance
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check, request):
    if "check_array_api_input" in request.node.name:
        pytest.skip("for estimators that compute on array API arrays; these need NumPy's")
    if DRAWN_BY_PLACE in request.node.name and "Forest" in request.node.name:
        pytest.skip("a row of weight 2 is not drawn as two rows of weight 1 are")
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


# ---------------------------------------------------------------- composition


@pytest.mark.process
def test_cross_validation_in_processes(iris):
    X, y = iris
    tree = DecisionTreeClassifier(n_jobs=1)
    here = cross_val_score(tree, X, y, cv=2)
    np.testing.assert_array_equal(cross_val_score(tree, X, y, cv=2, n_jobs=2), here)


@pytest.mark.process
def test_processes_of_joblib_share_the_processors():
    """So that forests and trees in a search with `n_jobs` do not run more threads than those."""
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(n_threads)(None) for _ in range(2))
    assert found == [max(joblib.cpu_count() // 2, 1)] * 2


def test_joblib_threads(iris):
    """Concurrent fits in one process share no state."""
    X, y = iris
    expected = [DecisionTreeClassifier(max_depth=d).fit(X, y).tree_ for d in (1, 2, 3, 4)]
    fits = (joblib.delayed(DecisionTreeClassifier(max_depth=d).fit)(X, y) for d in (1, 2, 3, 4))
    found = joblib.Parallel(n_jobs=2, prefer="threads")(fits)
    assert all(a.tree_.equals(b) for a, b in zip(found, expected, strict=True))


def test_random_state():
    X = np.random.default_rng(0).normal(size=(120, 8))
    y = (X.sum(axis=1) > 0).astype(int)

    def fit(state, **params):
        return DecisionTreeClassifier(random_state=state, **params).fit(X, y).tree_

    assert fit(0).equals(fit(1))  # nothing to draw
    assert fit(0, max_features=2).equals(fit(0, max_features=2))
    assert not fit(0, max_features=2).equals(fit(1, max_features=2))
    generator = np.random.RandomState(0)
    assert fit(0, max_features=2).equals(fit(np.random.RandomState(0), max_features=2))
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
    """Columns are taken by value; booleans are numbers where no column is nominal."""
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


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_set_output(iris, package):
    """Steps that hand frames on."""
    X, y = iris
    pytest.importorskip(package)
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    pipeline.set_output(transform=package).fit(make_frame(package, X), y)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES
    assert pipeline.score(make_frame(package, X), y) == 1.0
