"""`laplace=True`: class proportions smoothed by one more row of each class."""

import numpy as np
import pytest
from entropy_tree_oracle import C45, collapse
from hypothesis import given
from mixed_tables import random_mixed_tables

from gputree import C45Classifier, export_json, read_json
from gputree.datasets import load_golf
from gputree.export import export_python, shap_values


@given(random_mixed_tables())
def test_leaves_answer_as_the_oracles_do(table):
    """Every node has one more row of each class; those without rows have their parent's."""
    given_ = {"categorical_features": table.nominal, "pruning": None, "device": "cpu"}
    model = C45Classifier(laplace=True, **given_).fit(table.X, table.y, table.weight)
    columns, k = model.columns_, len(model.classes_)
    values = columns.encode(table.X).astype(float)
    oracle = C45(columns.nominal, columns.n_categories, k)
    root = oracle.grow(values, np.searchsorted(model.classes_, table.y), table.weight)
    collapse(root)

    def shares(node, row, prior=None):
        share = (node.weights + 1) / (node.total + k) if node.total > 0 else prior
        if not node.children:
            return share
        value, below = row[node.feature], node.children
        if np.isnan(value):
            sizes = np.array([child.total for child in below])
            return sizes / sizes.sum() @ [shares(child, row, share) for child in below]
        nominal = columns.nominal[node.feature]
        return shares(below[int(value) if nominal else int(value > node.threshold)], row, share)

    expected = [shares(root, row) for row in values]
    np.testing.assert_allclose(model.predict_proba(table.X), expected, rtol=0, atol=1e-6)


@given(random_mixed_tables(60))
def test_the_tree_is_the_same(table):
    trees = [
        C45Classifier(laplace=laplace, categorical_features=table.nominal, device="cpu")
        .fit(table.X, table.y, table.weight)
        .tree_
        for laplace in (False, True)
    ]
    np.testing.assert_array_equal(trees[0].feature, trees[1].feature)
    np.testing.assert_array_equal(trees[0].statistics, trees[1].statistics)
    assert [tree.smoothing for tree in trees] == [0.0, 1.0]


def model() -> C45Classifier:
    golf = load_golf()
    return C45Classifier(laplace=True, pruning=None).fit(golf.data, golf.target)


@pytest.mark.parametrize("smoothing", ['"1"', "-1", "true", '{"float": "nan"}'])
def test_documents_with_no_such_smoothing(smoothing):
    text = export_json(model()).replace('"smoothing": 1.0', f'"smoothing": {smoothing}')
    with pytest.raises(ValueError, match="smoothing"):
        read_json(text)


def test_formats_answer_with_it():
    fitted, X = model(), load_golf().data
    space: dict = {}
    exec(export_python(fitted), space)
    found = [space["predict_proba"](row) for row in X.tolist()]
    np.testing.assert_array_equal(found, fitted.predict_proba(X))
    assert (np.array(found) > 0).all()
    values = shap_values(fitted, X[:3])
    total = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(total, fitted.predict_proba(X[:3]), atol=1e-12)
