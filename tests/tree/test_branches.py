"""Categories that lead to nodes: their lists, ranges that nodes share, and lookup."""

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table
from multiway_trees import multiway_cases, visit
from processes import run_python
from strategies import examples

from gputree import DecisionTreeClassifier, prediction
from gputree.base.dtypes import SUBSET_SPLIT
from gputree.prediction import descent
from gputree.tree import Tree
from gputree.tree.branches import BranchLists

CHAIN = 40


def chain(n_words: int = CHAIN, seed: int = 0) -> DecisionTreeClassifier:
    """Grow a tree that separates one word after another from the rest."""
    rng = np.random.default_rng(seed)
    word = rng.permutation(np.repeat(np.arange(n_words), 2))
    model = DecisionTreeClassifier(
        categorical_features=[0], categorical_split="one_vs_rest", device="cpu"
    )
    return model.fit(word[:, None], rng.integers(0, 2, word.size))


def told_apart(tree: Tree) -> Tree:
    """The same tree whose nodes share nothing."""
    pairs = [(node, code) for node in range(tree.n_nodes) for code in tree.categories(node)]
    node, code = np.array(pairs).reshape(-1, 2).T
    return replace(tree, **BranchLists.of_pairs(tree.n_nodes, node, code)._asdict())


def test_a_chain_of_tests_takes_the_memory_of_its_first():
    tree = chain().tree_
    tree.check()
    assert tree.max_depth > CHAIN // 3
    assert tree.branch_code.size == CHAIN
    for node in np.flatnonzero(tree.tests_categories):
        code, child = tree.branches(node)
        assert code.size == CHAIN - tree.depth[node]
        assert (np.diff(code) > 0).all()
        assert np.count_nonzero(child == 0) == 1


def test_trees_are_equal_whatever_they_share():
    tree = chain().tree_
    apart = told_apart(tree)
    apart.check()
    assert apart.branch_code.size > 5 * CHAIN
    assert tree.equals(apart)
    assert apart.equals(tree)
    codes = tree.branch_code.copy()
    codes[[0, -1]] = codes[[-1, 0]]
    assert not tree.equals(replace(tree, branch_code=codes))
    assert not apart.equals(replace(tree, branch_code=codes))


@given(multiway_cases(min_rows=1))
@examples(50)
def test_lists_are_searched_as_tables_are_read(case):
    tree, rows = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descent, "FEW_CODES", 0)
        patch.setattr(descent, "CODES_PER_CATEGORY", 0)
        shares = prediction.stopping_shares(tree, rows).toarray()
    for row, found in zip(rows, shares, strict=True):
        expected = np.zeros(tree.n_nodes)
        for node, share in visit(tree, row).items():
            expected[node] += share
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("few", [0, 64])
def test_a_shared_list_answers_as_lists_of_their_own(few, monkeypatch):
    monkeypatch.setattr(descent, "FEW_CODES", few)
    monkeypatch.setattr(descent, "CODES_PER_CATEGORY", 0)
    tree = chain().tree_
    rows = np.append(np.arange(-1.0, CHAIN + 3), np.nan)[:, None]
    expected = [max(visit(tree, row), key=visit(tree, row).get) for row in rows]
    assert prediction.apply(tree, rows).tolist() == expected
    assert prediction.apply(told_apart(tree), rows).tolist() == expected


@given(st.integers(0, 10**6), st.integers(1, 12))
@examples(30)
def test_collapsing_keeps_what_leads_to_the_nodes_that_stay(seed, depth):
    table = random_mixed_table(seed, 150, weighted=seed % 2 == 0)
    nominal = np.flatnonzero(table.nominal)
    model = DecisionTreeClassifier(
        categorical_features=nominal, categorical_split="one_vs_rest", device="cpu"
    ).fit(table.X, table.y, sample_weight=table.weight)
    tree = model.tree_
    cut = tree.collapse(tree.depth >= depth)
    cut.check()
    kept = np.flatnonzero(tree.depth <= depth)
    assert cut.n_nodes == kept.size
    for node, old in enumerate(kept):
        assert cut.categories(node).tolist() == tree.categories(old).tolist()
    assert cut.branch_code.size <= tree.branch_code.size


def overlapping(tree: Tree) -> dict[str, np.ndarray]:
    """Two nodes that share a list, of which one tests another column."""
    shared = np.flatnonzero(tree.branch_spans.top != np.arange(tree.n_nodes))
    feature = tree.feature.copy()
    feature[shared[-1]] = 1
    return {"feature": feature}


def test_lists_that_cannot_be_shared_are_told():
    tree = replace(chain().tree_, n_features=2)
    with pytest.raises(ValueError, match="nodes of several columns share a list"):
        replace(tree, **overlapping(tree)).check()
    kind = np.where(tree.split_kind == SUBSET_SPLIT, 2, 0).astype(np.uint8)
    with pytest.raises(ValueError, match="lists overlap that are not shared"):
        replace(tree, split_kind=kind).check()


MANY = """
import resource
import numpy as np
from gputree import DecisionTreeClassifier, ID3Classifier

rng = np.random.default_rng(0)
words = rng.integers(0, 4000, (8000, 2))
y = rng.integers(0, 2, 8000)
{model}.fit(words[:300], y[:300])  # compiles
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20), -1))
model = {model}.fit(words, y)
model.predict(words)
tree = model.tree_
assert tree.branch_code.size <= {most} * words.shape[0], tree.branch_code.size
tree.check()
assert tree.collapse(tree.depth > 5).n_nodes > 1
"""


@pytest.mark.process
@pytest.mark.parametrize(("model", "most"), [("ID3Classifier(device='cpu', n_jobs=1)", 2)])
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_two_columns_of_many_words_take_little_memory(model, most):
    """With a table over all words for each node it would be hundreds of megabytes more."""
    program = MANY.format(model=model, most=most)
    environment = {**os.environ, "GPUTREE_JIT": "always"}  # the compiler is loaded before the limit
    run_python("-c", program, env=environment)
