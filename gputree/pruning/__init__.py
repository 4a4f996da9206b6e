"""Pruning: every classic method, over one grown tree.

Each method is a `Pruner`: a parameter object that takes a tree and returns a
smaller one. It prunes a fitted estimator (`prune`) or a bare tree (`prune_tree`).
"""

from collections.abc import Collection

from gputree.errors import InputError, InputTypeError
from gputree.prediction.losses import RoutedRows
from gputree.pruning.base import Pruner, TrainingRows, ValidationPruner
from gputree.pruning.bottom_up import (
    PenalizedLoss,
    ReducedError,
    ValidationPrePruning,
    collapse_splits,
)
from gputree.pruning.cost_complexity import (
    CostComplexity,
    CostComplexityPath,
    cost_complexity_path,
    cp_table,
)
from gputree.pruning.cost_complexity_cv import CostComplexityCV
from gputree.pruning.error_limit import add_errors
from gputree.pruning.pessimistic import Pessimistic

#: The class behind each short name that ``pruning=`` takes.
PRUNERS: dict[str, type[Pruner]] = {
    "cost_complexity": CostComplexity,
    "cost_complexity_cv": CostComplexityCV,
    "penalized_loss": PenalizedLoss,
    "pessimistic": Pessimistic,
    "reduced_error": ReducedError,
    "validation_pre_pruning": ValidationPrePruning,
}


def get_pruner(pruning: str | Pruner, given: Collection[str] = ()) -> Pruner:
    """The pruner of a short name, with default parameters; a pruner is returned as it is.

    Parameters
    ----------
    pruning : str or Pruner
    given : names, default=()
        Parameters that are set next, as ``pruning__<name>``.

    Raises
    ------
    ValueError
        If the name is unknown, or "cost_complexity" without alpha or cp: the default of 0 would
        prune only splits without any gain.
    TypeError
        If `pruning` is neither a name nor a pruner.
    """
    if isinstance(pruning, Pruner):
        return pruning
    if not isinstance(pruning, str):
        raise InputTypeError(
            "The 'pruning' parameter must be a Pruner instance or one of "
            f"{sorted(PRUNERS)}. Got {pruning!r} instead."
        )
    if pruning not in PRUNERS:
        raise InputError(
            f"The 'pruning' parameter must be a Pruner instance or one of {sorted(PRUNERS)}. "
            f"Got {pruning!r} instead."
        )
    if pruning == "cost_complexity" and {"pruning__alpha", "pruning__cp"}.isdisjoint(given):
        raise InputError(
            "pruning='cost_complexity' lacks its alpha: pass pruning=CostComplexity(alpha), or "
            "'cost_complexity_cv', which chooses alpha by cross-validation."
        )
    return PRUNERS[pruning]()


__all__ = [
    "PRUNERS",
    "CostComplexity",
    "CostComplexityCV",
    "CostComplexityPath",
    "PenalizedLoss",
    "Pessimistic",
    "Pruner",
    "ReducedError",
    "RoutedRows",
    "TrainingRows",
    "ValidationPrePruning",
    "ValidationPruner",
    "add_errors",
    "collapse_splits",
    "cost_complexity_path",
    "cp_table",
    "get_pruner",
]
