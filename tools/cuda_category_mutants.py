"""Seeded bugs in the kernels of subsets of categories: name, text, what becomes of it."""

from __future__ import annotations

import pytest
from category_oracle import Case, draw_case
from tunings import finishing
from twins import fit_both

from gputree.estimators import growing_categories

SUBSET_MUTANTS = [
    ("subsets: equal shares by code", "return order ? order > 0 : a > b;", "return a > b;"),
    ("subsets: runs of equal rows alike", "if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;", ""),
    (
        "subsets: heads of any size",
        "valid && measure.limits.admit_sides(fewer, weight, others);",
        "valid;",
    ),
    (
        "subsets: heads kept out forgotten",
        "refused ? kept.refused : kept.small;",
        "refused ? kept.refused : -infinity();",
    ),
    (
        "subsets: moves of no head",
        "if (head) n += add_runs(measure, runs, width, head - step, head);",
        "",
    ),
    (
        "subsets: sides without events forgotten",
        "for (int refused = REFUSES; refused >= 0; --refused) {",
        "for (int refused = 0; refused >= 0; --refused) {",
    ),
    (
        "subsets: events moved at no runs alone",
        "const i64 heads = refused ? count_eventless(runs) : runs.count;",
        "const i64 heads = refused ? 0 : runs.count;",
    ),
    (
        "subsets: moves kept out forgotten",
        "const Subset tried = {found.score, side, number, head | (i + 1) << MOVED_BITS};\n"
        "                kept.add(found);",
        "const Subset tried = {found.score, side, number, head | (i + 1) << MOVED_BITS};",
    ),
    ("subsets: moved to the left alone", "sign = i < head ? -1 : 1;", "sign = 1;"),
    (
        "subsets: heads added without barrier",
        "runs.left[k] += runs.cells[run * width + k];\n    }\n    __syncwarp();",
        "runs.left[k] += runs.cells[run * width + k];\n    }",
    ),
    (
        "subsets: masks without missing values",
        "i64 sum = side ? runs.cells[runs.count * width + k] : 0;",
        "i64 sum = 0;",
    ),
    (
        "subsets: masks by code",
        "if (mask >> i & 1) sum += runs.cells[runs.order[i] * width + k];",
        "if (mask >> i & 1) sum += runs.cells[i * width + k];",
    ),
    (
        "subsets: moved run not marked",
        "return (i < head) != (i + 1 == moved);",
        "return i < head;",
    ),
    (
        "subsets: single runs of equal score by code",
        "return compare_cells(runs.left, runs.other, measure.channels()) < 0;",
        "return false;",
    ),
    (
        "subsets: bins of the tile before",
        "runs.begin[r] = upto - n;",
        "runs.begin[r] = upto;",
    ),
    ("subsets: missing cell not summed", "missing ? i64(missing[k]) : 0;", "0;"),
    (
        "subsets: single runs without missing values",
        "if (side) source.add(measure, runs, runs.count, runs.count + 1, runs.left);",
        "",
    ),
    (
        "subsets: category after the own",
        "return code[i] >= category;",
        "return code[i] > category;",
    ),
    (
        "subsets: rows right of a finished subset",
        "if (left) lefts += sorted.runs.rows(r);",
        "if (left) lefts = sorted.runs.rows(r);",
    ),
]


def compare_categories() -> None:
    """Subsets under limits: heads, single runs, masks; moves where few count as many."""
    # Equal shares that differ in their rows are rare: 88 has some that matter.
    drawn = [(seed, growing_categories.FEW_CATEGORIES) for seed in [88, *range(25)]]
    drawn += [(seed, 3) for seed in range(50)]
    cases = [(draw_case(seed), few) for seed, few in drawn]
    for case, few in sorted(cases, key=variant):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(growing_categories, "FEW_CATEGORIES", few)
            fit_both(case.model(), case.X, case.y, case.weight)
            with finishing(1):
                fit_both(case.model(), case.X, case.y, case.weight)


def variant(drawn: tuple[Case, int]) -> tuple[str, bool]:
    """Variant of the kernels that a case uses: a mutant compiles few of them until it is caught."""
    return drawn[0].criterion, drawn[0].weight is not None
