"""A subtree in place of another: how a part of a tree is exchanged without growing the rest."""

from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from gputree.base.dtypes import NO_CHILD, NODE, Int64s
from gputree.tree.branches import BranchLists, concatenated_ranges
from gputree.tree.tree import Tree


class Grafted(NamedTuple):
    """A tree after one of its subtrees was replaced.

    `origin`, of shape (N,), has the number that each node had before; -1 for those of the new
    subtree, whose root keeps the number of the node that it replaces.
    """

    tree: Tree
    origin: Int64s


def graft(tree: Tree, node: int, subtree: Tree) -> Grafted:
    """Replace the subtree below and at `node`; both are of the same columns and classes.

    Bounds on predictions, which depend on nodes above, and soft thresholds are not supported.
    """
    n = tree.n_nodes
    per_node = {
        field.name: np.concatenate([one, getattr(subtree, field.name)])
        for field in fields(tree)
        if isinstance(one := getattr(tree, field.name), np.ndarray)
    }
    for name, values in per_node.items():
        if not name.startswith("branch_"):  # the categories that lead to `node` stay
            values[node] = values[n]
    lists = BranchLists(*(per_node.pop(name) for name in BranchLists._fields))
    for places in (lists.branch_begin, lists.branch_end):
        places[n:] += tree.branch_code.size
    child = per_node["first_child"]
    child[n:] = np.where(child[n:] < 0, NO_CHILD, child[n:] + n)
    child[node] = child[n]
    order, parent, depth = _breadth_first(child, per_node["n_children"])
    taken: dict[str, Any] = {name: values[order] for name, values in per_node.items()}
    counts = taken["n_children"].astype(np.int64)
    first = 1 + np.cumsum(counts) - counts
    taken |= {
        "first_child": np.where(counts > 0, first, NO_CHILD).astype(NODE),
        "parent": parent.astype(NODE),
        "depth": depth.astype(NODE),
    }
    made = replace(tree, **taken, **lists.take(order)._asdict())
    return Grafted(made, np.where(order < n, order, NO_CHILD))


def _breadth_first(child: Int64s, counts: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Nodes that the root leads to, level by level; their parents' new numbers, and depths."""
    levels, parents = [np.array([0])], [np.array([NO_CHILD])]
    seen = 0
    while levels[-1].size:
        above = levels[-1]
        size = counts[above].astype(np.int64)
        parents.append(np.repeat(np.arange(seen, seen + above.size), size))
        levels.append(concatenated_ranges(child[above].astype(np.int64), size))
        seen += above.size
    depth = np.repeat(np.arange(len(levels)), [level.size for level in levels])
    return np.concatenate(levels), np.concatenate(parents), depth
