"""ID3 and C4.5 grown the slow, obvious way: recursion, doubles, one node at a time.

C4.5's rules, in the order in which they apply (J48's where Release 8 differs):

1. A node is a leaf if its weight is less than ``2 min_samples_leaf`` or all of it is of one
   class (both within 1e-6).
2. A nominal column is a candidate if at least two of its categories hold `min_samples_leaf`
   of the node's known weight. That excludes a column tested above: one category is left.
3. A numeric column is a candidate if its known *entries*, unweighted, are at least twice
   the minimum weight of a side: 0.1 x known weight / number of classes of the table, at least
   `min_samples_leaf` and at most 25. Cuts lie between different values, with the minimum
   weight on either side; the first of the highest gain is taken.
4. The gain of a test is that over its known entries, times their fraction of the node's
   weight. From a numeric one the MDL cost is taken: log2(admissible cuts) / weight of the node,
   unknown entries included. A numeric candidate whose gain is then below 1e-6 is dropped;
   nominal ones stay, whatever their gain.
5. The split information counts the unknown weight as one more branch; the ratio is 0 where
   it is below 1e-6.
6. The average gain is over the candidates; nominal ones of at least 0.3 x (rows of the
   table) categories do not count, unless all columns are such. Candidates with a
   gain below it by more than 1e-3 are out. Of the others the first of the highest
   positive ratio wins (a later one must be greater by 1e-6).
7. Entries whose value is unknown go down every branch that has known weight, with weight x
   (its known weight / known weight). A category without entries is a leaf without weight.
8. A threshold is the midpoint, or the largest value of the whole table up to it.
9. Collapse is a separate pass, from the root: a subtree whose leaves misplace at least as
   much as the node itself (less 1e-3) becomes a leaf; descendants of it are not looked at.
10. A row descends in parts: all of it down its branch, or where its value is unknown down
    every branch by its fraction of weight. A leaf without weight predicts by its parent's
    classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

TOLERANCE = 1e-6
GAIN_STEP = 2.0**-20  # bits x weight
MISSING = -2  # what ID3's branch of missing values is known by; -1 is a category not seen


@dataclass
class Node:
    """A node: class weights, entries, and its test if there is one."""

    weights: np.ndarray  # (K,)
    entries: int
    feature: int = -1
    threshold: float = np.nan  # of a numeric test
    gain: float = 0.0  # bits, before the MDL cost
    ratio: float = 0.0
    children: list[Node] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)  # category of each child, or MISSING
    category: int = -1  # of the first child, where the second has all others

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def errors(self) -> float:
        """Weight that the majority class misclassifies."""
        return self.total - float(self.weights.max())

    def make_leaf(self) -> None:
        self.feature, self.children, self.codes = -1, [], []

    def walk(self) -> Iterator[Node]:
        """Nodes breadth-first."""
        level = [self]
        while level:
            yield from level
            level = [child for node in level for child in node.children]

    def leaves(self) -> list[Node]:
        return [node for node in self.walk() if not node.children]


@dataclass(frozen=True)
class Test:
    """A candidate: its branches by category, or the sides of its threshold."""

    feature: int
    gain: float
    net_gain: float  # less the MDL cost
    split_information: float
    threshold: float = np.nan
    category: int = -1  # separated from all others
    branches: int = 2  # that have entries

    @property
    def ratio(self) -> float:
        if self.split_information < TOLERANCE:
            return 0.0
        return self.net_gain / self.split_information


def information(weights) -> float:
    """Bits x weight: ``N log2 N - sum n log2 n``."""
    weights = np.asarray(weights, dtype=float)
    weights = weights[weights > TOLERANCE]
    total = weights.sum()
    return float(total * np.log2(total) - (weights * np.log2(weights)).sum()) if total else 0.0


def class_weights(y, weight, n_classes: int) -> np.ndarray:
    return np.bincount(y, weights=weight, minlength=n_classes)


def cumulated_information(sums: np.ndarray) -> np.ndarray:
    """`information` of every row of class weights."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(sums > TOLERANCE, sums * np.log2(sums), 0.0).sum(axis=1)
        total = sums.sum(axis=1)
        return np.where(total > TOLERANCE, total * np.log2(total), 0.0) - terms


@dataclass(frozen=True)
class C45:
    """C4.5 without pruning.

    Attributes
    ----------
    nominal : (d,) bool
    n_categories : (d,) int, of the nominal columns
    n_classes : int
    actual_values : bool
        Thresholds are values of the table.
    j48_ties : bool
        A later cut must gain 1e-6 bits more than the best before it, as in J48; otherwise
        total gains are compared in steps of 2**-20.
    least_difference : float
        Neighbours nearer than this are not cut apart (1e-5 in J48 and Release 8).
    one_against_rest : bool
        A nominal column separates one category from all others (J48's -B). Candidates are those
        that have `min_samples_leaf` and leave as much to the others; the first of highest
        ratio is taken, where a later one must be greater by 1e-6. Others may be separated below.
    by_gain : bool
        Tests are compared by the gain, not its ratio (C4.5's -g); the average does not matter then.
    exclude_high_cardinality : bool
        Columns that do not count for the average (6.) are no candidates, as in C5.0.
    bits_share : float
        Of the minimum gain so much is 0.9 log2(candidates that count) / weight of the node.
    leaves_per_weight : float
        A node may have round(leaves_per_weight x weight) leaves: with less than 2 it is one, and
        a nominal column of more branches than one above that is no candidate. 0 for no limit.
    """

    nominal: np.ndarray
    n_categories: np.ndarray
    n_classes: int
    min_samples_leaf: float = 2
    average_gain_rule: bool = True
    mdl_correction: bool = True
    actual_values: bool = False
    max_depth: float = np.inf
    min_samples_split: int = 2
    min_gain: float = 0.0
    j48_ties: bool = False
    least_difference: float = 0.0
    one_against_rest: bool = False
    by_gain: bool = False
    exclude_high_cardinality: bool = False
    bits_share: float = 0.0
    leaves_per_weight: float = 0.0

    def grow(self, values, y, weight=None) -> Node:
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
        return self._grow(values, values, np.asarray(y), weight, 0)

    def _grow(self, table, values, y, weight, depth) -> Node:
        node = Node(class_weights(y, weight, self.n_classes), len(y))
        if depth >= self.max_depth or len(y) < self.min_samples_split or self._is_leaf(node):
            return node
        test = self._choose(values, y, weight, len(table))
        if test is None:
            return node
        node.feature, node.gain, node.ratio = test.feature, test.gain, test.ratio
        branch = self._branches(test, values[:, test.feature])
        n_branches = 2
        node.category = test.category
        if self.nominal[test.feature] and not self.one_against_rest:
            n_branches = int(self.n_categories[test.feature])
            node.codes = list(range(n_branches))
        elif not self.nominal[test.feature]:
            node.threshold = self._threshold(test, table)
        known = np.array([weight[branch == b].sum() for b in range(n_branches)])
        for b in range(n_branches):
            share = np.where(branch == b, 1.0, np.where(branch < 0, known[b] / known.sum(), 0.0))
            below = share > 0
            node.children.append(
                self._grow(table, values[below], y[below], (weight * share)[below], depth + 1)
            )
        return node

    def _is_leaf(self, node: Node) -> bool:
        if self.leaves_per_weight and round(self.leaves_per_weight * node.total) < 2:
            return True
        return node.total < 2 * self.min_samples_leaf - TOLERANCE or node.errors <= TOLERANCE

    def _branches(self, test: Test, column) -> np.ndarray:
        """Branch of every entry, -1 where its value is missing."""
        missing = np.isnan(column)
        if test.category >= 0:
            return np.where(missing, -1, column != test.category).astype(int)
        if self.nominal[test.feature]:
            return np.where(missing, -1, column).astype(int)
        return np.where(missing, -1, column > test.threshold).astype(int)

    def _threshold(self, test: Test, table) -> float:
        if not self.actual_values:
            return test.threshold
        column = table[:, test.feature]
        return float(column[column <= test.threshold].max())

    # ------------------------------------------------------- candidates
    def _choose(self, values, y, weight, n_rows: int) -> Test | None:
        tests = [self._test(f, values[:, f], y, weight) for f in range(values.shape[1])]
        total, many = float(weight.sum()), [self._has_many(f, n_rows) for f in range(len(tests))]
        many = [has and not all(many) for has in many]
        tests = [t for t in tests if t is not None and t.net_gain >= self.min_gain - TOLERANCE]
        if self.exclude_high_cardinality:
            tests = [t for t in tests if not many[t.feature]]
        if self.leaves_per_weight:
            most = round(self.leaves_per_weight * total) + 1
            tests = [t for t in tests if t.branches <= most]
        bar = -np.inf
        if self.average_gain_rule and not self.by_gain:
            counted = [t for t in tests if not many[t.feature]]
            if not counted:
                return None
            bar = sum(t.net_gain for t in counted) / len(counted) - 1e-3
            bits = 0.9 * np.log2(len(counted)) / total
            bar = (1 - self.bits_share) * bar + self.bits_share * bits
        best, worth = None, 0.0
        for test in tests:
            if test.net_gain >= bar and self._worth(test) > worth + TOLERANCE:
                best, worth = test, self._worth(test)
        return best

    def _worth(self, test: Test) -> float:
        return test.net_gain if self.by_gain and test.ratio else test.ratio

    def _has_many(self, feature: int, n_rows: int) -> bool:
        return bool(self.nominal[feature]) and not (
            self.n_categories[feature] < 0.3 * n_rows - TOLERANCE
        )

    def _test(self, feature: int, column, y, weight) -> Test | None:
        known = ~np.isnan(column)
        data = column[known], y[known], weight[known]
        make = self._nominal_test if self.nominal[feature] else self._numeric_test
        return make(feature, *data, float(weight.sum()))

    def _nominal_test(self, feature, column, y, weight, total) -> Test | None:
        branches = [
            class_weights(y[column == c], weight[column == c], self.n_classes)
            for c in range(int(self.n_categories[feature]))
        ]
        sizes = np.array([branch.sum() for branch in branches])
        if self.one_against_rest:
            return self._test_against_rest(feature, np.array(branches), total)
        if (sizes >= self.min_samples_leaf - TOLERANCE).sum() < 2:
            return None
        gain = information(np.sum(branches, axis=0)) - sum(map(information, branches))
        gain = self._rounded(gain) / total
        split = information([*sizes, total - sizes.sum()])
        return Test(feature, gain, gain, split / total, branches=int((sizes > 0).sum()))

    def _test_against_rest(self, feature, branches, total) -> Test | None:
        best = None
        whole = branches.sum(axis=0)
        for c, branch in enumerate(branches):
            rest = whole - branch
            if min(branch.sum(), rest.sum()) < self.min_samples_leaf - TOLERANCE:
                continue
            gain = information(whole) - information(branch) - information(rest)
            gain = self._rounded(gain) / total
            split = information([branch.sum(), rest.sum(), total - whole.sum()]) / total
            test = Test(feature, gain, gain, split, category=c)
            if best is None or self._worth(test) > self._worth(best) + TOLERANCE:
                best = test
        return best

    def _numeric_test(self, feature, column, y, weight, total) -> Test | None:
        order = np.argsort(column, kind="stable")
        column, y, weight = column[order], y[order], weight[order]
        known = weight.sum()
        least = self._least_side(known)
        if len(y) < 2 * least - TOLERANCE:
            return None
        left = np.cumsum(weight[:, None] * (y[:, None] == np.arange(self.n_classes)), axis=0)
        whole = left[-1]
        size = left.sum(axis=1)
        place = np.flatnonzero(column[:-1] + self.least_difference < column[1:])
        enough = np.minimum(size[place], known - size[place]) >= least - TOLERANCE
        place = place[enough]
        if place.size == 0:
            return None
        split = cumulated_information(left[place]) + cumulated_information(whole - left[place])
        gains = information(whole) - split
        cut = self._first_greatest(gains, total)
        gain = self._rounded(gains[cut]) / total
        net = gain - (np.log2(place.size) / total if self.mdl_correction else 0.0)
        if cut < 0 or net < TOLERANCE:
            return None
        i = place[cut]
        below = size[i]
        info = information([below, known - below, total - known])
        threshold = column[i] / 2 + column[i + 1] / 2
        if threshold >= column[i + 1]:
            threshold = column[i]
        return Test(feature, gain, net, info / total, float(threshold))

    def _least_side(self, known: float) -> float:
        least = 0.1 * known / self.n_classes
        if least <= self.min_samples_leaf + TOLERANCE:
            return self.min_samples_leaf
        return min(least, 25.0)

    def _rounded(self, gain):
        """Round a total gain to steps; unchanged in J48."""
        return gain if self.j48_ties else np.maximum(np.rint(gain / GAIN_STEP), 0) * GAIN_STEP

    def _first_greatest(self, gains, total) -> int:
        """The chosen cut, -1 if none has a gain."""
        if not self.j48_ties:
            steps = self._rounded(gains)
            return int(steps.argmax()) if steps.max() > 0 else -1
        best, gain = -1, 0.0
        for i, candidate in enumerate(gains / total):
            if candidate > gain + TOLERANCE:
                best, gain = i, candidate
        return best


# -------------------------------------------------------------- afterwards
def collapse(node: Node) -> None:
    """Make leaves of subtrees that classify no more of the training weight correctly."""
    if not node.children:
        return
    if sum(leaf.errors for leaf in node.leaves()) >= node.errors - 1e-3:
        node.make_leaf()
    for child in node.children:
        collapse(child)


def distribution(node: Node, row, nominal, prior=None) -> np.ndarray:
    """Class probabilities of a row; `prior` is used for leaves without weight."""
    share = node.weights / node.total if node.total > 0 else prior
    if not node.children:
        return share
    value = row[node.feature]
    n_codes = len(node.children) if node.category < 0 else np.inf  # all others: one branch
    unseen = nominal[node.feature] and not 0 <= value < n_codes
    if np.isnan(value) or unseen:
        sizes = np.array([child.total for child in node.children])
        parts = [distribution(child, row, nominal, share) for child in node.children]
        return sizes / sizes.sum() @ np.array(parts)
    branch = int(value) if nominal[node.feature] else int(value > node.threshold)
    if node.category >= 0:
        branch = int(value != node.category)
    return distribution(node.children[branch], row, nominal, share)


def predict(node: Node, values, nominal) -> np.ndarray:
    """Class of each row: the first of the highest probability (within 1e-6)."""
    probabilities = np.array([distribution(node, row, nominal) for row in values])
    near = probabilities >= probabilities.max(axis=1, keepdims=True) - TOLERANCE
    return near.argmax(axis=1)


# --------------------------------------------------------------------- ID3
@dataclass(frozen=True)
class ID3:
    """ID3: every column is nominal, the values present at a node are its branches.

    A missing value is a separate category, the last. The first column of highest gain
    (in steps of 2**-20 bits x weight) wins, if its gain is at least `min_gain` bits; a
    column that is constant at a node is no candidate.
    """

    n_classes: int
    min_gain: float = 0.0
    max_depth: float = np.inf
    min_samples_split: int = 2

    def grow(self, values, y, weight=None) -> Node:
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
        return self._grow(np.where(np.isnan(values), np.inf, values), np.asarray(y), weight, 0)

    def _grow(self, values, y, weight, depth) -> Node:
        node = Node(class_weights(y, weight, self.n_classes), len(y))
        if depth >= self.max_depth or len(y) < self.min_samples_split or node.errors <= TOLERANCE:
            return node
        steps = [self._steps(values[:, f], y, weight) for f in range(values.shape[1])]
        feature = int(np.argmax(steps))
        gain = steps[feature] * GAIN_STEP / node.total
        if steps[feature] < 0 or gain < self.min_gain - TOLERANCE:
            return node
        node.feature, node.gain = feature, gain
        for code in np.unique(values[:, feature]):
            below = values[:, feature] == code
            node.codes.append(MISSING if np.isinf(code) else int(code))
            node.children.append(self._grow(values[below], y[below], weight[below], depth + 1))
        return node

    def _steps(self, column, y, weight) -> float:
        """Total gain in steps; -1 where the column is constant."""
        codes = np.unique(column)
        branches = [
            class_weights(y[column == c], weight[column == c], self.n_classes) for c in codes
        ]
        if len(codes) < 2:
            return -1.0
        gain = information(np.sum(branches, axis=0)) - sum(map(information, branches))
        return max(float(np.rint(gain / GAIN_STEP)), 0.0)


def id3_distribution(node: Node, row) -> np.ndarray:
    """Class proportions where the row stops: at a leaf, or where its value has no branch."""
    code = MISSING if np.isnan(row[node.feature]) else int(row[node.feature])
    if code not in node.codes:
        return node.weights / node.total
    return id3_distribution(node.children[node.codes.index(code)], row)
