"""Entropy over many classes: sums of x log2 x in fixed point."""

import numpy as np
import pytest

from gputree import DecisionTreeClassifier
from gputree.criteria import ENTROPY_BITS, entropy_scale, node_entropies
from gputree.estimators import growing


def test_scale_leaves_room_for_every_table():
    for total in (1, 2, 3, 1e3, 2.0**31, 2.0**50):
        scale = entropy_scale(total)
        assert np.log2(scale) % 1 == 0
        assert total * max(np.log2(total), 1.0) * scale <= 2.0**ENTROPY_BITS


def test_node_entropies():
    weights = np.array([[1, 1, 0, 2], [5, 0, 0, 0], [3, 3, 3, 3]])
    np.testing.assert_allclose(node_entropies(weights), [1.5, 0.0, 2.0], atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_same_tree_as_in_floating_point(monkeypatch, weighted):
    """The two differ by rounding alone, so only ties could set them apart."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 3))
    y = (X[:, 0] * 8 + rng.normal(size=1500) * 4).astype(int)
    weight = rng.uniform(0.5, 2.0, 1500) if weighted else None
    model = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=20)
    floating = model.fit(X, y, weight).tree_
    monkeypatch.setattr(growing, "MANY_CLASSES", 1)
    fixed = model.fit(X, y, weight).tree_
    np.testing.assert_array_equal(fixed.feature, floating.feature)
    np.testing.assert_array_equal(fixed.threshold, floating.threshold)
    np.testing.assert_allclose(fixed.gain, floating.gain, rtol=1e-9, atol=1e-12)


def test_as_many_classes_as_rows():
    n = 50_000
    X = np.random.default_rng(0).permutation(n)[:, None].astype(float)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=2).fit(X, np.arange(n)).tree_
    # every cut of distinct labels is worth its split information: the middle one most
    assert sorted(tree.threshold[:3]) == [12499.5, 24999.5, 37499.5]
    assert tree.impurity[0] == pytest.approx(np.log2(n))
