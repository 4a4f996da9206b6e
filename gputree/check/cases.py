"""Small tables that use every kernel of every backend, and the trees that are grown on them.

Nodes of more than about 256 rows are split by histograms, smaller ones are built as one subtree, so
that a few hundred rows suffice for both; cases that need more rows say why. Some tables are in
parts, each of which a device counts, as on a cluster.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.devices import to_host
from gputree.backends.sharded.rows import Read, join_measures, measure
from gputree.backends.sharded.tasks import Here, Tasks
from gputree.base.dtypes import Floats, Int64s, Values, Weight
from gputree.criteria.named import OF_CLASSES, OVER_HISTOGRAMS
from gputree.estimators import C45Classifier, ID3Classifier
from gputree.estimators import DecisionTreeClassifier as Classifier
from gputree.estimators import DecisionTreeRegressor as Regressor
from gputree.estimators.base import with_weight
from gputree.estimators.growing_parts import Rowsets, grow_parts
from gputree.inputs.tables import Table
from gputree.tree import Tree


class InParts(Classifier):
    """Estimator that grows over two parts of the table, counted by the device."""

    def _grow_tree(self, table: Table, target: NDArray, weight: Weight, n: int) -> Tree:
        table, target, weight = with_weight(table, target, weight)
        values, columns = to_host(table.values), table.columns
        parts = [
            Read(values[part], target[part], None if weight is None else weight[part])
            for part in (slice(0, n // 3), slice(n // 3, n))
        ]
        found = join_measures([measure(part, columns.nominal) for part in parts])
        options = self._options(n, values.shape[1], "cpu")
        rowsets = Rowsets(parts, columns, values.dtype, found)
        return grow_parts(Tasks(Here()), rowsets, options, lambda: self.device).tree


SEED = 20_231


class CaseTable(NamedTuple):
    """Rows to grow a tree on; NaN where missing, codes in columns of categories."""

    X: Values
    y: NDArray[Any]
    weight: Weight = None


class Case(NamedTuple):
    """A table, and an estimator to grow on it."""

    name: str
    estimator: type
    parameters: dict[str, Any]  # of the estimator, besides the device and the number of threads
    table: Callable[[], CaseTable]  # makes the table
    resident: bool = False  # the table is on the device before growth


def numbers(
    n: int, d: int, n_classes: int, dtype: type[np.floating] = np.float64, weighted: bool = False
) -> CaseTable:
    """Columns of numbers with ties and missing values; `n_classes` classes, or targets where 0."""
    rng = np.random.default_rng(SEED + n + d + n_classes)
    X = rng.normal(size=(n, d))
    X[:, 1::3] = np.round(X[:, 1::3], 1)
    signal = X[:, 0] * X[:, 1] + np.abs(X[:, d - 1]) + 0.3 * rng.normal(size=n)
    X[rng.random((n, d)) < 0.06] = np.nan
    y = _classes(signal, n_classes) if n_classes else signal
    return CaseTable(X.astype(dtype), y, _weights(rng, n) if weighted else None)


def noise(n: int, d: int) -> CaseTable:
    """Columns of numbers that are independent of the two classes, with missing values."""
    rng = np.random.default_rng(SEED + n + d)
    X = rng.normal(size=(n, d))
    X[rng.random((n, d)) < 0.01] = np.nan
    return CaseTable(X, rng.integers(0, 2, n), None)


def separated(n: int) -> CaseTable:
    """Two columns of numbers with missing values; the first nearly gives the two classes."""
    table = numbers(n, 2, 2)
    wrong = np.random.default_rng(SEED + n).random(n) < 0.05
    return table._replace(y=((table.X[:, 0] > 0.3) ^ wrong).astype(np.int64))


def mixed(n: int, n_classes: int, weighted: bool = False) -> CaseTable:
    """Columns 0 and 1 of numbers, 2 to 4 of few, many and two categories, with missing values."""
    rng = np.random.default_rng(SEED + n + n_classes)
    columns = [rng.normal(size=n), np.round(rng.normal(size=n), 1)]
    columns += [np.floor(count * rng.random(n) ** 2) for count in (7, 60, 2)]
    X = np.stack(columns, axis=1)
    signal = np.sin(2 * X[:, 0]) + X[:, 2] % 3 + X[:, 3] % 5 / 4 + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = _classes(signal, n_classes) if n_classes else signal
    return CaseTable(X, y, _weights(rng, n) if weighted else None)


def words(n: int) -> CaseTable:
    """Columns of few and 300 categories, and a numeric one; two classes, with missing values."""
    rng = np.random.default_rng(SEED + n)
    X = np.stack([np.floor(count * rng.random(n) ** 2) for count in (7, 300, 50)], axis=1)
    y = (X[:, 1] % 7 < 3) ^ (rng.random(n) < 0.2)
    X[rng.random(X.shape) < 0.05] = np.nan
    return CaseTable(X, y)


def counted(table: CaseTable) -> CaseTable:
    """The table with non-negative targets, many of them equal."""
    return table._replace(y=np.floor(np.exp(table.y / 2)))


def _classes(signal: Floats, n_classes: int) -> Int64s:
    return np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)


def _weights(rng: np.random.Generator, n: int) -> Floats:
    return rng.choice([0.25, 1.0, 1.5, 3.1], n)


MIXED = {"categorical_features": [2, 3, 4]}
C45 = {**MIXED, "pruning": None, "collapse": False}

CASES = [
    Case("gini, missing values, exact", Classifier, {"max_bins": 16}, lambda: numbers(900, 6, 3)),
    Case(
        "gini, a table on the device, built as one subtree",
        Classifier,
        {"min_samples_leaf": 2},
        lambda: numbers(900, 5, 2),
        resident=True,
    ),
    Case(
        "gini, weights, float32, best first",
        Classifier,
        {"max_bins": 16, "max_leaf_nodes": 40},
        lambda: numbers(900, 6, 3, np.float32, weighted=True),
    ),
    Case(  # of more values than are sampled to fit bins
        "gini, binned, 70,000 rows",
        Classifier,
        {"splitter": "binned", "max_bins": 32, "max_depth": 3},
        lambda: numbers(70_000, 2, 2),
    ),
    Case(  # enough pairs in candidate bins to be counted into sub-bins
        "gini, noise, exact, 24,000 rows",
        Classifier,
        {"max_bins": 32, "max_depth": 1},
        lambda: noise(24_000, 4),
    ),
    Case(  # bins of more rows than a warp sorts
        "gini, few bins, exact, 5,000 rows",
        Classifier,
        {"max_bins": 2, "max_depth": 1},
        lambda: numbers(5_000, 2, 2),
    ),
    Case(  # such bins of one column, whose rows are listed while they are counted
        "gini, a column that separates, exact, 5,000 rows",
        Classifier,
        {"max_bins": 4, "max_depth": 1},
        lambda: separated(5_000),
    ),
    Case(
        "entropy, drawn columns",
        Classifier,
        {"criterion": "entropy", "max_bins": 16, "max_features": 2, "random_state": 0},
        lambda: numbers(900, 6, 4),
    ),
    Case(  # histograms exceed shared memory; with fewer rows the root would be a small node
        "entropy, 100 classes, weights, float32",
        Classifier,
        {"criterion": "entropy", "max_bins": 16, "max_depth": 2},
        lambda: numbers(5_200, 4, 100, np.float32, weighted=True),
    ),
    Case(
        "regression, missing values, exact", Regressor, {"max_bins": 16}, lambda: numbers(900, 6, 0)
    ),
    Case(
        "regression, weights, float32, binned",
        Regressor,
        {"splitter": "binned", "max_bins": 16, "min_samples_leaf": 3},
        lambda: numbers(900, 6, 0, np.float32, weighted=True),
    ),
    Case(
        "Poisson, missing values, exact",
        Regressor,
        {"criterion": "poisson", "max_bins": 16},
        lambda: counted(numbers(900, 6, 0)),
    ),
    Case(
        "gini, monotonic, missing values",
        Classifier,
        {"max_bins": 16, "monotonic_cst": [1, 0, 0, -1, 0, 1]},
        lambda: numbers(900, 6, 2),
    ),
    Case(
        "regression, monotonic, weights, float32",
        Regressor,
        {"max_bins": 16, "monotonic_cst": [-1, 1, 0, 0, 0, 1]},
        lambda: numbers(900, 6, 0, np.float32, weighted=True),
    ),
    Case(
        "gini, interaction constraints, categories, drawn columns",
        Classifier,
        {
            **MIXED,
            "max_bins": 16,
            "max_features": 2,
            "random_state": 0,
            "interaction_cst": [[0, 2], [1, 3, 4], [0, 4]],
        },
        lambda: mixed(600, 3),
    ),
    Case(
        "categories, Poisson, weights",
        Regressor,
        {**MIXED, "criterion": "poisson", "max_depth": 8},
        lambda: counted(mixed(600, 0, weighted=True)),
    ),
    Case("categories, gini", Classifier, {**MIXED, "max_depth": 8}, lambda: mixed(600, 3)),
    Case(  # with one level below it the root is not small: few categories, and more than bins
        "categories, gini, words",
        Classifier,
        {"categorical_features": [0, 1], "max_bins": 16, "max_depth": 1},
        lambda: words(1_200),
    ),
    Case(  # statistics that workers of a cluster count
        "gini, words, in two parts",
        InParts,
        {"categorical_features": [0, 1], "max_bins": 16, "max_depth": 2},
        lambda: words(1_200),
    ),
    Case(
        "categories, entropy, weights",
        Classifier,
        {**MIXED, "criterion": "entropy", "categorical_split": "one_vs_rest", "max_depth": 8},
        lambda: mixed(600, 2, weighted=True),
    ),
    Case(
        "categories, regression",
        Regressor,
        {**MIXED, "max_depth": 8},
        lambda: mixed(600, 0, weighted=True),
    ),
    Case(  # long lists are walked by many warps
        "C4.5, missing values, 9,000 rows",
        C45Classifier,
        {**C45, "max_depth": 4, "min_samples_leaf": 20},
        lambda: mixed(9_000, 3),
    ),
    Case(
        "C4.5, weights, fractions of rows", C45Classifier, C45, lambda: mixed(500, 3, weighted=True)
    ),
    Case("ID3", ID3Classifier, {}, lambda: mixed(300, 3)),
]


def _case_of(criterion: str) -> Case:
    """A case of a criterion that has none in `CASES`: each has separate formulas for a device."""
    has_classes = criterion in OF_CLASSES
    return Case(
        f"{criterion}, missing values, exact",
        Classifier if has_classes else Regressor,
        {"criterion": criterion, "max_bins": 16},
        lambda: numbers(900, 6, 3) if has_classes else counted(numbers(900, 6, 0)),
    )


_CHECKED = {"gini", "squared_error", *(case.parameters.get("criterion") for case in CASES)}
CASES += [_case_of(name) for name in OVER_HISTOGRAMS if name not in _CHECKED]
