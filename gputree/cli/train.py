"""`gputree train`: from a table to a model file."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gputree.cli.options import add_options, flag, given_options, names
from gputree.cli.report import aligned, check_output, counted, escape_unknown_characters, say, size
from gputree.compilation.waits import Wait, waiting


def add_train(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree train`."""
    parser.set_defaults(run=_train)
    add = parser.add_argument
    add("data", metavar="DATA", help="CSV (.csv, .tsv, also .gz) or Parquet file")
    add("--target", required=True, metavar="COL", help="the column to predict")
    features = parser.add_mutually_exclusive_group()
    features.add_argument(
        "--columns", metavar="A,B,...", type=names, help="feature columns; default: all"
    )
    features.add_argument(
        "--ignore", metavar="A,B,...", type=names, default=[], help="columns to leave out"
    )
    add("-o", "--output", required=True, metavar="MODEL", help="model file to write")
    add(
        "--algorithm",
        choices=["cart", "c45", "id3"],
        default="cart",
        help="cart: splits in two, by Breiman and others (1984); c45, id3: one branch a category, "
        "by Quinlan (1993, 1986)",
    )
    add(
        "--task",
        choices=["auto", "classification", "regression"],
        default="auto",
        help="auto: strings, booleans and up to 20 different whole numbers are classes",
    )
    add("--quiet", action="store_true", help="no progress bar, no summary")
    add_options(parser)


def _train(arguments: argparse.Namespace) -> None:
    from gputree.datasets import read_table
    from gputree.estimators.model_file import save_model

    output = Path(arguments.output)
    check_output(output, arguments.data)
    table = read_table(
        arguments.data,
        arguments.target,
        columns=arguments.columns,
        ignore=arguments.ignore,
        verbose=not arguments.quiet,
    )
    X, y = table.columns, table.target
    assert y is not None  # a target was asked for
    estimator = _estimator(arguments, y)
    with waiting(say if estimator.verbose else None) as wait:
        start = time.perf_counter()
        estimator.fit(X, y)
        seconds = time.perf_counter() - start - wait.seconds
        score = estimator.score(X, y)
    save_model(estimator, output)
    if not arguments.quiet:
        escape_unknown_characters()
        print(_summary(estimator, X.shape, seconds, wait, score, output))


def _estimator(arguments: argparse.Namespace, y: NDArray) -> Any:
    """The estimator that was asked for, with the options that it has."""
    kind = _kind(arguments, y)
    params = given_options(arguments)
    for name in set(params).difference(kind._get_param_names()):
        if name == "class_weight":
            raise ValueError("--class-weight is for classification; the task is regression.")
        raise ValueError(f"{flag(name)} is no option of {arguments.algorithm}.")
    watched = sys.stderr.isatty() and not arguments.quiet
    return kind(**params, verbose=int(watched))


def _kind(arguments: argparse.Namespace, y: NDArray) -> Any:
    """The estimator's class, by the algorithm and the task."""
    from gputree import estimators
    from gputree.datasets import infer_task

    task = infer_task(y) if arguments.task == "auto" else arguments.task
    if task == "regression" and y.dtype.kind not in "iuf":
        raise ValueError(
            f"Regression needs numbers in the target column {arguments.target!r}; it holds "
            f"{'booleans' if y.dtype.kind == 'b' else 'text'}, such as {str(y[0])!r}."
        )
    if task == "regression" and arguments.algorithm != "cart":
        raise ValueError(
            f"--algorithm {arguments.algorithm} is for classification, and the target column "
            f"{arguments.target!r} holds quantities. Use cart, or --task classification."
        )
    if arguments.algorithm == "cart":
        cart = (estimators.DecisionTreeClassifier, estimators.DecisionTreeRegressor)
        return cart[task == "regression"]
    return {"c45": estimators.C45Classifier, "id3": estimators.ID3Classifier}[arguments.algorithm]


def _summary(
    estimator: Any,
    shape: tuple[int, ...],
    seconds: float,
    wait: Wait,
    score: float,
    output: Path,
) -> str:
    tree = estimator.tree_
    task = tree.task
    if task == "classification":
        task += f", {counted(tree.n_classes, 'class', 'classes')}"
    measure = "accuracy" if tree.task == "classification" else "R2"
    compiling = {"compiling": f"{wait.seconds:.3g} s, once on this machine"}
    lines = {
        "table": f"{counted(shape[0], 'row')}, {counted(shape[1], 'column')}",
        "task": task,
        "tree": size(tree),
        **(compiling if wait.kernels else {}),
        "training": f"{seconds:.3g} s, {measure} {score:.4f} on the training rows",
        "model": str(output),
    }
    return aligned(lines)
