"""
Random forests
==============

A forest averages trees that differ, because each is grown on other rows and each node looks at
other columns. The average errs less than one tree. :doc:`/coming_from_forests` compares the
parameters with those of other libraries.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.datasets import load_auto_mpg, load_iris


def wave(n, seed):
    """`n` points of the unit square, above or below a wave; every seventh or so mislabelled."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    above = X[:, 1] > 0.5 + 0.3 * np.sin(2 * np.pi * X[:, 0])
    return X, (above ^ (rng.random(n) < 0.15)).astype(int)


# %%
# Each model is fitted to the same 400 points. The colour is the predicted probability of the upper
# class, the black line the true boundary. The tree has steps, and islands around a few mislabelled
# points. The forest averages 200 such trees; extremely randomized trees draw their cuts, too,
# which makes the average smoother. No model can exceed an accuracy of 0.85, since 15 percent of the
# labels are wrong.
rows, test = wave(400, 0), wave(20_000, 2)
limits = {"n_estimators": 200, "min_samples_leaf": 3, "random_state": 0}
models = {
    "one tree": DecisionTreeClassifier(min_samples_leaf=3),
    "random forest": RandomForestClassifier(**limits),
    "extra-trees": ExtraTreesClassifier(**limits),
}
side = np.linspace(0, 1, 200)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    upper = model.fit(*rows).predict_proba(grid)[:, 1].reshape(200, 200)
    shades = ax.imshow(upper, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu", vmin=0, vmax=1)
    ax.scatter(*rows[0].T, c=rows[1], cmap="RdBu", s=8, edgecolors="white", linewidths=0.4)
    ax.plot(side, 0.5 + 0.3 * np.sin(2 * np.pi * side), color="black", linewidth=1)
    ax.set_title(f"{name}\ntest accuracy {model.score(*test):.3f}")
    ax.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
figure.colorbar(shades, ax=axes, label="probability of the upper class")

# %%
# Number of trees, and columns for each node
# ------------------------------------------
#
# About a third of the rows are not drawn for a tree: they are out of its bag. Each row is predicted
# by the trees that have not drawn it, so that the error of the forest is estimated without rows
# set aside. With few trees the estimate is too high, since each row has only a third of them.
# `warm_start` keeps the trees that there are and adds new ones: the error is known after every
# few trees, and the forest is the one that a single fit of all trees grows.
#
# `max_features` is the number of columns drawn for each node. With all of them (None) the trees are
# alike, and the average gains less; with one column trees differ most, and are the weakest.
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
counts = [20, 30, 40, 50, 70, 100, 150, 200, 300]
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for color, max_features in zip(("C0", "C1", "C2"), (1, "sqrt", None), strict=True):
    forest = RandomForestClassifier(
        max_features=max_features, oob_score=True, warm_start=True, random_state=0
    )
    errors = []
    for n_estimators in counts:
        forest.set_params(n_estimators=n_estimators).fit(X, y)
        errors.append((1 - forest.oob_score_, 1 - forest.score(X_test, y_test)))
    out_of_bag, held_out = np.transpose(errors)
    ax.plot(counts, out_of_bag, "o-", color=color, label=f"max_features={max_features!r}")
    ax.plot(counts, held_out, "--", color=color)
ax.plot([], [], "--", color="0.4", label="the same, test rows")
ax.set(xlabel="number of trees", ylabel="error out of the bag", ylim=(0, None))
ax.set_title("Handwritten digits: 898 rows, 64 columns, 10 classes")
ax.legend()

# %%
# More trees do not overfit: the error settles at a limit. They cost time and memory, so take the
# number where the curve is flat.
#
# Categories and missing values
# -----------------------------
#
# Text and missing values need no encoding and no imputation. Six cars have no known horsepower;
# the continent is text. The score is R², of rows out of the bag for the forest.
cars = load_auto_mpg()
table = pd.DataFrame(cars.data, columns=cars.feature_names)
table["origin"] = table["origin"].map({1: "America", 2: "Europe", 3: "Japan"})
print(table.isna().sum().loc[["horsepower", "origin"]])
forest = RandomForestRegressor(n_estimators=300, max_features=0.4, oob_score=True, random_state=0)
print(f"out of the bag: {forest.fit(table, cars.target).oob_score_:.3f}")
fit, held_out, y_fit, y_held_out = train_test_split(table, cars.target, random_state=0)
for model in (DecisionTreeRegressor(), forest.set_params(oob_score=False)):
    print(f"{type(model).__name__}: {model.fit(fit, y_fit).score(held_out, y_held_out):.3f}")

# %%
# What importances say, and what not
# ----------------------------------
#
# `feature_importances_` is the decrease of impurity on the rows that the trees were grown on. A
# column of many distinct values has many cuts, and the best of them fits the noise of a small
# node: it gets an importance that it does not deserve. Here smoking and age decide, a random number
# and a coin do not. By the decrease of impurity the random number seems to matter more than
# smoking, which has two values. Shuffling a column of test rows, and measuring what the score
# loses, has no such bias.
rng = np.random.default_rng(0)
n = 1_000
table = pd.DataFrame(
    {
        "smokes": rng.integers(0, 2, n),
        "age": rng.integers(20, 80, n),
        "random number": rng.random(n),
        "coin": rng.integers(0, 2, n),
    }
)
ill = rng.random(n) < 0.1 + 0.4 * table["smokes"] + 0.3 * (table["age"] > 55)
fit, held_out, y_fit, y_held_out = train_test_split(table, ill, random_state=0)
forest = RandomForestClassifier(n_estimators=200, random_state=0).fit(fit, y_fit)
shuffled = permutation_importance(forest, held_out, y_held_out, n_repeats=20, random_state=0)
columns = forest.feature_names_in_[::-1]
colors = ["C3", "C3", "C0", "C0"]
figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained", sharey=True)
axes[0].barh(columns, forest.feature_importances_[::-1], color=colors)
axes[0].set_xlabel("feature_importances_")
means, spreads = shuffled.importances_mean[::-1], shuffled.importances_std[::-1]
axes[1].barh(columns, means, xerr=spreads, color=colors)
axes[1].axvline(0, color="black", linewidth=0.8)
axes[1].set_xlabel("loss of test accuracy when shuffled")
figure.suptitle("blue: columns that decide; red: noise")

# %%
# The bias is smaller with larger leaves, which leave less noise to fit:
forest.set_params(min_samples_leaf=20).fit(fit, y_fit)
print(dict(zip(table, forest.feature_importances_.round(3).tolist(), strict=True)))

# %%
# Odd rows by proximity
# ---------------------
#
# The proximity of two rows is the fraction of the trees in which they reach the same leaf. A row
# that is near to few others of its class is odd: Breiman's measure is the number of rows divided by
# the sum of squared proximities to the rows of its class, here divided by the median of the class.
# Three irises get a wrong label. They are among the oddest rows, and so is a versicolor that
# lies where the virginicas are.
iris = load_iris()
labels = iris.target.copy()
swapped = [7, 68, 120]
labels[swapped] = ["virginica", "setosa", "setosa"]
forest = RandomForestClassifier(n_estimators=300, random_state=0).fit(iris.data, labels)
proximity = forest.proximity(iris.data).toarray()
same = labels[:, None] == labels
odd = len(labels) / ((proximity * same) ** 2).sum(axis=1)
for kind in forest.classes_:
    odd[labels == kind] /= np.median(odd[labels == kind])
oddest = np.argsort(-odd)[:4]
print(dict(zip(oddest.tolist(), odd[oddest].round(1).tolist(), strict=True)))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
colors = dict(zip(forest.classes_, ("C0", "C1", "C2"), strict=True))
petals = iris.data[:, 2:]
for kind, color in colors.items():
    ax.scatter(*petals[labels == kind].T, color=color, label=kind, s=15)
rings = [colors[label] for label in labels[oddest]]
ax.scatter(*petals[oddest].T, s=150, facecolors="none", edgecolors=rings, linewidths=2)
ax.set(xlabel=iris.feature_names[2], ylabel=iris.feature_names[3])
ax.set_title("Rings: the oddest rows, in the colour of their label")
ax.legend()
