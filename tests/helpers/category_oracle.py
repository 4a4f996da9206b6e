"""Trees of CART with categories against brute force over all subsets, on small tables full of ties.

Nothing here is shared with what it checks but the public estimators: impurities are written
out from their definitions, subsets are listed one by one. Every node of every tree is held to

leaf            it splits where any split is admissible
subset          no admissible subset that its setting promises gains more
limits          both children are as large as the limits require, and have events where the deviance
                is Poisson's; cuts of numbers are in the order and within the bounds of signs, which
                do not bind subsets
gain            the gain it states is that of its rows
absent          a category it has no rows of goes as missing values do there
renaming        exchanging the names of categories changes nothing but the names, unless
                categories of the very same statistics change places. Where no column has more
                than two, they are grown as the numbers 0 and 1: there, the other order may
                exchange children, and choose between equals
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from gputree import DecisionTreeClassifier, DecisionTreeRegressor

CRITERIA = ("gini", "entropy", "squared_error", "poisson")
OF_TARGETS = CRITERIA[2:]
SPLITS = ("auto", "exhaustive", "ordered", "one_vs_rest")
TARGETS = np.array([-1.5, 0.0, 0.25, 1.0, 2.0, 7.0])
EVENTS = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 0.25, 7.0])
WEIGHTS = np.array([0.25, 1.0, 1.0, 1.5, 3.0, 0.0])
TOLERANCE = 1e-9  # of gains, relative to the node's impurity


class Case(NamedTuple):
    """A table, and how its tree is grown."""

    X: np.ndarray  # (n, d) float64: codes in nominal columns, NaN where missing
    nominal: np.ndarray  # (d,) bool
    y: np.ndarray
    weight: np.ndarray | None
    criterion: str
    parameters: dict[str, Any]

    @property
    def weights(self) -> np.ndarray:
        return np.ones(self.y.size) if self.weight is None else self.weight

    @property
    def of_targets(self) -> bool:
        return self.criterion in OF_TARGETS

    @property
    def signs(self) -> np.ndarray:
        return np.array(self.parameters.get("monotonic_cst", np.zeros(self.nominal.size, int)))

    @property
    def used(self) -> Case:
        """Rows of a weight above zero: others take no part."""
        if self.weight is None:
            return self
        rows = self.weight > 0
        return self._replace(X=self.X[rows], y=self.y[rows], weight=self.weight[rows])

    @property
    def nominal_columns(self) -> np.ndarray:
        return self.X.T[self.nominal]

    def model(self, **parameters: Any) -> Any:
        kind = DecisionTreeRegressor if self.of_targets else DecisionTreeClassifier
        return kind(
            criterion=self.criterion,
            categorical_features=self.nominal,
            **{"device": "cpu", **self.parameters, **parameters},
        )

    def fit(self, **parameters: Any) -> Any:
        return self.model(**parameters).fit(self.X, self.y, self.weight)


class Violation(NamedTuple):
    """A rule that a node violates."""

    kind: str
    node: int
    detail: str


# --------------------------------------------------------------------------------- tables
def draw_case(seed: int, categories: int = 8) -> Case:
    """A small table of 2 to 8 categories a column, and limits that often bind."""
    rng = np.random.default_rng(seed)
    criterion = str(rng.choice(CRITERIA))
    n = int(rng.choice([6, 10, 16, 25, 40, 120], p=[0.1, 0.2, 0.25, 0.25, 0.15, 0.05]))
    d = int(rng.integers(1, 4))
    nominal = rng.random(d) < 0.8
    nominal[rng.integers(d)] = True
    X = np.stack([_column(rng, n, categories) for _ in nominal], axis=1)
    X[rng.random((n, d)) < rng.choice([0.0, 0.1, 0.4], d, p=[0.6, 0.25, 0.15])] = np.nan
    if criterion == "squared_error":
        y = rng.choice(TARGETS[: rng.integers(2, 7)], n)
    elif criterion == "poisson":
        y = rng.choice(EVENTS[: rng.integers(4, 8)], n)
        y[0] = 1.0  # some must not be zero
    else:
        y = rng.integers(0, rng.choice([2, 2, 3, 4]), n)
    weight = rng.choice(WEIGHTS, n) if rng.random() < 0.35 else None
    if weight is not None:
        weight[:2] = 1.0
    parameters = _parameters(rng, n)
    if rng.random() < 0.5 and (criterion in OF_TARGETS or np.unique(y).size == 2):
        parameters["monotonic_cst"] = np.where(nominal, 0, rng.integers(-1, 2, d)).tolist()
    return Case(X, nominal, y, weight, criterion, parameters)


def _column(rng: np.random.Generator, n: int, categories: int) -> np.ndarray:
    number = int(rng.integers(2, categories + 1))
    shares = rng.dirichlet(np.full(number, rng.choice([0.5, 5.0])))
    return rng.choice(number, n, p=shares).astype(float)


def _parameters(rng: np.random.Generator, n: int) -> dict[str, Any]:
    parameters: dict[str, Any] = {"categorical_split": str(rng.choice(SPLITS))}
    if rng.random() < 0.7:
        parameters["min_samples_leaf"] = int(rng.integers(1, rng.choice([4, n // 2 + 2])))
    if rng.random() < 0.2:
        parameters["min_weight_fraction_leaf"] = float(rng.uniform(0.0, 0.5))
    if rng.random() < 0.2:
        parameters["min_impurity_decrease"] = float(rng.uniform(0.0, 0.1))
    if rng.random() < 0.5:
        parameters["max_depth"] = int(rng.choice([1, 1, 2]))
    return parameters


def rename(case: Case, rng: np.random.Generator) -> Case:
    """The same table, categories of every column in another order."""
    X = case.X.copy()
    for f in np.flatnonzero(case.nominal):
        known = ~np.isnan(X[:, f])
        values, code = np.unique(X[known, f], return_inverse=True)
        X[known, f] = rng.permutation(values)[code]
    return case._replace(X=X)


# ----------------------------------------------------------------------------- definitions
def statistics_of(case: Case) -> np.ndarray:
    """Statistics of each row: its number, weight, and class weights or target and its term."""
    weight, one = case.weights, np.ones(case.y.size)
    if case.of_targets:
        term = case.y**2 if case.criterion == "squared_error" else xlogy(case.y, case.y)
        return np.stack([one, weight, weight * case.y, weight * term], axis=1)
    classes = case.y[:, None] == np.unique(case.y)
    return np.concatenate([one[:, None], weight[:, None], weight[:, None] * classes], axis=1)


def impurity(criterion: str, sums: np.ndarray) -> np.ndarray:
    """Weight times impurity, of sums of statistics along the last axis."""
    weight = np.where(sums[..., 1] > 0, sums[..., 1], 1.0)
    if criterion == "squared_error":
        return sums[..., 3] - sums[..., 2] ** 2 / weight
    if criterion == "poisson":
        return sums[..., 3] - xlogy(sums[..., 2], sums[..., 2] / weight)
    share = sums[..., 2:] / weight[..., None]
    if criterion == "gini":
        return weight * (1.0 - (share**2).sum(axis=-1))
    return -weight * (share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=-1)


def gains(criterion: str, left: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Decrease of impurity, times weight, by sending each of `left` one way."""
    return (
        impurity(criterion, total) - impurity(criterion, left) - impurity(criterion, total - left)
    )


def is_admissible(case: Case, left: np.ndarray, total: np.ndarray) -> np.ndarray:
    """True where both sides have the rows, the weight and the events that they must."""
    least = max(case.parameters.get("min_samples_leaf", 1), 1)
    fraction = case.parameters.get("min_weight_fraction_leaf", 0.0)
    least_weight = fraction * case.weights.sum()
    right = total - left
    enough = (left[..., 0] >= least) & (right[..., 0] >= least)
    if case.criterion == "poisson":
        enough &= (left[..., 2] > 0) & (right[..., 2] > 0)
    return enough & (left[..., 1] >= least_weight) & (right[..., 1] >= least_weight)


@cache
def all_masks(count: int) -> np.ndarray:
    """Every division of `count` items in two, neither side empty: (2**count - 2, count)."""
    numbers = np.arange(1, (1 << count) - 1)
    return (numbers[:, None] >> np.arange(count) & 1).astype(bool)


class Cells(NamedTuple):
    """The rows of a node by one column."""

    known: np.ndarray  # (k, S) statistics of each category, or value
    missing: np.ndarray | None  # (S,)

    @property
    def all(self) -> np.ndarray:
        return self.known if self.missing is None else np.vstack([self.known, self.missing])


def cells_of(column: np.ndarray, statistics: np.ndarray) -> Cells:
    known = ~np.isnan(column)
    values, code = np.unique(column[known], return_inverse=True)
    sums = np.zeros((values.size, statistics.shape[1]))
    np.add.at(sums, code, statistics[known])
    return Cells(sums, None if known.all() else statistics[~known].sum(axis=0))


def lefts_of(cells: Cells, nominal: bool, case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of one side of the promised splits, and of all possible ones."""
    every = all_masks(len(cells.all)) @ cells.all if len(cells.all) > 1 else cells.all[:0]
    if not nominal:
        heads = _sides(np.cumsum(cells.known, axis=0), cells)
        return heads, heads
    promise = promise_of(case, cells)
    if promise == "one_vs_rest":
        single = np.vstack([cells.known, cells.known.sum(axis=0)])
        single = _sides(single, cells)
        return single, single
    if promise == "ordered":
        return np.vstack(list(_heads(cells, case.criterion))), every
    return every, every


def promise_of(case: Case, cells: Cells) -> str:
    """Name the subsets that the setting promises to search for the categories of a node."""
    split = case.parameters["categorical_split"]
    count, rows = len(cells.known), cells.known[:, 0].sum()
    if split == "one_vs_rest" or (split == "auto" and count > 10 and rows < 5 * count):
        return "one_vs_rest"
    two = case.of_targets or cells.known.shape[1] == 4
    sizes = {"min_samples_leaf", "min_weight_fraction_leaf"} & case.parameters.keys()
    if split == "exhaustive" or (count <= 10 and (two or split == "auto")) or (two and not sizes):
        return "exhaustive"
    return "ordered"


def _sides(left: np.ndarray, cells: Cells) -> np.ndarray:
    """With missing values on either side; none that leaves a side empty."""
    if left.size == 0:
        return cells.all[:0]
    if cells.missing is not None:
        left = np.vstack([left, left + cells.missing])
    whole = cells.all[:, 0].sum()
    return left[(left[:, 0] > 0) & (left[:, 0] < whole)]


def _heads(cells: Cells, criterion: str) -> Iterator[np.ndarray]:
    """Prefixes of the categories by class proportion or mean, equal ones together."""
    for k in (2,) if criterion in OF_TARGETS else range(2, cells.known.shape[1]):
        share = cells.known[:, k] / cells.known[:, 1]
        heads = [cells.known[share <= s].sum(axis=0) for s in np.unique(share)]
        yield _sides(np.array(heads), cells)


# ------------------------------------------------------------------------------ one tree
class Nodes(NamedTuple):
    """A tree, and which rows come to each of its nodes."""

    tree: Any
    rows: np.ndarray  # (nodes, n) bool

    @classmethod
    def of(cls, model: Any, X: np.ndarray) -> Nodes:
        return cls(model.tree_, model.decision_path(X).toarray().astype(bool).T)


def check_tree(case: Case, model: Any) -> Iterator[Violation]:
    """Violations of the nodes of a tree, without those of renaming."""
    nodes, statistics = Nodes.of(model, case.X), statistics_of(case)
    bounds = bounds_of(case, nodes, statistics)
    for node in range(nodes.tree.n_nodes):
        yield from _check_node(case, nodes, node, statistics, bounds[node])
    yield from _check_absent(case, model, nodes)


def means_of(case: Case, sums: np.ndarray) -> np.ndarray:
    """Mean target, or fraction of the second of two classes."""
    return sums[..., 2 if case.of_targets else 3] / sums[..., 1]


def bounds_of(case: Case, nodes: Nodes, statistics: np.ndarray) -> np.ndarray:
    """Bounds on the means in each node, (nodes, 2): parents come before their children."""
    bounds = np.full((nodes.tree.n_nodes, 2), (-np.inf, np.inf))
    for node in np.flatnonzero(~nodes.tree.is_leaf):
        first = nodes.tree.first_child[node]
        bounds[first : first + 2] = bounds[node]
        sign = case.signs[nodes.tree.feature[node]]
        if sign != 0:
            sides = [statistics[nodes.rows[first + side]].sum(axis=0) for side in (0, 1)]
            middle = 0.5 * means_of(case, sides[0]) + 0.5 * means_of(case, sides[1])
            bounds[first, int(sign > 0)] = bounds[first + 1, int(sign < 0)] = middle
    return bounds


def is_ordered(
    case: Case, sign: int, bounds: np.ndarray, left: np.ndarray, total: np.ndarray
) -> np.ndarray:
    """Mark cuts of a column that keep to its sign and to the bounds of the node."""
    if sign == 0:
        return np.ones(len(left), bool)
    low, high = (means_of(case, side) for side in (left, total - left)[::sign])
    return (low <= high) & (bounds[0] <= low) & (high <= bounds[1])


def _check_node(
    case: Case, nodes: Nodes, node: int, statistics: np.ndarray, bounds: np.ndarray
) -> Iterator[Violation]:
    tree, rows = nodes.tree, nodes.rows[node]
    total = statistics[rows].sum(axis=0)
    promised, possible = _best_gains(case, rows, statistics, total, bounds)
    least = case.parameters.get("min_impurity_decrease", 0.0) * case.weights.sum()
    slack = TOLERANCE * (impurity(case.criterion, total) + 1e-3)
    if tree.is_leaf[node]:
        at_end = tree.depth[node] == case.parameters.get("max_depth", np.inf)
        if least > 0.0:
            possible = promised if promised > least + slack else -np.inf
        if possible > -np.inf and not at_end and np.unique(case.y[rows]).size > 1:
            yield Violation("leaf", node, f"a split gains {possible:.6g}")
        return
    left = statistics[nodes.rows[tree.first_child[node]]].sum(axis=0)
    of_tree = float(gains(case.criterion, left, total))
    sign = case.signs[tree.feature[node]]
    ordered = is_ordered(case, sign, bounds, left[None], total)[0]
    if not is_admissible(case, left, total) or not ordered or of_tree < least - slack:
        yield Violation("limits", node, f"{left[:2]} of {total[:2]}")
    if abs(of_tree - tree.gain[node] * total[1]) > slack:
        yield Violation("gain", node, f"{tree.gain[node] * total[1]:.6g} for {of_tree:.6g}")
    if of_tree < promised - slack:
        yield Violation("subset", node, f"{of_tree:.6g} where {promised:.6g} can be had")


def _best_gains(
    case: Case, rows: np.ndarray, statistics: np.ndarray, total: np.ndarray, bounds: np.ndarray
) -> tuple[float, float]:
    """The highest promised gain, and the highest of all splits; -inf where there is none."""
    best = np.full(2, -np.inf)
    for f, nominal in enumerate(case.nominal):
        cells = cells_of(case.X[rows, f], statistics[rows])
        for i, left in enumerate(lefts_of(cells, bool(nominal), case)):
            left = left[is_admissible(case, left, total)]
            left = left[is_ordered(case, case.signs[f], bounds, left, total)]
            if left.size:
                best[i] = max(best[i], gains(case.criterion, left, total).max())
    return float(best[0]), float(best[1])


def _check_absent(case: Case, model: Any, nodes: Nodes) -> Iterator[Violation]:
    """Rows of each node with another category, one it has no rows of, are sent on."""
    asked = []
    for node in np.flatnonzero(~nodes.tree.is_leaf):
        f = nodes.tree.feature[node]
        rows = np.flatnonzero(nodes.rows[node])
        if case.nominal[f]:
            absent = np.setdiff1d(case.X[:, f], case.X[rows, f])
            asked += [(node, rows[0], f, value) for value in absent[~np.isnan(absent)]]
    if not asked:
        return
    node, row, feature, value = (np.array(column) for column in zip(*asked, strict=True))
    X = case.X[row]
    X[np.arange(node.size), feature] = value
    path = model.decision_path(X).toarray().astype(bool)
    child = nodes.tree.first_child[node] + nodes.tree.missing_child[node]
    each = np.arange(node.size)
    for i in np.flatnonzero(path[each, node] & ~path[each, child]):
        yield Violation("absent", int(node[i]), f"category {value[i]} of column {feature[i]}")


# ------------------------------------------------------------------------------- renaming
def check_renaming(case: Case, model: Any, renamed: Case, other: Any) -> Iterator[Violation]:
    """Differences of the tree of the renamed table in more than names."""
    a, b = Nodes.of(model, case.X), Nodes.of(other, renamed.X)
    statistics = statistics_of(case)
    numbers = all(np.unique(column[~np.isnan(column)]).size <= 2 for column in case.nominal_columns)
    pairs = [(0, 0)]
    while pairs:
        i, j = pairs.pop()
        if a.tree.is_leaf[i] and b.tree.is_leaf[j]:
            continue
        if numbers:
            found = _compare_gains(a, b, i, j)
        else:
            found = _compare_nodes(case, a, b, i, j, statistics)
        if found is not None:
            yield Violation("renaming", i, found)
        elif _same_halves(a, b, i, j):
            pairs += zip(_children(a.tree, i), _children(b.tree, j), strict=True)
        elif numbers and _same_halves(a, b, i, j, mirrored=True):
            pairs += zip(_children(a.tree, i), _children(b.tree, j)[::-1], strict=True)


def _compare_gains(a: Nodes, b: Nodes, i: int, j: int) -> str | None:
    """Difference of two splits in leaf or gain; None if there is none."""
    if a.tree.is_leaf[i] != b.tree.is_leaf[j]:
        return "a leaf under one name"
    gain, other = a.tree.gain[i], b.tree.gain[j]
    return None if abs(gain - other) <= TOLERANCE * gain + 1e-15 else f"gain {gain!r}, {other!r}"


def _compare_nodes(
    case: Case, a: Nodes, b: Nodes, i: int, j: int, statistics: np.ndarray
) -> str | None:
    """Difference of two splits of the same rows; None if only names differ."""
    if a.tree.is_leaf[i] != b.tree.is_leaf[j]:
        return "a leaf under one name"
    if a.tree.feature[i] != b.tree.feature[j]:
        return "another column"
    if a.tree.gain[i] != b.tree.gain[j]:
        return f"gain {a.tree.gain[i]!r}, {b.tree.gain[j]!r}"
    if _same_halves(a, b, i, j):
        return None
    f = a.tree.feature[i]
    if case.of_targets:
        statistics = statistics[:, :3]  # the last do not change where a split is best
    halves = [
        _sent(case.X[:, f], nodes.rows[nodes.tree.first_child[node]], nodes.rows[node], statistics)
        for nodes, node in ((a, i), (b, j))
    ]
    return None if halves[0] == halves[1] else "another subset"


def _same_halves(a: Nodes, b: Nodes, i: int, j: int, mirrored: bool = False) -> bool:
    first, second = a.tree.first_child[i], b.tree.first_child[j] + mirrored
    return bool(np.array_equal(a.rows[first], b.rows[second]))


def _sent(
    column: np.ndarray, left: np.ndarray, rows: np.ndarray, statistics: np.ndarray
) -> list[tuple[float, ...]]:
    """Statistics of the categories that go left, each by itself; of missing values last."""
    cells = cells_of(column[left], statistics[left])
    known = sorted(map(tuple, cells.known.tolist()))
    return [*known, (-1.0,) if cells.missing is None else tuple(cells.missing.tolist())]


def _children(tree: Any, node: int) -> tuple[int, int]:
    return int(tree.first_child[node]), int(tree.first_child[node]) + 1


# -------------------------------------------------------------------------------- a run
def check_case(
    case: Case, seed: int = 0, fit: Callable[[Case], Any] = Case.fit
) -> tuple[int, list[Violation]]:
    """Splits of the tree of one table, and its violations."""
    model = fit(case)
    renamed = rename(case, np.random.default_rng(seed))
    other = fit(renamed)
    found = [*check_tree(case.used, model)]
    found += check_renaming(case.used, model, renamed.used, other)
    return int((~model.tree_.is_leaf).sum()), found
