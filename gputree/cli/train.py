"""`gputree train`: from a table to a model file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gputree.base.texts import aligned, amount
from gputree.cli.memory import add_memory, growth_within, row_bytes, watched_memory
from gputree.cli.options import RULE_OPTIONS, add_options, flag, given_of_rules, given_options
from gputree.cli.reading import (
    STANDARD,
    check_output,
    forbid_terminal,
    keep_reading,
    save,
    set_verbose,
    sizes,
)
from gputree.cli.report import (
    HOW,
    UsageError,
    counted,
    escape_unknown_characters,
    number,
    one_of,
    parse_names,
    with_examples,
)
from gputree.cli.tables import add_columns, add_missing_target, check_kinds
from gputree.cli.targets import (
    add_targets,
    add_weights,
    more_targets,
    name_targets,
    named_targets,
    read_costs,
    require_one_target,
    task_of,
)
from gputree.cli.training import Training, files_of, read_training, training_score
from gputree.errors import InputError
from gputree.inputs.labels import Labels, distinct
from gputree.inputs.targets import columns_of

if TYPE_CHECKING:
    from gputree.compilation.waits import Wait


ALGORITHMS = ("cart", "c45", "id3", "random-forest", "extra-trees")


def add_train(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree train`."""
    with_examples(
        parser,
        "Grow a tree or a forest on a table, make rules of a tree, or boost several of either; and "
        "write the model file.",
        "gputree train adult.csv --target income --missing '?' -o adult.gputree",
        "gputree train golf.csv --target play --algorithm c45 -o golf.gputree",
        "gputree train golf.csv --target play --algorithm c45 --rules -o rules.gputree",
        "gputree train golf.csv --target play --algorithm c45 --rules --trials 10 \\",
        "    -o rules.gputree",
        "gputree train adult.csv --target income --algorithm c45 --trials 10 --winnow \\",
        "    --costs adult.costs -o boosted.gputree",
        "gputree train adult.csv --target income --algorithm random-forest \\",
        "    --oob-score -o forest.gputree",
        "gputree train cars.csv --target mpg --ignore name --cv 10 \\",
        "    --pruning cost_complexity:alpha=0.01",
        "gputree train cars.csv --target mpg --interactions 'weight,year;origin,year' \\",
        "    --max-depth 4 -o cars.gputree",
        "gputree train plants.csv --target height --target weight -o plants.gputree",
        "gputree train 'data/*.parquet' --target y --memory 4GB -o big.gputree",
        "zcat big.csv.gz | gputree train - --target y -o - > big.gputree",
    )
    parser.usage = "gputree train DATA [DATA ...] --target COL [...] -o MODEL [options]"
    parser.set_defaults(run=_train)
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        nargs="+",
        help="CSV (.csv, .tsv, .txt, also .gz), Parquet, Arrow or ARFF file, or C4.5's .data with "
        ".names (--target class); - for CSV from standard input; several files, a folder of them, "
        "or a pattern such as 'data/*.parquet'",
    )
    add_targets(add, "the column to predict")
    add(
        "-o",
        "--output",
        metavar="MODEL",
        help="model file to write; - for standard output; may be left out with --holdout or --cv",
    )
    add(
        "--algorithm",
        type=partial(one_of, ALGORITHMS),
        metavar="{" + ",".join(ALGORITHMS) + "}",
        default="cart",
        help="cart: binary splits (Breiman et al. 1984); c45, id3: multiway splits of categories "
        "(Quinlan 1993, 1986); random-forest: trees of cart on drawn rows and columns (Breiman "
        "2001); extra-trees: trees of drawn cuts (Geurts et al. 2006)",
    )
    add(
        "--task",
        choices=["auto", "classification", "regression"],
        default="auto",
        help="auto: strings, booleans and up to 20 distinct integers are classes",
    )
    add_classes(parser)
    add_weights(parser)
    score = parser.add_mutually_exclusive_group()
    score.add_argument(
        "--holdout",
        type=_share,
        metavar="FRACTION",
        help="evaluate on a held-out fraction of the rows, such as 0.2; the model is then grown "
        "on all rows",
    )
    score.add_argument(
        "--cv",
        type=int,
        metavar="K",
        help="evaluate by K-fold cross-validation; the model is then grown on all rows",
    )
    add("--quiet", action="store_true", help="no progress bar, no summary")
    add_missing_target(parser)
    add_memory(parser)
    add_columns(parser)
    add_options(parser)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise argparse.ArgumentTypeError(f"must be a fraction between 0 and 1, got {text!r}")
    return share


def _train(arguments: argparse.Namespace) -> None:
    if arguments.output is None and not (arguments.holdout or arguments.cv):
        raise UsageError(
            "the following arguments are required: -o/--output, or --cv or --holdout to evaluate "
            "without a model file"
        )
    files = files_of(arguments.data)
    check_output(arguments.output, *files)
    forbid_terminal(arguments.output, "A model file")
    check_kinds(arguments)
    require_one_target(arguments)
    _check_together(arguments)
    with watched_memory(arguments.memory):
        _train_on(arguments, files)


def _train_on(arguments: argparse.Namespace, files: list[str]) -> None:
    from gputree.cli.resampling import resampling, score_table
    from gputree.compilation.waits import waiting

    table = read_training(arguments, files)
    X, y, weight = table.X, table.y, table.weight
    estimator = _estimator(arguments, table)
    scored = resampling(
        y,
        hasattr(estimator, "predict_proba"),
        arguments.holdout,
        arguments.cv,
        arguments.random_state,
        weight,
    )
    watched = sys.stderr.isatty() and not arguments.quiet
    set_verbose(estimator, int(watched))
    with waiting() as wait, growth_within(*_limit(estimator, table, arguments)):
        start = time.perf_counter()
        estimator.fit(X, y, sample_weight=weight)
        seconds = time.perf_counter() - start - wait.seconds
        name_targets(estimator, arguments)
        score = training_score(estimator, table)
    keep_reading(estimator, arguments, files[0], table.left_out, table.units)
    set_verbose(estimator, 0)
    if arguments.output is not None:
        save(estimator, arguments.output)
    if arguments.quiet and scored is None:
        return
    # with a model on standard output, messages go to standard error
    out = sys.stderr if arguments.output == STANDARD else sys.stdout
    escape_unknown_characters()
    if not arguments.quiet:
        print(_summary(estimator, table, seconds, wait, score, arguments), file=out)
    if scored is not None:
        print("" if arguments.quiet else "\n", end="", file=out, flush=True)
        names = [arguments.target, *more_targets(arguments)]
        print(score_table(estimator, (X, y, weight), names, scored, watched), file=out)


def _limit(
    estimator: Any, table: Training, arguments: argparse.Namespace
) -> tuple[int | None, int]:
    """Arguments of `growth_within`; no limit for tables in memory."""
    from gputree import CodedTable

    is_regression = not hasattr(estimator, "predict_proba")
    n, d = table.X.shape
    row = row_bytes(d, is_regression, table.weight is not None, arguments.algorithm == "c45")
    return (arguments.memory if isinstance(table.X, CodedTable) else None), n * row


def _check_together(arguments: argparse.Namespace) -> None:
    if arguments.rules and arguments.soft_thresholds:
        raise UsageError(
            "--rules cannot be combined with --soft-thresholds: rules test thresholds exactly."
        )
    for name in RULE_OPTIONS:
        if getattr(arguments, name) is not None and not arguments.rules:
            raise UsageError(f"{flag(name)} is for rules: add --rules.")


def _estimator(arguments: argparse.Namespace, table: Training) -> Any:
    kind = _kind(arguments, table.y)
    params = given_options(arguments)
    classes = classes_of(arguments, table.y, table.declared)
    labels = distinct(columns_of(table.y)[0]) if classes is None else classes
    if classes is not None:
        params["classes"] = classes
    if arguments.costs is not None:
        _require_classes(kind, "--costs")
        params["misclassification_costs"] = read_costs(arguments.costs, labels)
    if arguments.ordered:
        params["ordered_categories"] = table.ordered_categories
    for name in set(params).difference(kind._get_param_names()):
        _refuse(name, arguments, kind)
    if not arguments.rules or arguments.n_trials is not None:
        params |= given_of_rules(arguments)  # none without --rules
        return kind(**params, categorical_features=table.categorical_features)
    _require_classes(kind, "--rules")
    if "pruning" not in kind._get_param_names():
        raise UsageError(f"--rules is no option of {arguments.algorithm}: add --algorithm c45.")
    if arguments.costs is not None and labels.size > 2:
        raise UsageError(
            "--rules cannot be combined with --costs of more than two classes: a rule has one kind "
            "of error. --class-weight weights the classes."
        )
    from gputree.rules import C45Rules

    # not pruned by default
    tree = kind(**{"pruning": None} | params, categorical_features=table.categorical_features)
    return C45Rules(tree, n_jobs=arguments.n_jobs).set_params(**given_of_rules(arguments))


def _require_classes(kind: Any, option: str) -> None:
    if not hasattr(kind, "predict_proba"):
        raise UsageError(f"{option} is for classification; the task is regression.")


def _refuse(name: str, arguments: argparse.Namespace, kind: Any) -> NoReturn:
    """Raise UsageError that names the algorithms which an option is for."""
    if name in ("class_weight", "classes"):
        _require_classes(kind, flag(name))
    if name == "quantreg" and getattr(kind, "_averages", False):  # regressors take it
        raise UsageError("--quantreg is for regression; the task is classification.")
    if name == "max_leaf_ratio" and arguments.algorithm == "c45":
        raise UsageError(f"{flag(name)} is for boosted trees: add --trials, without --rules.")
    if name == "mdl_gain_threshold" and arguments.rules and arguments.n_trials is not None:
        raise UsageError(f"{flag(name)} is no option of boosted rules: leave out --rules.")
    if name == "laplace" and arguments.n_trials is not None:
        raise UsageError(
            "--laplace cannot be combined with --trials: votes are smoothed in any case."
        )
    fault = f"{flag(name)} is no option of {arguments.algorithm}"
    others = [
        other
        for other, kinds in _kinds().items()
        if any(name in k._get_param_names() for k in kinds)
    ]
    if others and arguments.algorithm not in others:
        raise UsageError(f"{fault}: add --algorithm {' or '.join(others)}.")
    raise UsageError(f"{fault}.")


def _kind(arguments: argparse.Namespace, y: Labels) -> Any:
    task = task_of(arguments, y)
    for name, column in named_targets(arguments, columns_of(y)).items():
        if task == "regression" and column.dtype.kind not in "iuf":
            raise InputError(
                f"Regression needs numbers in the target column {name!r}; it holds "
                f"{'booleans' if column.dtype.kind == 'b' else 'text'}, such as {str(column[0])!r}."
            )
    if task == "regression" and arguments.algorithm in ("c45", "id3"):
        raise InputError(
            f"--algorithm {arguments.algorithm} is for classification, and the target column "
            f"{arguments.target!r} holds quantities. Use cart or random-forest, or --task "
            "classification."
        )
    found = _kinds()[arguments.algorithm]
    if arguments.algorithm == "c45":
        return found[0 if arguments.n_trials is None else 1 + arguments.rules]
    return found[task == "regression"]


def _kinds() -> dict[str, tuple[Any, ...]]:
    from gputree import ensemble, estimators
    from gputree.rules import BoostedC45Rules

    return {
        "cart": (estimators.DecisionTreeClassifier, estimators.DecisionTreeRegressor),
        "c45": (estimators.C45Classifier, estimators.BoostedC45Classifier, BoostedC45Rules),
        "id3": (estimators.ID3Classifier,),
        "random-forest": (ensemble.RandomForestClassifier, ensemble.RandomForestRegressor),
        "extra-trees": (ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor),
    }


def _summary(
    estimator: Any,
    table: Training,
    seconds: float,
    wait: Wait,
    score: float,
    arguments: argparse.Namespace,
) -> str:
    task, measure, counts = "regression", "R2", []
    if hasattr(estimator, "classes_"):
        n_classes = estimator.n_classes_
        several = n_classes if isinstance(n_classes, list) else [n_classes]
        counts = [counted(count, "class", "classes") for count in several]
        task, measure = f"classification, {counts[0]}", "accuracy"
    if getattr(estimator, "n_outputs_", 1) > 1:  # rules and boosting have one
        names = list(map(str, estimator.target_names_in_))
        if counts:
            names = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
        task = f"{task.partition(',')[0]} of {', '.join(names)}"
        measure = "accuracy of all targets together" if counts else "mean R2 of the targets"
    compiling = {"compiling": f"{wait.seconds:.3g} s, once on this machine"}
    (n, d), output, weights = table.X.shape, arguments.output, {}
    if table.weight is not None:
        of = arguments.weights or "of the rows in the file"
        weights["weights"] = f"{of}, {amount(float(table.weight.sum()))} in all"
    out_of_bag = {}
    if getattr(estimator, "oob_score", False):
        out_of_bag["out of bag"] = f"{measure} {estimator.oob_score_:.4f}"
    lines = {
        "table": f"{counted(n, 'row')}, {counted(d, 'column')}",
        **weights,
        "task": task,
        **sizes(estimator),
        **(compiling if wait.kernels else {}),
        "training": f"{seconds:.3g} s, {measure} {score:.4f} on the training rows",
        **out_of_bag,
        **(
            {} if output is None else {"model": "standard output" if output == STANDARD else output}
        ),
    }
    return aligned(lines)


DECLARED = "declared"
_TRUTHS = {"true": True, "false": False}


def add_classes(group: Any) -> None:
    """Add `--classes`."""
    group.add_argument(
        "--classes",
        metavar="A,B,...",
        type=parse_names,
        action="extend",
        help=f"all classes, if the target lacks some: {HOW}; or {DECLARED}, those that the "
        "type of the target column declares (ARFF, dictionaries of Parquet and Arrow)",
    )


def classes_of(
    arguments: argparse.Namespace, y: Labels, declared: NDArray[Any] | None
) -> NDArray[Any] | None:
    """The classes that were requested, of the kind of `y`; None where none were."""
    names = arguments.classes
    if names is None:
        return None
    if names == [DECLARED]:
        if declared is None:
            raise UsageError(
                f"--classes {DECLARED}: the column {arguments.target!r} declares no classes, as "
                "nominal ones of ARFF and dictionaries of Parquet and Arrow do. List them: "
                "--classes A,B."
            )
        return declared
    if y.dtype.kind not in "biuf":
        return np.array(names)
    read = number if y.dtype.kind != "b" else lambda name: _TRUTHS[name.lower()]
    return np.array([_read(read, name, arguments.target) for name in names])


def _read(read: Callable[[str], Any], name: str, target: str) -> Any:
    try:
        return read(name)
    except (KeyError, ValueError):
        what = "numbers" if read is number else "booleans"
        raise UsageError(
            f"--classes must be {what}, as those of the column {target!r} are. Got {name!r}."
        ) from None
