"""Refuse arguments written as for other libraries, with an error that says what to write.

Also the arguments that name columns: the direction of predictions with them, those that may
interact, and splits by names of columns and of categories.
"""

import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, wraps
from itertools import chain
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.backends.interactions import Interactions, interactions_of, pairs_of
from gputree.base.sklearn import InvalidParameterError, check_monotonic_cst
from gputree.base.texts import hint, nearest
from gputree.columns import Columns
from gputree.criteria.named import CRITERIA
from gputree.errors import InputError, InputTypeError
from gputree.pruning import PRUNERS

Method = TypeVar("Method", bound=Callable[..., Any])

# Parameters of scikit-learn's trees, or of other estimators here, that an estimator lacks.
CART_LACKS = {
    "min_gain": "the minimum gain of a split, times the node's fraction of the rows, is "
    "min_impurity_decrease.",
}
REGRESSOR_LACKS = {
    **CART_LACKS,
    "class_weight": "targets have no classes. Pass sample_weight to fit.",
    "misclassification_costs": "targets have no classes. Pass sample_weight to fit.",
}
MULTIWAY_LACKS = {
    "splitter": "every cut is considered. Leave it out.",
    "max_bins": "numbers are not binned. Leave it out.",
    "categorical_split": "splits on categories are multiway. For binary splits use "
    "DecisionTreeClassifier.",
    "max_features": "every column is considered. To sample columns use DecisionTreeClassifier.",
    "max_leaf_nodes": "nodes are not expanded best-first. Limit the tree by max_depth, "
    "min_samples_split or pruning.",
    "min_impurity_decrease": "the minimum gain of a split is min_gain, in bits, not "
    "multiplied by the node's fraction of the rows.",
    "min_weight_fraction_leaf": "the minimum weight of a branch is min_samples_leaf, in rows.",
    "ccp_alpha": "write pruning=CostComplexity(alpha), from gputree.pruning.",
    "forced_splits": "only trees of CART begin with given splits. Use DecisionTreeClassifier.",
    "monotonic_cst": "monotonicity constraints are not supported for multiway trees. Leave it out, "
    "or use DecisionTreeClassifier.",
}
ID3_LACKS = {
    **MULTIWAY_LACKS,
    "ordered_categories": "every category has a branch, whatever their order. Use C45Classifier or "
    "DecisionTreeClassifier.",
    "criterion": "splits are by the information gain. For gini or entropy use "
    "DecisionTreeClassifier, for the gain ratio C45Classifier.",
    "min_samples_leaf": "every value has a branch. Limit the tree by min_samples_split, max_depth "
    "or pruning.",
    "min_weight_fraction_leaf": "every value has a branch. Limit the tree by min_samples_split, "
    "max_depth or pruning.",
}

# Criteria of other trees, and what to write for C4.5.
C45_REFUSES = {
    **{
        ("criterion", name): "For gini or entropy use DecisionTreeClassifier."
        for name in (*CRITERIA["classification"], "log_loss")
    },
    ("criterion", "information_gain"): "Write 'gain'.",
}

# Parameters that forests lack, by their names in scikit-learn, R and XGBoost.
FOREST_LACKS = {
    **CART_LACKS,
    "pruning": "trees are averaged unpruned. Limit them by max_depth, min_samples_leaf or "
    "ccp_alpha.",
    "misclassification_costs": "pass class_weight, or sample_weight to fit.",
    "classes": "classes are those in y.",
    "ties": "trees draw one of the equal cuts. Leave it out.",
    "forced_splits": "only single trees begin with given splits. Use DecisionTreeClassifier.",
    "learning_rate": "trees are averaged, not boosted. Leave it out.",
    **dict.fromkeys(("ntree", "num_trees", "num_parallel_tree"), "write n_estimators."),
    **dict.fromkeys(("mtry", "colsample_bynode"), "write max_features."),
    **dict.fromkeys(("sampsize", "sample_fraction", "subsample"), "write max_samples."),
    "replace": "write bootstrap: rows are drawn with replacement, or each tree has all.",
    "maxnodes": "write max_leaf_nodes.",
    **dict.fromkeys(("nodesize", "min_node_size"), "write min_samples_leaf."),
}

# Parameters of methods of scikit-learn's trees.
_METHODS_LACK = {"check_input": "tables are always checked. Leave it out."}


def refuses(kind: str) -> dict[tuple[str, str], str]:
    """Map criteria that a CART estimator refuses to the advice in the error."""
    if kind.endswith("Classifier"):
        numbers = f"For numbers use {kind.replace('Classifier', 'Regressor')}."
        theirs = (*CRITERIA["regression"], "friedman_mse")
        advice = {
            **dict.fromkeys(theirs, numbers),
            "information_gain": "Write 'entropy', whose decrease is the information gain.",
            "gain_ratio": "C45Classifier splits by the gain ratio.",
        }
    else:
        classes = f"For classes use {kind.replace('Regressor', 'Classifier')}."
        advice = {
            "friedman_mse": "Write 'squared_error', whose cuts are the same in one tree.",
            "mse": "Write 'squared_error'.",
            "mae": "Write 'absolute_error'.",
            **dict.fromkeys((*CRITERIA["classification"], "log_loss"), classes),
        }
    return {("criterion", value): words for value, words in advice.items()}


def explained(method: Method) -> Method:
    """Decorate a method of an estimator to refuse unknown arguments with advice."""
    parameters = list(inspect.signature(method).parameters.values())[1:]  # without self
    names = [parameter.name for parameter in parameters]
    places = sum(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters)

    @wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        unknown = [name for name in kwargs if name not in names]
        if unknown or len(args) > places:
            kind = type(self).__name__
            if method.__name__ != "__init__":
                raise InputTypeError(_of_method(f"{kind}.{method.__name__}", names, args, unknown))
            if args:
                more = ", ..." if len(args) > 1 or kwargs else ""
                written = f"{kind}({names[0]}={args[0]!r}{more})"
                raise InputTypeError(f"{kind} takes parameters by name: write {written}.")
            raise InputTypeError(
                f"{kind} has no parameter {unknown[0]!r}: {advise(self, unknown[0])}"
            )
        return method(self, *args, **kwargs)

    return checked  # type: ignore[return-value]


def _of_method(method: str, names: list[str], args: tuple[Any, ...], unknown: list[str]) -> str:
    takes = f"it takes {', '.join(names)}."
    if unknown:
        return f"{method} has no parameter {unknown[0]!r}: {_METHODS_LACK.get(unknown[0], takes)}"
    text = f"{method} got {len(args)} arguments: {takes}"
    if len(args) == len(names) + 1:  # where scikit-learn has it
        text += f" If the last is check_input: {_METHODS_LACK['check_input']}"
    return text


def advise(estimator: Any, name: str) -> str:
    """Hint for an error: the alternative to a parameter `name` that the estimator lacks."""
    if name in estimator._lacks:
        return estimator._lacks[name]
    if pruners := _with_parameter(name):
        options = " or ".join(f"pruning={kind.__name__}({name}=...)" for kind in pruners.values())
        return f"it belongs to a pruner. Write {options}, from gputree.pruning."
    parameters = list(inspect.signature(type(estimator)).parameters)
    if near := nearest(name, parameters):
        return f"did you mean {near!r}?"
    return f"it has {', '.join(parameters)}."


def forbid_values(estimator: Any) -> None:
    """Raise ValueError for values that other trees take, ``_refuses``, with what to write."""
    for (name, value), advice in estimator._refuses.items():
        given = getattr(estimator, name)
        if isinstance(given, str) and given == value:
            allowed = " or ".join(map(str, estimator._parameter_constraints[name]))
            raise InvalidParameterError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {allowed}. Got "
                f"{value!r} instead. {advice}"
            )


def require_pruner(estimator: Any, nested: list[str]) -> None:
    """Refuse parameters of a pruner, ``pruning__<name>``, where ``pruning`` is None."""
    name = nested[0].partition("__")[2]
    pruners = _with_parameter(name)
    kind = type(estimator).__name__
    listed = "; ".join(
        f"{short}: {', '.join(inspect.signature(kind).parameters)}"
        for short, kind in PRUNERS.items()
    )
    advice = f"No pruner has a parameter {name!r}. They have: {listed}."
    if pruners:
        options = " or ".join(f"pruning={short!r}" for short in pruners)
        advice = f"Set {options}, too: in the estimator, or in the same grid."
        if name == "alpha" and "ccp_alpha" in estimator.get_params(deep=False):
            advice += " Or use 'ccp_alpha', which needs no pruner."
    raise InputError(
        f"The parameter {nested[0]!r} of {kind} belongs to its pruner, and pruning is None. "
        f"{advice}"
    )


def _with_parameter(name: str) -> dict[str, type]:
    """Pruners that have a parameter of this name."""
    return {
        short: kind for short, kind in PRUNERS.items() if name in inspect.signature(kind).parameters
    }


MOST_CLASSES = 2


def monotonic_signs(estimator: Any, columns: Columns) -> NDArray[np.int8] | None:
    """The sign of each column, shape (d,); None where no column has one, or nothing can go wrong.

    ``monotonic_cst`` is an array of -1, 0 and 1, a dict of them by column, or None. ValueError for
    several targets, more than two classes, other values or names, or the sign of categories.
    """
    if estimator.monotonic_cst is None:
        return None
    if getattr(estimator, "n_outputs_", 1) > 1:
        raise InputError(
            "Monotonicity constraints are not supported with multiple outputs. "
            f"{type(estimator).__name__} got y with {estimator.n_outputs_} targets and "
            f"monotonic_cst={estimator.monotonic_cst!r}."
        )
    n_classes = getattr(estimator, "n_classes_", 0)
    if n_classes > MOST_CLASSES:
        raise InputError(
            "Monotonicity constraints are not supported with multiclass classification. "
            f"{type(estimator).__name__} got y with {n_classes} classes and "
            f"monotonic_cst={estimator.monotonic_cst!r}."
        )
    signs: NDArray[np.int8] = _signs(estimator)
    signed = np.flatnonzero((signs != 0) & (columns.n_categories > 0))
    if signed.size:
        names = getattr(estimator, "feature_names_in_", np.arange(signs.size))
        raise InputError(
            "Monotonicity constraints are not supported with categories, which have no order. "
            f"{type(estimator).__name__} got monotonic_cst with {int(signs[signed[0]])} for column "
            f"{names[signed[0]]!r}, which is categorical. Write 0, or give its categories an "
            f"order: ordered_categories={{{names[signed[0]]!r}: [...]}}."
        )
    return signs if signs.any() and n_classes != 1 else None


def _signs(estimator: Any) -> NDArray[np.int8]:
    given = estimator.monotonic_cst
    if not isinstance(given, dict) and np.ndim(given) != 1:
        raise InputError(
            "monotonic_cst must be None, a dict or an array-like of one dimension, but got one of "
            f"{np.ndim(given)}."
        )
    return np.asarray(check_monotonic_cst(estimator, given), np.int8)


def interactions(estimator: Any, d: int) -> Interactions | None:
    """The sets of columns that splits of an estimator lead to; None without constraints.

    ``interaction_cst`` is None, "pairwise", "no_interactions" or groups of indices or names among d
    columns; those in no group are one more. ValueError for other groups.
    """
    if isinstance(estimator.interaction_cst, str):
        return _named(estimator.interaction_cst, d)
    groups = _groups(estimator, d)
    return None if groups is None else interactions_of(groups)


@lru_cache(maxsize=8)  # pairs are many, and every tree of a forest has the same
def _named(name: str, d: int) -> Interactions:
    """The sets of columns of groups that have a name."""
    if name == "pairwise":
        return pairs_of(d)
    return interactions_of(tuple(frozenset({f}) for f in range(d)))


def _groups(estimator: Any, d: int) -> tuple[frozenset[int], ...] | None:
    given = estimator.interaction_cst
    if given is None:
        return None
    names = {name: f for f, name in enumerate(getattr(estimator, "feature_names_in_", ()))}
    if not all(map(_is_group, given)):
        raise InputError(
            "Interaction constraints must be a sequence of tuples or lists, got: "
            f"{estimator.interaction_cst!r}."
        )
    groups = [frozenset(names.get(f, f) for f in group) for group in given]
    for f in chain(*given):
        if isinstance(f, (bool, np.bool_)) and f not in names:
            raise InputError(
                f"Interaction constraints have {f!r}: a group lists columns by name or index, and "
                "is no mask of booleans."
            )
    for f in chain(*groups):
        if not (isinstance(f, Integral) and 0 <= int(f) < d):
            raise InputError(
                f"Interaction constraints have {f!r}, which is no column: groups are of names or "
                f"of indices from 0 to {d - 1}.{hint(str(f), map(str, names))}"
            )
    rest = frozenset(range(d)).difference(*groups)
    return (*groups, rest) if rest else tuple(groups)


def _is_group(group: Any) -> bool:
    iterable = isinstance(group, Iterable) and not isinstance(group, str)
    return iterable and all(isinstance(f, Hashable) for f in group)


def within(estimator: Any, d: int, columns: NDArray[np.intp]) -> list[list[int]] | str | None:
    """The groups of an estimator over d columns, as places in some `columns` of these."""
    if isinstance(estimator.interaction_cst, str):
        return str(estimator.interaction_cst)  # of some columns, the same groups are all pairs
    groups = _groups(estimator, d)
    if groups is None:
        return None
    return [np.flatnonzero(np.isin(columns, list(group))).tolist() for group in groups]


FLAGS = (bool, np.bool_)


def names_of(estimator: Any) -> list[Any]:
    """Names of the columns of an estimator, or their indices."""
    names = getattr(estimator, "feature_names_in_", None)
    return list(range(estimator.n_features_in_)) if names is None else list(map(str, names))


def place_of(names: Sequence[Any], column: Any) -> int:
    """Return the index of a column, which is given by its name or index."""
    if isinstance(column, FLAGS):
        raise InputError(f"A column is given by its name or index, got {column!r}.")
    if column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and 0 <= column < len(names):
        return int(column)
    called = [f"x{name}" if isinstance(name, int) else name for name in names]
    if column in called:  # as exports call columns without a name
        return called.index(column)
    raise InputError(f"There is no column {column!r}.{hint(str(column), map(str, called))}")


def cut_of(
    columns: Columns, feature: int, name: Any, threshold: Any, categories: Any
) -> tuple[float | None, Any]:
    """Return the threshold, or codes, of a split of a column, of which one is given."""
    if (threshold is None) == (categories is None):
        number = "neither" if threshold is None else "both"
        raise InputError(f"A split takes 'threshold' or 'categories'; {name!r} has {number}.")
    if isinstance(categories, str):
        raise InputError(f"Write the categories of column {name!r} as a list: [{categories!r}].")
    is_nominal = bool(columns.nominal[feature])
    if is_nominal != (threshold is None):
        takes = "categories" if is_nominal else "threshold"
        raise InputError(f"Column {name!r} is split by '{takes}'.")
    words = columns.categories[feature]
    if words is None:
        return finite(threshold, name), None
    # True equals 1, the name of another category
    known = {(word, isinstance(word, FLAGS)): code for code, word in enumerate(words.tolist())}
    codes = []
    for word in [threshold] if threshold is not None else categories:
        key = word, isinstance(word, FLAGS)
        if not isinstance(word, Hashable) or key not in known:
            near = hint(str(word), map(str, words.tolist()))
            raise InputError(f"Column {name!r} has no category {word!r}.{near}")
        codes.append(known[key])
    return (float(codes[0]), None) if threshold is not None else (None, np.array(codes))


def finite(threshold: Any, name: Any) -> float:
    """Return a threshold as a finite number."""
    # integers of JSON can be larger than any float
    is_number = isinstance(threshold, Real) and not isinstance(threshold, FLAGS)
    if not is_number or not abs(threshold) <= sys.float_info.max:
        raise InputError(f"The threshold of column {name!r} must be a number, got {threshold!r}.")
    return float(threshold)
