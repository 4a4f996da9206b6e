"""`--holdout` and `--cv`: scores of a model on rows that it was not trained on."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gputree import evaluation
from gputree.base.dtypes import Weight
from gputree.base.progress import new_bar
from gputree.base.texts import aligned, amount, shown, tabled
from gputree.cli.reading import parts, set_verbose
from gputree.cli.report import UsageError, counted, say
from gputree.evaluation import Answers, Measure, PerClass, answers_by_target
from gputree.inputs.labels import CodedLabels, Labels

Split = tuple[NDArray[np.intp], NDArray[np.intp]]  # rows to train on, rows to predict


class Resampling(NamedTuple):
    """Splits of the rows, and the line that says what they are."""

    heading: str
    splits: list[Split]


def resampling(
    y: Labels,
    is_classes: bool,
    holdout: float | None,
    cv: int | None,
    seed: int,
    weight: Weight = None,
) -> Resampling | None:
    """The splits that were requested, stratified for classes; None where none were.

    Labels of several targets are not. No fold has rows of weight zero.
    """
    if holdout is None and cv is None:
        return None
    rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    is_classes = is_classes and y.ndim == 1
    classes, code = _coded(y[rows]) if is_classes else (None, np.empty(rows.size))
    stratified = ", stratified" if is_classes else ""
    if cv is not None:
        splits = [(rows[a], rows[b]) for a, b in _folds(code, classes, cv, seed)]
        return Resampling(f"{cv}-fold cross-validation{stratified}, seed {seed}", splits)
    assert holdout is not None
    train, test = _held_out(code, classes, holdout, seed)
    text = f"{counted(test.size, 'row')} of {rows.size:,} held out{stratified}, seed {seed}"
    return Resampling(text, [(rows[train], rows[test])])


def _coded(y: Labels) -> tuple[NDArray[Any], NDArray[Any]]:
    """The labels that rows have, ascending, and their codes."""
    return y.present() if isinstance(y, CodedLabels) else np.unique(y, return_inverse=True)


def _folds(code: NDArray[Any], classes: NDArray[Any] | None, cv: int, seed: int) -> list[Split]:
    """Parts of the rows; scikit-learn's where every part can have the largest class."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if not 2 <= cv <= code.size:
        raise UsageError(f"--cv must be from 2 to the number of rows, {code.size:,}. Got {cv}.")
    if classes is None:
        return list(KFold(cv, shuffle=True, random_state=seed).split(code))
    count = np.bincount(code)
    if cv < code.size and (rare := np.flatnonzero(count < cv)).size:
        words = [f"{str(classes[k])!r} ({counted(int(count[k]), 'row')})" for k in rare[:5]]
        more = f" and {rare.size - 5} more" if rare.size > 5 else ""
        say(f"warning: not each of the {cv} parts has a row of {', '.join(words)}{more}")
    if cv > count.max():
        return _dealt(code, cv, seed)
    with warnings.catch_warnings():  # of what has just been said
        warnings.simplefilter("ignore")
        folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
        return list(folds.split(np.zeros((code.size, 0)), code))


def _dealt(code: NDArray[np.intp], cv: int, seed: int) -> list[Split]:
    """Folds that get rows one by one, class by class, as in Weka; all of equal size."""
    order = np.random.RandomState(seed).permutation(code.size)
    order = order[np.argsort(code[order], kind="stable")]
    part = np.empty(code.size, np.intp)
    part[order] = np.arange(code.size) % cv
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(cv)]


def _held_out(code: NDArray[Any], classes: NDArray[Any] | None, share: float, seed: int) -> Split:
    """One split; rows that are the only ones of their class are trained on."""
    from sklearn.model_selection import train_test_split

    rows, alone = np.arange(code.size), np.zeros(code.size, np.bool_)
    if classes is not None:
        alone = np.bincount(code)[code] == 1
    spread = rows[~alone]
    try:
        train, test = train_test_split(
            spread,
            test_size=share,
            random_state=seed,
            stratify=None if classes is None else code[spread],
        )
    except ValueError as error:
        raise UsageError(
            f"--holdout {share:g} of {counted(code.size, 'row')} leaves too few rows on a side, or "
            "fewer than there are classes. Use another share, or --cv."
        ) from error
    return np.sort(np.append(train, rows[alone])), np.sort(test)


def score_table(
    estimator: Any,
    table: tuple[Any, Labels, Weight],
    names: list[str],
    given: Resampling,
    watched: bool,
) -> str:
    """Scores on rows held out, for people: one model a split, like `estimator` but for its rows.

    `table` has columns, targets of some names, and weights.
    """
    X, y, weight = table
    bar = new_bar(len(given.splits), watched, desc="trees on parts of the rows", unit="tree")
    found, tested = [], []
    with nullcontext() if bar is None else bar:
        for train, test in given.splits:
            ours, theirs = (
                (X.take(rows), y[rows], None if weight is None else weight[rows])
                for rows in (train, test)
            )
            model = set_verbose(clone(estimator), 0).fit(*ours)
            tested.append(answers_by_target(model, *theirs))
            inside = _measures(names, answers_by_target(model, *ours))
            found.append((inside, _measures(names, tested[-1]), parts(model)))
            if bar is not None:
                bar.update()
    scores = _one(*found[0]) if len(found) == 1 else _many(found)
    texts = [f"{given.heading}\n{tabled(scores)}"]
    for name, of_target in zip(names, zip(*tested, strict=True), strict=True):
        if of_target[0].labels is not None:
            heading = "all held-out rows" + (f", {name}" if len(names) > 1 else "")
            texts.append(f"{heading}\n{_pooled(evaluation.pooled(list(of_target)))}")
    return "\n\n".join(texts)


def _measures(names: list[str], found: list[Answers]) -> dict[str, Measure]:
    """Measures by their names; of several targets with those of the targets before."""
    if len(found) == 1:
        return found[0].measures
    return {
        f"{target} {name}": measure
        for target, of_target in zip(names, found, strict=True)
        for name, measure in of_target.measures.items()
    }


def _pooled(found: Answers) -> str:
    """Measures of the predictions of all models together, and the confusion matrix."""
    measures, classes = evaluation.measures_of_classes(found), PerClass(found)
    errors = f"{amount(measures.pop('errors'))} ({measures.pop('error_rate'):.2%})"
    lines = {"errors": errors} | {
        name.replace("_", " "): shown(measures[name]) for name in evaluation.AS_WEKA
    }
    parts = [
        aligned(lines),
        tabled(evaluation.score_rows(classes)),
        tabled(evaluation.confusion_rows(classes)),
    ]
    return "\n\n".join(parts)


def _one(inside: dict[str, Any], outside: dict[str, Any], size: tuple[str, int]) -> list[list[str]]:
    rows = [["", "held out", "std. error", "trained on"]]
    for name, measure in outside.items():
        cells = [measure.value, measure.error, inside[name].value]
        rows.append([name, *map(shown, cells)])
    return [*rows, [size[0], f"{size[1]:,}", "", ""]]


def _many(found: list[tuple[Any, Any, tuple[str, int]]]) -> list[list[str]]:
    rows = [["", "mean", "std. dev.", "min", "max"]]
    for name in found[0][1]:
        values = np.array([outside[name].value for _, outside, _ in found])
        spread = float(values.std(ddof=1))
        cells = [float(values.mean()), spread, float(values.min()), float(values.max())]
        rows.append([name, *map(shown, cells)])
    counts = np.array([count for *_, (_, count) in found])
    cells = [counts.mean(), counts.std(ddof=1), counts.min(), counts.max()]
    return [*rows, [found[0][2][0], *(f"{value:,.1f}" for value in cells)]]
