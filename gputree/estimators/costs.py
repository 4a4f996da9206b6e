"""Costs of misclassification: weights of rows for growth and pruning, predictions of minimum cost.

With two classes the weight of a row is the cost of its being wrong, and growth, pruning and
prediction are those of minimum cost. With more, the rows of a class are weighted by the summed
costs of its errors: the altered priors of Breiman et al. (Classification and Regression Trees,
1984, section 4.4), which Ting (An instance-weighting method to induce cost-sensitive trees, IEEE
TKDE 14, 2002) scales to the number of rows. Prediction uses the cost of each error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import fix_weights
from gputree.base.dtypes import Floats, Weight
from gputree.errors import InputError
from gputree.inputs.labels import Costs, class_costs
from gputree.inputs.targets import forbid_targets

if TYPE_CHECKING:
    from gputree.base.sklearn import InvalidParameterError

# Costs are distinguished in these steps of the largest: a factor of all of them changes nothing.
STEP = 2.0**-40


def forbid_costs_of_targets(estimator: Any, n_outputs: int) -> None:
    """Raise ValueError for the parameters of labels that are for one target."""
    for name in ("classes", "misclassification_costs"):
        if getattr(estimator, name, None) is not None:
            kind = type(estimator).__name__
            forbid_targets(n_outputs, f"The {name!r} parameter of {kind}", "Leave it out.")


def check_costs(estimator: Any, classes: NDArray[Any]) -> Costs | None:
    """The costs divided by the maximum, of shape (K, K); None where all errors cost the same.

    ValueError for costs of another shape or of other labels, negative or infinite ones, a cost of a
    correct prediction, or errors that all cost nothing.
    """
    costs = given_costs(estimator, classes)
    if costs is None:
        return None
    errors = costs[~np.eye(classes.size, dtype=bool)]
    if errors.size == 0 or (errors == errors[0]).all():
        return None
    return np.rint(costs / costs.max() / STEP) * STEP


def given_costs(estimator: Any, classes: NDArray[Any]) -> Costs | None:
    """The costs as given, of shape (K, K), or None; errors are those of `check_costs`."""
    given = estimator.misclassification_costs
    if given is None:
        return None
    name, k = type(estimator).__name__, classes.size
    read = _of_pairs if isinstance(given, dict) else _of_array
    costs = read(name, given, classes)
    if not (np.isfinite(costs) & (costs >= 0.0)).all():
        raise _wrong(name, "hold finite, non-negative costs", given)
    if np.diagonal(costs).any():
        raise _wrong(name, "contain 0 on the diagonal, for correct predictions", given)
    errors = costs[~np.eye(k, dtype=bool)]
    if errors.size and not errors.any():
        raise _wrong(name, "hold an error that costs more than 0", given)
    return costs


def _of_array(name: str, given: Any, classes: NDArray[Any]) -> Costs:
    k = classes.size
    shape = f"have the shape (n_classes, n_classes) = ({k}, {k})"
    try:
        costs = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _wrong(name, f"be numbers and {shape}", given) from error
    if costs.shape != (k, k):
        raise _wrong(name, shape, f"an array of shape {costs.shape}")
    if hasattr(given, "index") and hasattr(given, "columns"):
        return _by_labels(name, given, costs, classes.tolist())
    return costs


def _by_labels(name: str, frame: Any, costs: Costs, labels: list[Any]) -> Costs:
    """Costs of a data frame in the order of the classes; without labels, as they stand."""
    axes = frame.index, frame.columns
    if all(set(axis) == set(labels) for axis in axes):
        return costs[np.ix_(*([axis.tolist().index(label) for label in labels] for axis in axes))]
    numbers = list(range(len(labels)))
    if all(type(axis).__name__ == "RangeIndex" and axis.tolist() == numbers for axis in axes):
        return costs
    got = " and ".join(str(axis.tolist()) for axis in axes)
    raise _wrong(name, f"have the classes {labels} as its index and as its columns", got)


def _of_pairs(name: str, given: dict[Any, Any], classes: NDArray[Any]) -> Costs:
    places = {label: i for i, label in enumerate(classes.tolist())}
    costs = 1.0 - np.eye(classes.size)
    for pair, cost in given.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not set(pair) <= set(places):
            expected = f"have pairs (true, predicted) of the classes {classes.tolist()} as its keys"
            raise _wrong(name, expected, f"the key {pair!r}")
        try:
            costs[places[pair[0]], places[pair[1]]] = cost
        except (TypeError, ValueError) as error:
            raise _wrong(name, "hold numbers", f"{cost!r} for {pair!r}") from error
    return costs


def _wrong(name: str, expected: str, got: Any) -> InvalidParameterError:
    from gputree.base.sklearn import InvalidParameterError

    return InvalidParameterError(
        f"The 'misclassification_costs' parameter of {name} must {expected}. Got {got} instead."
    )


def cost_weights(costs: Costs, weight: Weight, codes: NDArray[Any]) -> Floats:
    """Weights of n rows times what the errors of their classes cost; the total stays.

    Rows have class codes, and weights of shape (n,), or None.
    """
    of_class = class_costs(costs)
    taken = np.arange(codes.size) if weight is None else np.flatnonzero(weight)
    fixed = fix_weights(None if weight is None else weight[taken], taken.size)
    total = np.zeros(of_class.size, np.int64)  # integer sums do not depend on the order of rows
    np.add.at(total, codes[taken], 1 if fixed.weight is None else fixed.weight)
    costly = float((total * of_class).sum())
    if costly == 0.0:
        raise InputError("By 'misclassification_costs' no error of the classes that y has costs.")
    factor = of_class * (float(total.sum()) / costly)
    return factor[codes] if weight is None else weight * factor[codes]
