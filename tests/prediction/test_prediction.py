"""Descent against a row-by-row oracle."""

import pickle
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hand_made_trees import binary_tree, chain
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import answer, heaviest, multiway_cases, random_multiway_tree, stops, visit
from multiway_trees import random_rows as multiway_rows
from pruning_oracles import random_shape

from gputree import prediction
from gputree.base.dtypes import MISSING_TO_ALL
from gputree.prediction import answers
from gputree.prediction import descent as descent_
from gputree.prediction.forest import number_answers


def random_tree(rng, n_splits, n_features=4):
    """Leaves are split at random, breadth-first."""
    n_children = random_shape(rng, n_splits, 2)
    first_child = np.where(n_children, 1 + np.cumsum(n_children) - n_children, -1)
    thresholds = [-1.0, 0.0, 0.5, 1.0 + 2**-30, 3e38, np.inf]
    size = n_children.size
    return binary_tree(
        first_child,
        rng.integers(0, n_features, size),
        rng.choice(thresholds, size),
        rng.integers(0, 2, size),
        n_features,
    )


def random_rows(rng, n, n_features=4, dtype=np.float64):
    special = [np.nan, -0.0, 0.0, 0.5, 1.0, 1.0 + 2**-30, 1.0 + 2**-29, -3e38, 3e38, 1e-45]
    return rng.choice(special, (n, n_features)).astype(dtype)


@given(st.integers(0, 10**6), st.integers(0, 60), st.sampled_from([np.float32, np.float64]))
def test_apply(seed, n_splits, dtype):
    rng = np.random.default_rng(seed)
    tree, rows = random_tree(rng, n_splits), random_rows(rng, 50, dtype=dtype)
    expected = [heaviest(tree, row) for row in rows]
    np.testing.assert_array_equal(prediction.apply(tree, rows), expected)


@pytest.mark.parametrize("n_rows", [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 100])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_blocks_and_threads(monkeypatch, n_rows, n_threads):
    """Spans of threads, and of rows that walk together, end anywhere."""
    monkeypatch.setattr(answers, "FEWEST_ROWS", 7)
    rng = np.random.default_rng(n_rows)
    tree, rows = random_tree(rng, 30), random_rows(rng, n_rows)
    expected = [heaviest(tree, row) for row in rows]
    leaves = prediction.apply(tree, rows, n_threads)
    assert leaves.dtype == np.int32
    np.testing.assert_array_equal(leaves, expected)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 40))
def test_rows_that_arrive_are_left_out(seed, levels, n_rows):
    """However many levels rows descend before that."""
    rng = np.random.default_rng(seed)
    tree, values = chain(17), rng.uniform(-1.0, 20.0, (n_rows, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descent_, "LEVELS", levels)  # read where it is interpreted
        patch.delattr(descent_.walk, "interpret", raising=False)
        leaves = prediction.apply(tree, values)
    assert leaves.tolist() == [heaviest(tree, row) for row in values]


@given(
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(np.float32),
    st.integers(-2, 2),
)
def test_float32_rows_fall_to_the_side_of_their_value(threshold, value, ulps):
    """Thresholds are packed in the type of the rows, and part these as before: near them, too."""
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
    for _ in range(abs(ulps)):
        near = np.nextafter(near, np.float32(np.inf * ulps))
    tree = binary_tree([1, -1, -1], [0, 0, 0], [threshold, 0, 0], [0, 0, 0], 1)
    rows = np.array([[value], [near]], np.float32)
    expected = [2 if float(x) > threshold else 1 for x in rows[:, 0]]
    assert prediction.apply(tree, rows).tolist() == expected


@pytest.mark.parametrize(
    "of_node",
    [
        np.arange(61),
        np.arange(122.0).reshape(61, 2)[::-1],
        np.array(list(map(str, range(61))), object),
    ],
)
@pytest.mark.parametrize("n_rows", [0, 1, 50])
def test_take(monkeypatch, of_node, n_rows):
    """An array by nodes, of any type and shape, at the node that each row reaches."""
    monkeypatch.setattr(answers, "FEWEST_ROWS", 7)
    monkeypatch.setattr(answers, "BLOCK_ROWS", 5)
    rng = np.random.default_rng(n_rows)
    tree, rows = random_tree(rng, 30), random_rows(rng, n_rows)
    assert tree.n_nodes == len(of_node)
    for n_threads in (1, 3):
        found = prediction.take(tree, rows, of_node, n_threads)
        assert found.dtype == of_node.dtype
        np.testing.assert_array_equal(found, of_node[prediction.apply(tree, rows)])


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 150))
def test_nodes_that_are_moved_answer_the_same(seed, n_splits, n_rows):
    """Depth-first, every node has one place."""
    rng = np.random.default_rng(seed)
    tree, rows = random_tree(rng, n_splits), random_rows(rng, n_rows, dtype=np.float32)
    expected = [heaviest(tree, row) for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(descent_, "FEW_NODES", 0)
        place = descent_.arranged(tree, rows.dtype).place
        assert sorted(place) == list(range(tree.n_nodes))
        assert (np.diff(place[1:].reshape(-1, 2)) == 1).all()  # siblings stay together
        np.testing.assert_array_equal(prediction.apply(tree, rows), expected)


def test_a_tree_is_packed_once(monkeypatch):
    """For each type of values; not in pickles, nor in trees with other arrays."""
    made = []
    arrange = descent_.arrange
    monkeypatch.setattr(descent_, "arrange", lambda *given: made.append(1) or arrange(*given))
    rng = np.random.default_rng(0)
    tree, rows = random_tree(rng, 30), random_rows(rng, 50)
    expected = prediction.apply(tree, rows)
    for n in (1, 50):
        np.testing.assert_array_equal(prediction.apply(tree, rows[:n]), expected[:n])
    assert len(made) == 1
    prediction.apply(tree, rows.astype(np.float32))
    assert len(made) == 2
    restored = pickle.loads(pickle.dumps(tree))
    assert vars(restored).keys() == {field.name for field in fields(tree)}
    np.testing.assert_array_equal(prediction.apply(restored, rows), expected)
    other = replace(tree, missing_child=np.where(tree.is_leaf, tree.missing_child, 0))
    rows[:, :] = np.nan
    expected = [heaviest(other, row) for row in rows]
    np.testing.assert_array_equal(prediction.apply(other, rows), expected)


@pytest.mark.parametrize("few_nodes", [0, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tree_that_is_modified_in_place_is_packed_again(monkeypatch, dtype, few_nodes):
    """scikit-learn's users move thresholds, and cut trees back, so."""
    monkeypatch.setattr(descent_, "FEW_NODES", few_nodes)
    rng = np.random.default_rng(0)
    tree, rows = random_tree(rng, 30), random_rows(rng, 50, dtype=dtype)
    before = prediction.apply(tree, rows)
    tree.threshold[0] += 1.0
    moved = prediction.apply(tree, rows)
    assert (moved != before).any()
    np.testing.assert_array_equal(moved, prediction.apply(replace(tree), rows))
    tree.n_children[np.flatnonzero(tree.n_children)[1]] = 0  # its children stay in the arrays
    cut = prediction.apply(tree, rows)
    assert (cut != moved).any()
    assert cut.tolist() == [heaviest(tree, row) for row in rows]
    tree.n_children[0] = 0
    np.testing.assert_array_equal(prediction.apply(tree, rows), 0)


# ---------------------------------------------------- branches and shares
@given(multiway_cases())
def test_apply_on_branches(case):
    tree, rows = case
    expected = [max(stops(tree, row).items(), key=lambda s: (s[1], -s[0]))[0] for row in rows]
    np.testing.assert_array_equal(prediction.apply(tree, rows), expected)


@given(multiway_cases())
def test_class_distributions(case):
    """To the last bit: shares are added in the order of nodes."""
    tree, rows = case
    expected = np.zeros((len(rows), tree.n_classes))
    for i, row in enumerate(rows):
        for node, share in stops(tree, row).items():
            expected[i] += share * answer(tree, node)
    np.testing.assert_array_equal(prediction.class_distributions(tree, rows), expected)


@given(multiway_cases())
def test_stopping_shares(case):
    tree, rows = case
    shares = prediction.stopping_shares(tree, rows)
    assert shares.shape == (len(rows), tree.n_nodes)
    for row, begin, end in zip(rows, shares.indptr, shares.indptr[1:], strict=False):
        found = zip(shares.indices[begin:end], shares.data[begin:end], strict=True)
        assert dict(found) == stops(tree, row)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@given(multiway_cases())
def test_decision_path_of_parts(case):
    tree, rows = case
    indicator = prediction.decision_path(tree, rows)
    assert indicator.shape == (len(rows), tree.n_nodes)
    for row, begin, end in zip(rows, indicator.indptr, indicator.indptr[1:], strict=False):
        assert indicator.indices[begin:end].tolist() == sorted(visit(tree, row))
    assert (indicator.data == 1).all()


@pytest.mark.parametrize("policy", ["all", "child"])
@pytest.mark.parametrize("n_rows", [0, 1, 8, 31, 100])
def test_threads_change_nothing(monkeypatch, policy, n_rows):
    monkeypatch.setattr(answers, "FEWEST_ROWS", 7)
    monkeypatch.setattr(answers, "BLOCK_ROWS", 5)
    rng = np.random.default_rng(n_rows)
    tree, rows = random_multiway_tree(rng, 25, policy), multiway_rows(rng, n_rows)
    for descent in (prediction.apply, prediction.class_distributions):
        np.testing.assert_array_equal(descent(tree, rows, 3), descent(tree, rows))
    for descent in (prediction.stopping_shares, prediction.decision_path):
        ours, alone = descent(tree, rows, 3), descent(tree, rows)
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(alone, name))


@pytest.mark.parametrize("policy", ["all", "child"])
def test_every_row_is_shown_once_before_it_walks(monkeypatch, policy):
    monkeypatch.setattr(answers, "BLOCK_ROWS", 16)
    rng = np.random.default_rng(3)
    tree, rows = random_multiway_tree(rng, 10, policy), multiway_rows(rng, 50)
    for descent in (
        prediction.apply,
        prediction.class_distributions,
        prediction.stopping_shares,
        prediction.decision_path,
    ):
        shown = []
        descent(tree, rows, 1, before=lambda a, b, shown=shown: shown.extend(range(a, b)))
        assert shown == list(range(50))


def test_a_chain_of_unknowns_is_walked_without_recursion():
    tree = chain(2000)
    tree = replace(tree, missing_child=np.where(tree.is_leaf, -2, MISSING_TO_ALL).astype(np.int32))
    shares = prediction.stopping_shares(tree, np.array([[np.nan], [0.5]]))
    halves = [*(2.0 ** -np.arange(1, 1075)), 0.0]  # the smallest share there is; then nothing
    assert shares.data[:1074].tolist() == halves[:1074]
    assert shares[1].indices.tolist() == [3]


def test_a_node_without_weight_keeps_what_it_cannot_place():
    tree = random_multiway_tree(np.random.default_rng(0), 1, "all")
    empty = replace(tree, weight=np.zeros(tree.n_nodes), statistics=0 * tree.statistics)
    shares = prediction.stopping_shares(empty, np.full((1, tree.n_features), np.nan))
    assert shares.indices.tolist() == [0]


# ------------------------------------------------------- rows at a time
@given(st.integers(0, 10**6), st.integers(0, 20), st.integers(1, 4))
def test_predictions_are_numbered(seed, n, n_classes):
    """A single class has its code; each of the others, and targets, a number after those."""
    answers = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], (n, n_classes))
    single = np.count_nonzero(answers, axis=1) == 1
    for of_weights in (True, False):
        number = np.empty(n, np.uint32)
        number_answers(answers, np.array([0, n]), np.array([of_weights]), number)
        single &= of_weights | (answers.sum(axis=1) == 1.0)
        others = n_classes + np.cumsum(~single) - 1
        np.testing.assert_array_equal(number, np.where(single, answers.argmax(axis=1), others))


def test_rows_of_many_trees_are_divided_among_threads():
    """A row costs another thread as much as it has trees."""
    n, kernel = answers.FEWEST_ROWS // 4, SimpleNamespace(is_loaded=True)
    values = np.empty((n, 1))
    for trees, threads, parts in [(4, 9, 1), (7, 9, 1), (8, 9, 2), (40, 4, 4), (40, 1, 1)]:
        found = answers.run_blocks(values, threads, None, lambda *block: block, kernel, n, trees)
        assert len(found) == parts
    found = answers.run_blocks(values[:1], 4, None, lambda *block: block, kernel, n, 10**6)
    assert found == [(0, 1)]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("is_loaded", [False, True])
def test_blocks_cover_all_rows_in_order(is_loaded, n_threads):
    n, read = 100_000, []
    kernel = SimpleNamespace(is_loaded=is_loaded)
    blocks = answers.run_blocks(
        np.empty((n, 1)), n_threads, lambda *block: read.append(block), lambda *block: block, kernel
    )
    assert [begin for begin, _ in blocks] == [0, *(end for _, end in blocks[:-1])]
    assert blocks[-1][1] == n
    assert sorted(read) == blocks
    sizes = [end - begin for begin, end in blocks]
    assert max(sizes) == answers.BLOCK_ROWS
    # The first shows what rows take, before much is interpreted.
    assert sizes[0] == (answers.BLOCK_ROWS if is_loaded else answers.FIRST_ROWS)
    assert all(size <= 2 * before for before, size in zip(sizes[:2], sizes[1:3], strict=True))
