"""Every default use of the package, and what it compiles: ``python tests/helpers/kept_kernels.py``.

Prints a JSON object: by use, how many kernels were compiled, and those that cannot be kept.
"""

import json
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    MDLPDiscretizer,
    export_text,
    rank_features,
    to_rules,
)
from gputree.cli.warmup import KINDS, compile_kind
from gputree.compilation.waits import waiting
from gputree.datasets import load_iris, load_loan
from gputree.export import explain, shap_values
from gputree.pruning import PRUNERS, CostComplexity, get_pruner

ESTIMATORS = [
    DecisionTreeClassifier, DecisionTreeRegressor, C45Classifier, ID3Classifier,
    BoostedC45Classifier, C45Rules, BoostedC45Rules,
]  # fmt: skip


Rows = tuple[Any, Any]


def tables() -> Iterator[tuple[str, Rows]]:
    """Numbers; words; numbers, words and missing values."""
    iris, loan = load_iris(), load_loan()
    yield "numbers", (iris.data, iris.target)
    yield "words", (loan.data, loan.target)
    mixed = iris.data.astype(object)
    mixed[:, 1] = np.where(iris.data[:, 1] > 3.0, "wide", "narrow")
    mixed[::7, 0] = mixed[::11, 1] = None
    yield "words and holes", (mixed, iris.target)


def fitted(estimator: Any, X: Any, y: Any) -> Any:
    return estimator.fit(
        X, np.arange(len(y)) if isinstance(estimator, DecisionTreeRegressor) else y
    )


def use(kind: Callable[[], Any], X: Any, y: Any) -> None:
    model = fitted(kind(), X, y)
    model.predict(X)
    if hasattr(model, "predict_proba"):
        model.predict_proba(X)


def prune(name: str, X: Any, y: Any) -> None:
    pruner = CostComplexity(0.01) if name == "cost_complexity" else get_pruner(name)
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor, C45Classifier):
        if name != "pessimistic" or kind is not DecisionTreeRegressor:
            pruner.prune(
                fitted(kind(), X, y), X, np.arange(len(y)) if kind is DecisionTreeRegressor else y
            )


def export(kind: Callable[[], Any], X: Any, y: Any) -> None:
    model = fitted(kind(), X, y)
    export_text(model)
    explain(model, X[:2])
    shap_values(model, X[:2])
    to_rules(model, X, y)


def describe(X: Any, y: Any) -> None:
    MDLPDiscretizer().fit(X, y).transform(X)
    rank_features(X, y)


def uses() -> Iterator[tuple[str, Callable[[], object]]]:
    """Names of uses, and what to call for each."""
    for kind in KINDS:
        yield f"warmup {kind}", partial(compile_kind, kind)
    for kind in ESTIMATORS:
        for name, rows in tables():
            if kind is not ID3Classifier or name == "words":
                yield f"{kind.__name__}, {name}", partial(use, kind, *rows)
    numbers = dict(tables())["numbers"]
    for name in PRUNERS:
        yield f"pruning={name!r}", partial(prune, name, *numbers)
    for kind in (DecisionTreeClassifier, C45Classifier):
        yield f"exports of {kind.__name__}", partial(export, kind, *numbers)
    X = np.random.default_rng(0).normal(size=(20_000, 12)).astype(np.float32)
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor):  # by histograms
        yield f"{kind.__name__}, many rows", partial(use, kind, X, (X[:, 0] > X[:, 1]).astype(int))
    yield "MDLPDiscretizer, rank_features", partial(describe, *numbers)


def main() -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    log = logging.getLogger("gputree")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    found = {}
    for name, call in uses():
        with waiting() as wait:
            call()
        messages = [record.getMessage() for record in records]
        not_kept = [message for message in messages if "cannot be kept" in message]
        found[name] = {"compiled": wait.kernels, "not kept": not_kept}
        records.clear()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
