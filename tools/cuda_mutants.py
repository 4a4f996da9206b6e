"""Seeded bugs in every CUDA kernel: how many do the tests of the emulator catch?

    PYTHONPATH=tests/helpers python tools/cuda_mutants.py [-n PROCESSES] [--part K/M] [name ...]

Each mutant of `cuda_mutants.toml` changes one place of a source. It is caught where a tree or a bin
differs from the CPU's, or the emulator reports a race, an access out of bounds, a divergence or a
read of undefined memory. Prints one line a mutant, with the first comparison and way of running
that catch it, and the catch rate; exits with 1 if the kernels as they are fail, or a mutant is not
caught.

One process takes five minutes for all of them. A part is every M-th mutant from the K-th on; K may
be any number, such as one that counts commits, so that a run of each takes turns.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest
from cuda_comparisons import COMPARISONS
from cuda_emulator import LaunchError, emulated_cuda
from devices import tune
from python_mutants import part_of

from gputree.backends import binning


class Mutant(NamedTuple):
    """A text that occurs once in the sources, its replacement, and the comparison tried first."""

    name: str
    old: str
    new: str
    comparison: str


TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
MUTANTS = [Mutant(*row, comparison) for comparison, rows in TABLES.items() for row in rows]


class Way(NamedTuple):
    """Order of work, whether accesses are checked, and what fresh memory holds."""

    order: str
    check: bool
    fill: int

    def __str__(self) -> str:
        return self.order + (", checked" if self.check else "")


WAYS = [Way("ascending", False, 0x01), Way("descending", False, 0xFF), Way("random", True, 0xCD)]

# Mutants that a process takes at once: it loads what they need once, and forks.
MOST = 16

# Processor seconds of a comparison with a bug: trees that do not end take more.
MOST_SECONDS = 60


def likeliest_first(mutant: Mutant) -> list[Way]:
    """The ways of running; where order decides, first the one that checks every access."""
    words = "barrier", "before all", "plain", "undefined", "taken without"
    races = any(word in mutant.name for word in words)
    return sorted(WAYS, key=lambda way: way.check != races)


def outcome(mutant: Mutant | None, comparison: str, way: Way) -> str:
    """``wrong``, ``reported`` or ``-`` for not caught."""
    replace = {mutant.old: mutant.new} if mutant else {}
    try:
        with (
            emulated_cuda(way.order, way.check, replace=replace, fill=way.fill),
            pytest.MonkeyPatch.context() as patch,
        ):
            tune(patch, "cuda", chunk_rows=40)  # nodes of several chunks
            tune(patch, "cuda", partition_rows=260)  # and of chunks longer than a block
            patch.setattr(binning, "SAMPLE_ROWS", 70)
            COMPARISONS[comparison]()
    except LaunchError:
        return "reported"
    except Exception:  # a wrong tree, or one that cannot be grown on
        return "wrong"
    return "-"


def bounded_outcome(mutant: Mutant, comparison: str, way: Way) -> str:
    """`outcome`; the system kills a process that takes too long."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    return outcome(mutant, comparison, way)


def outcome_apart(mutant: Mutant, comparison: str, way: Way) -> str:
    """`outcome` in a separate process, which a bug may crash, or keep for ever: ``crashed``."""
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        try:
            return pool.submit(bounded_outcome, mutant, comparison, way).result()
        except BrokenProcessPool:
            return "crashed"


def catch(mutant: Mutant) -> tuple[str, str]:
    """Outcome of the first comparison and way that catch a mutant, and their names."""
    first = mutant.comparison
    others = (name for name in COMPARISONS if name != first)
    ways = likeliest_first(mutant)
    for comparison, way in chain(product([first], ways), product(others, ways)):
        found = outcome_apart(mutant, comparison, way)
        if found != "-":
            return found, f"{comparison}, {way}"
    return "-", ""


def catch_all(comparison: str, mutants: list[Mutant]) -> list[tuple[str, str]] | None:
    """`catch` of each; None if the kernels as they are fail the comparison.

    Kernels that this process loads are shared with all that it forks, not copied by
    collections.
    """
    if outcome(None, comparison, WAYS[0]) != "-":
        return None
    gc.freeze()
    return [catch(mutant) for mutant in mutants]


def in_parts(mutants: list[Mutant]) -> list[tuple[str, list[Mutant]]]:
    """Divide mutants into parts by the comparison to begin with."""
    by_first: dict[str, list[Mutant]] = {name: [] for name in COMPARISONS}
    for mutant in mutants:
        by_first[mutant.comparison].append(mutant)
    return [
        (name, found[at : at + MOST])
        for name, found in by_first.items()
        for at in range(0, len(found), MOST)
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help="parts of names of mutants")
    parser.add_argument("-n", type=int, default=1, dest="processes", help="processes; default 1")
    parser.add_argument("--part", type=part_of, default=slice(None), metavar="K/M")
    options = parser.parse_args(arguments)
    names = options.names
    chosen = [m for m in MUTANTS if not names or any(name in m.name for name in names)]
    chosen = chosen[options.part]
    parts = in_parts(chosen)
    with ProcessPoolExecutor(options.processes, get_context("fork")) as pool:
        running = {pool.submit(catch_all, *part): part for part in parts}
        # The kernels as they are must pass in every way that the chosen mutants run.
        other_ways = product([None], dict(parts), WAYS[1:])
        passing = [pool.submit(outcome, *way) for way in other_ways]
        missed, failing = 0, False
        for done in as_completed(running):
            found = done.result()
            if found is None:
                failing = True
                continue
            for mutant, (end, where) in zip(running[done][1], found, strict=True):
                print(f"{mutant.name:40} {end:10} {where}", flush=True)
                missed += end == "-"
        failing |= any(future.result() != "-" for future in passing)
    if failing:
        print("the kernels as they are fail")
        return 1
    print(f"caught {len(chosen) - missed} of {len(chosen)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
