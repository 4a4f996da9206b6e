"""The cost-complexity sequence of a tree, as rpart's printcp prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gputree._texts import aligned

if TYPE_CHECKING:
    from gputree.pruning.complexity_table import CPTable
    from gputree.pruning.cost_complexity import Risk
    from gputree.tree import Tree


def cp_text(estimator: Any) -> str:
    """Cost-complexity table of a model of one tree, below the figures that it is relative to."""
    from gputree.pruning import cp_table

    tree: Tree = estimator.tree_
    is_validated = hasattr(estimator, "cp_table_")
    table: CPTable = estimator.cp_table_ if is_validated else cp_table(tree, "error")
    lines = {
        "columns used": ", ".join(_used(estimator)) or "none",
        "root node error": _root_risk(tree, "error"),
    }
    if table.risk == "impurity" and tree.task == "classification":
        lines[f"root node {tree.criterion}"] = _root_risk(tree, "impurity")
    lines["rows"] = f"{tree.n_rows[0]:,}"
    return f"{aligned(lines)}\n\n{table}\n\n{_hint(tree, table, is_validated)}"


def _used(estimator: Any) -> list[str]:
    """Names of the columns that the tree tests, in their order."""
    tree = estimator.tree_
    names = getattr(estimator, "feature_names_in_", None)
    tested = np.unique(tree.feature[~tree.is_leaf]).tolist()
    return [f"x{f}" if names is None else str(names[f]) for f in tested]


def _root_risk(tree: Tree, risk: Risk) -> str:
    """Cost of the root, over the weight of the rows."""
    from gputree.pruning.cost_complexity import node_risk

    cost, weight = float(node_risk(tree, risk)[0]), float(tree.weight[0])
    return f"{cost:.6g}/{weight:.6g} = {cost / weight:.5g}"


def _hint(tree: Tree, table: CPTable, is_validated: bool) -> str:
    """Hint: the option that makes the tree of a line, and that which adds errors of new rows."""
    risk = f",risk={table.risk}" if tree.task == "classification" else ""
    advice = f"--pruning cost_complexity:cp=CP{risk} makes the tree of a line."
    if is_validated:
        return advice
    return f"{advice} xerror and xstd: train or prune with --pruning cost_complexity_cv."
