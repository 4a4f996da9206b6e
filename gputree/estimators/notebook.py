"""The tree or its first levels, below scikit-learn's diagram of an estimator in notebooks."""

from __future__ import annotations

import html
from typing import Any

# Maximum number of lines; larger trees are shown to a limited depth.
MOST_LINES = 40


def html_of_model(estimator: Any) -> str:
    """The tree or the rules as HTML; an empty string before `fit` and for boosted estimators.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    str
        With names and labels escaped.
    """
    if hasattr(estimator, "rules_"):
        lines = estimator.rules_.to_text().splitlines()
        about = f"{len(lines) - 1:,} rules, and a default class"
    elif hasattr(estimator, "tree_"):
        tree = estimator.tree_
        lines = _lines_of_tree(estimator)
        about = f"{tree.n_nodes:,} nodes, {tree.n_leaves:,} leaves, depth {tree.max_depth}"
    else:
        return ""
    more = len(lines) - MOST_LINES
    shown = lines if more <= 0 else [*lines[:MOST_LINES], f"... {more:,} more"]
    return (
        f"<details open><summary>{about}</summary>"
        f'<pre style="overflow-x: auto">{html.escape(chr(10).join(shown))}</pre></details>'
    )


def _lines_of_tree(estimator: Any) -> list[str]:
    """Text of as many levels as have at most `MOST_LINES` nodes, at least one split."""
    from gputree.export import export_text

    tree = estimator.tree_
    deepest = max(sum(level.stop <= MOST_LINES for level in tree.levels()) - 1, 1)
    return export_text(estimator, max_depth=deepest).splitlines()
