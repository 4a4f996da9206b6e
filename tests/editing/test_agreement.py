"""Sides of rows by splits, counted row by row; and agreements of splits in groups."""

import numpy as np
import pytest

from gputree import DecisionTreeClassifier
from gputree.editing import TreeEditor, alternatives


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sides_are_those_of_each_row(dtype):
    rng = np.random.default_rng(1)
    n = 2 * alternatives.BLOCK_ROWS + 9  # blocks of which the last is not full
    values = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n)]).astype(dtype)
    values[rng.random(values.shape) < 0.1] = np.nan
    rows = np.flatnonzero(rng.random(n) < 0.9)
    cut = float(np.nanmedian(values[:, 0])) + 1e-12  # not a float32
    # a threshold, category 2, and categories 0 and 4
    feature, threshold = np.array([0, 1, 1]), np.array([cut, np.nan, np.nan])
    ends = np.array([0, 0, 3, 8])
    is_first = np.array([0, 0, 1, 1, 0, 0, 0, 1], np.bool_)
    sides = np.full((3, rows.size), 9, np.uint8)
    for begin, end in ((0, 7), (7, rows.size)):
        given = values, rows, feature, threshold, ends, is_first, sides, begin, end
        alternatives.assign_sides(*given)
    firsts = [lambda x: x <= cut, lambda x: x == 2, lambda x: x in (0, 4)]
    for found, f, first in zip(sides, feature, firsts, strict=True):
        expected = [
            alternatives.UNKNOWN
            if x != x
            else alternatives.FIRST
            if first(x)
            else alternatives.SECOND
            for x in map(float, values[rows, f])
        ]
        assert found.tolist() == expected


def test_splits_are_compared_in_groups_of_any_size(monkeypatch):
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(90, 5)), rng.random(90)
    editor = TreeEditor(DecisionTreeClassifier(max_depth=1), X, X[:, 1] > 0.2, weight)
    whole = list(editor.alternatives(0))
    assert len({one.agreement for one in whole}) == 5
    monkeypatch.setattr(alternatives, "GROUP", 2)
    assert list(editor.alternatives(0)) == whole
