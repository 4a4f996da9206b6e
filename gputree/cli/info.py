"""`gputree info`: versions, devices, threads, folders; or the columns of a table."""

from __future__ import annotations

import argparse

from gputree.cli.report import with_examples
from gputree.cli.tables import add_columns, add_missing_target


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
    parser.add_argument("--target", metavar="COL", help="the target column, if there is one")
    add_missing_target(parser)
    add_columns(parser)


def _info(arguments: argparse.Namespace) -> None:
    if arguments.data is not None:
        from gputree.cli.table_info import print_table

        print_table(arguments)
        return
    from gputree._versions import show_versions

    show_versions()
