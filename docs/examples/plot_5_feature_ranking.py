"""
Which columns tell about the target
===================================

Scores of columns, computed by what the trees are grown with: categories by their values, numbers by
their best cut, missing values as a branch of their own.
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
# Two columns that know nothing are put beside the four of the table.
ranking = rank_features(X, iris.target, feature_names=names)
print(ranking)
plot_feature_ranking(ranking)

# %%
# By distinct values, as some packages have it, noise comes first: a number that occurs once has a
# branch of its own, and tells all about its row.
by_value = information_gain(X, iris.target, numeric="distinct")
by_cut = information_gain(X, iris.target)
for name, a, b in zip(names, by_cut, by_value, strict=True):
    print(f"{name:14} {a:6.3f} by its best cut {b:6.3f} by distinct values")

# %%
# Scores are scikit-learn's score functions.
print(SelectKBest(information_gain, k=2).fit(X, iris.target).get_support())
