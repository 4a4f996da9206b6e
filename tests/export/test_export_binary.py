"""Trees of any kind as binary ones: every value ends where the tree sends it."""

import numpy as np
from hypothesis import given
from multiway_trees import heaviest, multiway_cases

from gputree.export.binary import as_binary
from gputree.export.model import model_of, single_paths


def walk(binary, row) -> int:
    """The source of the leaf that a row reaches."""
    left, at = binary.left, 0
    while not binary.is_leaf[at]:
        x, threshold = row[binary.feature[at]], binary.threshold[at]
        if np.isnan(threshold):
            goes_left = x in binary.codes[at]
        else:
            goes_left = bool(binary.missing_left[at]) if np.isnan(x) else x <= threshold
        at = left[at] if goes_left else binary.right[at]
    return int(binary.source[at])


@given(multiway_cases())
def test_every_value_ends_where_the_tree_sends_it(case):
    tree, values = case
    model = single_paths(model_of(tree), "largest", "a test")
    binary = as_binary(model)
    assert [walk(binary, row) for row in values] == [heaviest(tree, row) for row in values]


@given(multiway_cases(max_rows=0))
def test_every_node_but_the_root_has_one_parent(case):
    model = single_paths(model_of(case[0]), "largest", "a test")
    binary = as_binary(model)
    inner = ~binary.is_leaf
    below = np.concatenate([binary.left[inner], binary.right[inner]])
    assert sorted(below) == list(range(1, inner.size))
