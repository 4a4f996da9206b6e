"""Trees of a forest that a device grows together: those that the CPU grows, field by field."""

from dataclasses import fields

import numpy as np
import pytest
from cuda_emulator import launches
from devices import tune
from sklearn.base import clone
from tunings import finishing

from gputree import CodedTable, RandomForestClassifier, RandomForestRegressor
from gputree.backends.cuda.table import CudaTable
from gputree.estimators import cart

N_ROWS, MB = 450, 1 << 20  # so many that drawn ones are coded

rng = np.random.default_rng(11)
X = rng.normal(size=(N_ROWS, 6)).astype(np.float32)
X[:, 3] = X[:, 3].round(1)
X[:, 4] = rng.integers(0, 7, N_ROWS)
y = (X[:, 0] + X[:, 3] + rng.normal(size=N_ROWS) > 0) + 2 * (X[:, 4] > 4)
WITH_GAPS = np.where(rng.random(X.shape) < 0.1, np.nan, X)
WEIGHT = rng.random(N_ROWS) * rng.integers(0, 3, N_ROWS)

OF_CLASSES = RandomForestClassifier(5, random_state=3, max_bins=16)
OF_TARGETS = RandomForestRegressor(4, random_state=4, max_bins=16, max_features=2)
CASES = {
    "classes": (OF_CLASSES, {}, X),
    "missing values": (OF_CLASSES, {"criterion": "entropy"}, WITH_GAPS),
    "categories": (OF_CLASSES, {"categorical_features": [4], "max_depth": 4}, WITH_GAPS),
    "binned": (OF_CLASSES, {"splitter": "binned", "max_features": None}, X),
    "without draws": (OF_CLASSES, {"bootstrap": False}, X),
    "limits": (OF_CLASSES, {"min_samples_leaf": 4, "min_samples_split": 11, "max_depth": 5}, X),
    "weights of leaves": (
        OF_CLASSES, {"min_weight_fraction_leaf": 0.05, "min_impurity_decrease": 1e-3}, WITH_GAPS
    ),
    "few rows": (OF_CLASSES, {"max_samples": 0.3}, X),
    "balanced": (OF_CLASSES, {"class_weight": "balanced_subsample"}, X),
    "pruned": (OF_CLASSES, {"ccp_alpha": 0.01}, X),
    "groups": (OF_CLASSES, {"interaction_cst": [{0, 1, 2}, {2, 3, 4, 5}]}, X),
    "targets": (OF_TARGETS, {}, WITH_GAPS),
    "counts": (OF_TARGETS, {"criterion": "poisson", "min_samples_leaf": 3}, X),
}  # fmt: skip


@pytest.fixture
def together(cuda_device, monkeypatch):
    """Numbers of trees that were grown together; levels are split down to few rows."""
    numbers, grow = [], cart.grow_stacked_trees

    def noted(table, target, drawn, options):
        numbers.append(len(options))
        return grow(table, target, drawn, options)

    monkeypatch.setattr(cart, "grow_stacked_trees", noted)
    with finishing(20):
        yield numbers


def both(forest, table, target, weight=None):
    """Fit on the CPU and on the device."""
    return [
        clone(forest).set_params(device=device).fit(table, target, weight)
        for device in ("cpu", "cuda")
    ]


def assert_same_trees(expected, found):
    for one, other in zip(expected.estimators_, found.estimators_, strict=True):
        for field in fields(one.tree_):
            values = getattr(one.tree_, field.name), getattr(other.tree_, field.name)
            np.testing.assert_array_equal(*values, err_msg=field.name)


@pytest.mark.parametrize("case", CASES)
def test_trees_are_those_of_the_cpu(together, case):
    forest, options, table = CASES[case]
    target = np.where(y > 1, X[:, 0], 3.0) ** 2 if forest is OF_TARGETS else y
    assert_same_trees(*both(clone(forest).set_params(**options), table, target))
    assert together == [forest.n_estimators]


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("forest", [OF_CLASSES, OF_TARGETS], ids=["classes", "targets"])
def test_weights(together, forest, bootstrap):
    """Draw rows by weights, or sum these up; rows of weight zero take no part."""
    target = y if forest is OF_CLASSES else X[:, 1] * X[:, 0]
    assert_same_trees(*both(clone(forest).set_params(bootstrap=bootstrap), X, target, WEIGHT))
    assert together == [forest.n_estimators]


@pytest.mark.parametrize("splitter", ["exact", "binned"])
def test_limits_that_depend_on_other_nodes(together, splitter):
    """Compare the gains of leaves, and bound monotonic means, in each tree for itself."""
    for options in ({"max_leaf_nodes": 13}, {"monotonic_cst": [1, 0, 0, -1, 0, 0]}):
        forest = clone(OF_CLASSES).set_params(splitter=splitter, min_samples_leaf=3, **options)
        assert_same_trees(*both(forest, WITH_GAPS, y > 1))
    forest = clone(OF_TARGETS).set_params(max_leaf_nodes=9, monotonic_cst=[0, 0, 0, 1, 0, 0])
    assert_same_trees(*both(forest, X, X[:, 3] + X[:, 0]))
    assert together == [5, 5, 4]


@pytest.mark.parametrize(("most", "numbers"), [(1, []), (2, [2, 2]), (32, [5])])
def test_batches(together, monkeypatch, most, numbers):
    """Grow any number of trees at once; the last one may be alone."""
    tune(monkeypatch, "cuda", stacked_trees=most)
    assert_same_trees(*both(OF_CLASSES, X, y))
    assert together == numbers


@pytest.mark.usefixtures("together")
def test_levels_are_queued_for_all_trees():
    """A level of five trees takes the launches of one."""
    counts, names = [], ("histogram", "mark_sides", "node_statistics")
    for n_estimators in (1, 5):
        launches.clear()
        forest = clone(OF_CLASSES).set_params(n_estimators=n_estimators, max_depth=3)
        forest.set_params(device="cuda").fit(X, y)
        counts.append([launches[name] for name in names])
    assert counts == [[3, 3, 1], [3, 3, 1]]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
def test_further_trees_and_rows_out_of_the_bag(together):
    given = {"warm_start": True, "oob_score": True}
    forests = [clone(OF_CLASSES).set_params(device=device, **given) for device in ("cpu", "cuda")]
    for n_estimators in (3, 7):
        for forest in forests:
            forest.set_params(n_estimators=n_estimators).fit(X, y)
    assert_same_trees(*forests)
    assert forests[0].oob_score_ == forests[1].oob_score_
    assert together == [3, 4]


def test_rows_of_a_coded_table(together):
    """Rows of a table whose codes are on the device, but not all."""
    rows = np.flatnonzero(rng.random(N_ROWS) < 0.8)
    of_rows = (CodedTable(X, max_bins=16, device=device).take(rows) for device in ("cpu", "cuda"))
    forests = [clone(OF_CLASSES).fit(table, y[rows]) for table in of_rows]
    assert_same_trees(*forests)
    assert together == [5]


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (17 * MB, 2), (18 * MB, 17), (1 << 40, 32)])
def test_number_of_trees_within_memory(cuda_device, limit, most):
    """Half of the bytes that the table and 16 MB of work leave; 44 a row of a tree."""
    table = CudaTable(np.zeros((1000, 6), np.float32), np.zeros(6, np.bool_))
    bytes_left = limit - 16 * MB - 1000 * (8 + 24)
    assert table.stacked_trees(limit) == int(np.clip(bytes_left // 88_000, 1, 32))
    assert abs(table.stacked_trees(limit) - most) <= 10
