"""Input that is refused, and input that looks wrong but is right."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.inputs.validation import check_labels
from gputree.pruning import PRUNERS, ReducedError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
LABELS = RNG.integers(0, 3, 50)
TARGETS = RNG.normal(size=50)
ROWS = np.arange(50)

Classifier, Regressor = DecisionTreeClassifier, DecisionTreeRegressor


def with_value(value, dtype=np.float64):
    table = X.astype(dtype)
    table[3, 1] = value
    return table


def fit(kind, table=X, y=None, weight=None, **params):
    """A fitted tree that is whole and predicts."""
    y = (LABELS if kind is Classifier else TARGETS) if y is None else y
    model = kind(**params).fit(table, y, weight)
    model.tree_.check()
    assert np.shape(model.predict(table)) == (len(table),)
    return model


# Of scikit-learn; before 1.7 it has none, and the range of weights is what is wrong.
ZERO_WEIGHTS = "at least one non-zero number|sample weight .* must lie between .* got 0"


# ---------------------------------------------------------------------- tables
BAD_TABLES = {
    "infinite": (with_value(np.inf), ValueError, "X contains infinity.*float64.*column 1"),
    "minus infinite": (with_value(-np.inf, np.float32), ValueError, "infinity.*float32.*column 1"),
    "one dimension": (X[:, 0], ValueError, "Expected 2D array, got 1D array"),
    "three dimensions": (X[None], ValueError, "dim 3.*(required by DecisionTree|expected <= 2)"),
    "no rows": (X[:0], ValueError, r"0 sample\(s\).*minimum of 1 is required by DecisionTree"),
    "no columns": (X[:, :0], ValueError, r"0 feature\(s\).*required by DecisionTree"),
    "ragged": ([[1], [1, 2]] * 25, ValueError, "inhomogeneous"),
    "none": (None, ValueError, "Expected 2D array, got scalar"),
    "a string": ("table", ValueError, "Expected 2D array, got scalar"),
    "records": (np.zeros(50, [("a", "f8"), ("b", "i4")]), ValueError, "a structured array"),
    "complex": (X + 1j, ValueError, "Complex data not supported"),
    "bytes": (X.astype("S9"), ValueError, "Column 0 of X: .*got bytes: decode them"),
    "lists as objects": (with_value({}, object), TypeError, "Column 1 of X: .*dict"),
    "dates": (
        np.arange(150).reshape(50, 3).astype("M8[s]"),
        ValueError,
        "Column 0 of X: .*got datetime64",
    ),
    "durations": (
        np.arange(150).reshape(50, 3).astype("m8[s]"),
        ValueError,
        "Column 0 of X: .*got timedelta64",
    ),
    "too large an integer": (with_value(10**400, object), ValueError, "int too large"),
    "too large a long double": (
        with_value(np.longdouble("1e4000"), np.longdouble),
        ValueError,
        "infinity or a value too large",
    ),
}


@pytest.mark.parametrize("kind", [Classifier, Regressor])
@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(kind, case):
    table, error, message = BAD_TABLES[case]
    if case == "too large a long double" and np.isinf(np.float64(np.finfo(np.longdouble).max)) == 0:
        pytest.skip("long doubles are no longer than doubles here")
    with pytest.raises(error, match=f"(?s){message}"):
        kind().fit(table, LABELS)
    if case not in ("no columns", "no rows"):
        fitted = fit(kind)
        with pytest.raises(error, match=f"(?s){message}"):
            fitted.predict(table)


TEXT_TABLES = {
    "strings": X.astype(str),
    "strings as objects": X.astype(str).astype(object),
    "one string": with_value("a", object),
    "lists": X.astype(str).tolist(),
}


@pytest.mark.filterwarnings("ignore:Column . of X holds (49|50) numbers")
@pytest.mark.parametrize("case", TEXT_TABLES)
def test_text(case):
    assert Classifier().fit(TEXT_TABLES[case], LABELS).columns_.nominal.any()
    with pytest.raises(ValueError, match="was numeric in fit; now it holds text"):
        fit(Classifier).predict(TEXT_TABLES[case])


def test_the_error_of_a_column_of_numbers_quotes_one_that_is_none():
    with pytest.raises(ValueError, match="now it holds text, such as 'abc'"):
        fit(Classifier).predict(with_value("abc", object))


def test_frames_with_columns_of_text_and_dates():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    for column in (["a", "b"] * 25, pandas.Categorical(["a", "b"] * 25)):
        nominal = fit(Classifier, frame.assign(d=column)).columns_.nominal
        assert nominal.tolist() == [False, False, False, True]
    with pytest.raises(ValueError, match=r"Column 'd' of X: .*got datetime64"):
        fit(Classifier, frame.assign(d=pandas.Timestamp("2020-01-01")))


UNUSUAL_TABLES = {
    "beyond float32": with_value(1e300),
    "lowest": with_value(-1.7e308),
    "subnormal": with_value(5e-324),
    "subnormal float32": with_value(1e-45, np.float32),
    "greatest float32": with_value(3e38, np.float32),
    "None": with_value(None, object),
    "NaN": with_value(np.nan),
    "only NaN": np.full((50, 2), np.nan),
    "a column of NaN": np.column_stack([X, np.full(50, np.nan)]),
    "constant": np.zeros((50, 2)),
    "constant and large": np.full((50, 2), 1e308),
    "all large": X * 2.0**1021,
    "whole range": np.array([-1.7e308, 0.0, 1.7e308])[LABELS][:, None],
    "all subnormal": np.array([0.0, 5e-324, 1e-323])[LABELS][:, None],
    "all subnormal float32": np.array([0.0, 1e-45, 3e-45], np.float32)[LABELS][:, None],
    "both zeros": np.array([-0.0, 0.0, 1.0])[LABELS][:, None],
}


@pytest.mark.parametrize("kind", [Classifier, Regressor])
@pytest.mark.parametrize("case", UNUSUAL_TABLES)
def test_unusual_tables(kind, case):
    """Every training row is found again in the leaf that counted it."""
    table = UNUSUAL_TABLES[case]
    model = fit(kind, table)
    leaves = np.flatnonzero(model.tree_.is_leaf)
    counts = np.bincount(model.apply(table), minlength=model.tree_.n_nodes)
    np.testing.assert_array_equal(counts[leaves], model.tree_.n_rows[leaves])


def test_values_beyond_float32_are_told_apart():
    table = np.array([[1e300], [1.1e300], [-1e300], [1e-300], [1.1e-300]])
    np.testing.assert_array_equal(fit(Classifier, table, ROWS[:5]).predict(table), ROWS[:5])


def test_integers_beyond_float64_are_rounded():
    """Up to 2**53 integers are distinct; beyond, those of one float64 are one value."""
    below, above = 2**52 + ROWS[:, None], 2**60 + ROWS[:, None]
    assert fit(Classifier, below, ROWS).get_n_leaves() == 50
    assert fit(Classifier, above, ROWS).get_n_leaves() == 1
    far = (2**63 + 4096 * ROWS.astype(np.uint64))[:, None]
    assert fit(Classifier, far, ROWS).get_n_leaves() == 50


def test_one_row():
    assert fit(Classifier, X[:1], ["a"]).predict(X)[0] == "a"
    assert fit(Regressor, X[:1], [2.5]).predict(X)[0] == 2.5


def test_predict_checks_the_columns():
    fitted = fit(Classifier)
    with pytest.raises(ValueError, match="X has 2 features, but DecisionTreeClassifier is expect"):
        fitted.predict(X[:, :2])
    for method in ("predict", "predict_proba", "apply", "decision_path"):
        with pytest.raises(NotFittedError, match="DecisionTreeClassifier instance is not fitted"):
            getattr(Classifier(), method)(X)


# --------------------------------------------------------------------- targets
BAD_TARGETS = {
    "absent": (None, ValueError, "requires y to be passed, but the target y is None"),
    "three dimensions": (np.zeros((50, 1, 1)), ValueError, "dim 3"),
    "a number": (3, ValueError, r"should be a 1d array, got an array of shape \(\)"),
    "short": (np.zeros(40), ValueError, r"inconsistent numbers of samples: \[50, 40\]"),
    "NaN": (np.where(ROWS == 7, np.nan, 1.0), ValueError, "Input y contains NaN"),
    "infinity": (np.where(ROWS == 7, np.inf, 1.0), ValueError, "Input y contains infinity"),
    "None": (np.where(ROWS == 7, None, 1.0), ValueError, "Input y contains 1 missing value"),
    "complex": (TARGETS + 1j, ValueError, "Complex data not supported"),
}


@pytest.mark.parametrize("kind", [Classifier, Regressor])
@pytest.mark.parametrize("case", BAD_TARGETS)
def test_bad_targets(kind, case):
    y, error, message = BAD_TARGETS[case]
    with pytest.raises(error, match=f"(?s){message}"):
        kind().fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (TARGETS, "Unknown label type: continuous"),
        (np.where(ROWS == 7, None, "a"), "y contains 1 missing value"),
        (np.array(["a"] * 49 + [np.nan], dtype=object), "y contains 1 missing value"),
        (np.array([1, "a"] * 25, dtype=object), "y mixes numbers and text, such as 1"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        Classifier().fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(list("abcde") * 10), "DecisionTreeRegressor takes numeric targets.*classifier"),
        (np.array(list("12345") * 10), "takes numeric targets.*got y of <U1"),
        (np.array(["1", 2] * 25, dtype=object), "takes numeric targets.*got y of object"),
        (ROWS.astype("M8[s]"), "got y of datetime64"),
        (np.array([10**400] * 50, dtype=object), "int too large"),
        (np.where(ROWS % 2, -1e308, 0.0), r"within \+-1e\+90 .* got -1e\+308 to 0"),
        (TARGETS * 1e-160, "span at least 1e-90"),
        (TARGETS * 1e-320, "span at least 1e-90"),
    ],
)
def test_bad_regression_targets(y, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        Regressor().fit(X, y)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([-128, 0, 127], np.int8),
        np.array([-32768, 5, 32767], np.int16),
        np.array([2**63, 2**63 + 1, 2**64 - 1], np.uint64),
        np.array([2**63 + 1, 2**63 + 2, 2**63 + 3], np.uint64),
        np.array([-(2**63), 0, 2**63 - 1]),
        np.array([-(2**63), -(2**63) + 1, -(2**63) + 2]),
        np.array([3, 5, 1000], ">i4"),
        np.array([0.0, 1.0, 2.0], np.float32),
        np.array([-128, -127, -126], np.int8),
        np.array([2**64 - 3, 2**64 - 2, 2**64 - 1], np.uint64),
        np.array(["", "b", "ß"]),
        np.array(["x", "y", "z"]),
        np.array(["a", "ß", chr(0x10FFFF)]),
        np.array(["a", "b", "d"], ">U1"),
        np.array([b"a", b"b", b"c"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[D]"),
    ],
    ids=str,
)
def test_labels_come_back(classes):
    y = classes[LABELS]
    model = fit(Classifier, y=y)
    np.testing.assert_array_equal(model.classes_, classes)
    assert model.classes_.dtype == classes.dtype
    np.testing.assert_array_equal(model.predict(X), y)


def test_labels_are_coded_in_blocks(monkeypatch):
    monkeypatch.setattr("gputree.inputs.validation.LABEL_BLOCK", 7)
    y = (np.sort(LABELS) * 2 + 5).astype(np.int8)  # blocks of one class, and of others
    model = fit(Classifier, y=y)
    assert model.classes_.tolist() == [5, 7, 9]
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_labels_without_gaps(dtype):
    y = np.random.default_rng(0).permutation(np.arange(-128, 128)).astype(dtype)
    classes, codes = check_labels(Classifier(), y, 256)
    assert classes.tolist() == list(range(-128, 128))
    assert codes.tolist() == [label + 128 for label in y.tolist()]


def test_one_class():
    model = fit(Classifier, y=np.full(50, "only"))
    assert model.get_n_leaves() == 1
    assert model.predict_proba(X).tolist() == [[1.0]] * 50
    assert model.predict_log_proba(X).tolist() == [[0.0]] * 50


@pytest.mark.parametrize("constant", [0.0, 1.7, -1e-300, 1e80, -1e15])
def test_constant_targets(constant):
    for weight in (None, ROWS + 1.0):
        model = fit(Regressor, y=np.full(50, constant), weight=weight)
        assert model.get_n_leaves() == 1
        assert model.predict(X).tolist() == [constant] * 50
        assert model.tree_.impurity.tolist() == [0.0]


@pytest.mark.parametrize("scale", [2.0**-295, 2.0**-30, 2.0**30, 2.0**290])
@pytest.mark.parametrize("weight_scale", [None, 2.0**-330, 2.0**330])
def test_scales_of_targets_and_weights(scale, weight_scale):
    """A power of two changes nothing but the unit."""
    weight = None if weight_scale is None else ROWS % 3 + 1.0
    plain = fit(Regressor, y=TARGETS, weight=weight).tree_
    weight = None if weight is None else weight * weight_scale
    scaled = fit(Regressor, y=TARGETS * scale, weight=weight).tree_
    np.testing.assert_array_equal(scaled.feature, plain.feature)
    np.testing.assert_array_equal(scaled.threshold, plain.threshold)
    np.testing.assert_array_equal(scaled.value, plain.value * scale)
    np.testing.assert_array_equal(scaled.impurity, plain.impurity * scale**2)


def test_huge_integers_as_targets():
    model = fit(Regressor, y=2**62 + 2**20 * ROWS)
    np.testing.assert_array_equal(model.predict(X), (2**62 + 2**20 * ROWS).astype(float))


def test_a_column_of_targets_warns():
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        Classifier().fit(X, LABELS[:, None])


# ---------------------------------------------------------------- many classes
@pytest.mark.full
@pytest.mark.parametrize("n_classes", [256, 257, 300])
def test_more_classes_than_a_byte_counts(n_classes):
    y = np.arange(2 * n_classes) % n_classes
    table = y[:, None] + 0.0
    np.testing.assert_array_equal(fit(Classifier, table, y).predict(table), y)


@pytest.mark.full
def test_a_hundred_thousand_classes():
    n = 100_000
    table = np.arange(n, dtype=np.float32)[:, None]
    model = fit(Classifier, table, np.arange(n), max_depth=2)
    # all cuts of n rows of n classes are worth the same: the lowest wins
    assert model.tree_.threshold[0] == 0.5
    assert model.tree_.statistics.sum(axis=1).tolist() == model.tree_.n_rows.tolist()


def test_class_weights_that_exhaust_the_memory(monkeypatch):
    from gputree.estimators import growing

    monkeypatch.setattr(growing, "MOST_STATISTICS_BYTES", 8 * 50 * 60)
    with pytest.raises(ValueError, match=r"nodes x 50 classes.*max_depth"):
        fit(Classifier, X, ROWS)
    assert fit(Classifier, X, ROWS, max_depth=2).get_n_leaves() <= 4


# --------------------------------------------------------------------- weights
@pytest.mark.parametrize("kind", [Classifier, Regressor])
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(50), "Negative values in data passed to `sample_weight`"),
        (np.where(ROWS == 7, np.nan, 1.0), "Input sample_weight contains NaN"),
        (np.where(ROWS == 7, np.inf, 1.0), "Input sample_weight contains infinity"),
        (np.zeros(50), ZERO_WEIGHTS),
        (np.ones(40), r"sample_weight.shape == \(40,\), expected \(50,\)"),
        (np.ones((50, 2)), "Sample weights must be 1D array or scalar"),
        (np.full(50, "a"), "could not convert string to float"),
        (np.where(ROWS == 7, 1e308, 1.0), "between 1e-100 and 1e.100; got 1e.308"),
        (np.full(50, 5e-324), "between 1e-100 and 1e.100; got 4.94066e-324"),
    ],
)
def test_bad_weights(kind, weight, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(X, LABELS, weight)


def test_classes_of_weight_zero_are_never_predicted():
    model = fit(Classifier, weight=(LABELS != 1) * 1.0)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict_proba(X)[:, 1] == 0.0).all()


def test_tiny_weights_beside_large_ones():
    """A weight below the unit of 2**-50 of the total still counts as a row."""
    weight = np.where(ROWS == 7, 1e-90, 1.0)
    assert fit(Classifier, X, ROWS, weight).get_n_leaves() == 50


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("heavy", "'class_weight' parameter of DecisionTreeClassifier must be .* Got 'heavy'"),
        ({0: -1}, "must give finite, non-negative weights. Got {0: -1}"),
        ({0: np.nan}, "must give finite, non-negative weights"),
        ({0: 0, 1: 0, 2: 0}, "largest sample weight .* got 0"),
        ({0: 1e300}, "between 1e-100 and 1e.100; got 1e.300"),
        ({"a": 1}, "are not in class_weight"),
    ],
)
def test_bad_class_weights(class_weight, message):
    with pytest.raises(ValueError, match=message):
        fit(Classifier, class_weight=class_weight)


def test_no_row_left_to_grow_on():
    """The only row with a weight is held out."""
    pruner = ReducedError(validation_fraction=0.5, random_state=0)
    held = pruner.hold_out(50)[1]
    with pytest.raises(ValueError, match=ZERO_WEIGHTS):
        fit(Classifier, weight=(held[0] == ROWS) * 1.0, pruning=pruner)


# ------------------------------------------------------------------ parameters
BAD_PARAMETERS = {
    "max_depth": [0, -1, 2.5, "deep"],
    "min_samples_split": [1, 0, 0.0, 1.1],
    "min_samples_leaf": [0, 0.0, 1.0, "few"],
    "min_weight_fraction_leaf": [-0.1, 0.6, np.nan],
    "max_features": [0, 0.0, 1.5, "third"],
    "max_leaf_nodes": [1, 0, 2.5],
    "min_impurity_decrease": [-1.0, np.nan, np.inf],
    "ccp_alpha": [-1.0, np.nan, np.inf],
    "criterion": ["loss", None],
    "splitter": ["sorted", None],
    "max_bins": [1, 257, 16.0],
    "device": ["gpu", None],
    "pruning": ["hard", 3],
    "random_state": [-1, "a"],
    "n_jobs": [2.5, "all", 10**9, -(10**9)],
    "verbose": [-1, "yes"],
}


@pytest.mark.parametrize("kind", [Classifier, Regressor])
@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_PARAMETERS.items() for value in values],
)
def test_bad_parameters(kind, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__} must be .* Got"):
        kind(**{name: value}).fit(X, LABELS)


def test_no_threads():
    with pytest.raises(ValueError, match="n_jobs == 0 has no meaning"):
        fit(Classifier, n_jobs=0)


def test_two_ways_to_prune_at_once():
    for pruning in PRUNERS:
        with pytest.raises(ValueError, match="takes 'ccp_alpha' or 'pruning', not both"):
            fit(Classifier, ccp_alpha=0.1, pruning=pruning)


@pytest.mark.parametrize(
    "params",
    [
        {"max_depth": 10**30},
        {"max_depth": np.int8(3)},
        {"max_depth": True},
        {"min_samples_split": 10**30},
        {"min_samples_leaf": 10**30},
        {"min_samples_leaf": 0.999},
        {"max_leaf_nodes": 10**30},
        {"max_features": 10**30},
        {"max_features": 1e-9},
        {"max_bins": np.uint8(200)},
        {"n_jobs": -1000},
        {"n_jobs": 1000},
        {"min_impurity_decrease": 1e300},
        {"ccp_alpha": 1e300},
        {"min_weight_fraction_leaf": np.float32(0.5)},
    ],
    ids=str,
)
def test_extreme_parameters(params):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(Classifier, **params)
        fit(Regressor, **params)
