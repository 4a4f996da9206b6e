"""`gputree show` and `gputree info`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from gputree.cli.report import aligned, counted, escape_unknown_characters, size
from gputree.dtypes import BRANCH_SPLIT, MISSING_TO_ALL
from gputree.tree import Tree


def add_show(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree show`."""
    parser.set_defaults(run=_show)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--max-depth", type=int, default=None, metavar="N")


def add_info(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree info`."""
    parser.set_defaults(run=_info)


def _show(arguments: argparse.Namespace) -> None:
    from gputree.estimators.model_file import load_model
    from gputree.export.describe import describe
    from gputree.export.text import text_lines

    estimator: Any = load_model(arguments.model)
    tree = estimator.tree_
    lines = text_lines(describe(estimator), max_depth=arguments.max_depth)
    escape_unknown_characters()
    columns = counted(tree.n_features, "column")
    print(f"{type(estimator).__name__} ({tree.criterion}): {columns}, {size(tree)}")
    print(f"{_missing_rule(tree)}\n")
    sys.stdout.writelines(lines)


def _missing_rule(tree: Tree) -> str:
    """What the lines do not say of missing values."""
    inner = ~tree.is_leaf
    if (tree.missing_child[inner] == MISSING_TO_ALL).any():
        return "Missing and unknown values follow all branches, in shares."
    if (tree.split_kind == BRANCH_SPLIT).any():
        return "Values without a branch, missing ones among them, stop at the node."
    return "Missing values follow the branch of more rows unless marked."


def _info(arguments: argparse.Namespace) -> None:
    import platform
    from importlib.metadata import version

    import numba

    from gputree import __version__
    from gputree.compilation.folders import in_use

    config: Any = numba.config
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
                "threads": str(config.NUMBA_NUM_THREADS),
                "cache": "nowhere: no folder can be written" if folder is None else folder.path,
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
