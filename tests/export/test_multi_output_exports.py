"""Exports of several targets: texts have lists, programs predict alike, others refuse them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    export,
    export_json,
    export_text,
    json_schema,
    load_model,
    read_json,
    save_model,
)
from gputree.errors import InputError
from gputree.export import explain, shap_values, to_onnx, to_sklearn
from gputree.tree.statistics import check_statistics

X = np.random.default_rng(2).integers(-4, 5, size=(40, 2)).astype(float)
TARGETS = np.column_stack([X[:, 0], 2 * X[:, 1] + 0.5])
LABELS = np.column_stack([np.where(X[:, 0] > 0, "yes", "no"), np.where(X[:, 1] > 0, "up", "down")])
LABELS[X.min(axis=1) > 1, 1] = "off"

MODELS = {
    "means": DecisionTreeRegressor(max_depth=3).fit(X, TARGETS),
    "classes": DecisionTreeClassifier(max_depth=3).fit(X, LABELS),
    "mean forest": RandomForestRegressor(n_estimators=3, random_state=0).fit(X, TARGETS),
    "class forest": RandomForestClassifier(n_estimators=3, random_state=0).fit(X, LABELS),
}
TREES = ("means", "classes")


def joined(model):
    """Predictions, or the probabilities of all targets side by side."""
    return np.hstack(model.predict_proba(X)) if hasattr(model, "classes_") else model.predict(X)


def test_text_has_a_list_for_each_leaf():
    square = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    tree = DecisionTreeRegressor().fit(square, np.column_stack([4 * square[:, 0], square[:, 1]]))
    assert export_text(tree) == (
        "x0 <= 0.5\n"
        "|   x1 <= 0.5: [0, 0] (1, mse 0)\n"
        "|   x1 > 0.5: [0, 1] (1, mse 0)\n"
        "x0 > 0.5\n"
        "|   x1 <= 0.5: [4, 0] (1, mse 0)\n"
        "|   x1 > 0.5: [4, 1] (1, mse 0)\n"
    )
    words = np.array([["a", "k"], ["a", "l"], ["b", "m"], ["b", "m"]])
    labels = DecisionTreeClassifier(max_depth=1).fit(square, words)
    assert export_text(labels, show_weights=True) == (
        "x0 <= 0.5: [a, k] (2, gini 0.25) [a 2, b 0] [k 1, l 1, m 0]\n"
        "x0 > 0.5: [b, m] (2, gini 0) [a 0, b 2] [k 0, l 0, m 2]\n"
    )
    assert str(explain(labels, square[3:])[0]) == (
        "[b, m]\n  [a 2, b 2] [k 1, l 1, m 2]\n    x0 > 0.5: [a 0, b 2] [k 0, l 0, m 2]"
    )


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_targets_of_frames_are_named(kind, tmp_path):
    """In texts, pictures, files and members of forests, until a fit of others."""
    y = kind({"left": [0.0, 0, 4, 4], "up": [1.0, 1, 3, 3]})
    square = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    tree = DecisionTreeRegressor().fit(square, y)
    said = "x0 <= 0.5: [left 0, up 1] (2, mse 0)\nx0 > 0.5: [left 4, up 3] (2, mse 0)\n"
    assert export_text(tree) == said
    assert "left 4, up 3" in export.export_html(tree)
    assert str(explain(tree, square[:1])[0]).startswith("[left 0, up 1]\n")
    save_model(tree, tmp_path / "model")
    for again in (load_model(tmp_path / "model"), read_json(export_json(tree))):
        assert export_text(again) == said
    labels = DecisionTreeClassifier().fit(square, kind({"left": [*"aabb"], "up": [*"ccdd"]}))
    assert export_text(labels, show_weights=True).startswith(
        "x0 <= 0.5: [left a, up c] (2, gini 0) left [a 2, b 0] up [c 2, d 0]\n"
    )
    forest = RandomForestRegressor(n_estimators=1, random_state=0).fit(square, y)
    assert forest.estimators_[0].target_names_in_.tolist() == ["left", "up"]
    assert not hasattr(tree.fit(square, [[0, 1]] * 2 + [[4, 3]] * 2), "target_names_in_")
    assert not hasattr(tree.fit(square, y["left"]), "target_names_in_")
    document = json.loads(export_json(labels)) | {"target_names": ["left"]}
    with pytest.raises(ValueError, match="target_names"):
        read_json(json.dumps(document))


@pytest.mark.parametrize("name", TREES)
def test_pictures(name):
    assert "[" in export.export_graphviz(MODELS[name])
    page = export.export_html(MODELS[name])
    assert export_text(MODELS[name]).splitlines()[-1].partition(": ")[2].split(" (")[0] in page
    pytest.importorskip("matplotlib").use("Agg")
    assert len(export.plot_tree(MODELS[name]).texts) == MODELS[name].tree_.n_nodes


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "to", ["to_treelite", "export_lightgbm", "export_sql", "export_c", "export_python", "to_dict"]
)
def test_formats_of_one_target_say_so(name, to):
    if to == "to_dict" and name not in TREES:
        pytest.skip("takes one tree")
    with pytest.raises(InputError, match="This format takes one target, and this model has 2"):
        getattr(export, to)(MODELS[name])


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("to", ["path_rules", "plot_partition"])
def test_pictures_of_one_target_say_so(name, to):
    with pytest.raises(InputError, match="takes one target"):
        getattr(export, to)(MODELS[name])
    assert export.path_rules(MODELS[name].tree_.of_target(0))


def test_names_of_classes_are_of_one_target():
    with pytest.raises(InputError, match="class_names takes one target"):
        export_text(MODELS["classes"], class_names=["a", "b"])


@pytest.mark.parametrize("name", MODELS)
def test_onnx_predicts_alike(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = MODELS[name]
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    outputs = [output.name for output in session.get_outputs()]
    found = dict(zip(outputs, session.run(None, {"X": X}), strict=True))
    if not hasattr(model, "classes_"):
        assert_array_equal(found["prediction"], model.predict(X))
        return
    for j, shares in enumerate(model.predict_proba(X)):
        assert_array_equal(found[f"probabilities_{j}"], shares)
        assert_array_equal(found[f"label_{j}"], model.predict(X)[:, j])


@pytest.mark.parametrize("name", MODELS)
def test_trees_of_scikit_learn_predict_alike(name):
    model = MODELS[name]
    made = to_sklearn(model, X)
    assert made.n_outputs_ == 2
    assert_array_equal(made.predict(X), model.predict(X))
    if hasattr(model, "classes_"):
        for mine, theirs in zip(model.predict_proba(X), made.predict_proba(X), strict=True):
            assert_allclose(mine, theirs, rtol=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_shapley_values_add_up(name):
    found = shap_values(MODELS[name], X[:3])
    sums = found.values.sum(axis=1) + found.base_values
    assert_allclose(sums, joined(MODELS[name])[:3], atol=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_files_keep_every_field(name, tmp_path):
    model = MODELS[name]
    save_model(model, tmp_path / "model.gputree")
    text = export_json(model)
    for again in (load_model(tmp_path / "model.gputree"), read_json(text)):
        assert again.n_outputs_ == 2
        assert_array_equal(again.predict(X), model.predict(X))
        trees = [(again, model)]
        if "forest" in name:
            trees = list(zip(again.estimators_, model.estimators_, strict=True))
        assert all(one.tree_.equals(other.tree_) for one, other in trees)
        if hasattr(model, "classes_"):
            assert again.n_classes_ == model.n_classes_
            assert_array_equal(again.classes_[1], model.classes_[1])
    document = json.loads(text)
    assert document["format_version"] == 6
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(document, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"format_version": 5}, json_schema())


def damaged(document, *path_and_value):
    """A copy of a document with another value at a path."""
    document = json.loads(json.dumps(document))
    *path, key, value = path_and_value
    inner = document
    for name in path:
        inner = inner[name]
    inner[key] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("tree", "target_classes"), [2, 2]),
        (("tree", "target_classes"), [5]),
        (("tree", "target_classes"), ["2", 3]),
        (("tree", "target_classes"), [5, 0]),
        (("classes",), [{"array": ["no", "yes"], "dtype": "<U3"}]),
        (("params", "classes"), ["no", "yes"]),
    ],
)
def test_damaged_documents_are_refused(path, value):
    document = json.loads(export_json(MODELS["classes"]))
    with pytest.raises(ValueError, match="valid"):
        read_json(damaged(document, *path, value))


def test_an_algorithm_of_one_target_has_no_such_tree():
    document = json.loads(export_json(MODELS["classes"])) | {"params": {}}
    with pytest.raises(ValueError, match="ID3Classifier takes one target"):
        read_json(damaged(document, "algorithm", "ID3Classifier"))


def test_weights_of_each_target_add_up_to_the_node():
    tree = MODELS["classes"].tree_
    check_statistics(tree)
    for j in range(2):
        assert_allclose(tree.of_target(j).statistics.sum(axis=1), tree.weight)
    statistics = tree.statistics.copy()
    statistics[1, -1] += 1
    with pytest.raises(ValueError, match="statistics of node 1 does not add up to its weight"):
        check_statistics(replace(tree, statistics=statistics))
