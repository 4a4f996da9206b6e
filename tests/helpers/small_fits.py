"""Fits of the shipped tables by every estimator, as digests: what small tables are to a user.

``python small_fits.py`` prints them as JSON, from a separate process, in the mode of GPUTREE_JIT,
and the number of kernels that it has compiled.
``python small_fits.py --record`` writes the record.
"""

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

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
    datasets,
    export_text,
    rank_features,
)
from gputree.compilation.waits import waiting
from gputree.pruning import PRUNERS, CostComplexity, get_pruner

RECORD = Path(__file__).parent / "small_fits.json"

CLASSIFIED = ("iris", "golf", "loan", "watermelon", "contact_lenses")


class Table(NamedTuple):
    X: Any
    y: np.ndarray
    weight: np.ndarray


def load(name: str, dtype: Any = None) -> Table:
    bunch = getattr(datasets, f"load_{name}")()
    X = bunch.data if dtype is None else bunch.data.astype(dtype)
    # RandomState: its streams never change.
    weight = np.random.RandomState(0).choice([0.25, 1.0, 1.5, 3.0], len(bunch.target))
    return Table(X, np.asarray(bunch.target), weight)


def models() -> Iterator[tuple[str, Any, Table, bool]]:
    """(name, estimator, table, weighted) of each fit."""
    for name in CLASSIFIED:
        table = load(name)
        for kind in (
            DecisionTreeClassifier, C45Classifier, ID3Classifier, C45Rules, BoostedC45Classifier,
            BoostedC45Rules,
        ):  # fmt: skip
            yield f"{name} {kind.__name__}", kind(), table, False
    yield "auto_mpg DecisionTreeRegressor", DecisionTreeRegressor(), load("auto_mpg"), False
    for dtype in (np.float32, np.float64):
        iris, numbers = load("iris", dtype), f"iris {np.dtype(dtype)}"
        target = Table(iris.X[:, :3], iris.X[:, 3], iris.weight)
        for criterion in ("gini", "entropy"):
            tree = DecisionTreeClassifier(criterion=criterion)
            yield f"{numbers} weighted {criterion}", tree, iris, True
        for criterion in ("squared_error", "poisson"):
            for weighted in (False, True):
                name = f"{numbers} {criterion} {'weighted' if weighted else ''}"
                yield name, DecisionTreeRegressor(criterion=criterion), target, weighted
        two = Table(iris.X, np.where(iris.y == iris.y[0], "a", "b"), iris.weight)
        options: dict[str, dict[str, Any]] = {
            "monotonic": {"monotonic_cst": [1, 0, -1, 0]},
            "leaves": {"max_leaf_nodes": 4},
            "drawn": {"max_features": 1, "random_state": 2},
            "binned": {"splitter": "binned", "max_bins": 8},
        }
        for name, parameters in options.items():
            yield f"{numbers} {name}", DecisionTreeClassifier(**parameters), two, False
        increasing = DecisionTreeRegressor(monotonic_cst=[1, 0, 0])
        yield f"{numbers} monotonic regression", increasing, target, True
        yield f"{numbers} C4.5 weighted", C45Classifier(), iris, True
        holes = Table(iris.X.copy(), iris.y, iris.weight)
        holes.X[::7, 2] = np.nan
        for kind in (DecisionTreeClassifier, C45Classifier, C45Rules):
            yield f"{numbers} missing {kind.__name__}", kind(), holes, False
    for name in PRUNERS:
        pruner = CostComplexity(0.02) if name == "cost_complexity" else get_pruner(name)
        if "random_state" in pruner.get_params():
            pruner.set_params(random_state=0)
        yield f"iris {name}", DecisionTreeClassifier(pruning=pruner), load("iris"), False


def content(model: Any, table: Table) -> Iterator[Any]:
    """Yield everything that a user can see of a fitted model."""
    tree = getattr(model, "tree_", None)
    if tree is not None:
        # Of one target: the record is older than several.
        names = (field.name for field in fields(tree) if field.name != "target_classes")
        yield from (getattr(tree, name) for name in names)
        yield export_text(model)
    for answer in ("predict", "predict_proba"):
        if hasattr(model, answer):
            yield getattr(model, answer)(table.X)
    if hasattr(model, "rules_"):
        yield str(model.rules_)


def digest(values: Iterator[Any]) -> str:
    """Digest of the bits of arrays, and of texts."""
    found = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype != object:
            found.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
        else:
            found.update(repr(value).encode())
    return found.hexdigest()[:12]


def fits() -> dict[str, str]:
    """The digest of each fit by its name."""
    warnings.simplefilter("ignore")
    found = {}
    for name, model, table, weighted in models():
        model.set_params(**{"device": "cpu"} if "device" in model.get_params() else {})
        model.fit(table.X, table.y, sample_weight=table.weight if weighted else None)
        found[name] = digest(content(model, table))
    iris = load("iris")
    found["MDLP"] = digest(iter([MDLPDiscretizer().fit(iris.X, iris.y).transform(iris.X)]))
    found["ranking"] = digest(iter([str(rank_features(iris.X, iris.y, device="cpu"))]))
    return found


if __name__ == "__main__":
    with waiting() as wait:
        found = fits()
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(json.dumps({"fits": found, "compiled": wait.kernels}))
