"""Kinds of tables, and the smallest work that needs all kernels of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gputree.compilation.waits import waiting
from gputree.discretization import MDLPDiscretizer
from gputree.estimators import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
from gputree.pruning import PRUNERS, CostComplexity, Pessimistic, get_pruner
from gputree.rules import C45Rules
from gputree.scores import rank_features

# Enough for histograms, and bins of several values in them: smaller tables take fewer kernels.
ROWS = 12_000
FEW_ROWS = 40

KINDS = {
    "gini": "CART classification",
    "entropy": "CART classification with criterion='entropy'",
    "regression": "CART regression",
    "poisson": "CART regression with criterion='poisson'",
    "weights": "CART classification and regression with sample weights",
    "categories": "CART over columns of categories",
    "c45": "C4.5",
    "id3": "ID3",
    "pruning": "pruning by every method",
    "rules": "rules from trees of C4.5",
    "scores": "scores of columns, and MDLPDiscretizer",
}


class Warmed(NamedTuple):
    """What it took to have the kernels of one kind."""

    kind: str
    kernels: int  # compiled, the others were there
    seconds: float


def compile_kind(kind: str) -> Warmed:
    """Have all kernels of a kind compiled, in both precisions, for fit and prediction."""
    with waiting() as wait:
        _WORK[kind]()
    return Warmed(kind, wait.kernels, wait.seconds)


def _numbers(rows: int, dtype: Any) -> tuple[Any, Any]:
    """A table whose tree is no single leaf, and the quantity behind it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    return X.astype(dtype), X[:, 0] * X[:, 1] + X[:, 2]


def _words(rows: int) -> tuple[Any, Any]:
    """Words, numbers and holes."""
    X, quantity = _numbers(rows, np.float64)
    table = X.astype(object)
    table[:, 1] = np.array(["low", "middle", "high"])[np.digitize(X[:, 1], [-0.5, 0.5])]
    table[::7, 0] = None
    table[::11, 1] = None
    return table, quantity


def _use(estimator: Any, X: Any, y: Any, **fit: Any) -> None:
    estimator.set_params(device="cpu").fit(X, y, **fit).predict(X)


def _weights(rows: int) -> Any:
    return np.linspace(1.0, 2.0, rows)


def _classify(weighted: bool = False, **parameters: Any) -> None:
    for rows in (FEW_ROWS, ROWS):
        for dtype in (np.float32, np.float64):
            X, quantity = _numbers(rows, dtype)
            weights = {"sample_weight": _weights(rows)} if weighted else {}
            tree = DecisionTreeClassifier(max_depth=6, **parameters)
            _use(tree, X, (quantity > 0).astype(int), **weights)


def _regress(weighted: bool = False, **parameters: Any) -> None:
    for rows in (FEW_ROWS, ROWS):
        for dtype in (np.float32, np.float64):
            X, quantity = _numbers(rows, dtype)
            weights = {"sample_weight": _weights(rows)} if weighted else {}
            tree = DecisionTreeRegressor(max_depth=6, **parameters)
            _use(tree, X, abs(quantity), **weights)


def _weigh() -> None:
    _classify(weighted=True)
    _classify(weighted=True, criterion="entropy")
    _regress(weighted=True)
    _regress(weighted=True, criterion="poisson")


def _categorize() -> None:
    X, quantity = _words(FEW_ROWS * 10)
    for weights in ({}, {"sample_weight": _weights(len(X))}):
        for criterion in ("gini", "entropy"):
            tree = DecisionTreeClassifier(max_depth=6, criterion=criterion)
            _use(tree, X, quantity > 0, **weights)
        for tree in (DecisionTreeRegressor(), DecisionTreeRegressor(criterion="poisson")):
            _use(tree.set_params(max_depth=6), X, abs(quantity), **weights)


def _branch(kind: Any) -> None:
    X, quantity = _words(FEW_ROWS * 10)
    _use(kind(), X, np.where(quantity > 0, "yes", "no"))
    if kind is C45Classifier:
        for dtype in (np.float32, np.float64):
            X, quantity = _numbers(FEW_ROWS * 10, dtype)
            _use(kind(), X, quantity > 0)


def _rule() -> None:
    """Numbers, words and holes; rows that weigh the same and that do not."""
    numbers = [_numbers(FEW_ROWS * 10, dtype) for dtype in (np.float32, np.float64)]
    for X, quantity in (*numbers, _words(FEW_ROWS * 10)):
        for weights in ({}, {"sample_weight": _weights(len(X))}):
            C45Rules(C45Classifier(device="cpu")).fit(X, quantity > 0, **weights).predict(X)


def _score() -> None:
    for dtype in (np.float32, np.float64):
        X, quantity = _numbers(FEW_ROWS * 10, dtype)
        for weight in (None, _weights(len(X))):
            MDLPDiscretizer().fit(X, quantity > 0, sample_weight=weight)
            for y in (quantity > 0, quantity):
                rank_features(X, y, sample_weight=weight, device="cpu")
    X, quantity = _words(FEW_ROWS * 10)
    for y in (quantity > 0, quantity):
        rank_features(X, y, device="cpu")


def _prune() -> None:
    X, quantity = _numbers(FEW_ROWS * 10, np.float64)
    by_name = [get_pruner(name) for name in PRUNERS if name != "cost_complexity"]
    for tree, y in ((DecisionTreeClassifier(), quantity > 0), (DecisionTreeRegressor(), quantity)):
        grown = tree.set_params(device="cpu").fit(X, y)
        for pruner in (CostComplexity(0.01), *by_name):
            if not isinstance(pruner, Pessimistic) or isinstance(tree, DecisionTreeClassifier):
                pruner.prune(grown, X, y)


_WORK: dict[str, Callable[[], None]] = {
    "gini": _classify,
    "entropy": lambda: _classify(criterion="entropy"),
    "regression": _regress,
    "poisson": lambda: _regress(criterion="poisson"),
    "weights": _weigh,
    "categories": _categorize,
    "c45": lambda: _branch(C45Classifier),
    "id3": lambda: _branch(ID3Classifier),
    "pruning": _prune,
    "rules": _rule,
    "scores": _score,
}
