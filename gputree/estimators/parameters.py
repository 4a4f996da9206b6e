"""Parameters of estimators: names, types and defaults as fields, and the values that are valid.

The constructor of a class that is decorated by `keyword_constructor` takes the annotated fields of
the class and of decorated bases by keyword, and sets them. A class gives another default by naming
the field again. (Annotations are not postponed here: constructors in other modules have them.)
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

from numpy.typing import ArrayLike

from gputree.backends import DEVICES
from gputree.base.files import FilePath
from gputree.base.sklearn import DeviceName, Interval, RealNotInt, StrOptions
from gputree.criteria.named import CRITERIA, ClassificationCriterion, RegressionCriterion
from gputree.estimators.arguments import explained
from gputree.estimators.classification import DECLARED
from gputree.estimators.growing_categories import CategoricalSplit
from gputree.pruning import PRUNERS, Pruner

Kind = TypeVar("Kind", bound=type)
ClassWeight = dict[Any, float] | list[dict[Any, float]] | str | None

# Maximum number of threads: no machine has more, and a typo is reported.
MOST_JOBS = 1 << 16

# Class weights that balance the classes among the rows that a tree has drawn.
BALANCED_SUBSAMPLE = "balanced_subsample"

_AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
_NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
_UP_TO_ONE = Interval(RealNotInt, 0.0, 1.0, closed="right")

# Valid values by parameter; a class with others lists them in its `_parameter_constraints`.
VALID: dict[str, list[Any]] = {
    "average_gain_rule": ["boolean"],
    "bootstrap": ["boolean"],
    "categorical_features": [StrOptions({"auto"}), "array-like", None],
    "categorical_split": [StrOptions({"auto", "exhaustive", "ordered", "one_vs_rest"})],
    "ccp_alpha": [_NOT_NEGATIVE],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "classes": ["array-like", StrOptions({DECLARED}), None],
    "binary_splits": ["boolean"],
    "client": [object],
    "collapse": ["boolean"],
    "device": [DeviceName(set(DEVICES))],
    "exclude_high_cardinality": ["boolean"],
    "forced_splits": [dict, str, os.PathLike, None],
    "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
    "laplace": ["boolean"],
    "max_bins": [Interval(Integral, 2, 256, closed="both")],
    "max_depth": [_AT_LEAST_ONE, None],
    "max_device_memory": [_AT_LEAST_ONE, None],
    "max_features": [_AT_LEAST_ONE, _UP_TO_ONE, StrOptions({"sqrt", "log2"}), None],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "max_leaf_ratio": [Interval(Real, 0.0, None, closed="neither"), None],
    "max_samples": [Interval(RealNotInt, 0.0, None, closed="neither"), _AT_LEAST_ONE, None],
    "mdl_correction": ["boolean"],
    "mdl_gain_threshold": ["boolean"],
    "min_gain": [_NOT_NEGATIVE],
    "min_impurity_decrease": [_NOT_NEGATIVE],
    "min_samples_leaf": [_AT_LEAST_ONE, Interval(RealNotInt, 0.0, 1.0, closed="neither")],
    "min_samples_split": [Interval(Integral, 2, None, closed="left"), _UP_TO_ONE],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "misclassification_costs": ["array-like", dict, None],
    "monotonic_cst": ["array-like", dict, None],
    "n_estimators": [_AT_LEAST_ONE],
    "n_jobs": [Interval(Integral, -MOST_JOBS, MOST_JOBS, closed="both"), None],
    "n_trials": [_AT_LEAST_ONE],
    "oob_score": ["boolean", callable],
    "ordered_categories": [StrOptions({"auto"}), dict, None],
    "pruning": [StrOptions(set(PRUNERS)), Pruner, None],
    "quantile": [Interval(Real, 0.001, 0.999, closed="both")],
    "quantreg": ["boolean"],
    "random_state": ["random_state"],
    "soft_thresholds": ["boolean"],
    "splitter": [StrOptions({"exact", "binned", "best", "random"})],
    "threshold_placement": [StrOptions({"midpoint", "data"})],
    "ties": [StrOptions({"first", "random"})],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
    "winnow": ["boolean"],
}


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def keyword_constructor(kind: Kind) -> Kind:
    """Make a constructor of the fields of a class and its bases, and collect their constraints."""
    doc = kind.__doc__
    dataclass(kw_only=True, eq=False, repr=False, match_args=False)(kind)
    kind.__doc__ = doc  # and not the signature, where python -OO leaves none
    kind.__init__ = explained(kind.__init__)  # type: ignore[misc]
    names = [parameter.name for parameter in fields(kind)]
    valid = {name: VALID[name] for name in names if name in VALID}
    for base in reversed(kind.__mro__):
        listed = vars(base).get("_parameter_constraints", {})
        valid |= {name: listed[name] for name in listed if name in names}
    kind._parameter_constraints = valid  # type: ignore[attr-defined]
    return kind


@keyword_constructor
class CartParameters:
    """Parameters of trees of CART and of forests."""

    criterion: Any
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    max_features: float | str | None = None
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    ccp_alpha: float = 0.0
    monotonic_cst: ArrayLike | dict[str, int] | None = None
    interaction_cst: list[Any] | tuple[Any, ...] | str | None = None
    categorical_features: Any = "auto"
    ordered_categories: Any = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0


@keyword_constructor
class SearchParameters:
    """Parameters of the search for the best cut, which drawn cuts do not need."""

    categorical_split: CategoricalSplit = "auto"
    device: str = "auto"
    max_device_memory: int | None = None
    splitter: str = "exact"
    max_bins: int = 256


SEARCH_PARAMETERS = tuple(field.name for field in fields(SearchParameters))


@keyword_constructor
class TreeParameters(SearchParameters, CartParameters):
    """Parameters of trees of CART."""

    pruning: Pruner | str | None = None
    ties: Literal["first", "random"] = "first"
    forced_splits: dict[str, Any] | FilePath | None = None


@keyword_constructor
class ForestParameters(CartParameters):
    """Parameters of all forests."""

    n_estimators: int = field(default=100, kw_only=False)
    bootstrap: bool = True
    max_samples: float | dict[Any, int] | Literal["balanced"] | None = None
    oob_score: bool | Callable[[Any, Any], float] = False
    warm_start: bool = False


@keyword_constructor
class ForestSearchParameters(SearchParameters):
    """Parameters of the search in forests that do not draw cuts."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "splitter": [StrOptions({"exact", "binned", "best"})]
    }


@keyword_constructor
class ClassificationParameters:
    """Parameters of trees of CART and of forests for classes."""

    criterion: ClassificationCriterion = "gini"
    class_weight: ClassWeight = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({*CRITERIA["classification"], "log_loss"})],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }


@keyword_constructor
class RegressionParameters:
    """Parameters of trees of CART and of forests for targets."""

    criterion: RegressionCriterion = "squared_error"
    quantile: float = 0.5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({*CRITERIA["regression"]})]
    }


@keyword_constructor
class ForestClassificationParameters(ClassificationParameters, ForestParameters):
    """Parameters of forests for classes."""

    max_features: float | str | None = "sqrt"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "class_weight": [dict, list, StrOptions({"balanced", BALANCED_SUBSAMPLE}), None],
        "max_samples": [*VALID["max_samples"], dict, StrOptions({"balanced"})],
    }


@keyword_constructor
class ForestRegressionParameters(RegressionParameters, ForestParameters):
    """Parameters of forests for targets."""

    max_features: float | str | None = 1.0
    quantreg: bool = False


@keyword_constructor
class LabelParameters:
    """Parameters of classes and their errors."""

    class_weight: ClassWeight = None
    classes: ArrayLike | str | None = None
    misclassification_costs: ArrayLike | dict[tuple[Any, Any], float] | None = None


@keyword_constructor
class MultiwayParameters:
    """Parameters of ID3 and C4.5."""

    min_gain: float = 0.0
    max_depth: int | None = None
    min_samples_split: float = 2
    interaction_cst: list[Any] | tuple[Any, ...] | str | None = None
    pruning: Pruner | str | None = None
    categorical_features: Any = "auto"
    random_state: Any = None
    device: str = "auto"
    max_device_memory: int | None = None
    n_jobs: int | None = None
    verbose: int = 0


@keyword_constructor
class C45Parameters:
    """Parameters of C4.5 and its boosting, in addition to those of ID3."""

    min_samples_leaf: float = 2
    criterion: Literal["gain_ratio", "gain"] = "gain_ratio"
    average_gain_rule: bool = True
    exclude_high_cardinality: bool = False
    mdl_correction: bool = True
    threshold_placement: Literal["midpoint", "data"] = "midpoint"
    binary_splits: bool = False
    collapse: bool = True
    winnow: bool = False
    ordered_categories: Any = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"gain_ratio", "gain"})],
        "min_samples_leaf": [Interval(Real, 0.0, None, closed="neither")],
    }


@keyword_constructor
class TrialParameters:
    """Parameters of boosting by itself."""

    n_trials: int = 10


@keyword_constructor
class BoostedParameters(LabelParameters, MultiwayParameters, C45Parameters, TrialParameters):
    """Parameters of boosted trees and rules of C4.5."""

    exclude_high_cardinality: bool = True
