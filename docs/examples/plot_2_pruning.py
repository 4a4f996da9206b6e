"""
Pruning, with pictures
======================

A tree that is grown out learns the noise of its rows. Pruning takes splits away again, from below.
The plane of two columns shows what goes.
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
# Three methods beside the tree as it was grown. `CostComplexityCV` grows trees on folds of the
# training rows, `Pessimistic` looks at the training rows alone, `ReducedError` takes rows that
# were held out.
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
# How `CostComplexityCV` chose: the error of rows held out against the number of leaves. The 1-SE
# rule takes the smallest tree that is not clearly worse than the best.
plot_cp_table(pruner)

# %%
# The same from one alpha to the next: the training risk only rises as leaves go, the error of
# held-out rows falls first.
plot_pruning_path(pruner)
