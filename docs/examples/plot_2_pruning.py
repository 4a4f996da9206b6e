"""
Pruning methods, illustrated
============================

A tree grown to full depth overfits. Pruning removes splits bottom-up. The figures show the decision
regions of two columns before and after.
"""

import matplotlib.pyplot as plt
import numpy as np

from gputree import DecisionTreeClassifier
from gputree.export import plot_cp_table, plot_partition, plot_pruning_path
from gputree.pruning import CostComplexityCV, Pessimistic, ReducedError


def wave(n, seed):
    """`n` points of the unit square, above or below a wave; every seventh or so mislabelled."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    above = X[:, 1] > 0.5 + 0.3 * np.sin(2 * np.pi * X[:, 0])
    return X, (above ^ (rng.random(n) < 0.15)).astype(int)


rows, held_out, test = wave(400, 0), wave(200, 1), wave(20_000, 2)
full = DecisionTreeClassifier().fit(*rows)

# %%
# Three methods and the unpruned tree. `CostComplexityCV` grows trees on folds of the
# training rows, `Pessimistic` uses the training rows only, `ReducedError` uses held-out rows.
pruner = CostComplexityCV(rule="1se", random_state=0)
trees = {
    "grown out": full,
    "CostComplexityCV": pruner.prune(full, *rows),
    "Pessimistic": Pessimistic().prune(full, *rows),
    "ReducedError": ReducedError().prune(full, *held_out),
}
figure, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
for ax, (name, tree) in zip(axes.flat, trees.items(), strict=True):
    plot_partition(tree, X=rows[0], y=rows[1], ax=ax)
    ax.set_title(f"{name}: {tree.get_n_leaves()} leaves\ntest accuracy {tree.score(*test):.3f}")

# %%
# The choice of `CostComplexityCV`: the cross-validated error by the number of leaves. The 1-SE
# rule takes the smallest tree within one standard error of the best.
plot_cp_table(pruner)

# %%
# The same by alpha: the training risk increases with alpha, the error of held-out rows first
# decreases.
plot_pruning_path(pruner)
