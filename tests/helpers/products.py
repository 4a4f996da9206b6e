"""Which cases of a product of parameters run by default: those that bring a value of one."""

from __future__ import annotations

from collections import defaultdict

import pytest

# Fixtures that say where a body runs: each place has a cover of its own.
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
        kept = _cover([_values(case) for case in cases])
        for k, case in enumerate(cases):
            if k not in kept:
                case.add_marker(pytest.mark.full)


def _values(item: pytest.Item) -> frozenset[tuple[str, int]]:
    indices = item.callspec.indices.items()
    return frozenset(
        (name, 0 if name == "seed" else k) for name, k in indices if name not in PLACES
    )


def _cover(cases: list[frozenset]) -> set[int]:
    """Positions of cases that have every value among them, those with the most new ones first."""
    seen: set = set()
    kept = set()
    for wanted in range(max(map(len, cases)), 0, -1):
        for k, values in enumerate(cases):
            if len(values - seen) >= wanted:
                kept.add(k)
                seen |= values
    return kept or {0}
