"""What splits do with the values of a table, against plain NumPy and one node at a time."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_tables import random_mixed_table

from gputree import C45Classifier
from gputree.dtypes import UNSEEN
from gputree.pruning import raising_splits
from gputree.pruning.raising_splits import column_ends, find_plain


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 4, 5, 103, 1000])
@pytest.mark.parametrize(("wide", "block"), [(1, 1), (15, 30), (1 << 11, 1 << 18)])
def test_ends_are_numpys_however_rows_are_taken(order, n, wide, block, monkeypatch):
    monkeypatch.setattr(raising_splits, "WIDE_ROW", wide)
    monkeypatch.setattr(raising_splits, "BLOCK_CELLS", block)
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    X[rng.integers(n), 1] = np.nan
    X[-1, 2] = 9
    ends = column_ends(np.asarray(X, order=order), 2)
    np.testing.assert_array_equal(ends.missing, [False, True, False])
    np.testing.assert_array_equal(ends.least[~ends.missing], X.min(axis=0)[[0, 2]])
    np.testing.assert_array_equal(ends.greatest[~ends.missing], X.max(axis=0)[[0, 2]])


def plain_one_by_one(tree, X):
    plain = []
    for node in range(tree.n_nodes):
        column = X[:, max(tree.feature[node], 0)]
        is_plain = tree.is_leaf[node] or not np.isnan(column).any()
        if tree.tests_categories[node]:
            children = tree.first_child[node] + np.arange(tree.n_children[node])
            lists = [tree.branch_code[tree.branch_begin[c] : tree.branch_end[c]] for c in children]
            is_plain = is_plain and [code.tolist() for code in lists] == [
                [c] for c in range(len(children))
            ]
            is_plain = is_plain and set(column) <= set(range(len(children)))
        plain.append(is_plain)
    return np.array(plain)


@pytest.mark.parametrize("binary_splits", [False, True])
@pytest.mark.parametrize("holes", [False, True])
def test_plain_nodes(binary_splits, holes):
    kinds = set()
    for seed in range(6):
        table = random_mixed_table(seed, 200, weighted=False)
        X = table.X if holes else np.nan_to_num(table.X)
        model = C45Classifier(
            pruning=None, binary_splits=binary_splits, min_samples_leaf=1,
            categorical_features=table.nominal,
        ).fit(X, table.y)  # fmt: skip
        tree, values = model.tree_, model._values(X)
        for change in (None, UNSEEN, 1000.0):
            changed = values.copy()
            if change is not None:
                changed[0, table.nominal] = change
            plain = find_plain(tree, column_ends(changed, 1))
            np.testing.assert_array_equal(plain, plain_one_by_one(tree, changed))
            kinds.update(zip(tree.tests_categories.tolist(), plain.tolist(), strict=True))
    assert {(False, True), (True, False)} <= kinds
