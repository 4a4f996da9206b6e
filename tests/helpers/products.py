"""The cases of a product of parameters that run by default: they cover the values of each."""

from collections import defaultdict
from collections.abc import Sequence

import pytest

# Fixtures that name where a body runs: each place has a separate cover.
PLACES = {"device", "cuda_device"}


def mark_products(items: list[pytest.Item]) -> None:
    """Mark a case `full` if each of its values occurs in another case of the same test.

    Of axes of a, b and c values max(a, b, c) cases remain, or a few more, instead of a * b * c. Of
    what is drawn from seeds the first seed remains.
    """
    tests = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            place = [item.callspec.params.get(name) for name in sorted(PLACES)]
            tests[item.path, item.parent, item.originalname, str(place)].append(item)
    for cases in tests.values():
        kept = cover([_values(case) for case in cases])
        for k, case in enumerate(cases):
            if k not in kept:
                case.add_marker(pytest.mark.full)


def _values(item: pytest.Item) -> frozenset[tuple]:
    """The value of each axis: of what is parametrized together, or of one fixture."""
    params = {name: value for name, value in item.callspec.params.items() if name not in PLACES}
    together = [names_of(mark.args[0]) for mark in item.iter_markers("parametrize")]
    single = set(params).difference(*together)
    axes = [*together, *([name] for name in sorted(single))]
    return frozenset(
        (name, *(id(params[name]) for name in axis if name in params and name != "seed"))
        for axis in axes
        for name in axis[:1]
    )


def names_of(argnames: str | Sequence[str]) -> list[str]:
    """Arguments that a mark gives values, which it names as a list or in one string."""
    if isinstance(argnames, str):
        return [name.strip() for name in argnames.split(",")]
    return list(argnames)


def cover(cases: list[frozenset]) -> set[int]:
    """Positions of cases that have every value among them, those with the most new ones first."""
    seen: set = set()
    kept = set()
    for wanted in range(max(map(len, cases)), 0, -1):
        for k, values in enumerate(cases):
            if len(values - seen) >= wanted:
                kept.add(k)
                seen |= values
    return kept or {0}
