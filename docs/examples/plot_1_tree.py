"""
Drawing a tree
==============

A tree of three leaves for the iris data. Each box has the condition that leads to it, its
prediction and its number of rows; the bar below it has the class proportions.
"""

import sys

from gputree import DecisionTreeClassifier, export_text
from gputree.datasets import load_iris
from gputree.export import plot_tree

iris = load_iris()
tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
ax = plot_tree(tree, feature_names=iris.feature_names)

# %%
# The same tree as text:

print(export_text(tree, feature_names=iris.feature_names))

# %%
# README.md shows this figure, drawn by
# ``python docs/examples/plot_1_tree.py docs/images/iris.png``.

if len(sys.argv) > 1:
    ax.figure.savefig(sys.argv[1], dpi=110)
