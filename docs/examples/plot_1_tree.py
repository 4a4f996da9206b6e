"""
A tree to look at
=================

A tree of three leaves tells the irises apart. Each box says the condition that leads to it, its
answer and the rows it holds; the bar below it is the mix of the classes there.
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
# README.md shows this picture: ``python docs/examples/plot_1_tree.py docs/images/iris.png``
# draws it anew.

if len(sys.argv) > 1:
    ax.figure.savefig(sys.argv[1], dpi=110)
