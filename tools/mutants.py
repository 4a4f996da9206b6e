"""A seeded bug, parts of a list of them, and how they are printed: for sources of any kind."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A text that occurs in the sources, or once in a file of them, and its replacement."""

    name: str
    old: str
    new: str
    file: str = ""


def part_of(text: str) -> slice:
    """Every M-th from the K-th on, of ``K/M``."""
    place, count = map(int, text.split("/"))
    return slice(place % count, None, count)


def print_caught(mutants: list[Mutant], found: list[tuple[str, str]]) -> int:
    """Print a line a mutant; return the number of those that are not caught."""
    for mutant, (end, where) in zip(mutants, found, strict=True):
        print(f"{mutant.name:40} {end:10} {where}", flush=True)
    return sum(end == "-" for end, _ in found)
