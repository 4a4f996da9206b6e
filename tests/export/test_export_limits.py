"""What formats cannot represent: an error, or another name; never other answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.export import export_lightgbm, to_onnx

onnxruntime = pytest.importorskip("onnxruntime")

INNER = ["matrix", "found", "place", "leaf", "code of t", "flat", "shares", "labels", "answers"]


@pytest.fixture(scope="module")
def trees():
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
    """The truth is that of the table, which these trees have learned by heart."""
    table, *both = trees
    for model, truth in both:
        for names in (["t", name], [name, f"{name}_"]):
            session = onnxruntime.InferenceSession(
                to_onnx(model, feature_names=names).SerializeToString()
            )
            cells = {
                names[0]: table[["t"]].to_numpy(object), names[1]: table[["x"]].to_numpy(float),
            }  # fmt: skip
            assert session.run(None, cells)[0].tolist() == truth.tolist()


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
