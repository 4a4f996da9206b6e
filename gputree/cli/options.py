"""Options of `gputree train` that are parameters of estimators, and `--pruning` of all commands."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputree.cli.report import in_words_of_the_command, number, parse_quoted
from gputree.cli.targets import FORM

if TYPE_CHECKING:
    from gputree.pruning import Pruner


NO_LIMIT = "none"
RANDOM_STATE = 0  # the same command twice makes the same model


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the tree."""
    from gputree.criteria.named import CRITERIA

    criteria = "; ".join(" or ".join(names) for names in CRITERIA.values())
    options = parser.add_argument_group("options of the tree (default: the estimator's)")
    for name, (kind, metavar, form) in _TREE_OPTIONS.items():
        text = form.replace("{criteria}", criteria)
        options.add_argument(flag(name), dest=name, type=kind, metavar=metavar, help=text)
    for name, text in _SWITCHES.items():
        options.add_argument(flag(name), dest=name, action="store_false", default=None, help=text)
    for name, text in _EXTRAS.items():
        options.add_argument(flag(name), dest=name, action="store_true", default=None, help=text)
    for name, text in _EITHER.items():
        options.add_argument(
            flag(name), dest=name, action=argparse.BooleanOptionalAction, default=None, help=text
        )
    options.add_argument(
        "--class-weight",
        choices=["balanced", "balanced_subsample"],
        help="the classes get the same total weight; balanced_subsample: in the rows of each tree "
        "(random-forest, extra-trees)",
    )
    options.add_argument(
        "--costs",
        metavar="FILE",
        help=f"misclassification costs, one per line: {FORM}; others cost 1 (C5.0's .costs)",
    )
    add_pruning(options)
    _add_rules(options)
    options.add_argument(
        "--random-state",
        type=int,
        metavar="N",
        default=RANDOM_STATE,
        help="seed of all random choices, held-out rows included; default: %(default)s",
    )


def _add_rules(options: Any) -> None:
    options.add_argument(
        "--rules",
        action="store_true",
        help="make rules from the tree, as C4.5rules does: from the unpruned one, unless --pruning "
        "is given",
    )
    for name, text in RULE_OPTIONS.items():
        options.add_argument(flag(name), type=float, metavar="X", help=f"{text} (--rules)")


def add_pruning(parser: Any, required: bool = False) -> None:
    """Add `--pruning`."""
    none = "" if required else f"\n{NO_PRUNING}"
    parser.add_argument(
        "--pruning",
        type=parse_pruner,
        required=required,
        metavar="METHOD",
        help="NAME, or NAME:PARAMETER=VALUE,... of\n"
        + "\n".join(f"{name} ({parameters})" for name, parameters in METHODS.items())
        + none,
    )


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that the user gave, by the parameters' names."""
    names = (
        *_TREE_OPTIONS,
        *_SWITCHES,
        *_EXTRAS,
        *_EITHER,
        "class_weight",
        "pruning",
        "random_state",
    )
    given = {name: getattr(arguments, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    for name, none in (("pruning", NO_PRUNING), ("max_leaf_ratio", NO_LIMIT)):
        if given.get(name) == none:
            given[name] = None
    return given


def given_of_rules(arguments: argparse.Namespace) -> dict[str, float]:
    """The options of rules that the user gave, by the parameters' names."""
    given = {name: getattr(arguments, name) for name in RULE_OPTIONS}
    return {_PARAMETERS.get(k, k): value for k, value in given.items() if value is not None}


def flag(name: str) -> str:
    """Option of the command for the parameter `name`."""
    if name in _FLAGS:
        return _FLAGS[name]
    return f"--{'no-' if name in _SWITCHES else ''}{name.replace('_', '-')}"


def _number(text: str) -> int | float:
    try:
        return number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def _number_or_none(text: str) -> float | str:
    """A number, or "none", which is passed to the estimator as None."""
    return text if text == NO_LIMIT else _number(text)


def _number_or_name(text: str) -> int | float | str:
    try:
        return number(text)
    except ValueError:
        return text


def _signs(text: str) -> dict[str, int]:
    """Columns and the direction of predictions with them; any name may be in double quotes."""
    pairs = _SIGN.findall(text)
    if "".join(f"{name}={sign}{end}" for name, sign, end in pairs) != text or text.endswith(","):
        raise argparse.ArgumentTypeError(
            "must be COLUMN=1 or COLUMN=-1, ..., with names in double quotes where they contain "
            f"'=1,', got {text!r}"
        )
    return {parse_quoted(name): int(sign) for name, sign, _ in pairs}


def _groups(text: str) -> str | list[list[str]]:
    """Groups of columns, ``a,b;c,d`` or JSON, or the name of what groups there are."""
    if text in ("pairwise", "no_interactions"):
        return text
    if not text.startswith("["):
        return [[name.strip() for name in group.split(",")] for group in text.split(";")]
    try:
        groups: list[list[str]] = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is no JSON: {error}") from None
    return groups


def _forced(path: str) -> dict[str, Any]:
    """Splits from a file, which the model file keeps."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path} is no JSON file of splits: {error}") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{path} has no object, but {type(found).__name__}")
    return found


_SIGN = re.compile(r'("(?:[^"]|"")+"|.+?)=([+-]?1)(,|$)', re.S)


# Named as the estimators' parameters, which check the values.
_TREE_OPTIONS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "device": (str, "NAME", "auto, cpu, cuda, or cuda:1 for one GPU by its number"),
    "categorical_split": (
        str,
        "NAME",
        "auto, exhaustive, ordered or one_vs_rest (cart, random-forest)",
    ),
    "criterion": (
        str,
        "NAME",
        "{criteria} (cart, forests); gain_ratio or gain (c45)",
    ),
    "quantile": (float, "X", "what leaves predict with --criterion quantile; default: 0.5"),
    "splitter": (str, "NAME", "exact, binned or random (cart); exact or binned (random-forest)"),
    "threshold_placement": (str, "NAME", "midpoint or data (c45)"),
    "max_depth": (int, "N", "maximum depth"),
    "max_leaf_nodes": (
        int,
        "N",
        "maximum number of leaves, expanded best-first (cart, forests)",
    ),
    "min_samples_split": (_number, "N", "minimum rows of a split node; 0.01: fraction of all rows"),
    "min_samples_leaf": (_number, "N", "minimum rows of a leaf; 0.01: fraction of all rows"),
    "min_gain": (float, "X", "minimum information gain of a split, in bits (c45, id3)"),
    "min_impurity_decrease": (
        float,
        "X",
        "minimum weighted impurity decrease (cart, forests)",
    ),
    "monotonic_cst": (
        _signs,
        "COLUMN=1,...",
        "predictions increase (1) or decrease (-1) monotonically with it (cart, forests)",
    ),
    "interaction_cst": (
        _groups,
        "A,B;C,D",
        "groups of columns that a path may use together, also as JSON; other columns are one "
        "more; pairwise; no_interactions",
    ),
    "forced_splits": (
        _forced,
        "FILE",
        "JSON file of the splits that the tree begins with (cart)",
    ),
    "max_features": (
        _number_or_name,
        "N",
        "columns sampled in each node; sqrt, log2 (cart, forests)",
    ),
    "ccp_alpha": (
        float,
        "X",
        "complexity parameter of cost-complexity pruning (cart, forests)",
    ),
    "n_estimators": (int, "N", "number of trees; default: 100 (random-forest, extra-trees)"),
    "max_samples": (
        _number_or_name,
        "N",
        "rows drawn for each tree; 0.5: fraction; balanced: of each class as many as of the "
        "rarest (random-forest, extra-trees)",
    ),
    "n_trials": (
        int,
        "N",
        "maximum number of boosting iterations, each a tree or a rule set (c45; C5.0's trials)",
    ),
    "max_leaf_ratio": (
        _number_or_none,
        "X",
        "maximum leaves of later trees, as a multiple of those of the first; default: 1.1; "
        "none: no limit (c45 with --trials)",
    ),
    "n_jobs": (int, "N", "number of threads; -1: all"),
}

_FLAGS = {
    "n_trials": "--trials",
    "interaction_cst": "--interactions",
    "misclassification_costs": "--costs",
    "ordered_categories": "--ordered",
}

RULE_OPTIONS = {
    "rule_confidence": "the smaller, the more conditions are dropped; default: 0.25",
    "rule_weight": "weight of the description length of rules, relative to that of exceptions; "
    "default: 0.5",
    "redundancy": "redundancy factor: number of columns per relevant column; default: 1",
}
_PARAMETERS = {"rule_confidence": "confidence"}

_SWITCHES = {
    "average_gain_rule": "consider splits of below-average gain, too (c45)",
    "mdl_correction": "no MDL correction of the gain of numeric splits (c45)",
    "collapse": "keep subtrees that reduce no training errors (c45)",
    "bootstrap": "grow each tree on all rows, not on drawn ones (random-forest, extra-trees)",
}

_EXTRAS = {
    "binary_splits": "one-vs-rest splits of categories, instead of multiway splits (c45)",
    "soft_thresholds": "average both branches of a split near its threshold (c45)",
    "winnow": "select features by winnowing before the tree is grown (c45)",
    "laplace": "Laplace smoothing of class probabilities (c45)",
    "oob_score": "score each row by the trees that have not drawn it (random-forest, extra-trees)",
    "quantreg": "keep the targets for predict --quantiles (random-forest, extra-trees; regression)",
}

_EITHER = {
    "exclude_high_cardinality": "exclude columns with at least 3 categories per 10 rows (c45; "
    "default with --trials)",
    "mdl_gain_threshold": "compare gains with a description length instead of the average gain, in "
    "tables of over 500 rows per class (c45; default with --trials, except for rules)",
}


NO_PRUNING = "none"

# Parameters of the methods, with defaults: written out, since the classes take time to import.
METHODS = {
    "cost_complexity": "alpha or cp, risk=impurity",  # one price has to be given
    "cost_complexity_cv": "cv=10, rule=min, risk=impurity",
    "penalized_loss": "alpha=1.0",
    "pessimistic": "confidence=0.25, subtree_raising=true, quantile=exact",
    "reduced_error": "validation_fraction=0.3",
    "validation_pre_pruning": "validation_fraction=0.3",
}


def parse_pruner(text: str) -> str | Pruner:
    """A pruner, or its name alone where all parameters are the defaults.

    As in ``cost_complexity:alpha=0.01``; dashes stand for underscores, too.
    """
    name, colon, rest = text.partition(":")
    name = name.strip().replace("-", "_")
    if name == NO_PRUNING and not colon:
        return NO_PRUNING
    if name not in METHODS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join([*METHODS, NO_PRUNING])}")
    given = dict(_pair(name, item) for item in rest.split(",") if item.strip())
    if name == "cost_complexity" and {"alpha", "cp"}.isdisjoint(given):
        raise argparse.ArgumentTypeError(
            "cost_complexity lacks its alpha: write cost_complexity:alpha=0.01, or cp=0.01 as "
            "a fraction of the root's risk, or cost_complexity_cv, which chooses alpha by "
            "cross-validation"
        )
    if not given:
        return name
    from gputree.base.sklearn import InvalidParameterError
    from gputree.pruning import PRUNERS

    pruner = PRUNERS[name](**given)
    try:
        pruner._validate_params()
    except InvalidParameterError as error:
        words = in_words_of_the_command(str(error)).removeprefix("--").rstrip(".")
        parameter, _, rest = words.partition(" ")
        parameter = parameter.replace("-", "_")
        raise argparse.ArgumentTypeError(f"{name}: {parameter} {rest}") from None
    return pruner


def _pair(name: str, item: str) -> tuple[str, Any]:
    from gputree.pruning import PRUNERS

    key, equals, value = item.partition("=")
    key = key.strip().replace("-", "_")
    parameters = inspect.signature(PRUNERS[name]).parameters
    if not equals or key not in parameters:
        raise argparse.ArgumentTypeError(
            f"{name} takes {', '.join(f'{p}=...' for p in parameters)}; got {item.strip()!r}"
        )
    return key, _value(value.strip())


def _value(text: str) -> bool | int | float | str:
    """Convert the text of a value to a boolean or a number, if it is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return _number_or_name(text)
