"""Seeded bugs in the kernels of attribute lists: name, text, what becomes of it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from devices import tune
from mixed_tables import MixedTable
from twin_lists import grow_both_ways

from gputree import C45Classifier, ID3Classifier

LIST_MUTANTS = [
    (
        "lists: gains not rounded",
        "(total + (i64(1) << information.shift >> 1))",
        "total",
    ),
    (
        "lists: part of a row from the table",
        "rows << information.row_bits == weight",
        "true",
    ),
    (
        "lists: span of half the tiles",
        "(tiles + warps - 1) / warps * 32",
        "(tiles + warps - 1) / warps * 16",
    ),
    (
        "lists: missing values found one late",
        "{ return code[i] == MISSING_CODE; });",
        "{ return code[i] == MISSING_CODE; }) + 1;",
    ),
    ("lists: sum of fewer lanes", "step < 5; ++step", "step < 4; ++step"),
    ("lists: sum of itself twice", "next = after;", "next = next;"),
    (
        "lists: missing weight kept",
        "add_to_global(known + place.k, -sum);",
        "add_to_global(known + place.k, 0);",
    ),
    (
        "lists: missing taken without barrier",
        "-sum);\n    }\n    __syncthreads();",
        "-sum);\n    }",
    ),
    (
        "lists: plain sum of missing values",
        "add_to_global(known + place.k, -sum);",
        "known[place.k] -= sum;",
    ),
    (
        "lists: span counted from its start",
        "if (segment.categorical) span.first = code_begin",
        "if (false) span.first = code_begin",
    ),
    ("lists: branch carried on", "if (!goes_on) carry = 0;", ""),
    (
        "lists: carry of the span before alone",
        "carry = count + (is_whole ? carry : 0);",
        "carry = count;",
    ),
    (
        "lists: counts without barrier",
        "vectors.turned[warp] = turned;\n    __syncthreads();",
        "vectors.turned[warp] = turned;",
    ),
    (
        "lists: carries without barrier",
        "carry_over(task, segment, warps, vectors.left);\n    __syncthreads();",
        "carry_over(task, segment, warps, vectors.left);",
    ),
    ("lists: vectors not cleared", "k += blockDim.x) vectors.left[k] = 0;", "k += blockDim.x) ;"),
    (
        "lists: ties to the last cut",
        "b.gain == a.gain && b.place < a.place",
        "b.gain == a.gain && b.place > a.place && b.gain > 0",
    ),
    (
        "lists: every cut takes part",
        "if (ends.is_end && ends.turn > open.begin)",
        "if (ends.is_end)",
    ),
    (
        "lists: every cut between spans takes part",
        "if (walk.turned > open.begin)",
        "if (walk.turned >= 0)",
    ),
    ("lists: first cut of every span", "if (tries == 0) cut = better", "cut = better"),
    ("lists: last cut forgotten", "return better(cut, last);", "return cut;"),
    ("lists: turns of earlier spans", "? vectors.turned[w] : turned;", "? turned : turned;"),
    (
        "lists: cut lighter than allowed",
        "is_end && weight >= sides.least &&",
        "is_end && weight + 1 >= sides.least &&",
    ),
    (
        "lists: class weights left before all have read",
        "        change = term(information, left) - term(information, left - place.weight) +\n"
        "                 term(information, right) - term(information, right + place.weight);\n"
        "    }\n    __syncwarp();",
        "        change = term(information, left) - term(information, left - place.weight) +\n"
        "                 term(information, right) - term(information, right + place.weight);\n"
        "    }",
    ),
    (
        "lists: terms left of a span",
        "terms += term(task.information, known[k] - left[k]);",
        "",
    ),
    (
        "lists: split without the unknown",
        "- term(information, whole - total);\n    const",
        ";\n const",
    ),
    (
        "lists: branch of a later class",
        "if (first < 0) after += left[place.k];",
        "after += left[place.k];",
    ),
    ("lists: branch not cleared", "k += 32) left[k] = 0;", "k += 32) ;"),
    ("lists: branch weight not carried", "carried = last_lane(branch);", ""),
    (
        "lists: part of the place before",
        "return last[part] > i;",
        "return last[part] >= i;",
    ),
    (
        "lists: cut exclusive",
        "return code[i] > cut;",
        "return code[i] >= cut;",
    ),
    (
        "lists: branches of the warp before",
        "for (int w = 0; w < warp; ++w) part += begun[w];",
        "if (warp > 0) part += begun[warp - 1];",
    ),
    (
        "lists: branches without barrier",
        "begun[warp] = number;\n    __syncthreads();",
        "begun[warp] = number;",
    ),
    (
        "lists: plain sums of parts",
        "add_to_global(parts.weights + cell, sum);",
        "parts.weights[cell] += sum;",
    ),
    (
        "lists: plain sum of the whole",
        "add_to_global(tests.whole + parts.test[p], sum);",
        "tests.whole[parts.test[p]] += sum;",
    ),
    ("lists: fractions truncated", "return i64(rint(double(weight)", "return i64((double(weight)"),
    ("lists: empty fractions counted", "(ALL_LANES, share > 0));", "(ALL_LANES, place.valid));"),
    (
        "lists: entries at places of the level",
        "routes.begin[p] + i - parts.first[p];",
        "routes.begin[p] + i - parts.first[start];",
    ),
    (
        "lists: rows of places too near",
        "(i - known) * width);",
        "(i - known));",
    ),
    (
        "lists: fractions over known entries",
        "i64 free = routes.begin[p] + parts.last[p] - parts.first[p];",
        "i64 free = routes.begin[p];",
    ),
    (
        "lists: cursor before all have read",
        "__popc(alike & ((1u << lane) - 1u)) : 0;\n            __syncwarp();",
        "__popc(alike & ((1u << lane) - 1u)) : 0;",
    ),
    ("lists: cursor not advanced", "if (moves && is_last(alike)) cursor[part] = position + 1;", ""),
    (
        "lists: fractions unordered",
        "const bool moves = way >= 0 && lane >= from && lane < upto;",
        "const bool moves = way >= 0 && from == 0;",
    ),
    (
        "lists: spans not counted",
        "if (warps > 1) walk<false>(list, test_routes, span, cursor + warp * parts, to);",
        "",
    ),
    (
        "lists: cursors without barrier",
        "free += count;\n            }\n        }\n        __syncthreads();",
        "free += count;\n            }\n        }",
    ),
    (
        "lists: cursors not cleared in time",
        "c += blockDim.x) cursor[c] = 0;\n        __syncthreads();",
        "c += blockDim.x) cursor[c] = 0;",
    ),
]


def list_table(seed: int, n: int, weighted: bool) -> MixedTable:
    """Numbers with ties, runs of one class, few and many categories, missing values."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) // 37 + (rng.random(n) < 0.1)) % 3
    X = np.stack(
        [np.arange(n) // 5, rng.integers(0, 4, n), rng.integers(0, n // 3, n),
         rng.normal(size=n).round(1), np.arange(n) // 60], axis=1,
    ).astype(float)  # fmt: skip
    X[rng.random((n, 5)) < [0.1, 0.05, 0.3, 0.0, 0.0]] = np.nan
    weight = rng.choice([0.1, 1.0, 2.5], n) if weighted else None
    return MixedTable(X, np.array([False, True, True, False, True]), y, weight)


def compare_lists() -> None:
    """Grow trees that use every kernel of lists: long and short, weighted, interleaved."""
    cases = [(1, 16 * 1024), (10**9, 16 * 1024), (40, 0)]
    for seed, (long_list, shared) in enumerate(cases):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", lists_long=long_list)
            tune(patch, "cuda", lists_most_blocks=5)
            tune(patch, "cuda", lists_shared_bytes=shared)
            tune(patch, "cuda", lists_chunk_places=50)
            for weighted in (False, True):
                table = list_table(seed, 150, weighted)
                for kind in (C45Classifier, ID3Classifier):
                    model = kind(categorical_features=table.nominal, max_depth=4, pruning=None)
                    grow_both_ways(model, table.X, table.y, table.weight)
    for seed, long_list in product((5, 6), (1, 10**9)):
        with pytest.MonkeyPatch.context() as patch:
            tune(patch, "cuda", lists_long=long_list)
            compare_edges(seed)


def compare_edges(seed: int) -> None:
    """Branches that end with a warp's span; whole rows; rows so light that gains tie."""
    rng, n = np.random.default_rng(seed), 640
    y = (np.arange(n) // 350 + (rng.random(n) < 0.01)) % 2
    X = np.stack([np.arange(n) // 128, np.arange(n), rng.integers(0, 40, n)], axis=1).astype(float)
    for nominal in (np.array([True, False, False]), np.zeros(3, bool)):
        model = C45Classifier(categorical_features=nominal, max_depth=3, pruning=None)
        grow_both_ways(model, X, y)
        model.set_params(min_samples_leaf=0.25, mdl_correction=False)
        for light in (2.0**-34, 2.0**-36, 2.0**-38):
            grow_both_ways(model, X, y, light_rows(rng, n, light))
        holes = np.where(np.arange(n)[:, None] % 7 == 5, np.nan, X)  # fractions of nothing
        grow_both_ways(model, holes, y, light_rows(rng, n, light))


def light_rows(rng: np.random.Generator, n: int, light: float) -> np.ndarray:
    """Weights of rows of which the first and the last outweigh all others: gains tie."""
    weight = rng.choice([0.5, 1.0], n) * light
    weight[[0, -1]] = 1.0
    return weight
