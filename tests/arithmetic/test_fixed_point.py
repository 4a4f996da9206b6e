"""Weights and targets in fixed point."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gputree import DecisionTreeClassifier
from gputree.arithmetic.fixed_point import (
    EXACT_WEIGHT_BITS,
    REST_BITS,
    SUM_BITS,
    WEIGHT_BITS,
    Weights,
    counted,
    fix_counts,
    fix_targets,
    fix_weights,
    power_of_two,
)
from gputree.criteria import ENTROPY_BITS, entropy_scale, named, node_entropies
from gputree.criteria.named import fix, fix_drawn

WEIGHTS = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=40)
TARGETS = st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40)


def is_power_of_two(x):
    return np.frexp(x)[0] == 0.5


@given(st.floats(1e-300, 1e300))
def test_power_of_two(x):
    assert is_power_of_two(power_of_two(x))
    assert power_of_two(x) / 2 < x <= power_of_two(x)


# --------------------------------------------------------------------- weights
def test_equal_weights_are_none_at_all():
    assert fix_weights(None, 7) == (None, 1.0, 1.0, 7)
    assert fix_weights(np.full(7, 0.3), 7) == (None, 1.0, 0.3, 7)


@given(WEIGHTS)
def test_weights_are_near(weight):
    assume(len(set(weight)) > 1)
    weight = np.array(weight)
    fixed = fix_weights(weight, weight.size)
    assert is_power_of_two(fixed.unit)
    assert fixed.scale == 1.0
    assert fixed.total == fixed.weight.sum() <= 2**WEIGHT_BITS
    assert (fixed.weight >= 1).all()
    bound = power_of_two(weight.max()) * power_of_two(weight.size) * 2.0**-WEIGHT_BITS
    error = np.abs(fixed.weight * fixed.unit - weight)
    assert (error <= np.maximum(0.5 * bound, bound - weight)).all()


@given(st.lists(st.integers(0, 12), min_size=2, max_size=40))
def test_counts_are_units_up_to_a_power_of_two(counts):
    """The same weights in float64 have the same units, with rows of weight zero or without."""
    counts = np.array(counts, np.int32)
    drawn = np.flatnonzero(counts)
    assume(drawn.size)
    entries, found = fix_counts(counts)
    assert (entries is None) == (drawn.size == counts.size)
    np.testing.assert_array_equal(drawn if entries is None else entries, drawn)
    for weight in (counts.astype(float), counts[drawn].astype(float)):
        same = fix_weights(weight, drawn.size)
        assert same[1:] == found[1:]
        assert (same.weight is None) == (found.weight is None)
        if found.weight is not None:
            fixed = found.weight if weight.size == counts.size else found.weight[drawn]
            np.testing.assert_array_equal(same.weight, fixed)


@given(st.data(), st.sampled_from(["squared_error", "poisson"]))
def test_targets_of_some_trees_are_fixed_as_those_of_each(data, criterion):
    """In the rows that a tree has drawn; others may lie outside of its range."""
    n, trees = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    y = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=n, max_size=n)))
    one = st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)
    counts = np.array(data.draw(st.lists(one, min_size=trees, max_size=trees)), np.int32)
    entries, weight, found = counted(counts)
    np.testing.assert_array_equal(entries, np.nonzero(counts)[1])
    fixed = fix_drawn(criterion, y, weight, found[:, 1])
    for t, drawn in enumerate(counts):
        rows = np.flatnonzero(drawn)
        weights = Weights(drawn[rows].astype(np.int64), 1.0, 1.0, int(drawn.sum()))
        alone = fix(criterion, y[rows], weights)
        for name in ("target", "square", "square_rest"):
            of_tree = getattr(fixed, name)[t, rows]
            np.testing.assert_array_equal(of_tree, getattr(alone, name))
        for name in ("centre", "unit", "square_unit", "reach"):
            assert getattr(fixed, name)[t] == getattr(alone, name)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=40), st.integers(-200, 200))
def test_dyadic_weights_are_exact_and_short(weight, exponent):
    assume(len(set(weight)) > 1)
    fixed = fix_weights(np.array(weight) * 2.0**exponent, len(weight))
    assert (fixed.weight * fixed.unit == np.array(weight) * 2.0**exponent).all()
    assert (fixed.weight & 1).any()  # no unit that divides them all is greater
    plain = fix_weights(np.array(weight) * 1.0, len(weight))
    assert (plain.weight == fixed.weight).all()
    assert plain.unit * 2.0**exponent == fixed.unit


@given(WEIGHTS, TARGETS, st.randoms(use_true_random=False))
def test_units_do_not_depend_on_the_order_of_rows(weight, y, random):
    n = min(len(weight), len(y))
    weight, y = np.array(weight[:n]), np.array(y[:n])
    order = np.array(random.sample(range(n), n))
    one, other = fix_weights(weight, n), fix_weights(weight[order], n)
    assert one[1:] == other[1:]
    a, b = fix_targets(y, one), fix_targets(y[order], other)
    assert a[3:] == b[3:]
    for i in range(3):
        assert (a[i][order] == b[i]).all()


# --------------------------------------------------------------------- targets
def exact_sum(y, weight, centre, power):
    return sum(
        Fraction(float(w)) * (Fraction(float(v)) - Fraction(centre)) ** power
        for v, w in zip(y, weight, strict=True)
    )


@given(TARGETS, st.one_of(st.none(), WEIGHTS))
def test_sums_of_targets_are_near(y, weight):
    n = len(y) if weight is None else min(len(y), len(weight))
    y = np.array(y[:n])
    assume(np.ptp(y) > 1e-100)
    weights = fix_weights(None if weight is None else np.array(weight[:n]), n)
    plain = np.ones(n) if weights.weight is None else weights.weight
    fixed = fix_targets(y, weights)
    reach = power_of_two(max(y.max() - fixed.centre, fixed.centre - y.min()))
    whole = float(plain.sum())
    assert abs(fixed.target).sum() <= 2**SUM_BITS
    assert fixed.square.sum() <= 2**SUM_BITS
    assert ((fixed.square_rest >= 0) & (fixed.square_rest <= 2**REST_BITS)).all()
    total = Fraction(int(fixed.target.sum())) * Fraction(fixed.unit)
    error = abs(total - exact_sum(y, plain, fixed.centre, 1))
    assert error <= whole * reach * (2.0**-52 + 2.0**-59 * n)
    squares = int(fixed.square.sum()) + Fraction(int(fixed.square_rest.sum()), 2**REST_BITS)
    error = abs(squares * Fraction(fixed.square_unit) - exact_sum(y, plain, fixed.centre, 2))
    assert error <= whole * reach * reach * 2.0**-49


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30), st.data())
def test_integer_targets_are_exact(y, data):
    weight = data.draw(st.lists(st.integers(1, 64), min_size=len(y), max_size=len(y)))
    assume(len(set(y)) > 1)
    weights = fix_weights(np.array(weight, float), len(y))
    assert weights.total < 2**EXACT_WEIGHT_BITS
    y = np.array(y, float)
    fixed = fix_targets(y, weights)
    plain = np.ones(y.size) if weights.weight is None else weights.weight
    assert (fixed.target * fixed.unit == plain * (y - fixed.centre)).all()


@pytest.mark.parametrize("y", [[0.0] * 2, [7.25] * 3, [1e300] * 2, [0.0, 5e-324], [0.0, 1e-200]])
def test_targets_without_a_range(y):
    """Units stay usable where there is nothing to measure."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        fixed = fix_targets(np.array(y), fix_weights(None, len(y)))
        assert np.isfinite(fixed.square_unit / fixed.unit**2)
    assert fixed.centre == pytest.approx(y[0])
    assert (fixed.square == 0).all()
    assert not fixed.rounded
    assert (fixed.target == 0).all()


def test_light_weights_beside_a_heavy_one_keep_their_digits():
    """Units are as fine as the total allows, not the largest weight times the rows."""
    weight = np.full(100_000, 1e-9)
    weight[::2] = 1.3e-9
    weight[0] = 1.0
    fixed = fix_weights(weight, weight.size)
    relative = fixed.weight * fixed.unit / weight
    assert np.abs(relative - 1).max() < 1e-5
    assert 2**48 < fixed.total <= 2**50


# ------------------------------------------------------------------------ entropy over many classes
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
