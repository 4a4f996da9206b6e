"""The figures of the pages: ``python -m benchmarks.figures`` draws them anew.

PNG files, for they are smaller than SVG; the same at each run with the same matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gputree
from gputree import DecisionTreeClassifier
from gputree.export import plot_cp_table
from gputree.pruning import (
    CostComplexity,
    CostComplexityCV,
    PenalizedLoss,
    Pessimistic,
    Pruner,
    ReducedError,
    ValidationPrePruning,
)
from gputree.tree import Tree

PRUNING = Path(gputree.__file__).parent / "pruning"
ROWS, TEST_ROWS, NOISE = 400, 20_000, 0.15
KEPT, GONE = "C0", "0.82"
DPI = 110

# What each panel is called, its method, and the rows that the method asks for.
PANELS: dict[str, tuple[Pruner, str | None]] = {
    "CostComplexity(0.005)": (CostComplexity(0.005), None),
    'CostComplexityCV(rule="1se")': (CostComplexityCV(rule="1se", random_state=0), "training"),
    "PenalizedLoss(5)": (PenalizedLoss(5.0), None),
    "Pessimistic(subtree_raising=False)": (Pessimistic(subtree_raising=False), None),
    "ReducedError()": (ReducedError(), "validation"),
    "ValidationPrePruning()": (ValidationPrePruning(), "validation"),
}

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]


def wave(n: int, seed: int) -> Rows:
    """`n` points of the unit square, above or below a wave; every seventh or so is mislabelled."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    above = X[:, 1] > 0.5 + 0.3 * np.sin(2 * np.pi * X[:, 0])
    return X, (above ^ (rng.random(n) < NOISE)).astype(int)


def six_prunings() -> None:
    """One tree, and what each method leaves of it."""
    rows = {"training": wave(ROWS, 0), "validation": wave(ROWS // 2, 1)}
    test = wave(TEST_ROWS, 2)
    model = DecisionTreeClassifier().fit(*rows["training"])
    figure = new_figure(10, 5.4)
    axes = figure.subplots(2, 3)
    for ax, (name, (pruner, takes)) in zip(axes.flat, PANELS.items(), strict=True):
        pruned = pruner.prune(model, *(rows[takes] if takes else ()))
        draw_skeleton(ax, model.tree_, pruned.tree_)
        ax.set_title(name, fontsize=11)
        caption = f"{pruned.get_n_leaves()} leaves, test accuracy {pruned.score(*test):.3f}"
        ax.text(0.5, -0.04, caption, transform=ax.transAxes, ha="center", fontsize=9)
    figure.suptitle(
        f"One tree of {model.get_n_leaves()} leaves (test accuracy {model.score(*test):.3f}), "
        f"pruned six ways: what is kept is blue",
        fontsize=12,
    )
    save(figure, PRUNING / "six_prunings.png")


def cp_table() -> None:
    """The table that chose the second panel's tree."""
    rows = wave(ROWS, 0)
    pruner = CostComplexityCV(rule="1se", random_state=0)
    pruner.prune(DecisionTreeClassifier().fit(*rows), *rows)
    figure = new_figure(6.4, 3.6)
    plot_cp_table(pruner, ax=figure.add_subplot())
    save(figure, PRUNING / "cp_table.png")


def draw_skeleton(ax: Any, tree: Tree, pruned: Tree) -> None:
    """The lines of `tree`, those of `pruned` in colour; a child is left of the next one."""
    place = leaf_ranks(tree)
    kept = kept_nodes(tree, pruned)
    for shown, color, width in ((~kept, GONE, 0.7), (kept, KEPT, 1.6)):
        node = 1 + np.flatnonzero(shown[1:])
        up, gap = tree.parent[node], np.full(node.size, np.nan)  # one path is a small file
        x = np.column_stack([place[up], place[node], place[node], gap]).ravel()
        y = -np.column_stack([tree.depth[up], tree.depth[up], tree.depth[node], gap]).ravel()
        ax.plot(x, y, color=color, linewidth=width)
    ends = kept & (tree.is_leaf | ~np.append(kept, False)[tree.first_child])
    ax.plot(place[ends], -tree.depth[ends], "o", color=KEPT, markersize=4)
    ax.set_axis_off()


def leaf_ranks(tree: Tree) -> NDArray[np.float64]:
    """Leaves from left to right; an inner node midway of its outermost children."""
    place, stack, n_leaves = np.zeros(tree.n_nodes), [0], 0
    while stack:
        node = stack.pop()
        stack.extend(reversed(tree.children(node)))
        if tree.is_leaf[node]:
            place[node] = n_leaves
            n_leaves += 1
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        place[node] = place[[tree.children(node)[0], tree.children(node)[-1]]].mean()
    return place


def kept_nodes(tree: Tree, pruned: Tree) -> NDArray[np.bool_]:
    """Nodes of `tree` that `pruned`, the same splits down to its leaves, still has."""
    kept, pairs = np.zeros(tree.n_nodes, dtype=bool), [(0, 0)]
    while pairs:
        node, image = pairs.pop()
        kept[node] = True
        pairs += zip(tree.children(node), pruned.children(image), strict=False)
    return kept


def new_figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure  # asv imports this file, also where there is none

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=DPI)
    print(path)


def main() -> None:
    six_prunings()
    cp_table()


if __name__ == "__main__":
    main()
