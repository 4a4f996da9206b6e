"""`python -m benchmarks.boosting`: boosted trees of C4.5 beside one, on held-out rows.

Test error on every classification table of the folder that GPUTREE_DATA names: a fifth of the
rows at a time, stratified, the trees grown on the others. AdaBoost is scikit-learn's
`AdaBoostClassifier` over `C45Classifier`, which is given its weights times the number of rows: they
add up to 1, and C4.5 asks for leaves of 2 rows. c50py is the package of that name, where it is
installed.

`python -m benchmarks.boosting --resplits 30` compares the rules of C5.0 that boosting has by
default with C4.5's alone, on 30 random splits of each table into 70% to grow on and 30% to test
on (6 of tables of more than 1,000 rows): one split of a few hundred rows says little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import StratifiedKFold

from benchmarks import data
from benchmarks.compare.report import table_line
from gputree import BoostedC45Classifier, BoostedC45Rules, C45Classifier
from gputree.base.sklearn import safe_indexing

FOLDS = 5


class _OfMeanOne(C45Classifier):
    """A tree on weights that are scaled to a mean of 1."""

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return super().fit(X, y, sample_weight / sample_weight.mean())


def one_tree(trials: int, nominal: list[bool]) -> Any:
    return C45Classifier(categorical_features=nominal)


def boosted(trials: int, nominal: list[bool]) -> Any:
    return BoostedC45Classifier(n_trials=trials, categorical_features=nominal)


def boosted_rules(trials: int, nominal: list[bool]) -> Any:
    return BoostedC45Rules(n_trials=trials, categorical_features=nominal)


def adaboost(trials: int, nominal: list[bool]) -> Any:
    return AdaBoostClassifier(_OfMeanOne(categorical_features=nominal), n_estimators=trials)


def c50py(trials: int, nominal: list[bool]) -> Any:
    from c50py import C5Classifier

    return C5Classifier(
        trials=trials,
        categorical_features=list(np.flatnonzero(nominal)),
        infer_categorical=False,
        random_state=0,
    )


LEARNERS: dict[str, Callable[[int, list[bool]], Any]] = {
    "one tree": one_tree,
    "boosted": boosted,
    "boosted rules": boosted_rules,
    "AdaBoost over it": adaboost,
    "c50py": c50py,
}


# Parameters that turn the rules of C5.0 off, and what turns some of them on again.
_C45 = {"exclude_high_cardinality": False, "mdl_gain_threshold": False, "max_leaf_ratio": None}
_EXCLUDE = {"exclude_high_cardinality": True}
_MDL = {"mdl_gain_threshold": True}
_LEAVES = {"max_leaf_ratio": 1.1}
VARIANTS: dict[str, tuple[type, dict[str, Any]]] = {
    "one tree": (C45Classifier, {}),
    "excluding": (C45Classifier, _EXCLUDE),
    "excluding, MDL": (C45Classifier, _EXCLUDE | _MDL),
    "boosted as C4.5": (BoostedC45Classifier, _C45),
    "boosted, excluding": (BoostedC45Classifier, _C45 | _EXCLUDE),
    "and leaves": (BoostedC45Classifier, _C45 | _EXCLUDE | _LEAVES),
    "and MDL": (BoostedC45Classifier, _C45 | _EXCLUDE | _MDL),
    "boosted": (BoostedC45Classifier, {}),
    "rules as C4.5": (BoostedC45Rules, {"exclude_high_cardinality": False}),
    "boosted rules": (BoostedC45Rules, {}),
}
RESPLIT_ROWS = 1000  # tables of more rows are split `FEW_RESPLITS` times
FEW_RESPLITS = 6

# Of which the summary tells the errors on the tables of each.
BESIDE = "one tree", "boosted"


class LeftOut(Exception):
    """Why a learner has no figure."""


# --------------------------------------------------------------------- tables
def table_names() -> Iterator[str]:
    """The classification tables, by name."""
    folder = Path(os.environ.get("GPUTREE_DATA", ""))
    places = [p for d in (folder, folder.parent) if (p := d / "manifest.json").is_file()]
    if "GPUTREE_DATA" not in os.environ or not places:
        raise data.TableAbsent("GPUTREE_DATA names no folder of real tables")
    for name, told in sorted(json.loads(places[0].read_text("utf-8")).items()):
        files = folder / f"{name}.csv", folder / f"{name}.csv.gz"
        if told["target_kind"] == "classification" and any(f.is_file() for f in files):
            yield name


def drawn(table: data.FrameTable, rows: int) -> tuple[NDArray, NDArray, list[bool]]:
    """Up to so many rows as numbers and codes, classes that each fold has, nominal columns."""
    rows_drawn = np.sort(np.random.default_rng(0).permutation(len(table.y))[:rows])
    label, count = np.unique(table.y[rows_drawn], return_counts=True)
    rows_drawn = rows_drawn[np.isin(table.y[rows_drawn], label[count >= FOLDS])]
    nominal = [column in table.categories for column in table.X]
    frame = table.declared().iloc[rows_drawn]
    columns = [frame[c].cat.codes if c in table.categories else frame[c] for c in frame]
    X = np.column_stack([np.asarray(column, np.float64) for column in columns])
    return np.where((X < 0) & nominal, np.nan, X), table.y[rows_drawn], nominal


def folds(y: NDArray) -> list[tuple[NDArray, NDArray]]:
    """Places of the rows to grow on and to test on."""
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y[:, None], y))


# ----------------------------------------------------------------- re-splits
def accuracies(name: str, options: argparse.Namespace) -> NDArray[np.float64]:
    """Test accuracies in percent of all variants on each split, shape (splits, variants)."""
    X, y, nominal = drawn(data.frame_table(name), options.rows)
    few = min(options.resplits, FEW_RESPLITS)
    found = []
    for seed in range(few if y.size > RESPLIT_ROWS else options.resplits):
        order = np.random.default_rng(seed).permutation(y.size)
        train, test = np.split(order, [round(0.7 * y.size)])
        split = []
        for kind, params in VARIANTS.values():
            given = params | {"categorical_features": nominal, "classes": np.unique(y)}
            if kind is not C45Classifier:
                given["n_trials"] = options.trials
            model = kind(device="cpu", **given).fit(X[train], y[train])
            split.append(100 * model.score(X[test], y[test]))
        found.append(split)
    return np.array(found)


def resplit_lines(names: list[str], options: argparse.Namespace) -> Iterator[str]:
    """Mean accuracies of each table, and over tables with the standard error of differences.

    Differences are those of boosted trees to trees by C4.5's rules, and of rules likewise; the
    error is that of the draw of splits alone.
    """
    yield table_line(["table", *VARIANTS])
    yield table_line(["---"] * (len(VARIANTS) + 1))
    means, errors = [], []
    base = np.array([list(VARIANTS).index(_base_of(label)) for label in VARIANTS])
    for name in names:
        found = accuracies(name, options)
        means.append(found.mean(axis=0))
        errors.append((found - found[:, base]).std(axis=0, ddof=1) / np.sqrt(len(found)))
        yield table_line([name, *(f"{mean:.2f}" for mean in means[-1])])
    mean = np.mean(means, axis=0)
    error = np.sqrt(np.sum(np.square(errors), axis=0)) / len(names)
    cells = [f"{column:.2f}" for column in mean]
    for j in np.flatnonzero(base != np.arange(base.size)):
        cells[j] += f" ({mean[j] - mean[base[j]]:+.2f} ± {error[j]:.2f})"
    yield table_line([f"mean of {len(names)}", *cells])


def _base_of(label: str) -> str:
    """The variant that one is compared with: the same without C5.0's rules."""
    bases = {C45Classifier: "one tree", BoostedC45Rules: "rules as C4.5"}
    return bases.get(VARIANTS[label][0], "boosted as C4.5")


# -------------------------------------------------------------------- figures
def measure(learner: Any, X: Any, y: NDArray, limit: int) -> tuple[float, float]:
    """Mean share of test errors, and processor time of the fits, unless that is too long."""

    def too_long(*_: object) -> None:
        raise LeftOut(f"over {limit} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(limit)
    found, seconds = [], 0.0
    try:
        for train, test in folds(y):
            began = process_time()
            learner.fit(safe_indexing(X, train), y[train])
            seconds += process_time() - began
            found.append(np.mean(learner.predict(safe_indexing(X, test)) != y[test]))
    except (ValueError, TypeError) as error:
        raise LeftOut(type(error).__name__) from error
    finally:
        signal.alarm(0)
    return float(np.mean(found)), seconds


def cells_of(name: str, options: argparse.Namespace) -> tuple[list[str], dict[str, float]]:
    """The line of a table, and the errors by learner."""
    X, y, nominal = drawn(data.frame_table(name), options.rows)
    cells, errors = [f"{name}, {len(y):,} x {X.shape[1]}"], {}
    for label, new in LEARNERS.items():
        try:
            error, seconds = measure(new(options.trials, nominal), X, y, options.limit)
        except (ImportError, LeftOut) as why:
            cells.append("-" if isinstance(why, ImportError) else str(why))
            continue
        errors[label] = error
        cells.append(f"{100 * error:.2f} ({seconds:.1f} s)")
    return cells, errors


def summary(found: list[dict[str, float]]) -> Iterator[str]:
    """Mean errors, and tables won and lost, on those that a learner has figures of."""
    for label in list(LEARNERS)[1:]:
        of_learner = [one for one in found if label in one]
        if not of_learner:
            continue
        mean = {name: np.mean([one[name] for one in of_learner]) for name in (label, *BESIDE)}
        beside = " and ".join(f"{name} {100 * mean[name]:.2f}%" for name in BESIDE if name != label)
        won = sum(one[label] < one["one tree"] for one in of_learner)
        lost = sum(one[label] > one["one tree"] for one in of_learner)
        yield (
            f"- {label}: mean error {100 * mean[label]:.2f}% on {len(of_learner)} tables, "
            f"where {beside}; less than one tree on {won}, more on {lost}."
        )


def versions() -> str:
    """Of what the figures depend on."""
    found = []
    for library in ("numpy", "numba", "scikit-learn", "c50py"):
        try:
            found.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help="names; all classification tables by default")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--rows", type=int, default=5000, help="rows drawn of longer tables")
    parser.add_argument("--limit", type=int, default=60, help="seconds a table and learner")
    parser.add_argument("--resplits", type=int, help="random splits a table, of variants alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # columns that name rows
    print(f"{versions()}\n")
    if options.resplits is not None:
        for line in resplit_lines(options.tables or list(table_names()), options):
            print(line, flush=True)
        return
    print(table_line(["table", *LEARNERS]))
    print(table_line(["---"] * (len(LEARNERS) + 1)))
    found = []
    for name in options.tables or table_names():
        cells, errors = cells_of(name, options)
        found.append(errors)
        print(table_line(cells), flush=True)
    print("", *summary(found), sep="\n")


if __name__ == "__main__":
    main()
