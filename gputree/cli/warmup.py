"""`gputree warmup`: compile kernels before they are needed, as when an image is built.

Each kind of table has the smallest work that needs all of its kernels.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import gputree
from gputree.cli.report import UsageError, counted, parse_names, with_examples
from gputree.compilation.tiers import forced
from gputree.compilation.waits import nowhere, waiting
from gputree.criteria.named import CRITERIA

# Enough for histograms, and bins of several values in them: smaller tables take fewer kernels.
ROWS = 12_000
COLUMNS = 16
FEW_ROWS = 40

# Tasks and criteria of CART by their kinds, which are named as the criteria, but for one.
_CART = {
    "regression" if name == "squared_error" else name: (task, name)
    for task, names in CRITERIA.items()
    for name in names
}

# Names of estimators, which are imported at their first use: help needs none.
_TASKS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "classification": ("DecisionTreeClassifier", lambda quantity: (quantity > 0).astype(int)),
    "regression": ("DecisionTreeRegressor", abs),
}

KINDS = {
    **{kind: f"CART {task} with criterion={name!r}" for kind, (task, name) in _CART.items()},
    "weights": "CART classification and regression with sample weights",
    "categories": "CART over columns of categories",
    "forests": "random forests and extremely randomized trees of the default criteria",
    "c45": "C4.5",
    "id3": "ID3",
    "options": "CART with one class or three, max_leaf_nodes, monotonic_cst of small tables, and "
    "Shapley values",
    "pruning": "pruning by every method",
    "rules": "rules from trees of C4.5",
    "scores": "scores of columns, and MDLPDiscretizer",
}


class Warmed(NamedTuple):
    """Kernels of one kind of table, and the time that compiling them took."""

    kind: str
    kernels: int  # compiled, the others were there
    seconds: float


def compile_kind(kind: str) -> Warmed:
    """Have all kernels of a kind compiled, in both precisions, for fit and prediction."""
    with forced("always"), waiting(nowhere) as wait:
        _WORK[kind]()
    return Warmed(kind, wait.kernels, wait.seconds)


def _numbers(rows: int, dtype: Any, columns: int = 3) -> tuple[Any, Any]:
    """A table whose tree is no single leaf, and the quantity behind it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, columns))
    return X.astype(dtype), X[:, 0] * X[:, 1] + X[:, 2]


def _words(rows: int) -> tuple[Any, Any]:
    """Text, numbers and missing values."""
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


def _grow(task: str, criterion: str, weighted: bool = False) -> None:
    # Weighted tables that are grown by levels are few, and take as long as all others to compile.
    for shape in ((FEW_ROWS, 3), (ROWS, 3 if weighted else COLUMNS)):
        for dtype in (np.float32, np.float64):
            X, quantity = _numbers(shape[0], dtype, shape[1])
            _use_cart(task, criterion, X, quantity, weighted)


def _use_cart(task: str, criterion: str, X: Any, quantity: Any, weighted: bool) -> None:
    weights = {"sample_weight": _weights(len(X))} if weighted else {}
    name, y = _TASKS[task]
    tree = getattr(gputree, name)(max_depth=6, criterion=criterion)
    _use(tree, X, y(quantity), **weights)


def _vary() -> None:
    """Compile kernels that common options need in addition to those of the default criteria."""
    from gputree.export import shap_values

    for rows, columns in ((FEW_ROWS, 3), (ROWS, COLUMNS)):
        X, quantity = _numbers(rows, np.float64, columns)
        for n_classes in (3, 1):  # gini of two has separate kernels
            _use(gputree.DecisionTreeClassifier(max_depth=6), X, _classes(quantity, n_classes))
    for dtype in (np.float32, np.float64):
        X, quantity = _numbers(FEW_ROWS, dtype)
        for name, y in _TASKS.values():
            for options in ({"max_leaf_nodes": 4}, {"monotonic_cst": [1, 0, 0]}):
                tree = getattr(gputree, name)(max_depth=6, **options)
                _use(tree, X, y(quantity))
            shap_values(tree, X)


def _classes(quantity: Any, n_classes: int) -> Any:
    return np.argsort(np.argsort(quantity)) * n_classes // len(quantity)


def _weigh() -> None:
    for task, criterion in _CART.values():
        _grow(task, criterion, weighted=True)


def _categorize() -> None:
    X, quantity = _words(FEW_ROWS * 10)
    for weighted in (False, True):
        for task, criterion in _CART.values():
            _use_cart(task, criterion, X, quantity, weighted)


def _plant() -> None:
    # Of twice the rows, so that those drawn for a tree are enough for histograms.
    shapes = ((FEW_ROWS, 3), (2 * ROWS, COLUMNS))
    tables = [_numbers(n, dtype, d) for n, d in shapes for dtype in (np.float32, np.float64)]
    for X, quantity in (*tables, _words(FEW_ROWS * 10)):
        missing = X[:1].copy()
        missing[0, 0] = np.nan  # rows without missing values descend in another kernel
        classes = [_classes(quantity, n_classes) for n_classes in (2, 3)]
        for kind, targets in (
            (partial(gputree.RandomForestClassifier, device="cpu"), classes),
            (partial(gputree.RandomForestRegressor, device="cpu"), [quantity]),
            (gputree.ExtraTreesClassifier, classes),
            (gputree.ExtraTreesRegressor, [quantity]),
        ):
            for y in targets:
                forest = kind(n_estimators=1, max_depth=6).fit(X, y)
                forest.predict(X)
                forest.predict(missing)


def _branch(kind: Any) -> None:
    X, quantity = _words(FEW_ROWS * 10)
    _use(kind(), X, np.where(quantity > 0, "yes", "no"))
    if kind is gputree.C45Classifier:
        for dtype in (np.float32, np.float64):
            X, quantity = _numbers(FEW_ROWS * 10, dtype)
            _use(kind(), X, quantity > 0)


def _rule() -> None:
    """Numbers, text and missing values; rows of equal and of unequal weights."""
    from gputree import C45Classifier, C45Rules

    numbers = [_numbers(FEW_ROWS * 10, dtype) for dtype in (np.float32, np.float64)]
    for X, quantity in (*numbers, _words(FEW_ROWS * 10)):
        for weights in ({}, {"sample_weight": _weights(len(X))}):
            C45Rules(C45Classifier(device="cpu")).fit(X, quantity > 0, **weights).predict(X)


def _score() -> None:
    for dtype in (np.float32, np.float64):
        X, quantity = _numbers(FEW_ROWS * 10, dtype)
        for weight in (None, _weights(len(X))):
            gputree.MDLPDiscretizer().fit(X, quantity > 0, sample_weight=weight)
            for y in (quantity > 0, quantity):
                gputree.rank_features(X, y, sample_weight=weight, device="cpu")
    X, quantity = _words(FEW_ROWS * 10)
    for y in (quantity > 0, quantity):
        gputree.rank_features(X, y, device="cpu")


def _prune() -> None:
    from gputree import DecisionTreeClassifier, DecisionTreeRegressor
    from gputree.pruning import PRUNERS, CostComplexity, Pessimistic, get_pruner

    X, quantity = _numbers(FEW_ROWS * 10, np.float64)
    by_name = [get_pruner(name) for name in PRUNERS if name != "cost_complexity"]
    for tree, y in (
        (DecisionTreeClassifier(), quantity > 0),
        (DecisionTreeRegressor(), quantity),
    ):
        grown = tree.set_params(device="cpu").fit(X, y)
        for pruner in (CostComplexity(0.01), *by_name):
            if not isinstance(pruner, Pessimistic) or isinstance(tree, DecisionTreeClassifier):
                pruner.prune(grown, X, y)


_WORK: dict[str, Callable[[], None]] = {
    **{kind: partial(_grow, *of) for kind, of in _CART.items()},
    "weights": _weigh,
    "categories": _categorize,
    "forests": _plant,
    "c45": lambda: _branch(gputree.C45Classifier),
    "id3": lambda: _branch(partial(gputree.ID3Classifier, categorical_features=[0, 1, 2])),
    "options": _vary,
    "pruning": _prune,
    "rules": _rule,
    "scores": _score,
}


# Kinds that half of the time goes to: begun last, they would be waited for.
_LONGEST = ("categories", "forests", "c45")


def add_warmup(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree warmup`."""
    with_examples(
        parser,
        "Compile kernels in advance, in several processes, e.g. while a container image is built.",
        "gputree warmup",
        "gputree warmup --kinds gini,regression --jobs 2",
    )
    parser.set_defaults(run=_warm_up)
    parser.add_argument(
        "--kinds",
        type=parse_names,
        metavar="A,B,...",
        help=f"{', '.join(_CART)}, weights (CART); categories (CART over them); "
        "forests; c45; id3; options (one or three classes, monotonic_cst, Shapley values); "
        "pruning; rules; scores (feature scores and MDLPDiscretizer); default: all",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes at a time; default: as many as cores"
    )


def _warm_up(arguments: argparse.Namespace) -> None:
    from gputree.compilation.store import in_use

    chosen = arguments.kinds or list(KINDS)
    unknown = sorted(set(chosen) - set(KINDS))
    if unknown:
        raise UsageError(f"--kinds knows {', '.join(KINDS)}. Got {unknown[0]!r} instead.")
    jobs = arguments.jobs if arguments.jobs is not None else os.cpu_count() or 1
    if jobs < 1:
        raise UsageError(f"--jobs must be at least 1. Got {jobs} instead.")
    folder = in_use()
    if folder is None:
        raise PermissionError(
            "Compiled kernels cannot be kept: no folder for them can be written. Set "
            "NUMBA_CACHE_DIR to one that can, or run this where gputree is installed."
        )
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")  # compilers do not survive a fork
    with ProcessPoolExecutor(min(jobs, len(chosen)), mp_context=context) as pool:
        longest_first = sorted(chosen, key=lambda kind: kind not in _LONGEST)
        for done in as_completed([pool.submit(compile_kind, kind) for kind in longest_first]):
            kind, kernels, seconds = done.result()
            news = f"{counted(kernels, 'kernel')} compiled in {seconds:.1f} s"
            print(f"{kind:12}{news if kernels else 'nothing to compile'}", flush=True)
    print(f"{time.perf_counter() - start:.1f} s in all, kept in {folder}")
