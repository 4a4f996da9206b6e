"""Entropy over many classes: sums of x log2 x in fixed point."""

import numpy as np
import pytest

from gputree import DecisionTreeClassifier
from gputree.criteria import ENTROPY_BITS, entropy_scale, named, node_entropies


def test_scale_leaves_room_for_every_table():
    for total in (1, 2, 3, 1000, 2**31, 2**50):
        for unit in (2.0**-90, 2.0**-50, 0.5, 1.0, 2.0**60):
            scale = entropy_scale(total, unit)
            assert np.frexp(scale)[0] == 0.5
            largest = total * unit * max(abs(np.log2(total * unit)), abs(np.log2(unit)), 1.0)
            assert 2.0 ** (ENTROPY_BITS - 5) <= largest * scale <= 2.0**ENTROPY_BITS


def test_node_entropies():
    weights = np.array([[1, 1, 0, 2], [5, 0, 0, 0], [3, 3, 3, 3]])
    np.testing.assert_allclose(node_entropies(weights), [1.5, 0.0, 2.0], atol=1e-15)


@pytest.mark.full
@pytest.mark.parametrize("weighted", [False, True])
def test_same_tree_as_in_floating_point(monkeypatch, weighted):
    """The two differ by rounding alone, so only ties could set them apart."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 3))
    y = (X[:, 0] * 8 + rng.normal(size=1500) * 4).astype(int)
    weight = rng.uniform(0.5, 2.0, 1500) if weighted else None
    model = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=20)
    floating = model.fit(X, y, weight).tree_
    monkeypatch.setattr(named, "MANY_CLASSES", 1)
    fixed = model.fit(X, y, weight).tree_
    np.testing.assert_array_equal(fixed.feature, floating.feature)
    np.testing.assert_array_equal(fixed.threshold, floating.threshold)
    np.testing.assert_allclose(fixed.gain, floating.gain, rtol=1e-9, atol=1e-12)


@pytest.mark.full
def test_as_many_classes_as_rows():
    n = 50_000
    X = np.random.default_rng(0).permutation(n)[:, None].astype(float)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=2).fit(X, np.arange(n)).tree_
    # every cut of distinct labels is worth its split information: the middle one most
    assert sorted(tree.threshold[:3]) == [12499.5, 24999.5, 37499.5]
    assert tree.impurity[0] == pytest.approx(np.log2(n))


@pytest.mark.parametrize("exponent", [-40, 40])
def test_scale_of_weights_does_not_matter(exponent):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2))
    y = rng.integers(0, 300, 3000)
    weight = rng.integers(1, 5, 3000).astype(float)
    model = DecisionTreeClassifier(criterion="entropy", max_depth=3)
    tree = model.fit(X, y, weight).tree_
    scaled = model.fit(X, y, np.ldexp(weight, exponent)).tree_
    np.testing.assert_array_equal(scaled.feature, tree.feature)
    np.testing.assert_array_equal(scaled.threshold, tree.threshold)
    np.testing.assert_allclose(scaled.gain, tree.gain, rtol=1e-9)
