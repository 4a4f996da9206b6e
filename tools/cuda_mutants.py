"""Seeded bugs in every kernel: how many do the tests of the emulator catch?

    PYTHONPATH=tests/helpers python tools/cuda_mutants.py [-n PROCESSES] [--part K/M] [name ...]

Each mutant changes one place of a source. It is caught where a tree or a bin differs from
the CPU's, or the emulator reports a race, an access out of bounds, a divergence or a read of
undefined memory. Prints one line a mutant, with the first comparison and way of running that
catch it, and the catch rate; exits with 1 if the kernels as they are fail, or a mutant is not
caught.

One process takes five minutes for all of them. A part is every M-th mutant from the K-th on; K may
be any number, such as one that counts commits, so that a run of each takes turns.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, product
from multiprocessing import get_context
from typing import NamedTuple

import pytest
from cuda_category_mutants import SUBSET_MUTANTS, compare_categories
from cuda_comparisons import (
    compare_bins,
    compare_cells,
    compare_inspection,
    compare_limits,
    compare_places,
    compare_trees,
)
from cuda_emulator import LaunchError, emulated_cuda
from cuda_list_mutants import LIST_MUTANTS, compare_lists
from cuda_monotonic_mutants import MONOTONIC_MUTANTS, compare_monotonic
from cuda_shard_mutants import PART_MUTANTS, compare_parts
from devices import tune
from mutants import Mutant, part_of, print_caught

from gputree.backends import binning

MUTANTS = [
    Mutant(
        "encode: strict bound",
        "edge[edge_place(bin + step - 1)] < key",
        "edge[edge_place(bin + step - 1)] <= key",
    ),
    Mutant("encode: negative zero", "if (bits == SIGN_BIT) return SIGN_BIT;", ""),
    Mutant(
        "encode: missing values",
        "const bool missing = key == MISSING_KEY;",
        "const bool missing = false;",
    ),
    Mutant("encode: inexact not told", "atomicOr(&inexact[f], 1)", "0"),
    Mutant(
        "encode: edges of the first group",
        "= edges[first * ROOM + i];",
        "= edges[i];",
    ),
    Mutant(
        "encode: no barrier after edges",
        "= edges[first * ROOM + i];\n    __syncthreads();",
        "= edges[first * ROOM + i];",
    ),
    Mutant(
        "encode: a group too many",
        "const i64 last = first + 4 * group_words < columns ? first + 4 * group_words : columns;",
        "const i64 last = columns;",
    ),
    Mutant("fit: strict bound", "return keys[i] >= key;", "return keys[i] > key;"),
    Mutant("inspect: infinite as missing", "if (size > INFINITY", "if (size >= INFINITY"),
    Mutant(
        "inspect: plain or",
        "atomicOr(&found[thread % columns], seen)",
        "found[thread % columns] |= seen",
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
    Mutant(
        "histogram: plain flush",
        "add_to_global(cells_out + i, cells[i]);",
        "cells_out[i] += cells[i];",
    ),
    Mutant(
        "histogram: one entry too few",
        "items = u32(last - first) * words",
        "items = u32(last - first - 1) * words",
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
        "table.categories[f] > 0 ? 0 : missing ? 2 : 1;",
        "table.categories[f] > 0 ? 0 : 1;",
    ),
    Mutant("ties: highest column", "return a.rank < b.rank;", "return a.rank > b.rank;"),
    Mutant("ties: missing left first", "return !a.missing_left;", "return a.missing_left;"),
    Mutant("ties: highest place", "return a.place < b.place;", "return a.place > b.place;"),
    Mutant(
        "admitted: one row less",
        "if (n < min_rows || whole - n",
        "if (n + 1 < min_rows || whole - n",
    ),
    Mutant("admitted: weight ignored", "return weight >= min_weight_leaf &&", "return true ||"),
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
        "place[b] = n > 0 ? i32(before_it) : -1;",
        "place[b] = n > 0 ? 0 : -1;",
    ),
    Mutant(
        "mark: sizes of bins",
        "taken[j * bins + b] = u32(number);",
        "taken[j * bins + b] = u32(number + 1);",
    ),
    Mutant("mark: score of the cut", "if (f == 0) best_scores[j] =", "if (false) best_scores[j] ="),
    Mutant("cells: values fall", "i64(place < top ? place : top) : 0", "i64(top) / 2 : size - 1"),
    Mutant("cells: not added up", "sum += inclusive_sum(cell);", "inclusive_sum(cell);"),
    Mutant(
        "cells: every bin by every warp",
        "if (number++ % warps != warp) continue;",
        "if (number++ % warps != 0) return;",
    ),
    Mutant("cells: counts not summed", "counts[i] = before + count;", "counts[i] = count;"),
    Mutant("cells: warps before forgotten", "if (w < warp) before += sums[w];", ""),
    Mutant(
        "cells: sums of warps without barrier",
        "sums[warp] = upto;\n    __syncthreads();",
        "sums[warp] = upto;",
    ),
    Mutant(
        "cells: sums of warps overwritten",
        "all += sums[w];\n    }\n    __syncthreads();",
        "all += sums[w];\n    }",
    ),
    Mutant(
        "cells: first slice alone",
        "first = blockIdx.x % slices * blockDim.x;",
        "first = 0;",
    ),
    Mutant("cells: too large for a warp", "__syncthreads_count(n > MOST_SORTED)", "0"),
    Mutant("cells: no key behind", "if (threadIdx.x == 0) own_keys[n] = key_behind;", ""),
    Mutant("cells: any key behind", "if (other < lowest) lowest = other;", ""),
    Mutant(
        "cells: none after a boundary",
        "score_of(rules, constraint, after, total) >= needed",
        "false",
    ),
    Mutant(
        "cells: slots collide",
        "sub_bins.place[c] = i32(place);",
        "sub_bins.place[c] = 0;",
    ),
    Mutant("cells: cursor not reset", "sub_bins.taken[c] = 0;", ""),
    Mutant(
        "cells: listed anywhere", "candidates[listed_at] = i32(c);", "candidates[first] = i32(c);"
    ),
    Mutant("cells: last row of a bin scanned", "n - (is_last ? 1 : 0), before", "n, before"),
    Mutant("cells: boundaries not scanned", "n - (is_last ? 1 : 0), before", "n - 1, before"),
    Mutant("cells: last of a column", "i + 1 < first[pair + 1] ? sub_bins", "true ? sub_bins"),
    Mutant(
        "cells: own candidate left of it",
        "sub_bins.counts + c * channels, nullptr",
        "sub_bins.counts, nullptr",
    ),
    Mutant(
        "cells: one candidate a warp",
        "i < first[end]; i += gridDim.x)",
        "i < first[end]; i = first[end])",
    ),
    Mutant(
        "gather: plain cursor",
        "base + atomicAdd(&sub_bins.taken[cell], 1u)",
        "base + sub_bins.taken[cell]++",
    ),
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
        "cut = warp_first(cut);\n    __syncwarp();\n    if (threadIdx.x == 0)",
        "cut = warp_first(cut);\n    if (threadIdx.x == 0)",
    ),
    Mutant("draw: key not mixed", "((mix(key + u64(i)) >> 32)", "(((key + u64(i)) >> 32)"),
    Mutant("ties: rank not of the node", "mix((key ^ 0x", "mix((u64(0) ^ 0x"),
    Mutant("visit: waiting nodes dropped", "if (waits) record.column = WAITS;", ""),
    Mutant("inside: slots collide", "place[b] += i32(slot);", ""),
    Mutant("inside: cursor not reset", "inside.taken[j * bins + b] = 0;", ""),
    Mutant(
        "undefined: bin of missing values",
        "if (threadIdx.x == 0 && column.has_missing) place",
        "if (false) place",
    ),
    Mutant("inside: too many slots", "const bool fits = !is_large &&", "const bool fits = true ||"),
    Mutant("inside: places taken without fitting", "u64(fits ? bins : 0)", "u64(bins)"),
    Mutant("inside: others listed as leading", "first = others * inside.rest +", "first ="),
    Mutant("inside: overflow not told", "if (!fits) atomicMax(tally + OVERFLOWS, u64(1));", ""),
    Mutant("inside: plain cursor", "atomicAdd(&inside.taken[bin], 1u)", "inside.taken[bin]++"),
    Mutant("inside: not sorted", "if ((low & run) == 0 ? a <= b : a >= b) continue;", "continue;"),
    Mutant(
        "inside: no barrier between steps",
        "items[high] = item;\n            }\n            __syncwarp();",
        "items[high] = item;\n            }",
    ),
    Mutant("inside: rows of other lanes", "+ inclusive_sum(count) - count;", ";"),
    Mutant("inside: one bin a warp", "i < end; i += gridDim.x)", "i < end; i = end)"),
    Mutant(
        "inside: sorted before all have scanned",
        "inside.found.cuts)[i] = cut;\n        __syncwarp();",
        "inside.found.cuts)[i] = cut;",
    ),
    Mutant("splits: none inside bins", "cut = found.better(cut, j * columns + f);", ";"),
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
    Mutant("partition: copies without sides", "return left ? ~row : row;", "return row;"),
    Mutant(
        "partition: copies of the right",
        "entries[begin[j] + rank] = ~entry;",
        "entries[begin[j] + rank] = entry;",
    ),
    Mutant(
        "partition: entries of all chunks copied",
        "entry = i < last ? sided[i] : 0;",
        "entry = sided[i0];",
    ),
    Mutant(
        "undefined: copies of entries",
        "sided[i] = with_side(i32(row), left);",
        "if (left) sided[i] = ~i32(row);",
    ),
    Mutant("partition: chunks before forgotten", "if (n > 0) atomicAdd(&sum, n);", ""),
    Mutant(
        "partition: neighbours of all chunks",
        "if (look && low > 0) atomicMax(&record.low, u64(low));",
        "if (look) record.low = u64(low);",
    ),
    Mutant(
        "partition: no barrier after the sum",
        "atomicAdd(&sum, n);\n    __syncthreads();",
        "atomicAdd(&sum, n);",
    ),
    Mutant(
        "choose: nodes of one class split",
        "if (!is_first) {\n            cut",
        "if (true) {\n            cut",
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
    Mutant(
        "statistics: not flushed", "if (sums[k] != 0) add_to_global(node_sums + k, sums[k]);", ""
    ),
    Mutant("finish: totals without barrier", "total[k] = 0;\n    __syncwarp();", "total[k] = 0;"),
    Mutant(
        "finish: known rows",
        "first_behind(s, t, [&](i64 i) { return keys[i] == MISSING_KEY; });",
        "first_behind(s, t, [&](i64 i) { return keys[i] == MISSING_KEY; }) - 1;",
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
    Mutant("undefined: sums of chunks", "for (i64 k = 0; k < channels; ++k) sum[k] = 0;", ""),
    Mutant("undefined: shared cells", "i < size; i += blockDim.x) cells[i] = 0;", "false;) ;"),
    Mutant("undefined: shared sums", "k < width; k += blockDim.x) sums[k] = 0;", "false;) ;"),
    Mutant("undefined: shared count", "        left_rows = 0;\n", ""),
    Mutant("undefined: totals", "k < work.channels; k += 32) total[k] = 0;", "false;) ;"),
    Mutant("undefined: left of a scan", "for (i64 k = 0; k < work.channels; ++k) left[k] = 0;", ""),
    Mutant("undefined: side of leaves", "missing_left[node] = 0;", ""),
    *(Mutant(*mutant) for mutant in (*LIST_MUTANTS, *SUBSET_MUTANTS)),
    *(Mutant(*mutant) for mutant in (*MONOTONIC_MUTANTS, *PART_MUTANTS)),
]


class Way(NamedTuple):
    """Order of work, whether accesses are checked, and what fresh memory holds."""

    order: str
    check: bool
    fill: int

    def __str__(self) -> str:
        return self.order + (", checked" if self.check else "")


WAYS = [Way("ascending", False, 0x01), Way("descending", False, 0xFF), Way("random", True, 0xCD)]

COMPARISONS = {
    "subsets": compare_categories,
    "lists": compare_lists,
    "monotonic": compare_monotonic,
    "parts": compare_parts,
    "trees": compare_trees,
    "cells": compare_cells,
    "limits": compare_limits,
    "places": compare_places,
    "inspection": compare_inspection,
    "bins": compare_bins,
}
# Which is tried first, by a mutant's name or the part of the kernels that it begins with.
FIRST = {name: name for name in ("subsets", "lists", "monotonic", "cells", "parts")}
FIRST |= {"inspect": "inspection", "admitted": "limits", "subtract": "bins"}
FIRST |= dict.fromkeys(("encode", "pick", "keys", "fit"), "bins")
FIRST |= dict.fromkeys(("mark", "gather"), "limits")
FIRST |= {
    "scan: not limited": "limits",
    "visit: waiting nodes dropped": "limits",
    "histogram: one entry too few": "limits",
    "inside: one bin a warp": "limits",
    "cells: one candidate a warp": "limits",
    "inside: sorted before all have scanned": "limits",
    "inside: too many slots": "limits",
    "inside: overflow not told": "limits",
    "inside: places taken without fitting": "places",
    "pick: store before all have read": "cells",
    "partition: chunks before forgotten": "cells",
    "partition: no barrier after the sum": "cells",
    "partition: votes overwritten": "cells",
    "partition: neighbours of all chunks": "bins",
}

# Mutants that a process takes at once: it loads what they need once, and forks.
MOST = 16

# Processor seconds of a comparison with a bug: trees that do not end take more.
MOST_SECONDS = 60


def first_comparison(mutant: Mutant) -> str:
    part = mutant.name.partition(":")[0]
    return FIRST.get(mutant.name) or FIRST.get(part, "trees")


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
    first = first_comparison(mutant)
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
        by_first[first_comparison(mutant)].append(mutant)
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
        asked = product([None], dict(parts), WAYS[1:])
        passing = [pool.submit(outcome, *way) for way in asked]
        missed, failing = 0, False
        for done in as_completed(running):
            found = done.result()
            failing |= found is None
            missed += print_caught(running[done][1], found) if found else 0
        failing |= any(future.result() != "-" for future in passing)
    if failing:
        print("the kernels as they are fail")
        return 1
    print(f"caught {len(chosen) - missed} of {len(chosen)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
