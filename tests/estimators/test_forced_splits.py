"""Trees that begin with splits that the user gives."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from gputree import (
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    load_model,
    save_model,
)
from gputree.datasets import load_iris
from gputree.editing import TreeEditor

WORDS = np.array(["red", "green", "blue", "black"], object)


def table(seed=0, n=150):
    """Numbers with missing values and one column of words, with classes of three."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    numbers = np.round(rng.normal(size=(n, 3)), 1)
    words = rng.integers(0, 4, n)
    signal = numbers[:, 0] + numbers[:, 1] * (words == 1)
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    frame = pd.DataFrame(numbers, columns=list("abc")).assign(colour=WORDS[words])
    return frame, np.digitize(signal, [-0.5, 0.5])


def described(model, node=0, depth=3):
    """The splits of a fitted tree down to a depth, as forced splits."""
    tree = model.tree_
    if tree.is_leaf[node] or depth == 0:
        return None
    f, left = int(tree.feature[node]), int(tree.first_child[node])
    split = {"feature": str(model.feature_names_in_[f])}
    if model.columns_.nominal[f]:
        split["categories"] = model.columns_.categories[f][tree.categories(left)].tolist()
    else:
        split["threshold"] = float(tree.threshold[node])
    sides = (described(model, left + k, depth - 1) for k in (0, 1))
    return split | {s: below for s, below in zip(("left", "right"), sides, strict=True) if below}


MODELS = [
    DecisionTreeClassifier(),
    DecisionTreeClassifier(max_depth=4, min_samples_leaf=0.02),
    DecisionTreeClassifier(criterion="entropy", max_features=2, random_state=3),
    DecisionTreeRegressor(min_samples_leaf=3, min_impurity_decrease=0.01),
    DecisionTreeRegressor(max_leaf_nodes=9),
]


@given(st.integers(0, 10**6), st.sampled_from(MODELS), st.integers(1, 3), st.booleans())
def test_splits_that_growth_chose_give_its_tree(seed, model, depth, weighted):
    X, y = table(seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(X)) if weighted else None
    free = clone(model).fit(X, y, weight)
    if free.tree_.n_nodes == 1 or (np.isinf(free.tree_.threshold)).any():
        return
    depth = 1 if model.max_leaf_nodes else depth  # deeper ones may come after others
    forced = clone(model).set_params(forced_splits=described(free, depth=depth))
    assert forced.fit(X, y, weight).tree_.equals(free.tree_)


def test_the_tree_is_that_of_the_editor():
    X, y = table()
    editor = TreeEditor(DecisionTreeClassifier(max_depth=4), X, y)
    editor.split((), "colour", categories=["red", "blue"])
    editor.split((1,), "c", threshold=0.0)
    for path in ((0,), (1, 0), (1, 1)):
        editor.grow(path)
    right = {"feature": 2, "threshold": 0}
    splits = {"feature": "colour", "categories": ["red", "blue"], "right": right}
    model = DecisionTreeClassifier(max_depth=4, forced_splits=splits).fit(X, y)
    assert model.tree_.equals(editor.estimator.tree_)


@pytest.mark.parametrize("most", [2, 3, 5, 8])
def test_forced_splits_are_the_first_of_the_leaves_that_are_left(most):
    X, y = table()
    splits = {"feature": "c", "threshold": 0.0, "left": {"feature": "c", "threshold": -0.5}}
    tree = DecisionTreeClassifier(max_leaf_nodes=most, forced_splits=splits).fit(X, y).tree_
    assert tree.is_leaf.sum() == most
    assert tree.feature[0] == 2
    assert most == 2 or tree.feature[tree.first_child[0]] == 2


def test_files_pipelines_and_model_files(write, tmp_path):
    X, y = load_iris(return_X_y=True)
    splits = {"feature": 1, "threshold": 3.0, "right": {"feature": 0, "threshold": 5.5}}
    path = write(json.dumps(splits), "splits.json")
    model = DecisionTreeClassifier(forced_splits=splits).fit(X, y)
    for file in (path, str(path)):
        of_file = DecisionTreeClassifier(forced_splits=file).fit(X, y)
        assert of_file.tree_.equals(model.tree_)
        save_model(of_file, tmp_path / "of_file")
        assert load_model(tmp_path / "of_file").forced_splits == str(path)
    coded = CodedTable(X, device="cpu")
    assert clone(model).fit(coded, y).tree_.equals(model.tree_)
    assert np.isfinite(cross_val_score(clone(model), X, y, cv=3)).all()
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.forced_splits == splits
    assert model.tree_.equals(loaded.tree_)


@pytest.mark.parametrize(
    ("splits", "options", "problem"),
    [
        ({"feature": 0, "threshold": 99}, {}, "all rows of the node would go to one side"),
        ({"feature": 0, "threshold": 4.4}, {"min_samples_leaf": 9}, "min_samples_leaf is 9"),
        ({"feature": 0, "threshold": 4.4}, {"min_weight_fraction_leaf": 0.1}, "less weight"),
        (
            {"feature": 0, "threshold": 6, "left": {"feature": 1, "threshold": 3}},
            {"max_depth": 1},
            r"\['left'\] of column 1 .* at depth 1, and max_depth=1",
        ),
    ],
)
def test_splits_that_are_left_out(splits, options, problem):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(forced_splits=splits, **options)
    with pytest.warns(UserWarning, match=problem):
        model.fit(X, y)
    if options != {"max_depth": 1}:
        assert model.tree_.equals(clone(model).set_params(forced_splits=None).fit(X, y).tree_)


def test_booleans_are_categories_of_columns_of_booleans_alone():
    y, splits = np.array([0, 1, 2] * 4), {"feature": 0, "categories": [True]}
    numbers, flags = pd.DataFrame({"a": y.astype(float)}), pd.DataFrame({"a": y == 1})
    model = DecisionTreeClassifier(max_depth=1, forced_splits=splits, categorical_features=[0])
    with pytest.raises(ValueError, match="has no category True"):
        model.fit(numbers, y)
    model.fit(flags, y)
    assert model.apply(flags).tolist() == [2, 1, 2] * 4


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"threshold": 1}, "must be a dict with 'feature'"),
        ({"feature": 0, "treshold": 1}, "has 'treshold'; a split has"),
        ({"feature": "d", "threshold": 1}, "There is no column 'd'"),
        ({"feature": True, "threshold": 1}, "by its name or index, got True"),
        ({"feature": "a"}, "takes 'threshold' or 'categories'; 'a' has neither"),
        ({"feature": "colour", "categories": "red"}, r"as a list: \['red'\]"),
        ({"feature": "a", "threshold": "x"}, "must be a number, got 'x'"),
        ({"feature": "a", "threshold": True}, "must be a number, got True"),
        ({"feature": "a", "threshold": [1.0]}, r"must be a number, got \[1.0\]"),
        ({"feature": "colour", "categories": [["red"]]}, r"has no category \['red'\]"),
        ({"feature": "a", "categories": ["red"]}, "is split by 'threshold'"),
        ({"feature": "colour", "threshold": "rot"}, "has no category 'rot'"),
        ({"feature": "a", "threshold": 0.0, "left": [1]}, r"\['left'\] must be a dict"),
        ("absent.json", "'absent.json' is no JSON file of splits"),
        (3, "'forced_splits' parameter of DecisionTreeClassifier must be an instance of 'dict'"),
    ],
)
def test_errors(splits, message):
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(forced_splits=splits).fit(*table())


@pytest.mark.parametrize(
    "option", [{"monotonic_cst": [1, 0, 0, 0]}, {"interaction_cst": "pairwise"}]
)
def test_constraints_exclude_forced_splits(option):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(forced_splits={"feature": 0, "threshold": 5.0}, **option)
    with pytest.raises(ValueError, match="takes 'forced_splits' or"):
        model.fit(X[:100], y[:100])
