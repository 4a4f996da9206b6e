"""Random trees of every kind of split, rows for them, and the slow, obvious descent."""

import numpy as np
from hand_made_trees import make_tree
from hypothesis import strategies as st

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    LEAF,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_BRANCH,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    SUBSET_SPLIT,
    THRESHOLD_SPLIT,
)
from gputree.tree import Tree
from gputree.tree.branches import BranchLists

N_CODES = (0, 2, 3, 7, 0)  # categories of each column; 0 where it is numeric
NUMBERS = [-3e38, -0.0, 0.0, 0.5, 1.0, 1.0 + 2**-20, 3e38]

# What trees do with values that they cannot place.
POLICIES = ("all", "stops", "child", "mixed")


class _Splits:
    """Splits drawn at random, one a node."""

    def __init__(self, rng: np.random.Generator, policy: str) -> None:
        self.rng, self.policy = rng, policy

    def draw(self) -> tuple[int, int, float, int, int, list[int]]:
        """(kind, feature, threshold, n_children, missing_child, table) of one node."""
        feature = int(self.rng.integers(len(N_CODES)))
        n_codes = N_CODES[feature]
        if n_codes == 0:
            threshold = float(self.rng.choice([*NUMBERS, np.inf]))
            return THRESHOLD_SPLIT, feature, threshold, 2, self._missing(2), []
        n_children = int(self.rng.integers(2, n_codes + 2))  # one may be for missing values
        if self.rng.random() < 0.4:
            table = self.rng.integers(NO_BRANCH, 2, n_codes).tolist()
            return SUBSET_SPLIT, feature, NO_THRESHOLD, 2, self._missing(2), table
        table = np.full(n_codes, NO_BRANCH)
        codes = self.rng.permutation(n_codes)[:n_children]
        table[codes] = np.arange(codes.size)
        missing = self._missing(n_children)
        return BRANCH_SPLIT, feature, NO_THRESHOLD, n_children, missing, table.tolist()

    def _missing(self, n_children: int) -> int:
        policy = self.policy
        if policy == "mixed":
            policy = self.rng.choice(POLICIES[:3])
        if policy == "child":
            return int(self.rng.integers(n_children))
        return MISSING_TO_ALL if policy == "all" else MISSING_STOPS


def random_multiway_tree(
    rng: np.random.Generator, n_splits: int, policy: str = "mixed", n_classes: int = 3
) -> Tree:
    """A tree of `n_splits` splits; some leaves, and some subtrees, have no weight."""
    splits, rows, n_open = _Splits(rng, policy), [], 1
    while n_open:
        inner = n_splits > 0 and (n_open == 1 or rng.random() < 0.6)
        leaf = (LEAF, NO_FEATURE, NO_THRESHOLD, 0, MISSING_STOPS, [])
        rows.append(splits.draw() if inner else leaf)
        n_splits -= inner
        n_open += rows[-1][3] - 1
    kind, feature, threshold, count, missing, tables = zip(*rows, strict=True)
    n_children = np.array(count, NODE)
    parent = np.append(NO_CHILD, np.repeat(np.arange(n_children.size), n_children))
    statistics = _class_weights(rng, parent, n_children, n_classes)
    weight = statistics.sum(axis=1)
    shares = statistics / np.where(weight > 0, weight, 1.0)[:, None]
    gini = np.where(weight > 0, 1 - (shares**2).sum(axis=1), 0.0)
    below = np.zeros(weight.size)
    np.add.at(below, parent[1:], (weight * gini)[1:])
    gain = gini - below / np.where(weight > 0, weight, 1.0)
    first_child = np.where(n_children, 1 + np.cumsum(n_children) - n_children, -1).astype(NODE)
    offset = np.cumsum([0, *map(len, tables)])
    child = np.array([child for table in tables for child in table], NODE)
    return make_tree(
        n_children,
        task="classification",
        criterion="gini",
        n_features=len(N_CODES),
        split_kind=kind,
        feature=feature,
        threshold=threshold,
        missing_child=missing,
        weight=weight,
        n_rows=np.ceil(weight),
        statistics=statistics,
        impurity=gini,
        gain=np.where(n_children, gain, 0.0),
        **BranchLists.of_tables(first_child, offset, child)._asdict(),
    )


def _class_weights(rng, parent, n_children, n_classes) -> np.ndarray:
    """Quarters in the leaves, none in some; sums above."""
    statistics = rng.integers(0, 5, (parent.size, n_classes)) / 4.0
    statistics[(n_children > 0) | (rng.random(parent.size) < 0.3)] = 0.0
    statistics[-1, 0] += 1.0  # the last node is a leaf: the tree has some weight
    for node in range(parent.size - 1, 0, -1):
        statistics[parent[node]] += statistics[node]
    return statistics


def random_rows(rng: np.random.Generator, n: int, dtype=np.float64, missing=0.2) -> np.ndarray:
    """Numbers that tie with thresholds; codes, unknown ones and codes beyond every table."""
    columns = [rng.choice(NUMBERS, n) if c == 0 else rng.integers(-1, c + 2, n) for c in N_CODES]
    values = np.stack(columns, axis=1).astype(dtype)
    values[rng.random(values.shape) < missing] = np.nan
    return np.ascontiguousarray(values)


@st.composite
def multiway_cases(draw, policies=POLICIES, max_splits=30, min_rows=0, max_rows=40):
    """A random tree and rows for it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_multiway_tree(
        rng,
        draw(st.integers(0, max_splits)),
        draw(st.sampled_from(policies)),
        draw(st.integers(1, 4)),
    )
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return tree, random_rows(rng, draw(st.integers(min_rows, max_rows)), dtype)


# -------------------------------------------------------------------- oracle
def send(tree: Tree, node: int, x: float) -> int:
    """Ordinal of the child for a value, MISSING_TO_ALL or MISSING_STOPS, by fields of `Tree`."""
    missing = int(tree.missing_child[node])
    if np.isnan(x):
        return missing
    if tree.split_kind[node] == THRESHOLD_SPLIT:
        return int(x > tree.threshold[node])
    code, child = tree.branches(node)
    if x in code:
        return int(child[code == x][0])
    own_branch = tree.split_kind[node] == BRANCH_SPLIT and missing >= 0
    return MISSING_STOPS if own_branch else missing


def passes(tree: Tree, row, node: int = 0, share: float = 1.0):
    """Yield each node at or below `node` that a row visits, its fraction, and True if it stops."""
    below = []
    if not tree.is_leaf[node]:
        x, children = float(row[tree.feature[node]]), list(tree.children(node))
        ordinal = send(tree, node, x)
        if tree.soft_lower is not None and tree.soft_lower[node] < x < tree.soft_upper[node]:
            low, cut, high = (a[node] for a in (tree.soft_lower, tree.threshold, tree.soft_upper))
            part = (x - low) / (cut - low) if x <= cut else (high - x) / (high - cut)
            left = 1 - 0.5 * part if x <= cut else 0.5 * part
            below = [(children[0], left), (children[1], 1 - left)]
        elif ordinal >= 0:
            below = [(children[ordinal], 1.0)]
        elif ordinal == MISSING_TO_ALL:
            weights = {child: float(tree.weight[child]) for child in children}
            whole = sum(weights.values())
            below = [(child, weights[child] / whole) for child in children if weights[child] > 0]
    yield node, share, not below
    for child, part in below:
        yield from passes(tree, row, child, share * part)


def visit(tree: Tree, row, node: int = 0) -> dict[int, float]:
    """Fraction of a row that stops at each node visited at or below `node`; 0 where all goes on."""
    return {at: share if stops else 0.0 for at, share, stops in passes(tree, row, node)}


def stops(tree: Tree, row, node: int = 0) -> dict[int, float]:
    """Fractions of a row that stop at nodes, by ascending node."""
    return {at: share for at, share in sorted(visit(tree, row, node).items()) if share > 0}


def heaviest(tree: Tree, row) -> int:
    """The node where a row stops if it takes the heaviest branch, the first of equals, only."""
    node = 0
    while not tree.is_leaf[node]:
        children = list(tree.children(node))
        ordinal = send(tree, node, float(row[tree.feature[node]]))
        if ordinal == MISSING_STOPS:
            break
        if ordinal == MISSING_TO_ALL:
            ordinal = max(range(len(children)), key=lambda k: (tree.weight[children[k]], -k))
        node = children[ordinal]
    return node


def heaviest_answers(tree: Tree, values) -> np.ndarray:
    """Class proportions of each row where it stops so."""
    shares = [answer(tree, heaviest(tree, row)) for row in values]
    return np.array(shares).reshape(len(values), tree.n_classes)


def answer(tree: Tree, node: int) -> np.ndarray:
    """Class proportions of a node, or of its nearest ancestor with weight."""
    while tree.weight[node] == 0:
        node = int(tree.parent[node])
    return tree.statistics[node] / tree.weight[node]
