"""`gputree info`: versions, devices, threads, folders; or the columns of a table."""

from __future__ import annotations

import argparse
from typing import Any

from gputree.base.texts import aligned, tabled
from gputree.cli.cells import tell_other_task, with_hints
from gputree.cli.reading import table_origin
from gputree.cli.report import counted, escape_unknown_characters, with_examples
from gputree.cli.tables import (
    add_columns,
    add_missing_target,
    columns_to_read,
    label_of,
    tell_dropped,
)
from gputree.cli.targets import add_targets, more_targets, named_targets, take_targets
from gputree.export.describe import on_one_line
from gputree.inputs.labels import Labels

_EXAMPLES = 3
_LONGEST_EXAMPLE = 24


def add_info(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree info`."""
    with_examples(
        parser,
        "Print what a bug report should contain: versions, devices, threads, folders. With a "
        "table, print its columns as train reads them: kind, missing cells, range or number of "
        "categories, examples; and everything that was guessed.",
        "gputree info",
        "gputree info adult.csv --target income",
        "gputree info prices.csv --decimal , --no-header",
    )
    parser.set_defaults(run=_info, missing_target="error")
    parser.add_argument(
        "data",
        metavar="FILE",
        nargs="?",
        help="CSV, Parquet, Arrow, ARFF or C4.5 file; - for CSV from standard input",
    )
    add_targets(parser.add_argument, "the target column, if there is one", required=False)
    add_missing_target(parser)
    add_columns(parser)


def _info(arguments: argparse.Namespace) -> None:
    if arguments.data is not None:
        _print_table(arguments)
        return
    from gputree.base.optional import show_versions

    show_versions()


def _print_table(arguments: argparse.Namespace) -> None:
    """Print each column of a table; guesses about it are warnings."""
    from gputree.datasets import read_table

    arguments.weights = None
    with with_hints(arguments.missing):
        table = read_table(
            table_origin(arguments.data),
            arguments.target,
            **columns_to_read(arguments),
            verbose=True,
        )
    tell_dropped(label_of(arguments.data), table.n_dropped)
    _warn_of_identifiers(label_of(arguments.data), table.columns)
    targets: dict[Any, Labels] = {} if table.target is None else {table.target_name: table.target}
    if more_targets(arguments):
        table, several = take_targets(label_of(arguments.data), table, arguments)
        targets = named_targets(arguments, several)
    said = set(arguments.categorical)
    ordered = dict(arguments.ordered)
    rows = [["column", "kind", "missing", "values", "examples"]]
    for name, column in zip(table.names, table.columns.columns, strict=True):
        rows.append([on_one_line(name), *_described(column, name in said, name in ordered)])
    lines = {
        "table": f"{counted(table.n_rows, 'row')}, {counted(len(table.names), 'column')}",
        **({"left out": ", ".join(map(repr, table.left_out))} if table.left_out else {}),
        **({} if table.weight is None else {"weights": "of the rows, in the file"}),
        **(
            {
                "target" + f" {i}" * (len(targets) > 1): _target(name, targets[name])
                for i, name in enumerate(targets)
            }
        ),
    }
    escape_unknown_characters()
    print(aligned(lines))
    print()
    print(tabled(rows, left=range(len(rows[0]))))


def _warn_of_identifiers(label: str, X: Any) -> None:
    """Warn of columns of text that name the rows, as estimators do."""
    import pyarrow as pa

    from gputree import CodedTable
    from gputree.datasets.file_format import Guess, Option, warn_of
    from gputree.estimators.column_warnings import find_identifiers

    names = [field.name for field in X.schema if pa.types.is_string(field.type)]
    if not names:
        return
    table = CodedTable(X.select(names), device="cpu")._table
    found = find_identifiers(table.columns, table.count_categories, None, False, table.mixed)
    guesses = []
    for column in found:
        name = names[column.feature]
        text = f"column {name!r} {column.claim}, and is taken for categories"
        advice = "To leave it out add {0}"
        guesses.append(Guess(text, advice, (Option("ignore", [name]),), name))
    warn_of(label, guesses)


def _target(name: str, target: Labels) -> str:
    """A target, and the task that is inferred of it."""
    from gputree.datasets import infer_task
    from gputree.inputs.labels import distinct

    values = distinct(target)
    such = ", ".join(_short(value) for value in values[:_EXAMPLES].tolist())
    task = infer_task(target)
    tell_other_task(name, task, target)
    what = "class" if task == "classification" else "value"
    several = "classes" if what == "class" else "values"
    return f"{name}: {task}, {counted(values.size, what, several)}, such as {such}"


def _described(column: Any, is_category: bool, is_ordered: bool) -> list[str]:
    """The kind of a column, its missing cells, its range or number of categories, and examples."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from gputree.datasets.conversion import is_date, is_number_type, is_text

    kind, present = column.type, column.drop_null()
    if pa.types.is_floating(kind):
        present = present.filter(pc.invert(pc.is_nan(present)))
    missing = len(column) - len(present)
    if pa.types.is_dictionary(kind):
        present = present.cast(kind.value_type)
        name = "ordered categories" if kind.ordered or is_ordered else "declared categories"
    elif pa.types.is_null(kind):
        name = "no values"
    elif pa.types.is_boolean(kind):
        name = "booleans"
    elif is_date(kind):
        name = "dates or times"
        if not len(present):  # of a form that the reader does not know
            return [name, "", "", ""]
    elif is_number_type(kind):
        name = "integers" if pa.types.is_integer(kind) else "numbers"
    elif is_text(kind):
        name = "ordered categories" if is_ordered else "text"
    else:  # such as lists, which no tree splits and pyarrow does not compare
        return [str(kind), f"{missing:,}", "", ""]
    is_range = is_number_type(kind) and not is_category and len(present) > 0
    words = present.unique()
    if is_range:
        ends = pc.min_max(present).as_py()
        values = f"{ends['min']:g} to {ends['max']:g}"
        if pa.types.is_integer(kind):
            values = f"{ends['min']} to {ends['max']}"
    else:
        values = counted(len(words), "category", "categories")
        name = f"{name} as categories" if is_number_type(kind) else name
    such = ", ".join(_short(word.as_py()) for word in words[:_EXAMPLES])
    return [name, f"{missing:,}", values, such]


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else on_one_line(str(value))
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[:_LONGEST_EXAMPLE]}..."
