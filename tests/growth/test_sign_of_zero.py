"""No field of a tree depends on which of the two zeros comes first."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.row_order import differing
from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier

VALUES = np.array([-2.0, -1.0, -5e-324, -0.0, -0.0, 0.0, 0.0, 5e-324, 1.0, 2.0, np.nan])

KINDS = {
    "cart": lambda: DecisionTreeClassifier(),
    "regression": lambda: DecisionTreeRegressor(),
    "data": lambda: C45Classifier(pruning=None, threshold_placement="data"),
    "soft": lambda: C45Classifier(pruning=None, threshold_placement="data", soft_thresholds=True),
    "pruned": lambda: C45Classifier(threshold_placement="data"),
    "id3": lambda: ID3Classifier(),
}


def test_by_hand():
    """Between the zeros, which are one value, and 1 the data hold 0."""
    X, y = np.array([[-0.0], [0.0], [1.0], [2.0], [-1.0], [-2.0]]), np.array([0, 0, 1, 1, 0, 0])
    for order in (slice(None), slice(None, None, -1)):
        tree = KINDS["data"]().fit(X[order], y[order]).tree_
        assert tree.threshold[0] == 0.0
        assert not np.signbit(tree.threshold[0])


@pytest.mark.parametrize("name", KINDS)
def test_any_order_of_rows(name):
    for seed in (2, 6, 29, *range(30, 40)):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 14))
        X, y = VALUES[rng.integers(0, VALUES.size, (n, 2))], rng.integers(0, 2, n)
        if name == "regression":
            y = VALUES[:-1][rng.integers(0, VALUES.size - 1, n)]
            y[0] = 7.0  # targets span enough
        model, order = KINDS[name](), rng.permutation(n)
        tree = model.fit(X, y).tree_
        assert differing(tree, model.fit(X[order], y[order]).tree_) == []
        signs = np.signbit(tree.threshold) & (tree.threshold == 0)
        assert not signs.any()


def test_labels():
    for y in ([-0.0, 0.0, 1.0], [0.0, -0.0, 1.0]):
        classes = DecisionTreeClassifier().fit(np.zeros((3, 1)), np.array(y)).classes_
        assert np.signbit(classes).tolist() == [False, False]
