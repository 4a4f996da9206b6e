"""One tree in each library: from a NumPy array to a fitted model with `predict`.

Construction of a library's own data set is part of `fit`, as it is for a user with an array.
The boosting libraries are set to one tree without shrinkage or regularisation; where there are
more than two classes, to one round, which is a tree a class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
LIGHTGBM = "LightGBM"
HIST_GRADIENT_BOOSTING = "HistGradientBoosting"


@dataclass(frozen=True)
class Rounded:
    """A model that predicts probabilities, of one class or of each, as one of classes."""

    probability: Callable[[NDArray], NDArray]

    def predict(self, X: NDArray) -> NDArray:
        share = self.probability(X)
        return (share > 0.5 if share.ndim == 1 else share.argmax(axis=1)).astype(np.int32)


def gputree(regression: bool = False, **parameters: Any) -> Fit:
    import gputree as package

    tree = package.DecisionTreeRegressor if regression else package.DecisionTreeClassifier
    return tree(device="cpu", n_jobs=THREADS, random_state=0, **parameters).fit


def scikit_learn(regression: bool = False, **parameters: Any) -> Fit:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    tree = DecisionTreeRegressor if regression else DecisionTreeClassifier
    return tree(random_state=0, **parameters).fit


def hist_gradient_boosting(depth: int) -> Fit:
    """Categories are the categorical columns of a data frame."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=1,
        max_depth=depth,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        learning_rate=1.0,
        early_stopping=False,
        categorical_features="from_dtype",
    ).fit


def lightgbm(depth: int, classes: int = 2, categories: Sequence[int] = ()) -> Fit:
    """`categories` are columns of codes, whose subsets are smoothed and limited as by default."""
    import lightgbm as library

    parameters = {
        **_objective(classes, "binary", "multiclass"),
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
        table = library.Dataset(X, y, categorical_feature=list(categories))
        return Rounded(library.train(parameters, table, num_boost_round=1).predict)

    return fit


def xgboost(depth: int, quantile: bool, classes: int = 2) -> Fit:
    """`quantile` codes the data while the matrix is built, else the trainer codes it."""
    import xgboost as library

    matrix = library.QuantileDMatrix if quantile else library.DMatrix
    parameters = {
        **_objective(classes, "binary:logistic", "multi:softprob"),
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


def _objective(classes: int, of_two: str, of_more: str) -> dict[str, Any]:
    if classes == 2:
        return {"objective": of_two}
    return {"objective": of_more, "num_class": classes}


def one_tree_of_each(depth: int, classes: int = 2) -> dict[str, Fit]:
    """Every library that grows a classification tree of this depth."""
    return {
        GPUTREE: gputree(max_depth=depth),
        SCIKIT_LEARN: scikit_learn(max_depth=depth),
        LIGHTGBM: lightgbm(depth, classes),
        "XGBoost hist, DMatrix": xgboost(depth, quantile=False, classes=classes),
        "XGBoost hist, QuantileDMatrix": xgboost(depth, quantile=True, classes=classes),
        HIST_GRADIENT_BOOSTING: hist_gradient_boosting(depth),
    }


def trees_with_categories(depth: int, categories: Sequence[int]) -> dict[str, Fit]:
    """Libraries that part the codes in some columns into subsets; see `hist_gradient_boosting`."""
    return {
        GPUTREE: gputree(max_depth=depth, categorical_features=categories),
        LIGHTGBM: lightgbm(depth, categories=categories),
        HIST_GRADIENT_BOOSTING: hist_gradient_boosting(depth),
    }
