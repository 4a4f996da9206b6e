"""Private names that gputree uses of scikit-learn, and its checks of input.

The checks raise errors of `gputree.errors`. Private names are used only in this file: they exist in
every release that the package allows; if one is moved or renamed, change it here.
"""

import re
from collections.abc import Mapping, Set
from typing import Any

from sklearn import base, utils
from sklearn.utils import _param_validation as parameters
from sklearn.utils import class_weight, multiclass, validation

from gputree.errors import checks

HasMethods = parameters.HasMethods
Interval = parameters.Interval
InvalidParameterError = parameters.InvalidParameterError
RealNotInt = parameters.RealNotInt
validate_parameter_constraints = parameters.validate_parameter_constraints
validate_params = parameters.validate_params
fit_context = base._fit_context
safe_indexing = utils._safe_indexing

assert_all_finite = checks()(validation.assert_all_finite)
check_array = checks()(validation.check_array)
check_classification_targets = checks()(multiclass.check_classification_targets)
check_consistent_length = checks()(validation.check_consistent_length)
check_monotonic_cst = checks()(validation._check_monotonic_cst)
check_sample_weight = checks()(validation._check_sample_weight)
feature_names = checks()(validation._get_feature_names)
column_or_1d = checks()(validation.column_or_1d)
compute_sample_weight = checks()(class_weight.compute_sample_weight)
validate_data = checks()(validation.validate_data)


class Ordered(parameters.HasMethods):  # of the kinds that it lets others make
    """An array-like whose items have an order: no set, whose order changes from run to run."""

    def __init__(self) -> None:
        super().__init__("__len__")

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, (Set, Mapping)) and bool(
            validation._is_arraylike_not_scalar(val)
        )

    def __str__(self) -> str:
        return "an ordered array-like"


class StrOptions(parameters.StrOptions):
    """Names that are values; messages list them in alphabetical order, not in that of a set."""

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, sorted(self.options)))}}}"


class DeviceName(StrOptions):
    """One of some names, or a CUDA device by its number, as "cuda:1"."""

    def is_satisfied_by(self, val: Any) -> bool:
        numbered = isinstance(val, str) and re.fullmatch(r"cuda:\d{1,3}", val) is not None
        return numbered or bool(super().is_satisfied_by(val))

    def __str__(self) -> str:
        return f"{super().__str__()}, or one CUDA device, as 'cuda:0'"


def tree_of(n_features: int, n_classes: Any, n_outputs: int) -> Any:
    """An empty tree of scikit-learn; its state shows the layout of its nodes."""
    from sklearn.tree._tree import Tree  # here: few need it, and it takes time to import

    return Tree(n_features, n_classes, n_outputs)
