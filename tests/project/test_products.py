"""Cases of a product that run by default: few, but every value of every axis."""

from itertools import product

import pytest
from products import cover, names_of


@pytest.mark.parametrize("sizes", [(1,), (5,), (3, 4), (2, 2, 7), (3, 3, 3)])
def test_every_value_is_in_a_case(sizes):
    cases = [frozenset(enumerate(case)) for case in product(*map(range, sizes))]
    kept = cover(cases)
    assert frozenset().union(*(cases[k] for k in kept)) == frozenset().union(*cases)
    assert len(kept) <= sum(sizes) - len(sizes) + 1


def test_a_diagonal_is_enough():
    cases = [frozenset(enumerate(case)) for case in product(range(3), range(4))]
    assert len(cover(cases)) == 4


def test_names_are_written_in_two_ways():
    assert names_of("a, b,c") == names_of(("a", "b", "c")) == ["a", "b", "c"]


def test_a_test_without_axes_has_a_case():
    assert cover([frozenset()]) == {0}
