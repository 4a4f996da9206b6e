"""
Decision regions of a tree
==========================

`plot_partition` draws exact boundaries, not sampled ones, so that narrow regions are shown, too.
Numeric columns are axes, categories are strips.
"""

import matplotlib.pyplot as plt

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.export import plot_partition

iris = load_iris()
petals, names = iris.data[:, 2:], iris.feature_names[2:]
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, depth in zip(axes, (2, None), strict=True):
    tree = DecisionTreeClassifier(max_depth=depth).fit(petals, iris.target)
    plot_partition(tree, X=petals, y=iris.target, feature_names=names, ax=ax)
    ax.set_title(f"max_depth={depth}: {tree.get_n_leaves()} leaves")

# %%
# In regression the colour is the mean target of the leaf.
cars = load_auto_mpg()
columns = [cars.feature_names.index(name) for name in ("weight", "model year")]
X = cars.data[:, columns]
tree = DecisionTreeRegressor(max_leaf_nodes=8).fit(X, cars.target)
plot_partition(tree, X=X, y=cars.target, feature_names=["weight", "model year"])

# %%
# Categorical columns: C4.5 has one branch per category.
golf = load_golf()
days = golf.data[:, [0, 2]]
tree = C45Classifier(pruning=None, min_samples_leaf=1).fit(days, golf.target)
plot_partition(tree, X=days, y=golf.target, feature_names=["outlook", "humidity"])
