"""`gputree evaluate`: a model's predictions compared with the true values."""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import tee
from operator import itemgetter
from typing import Any

import numpy as np

from gputree import evaluation
from gputree.base.texts import aligned, amount, shown, tabled
from gputree.cli.memory import add_scan_memory, watched_memory
from gputree.cli.reading import check_inputs, check_output, load, write_text
from gputree.cli.report import counted, escape_unknown_characters, say, with_examples
from gputree.cli.tables import (
    add_reading,
    add_target,
    batches_with_target,
    feature_names,
    label_of,
    label_of_all,
    target_names,
)
from gputree.cli.targets import add_weights, check_values
from gputree.cli.training import files_of
from gputree.errors import InputError
from gputree.evaluation import (
    Answers,
    Lines,
    PerClass,
    Sums,
    TableSums,
    answers_by_target,
    in_blocks,
)

# Probabilities of the rows whose sums are added up at a time.
BLOCK_CELLS = 1 << 18

MOST_CONFUSIONS = 20  # of a table of confusions that is too wide for the terminal


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree evaluate`."""
    with_examples(
        parser,
        "Evaluate a model on a table with the target: accuracy, log loss, precision, recall and "
        "F1 of each class and the confusion matrix, or R2, mean absolute and root mean squared "
        "error, and the pinball loss of a quantile. Also the attribute usage of each column, and "
        "the coverage and errors of each rule or boosting iteration; --format csv leaves these "
        "out.",
        "gputree evaluate adult.gputree test.csv",
        "gputree evaluate adult.gputree test.csv --format json | jq .accuracy",
    )
    parser.set_defaults(run=_evaluate)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="+",
        help="table with the target; - for CSV from standard input; several files as for train",
    )
    add_target(parser)
    add_weights(parser)
    parser.add_argument("--format", choices=list(_FORMATS), default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="OUT", help="default: standard output")
    add_reading(parser, True)
    add_scan_memory(parser)


def _evaluate(arguments: argparse.Namespace) -> None:
    files = files_of(arguments.data)
    check_inputs(arguments.model, *files)
    check_output(arguments.output, *files, arguments.model)
    estimator = load(arguments.model)
    with watched_memory(arguments.memory):
        found, tables = _summed(estimator, arguments, files)
    escape_unknown_characters()
    write_text(_FORMATS[arguments.format](found, tables), arguments.output)


def _summed(
    estimator: Any, arguments: argparse.Namespace, files: list[str]
) -> tuple[dict[str, Sums], dict[str, Lines]]:
    """Sums over the rows of all files, batch by batch, and the tables of the parts of the model.

    By the names of several targets.
    """
    k = getattr(estimator, "n_outputs_", 1)
    sums: dict[str, Sums] = {}
    names = target_names(estimator, arguments) if k > 1 else [""]
    tables = TableSums(feature_names(estimator, arguments.model))
    unknown: Counter[Any] = Counter()
    rows = max(BLOCK_CELLS // int(np.max(getattr(estimator, "n_classes_", 1))), 1)
    classes = getattr(estimator, "classes_", None)
    classes = classes if isinstance(classes, list) else [classes]
    streams = tee(_answers(estimator, arguments, files, tables), k)
    of_targets = (in_blocks(map(itemgetter(j), stream), rows) for j, stream in enumerate(streams))
    for blocks in zip(*of_targets, strict=True):
        for j, block in enumerate(blocks):
            before: Any = sums.get(names[j])
            sums[names[j]] = block.sums if before is None else before.joined(block.sums)
            if block.labels is not None:
                unknown.update(block.y[~np.isin(block.y, classes[j])].tolist())
    if not sums:  # the error of weights that are all zero
        check_values(np.zeros(1), arguments.weights, label_of_all(files))
    if unknown:
        labels = ", ".join(map(str, sorted(unknown)[:5]))
        left_out = counted(unknown.total(), "row")
        say(f"warning: {left_out} of classes that the model does not know, such as {labels}")
    return sums, tables.tables


def _answers(
    estimator: Any, arguments: argparse.Namespace, files: list[str], tables: TableSums
) -> Iterator[list[Answers]]:
    """Predictions of the rows of all files that have weight; `tables` sums up reports."""
    for file in files:
        given = argparse.Namespace(**{**vars(arguments), "data": file})
        for table, weight in batches_with_target(estimator, given):
            if weight is not None and not weight.any():
                continue
            rows = table.columns, table.target, weight
            try:
                found = answers_by_target(estimator, *rows)
                tables.add(estimator._report_tables(*rows), weight, table.n_rows)
            except InputError as error:
                raise InputError(f"{label_of(file)}: {error}") from error
            yield found


def _text(found: dict[str, Sums], tables: dict[str, Lines]) -> str:
    parts = [part for named in found.items() for part in _texts_of_target(*named)]
    return "\n\n".join([*parts, *evaluation.table_texts(tables)]) + "\n"


def _texts_of_target(name: str, found: Sums) -> list[str]:
    overall = {"target": name} if name else {}
    overall["rows"] = f"{found.rows:,}"
    if found.weight is not None:
        overall["weight"] = amount(found.weight)
    overall |= {
        name: f"{shown(measure.value)}  +- {shown(measure.error)}"
        for name, measure in found.measures.items()
    }
    parts = [aligned(overall)]
    if found.labels is not None:
        also = {name.replace("_", " "): shown(value) for name, value in _also(found).items()}
        classes, parts = PerClass(found), [*parts, aligned(also)]
        parts += [tabled(evaluation.score_rows(classes)), _confusion_text(classes)]
    return parts


def _also(found: Sums) -> dict[str, float]:
    """More measures of classes."""
    measures = {} if found.labels is None else evaluation.measures_of_classes(found)
    return {name: value for name, value in measures.items() if name in evaluation.AS_WEKA}


def _confusion_text(classes: PerClass) -> str:
    table = tabled(evaluation.confusion_rows(classes))
    if max(map(len, table.splitlines())) <= shutil.get_terminal_size().columns:
        return table
    wrong = [one for one in classes.confusions() if one[0] != one[1] and one[2]]
    wrong.sort(key=lambda one: -one[2])
    rows = [["true class", "predicted class", "rows"]]
    rows += [[str(true), str(answer), amount(count)] for true, answer, count in wrong]
    head = "most frequent confusions (--format csv and json have the whole matrix)\n"
    return head + tabled(rows[: MOST_CONFUSIONS + 1])


def _overall(found: Sums) -> dict[str, Any]:
    numbers: dict[str, Any] = {"rows": found.rows}
    if found.weight is not None:
        numbers["weight"] = found.weight
    for name, measure in found.measures.items():
        key = name.lower().replace(" ", "_")
        numbers |= {key: measure.value, f"{key}_std_error": measure.error}
    return numbers | _also(found)


def _json(found: dict[str, Sums], tables: dict[str, Lines]) -> str:
    content = [_content(*named) for named in found.items()]
    whole = (content[0] if len(content) == 1 else {"targets": content}) | tables
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _content(target: str, found: Sums) -> dict[str, Any]:
    content: dict[str, Any] = {"target": target} if target else {}
    content |= {name: None if np.isnan(value) else value for name, value in _overall(found).items()}
    if found.labels is not None:
        classes = PerClass(found)
        pairs = zip(classes.labels.tolist(), classes.scores, strict=True)
        content["classes"] = [{"class": label} | _named(scores) for label, scores in pairs]
        content["confusion_matrix"] = classes.matrix.tolist()
    return content


def _csv(found: dict[str, Sums], _: dict[str, Lines]) -> str:
    """One number a line: its name, class and predicted class; before it one of several targets."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    several = len(found) > 1
    writer.writerow([*["target"] * several, "measure", "class", "predicted_class", "value"])
    for name, sums in found.items():
        writer.writerows([*[name] * several, *line] for line in _numbers(sums))
    return text.getvalue()


def _numbers(found: Sums) -> Iterator[list[Any]]:
    yield from ([name, "", "", value] for name, value in _overall(found).items())
    if found.labels is not None:
        classes = PerClass(found)
        for label, scores in zip(classes.labels.tolist(), classes.scores, strict=True):
            yield from ([name, label, "", value] for name, value in _named(scores).items())
        yield from (["confusion", *one] for one in classes.confusions())


def _named(scores: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("precision", "recall", "f1", "rows"), scores, strict=True))


_FORMATS = {"text": _text, "csv": _csv, "json": _json}
