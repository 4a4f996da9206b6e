"""
Feature ranking
===============

Feature scores, computed by the code that grows trees: categories by their values, numbers by
their best cut, missing values as a separate branch.
"""

import numpy as np
from sklearn.feature_selection import SelectKBest

from gputree import information_gain, rank_features
from gputree.datasets import load_iris
from gputree.export import plot_feature_ranking

iris = load_iris()
rng = np.random.default_rng(0)
noise = rng.normal(size=len(iris.data))
X = np.column_stack([iris.data, noise, np.arange(len(iris.data)) % 10])
names = [*iris.feature_names, "noise", "last digit"]

# %%
# Two uninformative columns are added to the four of the table.
ranking = rank_features(X, iris.target, feature_names=names)
print(ranking)
plot_feature_ranking(ranking)

# %%
# With a branch per distinct value, as in some packages, noise is ranked first: a number that
# occurs once has a separate branch, which determines the label of its row.
by_value = information_gain(X, iris.target, numeric="distinct")
by_cut = information_gain(X, iris.target)
for name, a, b in zip(names, by_cut, by_value, strict=True):
    print(f"{name:14} {a:6.3f} by its best cut {b:6.3f} by distinct values")

# %%
# Scores are scikit-learn's score functions.
print(SelectKBest(information_gain, k=2).fit(X, iris.target).get_support())
