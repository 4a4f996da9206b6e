"""Scores, gains and bounds against their definitions, and the logarithm under them."""

import itertools
import math
import re
import typing
from importlib.resources import files

import numpy as np
import oracles
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numba import njit

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    criteria,
)
from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends.cuda import kernels
from gputree.backends.cuda.kernels import Variant
from gputree.check.cases import CASES
from gputree.criteria import (
    Entropy,
    Gini,
    ManyClassEntropy,
    Poisson,
    SquaredError,
    TwoClassGini,
    WideGini,
    dispatch,
    named,
    shared,
)
from gputree.criteria.named import new_criterion

compiled = njit(error_model="numpy")


@compiled
def log2(x):
    return criteria.log2(x)


@compiled
def score(criterion, left, total):
    return criteria.score(criterion, criteria.begin(criterion, left, total), left, total)


@compiled
def may_exceed(criterion, left, total, value):
    return criteria.may_exceed(
        criterion, criteria.begin(criterion, left, total), left, total, value
    )


@compiled
def score_by_moving(criterion, left, total, targets, weights):
    left = left.copy()
    state = criteria.begin(criterion, left, total)
    for i in range(targets.size):
        state = criteria.move(criterion, state, left, total, targets[i], weights[i])
    return criteria.score(criterion, state, left, total)


@compiled
def gain(criterion, value, total):
    return criteria.gain(criterion, value, total)


@compiled
def bound_and_margin(criterion, left, cells, total, best):
    return criteria.bound(criterion, left, cells, 0, total), criteria.margin(criterion, best, total)


@compiled
def is_pure(criterion, total):
    return criteria.is_pure(criterion, total)


CLASS_CRITERIA = pytest.mark.parametrize("kind", [Gini, WideGini, Entropy])
# Weights of a node's classes, far apart and up to the limit of exact squares.
WEIGHT = st.one_of(st.integers(0, 8), st.sampled_from([0, 0, 1000, 2**24 + 1, 2**28]))
UNIT = st.sampled_from([1.0, 2.0**-20, 4.0])


def ints(values):
    return np.array(values, np.int64)


# ------------------------------------------------------------------ logarithm
@given(st.integers(-1022, 1023))
def test_log2_of_powers_of_two_is_exact(exponent):
    assert log2(2.0**exponent) == exponent


@given(st.floats(np.finfo(np.float64).tiny, np.finfo(np.float64).max))
@example(1.0 + 2.0**-52)
@example(1.0 - 2.0**-53)
@example(math.sqrt(2.0))
@example(math.nextafter(math.sqrt(2.0), 2.0))
def test_log2_is_within_4_ulp(x):
    assert abs(log2(x) - math.log2(x)) <= 4.0 * np.spacing(abs(math.log2(x)))
    assert log2(x) == oracles.log2(x) == criteria.log2(x)


# ---------------------------------------------------------------- scores, gains
@CLASS_CRITERIA
@given(data=st.data())
def test_gain_is_the_decrease_of_impurity(kind, data):
    k = data.draw(st.integers(1, 6))
    left = ints(data.draw(st.lists(WEIGHT, min_size=k, max_size=k)))
    right = ints(data.draw(st.lists(WEIGHT, min_size=k, max_size=k)))
    assume(left.sum() and right.sum())
    criterion = kind(k, data.draw(UNIT))
    total = left + right
    value = score(criterion, left, total)
    assert value == oracles.scores(criterion, left, total)[0]
    share = left.sum() / total.sum()
    decrease = (
        oracles.impurity(criterion, total)
        - share * oracles.impurity(criterion, left)
        - (1.0 - share) * oracles.impurity(criterion, right)
    )
    assert gain(criterion, value, total) == oracles.gain(criterion, value, total)
    assert gain(criterion, value, total) == pytest.approx(decrease, abs=1e-13)
    assert is_pure(criterion, total) == ((total > 0).sum() < 2)


@given(
    st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(1, 9)), min_size=2, max_size=12),
    st.data(),
)
def test_gain_is_the_decrease_of_variance(rows, data):
    cut = data.draw(st.integers(1, len(rows) - 1))
    criterion = SquaredError(data.draw(st.sampled_from([1.0, 2.0**-30])), 1.0)
    total = ints([sum(w for _, w in rows), sum(t * w for t, w in rows), 0])
    left = ints([sum(w for _, w in rows[:cut]), sum(t * w for t, w in rows[:cut]), 0])
    parts = rows, rows[:cut], rows[cut:]
    variance = [oracles.impurity(criterion, tuple(zip(*part, strict=True))) for part in parts]
    share = left[0] / total[0]
    decrease = variance[0] - share * variance[1] - (1.0 - share) * variance[2]
    value = score(criterion, left, total)
    assert value == oracles.scores(criterion, left, total)[0]
    found = gain(criterion, value, total) / criterion.unit**2
    assert found == pytest.approx(decrease, rel=1e-9, abs=1e-12 * variance[0])


@CLASS_CRITERIA
@given(data=st.data())
def test_moving_rows_gives_the_score_of_starting_there(kind, data):
    k = data.draw(st.integers(1, 4))
    rows = st.tuples(st.integers(0, k - 1), st.integers(1, 2**20))
    moved, before, after = (data.draw(st.lists(rows, min_size=1, max_size=6)) for _ in range(3))
    criterion = kind(k, 1.0)

    def sums(part):
        return ints([sum(w for c, w in part if c == j) for j in range(k)])

    total = sums(before + moved + after)
    targets, weights = ints(moved).T
    by_moving = score_by_moving(criterion, sums(before), total, targets.copy(), weights.copy())
    assert by_moving == score(criterion, sums(before + moved), total)


@given(data=st.data())
def test_two_classes_row_by_row_score_as_any_two_do(data):
    rows = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 2**26)), min_size=1, max_size=6)
    moved, before, after = data.draw(rows), data.draw(rows), data.draw(rows)
    gini, total = Gini(2, 0.5), ints([0, 0])
    for c, weight in before + moved + after:
        total[c] += weight
    left = ints([sum(w for c, w in before if c == k) for k in range(2)])
    targets, weights = (column.copy() for column in ints(moved).T)
    two = criteria.row_by_row(gini)
    assert type(two) is TwoClassGini
    value = score_by_moving(two, left, total, targets, weights)
    assert value == score_by_moving(gini, left, total, targets, weights)
    assert gain(two, value, total) == gain(gini, value, total)


def test_other_criteria_are_row_by_row_as_they_are():
    for criterion in (Gini(3, 1.0), WideGini(2, 1.0), Entropy(2, 1.0), SquaredError(1.0, 1.0)):
        assert criteria.row_by_row(criterion) is criterion


@pytest.mark.parametrize(
    "kind", [Gini, TwoClassGini, WideGini, Entropy, SquaredError], ids=lambda kind: kind.__name__
)
@given(data=st.data())
def test_what_may_not_exceed_a_score_does_not(kind, data):
    """And scores that are clearly higher may: for the criteria that implement it."""
    amount = st.integers(1, 2**28)
    if kind is SquaredError:
        target = st.integers(-(2**20), 2**20)
        left = ints([data.draw(amount), data.draw(target), 0])
        criterion, total = kind(1.0, 1.0), left + ints([data.draw(amount), data.draw(target), 0])
    else:
        criterion = kind(2, 1.0)
        left = ints([data.draw(amount), data.draw(amount)])
        total = left + ints([data.draw(amount), data.draw(amount)])
    value = score(criterion, left, total)
    for other in (np.nextafter(value, -np.inf), value * (1 - 1e-15), -np.inf):
        assert may_exceed(criterion, left, total, other) or not value > other
    if kind not in (WideGini, Entropy):
        assert not may_exceed(criterion, left, total, abs(value) * (1 + 1e-9) + 1e-300)


# ---------------------------------------------------------------------- bounds
def bound_holds(criterion, left, bin_statistics, total, inside):
    """Return True if scores of `inside` exceed the bound by less than 1/100 of the margin."""
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.nanmax(oracles.scores(criterion, inside, total))
    bound, margin = bound_and_margin(criterion, left, bin_statistics, total, best)
    assert np.isfinite(bound)
    assert margin >= 0
    return bound >= best - 0.01 * margin


@CLASS_CRITERIA
@given(data=st.data())
def test_bound_of_every_cut_inside_a_bin(kind, data):
    """Every class count that a part of the bin can have; first, last and only bins too."""
    k = data.draw(st.integers(1, 4))
    counts = st.lists(st.integers(0, 4), min_size=k, max_size=k)
    outside = st.one_of(st.just([0] * k), st.lists(WEIGHT, min_size=k, max_size=k))
    heavy = data.draw(st.sampled_from([1, 3, 2**20]))
    cells = ints(data.draw(counts)) * heavy
    assume(cells.sum() > heavy)
    left, right = ints(data.draw(outside)), ints(data.draw(outside))
    total = left + cells + right
    parts = ints(list(itertools.product(*(range(c // heavy + 1) for c in cells)))) * heavy
    proper = (parts.sum(axis=1) > 0) & (parts.sum(axis=1) < cells.sum())
    assert bound_holds(kind(k, data.draw(UNIT)), left, cells, total, left + parts[proper])


@CLASS_CRITERIA
@pytest.mark.parametrize("beside", [(0, 0), (3, 0), (0, 1)])
def test_bound_of_a_bin_beside_nothing(kind, beside):
    """A side may be empty: nothing is divided by its weight."""
    cells, other = ints([2, 3]), ints(beside)
    parts = ints([[a, b] for a in range(3) for b in range(4) if 0 < a + b < 5])
    for left in (other, 0 * other):
        assert bound_holds(kind(2, 1.0), left, cells, cells + other, left + parts)


TARGETS = st.one_of(st.integers(-3, 3), st.integers(-(2**40), 2**40), st.integers(2**40, 2**40 + 3))


@given(
    st.lists(st.tuples(TARGETS, st.integers(1, 5)), min_size=2, max_size=8),
    st.lists(st.tuples(TARGETS, st.integers(1, 5)), max_size=4),
    st.lists(st.tuples(TARGETS, st.integers(1, 5)), max_size=4),
    st.sampled_from([1.0, 2.0**10]),
)
def test_bound_of_every_subset_of_targets_inside_a_bin(rows, before, after, square_unit):
    def sums(part):
        squares = sum(w * t * t for t, w in part)
        in_units = math.floor(squares / square_unit / 2**30)
        return ints([sum(w for _, w in part), sum(w * t for t, w in part), in_units])

    left, cells, right = sums(before), sums(rows), sums(after)
    subsets = [
        sums([row for row, chosen in zip(rows, mask, strict=True) if chosen])
        for mask in itertools.product([False, True], repeat=len(rows))
    ][1:-1]
    criterion = SquaredError(1.0, square_unit * 2.0**30)
    total = left + cells + right
    assert bound_holds(criterion, left, cells, total, left + ints(subsets))


@CLASS_CRITERIA
def test_bound_of_a_dull_bin_is_low(kind):
    """A narrow bin cannot promise much more than its own ends: else everything is refined."""
    criterion = kind(2, 1.0)
    left, cells, total = ints([5000, 3000]), ints([10, 10]), ints([10000, 10000])
    ends = oracles.scores(criterion, ints([left, left + cells]), total)
    separated = oracles.scores(criterion, left + ints([[10, 0], [0, 10]]), total).max()
    bound, margin = bound_and_margin(criterion, left, cells, total, separated)
    assert ends.max() < separated <= bound + margin
    assert bound - ends.max() < 1.5 * (separated - ends.max())


def test_bound_of_equal_targets_is_met_at_the_ends_of_the_bin():
    """Equal targets within a bin: no part of it deviates, and the score is monotone."""
    criterion = SquaredError(1.0, 1.0)
    left, cells, total = ints([50, 0, 0]), ints([10, 2e4, 4e7]), ints([100, 1e5, 1e9])  # fine units
    ends = oracles.scores(criterion, ints([left, left + cells]), total)
    bound, _ = bound_and_margin(criterion, left, cells, total, 1.0)
    assert ends.max() <= bound < 1.5 * ends.max()


@pytest.mark.parametrize(
    "criterion",
    [
        *(kind(k, 1.0) for kind in (Gini, WideGini, Entropy) for k in (3, 12)),
        TwoClassGini(2, 1.0),
        ManyClassEntropy(5, 1.0, 2.0**20),
        SquaredError(1.0, 1.0),
        Poisson(1.0, 1.0),
    ],
    ids=repr,
)
def test_a_cell_moves_as_its_rows_do(criterion):
    """A cell behind another one, some of whose classes have no weight."""
    rng = np.random.default_rng(0)
    k = getattr(criterion, "n_classes", 3)
    for _ in range(20):
        left, cells, right = rng.integers(0, 4, (3, k)) + ints([[1], [0], [1]])
        total = left + cells + right
        moved = left.copy()
        state = criteria.begin(criterion, left, total)
        both = np.concatenate([right, cells])
        state = criteria.move_cell(criterion, state, moved, total, both, k)
        expected = criteria.begin(criterion, left + cells, total)
        assert state == expected
        scores = [
            criteria.score(criterion, *at)
            for at in ((state, moved, total), (expected, left + cells, total))
        ]
        assert scores[0] == scores[1]


# -------------------------------------------------------------------- registry
@pytest.mark.parametrize("kind", named.FORMS)
def test_every_criterion_has_every_formula_on_both_sides(kind):
    """A missing formula is found here, before a kernel needs it."""
    stubs = [name for name, value in vars(dispatch).items() if hasattr(value, "__wrapped__")]
    assert {"begin", "move", "score", "bound", "gain"} <= set(stubs)
    assert [name for name in stubs if kind not in dispatch._formulas[name]] == []
    assert Variant(kind, False, 64).macros[0].startswith("-D")


def test_a_criterion_in_a_separate_file_takes_shared_formulas():
    class Another(typing.NamedTuple):
        n_classes: int
        unit: float

    dispatch.share(Another, *shared.CLASS_FORMULAS)
    assert dispatch.is_shared(dispatch.begin, Another, shared.weights_begin)
    assert not dispatch.is_shared(dispatch.begin, Gini, shared.weights_begin)
    left, total = np.array([1, 2]), np.array([4, 4])
    assert dispatch.begin(Another(2, 1.0), left, total) == (3, 5)


def test_every_name_has_its_forms():
    """Every form is reached by a name; names are those that estimators accept."""
    weights = [fix_weights(w, 2) for w in (None, np.array([1.0, 2.0**40]))]
    y = np.array([0.5, 3.0])
    of_classes = {
        type(new_criterion(name, k, w, None))
        for name in named.OF_CLASSES
        for k in (2, 1000)
        for w in weights
    }
    of_targets = {
        type(new_criterion(name, 0, w, named.fix(name, y, w)))
        for name in named.OF_TARGETS
        for w in weights
    }
    assert of_targets == named.TARGET_FORMS
    assert of_classes | of_targets == set(named.FORMS)
    for kind, task in (
        (DecisionTreeClassifier, "classification"),
        (DecisionTreeRegressor, "regression"),
    ):
        (allowed,) = kind._parameter_constraints["criterion"]
        assert set(named.CRITERIA[task]) == allowed.options - {"log_loss"}
    with pytest.raises(ValueError, match=r"classification must be one of .* got 'poisson'"):
        named.class_impurity("poisson", np.ones((1, 2)))


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        (DecisionTreeClassifier, "classification"),
        (RandomForestClassifier, "classification"),
        (ExtraTreesClassifier, "classification"),
        (DecisionTreeRegressor, "regression"),
        (RandomForestRegressor, "regression"),
        (ExtraTreesRegressor, "regression"),
    ],
)
def test_what_is_written_out_names_every_criterion(kind, task):
    """Types and texts cannot be made of the table of names."""
    names = set(named.CRITERIA[task])
    hint = typing.get_type_hints(kind.__init__)["criterion"]
    assert set(typing.get_args(hint)) - {"log_loss"} == names
    (line,) = re.findall(r"^ *criterion : (.*), default", kind.__doc__, re.MULTILINE)
    assert set(re.findall(r'"(\w+)"', line)) - {"log_loss"} == names


def test_devices_are_checked_by_every_criterion():
    used = {
        kind(**case.parameters).criterion
        for case in CASES
        if (kind := case.estimator) in (DecisionTreeClassifier, DecisionTreeRegressor)
    }
    assert used == named.OVER_HISTOGRAMS.keys()  # the others are grown on the CPU only


def test_every_form_is_selected_in_the_headers_of_kernels():
    folder = files("gputree.backends.cuda")
    text = "".join((folder / name).read_text("utf-8") for name in kernels.CRITERIA)
    found = re.findall(r"^#(?:ifdef|elif defined|if defined)\b.*", text, re.MULTILINE)
    macros = {macro for line in found for macro in re.findall(r"[A-Z_]{3,}", line)}
    assert {kernels.macro(form) for form in named.FORMS} <= macros
