"""The formulas' names, and how each is compiled for the criterion it is given.

Kernels call these; numba puts the formula of the criterion's type in their place. Called by
Python, as all is where numba's compiler is switched off, they look it up.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gputree.compilation import overload_borrowing
from gputree.criteria.kinds import Gini, TwoClassGini

# A bin is looked into when its bound reaches the best score within this share: far
# more than the rounding error of a bound, so that no tie is ever lost.
BOUND_MARGIN = 1e-9


_formulas: dict[tuple[str, type], Callable] = {}  # by stub and criterion


def stub(function: Callable) -> Callable:
    """A name that stands for the formula of whichever criterion it is given."""

    @functools.wraps(function)
    def call(criterion, *arguments):
        return _formulas[function.__name__, type(criterion)](criterion, *arguments)

    return call


def row_by_row(criterion: Any) -> Any:
    """The criterion in the form that suits kernels which move row after row."""
    if isinstance(criterion, Gini) and criterion.n_classes == 2:
        return TwoClassGini(*criterion)
    return criterion


@stub
def begin(criterion, left, total):
    """State of a scan with `left` behind it in a node of `total`; first of it the weight left."""


@stub
def move(criterion, state, left, total, target, weight):
    """State after a row crosses to the left; `left` is used up."""


@stub
def score(criterion, state, left, total):
    """Score of the cut at this state."""


@stub
def refused_score(criterion, state, left, total):
    """Score at this state of a cut that `score` refuses, were it admitted; else -infinity."""


@stub
def means(criterion, state, left, total):
    """Of both sides of a cut at this state: the share of class 1, or the mean target in units."""


@stub
def may_exceed(criterion, state, left, total, value):
    """False only where the score at this state is surely at most `value`: cheaper than it."""


@stub
def bound(criterion, left, cells, at, total):
    """At least the score of every cut inside the bin at ``cells[at]`` that follows `left`."""


@stub
def tighten(criterion, left, cells, at, total, value, needed):
    """A bound as `bound` gives, at most `value`, at greater cost; or `value`, if a least upper
    bound would surely reach `needed`.
    """


@stub
def margin(criterion, value, total):
    """How far below the best score `value` a bound is still looked into."""


@stub
def gain(criterion, value, total):
    """Decrease of impurity per unit of weight by a cut of score `value`."""


@stub
def left_weight(criterion, statistics, at):
    """Weight, in units, of the statistics at ``statistics[at]``."""


@stub
def add_row(criterion, statistics, at, target, weight, square):
    """Add one row to the channels that start at ``statistics[at]``."""


@stub
def restrict(criterion, n_classes):
    """The same criterion over `n_classes` classes."""


@stub
def is_pure(criterion, total):
    """Whether the class weights show one class only (never true for regression)."""


def formula(function: Callable, *criteria: type) -> Callable:
    """Register a formula of `function` for the criteria named."""

    def register(implementation: Callable) -> Callable:
        def choose(criterion: Any, *rest: Any) -> Callable | None:
            kind = getattr(criterion, "instance_class", None)  # of a named tuple
            return implementation if kind in criteria else None

        choose.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
        for criterion in criteria:
            _formulas[function.__name__, criterion] = implementation
        overload_borrowing(function, implementation.__module__)(choose)
        return implementation

    return register
