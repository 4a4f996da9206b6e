"""`gputree info`: versions, devices, threads, folders; or the columns of a table."""

from __future__ import annotations

import argparse

from gputree._texts import aligned
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
    import platform
    from importlib.metadata import version

    import numba
    import numpy as np

    from gputree import __version__
    from gputree.compilation.folders import in_use
    from gputree.threads import most_threads

    folder = in_use()
    print(
        aligned(
            {
                "gputree": __version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "numba": numba.__version__,
                "scikit-learn": version("scikit-learn"),
                "pyarrow": version("pyarrow"),
                **_cuda(),
                "threads": str(most_threads()),
                "cache": "nowhere: no folder is writable" if folder is None else folder.path,
            }
        )
    )


def _cuda() -> dict[str, str]:
    """The CuPy release and the devices it sees."""
    from gputree._optional import require

    try:
        cupy = require("cupy", "gputree info")
    except ImportError:
        return {"cupy": "not installed", "CUDA devices": "none"}
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        return {"cupy": cupy.__version__, "CUDA devices": f"none ({error})"}
    names = [runtime.getDeviceProperties(j)["name"].decode() for j in range(count)]
    return {"cupy": cupy.__version__, "CUDA devices": ", ".join(names) or "none"}
