"""Sparse matrices are taken as the dense arrays that they stand for."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

import gputree
from gputree import CodedTable
from gputree.base import memory
from gputree.export import explain, shap_values

FORMATS = ["coo", "csr", "csc", "bsr", "lil", "dok", "dia"]
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((60, 5)) < 0.3, RNG.integers(1, 4, (60, 5)), 0).astype(np.float32)
Y = (DENSE[:, 0] + DENSE[:, 1] > 1).astype(int)
ESTIMATORS = [
    gputree.DecisionTreeClassifier(random_state=0),
    gputree.DecisionTreeRegressor(pruning="cost_complexity_cv", random_state=0),
    gputree.C45Classifier(),
    gputree.ID3Classifier(),
    gputree.BoostedC45Classifier(n_trials=2),
    gputree.C45Rules(),
    gputree.BoostedC45Rules(n_trials=2),
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_fits_and_predictions_are_those_of_the_dense_table(estimator, kind):
    X = sparse.coo_array(DENSE).asformat(kind)
    expected = estimator.fit(DENSE, Y).predict(DENSE)
    assert get_tags(estimator).input_tags.sparse
    found = estimator.fit(X, Y)
    assert np.array_equal(found.predict(X), expected)
    assert np.array_equal(found.predict(DENSE), expected)
    assert found.score(X, Y) == found.score(DENSE, Y)
    if hasattr(found, "tree_"):
        assert found.tree_.equals(estimator.fit(DENSE, Y).tree_)


def test_matrices_of_older_code_are_taken():
    X = sparse.csr_matrix(DENSE)
    tree = gputree.DecisionTreeClassifier(random_state=0).fit(X, Y)
    assert np.array_equal(shap_values(tree, X[:3]).values, shap_values(tree, DENSE[:3]).values)
    assert explain(tree, X[:3]) == explain(tree, DENSE[:3])
    table = CodedTable(X)
    assert gputree.DecisionTreeClassifier(random_state=0).fit(table, Y).tree_.equals(tree.tree_)


def test_one_hot_encoding_in_a_pipeline():
    """The default of OneHotEncoder is sparse; a search takes parts of it."""
    frame = pd.DataFrame({"c": np.array(["a", "b", "c"])[RNG.integers(0, 3, 60)], "x": DENSE[:, 0]})
    y = (frame["c"] == "a") | (frame["x"] > 1)
    encoder = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough",
                                      sparse_threshold=1.0)  # fmt: skip
    assert sparse.issparse(encoder.fit_transform(frame))
    model = make_pipeline(encoder, gputree.DecisionTreeClassifier(random_state=0))
    assert model.fit(frame, y).score(frame, y) == 1.0
    grid = {"decisiontreeclassifier__max_depth": [1, 4]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(frame, y)
    assert search.best_params_ == {"decisiontreeclassifier__max_depth": 4}


def test_what_does_not_fit_is_told_with_its_size(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    X = sparse.random_array((1_000_000, 1_000), density=1e-7, format="csr", rng=0)
    tree = gputree.DecisionTreeClassifier()
    words = r"sparse X of shape \(1000000, 1000\) .* takes at least 7.45 GiB .* 1 GiB are available"
    with pytest.raises(MemoryError, match=words):
        tree.fit(X, np.zeros(1_000_000, int))
    assert not hasattr(tree, "tree_")
    fitted = tree.fit(sparse.csr_array((2, 1_000)), [0, 1])
    with pytest.raises(MemoryError, match=words):
        fitted.predict(X)
