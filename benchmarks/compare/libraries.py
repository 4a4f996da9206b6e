"""One tree in each library: from a NumPy array to a fitted model with `predict`.

Construction of a library's own data set is part of `fit`, as it is for a user with an array.
The boosting libraries are set to one tree without shrinkage or regularisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.compare.timing import THREADS


class Fitted(Protocol):
    """All that a comparison needs of a model."""

    def predict(self, X: NDArray) -> NDArray: ...


Fit = Callable[[NDArray, NDArray], Fitted]
GPUTREE = "gputree"
SCIKIT_LEARN = "scikit-learn"


@dataclass(frozen=True)
class Rounded:
    """A binary model that predicts probabilities, as one that predicts classes."""

    probability: Callable[[NDArray], NDArray]

    def predict(self, X: NDArray) -> NDArray:
        return (self.probability(X) > 0.5).astype(np.int32)


def gputree(regression: bool = False, **parameters: Any) -> Fit:
    import gputree as package

    tree = package.DecisionTreeRegressor if regression else package.DecisionTreeClassifier
    return tree(device="cpu", n_jobs=THREADS, random_state=0, **parameters).fit


def scikit_learn(regression: bool = False, **parameters: Any) -> Fit:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    tree = DecisionTreeRegressor if regression else DecisionTreeClassifier
    return tree(random_state=0, **parameters).fit


def hist_gradient_boosting(depth: int) -> Fit:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=1,
        max_depth=depth,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        learning_rate=1.0,
        early_stopping=False,
    ).fit


def lightgbm(depth: int) -> Fit:
    import lightgbm as library

    parameters = {
        "objective": "binary",
        "max_depth": depth,
        "num_leaves": 2**depth,
        "learning_rate": 1.0,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "feature_pre_filter": False,
        "num_threads": THREADS,
        "verbose": -1,
    }

    def fit(X: NDArray, y: NDArray) -> Fitted:
        booster = library.train(parameters, library.Dataset(X, y), num_boost_round=1)
        return Rounded(booster.predict)

    return fit


def xgboost(depth: int, quantile: bool) -> Fit:
    """`quantile` codes the data while the matrix is built, else the trainer codes it."""
    import xgboost as library

    matrix = library.QuantileDMatrix if quantile else library.DMatrix
    parameters = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": depth,
        "eta": 1.0,
        "lambda": 0.0,
        "min_child_weight": 0.0,
        "nthread": THREADS,
    }

    def fit(X: NDArray, y: NDArray) -> Fitted:
        booster = library.train(parameters, matrix(X, y, nthread=THREADS), num_boost_round=1)
        return Rounded(booster.inplace_predict)

    return fit


def one_tree_of_each(depth: int) -> dict[str, Fit]:
    """Every library that grows a binary classification tree of this depth."""
    return {
        GPUTREE: gputree(max_depth=depth),
        SCIKIT_LEARN: scikit_learn(max_depth=depth),
        "LightGBM": lightgbm(depth),
        "XGBoost hist, DMatrix": xgboost(depth, quantile=False),
        "XGBoost hist, QuantileDMatrix": xgboost(depth, quantile=True),
        "HistGradientBoosting": hist_gradient_boosting(depth),
    }
