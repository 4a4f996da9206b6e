"""Scores of columns: definitions in plain NumPy, weights, missing values, coded tables."""

import inspect
from functools import partial

import numpy as np
import pytest
from oracles import impurity_of_rows
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import gputree
from gputree import (
    CodedTable,
    MDLPDiscretizer,
    entropy,
    gain_ratio,
    gini,
    gini_gain,
    information_gain,
    symmetric_uncertainty,
    variance_reduction,
)
from gputree.datasets import load_fish, load_golf, load_iris, load_loan, load_watermelon

CLASS_SCORES = [information_gain, gain_ratio, symmetric_uncertainty, gini_gain]
ALL_SCORES = [*CLASS_SCORES, variance_reduction]


# ------------------------------------------------------------- textbook values
def test_fish():
    X, y = load_fish(return_X_y=True)
    assert entropy(y) == pytest.approx(0.970950594455, abs=1e-12)
    maybe = np.array(["maybe", *y[1:]])
    assert entropy(maybe) == pytest.approx(1.37095059445, abs=1e-11)
    assert information_gain(X, y) == pytest.approx([0.420, 0.171], abs=5e-4)


@pytest.mark.parametrize(
    ("load", "class_entropy", "gains"),
    [
        (load_loan, 0.971, {"age": 0.083, "has job": 0.324, "owns house": 0.420, "credit": 0.363}),
        (load_watermelon, 0.998, {"texture": 0.381, "colour": 0.108}),
        (
            load_golf,
            0.940,
            {"outlook": 0.247, "humidity": 0.152, "wind": 0.048, "temperature": 0.029},
        ),
    ],
    ids=["loan", "watermelon", "golf"],
)
def test_gains_of_textbooks(load, class_entropy, gains):
    table = load()
    scores = dict(zip(table.feature_names, information_gain(table.data, table.target), strict=True))
    assert entropy(table.target) == pytest.approx(class_entropy, abs=6e-4)
    for name, gain in gains.items():
        assert scores[name] == pytest.approx(gain, abs=6e-4), name
    assert max(scores, key=scores.get) == max(gains, key=gains.get)


def test_gain_ratio_of_outlook():
    assert gain_ratio(*load_golf(return_X_y=True))[0] == pytest.approx(0.156, abs=5e-4)


def test_gini_by_hand():
    assert gini([0, 0, 1]) == pytest.approx(1 - 4 / 9 - 1 / 9)
    assert gini(["a"] * 4) == 0.0
    assert gini_gain([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1]) == pytest.approx([0.5])


# -------------------------------------------------------- against plain loops
CRITERION_OF = {gini_gain: "gini", variance_reduction: "squared_error"}


def naive_score(kind, branch, y, weight):
    parts = [branch == b for b in set(branch.tolist())]
    parts = [rows for rows in parts if weight[rows].sum() > 0]
    share = [weight[rows].sum() / weight.sum() for rows in parts]
    criterion = CRITERION_OF.get(kind, "entropy")
    inside = [impurity_of_rows(criterion, y[rows], weight[rows]) for rows in parts]
    whole = impurity_of_rows(criterion, y, weight)
    gain = whole - np.dot(share, inside)
    split_information = -np.dot(share, np.log2(share))
    if kind is gain_ratio:
        return gain / split_information if split_information > 0 else 0.0
    if kind is symmetric_uncertainty:
        return 2 * gain / (split_information + whole)
    return gain


def naive_cuts(column):
    """Branches of every cut, and those without a cut."""
    missing = np.where(np.isnan(column), 2, 0)
    yield missing
    for cut in sorted(set(column[missing == 0].tolist()))[:-1]:
        yield np.where(column > cut, 1, missing)


def random_problem(kind, seed):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, 60) for k in (1, 2, 5, 60)] + [rng.normal(size=60)], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.normal(3, 2, 60) if kind is variance_reduction else rng.integers(0, 4, 60)
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], 60)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ALL_SCORES)
def test_distinct_values_are_branches(kind, seed):
    X, y, weight = random_problem(kind, seed)
    codes = np.where(np.isnan(X), -1.0, X)
    expected = [naive_score(kind, column, y, weight) for column in codes.T]
    scores = kind(X, y, sample_weight=weight, numeric="distinct")
    assert scores == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ALL_SCORES)
def test_thresholds_are_the_best(kind, seed):
    X, y, weight = random_problem(kind, seed)
    by = kind if kind in (gini_gain, variance_reduction) else information_gain  # as C4.5 does
    expected = []
    for column in X.T:
        best = max(naive_cuts(column), key=lambda branch: naive_score(by, branch, y, weight))
        expected.append(naive_score(kind, best, y, weight))
    scores = kind(X, y, sample_weight=weight)
    assert (kind(X, y, sample_weight=weight, numeric="threshold") == scores).all()
    assert scores == pytest.approx(expected, abs=1e-12)


# ------------------------------------------------------------------- behaviour
def test_weights_stand_for_copies():
    rng = np.random.default_rng(0)
    X, y, weight = rng.integers(0, 3, (30, 2)), rng.integers(0, 3, 30), rng.integers(0, 4, 30)
    copies = np.repeat(np.arange(30), weight)
    for kind in ALL_SCORES:
        assert kind(X, y, sample_weight=weight) == pytest.approx(kind(X[copies], y[copies]))
    assert entropy(y, weight) == pytest.approx(entropy(y[copies]))
    assert gini(y, weight) == pytest.approx(gini(y[copies]))


@pytest.mark.parametrize("kind", ALL_SCORES)
@pytest.mark.parametrize("numeric", ["distinct", "threshold"])
def test_a_constant_column_tells_nothing(kind, numeric):
    X = np.array([[1.0, np.nan]] * 5)
    assert kind(X, [0, 1, 1, 0, 1], numeric=numeric).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", ALL_SCORES)
@pytest.mark.parametrize("numeric", ["distinct", "threshold"])
@pytest.mark.parametrize("column", [[1.0, np.nan, 3.0, 4.0], [np.nan, np.nan, 3.0, np.nan]])
def test_a_constant_target_has_nothing_to_lose(kind, numeric, column):
    """Also with missing values, whose rows are a branch, and of rows that have all the weight."""
    X = np.array([column, [1.0, 2.0, 2.0, 1.0]]).T
    assert kind(X, [7.0] * 4, numeric=numeric).tolist() == [0.0, 0.0]
    y, weight = [7.0, 7.0, 8.0, 7.0], [1.0, 1.0, 0.0, 2.0]
    assert kind(X, y, numeric=numeric, sample_weight=weight).tolist() == [0.0, 0.0]


def test_missing_values_are_one_category():
    y = [0, 0, 1, 1]
    none = np.array([[None], [None], ["a"], ["a"]], dtype=object)
    mixed = np.array([[None], [float("nan")], ["a"], ["a"]], dtype=object)
    nan = [[np.nan], [np.nan], [5.0], [5.0]]
    for X in (none, mixed, nan):
        assert information_gain(X, y).tolist() == [1.0]
    assert information_gain(nan, y, numeric="distinct").tolist() == [1.0]


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_frames_keep_the_types_of_columns(package):
    pytest.importorskip(package)
    columns = {"text": ["a", "b", "a", None], "number": [1.0, 2.0, 3.0, 4.0]}
    y = [0, 1, 0, 1]
    if package == "pyarrow":
        import pyarrow

        frame = pyarrow.table(columns)
    else:
        frame = pytest.importorskip(package).DataFrame(columns)
    assert information_gain(frame, y, numeric="distinct").tolist() == [1.0, 1.0]
    assert information_gain(frame, y) == pytest.approx(
        [1.0, 0.3112781244591328]
    )  # one and three rows


def test_numbers_near_the_limits():
    big = np.array([[2**53], [2**53 + 2]])  # as the estimators read them
    assert information_gain(big, [0, 1]).tolist() == [1.0]
    assert variance_reduction([[0], [1]], [1e15, 1e15 + 2]) == pytest.approx([1.0])


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_as_many_classes_as_rows():
    y = np.arange(100_000)
    assert information_gain(y[:, None], y) == pytest.approx([1.0])
    distinct = information_gain(y[:, None], y, numeric="distinct")
    assert distinct == pytest.approx([np.log2(y.size)])


def test_selects_columns():
    X, y = load_loan(return_X_y=True)
    chosen = make_pipeline(OrdinalEncoder(), SelectKBest(information_gain, k=1)).fit(X, y)
    assert chosen[-1].get_support().tolist() == [False, False, True, False]
    X, y = load_iris(return_X_y=True)
    by_cut = SelectKBest(gini_gain, k=2).fit(X, y)
    assert by_cut.get_support().tolist() == [False, False, True, True]
    by_value = SelectKBest(partial(gini_gain, numeric="distinct"), k=2).fit(X, y)
    assert (by_value.scores_ > by_cut.scores_).all()


# ------------------------------------------------------------------ invariance
@pytest.mark.parametrize("kind", ALL_SCORES)
def test_what_leaves_scores_as_they_are(kind):
    """To the last bit: order of rows, names of categories and labels, monotone transforms."""
    X, y, _ = random_problem(kind, 7)
    weight = np.random.default_rng(7).choice([0.5, 1.0, 3.0], 60)
    numbers = X[:, 4]
    words = np.array(["a", "b", "c", None], dtype=object)[np.arange(60) * 7 % 4]
    frame = pytest.importorskip("pandas").DataFrame({"number": numbers, "word": words})
    scores = kind(frame, y, sample_weight=weight)
    order = np.random.default_rng(1).permutation(60)
    moved = kind(frame.iloc[order], y[order], sample_weight=weight[order])
    np.testing.assert_array_equal(moved, scores)
    np.testing.assert_array_equal(kind(frame, y, sample_weight=weight * 2.0**-40), scores)
    new_names = {"a": "z", "b": "y", "c": "x"}
    changed = frame.assign(number=np.exp(numbers), word=frame["word"].map(new_names))
    np.testing.assert_array_equal(kind(changed, y, sample_weight=weight), scores)
    if kind is not variance_reduction:
        names = np.array(["d", "c", "b", "a"])[y]
        np.testing.assert_array_equal(kind(frame, names, sample_weight=weight), scores)
    assert kind(frame, y, sample_weight=weight * 7) == pytest.approx(scores, rel=1e-12)
    np.testing.assert_array_equal(kind(frame, y, sample_weight=weight, n_jobs=1), scores)


def test_branches_of_mdl_are_bins():
    X, y = load_iris(return_X_y=True)
    X = X.copy()
    X[::7, 1] = np.nan
    bins = MDLPDiscretizer(missing="bin").fit_transform(X, y)
    for kind in CLASS_SCORES:
        expected = kind(bins.astype(int), y, numeric="distinct")
        np.testing.assert_array_equal(kind(X, y, numeric="mdl"), expected)
        np.testing.assert_array_equal(kind(bins, y, categorical_features=[0, 1, 2, 3]), expected)


def test_a_column_that_is_not_worth_a_cut_scores_zero_by_mdl():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    X[:, 1] += 3 * y
    noise, signal = information_gain(X, y, numeric="mdl")
    assert noise == 0.0
    assert signal > 0.5
    assert information_gain(X, y)[0] > 0.0


@pytest.mark.parametrize("kind", ALL_SCORES)
def test_a_coded_table_is_taken(kind):
    X, y = load_iris(return_X_y=True)
    y = np.unique(y, return_inverse=True)[1]
    table, rows = CodedTable(X), np.arange(20, 140)
    np.testing.assert_array_equal(kind(table, y), kind(X, y))
    np.testing.assert_array_equal(kind(table.take(rows), y[rows]), kind(X[rows], y[rows]))


# ------------------------------------------------------------ labels or counts
@pytest.mark.parametrize("kind", [entropy, gini])
@pytest.mark.parametrize("counts", [[9, 5], [1], [3, 0, 2], [10**6, 1, 7]])
def test_counts_stand_for_labels(kind, counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    assert kind(counts=counts) == pytest.approx(kind(labels), abs=1e-12)
    shares = np.array(counts) / sum(counts)
    assert kind(counts=shares) == pytest.approx(kind(labels), abs=1e-12)


@pytest.mark.parametrize("numbers", [[9, 5], np.array([9.0, 5.0]), range(10, 30, 2)])
def test_counts_that_are_taken_for_labels(numbers):
    with pytest.warns(UserWarning, match=r"entropy takes labels.* all different.*counts=\["):
        assert entropy(numbers) == pytest.approx(np.log2(len(numbers)))


@pytest.mark.parametrize("labels", [[0, 1], [1, 2, 3], [2, 2, 9], [7], [-1, 1], ["9", "5"]])
def test_labels_that_are_labels(labels):
    assert entropy(labels) >= 0.0  # without a warning


# ---------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: information_gain([[1]], [1], numeric="cut"), ValueError, "'numeric' parameter of"),
        (lambda: information_gain([[1], [2]], [1]), ValueError, "inconsistent numbers of samples"),
        (lambda: information_gain([[1], [2]], [0.5, 1.5]), ValueError, "Unknown label type"),
        (
            lambda: information_gain([[1], [2]], [None, "a"]),
            ValueError,
            "y contains 1 missing value",
        ),
        (lambda: information_gain([1, 2], [0, 1]), ValueError, "Expected 2D array"),
        (lambda: information_gain([[np.inf], [2]], [0, 1]), ValueError, "contains infinity"),
        (lambda: variance_reduction([[1], [2]], [np.nan, 1]), ValueError, "Input y contains NaN"),
        (lambda: entropy([]), ValueError, "0 sample"),
        (lambda: entropy([0, 1], [-1, 1]), ValueError, "Negative values"),
        (lambda: entropy([0, 1], [0, 0]), ValueError, "zero"),
        (lambda: gini([[0, 1]]), ValueError, "1d array"),
        (lambda: entropy([0.6, 0.4]), ValueError, r"write entropy\(counts=\[0.6, 0.4\]\)"),
        (lambda: entropy(), TypeError, "labels, one a row, or counts=.*; got neither"),
        (lambda: gini([0, 1], counts=[9, 5]), TypeError, "gini takes .*; got both"),
        (lambda: gini([0, 1], [1, 1], counts=[9, 5]), TypeError, "got both"),
        (lambda: gini(None, [1, 1], counts=[9, 5]), TypeError, "sample_weight with labels only"),
        (lambda: gini(counts=[9, -5]), ValueError, r"one non-negative number a label.*\[9, -5\]"),
        (lambda: gini(counts=[0, 0]), ValueError, "not all zero"),
        (lambda: gini(counts=[[9, 5]]), ValueError, "one non-negative number a label"),
        (lambda: entropy(counts=[np.nan, 1]), ValueError, "Input counts contains NaN"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("kind", ALL_SCORES)
def test_errors_name_the_function(kind):
    name = kind.__name__
    for options, message in [
        ({"device": "gpu"}, f"'device' parameter of {name} must be"),
        ({"n_jobs": "two"}, f"'n_jobs' parameter of {name} must be"),
        ({"numeric": "cut"}, f"'numeric' parameter of {name} must be"),
        ({"categorical_features": 3}, f"'categorical_features' parameter of {name} must be"),
        ({"categorical_features": [2]}, "names of columns, indices from 0 to 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            kind([[1.0], [2.0]], [0, 1], **options)
    with pytest.raises(ValueError, match=rf"minimum of 1 is required by {name}"):
        kind(np.empty((0, 2)), [])


def test_targets_have_no_mdl():
    with pytest.raises(ValueError, match="'numeric' parameter of variance_reduction must be"):
        variance_reduction([[1.0], [2.0]], [0.5, 1.5], numeric="mdl")


def test_sparse_input_is_taken():
    from scipy.sparse import csr_array

    dense = information_gain(np.eye(3), [0, 1, 1])
    assert np.array_equal(information_gain(csr_array(np.eye(3)), [0, 1, 1]), dense)


def test_documentation_is_whole():
    for kind in ALL_SCORES:
        assert "{" not in kind.__doc__
        assert "Returns\n-------" in inspect.cleandoc(kind.__doc__)
    assert set(gputree.__all__) >= {kind.__name__ for kind in [*ALL_SCORES, entropy, gini]}
