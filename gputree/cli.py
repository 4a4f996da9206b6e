"""The `gputree` command: train, predict, show, info."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from gputree.persistence import replaced_file, require_destination

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it

# What a user's files, options and machine can cause; anything else is a bug and
# keeps its traceback.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, RuntimeError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None
        Arguments without the program's name; None takes `sys.argv`.

    Returns
    -------
    int
        Exit status: 0, 2 after an error, 130 after an interrupt.
    """
    arguments = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            arguments.run(arguments)
            sys.stdout.flush()
    except BrokenPipeError:  # `gputree show ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed at exit
    except KeyboardInterrupt:
        _say("error: interrupted")
        return INTERRUPTED
    except _EXPECTED as error:
        _say(f"error: {error}" if str(error) else f"error: {type(error).__name__}")
        return USAGE_ERROR
    return 0


def _say(message: str) -> None:
    """One line on standard error."""
    print(f"gputree: {' '.join(message.split())}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _say(f"warning: {message}")


# ---------------------------------------------------------------- arguments
class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)  # an abbreviation may be another's name

    def error(self, message: str) -> NoReturn:
        _say(f"error: {message} (see {self.prog} --help)")
        self.exit(USAGE_ERROR)


def _parser() -> argparse.ArgumentParser:
    from gputree import __version__

    parser = _Parser(prog="gputree", description="Decision trees from tables.")
    parser.add_argument("--version", action="version", version=f"gputree {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_train(commands.add_parser("train", help="grow a tree from a table"))
    _add_predict(commands.add_parser("predict", help="apply a model to a table"))
    _add_show(commands.add_parser("show", help="print a model as text"))
    info = commands.add_parser("info", help="print versions, devices and threads")
    info.set_defaults(run=_info)
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_train)
    add = parser.add_argument
    add("data", metavar="DATA", help="CSV (.csv, .tsv, also .gz) or Parquet file")
    add("--target", required=True, metavar="COL", help="the column to predict")
    features = parser.add_mutually_exclusive_group()
    features.add_argument(
        "--columns", metavar="A,B,...", type=_names, help="feature columns; default: all"
    )
    features.add_argument(
        "--ignore", metavar="A,B,...", type=_names, default=[], help="columns to leave out"
    )
    add("-o", "--output", required=True, metavar="MODEL", help="model file to write")
    add(
        "--algorithm",
        choices=["cart"],
        default="cart",
        help="cart: splits in two, by Breiman and others (1984)",
    )
    add(
        "--task",
        choices=["auto", "classification", "regression"],
        default="auto",
        help="auto: strings, booleans and up to 20 different whole numbers are classes",
    )
    add("--quiet", action="store_true", help="no progress bar, no summary")
    _add_tree_options(parser)


def _add_tree_options(parser: argparse.ArgumentParser) -> None:
    from gputree.pruning import PRUNERS

    options = parser.add_argument_group("options of the tree (default: the estimator's)")
    for name, (kind, metavar, text) in _TREE_OPTIONS.items():
        flag = f"--{name.replace('_', '-')}"
        options.add_argument(flag, type=kind, metavar=metavar, help=text)
    options.add_argument("--class-weight", choices=["balanced"], help="classes weigh the same")
    pruners = sorted(PRUNERS)
    text = f"a method with its default parameters: {', '.join(pruners)}"
    options.add_argument("--pruning", choices=pruners, metavar="NAME", help=text)


def _number(text: str) -> int | float:
    """A whole number as int, which counts; any other as float, which is a share."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def _number_or_name(text: str) -> int | float | str:
    try:
        return _number(text)
    except argparse.ArgumentTypeError:
        return text


# Named as the estimators' parameters, which check the values.
_TREE_OPTIONS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "device": (str, "NAME", "auto, cpu or cuda"),
    "criterion": (str, "NAME", "gini or entropy; squared_error"),
    "splitter": (str, "NAME", "exact or binned"),
    "max_depth": (int, "N", "greatest depth of a leaf"),
    "max_leaf_nodes": (int, "N", "most leaves, opened best first"),
    "min_samples_split": (_number, "N", "fewest rows to split; 0.01 is a share of all rows"),
    "min_samples_leaf": (_number, "N", "fewest rows in a leaf; 0.01 is a share of all rows"),
    "min_impurity_decrease": (float, "X", "least weighted decrease of impurity by a split"),
    "max_features": (_number_or_name, "N", "columns drawn for a node; a share, sqrt or log2"),
    "ccp_alpha": (float, "X", "cost-complexity pruning: price of a leaf"),
    "random_state": (int, "N", "seed"),
    "n_jobs": (int, "N", "threads; -1 takes all"),
}


def _names(text: str) -> list[str]:
    return text.split(",")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_predict)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("data", metavar="DATA", help="columns are matched by name")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help=".csv or .parquet; default: CSV to standard output"
    )
    parser.add_argument("--proba", action="store_true", help="add a probability for each class")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_show)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--max-depth", type=int, default=None, metavar="N")


# -------------------------------------------------------------------- train
def _train(arguments: argparse.Namespace) -> None:
    from gputree.datasets import read_table, to_matrix
    from gputree.estimators.model_file import save_model

    output = Path(arguments.output)
    _check_output(output, arguments.data)
    table = read_table(
        arguments.data, arguments.target, columns=arguments.columns, ignore=arguments.ignore
    )
    try:
        X, y = to_matrix(table.columns, path=arguments.data), table.target
    except ValueError as error:
        raise ValueError(f"{error} Leave columns out with --ignore.") from error
    assert y is not None  # a target was asked for
    estimator = _estimator(arguments, y)
    start = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - start
    score = estimator.score(X, y)
    estimator.feature_names_in_ = np.array(table.names, dtype=object)
    save_model(estimator, output)
    if not arguments.quiet:
        _escape_unknown_characters()
        print(_summary(estimator, X.shape, seconds, score, output))


def _check_output(output: Path, *inputs: str) -> None:
    """What would spoil the output or an input is told before the work, not after it."""
    require_destination(output)
    for path in inputs:
        if output.exists() and os.path.exists(path) and output.samefile(path):
            raise ValueError(f"The output {output} would overwrite the input {path}.")


def _estimator(arguments: argparse.Namespace, y: NDArray) -> Any:
    from gputree.datasets import infer_task
    from gputree.estimators import DecisionTreeClassifier, DecisionTreeRegressor

    task = infer_task(y) if arguments.task == "auto" else arguments.task
    if task == "regression" and y.dtype.kind not in "iuf":
        raise ValueError(
            f"Regression needs numbers in the target column {arguments.target!r}; it holds "
            f"{'booleans' if y.dtype.kind == 'b' else 'text'}, such as {str(y[0])!r}."
        )
    if task == "regression" and arguments.class_weight is not None:
        raise ValueError("--class-weight is for classification; the task is regression.")
    given = {name: getattr(arguments, name) for name in (*_TREE_OPTIONS, "class_weight", "pruning")}
    params = {name: value for name, value in given.items() if value is not None}
    estimator = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    return estimator(**params, verbose=0 if arguments.quiet else 1)


def _summary(
    estimator: Any, shape: tuple[int, ...], seconds: float, score: float, output: Path
) -> str:
    tree = estimator.tree_
    task = tree.task
    if task == "classification":
        task += f", {_counted(tree.n_classes, 'class', 'classes')}"
    measure = "accuracy" if tree.task == "classification" else "R2"
    lines = {
        "table": f"{_counted(shape[0], 'row')}, {_counted(shape[1], 'column')}",
        "task": task,
        "tree": _size(tree),
        "training": f"{seconds:.3g} s, {measure} {score:.4f} on the training rows",
        "model": str(output),
    }
    return _aligned(lines)


def _size(tree: Any) -> str:
    leaves = _counted(tree.n_leaves, "leaf", "leaves")
    return f"{_counted(tree.n_nodes, 'node')}, {leaves}, depth {tree.max_depth}"


def _counted(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def _aligned(lines: dict[str, str]) -> str:
    width = max(map(len, lines)) + 2
    return "\n".join(f"{key:{width}}{value}" for key, value in lines.items())


# ------------------------------------------------------------------ predict
def _predict(arguments: argparse.Namespace) -> None:
    from gputree.datasets import read_table, to_matrix
    from gputree.estimators.model_file import load_model

    output = None if arguments.output is None else Path(arguments.output)
    if output is not None and output.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"The name of the output must end in .csv or .parquet, got {output}.")
    if output is not None:
        _check_output(output, arguments.data, arguments.model)
    estimator: Any = load_model(arguments.model)
    if arguments.proba and not hasattr(estimator, "classes_"):
        raise ValueError("--proba needs a classification model; this is a regression model.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ValueError(f"{arguments.model} holds no column names to match {arguments.data} with.")
    columns = read_table(arguments.data, columns=list(names)).columns
    X = to_matrix(columns, path=arguments.data)
    del estimator.feature_names_in_  # matched above: the matrix needs no names
    predictions = {"prediction": estimator.predict(X)}
    if arguments.proba:
        shares = estimator.predict_proba(X).T
        pairs = zip(estimator.classes_, shares, strict=True)
        predictions |= {f"probability_{label}": share for label, share in pairs}
    _write(predictions, output)


def _write(columns: dict[str, NDArray], output: Path | None) -> None:
    if output is None:
        _write_csv(columns, sys.stdout)
        return
    with replaced_file(output) as file:
        if output.suffix.lower() == ".parquet":
            _write_parquet(columns, file)
        else:
            with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
                _write_csv(columns, text)


def _write_csv(columns: dict[str, NDArray], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _write_parquet(columns: dict[str, NDArray], file: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), file)


# ----------------------------------------------------------- show and info
def _show(arguments: argparse.Namespace) -> None:
    from gputree.estimators.model_file import load_model
    from gputree.export.describe import describe
    from gputree.export.text import text_lines

    estimator: Any = load_model(arguments.model)
    tree = estimator.tree_
    lines = text_lines(describe(estimator), max_depth=arguments.max_depth)
    _escape_unknown_characters()
    columns = _counted(tree.n_features, "column")
    print(f"{type(estimator).__name__} ({tree.criterion}): {columns}, {_size(tree)}")
    print("Missing values follow the branch of more rows unless marked.\n")
    sys.stdout.writelines(lines)


def _escape_unknown_characters() -> None:
    """Text for people is to appear on any terminal; predictions must not be changed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _info(arguments: argparse.Namespace) -> None:
    import platform
    from importlib.metadata import version

    import numba

    from gputree import __version__

    config: Any = numba.config
    print(
        _aligned(
            {
                "gputree": __version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "numba": numba.__version__,
                "scikit-learn": version("scikit-learn"),
                "pyarrow": version("pyarrow"),
                **_cuda(),
                "threads": str(config.NUMBA_NUM_THREADS),
                "cache": config.CACHE_DIR or "__pycache__ beside each module",
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
