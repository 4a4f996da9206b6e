"""Trees in the formats of other programs, which predict as the tree does, bit for bit."""

import inspect

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import heaviest, heaviest_answers, multiway_cases
from programs import booster_of, run_onnx
from sklearn.tree import export_text as sklearn_text

import gputree
import gputree.export
from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    rank_features,
)
from gputree.base.dtypes import THRESHOLD_SPLIT
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.export import export_lightgbm, to_onnx, to_sklearn, to_treelite
from gputree.export.binary import as_binary
from gputree.export.model import model_of, single_paths
from gputree.export.rules import bounds_above

GOLF = load_golf()
CARS = load_auto_mpg()
ALL = [export_lightgbm, to_onnx, to_treelite]


def by_lightgbm(tree, values):
    found = booster_of(tree, missing="largest").predict(values)
    if tree.n_classes == 2:
        return np.stack([1.0 - found, found], axis=1), slice(1, 2)  # 1 - x is rounded
    return found.reshape(len(values), -1), slice(None)


def by_onnx(tree, values):
    made = to_onnx(tree, missing="largest")
    label, found = run_onnx(made, {"X": values.astype(np.float64)})
    assert label.tolist() == found.argmax(axis=1).tolist()
    return found, slice(None)


def by_treelite(tree, values):
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    found = treelite.gtil.predict(to_treelite(tree, missing="largest"), values.astype(np.float64))
    return found.reshape(len(values), -1), slice(None)


@pytest.mark.parametrize("answers_of", [by_lightgbm, by_onnx, by_treelite])
@given(multiway_cases(min_rows=1))
def test_programs_answer_as_the_tree_does(answers_of, case):
    tree, values = case
    found, exact = answers_of(tree, values)
    expected = heaviest_answers(tree, values)
    assert np.array_equal(found[:, exact], expected[:, exact])


def test_lightgbm_reads_its_own_writing_again():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    model = DecisionTreeRegressor(max_depth=4).fit(CARS.data, CARS.target)
    coded = model.columns_.encode(CARS.data)
    first = booster_of(model)
    again = lightgbm.Booster(model_str=first.model_to_string())
    assert again.predict(coded).tolist() == model.predict(CARS.data).tolist()


def test_lightgbm_codes_the_categories_of_data_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    names = ["out look", "temp,erature", "humidity", "wind"]
    frame = pandas.DataFrame(GOLF.data, columns=names).astype("category")
    model = DecisionTreeClassifier().fit(frame, GOLF.target)
    found = booster_of(model).predict(frame, validate_features=False)
    assert found.tolist() == model.predict_proba(frame)[:, 1].tolist()


@pytest.mark.parametrize("kind", [ID3Classifier, DecisionTreeClassifier])
def test_onnx_takes_text(kind):
    pytest.importorskip("onnx", reason="onnx is not installed")
    model = kind().fit(GOLF.data, GOLF.target)
    rows = [*GOLF.data.tolist(), ["fog", "mild", "high", "weak"], [None, "hot", "high", "weak"]]
    inputs = {
        name: np.array([[word or ""] for word in column], object)
        for name, column in zip(GOLF.feature_names, zip(*rows, strict=True), strict=True)
    }
    made = to_onnx(model, feature_names=GOLF.feature_names)
    label, shares = run_onnx(made, inputs)
    assert label.tolist() == model.predict(np.array(rows, object)).tolist()
    assert np.array_equal(shares, model.predict_proba(np.array(rows, object)))


@given(seed=st.integers(0, 2**32 - 1), missing=st.sampled_from([0.0, 0.2]))
def test_sklearn_answers_as_the_tree_does(seed, missing):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(120, 4)).astype(np.float32).round(1)
    values[rng.random(values.shape) < missing] = np.nan
    y = rng.integers(0, 3, 120)
    for model in (DecisionTreeClassifier().fit(values, y), DecisionTreeRegressor().fit(values, y)):
        theirs = to_sklearn(model)
        rows = rng.normal(size=(200, 4)).astype(np.float32).round(1)
        if missing:
            rows[rng.random(rows.shape) < missing] = np.nan
        assert np.array_equal(theirs.apply(rows), model.apply(rows))
        assert np.array_equal(theirs.predict(rows), model.predict(rows))
    assert "feature_0" in sklearn_text(theirs)


def test_sklearn_keeps_labels_and_names():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]})
    theirs = to_sklearn(DecisionTreeClassifier().fit(frame, ["u", "v", "v"]))
    assert theirs.predict(frame).tolist() == ["u", "v", "v"]


def test_what_sklearn_cannot_hold():
    with pytest.raises(ValueError, match=r"tests categories \(node 0, column 'x0'\)"):
        to_sklearn(DecisionTreeClassifier().fit(GOLF.data, GOLF.target))
    with pytest.raises(ValueError, match="a missing value goes to no single child"):
        to_sklearn(C45Classifier().fit([[1.0], [2.0]] * 4, [0, 1] * 4))
    close = 1.0 + np.arange(8)[:, None] * 2.0**-40
    with pytest.raises(ValueError, match=r"divides numbers at 1\.0.* one float32 number"):
        to_sklearn(DecisionTreeRegressor().fit(close, np.arange(8) ** 2))


@given(multiway_cases(max_rows=0))
def test_bounds_above_a_node(case):
    tree, _ = case
    lower, upper = bounds_above(tree)
    for node in np.flatnonzero(~tree.is_leaf):
        expected, child = [-np.inf, np.inf], node
        while child != 0:
            parent = tree.parent[child]
            numeric = tree.split_kind[parent] == THRESHOLD_SPLIT
            if numeric and tree.feature[parent] == tree.feature[node]:
                left, t = int(child == tree.first_child[parent]), tree.threshold[parent]
                expected[left] = (max, min)[left](expected[left], t)
            child = parent
        assert [lower[node], upper[node]] == expected


@pytest.mark.parametrize("export", ALL)
def test_rows_in_shares_are_refused(export):
    model = C45Classifier(pruning=None).fit(GOLF.data, GOLF.target)
    with pytest.raises(ValueError, match="sends rows to all children"):
        export(model)
    assert export(model, missing="largest")


@pytest.mark.parametrize(("export", "package"), [(to_onnx, "onnx"), (to_treelite, "treelite")])
def test_what_is_not_installed_is_named(export, package, monkeypatch):
    def absent(name, *_):
        raise ImportError(name)

    monkeypatch.setattr(gputree.base.optional.importlib, "import_module", absent)
    with pytest.raises(ImportError, match=rf"{package}.*gputree-learn\[export\]"):
        export(DecisionTreeClassifier().fit(GOLF.data, GOLF.target))


def test_onnx_parameters():
    with pytest.raises(ValueError, match="'inputs' parameter of to_onnx must be a str among"):
        to_onnx(DecisionTreeClassifier().fit(GOLF.data, GOLF.target), inputs="rows")


# -------------------------------------------------------------------- what formats cannot represent
INNER = ["matrix", "found", "place", "leaf", "code of t", "flat", "shares", "labels", "answers"]


@pytest.fixture(scope="module")
def trees():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X = np.array([[0.0, 1], [1, 1], [2, 1], [3, 1], [0, 2], [1, 2], [2, 2], [3, 2]])
    table = pd.DataFrame({"t": np.where(X[:, 1] == 1, "u", "v"), "x": X[:, 0]})
    truth = np.where((X[:, 1] == 1) & (X[:, 0] > 1), "p", "n")
    return (
        table,
        (DecisionTreeClassifier().fit(table, truth), truth),
        (DecisionTreeRegressor().fit(table, X[:, 0] * X[:, 1]), X[:, 0] * X[:, 1]),
    )


@pytest.mark.parametrize("name", INNER)
def test_columns_named_as_values_of_the_graph(trees, name):
    """The expected labels are those of the table, which these trees overfit."""
    table, *both = trees
    for model, truth in both:
        for names in (["t", name], [name, f"{name}_"]):
            cells = {
                names[0]: table[["t"]].to_numpy(object), names[1]: table[["x"]].to_numpy(float),
            }  # fmt: skip
            found = run_onnx(to_onnx(model, feature_names=names), cells)[0]
            assert found.tolist() == truth.tolist()


def test_columns_named_as_outputs(trees):
    _, (classifier, _), (regressor, _) = trees
    for model, names in ((classifier, ("label", "probabilities")), (regressor, ("prediction",))):
        for name in names:
            with pytest.raises(ValueError, match=f"'{name}' is a column and an output"):
                to_onnx(model, feature_names=["t", name])
            to_onnx(model, feature_names=["t", name], inputs="matrix")


@pytest.mark.parametrize("names", [["t", "t"], ["", "x"]])
def test_names_that_no_input_has(trees, names):
    with pytest.raises(ValueError, match="its inputs need different names, none of them empty"):
        to_onnx(trees[1][0], feature_names=names)


def test_numbers_that_lightgbm_takes_for_0():
    lightgbm = pytest.importorskip("lightgbm")
    for small, large in ((2e-36, 1e-30), (-1e-30, -2e-36)):
        near = DecisionTreeRegressor().fit([[small], [0.0], [large]], [0.0, 1.0, 2.0])
        with pytest.raises(ValueError, match="LightGBM reads numbers nearer to 0 than 1e-35 as 0"):
            export_lightgbm(near)
    X, y = np.array([[-2e-35], [0.0], [3e-35]]), [0.0, 1.0, 2.0]
    far = lightgbm.Booster(model_str=export_lightgbm(DecisionTreeRegressor().fit(X * 4, y)))
    assert far.predict(X * 4).tolist() == y


# ----------------------------------------------------------------- trees of any kind as binary ones
def walk(binary, row) -> int:
    """The source of the leaf that a row reaches."""
    left, at = binary.left, 0
    while not binary.is_leaf[at]:
        x, threshold = row[binary.feature[at]], binary.threshold[at]
        if np.isnan(threshold):
            goes_left = x in binary.codes[at]
        else:
            goes_left = bool(binary.missing_left[at]) if np.isnan(x) else x <= threshold
        at = left[at] if goes_left else binary.right[at]
    return int(binary.source[at])


@given(multiway_cases())
def test_every_value_ends_where_the_tree_sends_it(case):
    tree, values = case
    model = single_paths(model_of(tree), "largest", "a test")
    binary = as_binary(model)
    assert [walk(binary, row) for row in values] == [heaviest(tree, row) for row in values]


@given(multiway_cases(max_rows=0))
def test_every_node_but_the_root_has_one_parent(case):
    model = single_paths(model_of(case[0]), "largest", "a test")
    binary = as_binary(model)
    inner = ~binary.is_leaf
    below = np.concatenate([binary.left[inner], binary.right[inner]])
    assert sorted(below) == list(range(1, inner.size))


# --------------------------------------------------- what every export takes, and refuses, alike
IRIS = load_iris()
MODEL = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
NAMED = [
    (name, parameter)
    for name in gputree.export.__all__
    if inspect.isfunction(getattr(gputree.export, name))
    for parameter in ("feature_names", "class_names")
    if parameter in inspect.signature(getattr(gputree.export, name)).parameters
]


@pytest.mark.parametrize(("name", "parameter"), NAMED)
@pytest.mark.parametrize("kind", [set, frozenset, dict.fromkeys])
def test_names_without_an_order_are_refused(name, parameter, kind):
    """The order of a set of texts differs from run to run, and columns are named by place."""
    function = getattr(gputree.export, name)
    names = {"feature_names": IRIS.feature_names, "class_names": MODEL.classes_.tolist()}
    rows = (IRIS.data[:1],) if "X" in inspect.signature(function).parameters else ()
    with pytest.raises(ValueError, match=rf"{parameter}' parameter of {name} must be an ordered"):
        function(MODEL, *rows, **{parameter: kind(names[parameter])})


def test_there_are_exports_with_names():
    assert len(NAMED) > 12


def test_names_of_a_ranking_have_an_order():
    with pytest.raises(ValueError, match="of rank_features must be an ordered array-like or None"):
        rank_features(IRIS.data, IRIS.target, feature_names=set(IRIS.feature_names))


def test_a_second_positional_argument_is_no_file():
    with pytest.raises(TypeError, match=r"export_html\(\) takes 1 positional argument but 2 were"):
        gputree.export.export_html(MODEL, "x.html")
