"""Seeded bugs in every kernel: how many do the tests of the emulator catch?

    python tests/cuda_mutants.py [-n PROCESSES] [--part K/M] [name ...]

Each mutant changes one place of a source. It is caught where a tree or a bin differs from
the CPU's, or the emulator reports a race, an access out of bounds, a divergence or a read of
undefined memory. Prints one line a mutant, with the first way of running that catches it,
and the catch rate; exits with 1 if the kernels as they are fail, or a mutant is not caught.

Two processes take about two minutes for all of them once the CPU's kernels are compiled. A
part is every M-th mutant from the K-th on; K may be any number, such as one that counts
commits, so that a run of each takes turns.
"""

from __future__ import annotations

import argparse
import gc
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import product
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_category_mutants import SUBSET_MUTANTS, compare_categories
from cuda_emulator import LaunchError, emulated_cuda
from cuda_list_mutants import LIST_MUTANTS, compare_lists
from cuda_monotonic_mutants import MONOTONIC_MUTANTS, compare_monotonic
from devices import tune
from strategies import Sample, make_task
from twins import assert_equal, assert_same_bins, assert_same_tree, table

from gputree.backends import binning
from gputree.backends.cuda import encode, kernels


class Mutant(NamedTuple):
    name: str
    old: str
    new: str


MUTANTS = [
    Mutant(
        "encode: strict bound",
        "if (keys[first + half] < key)",
        "if (keys[first + half] <= key)",
    ),
    Mutant("encode: negative zero", "if (bits == SIGN_BIT) return SIGN_BIT;", ""),
    Mutant("encode: missing values", "if (key == MISSING_KEY) {", "if (false) {"),
    Mutant("encode: inexact not told", "atomicOr(&inexact[f], 1)", "0"),
    Mutant("inspect: infinite as missing", "if (size > INFINITY", "if (size >= INFINITY"),
    Mutant(
        "inspect: plain or",
        "atomicOr(&found[at % columns], seen)",
        "found[at % columns] |= seen",
    ),
    Mutant("pick: plain slot", "atomicAdd(&taken[f], 1u)", "taken[f]++"),
    Mutant("keys: rows of the sample", "(places ? places[i] : i)", "i"),
    Mutant("fit: repeated values", "if (i > 0 && keys[i] == keys[i - 1]) continue;", ""),
    Mutant(
        "fit: no barrier after picks",
        "* (known - 1) / most];\n    __syncthreads();",
        "* (known - 1) / most];",
    ),
    Mutant(
        "fit: no barrier after plain edges",
        "plain = *edges.size;\n    __syncthreads();",
        "plain = *edges.size;",
    ),
    Mutant("fit: heavy values not alone", "(i == 1 || picks[i - 2] != picks[i - 1])", "false"),
    Mutant("fit: least finite value", "~(INFINITY_BITS - 1 | SIGN_BIT)", "0"),
    Mutant("fit: an edge too many", "if (lossless && edges > 0) --edges;", ""),
    Mutant(
        "fit: greatest of the next bin", "keys[upper > 0 ? upper - 1 : 0]", "keys[upper % known]"
    ),
    Mutant(
        "histogram: no barrier after zeroing",
        "cells[i] = 0;\n    __syncthreads();",
        "cells[i] = 0;",
    ),
    Mutant(
        "histogram: no barrier before flush",
        "        cells\n    );\n    __syncthreads();",
        "        cells\n    );",
    ),
    Mutant("histogram: plain flush", "add_to_global(own + i, cells[i]);", "own[i] += cells[i];"),
    Mutant(
        "histogram: one entry too few",
        "item < (last - first) * words",
        "item < (last - first - 1) * words",
    ),
    Mutant("histogram: carry lost", "u32(before + low < before)", "0u"),
    Mutant(
        "subtract: sides swapped",
        "whole[whole_slots[j] * width + i] - out[part_slots[j] * width + i]",
        "out[part_slots[j] * width + i] - whole[whole_slots[j] * width + i]",
    ),
    Mutant(
        "scan: shuffle by one lane less",
        "if (lane >= distance) value += before;",
        "if (lane > distance) value += before;",
    ),
    Mutant("scan: carry forgotten", "carry = last_lane(sum);", ""),
    Mutant(
        "score: no barrier after sums",
        "    }\n    __syncwarp();\n}\n\n// Grid: nodes x columns",
        "    }\n}\n\n// Grid: nodes x columns",
    ),
    Mutant(
        "score: one side only",
        "table.categories[f] > 0 ? 0 : absent ? 2 : 1;",
        "table.categories[f] > 0 ? 0 : 1;",
    ),
    Mutant("ties: highest column", "return a.column < b.column;", "return a.column > b.column;"),
    Mutant("ties: missing left first", "return !a.missing_left;", "return a.missing_left;"),
    Mutant("ties: highest place", "return a.place < b.place;", "return a.place > b.place;"),
    Mutant(
        "admitted: one row less", "if (n < least || whole - n", "if (n + 1 < least || whole - n"
    ),
    Mutant("admitted: weight ignored", "weight >= min_weight_leaf &&", "true ||"),
    Mutant(
        "scan: not limited",
        "if (!rules.limits.admit(n, whole, state",
        "if (false && !rules.limits.admit(n, whole, state",
    ),
    Mutant(
        "finish: one row less",
        "limits.admit(i + 1 - s + moved, t - s,",
        "limits.admit(i + 2 - s + moved, t - s + 2,",
    ),
    Mutant(
        "bound: margin lost",
        "return cut.score - margin(criterion, cut.score, total);",
        "return cut.score + 1e-3;",
    ),
    Mutant(
        "mark: slots collide",
        "place[j * bins + b] = alive ? i32(sum - places) : -1;",
        "place[j * bins + b] = alive ? 0 : -1;",
    ),
    Mutant(
        "mark: cursor not reset",
        "taken[j * bins + b] = cell_rows ?",
        "if (cell_rows) taken[j * bins + b] = cell_rows ?",
    ),
    Mutant("cells: values fall", "i64(place < top ? place : top) : 0", "i64(top) / 2 : size - 1"),
    Mutant("cells: not added up", "sum += i64(counts[c * channels + k]);", ""),
    Mutant(
        "cells: none after a boundary",
        "score_of(criterion, limits, hold, after, total, channels) >= bar",
        "false",
    ),
    Mutant(
        "cells: slots collide",
        "cell_place[c] = alive ? i32(sum - n) : -1;",
        "cell_place[c] = alive ? 0 : -1;",
    ),
    Mutant("cells: cursor not reset", "cell_taken[c] = 0;", ""),
    Mutant(
        "cells: last row of a bin scanned",
        "stop = first + n - (is_last ? 1 : 0);",
        "stop = first + n;",
    ),
    Mutant(
        "cells: boundaries not scanned",
        "stop = first + n - (is_last ? 1 : 0);",
        "stop = first + n - 1;",
    ),
    Mutant("cells: left of them forgotten", "- i64(counts[cell * channels + k]);", ";"),
    Mutant("cells: earlier chunks forgotten", "left += inside;", ""),
    Mutant("gather: plain cursor", "base + atomicAdd(&taken[bin], 1u)", "base + taken[bin]++"),
    Mutant(
        "chunks: last row scanned",
        "rows_in(rules.criterion, cell, channels) - 1;",
        "rows_in(rules.criterion, cell, channels);",
    ),
    Mutant("chunks: earlier ones forgotten", "left += own;", ""),
    Mutant(
        "scan: equal values cut",
        "if (keys[i] == keys[i + 1]) continue;\n        const i64 n = before",
        "const i64 n = before",
    ),
    Mutant(
        "scan: missing values not undone",
        "left[rows.target[items[i]]] -= weight_of(rows.weight, items[i]);",
        "",
    ),
    Mutant(
        "pick: store before all have read",
        "cut = first_cut(cut);\n    __syncwarp();\n    if (threadIdx.x == 0)",
        "cut = first_cut(cut);\n    if (threadIdx.x == 0)",
    ),
    Mutant("draw: key not mixed", "state = mix(state);", "state += 1;"),
    Mutant("visit: waiting nodes dropped", "atomicAdd(waiting, 1);", ""),
    Mutant(
        "splits: next bin",
        "b + 1; after < column.value_bins",
        "b + 2; after < column.value_bins",
    ),
    Mutant(
        "partition: bound exclusive",
        "value_of(key) <= threshold",
        "value_of(key) < threshold - 1",
    ),
    Mutant(
        "partition: plain count",
        "if (left) atomicAdd(&left_rows, 1u);",
        "if (left) left_rows += 1;",
    ),
    Mutant(
        "partition: rank off by one",
        "__popc(vote & ((1u << lane) - 1u))",
        "__popc(vote & ((2u << lane) - 1u))",
    ),
    Mutant(
        "partition: middle forgotten",
        "atomicAdd((u64*)&record.middle, u64(left_rows));",
        "",
    ),
    Mutant("partition: chunks before forgotten", "if (own > 0) atomicAdd(&sum, own);", ""),
    Mutant(
        "partition: neighbours of all chunks",
        "if (look && low > 0) atomicMax(&record.low, u64(low));",
        "if (look) record.low = u64(low);",
    ),
    Mutant(
        "partition: no barrier after the sum",
        "atomicAdd(&sum, own);\n    __syncthreads();",
        "atomicAdd(&sum, own);",
    ),
    Mutant(
        "choose: nodes of one class split",
        "    if (!is_first) {\n        cut",
        "    if (true) {\n        cut",
    ),
    Mutant(
        "partition: no barrier for votes",
        "warp_lefts[warp] = __popc(vote);\n        __syncthreads();",
        "warp_lefts[warp] = __popc(vote);",
    ),
    Mutant(
        "partition: votes overwritten",
        "before += warp_lefts[w];\n        }\n        __syncthreads();",
        "before += warp_lefts[w];\n        }",
    ),
    Mutant("statistics: not flushed", "if (sums[k] != 0) add_to_global(own + k, sums[k]);", ""),
    Mutant("finish: totals without barrier", "total[k] = 0;\n    __syncwarp();", "total[k] = 0;"),
    Mutant(
        "finish: known rows",
        "s = middle + 1;\n    }\n    return s;",
        "s = middle + 1;\n    }\n    return s - 1;",
    ),
    Mutant(
        "finish: sides without barrier",
        "child_key(key, 1));\n        }\n        __syncwarp();",
        "child_key(key, 1));\n        }",
    ),
    Mutant(
        "finish: partition unstable",
        "const i64 to = left ? to_left++ : spilled++;",
        "const i64 to = left ? to_left++ : (base + t - 1 - (spilled++ - base - s));",
    ),
    Mutant(
        "finish: child key",
        "depth + 1, child_key(key, 1));",
        "depth + 1, child_key(key, 0));",
    ),
    Mutant("finish: depth", "depth[node] = i32(level);", "depth[node] = i32(level - 1);"),
    Mutant(
        "finish: copies without barrier",
        "size, memory);\n        __syncwarp();",
        "size, memory);",
    ),
    Mutant(
        "finish: order not copied back",
        "items[i] = copies.items[lists.columns * size + i];",
        "",
    ),
    # Memory that nothing has written: what it holds differs from device to device.
    Mutant(
        "undefined: bin of missing values", "if (column.has_missing && lane == 0)", "if (false)"
    ),
    Mutant("undefined: sums of chunks", "for (i64 k = 0; k < channels; ++k) sum[k] = 0;", ""),
    Mutant("undefined: shared cells", "i < size; i += blockDim.x) cells[i] = 0;", "false;) ;"),
    Mutant("undefined: shared sums", "k < width; k += blockDim.x) sums[k] = 0;", "false;) ;"),
    Mutant("undefined: shared count", "        left_rows = 0;\n", ""),
    Mutant("undefined: totals", "k < channels; k += 32) total[k] = 0;", "false;) ;"),
    Mutant("undefined: left of a scan", "for (i64 k = 0; k < channels; ++k) left[k] = 0;", ""),
    Mutant("undefined: side of leaves", "missing_left[node] = 0;", ""),
    *(Mutant(*mutant) for mutant in (*LIST_MUTANTS, *SUBSET_MUTANTS, *MONOTONIC_MUTANTS)),
]

# Order of work, whether accesses are checked, and what fresh memory holds.
WAYS = [("ascending", False, 0x01), ("descending", False, 0xFF), ("random", True, 0xCD)]


def compare() -> None:
    """Grow trees that use every kernel: refined, finished, binned; drawn columns, ties, holes."""
    for criterion, weighted in (("gini", False), ("squared_error", True)):
        sample = table(criterion, weighted, n=120, seed=11)
        task = make_task(criterion, sample, max_depth=6)
        assert_same_tree(sample, task, finish_rows=20, max_bins=40)
        task = make_task(criterion, sample, max_features=2, min_samples_leaf=3)
        assert_same_tree(sample, task, finish_rows=20, max_bins=6)
    rng = np.random.default_rng(0)
    for _ in range(6):
        values = rng.choice([0.0, -0.0, 1.0, 2.0, 3.0, np.nan], (30, 3))
        sample = Sample(values, rng.integers(0, 2, 30).astype(np.uint8), None)
        task = make_task("gini", sample, max_depth=8)  # a bug may split off no row, for ever
        for finish_rows in (1, None):
            assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=3)
    compare_cells()
    compare_limits(rng)
    compare_inspection(rng)
    compare_bins(rng)


def compare_cells() -> None:
    """Bins counted into cells: of a row each, and of more rows than a chunk."""
    for cell_rows in (1, 100):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", counted_pairs=1, alive_share=0.0, cell_rows=cell_rows)
            sample = table("gini", False, n=300, seed=3)
            task = make_task("gini", sample, max_depth=4)
            assert_same_tree(sample, task, finish_rows=20, max_bins=3)


def compare_limits(rng: np.random.Generator) -> None:
    """The best cut leaves 39 rows; bins of many chunks; columns that have no cut if drawn."""
    values = np.zeros((300, 4))
    values[:, 1] = rng.normal(size=300)
    rank = np.argsort(np.argsort(values[:, 1]))
    values[:, 0] = np.where(rank < 39, 0, 1 + rank % 3)
    classes = np.where(rank < 160, rank < 39, rng.random(300) < 0.5).astype(np.uint8)
    sample = Sample(values, classes, None)
    for limits in ({"max_features": 1}, {"min_samples_leaf": 40}, {"min_weight_leaf": 40}):
        task = make_task("gini", sample, max_depth=4, **limits)
        for finish_rows, max_bins in ((1, 2), (1, 4), (None, 4)):
            assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins)


def compare_bins(rng: np.random.Generator) -> None:
    """Bins of plain, heavy and few values; a column whose sample shows few of its values."""
    columns = rng.normal(size=(5, 250))
    columns[1, rng.random(250) < 0.6] = 0.0
    columns[2, ::3] = np.finfo(np.float64).min
    columns[3, ::5] = np.nan
    columns[4] = rng.integers(0, 3, 250)
    sample = Sample(columns.T.copy(), np.zeros(250, np.uint8), None)
    for exact, max_bins in product((True, False), (4, 9)):
        assert_same_bins(sample, make_task("gini", sample, exact=exact), max_bins)
    rare = np.where(np.arange(300) % 16 == 7, np.arange(300.0), 0.0)
    sample = Sample(rare[:, None], (np.arange(300) % 48 == 7).astype(np.uint8), None)
    assert_same_tree(sample, make_task("gini", sample), finish_rows=1, max_bins=8)


def compare_inspection(rng: np.random.Generator) -> None:
    """What a table's columns hold, told on the device and by NumPy."""
    kinds = [[1.0, 2.0], [1.0, np.nan], [1.0, np.inf], [1.0, -np.inf, np.nan]]
    values = np.stack([rng.choice(kind, 40) for kind in kinds], axis=1)
    missing, infinite = encode.inspect_columns(kernels.cupy().asarray(values))
    assert_equal(np.isnan(values).any(axis=0), missing)
    assert_equal(np.isinf(values).any(axis=0), infinite)


def kernels_of(mutant: Mutant) -> str:
    """Which kernels a mutant changes: of attribute "lists", "subsets", "monotonic" or "others"."""
    group = mutant.name.partition(":")[0]
    return group if group in COMPARISONS else "others"


COMPARISONS = {
    "lists": compare_lists,
    "subsets": compare_categories,
    "monotonic": compare_monotonic,
    "others": compare,
}


def outcome(mutant: Mutant | None, group: str, order: str, check: bool, fill: int) -> str:
    """``wrong``, ``reported`` or ``-`` for not caught."""
    replace = {mutant.old: mutant.new} if mutant else None
    try:
        with (
            emulated_cuda(order, check, replace=replace, fill=fill),
            pytest.MonkeyPatch.context() as patch,
        ):
            tune(patch, "cuda", chunk_rows=40)  # nodes of several chunks
            tune(patch, "cuda", partition_rows=260)  # and of chunks longer than a block
            patch.setattr(binning, "SAMPLE_ROWS", 70)
            COMPARISONS[group]()
    except LaunchError:
        return "reported"
    except Exception:  # a wrong tree, or one that cannot be grown on
        return "wrong"
    return "-"


def outcome_apart(*arguments: Any) -> str:
    """`outcome` in a process of its own, which a bug may crash: ``crashed``."""
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        try:
            return pool.submit(outcome, *arguments).result()
        except BrokenProcessPool:
            return "crashed"


def catch(mutant: Mutant) -> tuple[str, str]:
    """What happened in the first way that catches a mutant, and which way it is."""
    for way in likeliest_first(mutant):
        found = outcome_apart(mutant, kernels_of(mutant), *way)
        if found != "-":
            return found, way[0] + (", checked" if way[1] else "")
    return "-", ""


def likeliest_first(mutant: Mutant) -> list[Any]:
    """The ways of running; where order decides, first the one that checks every access."""
    races = any(word in mutant.name for word in ("barrier", "plain", "undefined"))
    return sorted(WAYS, key=lambda way: way[1] != races)


def part_of(text: str) -> slice:
    """Every M-th from the K-th on, of ``K/M``."""
    place, count = map(int, text.split("/"))
    return slice(place % count, None, count)


def warm_up(kinds: list[str]) -> bool:
    """Load kernels, which all mutants then find loaded; whether these pass as they are."""
    return all(outcome(None, kind, *WAYS[0]) == "-" for kind in kinds)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help="parts of names of mutants")
    parser.add_argument("-n", type=int, default=1, dest="processes", help="processes; default 1")
    parser.add_argument("--part", type=part_of, default=slice(None), metavar="K/M")
    options = parser.parse_args(arguments)
    names = options.names
    chosen = [m for m in MUTANTS if not names or any(name in m.name for name in names)]
    chosen = chosen[options.part]
    kinds = sorted({kernels_of(m) for m in chosen})
    if not warm_up(kinds):
        print("the kernels as they are fail")
        return 1
    gc.freeze()  # what is loaded is shared with all that are forked, not copied by collections
    missed = []
    with ProcessPoolExecutor(options.processes, get_context("fork")) as pool:
        # The kernels as they are must pass in every way that the chosen mutants run.
        asked = product(kinds, WAYS[1:])
        passes = [pool.submit(outcome_apart, None, lists, *way) for lists, way in asked]
        for mutant, (found, way) in zip(chosen, pool.map(catch, chosen), strict=True):
            print(f"{mutant.name:40} {found:10} {way}", flush=True)
            if found == "-":
                missed.append(mutant.name)
    print(f"caught {len(chosen) - len(missed)} of {len(chosen)}")
    if any(future.result() != "-" for future in passes):
        print("the kernels as they are fail")
        return 1
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
