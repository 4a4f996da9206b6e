"""Fits of `gputree warmup`: estimators, and the kinds of tables they are fitted to."""

from typing import NamedTuple

import numpy as np
import pytest

from gputree import DecisionTreeClassifier, export
from gputree.cli import warmup as kinds
from gputree.criteria.named import CRITERIA


class Fit(NamedTuple):
    criterion: str
    rows: int
    dtype: str
    labels: int | None  # None for numbers
    weighted: bool
    options: frozenset[str]


@pytest.fixture
def fits(monkeypatch):
    """``fits(kind)``: what the work of a kind fits."""

    def of(kind):
        found = []

        def note(estimator, X, y, **fit):
            y, given = np.asarray(y), estimator.get_params(deep=False)
            labels = None if y.dtype.kind == "f" else np.unique(y).size
            options = {o for o in ("max_leaf_nodes", "monotonic_cst") if given.get(o) is not None}
            weighted = fit.get("sample_weight") is not None
            found.append(
                Fit(given["criterion"], len(X), X.dtype.name, labels, weighted, frozenset(options))
            )

        monkeypatch.setattr(kinds, "_use", note)
        monkeypatch.setattr(export, "shap_values", lambda tree, X: None)
        kinds._WORK[kind]()
        return found

    return of


NUMBERS = {"float32", "float64"}


@pytest.mark.parametrize("kind", kinds._CART)
def test_a_criterion_on_small_and_large_tables_in_both_precisions(fits, kind):
    task, criterion = kinds._CART[kind]
    found = fits(kind)
    assert {(fit.rows, fit.dtype) for fit in found} == {
        (rows, dtype) for rows in (kinds.FEW_ROWS, kinds.ROWS) for dtype in NUMBERS
    }
    assert {fit.criterion for fit in found} == {criterion}
    assert {fit.labels is None for fit in found} == {task == "regression"}
    assert not any(fit.weighted for fit in found)


def test_every_criterion_is_warmed_also_with_weights_and_categories(fits):
    every = {criterion for names in CRITERIA.values() for criterion in names}
    assert {criterion for _, criterion in kinds._CART.values()} == every
    weighted, words = fits("weights"), fits("categories")
    assert {fit.criterion for fit in weighted if fit.weighted} == every
    assert all(fit.weighted for fit in weighted)
    pairs = {(fit.criterion, fit.weighted) for fit in words}
    assert pairs == {(criterion, weighted) for criterion in every for weighted in (False, True)}
    assert {fit.dtype for fit in words} == {"object"}


def test_options_are_warmed_with_numbers_of_classes_that_have_kernels(fits):
    found = fits("options")
    plain = {(fit.rows, fit.labels) for fit in found if not fit.options}
    assert plain == {(rows, n) for rows in (kinds.FEW_ROWS, kinds.ROWS) for n in (1, 3)}
    optional = {(fit.dtype, fit.labels, *fit.options) for fit in found if fit.options}
    assert optional == {
        (dtype, labels, option)
        for dtype in NUMBERS
        for labels in (None, 2)
        for option in ("max_leaf_nodes", "monotonic_cst")
    }  # fmt: skip


def test_classes_have_as_many_rows_each():
    _, quantity = kinds._numbers(40, np.float64)
    for n in (1, 2, 3):
        counts = np.bincount(kinds._classes(quantity, n))
        assert counts.size == n
        assert np.ptp(counts) <= 1


def test_tables_have_trees_of_several_nodes():
    for X, quantity in (kinds._numbers(40, np.float32), kinds._words(40)):
        assert DecisionTreeClassifier().fit(X, quantity > 0).tree_.n_nodes > 1
