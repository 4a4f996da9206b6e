"""Trees as deep as they have nodes: nothing recurses, nothing grows with rows or nodes squared.

Sizes are such that what is quadratic takes hours or more memory than there is.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pruning_oracles import random_tree
from shared_fixtures import is_default

from benchmarks.shapes import balanced, chain, multiway_chain
from gputree import export_text
from gputree.export import plot_tree
from gputree.persistence import Contents, read_contents, write_contents
from gputree.prediction import apply, decision_path
from gputree.prediction.losses import node_loss
from gputree.pruning import (
    CostComplexity,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    RoutedRows,
    ValidationPrePruning,
    collapse_splits,
    cost_complexity_path,
    pessimistic,
)
from gputree.pruning.cost_complexity_cv import _loss_along
from gputree.tree.branches import add_up
from gputree.tree.statistics import impurity_importances

# A row at every leaf passes 7e7 nodes, which are interpreted by default, or 5e9.
DEEP = {True: 12_000, False: 100_000}

BY_NODES = [CostComplexity(1e-6), PenalizedLoss(0.5), Pessimistic(subtree_raising=False)]
BY_ROUTED_ROWS = [ReducedError(), ValidationPrePruning()]


def _name(pruner):
    return type(pruner).__name__


@pytest.fixture(scope="module")
def deep(pytestconfig):
    return chain(DEEP[is_default(pytestconfig)])


@pytest.mark.full
@pytest.mark.parametrize("pruner", BY_NODES, ids=_name)
def test_methods_that_need_no_rows(pruner, deep):
    pruner.prune_tree(deep.tree).check()
    pruner.prune_tree(multiway_chain(deep.tree.n_leaves // 2)[0]).check()


@pytest.mark.parametrize("pruner", BY_ROUTED_ROWS, ids=_name)
def test_methods_by_routed_rows_do_not_walk_every_path(pruner, deep):
    for tree, rows in ((deep.tree, deep.routed), multiway_chain(deep.tree.n_leaves // 2)):
        kept = pruner.prune_tree(tree, rows)
        kept.check()
        if isinstance(pruner, ReducedError):
            assert kept.equals(tree)  # every split separates some rows


@pytest.mark.parametrize("power", [1, 2])
def test_losses_at_every_node_of_a_chain(power, deep):
    tree, (node, label, weight) = deep.tree, vars(deep.routed).values()
    loss = node_loss(tree, RoutedRows(node, 1 - label, weight), power)
    answer = tree.statistics.argmax(axis=1)
    np.testing.assert_array_equal(loss.as_leaf, tree.statistics[np.arange(tree.n_nodes), answer])
    alongs = _loss_along(tree, np.where(tree.is_leaf, np.inf, 1.0), deep.routed, np.array([2.0]), 1)
    assert alongs == loss_of_the_root(deep)


def loss_of_the_root(shaped):
    return node_loss(shaped.tree, shaped.routed).as_leaf[0]


def test_sequences_and_collapse(deep):
    assert cost_complexity_path(deep.tree).impurities.size > 1
    assert collapse_splits(deep.tree).equals(deep.tree)
    assert impurity_importances(deep.tree).tolist() == [1.0]


@pytest.mark.full
def test_a_deep_tree_is_kept_and_printed(tmp_path):
    tree = chain(20_000).tree
    assert pickle.loads(pickle.dumps(tree)).equals(tree)
    write_contents(tmp_path / "deep.gputree", Contents({}, [tree]), False)
    assert read_contents(tmp_path / "deep.gputree").trees[0].equals(tree)
    text = export_text(tree)
    assert text.count("\n") == tree.n_nodes - 1
    assert len(text) < 300 * tree.n_nodes  # the depth is named, not drawn
    assert export_text(tree, max_depth=1).endswith(f"... {tree.n_nodes - 3} more nodes\n")
    with pytest.raises(ValueError, match="at most 500 leaves"):
        plot_tree(tree)


@pytest.mark.full
def test_descent_and_paths():
    shaped = chain(3_000, rows_a_leaf=1)
    assert apply(shaped.tree, shaped.rows.X).tolist() == shaped.routed.node.tolist()
    path = decision_path(shaped.tree, shaped.rows.X)
    assert np.diff(path.indptr).tolist() == (shaped.tree.depth[shaped.routed.node] + 1).tolist()


@pytest.mark.full
@pytest.mark.parametrize("shape", [chain(1500, rows_a_leaf=8), balanced(10, rows_a_leaf=8)])
def test_raising_stores_the_rows_of_a_path_once(shape, monkeypatch):
    """Separate copies of all rows of a path would be 700 times the table in a chain."""
    held, walks, visit = [], [], pessimistic.visit_nodes

    def spy(walk, n_threads):
        walks.append(walk)
        held.append(visit(walk, n_threads))

    monkeypatch.setattr(pessimistic, "visit_nodes", spy)
    tree, n = shape.tree, shape.rows.target.size
    assert Pessimistic().prune_tree(tree, shape.rows).equals(tree)
    assert held[0] <= 4 * n  # twice the table, grown by doubling
    units = (walks[0].units + walks[0].moved).sum(axis=1)
    assert (units == tree.n_rows * (units[0] // n)).all()  # and no row was lost


@pytest.mark.full
def test_raising_routes_only_the_other_rows_down_a_branch():
    """Test a chain in which all rows down every branch would be 1e11 steps."""
    shape = chain(6_000, rows_a_leaf=4)
    assert Pessimistic().prune_tree(shape.tree, shape.rows).equals(shape.tree)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(2, 4))
def test_sums_over_subtrees_and_ancestors(seed, n_inner, branches):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_inner, branches, 2)
    values = rng.integers(-5, 6, tree.n_nodes)
    total, least = add_up(tree.parent, values), tree.over_ancestors(np.minimum, values, 99)
    for node in range(tree.n_nodes):
        above, at = [], int(tree.parent[node])
        while at >= 0:
            above.append(int(values[at]))
            at = int(tree.parent[at])
        assert least[node] == min(above, default=99)
        assert total[node] == values[node] + sum(total[child] for child in tree.children(node))
