"""Supervised discretization: cut points against plain Python, and scikit-learn's manner."""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.utils.estimator_checks import parametrize_with_checks

from gputree import MDLPDiscretizer
from gputree.datasets import load_iris
from gputree.discretization import cut_points

RULES = [(c, n) for c in ("fayyad_irani", "kononenko") for n in ("rows", "cuts")]


# ----------------------------------------------------------------- plain Python
def entropy(labels):
    n = len(labels)
    return -sum(c / n * math.log2(c / n) for c in map(labels.count, set(labels)))


def fayyad_irani_pays(left, right, names):
    """Fayyad and Irani (1993), section 3."""
    whole = left + right
    n, k, k1, k2 = len(whole), *(len(set(part)) for part in (whole, left, right))
    h, h1, h2 = map(entropy, (whole, left, right))
    gain = h - len(left) / n * h1 - len(right) / n * h2
    delta = math.log2(3**k - 2) - (k * h - k1 * h1 - k2 * h2)
    return gain > (math.log2(names) + delta) / n + 1e-12


def kononenko_pays(left, right, names):
    """Kononenko (1995), in integers: the number of ways to write the labels."""
    whole = left + right
    k = len(set(whole))

    def ways(part):
        n, number = len(part), math.comb(len(part) + k - 1, k - 1)
        for label in set(part):
            number *= math.comb(n, part.count(label))
            n -= part.count(label)
        return number

    return ways(whole) > names * ways(left) * ways(right)


PAYS = {"fayyad_irani": fayyad_irani_pays, "kononenko": kononenko_pays}


def naive_cuts(values, labels, criterion, cut_cost):
    """Cut points of pairs sorted by value, by trying all of them again and again."""
    rows = sorted(zip(values, labels, strict=True), key=lambda row: row[0])
    values, labels = [row[0] for row in rows], [row[1] for row in rows]
    places = [i for i in range(1, len(rows)) if values[i - 1] < values[i]]
    if not places:
        return []

    def left_over(i):
        return i * entropy(labels[:i]) + (len(rows) - i) * entropy(labels[i:])

    least = min(map(left_over, places))
    best = next(i for i in places if left_over(i) < least + 2.0**-21)  # gains are so coarse
    names = len(places) if cut_cost == "cuts" else len(rows) - 1
    gains = len(rows) * entropy(labels) - least > 2.0**-21
    if not gains or not PAYS[criterion](labels[:best], labels[best:], names):
        return []
    low, high = rows[:best], rows[best:]
    return [
        *naive_cuts(*zip(*low, strict=True), criterion, cut_cost),
        (values[best - 1] + values[best]) / 2,
        *naive_cuts(*zip(*high, strict=True), criterion, cut_cost),
    ]


@st.composite
def columns(draw):
    """Values and labels that follow them in runs, with some noise."""
    n = draw(st.integers(2, 120))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    distinct = draw(st.sampled_from([3, 12, 200]))
    values = rng.integers(0, distinct, n).astype(float)
    n_classes = draw(st.integers(1, 4))
    labels = (values * n_classes / distinct).astype(int) % n_classes
    noise = rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.5]))
    return values, np.where(noise, rng.integers(0, n_classes, n), labels)


@pytest.mark.parametrize(("criterion", "cut_cost"), RULES)
@given(column=columns())
def test_cuts_are_those_of_plain_python(criterion, cut_cost, column):
    values, labels = column
    found = MDLPDiscretizer(criterion=criterion, cut_cost=cut_cost, n_jobs=1)
    found.fit(values[:, None], labels)
    expected = naive_cuts(values.tolist(), labels.tolist(), criterion, cut_cost)
    assert found.cut_points_[0].tolist() == expected


def test_more_cuts_and_ranges_than_there_is_memory_for_first(monkeypatch):
    monkeypatch.setattr(cut_points, "FIRST_ROOM", 2)
    values = np.arange(128.0)
    found = MDLPDiscretizer(n_jobs=1).fit(values[:, None], values // 8)
    assert found.cut_points_[0].tolist() == (np.arange(8.0, 128.0, 8.0) - 0.5).tolist()


@cache
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y


def holed_wine():
    """Every seventh cell is missing."""
    X, y = load_wine(return_X_y=True)
    X.ravel()[::7] = np.nan
    return X, y


WEKA_TABLES = {
    "iris": iris,
    "wine": lambda: load_wine(return_X_y=True),
    "wine with holes": holed_wine,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
}
WEKA_RULES = dict(zip(["", "-E", "-K", "-K -E"], RULES, strict=True))


@pytest.mark.full
@pytest.mark.parametrize("options", WEKA_RULES)
@pytest.mark.parametrize("name", WEKA_TABLES)
def test_cuts_are_those_of_weka(name, options):
    """Weka 3.9.7's supervised Discretize printed them, with 12 digits behind the point
    (`benchmarks.cut_points.weka_cuts`).
    """
    criterion, cut_cost = WEKA_RULES[options]
    found = MDLPDiscretizer(criterion=criterion, cut_cost=cut_cost).fit(*WEKA_TABLES[name]())
    recorded = json.loads(Path(__file__).with_name("weka_cut_points.json").read_text("utf-8"))
    for cuts, known in zip(found.cut_points_, recorded[name][options], strict=True):
        assert cuts == pytest.approx(known, rel=1e-12, abs=1e-12)


def test_a_cut_that_is_worth_its_description_to_the_bit_is_not_made():
    """Labels a a b and a cut behind a a: 12 ways to write the labels before, 12 after with the
    2 cuts to name. (The logarithms that Weka adds up differ in the last bit, and it cuts.)
    """
    values, labels = np.array([[1.0], [10.0], [14.0]]), np.array(["a", "a", "b"])
    found = MDLPDiscretizer(criterion="kononenko").fit(values, labels)
    assert found.cut_points_[0].size == 0


# ------------------------------------------------------------------ properties
def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.normal(size=n), rng.integers(0, 30, n), rng.exponential(size=n)], axis=1)
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 20) + (rng.random(n) < 0.1)
    return X, y


@pytest.mark.parametrize(("criterion", "cut_cost"), RULES)
def test_weights_stand_for_copies(criterion, cut_cost):
    X, y = table(600)
    weight = np.random.default_rng(2).integers(0, 4, y.size)
    copies = np.repeat(np.arange(y.size), weight)
    make = MDLPDiscretizer(criterion=criterion, cut_cost=cut_cost)
    expected = make.fit(X[copies], y[copies])
    found = clone(make).fit(X, y, sample_weight=weight)
    for a, b in zip(found.cut_points_, expected.cut_points_, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(found.bin_edges_, expected.bin_edges_, strict=True):
        np.testing.assert_array_equal(a, b)
    all_twice = clone(make).fit(X, y, sample_weight=np.full(y.size, 2.0))
    doubled = clone(make).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    for a, b in zip(all_twice.cut_points_, doubled.cut_points_, strict=True):
        np.testing.assert_array_equal(a, b)


# --------------------------------------------------------------------- missing
def test_missing_values_take_no_part():
    X, y = table(800)
    X[::5, 0] = np.nan
    known = ~np.isnan(X[:, 0])
    found = MDLPDiscretizer().fit(X, y)
    alone = MDLPDiscretizer().fit(X[known, :1], y[known])
    np.testing.assert_array_equal(found.cut_points_[0], alone.cut_points_[0])


def test_missing_values_stay_or_are_a_bin():
    X, y = table(800)
    X[::5, 0] = np.nan
    kept, coded = MDLPDiscretizer().fit(X, y), MDLPDiscretizer(missing="bin").fit(X, y)
    np.testing.assert_array_equal(np.isnan(kept.transform(X)), np.isnan(X))
    np.testing.assert_array_equal(coded.transform(X)[::5, 0], kept.n_bins_[0])
    for bins in (kept, coded):
        values = bins.inverse_transform(bins.transform(X))
        np.testing.assert_array_equal(np.isnan(values), np.isnan(X))


def test_a_column_without_values():
    X = np.full((10, 1), np.nan)
    found = MDLPDiscretizer().fit(X, np.arange(10) % 2)
    assert found.cut_points_[0].size == 0
    assert np.isnan(found.bin_edges_[0]).all()
    assert np.isnan(found.inverse_transform(found.transform(X))).all()
    assert found.transform([[3.0]]).tolist() == [[0.0]]


# -------------------------------------------------------- transform and inverse
def test_a_value_that_is_a_cut_is_in_the_lower_bin():
    X, y = iris()
    found = MDLPDiscretizer().fit(X, y)
    cut = found.cut_points_[2][0]
    row = [[5.0, 3.0, cut, 0.1], [5.0, 3.0, np.nextafter(cut, 9), 0.1], [-9.0, 99.0, 99.0, -9.0]]
    assert found.transform(row)[:, 2].tolist() == [0, 1, 2]


def test_bins_of_representatives_are_the_bins():
    X, y = iris()
    found = MDLPDiscretizer().fit(X, y)
    bins = found.transform(X)
    values = found.inverse_transform(bins)
    np.testing.assert_array_equal(found.transform(values), bins)
    edges = found.bin_edges_[3]
    assert edges == pytest.approx([0.1, 0.8, 1.75, 2.5])
    assert sorted(set(values[:, 3].round(6))) == pytest.approx([0.45, 1.275, 2.125])


def test_float32_stays():
    X, y = iris()
    bins = MDLPDiscretizer().fit_transform(X.astype(np.float32), y)
    assert bins.dtype == np.float32
    np.testing.assert_array_equal(bins, MDLPDiscretizer().fit_transform(X, y))


# ------------------------------------------------------------ scikit-learn's manner
@parametrize_with_checks([MDLPDiscretizer(), MDLPDiscretizer(criterion="kononenko", missing="bin")])
def test_scikit_learn_checks(estimator, check, request):
    if "check_array_api_input" in request.node.name:
        pytest.skip("for estimators that compute on array API arrays; these need NumPy's")
    check(estimator)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_in_and_out(package):
    library = pytest.importorskip(package)
    X, y = iris()
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = library.DataFrame({name: X[:, f] for f, name in enumerate(names)})
    found = MDLPDiscretizer().set_output(transform=package).fit(frame, y)
    assert found.get_feature_names_out().tolist() == names
    out = found.transform(frame)
    assert isinstance(out, library.DataFrame)
    assert list(out.columns) == names
    np.testing.assert_array_equal(out.to_numpy(), MDLPDiscretizer().fit_transform(X, y))


def test_columns_of_categories_are_left_to_others():
    pandas = pytest.importorskip("pandas")
    X, y = iris()
    frame = pandas.DataFrame({"width": X[:, 3], "word": np.where(X[:, 0] > 5, "a", "b")})
    with pytest.raises(ValueError, match=r"column 'word' holds categories.*ColumnTransformer"):
        MDLPDiscretizer().fit(frame, y)
    choice = make_column_selector(dtype_include="number")
    both = ColumnTransformer([("bins", MDLPDiscretizer(), choice)], remainder="passthrough")
    assert both.fit_transform(frame, y).shape == (150, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: MDLPDiscretizer(criterion="gini").fit(X, y), "'criterion' parameter of MDLP"),
        (lambda X, y: MDLPDiscretizer(missing="drop").fit(X, y), "'missing' parameter of MDLP"),
        (lambda X, y: MDLPDiscretizer().fit(X, X[:, 0]), "Unknown label type: continuous"),
        (lambda X, y: MDLPDiscretizer().fit(X, y[1:]), r"inconsistent numbers of samples"),
        (lambda X, y: MDLPDiscretizer().fit(X * np.inf, y), "infinity"),
        (lambda X, y: MDLPDiscretizer().fit(X, None), "requires y to be passed"),
        (
            lambda X, y: MDLPDiscretizer().fit(X, y).transform(X[:, 1:]),
            "X has 3 features, but MDLP",
        ),
        (
            lambda X, y: MDLPDiscretizer().fit(X, y).inverse_transform(X[:, 1:]),
            "X has 3 features, but MDLP",
        ),
        (
            lambda X, y: MDLPDiscretizer().fit(X, y).inverse_transform(X),
            r"takes integers from 0 to 2, or NaN, in column 0\. Got 5\.1",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in multiply")
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(*iris())


def test_a_failed_fit_leaves_the_old_one():
    X, y = iris()
    found = MDLPDiscretizer().fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        found.fit(X[:, :2] * np.inf, y)
    assert found.n_features_in_ == 4
    np.testing.assert_array_equal(found.transform(X[:3]).shape, (3, 4))
