"""Cost-complexity pruning: against scikit-learn, the textbook and brute force."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pruning_oracles import (
    leaves_after,
    prunings,
    random_shape,
    tree_of_shape,
    trees,
    weakest_link_sequence,
)
from sklearn import datasets
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn_trees import from_sklearn

import gputree
from gputree.pruning import CostComplexity, cost_complexity_path

SAME = 1e-12  # relative
NOTHING = 1e-15  # of the root's impurity: a gain of nothing, rounded


def _grid(seed):
    """A table of small integers: many ties, many equal rows, three classes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 800))
    X = rng.integers(0, int(rng.integers(2, 12)), (n, 3)).astype(float)
    return X, rng.integers(0, 3, n)


def _cloud(seed):
    """Continuous columns, some missing values, a noisy target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(30, 600)), 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def _tables():
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True), True
    yield "diabetes", *datasets.load_diabetes(return_X_y=True), False
    for seed in range(4):
        X, y = _grid(seed)
        yield f"grid{seed}", X, y, True
        yield f"grid{seed}-regression", X, y.astype(float), False
        X, y = _cloud(seed)
        yield f"cloud{seed}", X, np.digitize(y, [-1, 0, 2]), True
        yield f"cloud{seed}-regression", X, y, False


def _cases():
    for i, (name, X, y, classification) in enumerate(_tables()):
        weight = np.random.default_rng(i).random(len(y)) + 0.1 if i % 2 else None
        if not classification:
            yield pytest.param(DecisionTreeRegressor(random_state=i), X, y, weight, id=name)
            continue
        for criterion in ("gini", "entropy"):
            model = DecisionTreeClassifier(criterion=criterion, random_state=i)
            yield pytest.param(model, X, y, weight, id=f"{name}-{criterion}")


def _distinct(alphas, impurities):
    """Each distinct alpha, and R once all links of that alpha have collapsed.

    Links that tie but for rounding may come in any order, or all at once.
    """
    alphas = np.maximum.accumulate(alphas)
    last = np.append(np.diff(alphas) > 1e-10 * impurities[-1], True)
    return alphas[last], impurities[last]


@pytest.mark.parametrize(("model", "X", "y", "weight"), list(_cases()))
def test_path_and_trees_equal_scikit_learns(model, X, y, weight):
    tree = from_sklearn(model.fit(X, y, sample_weight=weight))
    theirs = model.cost_complexity_pruning_path(X, y, sample_weight=weight)
    alphas, impurities = _distinct(theirs.ccp_alphas, theirs.impurities)
    ours = _distinct(*cost_complexity_path(tree))
    rounding = NOTHING * tree.impurity[0]
    np.testing.assert_allclose(ours[0], alphas, rtol=SAME, atol=rounding)
    np.testing.assert_allclose(ours[1], impurities, rtol=SAME, atol=rounding)
    between = (alphas[:-1] + alphas[1:]) / 2
    for alpha in between[:: max(1, between.size // 8)]:
        pruned = clone(model).set_params(ccp_alpha=alpha).fit(X, y, sample_weight=weight)
        assert CostComplexity(alpha).prune_tree(tree).equals(from_sklearn(pruned))


def test_small_gains_keep_their_digits():
    # Steps of 1 in targets of a million: a split gains down to 1e-13 of the root's impurity.
    rng = np.random.default_rng(0)
    x = np.arange(24)
    y = 1_000_000 * (x >= 12) + 1000 * (x % 12 >= 6) + rng.permutation(24)
    model = gputree.DecisionTreeRegressor().fit(x[:, None], y)
    passed = model.decision_path(x[:, None]).toarray().astype(bool)
    targets = [[int(v) for v in y[rows]] for rows in passed.T]
    risk = [sum(v * v for v in t) - Fraction(sum(t) ** 2, len(t)) for t in targets]
    exact = [float(a / 24) for a, _ in weakest_link_sequence(model.tree_, risk)]
    assert exact[1] < 1e-12 * exact[-1]
    np.testing.assert_allclose(cost_complexity_path(model.tree_).ccp_alphas, exact, rtol=1e-14)


def test_splits_that_save_no_error_collapse_at_alpha_0():
    # Thirds of rows that all predict 0: in fractions of the weight, differences of errors round.
    X = np.arange(49.0).reshape(-1, 1)
    y = np.where(X[:, 0] < 42, X[:, 0] % 3 == 0, 1).astype(int)
    model = gputree.DecisionTreeClassifier(min_samples_leaf=3).fit(X, y)
    path = cost_complexity_path(model.tree_, risk="error")
    assert path.ccp_alphas[path.ccp_alphas > 0].tolist() == [7 / 49]
    assert CostComplexity(0.0, risk="error").prune_tree(model.tree_).n_leaves == 2


@st.composite
def integer_risks(draw):
    """A tree of integer risks, so that sums are exact and ties are real; zero gains too."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = random_shape(rng, draw(st.integers(0, 12)), draw(st.integers(2, 4)))
    ones = np.ones(shape.size)
    tree = tree_of_shape(shape, np.ones((shape.size, 1)), ones, ones)
    risk = rng.integers(0, 4, shape.size)
    for node in reversed(np.flatnonzero(~tree.is_leaf)):
        risk[node] = risk[list(tree.children(node))].sum() + rng.integers(0, 4)
    return tree_of_shape(shape, np.ones((shape.size, 1)), risk, ones), risk.tolist()


@given(integer_risks())
def test_path_is_the_textbook_sequence(case):
    tree, risk = case
    alphas, impurities = zip(*weakest_link_sequence(tree, risk), strict=True)
    ours = cost_complexity_path(tree)
    assert ours.ccp_alphas.tolist() == [float(a) for a in alphas]
    assert ours.impurities.tolist() == [float(r) for r in impurities]


@given(integer_risks(), st.integers(0, 12))
def test_tree_is_the_smallest_that_minimises_cost(case, quarters):
    tree, risk = case
    alpha = quarters / 4
    kept = leaves_after(tree, CostComplexity(alpha).prune_tree(tree))
    cost = {leaves: sum(risk[t] + alpha for t in leaves) for leaves in prunings(tree)}
    least = min(cost.values())
    assert cost[kept] == least
    assert all(
        kept == leaves or len(kept) < len(leaves) for leaves in cost if cost[leaves] == least
    )


@pytest.mark.full
def test_a_million_nodes():
    n = 2**20 - 1
    shape = np.where(np.arange(n) < n // 2, 2, 0)
    depth = np.floor(np.log2(np.arange(n) + 1))
    tree = tree_of_shape(shape, np.ones((n, 1)), 0.25**depth, np.ones(n))
    alphas, impurities = cost_complexity_path(tree)
    # A split at depth d gains 4**-d - 2 * 4**-(d + 1): levels fall from the deepest up.
    assert alphas.size == n // 2 + 1
    np.testing.assert_allclose(alphas[-1], 0.5)
    np.testing.assert_allclose(impurities[-1], 1.0)
    assert CostComplexity(0.25**10).prune_tree(tree).n_leaves == 2**10


@pytest.mark.parametrize("alpha", [-0.1, "x", None])
def test_alpha_must_be_a_price(alpha):
    tree = from_sklearn(DecisionTreeClassifier().fit([[0], [1]], [0, 1]))
    with pytest.raises(ValueError, match="'alpha' parameter of CostComplexity must be a float"):
        CostComplexity(alpha).prune_tree(tree)


# ------------------------------------------------------------------------- rpart's cp
@given(trees(max_inner=20), st.sampled_from(["impurity", "error"]))
def test_cp_is_alpha_as_a_share_of_the_roots_risk(tree, risk):
    path = cost_complexity_path(tree, risk)
    assert path.ccp_alphas.min() == 0.0  # none is negative by a rounding
    root = path.impurities[-1]
    for alpha in np.unique(path.ccp_alphas):
        beside = np.nextafter(alpha, np.inf) * (1 + 1e-12), alpha * (1 - 1e-12)
        for price in beside:  # the path's own alphas may be off by a last bit once divided
            expected = CostComplexity(price, risk).prune_tree(tree)
            if root > 0:
                assert CostComplexity(cp=price / root, risk=risk).prune_tree(tree).equals(expected)
    assert CostComplexity(cp=1.0, risk=risk).prune_tree(tree).n_leaves == 1


def test_cp_1_leaves_the_root_where_risks_round_apart():
    rng = np.random.default_rng(0)
    for _ in range(50):
        y = np.repeat(rng.normal(size=2), rng.integers(1, 20, 2))
        X = (y > y.mean())[:, None].astype(float)
        model = gputree.DecisionTreeRegressor(pruning=CostComplexity(cp=1.0), n_jobs=1).fit(X, y)
        assert model.get_n_leaves() == 1


def test_cp_and_alpha_exclude_each_other():
    tree = from_sklearn(DecisionTreeClassifier().fit([[0], [1]], [0, 1]))
    with pytest.raises(ValueError, match="'cp' parameter of CostComplexity must be None where"):
        CostComplexity(0.1, cp=0.1).prune_tree(tree)
    with pytest.raises(ValueError, match="'cp' parameter of CostComplexity must be a float"):
        CostComplexity(cp=-1).prune_tree(tree)
