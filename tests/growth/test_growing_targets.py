"""Trees of several targets: those of one given twice, of all cuts, and of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy
from sklearn import tree as sklearn_tree

import gputree
from gputree import CodedTable, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.cpu.ranked import bounds, class_sums, grower, lists, sums
from gputree.base import memory
from gputree.compilation import kernel
from gputree.compilation.tiers import forced
from gputree.criteria import multi_output
from gputree.criteria.named import CRITERIA
from gputree.estimators.growing import grow_tree
from gputree.estimators.growing_ranked import grow_targets

GINI, ENTROPY = CRITERIA["classification"][:2]
EVERY = ["squared_error", "poisson", GINI, ENTROPY]
GROUPS = {"interaction_cst": [[0, 1], [1, 2]]}
LIMITS = [
    {}, {"max_depth": 3}, {"min_samples_leaf": 5}, {"min_weight_fraction_leaf": 0.1},
    {"max_leaf_nodes": 9}, {"max_features": 2, "random_state": 3}, GROUPS,
]  # fmt: skip


def options_of(X, classes=(), **parameters):
    """A table of X, and options of growth on it."""
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    model = kind(device="cpu", **{"n_jobs": 1, **parameters})
    table = model._learn_table(X)
    options = model._options(*table.shape, "cpu")
    return table, options._replace(target_classes=classes, n_classes=sum(classes))


def grow(X, Y, classes=(), weight=None, counted=256, **parameters):
    """The tree of the columns of Y: of class codes, where numbers of classes are given.

    Columns of up to `counted` values are counted, others have lists.
    """
    table, options = options_of(X, classes, **parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grower, "MOST_COUNTED", counted)
        return grow_targets(table, Y, weight, options).tree


def as_taken(Y, criterion):
    """Targets that a criterion of numbers takes."""
    return np.abs(Y) if criterion == "poisson" else Y


def grow_one(X, y, classes=0, weight=None, **parameters):
    """The tree of one target."""
    table, options = options_of(X, (classes,) if classes else (), **parameters)
    return grow_tree(table, y, weight, options._replace(target_classes=())).tree


def mixed_table(seed, n=60):
    """Columns with ties and missing values, one of them of categories, and weights or None."""
    r = np.random.default_rng(seed)
    X = pd.DataFrame(np.round(r.normal(size=(n, 3)) * r.choice([1, 3, 100])), columns=list("xyz"))
    X[r.random(X.shape) < r.choice([0.0, 0.2])] = np.nan
    X["c"] = pd.Categorical(r.choice(list("abcdef"), n))
    weights = [None, r.integers(0, 4, n) + 0.0, np.exp(r.normal(size=n))]
    weight = weights[int(r.integers(3))]
    if weight is not None:
        weight[:2] = 1.0
    return X, weight, r


def without_subsets(X, limits):
    """Leave out categories where one target has more subsets than those along an order."""
    return X.drop(columns="c") if any("_leaf" in name for name in limits) else X


def assert_same(a, b, but=()):
    for name, value in vars(a).items():
        if isinstance(value, np.ndarray) and name not in but:
            np.testing.assert_array_equal(value, getattr(b, name), err_msg=name)


@given(st.integers(0, 10**6), st.sampled_from(LIMITS), st.sampled_from(EVERY[:2]))
def test_a_target_given_twice_or_four_times_grows_the_tree_of_one(seed, limits, criterion):
    X, weight, r = mixed_table(seed)
    X = without_subsets(X, limits)
    y = r.choice([r.normal(size=60), r.integers(0, 3, 60) + 0.0, np.exp(3 * r.normal(size=60))])
    y, given = as_taken(y, criterion), {"weight": weight, "criterion": criterion, **limits}
    one = grow_one(X, y, categorical_split="ordered", **given)
    for k in (2, 4):
        several = grow(X, np.stack([y] * k, axis=1), **given)
        assert_same(one, several, but=("statistics",))
        np.testing.assert_array_equal(several.statistics, one.statistics.repeat(k, axis=1))


@given(st.integers(0, 10**6), st.sampled_from(LIMITS), st.sampled_from([GINI, ENTROPY]))
def test_classes_given_twice_grow_the_tree_of_one(seed, limits, criterion):
    X, weight, r = mixed_table(seed)
    n_classes = int(r.integers(2, 5))
    y = r.integers(0, n_classes, 60)
    # of more than two, categories of one target are searched otherwise
    X = X.drop(columns="c") if n_classes > 2 else without_subsets(X, limits)
    given = {"weight": weight, "criterion": criterion, **limits}
    one = grow_one(X, y, n_classes, categorical_split="ordered", **given)
    for k in (2, 4):
        several = grow(X, np.stack([y] * k, axis=1), (n_classes,) * k, **given)
        assert_same(one, several, but=("statistics",))
        np.testing.assert_array_equal(several.statistics, np.tile(one.statistics, k))


@pytest.mark.parametrize("criterion", EVERY)
def test_a_constant_target_halves_the_impurities_of_the_other(criterion):
    X, weight, r = mixed_table(11)
    n_classes = 0 if criterion in EVERY[:2] else 2
    y = r.integers(0, 2, 60) if n_classes else as_taken(r.normal(size=60), criterion)
    one = grow_one(X, y, n_classes, weight, criterion=criterion, categorical_split="ordered")
    constant = np.ones_like(y) if criterion == "poisson" else np.zeros_like(y)
    Y = np.stack([constant, y], axis=1)
    classes = (1, n_classes) if n_classes else ()
    two = grow(X, Y, classes, weight, criterion=criterion)
    assert_same(one, two, but=("statistics", "impurity", "gain"))
    np.testing.assert_array_equal(two.impurity, one.impurity / 2)
    np.testing.assert_allclose(two.gain, one.gain / 2, rtol=1e-12)


def impurity_of(Y, weight, classes, criterion):
    """Mean over targets of the impurity of some rows."""
    found = []
    for j, y in enumerate(Y.T):
        if not classes:
            mean = np.average(y, weights=weight)
            if criterion == "poisson":
                found.append(np.average(xlogy(y, y / mean), weights=weight))
                continue
            found.append(np.average((y - mean) ** 2, weights=weight))
            continue
        p = np.bincount(y, weight, classes[j]) / weight.sum()
        p = p[p > 0]
        found.append(1 - (p**2).sum() if criterion == GINI else -(p * np.log2(p)).sum())
    return np.mean(found)


def best_gain(x, rows, *of_rows):
    """The largest decrease of impurity by a cut of a column x, in all of its rows."""
    Y, weight, classes, criterion = of_rows
    whole = impurity_of(Y[rows], weight[rows], classes, criterion)
    missing, most = np.isnan(x[rows]), -np.inf
    for value in np.unique(x[rows][~missing]):
        for with_missing in {False, bool(missing.any())}:
            is_left = (x[rows] <= value) | (missing & with_missing)
            sides = rows[is_left], rows[~is_left]
            if all(side.size for side in sides):
                below = sum(
                    weight[side].sum() * impurity_of(Y[side], weight[side], classes, criterion)
                    for side in sides
                )
                most = max(most, whole - below / weight[rows].sum())
    return most


@given(
    st.integers(0, 10**6),
    st.sampled_from(EVERY),
    st.sampled_from(LIMITS),
)
def test_counted_columns_are_cut_as_their_lists_are(seed, criterion, limits):
    X, weight, r = mixed_table(seed)
    X["s"] = np.round(r.normal(size=60))
    X["m"] = np.nan
    classes = () if criterion in EVERY[:2] else (2, 3, 1)
    Y = r.integers(0, classes, (60, 3)) if classes else np.round(r.normal(size=(60, 3)) * [1, 5, 9])
    Y = Y if classes else as_taken(Y, criterion)
    given = {"weight": weight, "criterion": criterion, **limits}
    found = grow(X, Y, classes, **given)
    assert_same(found, grow(X, Y, classes, counted=int(r.choice([0, 12])), **given))


@given(st.integers(0, 10**6), st.sampled_from(EVERY))
def test_every_node_has_the_best_of_all_cuts(seed, criterion):
    """Targets of different scales, and of two, three and one class."""
    X, weight, r = mixed_table(seed, 20)
    X = X.drop(columns="c")
    classes = () if criterion in EVERY[:2] else (2, 3, 1)
    Y = (
        r.integers(0, classes, (20, 3))
        if classes
        else as_taken(r.normal(size=(20, 3)) * [1, 10, 0.1], criterion)
    )
    tree = grow(X, Y, classes, weight, criterion=criterion, max_depth=3)
    weight = np.ones(20) if weight is None else weight
    x, rows_of = X.to_numpy(np.float64), [np.flatnonzero(weight)]
    for node in range(tree.n_nodes):
        rows = rows_of[node]
        of_rows = Y, weight, classes, criterion
        impurity = impurity_of(Y[rows], weight[rows], classes, criterion)
        np.testing.assert_allclose(tree.impurity[node], impurity, atol=1e-9)
        assert tree.n_rows[node] == rows.size
        best = max(best_gain(x[:, f], rows, *of_rows) for f in range(3))
        if tree.is_leaf[node]:
            assert tree.depth[node] == 3 or best == -np.inf or np.ptp(Y[rows], axis=0).max() == 0
            continue
        np.testing.assert_allclose(tree.gain[node], best, rtol=1e-7, atol=1e-9)
        known = x[rows, tree.feature[node]]
        left = np.where(
            np.isnan(known), tree.missing_child[node] == 0, known <= tree.threshold[node]
        )
        rows_of += [rows[left], rows[~left]]


@given(st.integers(0, 10**6), st.sampled_from(EVERY))
def test_bounds_exclude_no_cut_that_is_chosen(seed, criterion):
    """Against a search that scores all cuts; scales and outliers strain the sums of the bounds."""
    X, weight, r = mixed_table(seed)
    classes = () if criterion in EVERY[:2] else (2, 3, 5)
    Y = as_taken(r.normal(size=(60, 3)) * [1e-9, 1, 1e6], criterion) * np.exp(
        5 * r.normal(size=(60, 1))
    )
    if classes:
        Y = r.integers(0, classes, (60, 3))
    given = {"criterion": criterion, "counted": 0}
    found = grow(X, Y, classes, weight, **given)
    with pytest.MonkeyPatch.context() as patch, forced("never"):
        patch.setattr(sums, "needed_bound", lambda opened, best, least: 0.0)
        assert_same(found, grow(X, Y, classes, weight, **given))


@given(
    st.integers(0, 10**6),
    st.sampled_from(EVERY),
    st.sampled_from([{}, GROUPS]),
)
def test_neither_threads_nor_levels_nor_the_order_of_rows_change_the_tree(seed, criterion, limits):
    X, weight, r = mixed_table(seed)
    classes = () if criterion in EVERY[:2] else (2, 3)
    Y = r.integers(0, classes, (60, 2)) if classes else as_taken(r.normal(size=(60, 2)), criterion)
    found = grow(X, Y, classes, weight, criterion=criterion, **limits)
    order = r.permutation(60)
    weight_moved = None if weight is None else weight[order]
    moved = X.iloc[order], Y[order], classes, weight_moved
    assert_same(found, grow(*moved, criterion=criterion, **limits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grower, "FEWEST_SHARED", 1)
        patch.setattr(grower, "MOST_WHOLE", 1)
        patch.setattr(grower, "MOST_SECONDS", 0.0)
        for n_jobs, counted in ((1, 0), (2, 256)):
            given = {"n_jobs": n_jobs, "counted": counted, **limits}
            assert_same(found, grow(X, Y, classes, weight, criterion=criterion, **given))


@pytest.mark.parametrize("criterion", EVERY)
@pytest.mark.parametrize(
    "limits", [{"max_depth": 4}, {"min_impurity_decrease": 0.003}, {"max_leaf_nodes": 12}]
)
def test_trees_are_those_of_scikit_learn_where_no_cuts_are_tied(criterion, limits):
    """Continuous columns in float32, as it reads them, and weights without equal sums."""
    r = np.random.default_rng(0)
    X = r.normal(size=(400, 5)).astype(np.float32)
    classes = () if criterion in EVERY[:2] else (2, 3, 2)
    Y = (
        r.integers(0, classes, (400, 3))
        if classes
        else as_taken(r.normal(size=(400, 3)) * [1, 2, 3], criterion)
    )
    weight = r.uniform(0.1, 2.0, 400)
    kind = sklearn_tree.DecisionTreeClassifier if classes else sklearn_tree.DecisionTreeRegressor
    limits = {"min_samples_leaf": 8, **limits}
    theirs = kind(criterion=criterion, random_state=0, **limits).fit(X, Y, weight).tree_
    ours = grow(X, Y, classes, weight, criterion=criterion, **limits)
    pairs = [(0, 0)]
    for a, b in pairs:
        assert ours.n_rows[a] == theirs.n_node_samples[b]
        np.testing.assert_allclose(ours.weight[a], theirs.weighted_n_node_samples[b])
        np.testing.assert_allclose(ours.impurity[a], theirs.impurity[b], atol=1e-12)
        np.testing.assert_allclose(ours.value[a], theirs.value[b], atol=1e-12)
        assert ours.is_leaf[a] == (theirs.children_left[b] < 0)
        if not ours.is_leaf[a]:
            assert ours.feature[a] == theirs.feature[b]
            np.testing.assert_allclose(ours.threshold[a], theirs.threshold[b], rtol=1e-6)
            child = ours.first_child[a]
            pairs += [(child, theirs.children_left[b]), (child + 1, theirs.children_right[b])]
    assert len(pairs) == ours.n_nodes > 10


@pytest.mark.full  # `.ci/run` runs the first each time, with the oldest versions or the newest
@pytest.mark.parametrize("criterion", ["squared_error", GINI, ENTROPY])
def test_compiled_sweeps_grow_the_interpreted_trees(criterion):
    X, weight, r = mixed_table(3)
    classes = () if criterion in EVERY[:2] else (2, 3)
    Y = r.integers(0, classes, (60, 2)) if classes else as_taken(r.normal(size=(60, 2)), criterion)
    found = grow(X, Y, classes, weight, criterion=criterion)
    with forced("always"):
        assert_same(found, grow(X, Y, classes, weight, criterion=criterion, counted=12))


def test_squares_of_large_totals_are_taken_in_floats(monkeypatch):
    X, _, r = mixed_table(5)
    Y = r.integers(0, 2, (60, 2))
    found = grow(X, Y, (2, 2))
    monkeypatch.setattr(multi_output, "SQUARE_BITS", 0)
    wide = grow(X, Y, (2, 2))
    assert_same(found, wide, but=("gain",))
    np.testing.assert_allclose(found.gain, wide.gain, atol=1e-12)


def test_categories_are_ordered_along_the_direction_in_which_their_means_differ():
    """The second target, of the larger scale, decides; by the first they would be in reverse."""
    X = pd.DataFrame({"c": pd.Categorical(list("abcd") * 5)})
    y = np.tile([0.0, 1.0, 2.0, 9.0], 5)
    tree = grow(X, np.stack([-y, 10 * y], axis=1), max_depth=1)
    assert [tree.categories(t).tolist() for t in (1, 2)] == [[0, 1, 2], [3]]


@pytest.mark.parametrize("ending", ["Classifier", "Regressor"])
def test_a_table_in_batches_grows_the_trees_of_the_table(ending):
    X, _, r = mixed_table(8)
    X["few"] = r.integers(0, 3, 60)
    Y = r.normal(size=(60, 2)) if ending == "Regressor" else r.integers(0, 3, (60, 2))
    spans = [slice(0, 25), slice(25, 31), slice(31, 60)]
    table = CodedTable.from_batches([(X[rows], Y[rows]) for rows in spans], device="cpu")
    kinds = {"DecisionTree": {"max_depth": 4}, "RandomForest": {"n_estimators": 2}}
    for kind, parameters in kinds.items():
        fits = [
            getattr(gputree, kind + ending)(random_state=0, **parameters).fit(*rows)
            for rows in ((X, Y), (table, table.target))
        ]
        trees = [[tree.tree_ for tree in getattr(fit, "estimators_", [fit])] for fit in fits]
        assert all(a.equals(b) for a, b in zip(*trees, strict=True))
        np.testing.assert_array_equal(fits[1].predict(table), fits[0].predict(X))
        assert fits[1].score(table, Y) == pytest.approx(fits[0].score(X, Y))


def weighted_groups(seed):
    """Means of groups whose first principal direction is far from the second, and weights."""
    r = np.random.default_rng(seed)
    m, k = int(r.integers(2, 9)), int(r.integers(2, 6))
    axes = np.linalg.qr(r.normal(size=(k, k)))[0]
    along = r.permutation(m) + r.uniform(0, 0.5, m)
    noise = 0.02 * r.normal(size=(m, k))
    return along[:, None] * axes[0] + noise + r.normal(size=k), r.uniform(0.5, 2.0, m)


@given(st.integers(0, 10**6))
def test_groups_are_projected_on_the_first_principal_direction(seed):
    """Against the eigenvector of the weighted covariance, scaled to 1 in its last component."""
    means, weights = weighted_groups(seed)
    centred = means - np.average(means, axis=0, weights=weights)
    first = np.linalg.eigh(centred.T @ (weights[:, None] * centred))[1][:, -1]
    if abs(first[-1]) < 1e-3:
        return
    expected = centred @ (first / first[-1])
    found = class_sums.project(means, weights)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_projections_of_equal_means_and_along_the_axes():
    """No direction gives places of 0; a last component of 0 is passed over."""
    ones = np.ones(3)
    np.testing.assert_array_equal(class_sums.project(np.full((3, 2), 7.0), ones), np.zeros(3))
    means = np.array([[1.0, 5.0], [3.0, 5.0], [-4.0, 5.0]])
    np.testing.assert_array_equal(class_sums.project(means, ones), [1.0, 3.0, -4.0])
    np.testing.assert_array_equal(class_sums.project(-means[:, ::-1], ones), [-1.0, -3.0, 4.0])
    heavy = class_sums.project(means, np.array([6.0, 1.0, 1.0]))
    np.testing.assert_allclose(heavy, means[:, 0] - 5 / 8)


@pytest.mark.parametrize("classes", [(), (2, 3)])
def test_paths_have_the_columns_of_one_set(classes):
    """Columns in no set are one, too."""
    r = np.random.default_rng(1)
    X = r.normal(size=(80, 4))
    Y = X[:, [0, 2]] + X[:, [1, 3]] + r.normal(size=(80, 2))
    Y = np.stack([Y[:, 0] > 0, np.digitize(Y[:, 1], [-1, 1])], axis=1) if classes else Y
    tree = grow(X, Y, classes, interaction_cst=[{0, 1}, {1, 2}])
    above = [frozenset() for _ in range(tree.n_nodes)]
    for node in np.flatnonzero(~tree.is_leaf):
        first = tree.first_child[node]
        above[first] = above[first + 1] = above[node] | {int(tree.feature[node])}
    assert all(any(columns <= group for group in ({0, 1}, {1, 2}, {3})) for columns in above)
    assert max(map(len, above)) == 2


@pytest.mark.parametrize("counted", [0, 256])
def test_no_side_of_a_cut_lacks_events_of_a_target(counted):
    """The best cut of the first target alone would leave one without: in counts, and in lists."""
    X = np.arange(12.0)[:, None]
    Y = np.stack([np.repeat([0.0, 3.0], 6), np.ones(12)], axis=1)
    tree = grow(X, Y, criterion="poisson", max_depth=1, counted=counted)
    assert tree.threshold[0] == 6.5
    assert (tree.statistics > 0).all()


@pytest.mark.parametrize("criterion", EVERY)
def test_bounds_exclude_no_cut_of_many_rows(criterion):
    """The column that decides is the last, after one whose cuts gain nearly as much."""
    r = np.random.default_rng(4)
    X = r.normal(size=(300, 3))
    X[:, 1] = X[:, 2] + 0.3 * X[:, 1]
    Y = np.exp(X[:, [2, 2]] * [1, -1] + 0.3 * r.normal(size=(300, 2)))
    classes = () if criterion in EVERY[:2] else (2, 2)
    tree = grow(X, (Y > 1).astype(int) if classes else Y, classes, criterion=criterion, max_depth=1)
    assert tree.feature[0] == 2


def test_labels_of_several_kinds_stay_what_they_are():
    X, flags, numbers = np.arange(4.0)[:, None], [False, True, False, True], [2, 2, 3, 3]
    frame = pd.DataFrame({"flag": flags, "number": numbers, "text": list("aabb")})
    for names in (["flag", "number"], ["text", "flag"], ["number", "text", "flag"]):
        for y in (frame[names], frame[names].to_numpy(), frame[names].to_numpy().tolist()):
            predicted = DecisionTreeClassifier().fit(X, y).predict(X)
            expected = frame[names].to_numpy().tolist()
            assert [list(map(repr, row)) for row in predicted.tolist()] == [
                list(map(repr, row)) for row in expected
            ]
    with pytest.raises(ValueError, match=r"^y: Expected unique column names, .*'flag' 2 times"):
        DecisionTreeClassifier().fit(X, frame[["flag", "flag"]])


def test_a_coarse_target_or_weight_is_named():
    X = np.arange(60.0)[:, None]
    y = np.sin(X[:, 0])
    with pytest.warns(UserWarning, match="Targets of column 1 range from"):
        grow(X, np.stack([y, np.where(X[:, 0] == 7, 1e20, y)], axis=1))
    weight = np.where(X[:, 0] == 7, 1e20, 1.0 + y**2)
    for Y, classes in ((np.stack([y, -y], axis=1), ()), (np.zeros((60, 2), int), (1, 1))):
        with pytest.warns(UserWarning, match="Sample weights reach up to"):
            grow(X, Y, classes, weight)


@pytest.mark.parametrize("classes", [(), (2, 3)])
def test_memory_for_all_targets_is_required_before_it_is_taken(monkeypatch, classes):
    """Three arrays of integers for each, one that is partitioned, and deviations."""
    monkeypatch.setattr(memory, "NEGLIGIBLE", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 5000)
    with pytest.raises(MemoryError, match=r"a tree of 300 rows by 2 targets .* rows or targets"):
        grow(np.eye(300, 1), np.zeros((300, 2), int if classes else float), classes)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"splitter": "binned"}, "splitter='binned'"),
        ({"categorical_split": "exhaustive"}, "categorical_split='exhaustive'"),
    ],
)
def test_what_several_targets_do_not_take_is_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        grow(np.eye(4), np.ones((4, 2)), **parameters)


@pytest.mark.parametrize("mode", ["always", "never"])
def test_squares_of_sums_of_deviations(mode):
    """Sums in 1, 2 or 4 registers, against one by one; missing ones first, equal values uncut."""

    def checked(k, n_missing):
        r = np.random.default_rng(k)
        width = bounds.padded(k)
        deviation = np.zeros((40, width), np.float32)
        deviation[:, :k] = r.normal(size=(40, k))
        elements = r.permutation(40).astype(np.int32)
        tied = r.random(40) < 0.3
        elements[tied] |= lists.TIED
        square = np.full(40, np.nan)
        squares(elements, -n_missing, 40 - n_missing, deviation, square)
        order = np.roll(elements & lists.RANK, n_missing)
        expected = (deviation[order].astype(np.float64).cumsum(axis=0) ** 2).sum(axis=1)
        is_cut = np.arange(40) >= n_missing
        is_cut[:-1] &= np.roll(elements, n_missing)[1:] >= 0
        is_cut[-1] = True
        np.testing.assert_allclose(square, np.where(is_cut, expected, 0.0), rtol=1e-12, atol=1e-12)

    with forced(mode):
        for k in (1, 4, 5, 8, 9, 16, 17, 20, 25, 33):
            checked(k, 0)
            checked(k, 7)


@kernel
def squares(elements, first, known, deviation, square):
    bounds.squares_of_cuts(elements, first, known, deviation, square)
