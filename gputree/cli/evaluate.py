"""`gputree evaluate`: a model's answers beside the truth."""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.cli.measures import Answers, answers, shown
from gputree.cli.report import (
    aligned,
    counted,
    escape_unknown_characters,
    say,
    tabled,
    with_examples,
)
from gputree.cli.streams import check_inputs, check_output, load, write_text
from gputree.cli.tables import add_missing, add_target, label_of, table_with_target

# Of a table of confusions that is too wide for the terminal.
MOST_CONFUSIONS = 20


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree evaluate`."""
    with_examples(
        parser,
        "Hold a model's answers against the truth: accuracy, log loss, precision, recall and "
        "F1 of each class and the confusion matrix, or R2, mean absolute and root mean squared "
        "error.",
        "gputree evaluate adult.gputree test.csv",
        "gputree evaluate adult.gputree test.csv --format json | jq .accuracy",
    )
    parser.set_defaults(run=_evaluate)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument("data", metavar="DATA", help="table with the target; - for CSV from "
                        "standard input")  # fmt: skip
    add_target(parser)
    parser.add_argument("--format", choices=list(_FORMATS), default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="OUT", help="default: standard output")
    add_missing(parser)


def _evaluate(arguments: argparse.Namespace) -> None:
    check_inputs(arguments.model, arguments.data)
    check_output(arguments.output, arguments.data, arguments.model)
    estimator = load(arguments.model)
    table = table_with_target(estimator, arguments)
    try:
        found = answers(estimator, table.columns, table.target)
    except ValueError as error:
        raise ValueError(f"{label_of(arguments.data)}: {error}") from error
    if found.labels is not None:
        _tell_unknown(found.y, estimator.classes_)
    escape_unknown_characters()
    write_text(_FORMATS[arguments.format](found), arguments.output)


def _tell_unknown(y: NDArray[Any], classes: NDArray[Any]) -> None:
    unknown = ~np.isin(y, classes)
    if unknown.any():
        labels = ", ".join(map(str, np.unique(y[unknown])[:5].tolist()))
        rows = counted(int(unknown.sum()), "row")
        say(f"warning: {rows} of classes that the model does not know, such as {labels}")


class _PerClass:
    """Precision, recall and F1, and the confusion matrix, by scikit-learn."""

    def __init__(self, found: Answers) -> None:
        from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

        assert found.labels is not None
        self.labels = found.labels
        with warnings.catch_warnings():  # that there is one label
            warnings.simplefilter("ignore")
            self.matrix = confusion_matrix(found.y, found.predicted, labels=found.labels)
        by_class = precision_recall_fscore_support(
            found.y, found.predicted, labels=found.labels, zero_division=0.0
        )
        self.scores = list(zip(*(column.tolist() for column in by_class), strict=True))
        self.means = tuple(np.mean(np.array(self.scores)[:, :3], axis=0).tolist())

    def confusions(self) -> Iterator[tuple[Any, Any, int]]:
        """True class, answer, rows."""
        for true, row in zip(self.labels.tolist(), self.matrix.tolist(), strict=True):
            for answer, rows in zip(self.labels.tolist(), row, strict=True):
                yield true, answer, rows


# ------------------------------------------------------------------------- text
def _text(found: Answers) -> str:
    overall = {"rows": f"{found.y.size:,}"}
    overall |= {
        name: f"{shown(measure.value)}  +- {shown(measure.error)}"
        for name, measure in found.measures.items()
    }
    parts = [aligned(overall)]
    if found.labels is not None:
        classes = _PerClass(found)
        parts += [tabled(_score_rows(classes)), _confusion_text(classes)]
    return "\n\n".join(parts) + "\n"


def _score_rows(classes: _PerClass) -> list[list[str]]:
    rows = [["class", "precision", "recall", "F1", "rows"]]
    for label, (*scores, support) in zip(classes.labels.tolist(), classes.scores, strict=True):
        rows.append([str(label), *map(shown, scores), f"{support:,}"])
    return [*rows, ["mean", *map(shown, classes.means), f"{sum(s[3] for s in classes.scores):,}"]]


def _confusion_text(classes: _PerClass) -> str:
    labels = [str(label) for label in classes.labels.tolist()]
    rows = [["true class \\ answer", *labels]]
    counts = classes.matrix.tolist()
    rows += [
        [label, *(f"{count:,}" for count in row)] for label, row in zip(labels, counts, strict=True)
    ]
    table = tabled(rows)
    if max(map(len, table.splitlines())) <= shutil.get_terminal_size().columns:
        return table
    wrong = [one for one in classes.confusions() if one[0] != one[1] and one[2]]
    wrong.sort(key=lambda one: -one[2])
    rows = [["true class", "answer", "rows"]]
    rows += [[str(true), str(answer), f"{count:,}"] for true, answer, count in wrong]
    head = "most frequent confusions (--format csv and json have the whole matrix)\n"
    return head + tabled(rows[: MOST_CONFUSIONS + 1])


# ------------------------------------------------------------------ for programs
def _json(found: Answers) -> str:
    content: dict[str, Any] = {"rows": int(found.y.size)}
    for name, measure in found.measures.items():
        key = _key(name)
        content |= {key: _or_null(measure.value), f"{key}_std_error": _or_null(measure.error)}
    if found.labels is not None:
        classes = _PerClass(found)
        pairs = zip(classes.labels.tolist(), classes.scores, strict=True)
        content["classes"] = [{"class": label} | _named(scores) for label, scores in pairs]
        content["confusion_matrix"] = classes.matrix.tolist()
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _csv(found: Answers) -> str:
    """One number a line: what it is, of which class, and of which answer."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["measure", "class", "answer", "value"])
    writer.writerow(["rows", "", "", found.y.size])
    for name, measure in found.measures.items():
        writer.writerow([_key(name), "", "", measure.value])
        writer.writerow([f"{_key(name)}_std_error", "", "", measure.error])
    if found.labels is not None:
        classes = _PerClass(found)
        for label, scores in zip(classes.labels.tolist(), classes.scores, strict=True):
            writer.writerows([name, label, "", value] for name, value in _named(scores).items())
        writer.writerows(["confusion", *one] for one in classes.confusions())
    return text.getvalue()


def _named(scores: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("precision", "recall", "f1", "rows"), scores, strict=True))


def _key(name: str) -> str:
    return name.lower().replace(" ", "_")


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else value


_FORMATS = {"text": _text, "csv": _csv, "json": _json}
