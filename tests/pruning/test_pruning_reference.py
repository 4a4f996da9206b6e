"""The cost-complexity sequence compared with rpart's cp tables, on real tables.

Both grow the same tree there: numeric columns, no missing value, at least 20 rows to
split and 7 in a leaf. The tables are in the folder that GPUTREE_DATA names; next to it or
in it are `reference.json`, what rpart printed, and ``splits/NAME.npz``, its training rows.

A cp is a slope: the risk that a step saves by the splits it takes. Of 112 rows of rpart's
tables, 109 are slopes of their next row. The others are one step of pima_diabetes,
which rpart prints for each of its three trees. The trees are the same, split by split, and
there is no tie. In the branch that falls at this step the third split depends on the second,
and the second on the first:

    plas < 157.5     32 errors as a leaf, 8 of them beyond 157.5
      age < 30.5     24 errors as a leaf, 10 of them beyond 30.5
        pres >= 72    9 errors as a leaf, 2 + 4 if it is split

rpart sums the branch up without the third split, (32 - 8 - 10 - 9) / 2 = 2.5 errors a
split, since that split would fall before the second (it saves 3 errors, the second 5).
But all three fall with the first, which saves (32 - 8 - 10 - 2 - 4) / 3 = 2.67 errors a
split. With any price in between the tree that rpart prunes to costs more than the one it
prunes.
"""

import json

import numpy as np
import pytest
from tables import REFERENCE, needs_reference

from benchmarks.data import real_table
from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.pruning import CostComplexity, cost_complexity_path

TABLES = ("airfoil", "cal_housing", "glass", "iris", "letter", "pima_diabetes", "wine")
PROGRAMS = {"rpart_default": "gini", "rpart_information": "entropy", "rpart_cp0": "gini"}
ROUNDING = 1e-9  # rpart's figures have 11 digits
NOT_A_SLOPE = {("pima_diabetes", 11)}  # table, splits: explained above


pytestmark = needs_reference


def cp_tables():
    """Tables, programs and what those printed."""
    if REFERENCE is None:
        return
    datasets = json.loads((REFERENCE / "reference.json").read_text("utf-8"))["datasets"]
    for name in TABLES:
        for program in PROGRAMS:
            rows = datasets[name]["results"].get(program, {}).get("cptable")
            if rows:
                yield pytest.param(name, program, rows, id=f"{name}-{program}")


def grow(name, criterion):
    table = real_table(name)
    train = np.load(REFERENCE / "splits" / f"{name}.npz")["train"]
    limits = {"min_samples_split": 20, "min_samples_leaf": 7, "max_depth": 30}
    if table.is_regression:
        model = DecisionTreeRegressor(**limits)
    else:
        model = DecisionTreeClassifier(criterion=criterion, **limits)
    return model.fit(table.X[train], table.y[train]).tree_


def slopes(rows):
    """Decrease by each row's next step, per split; none follows the last."""
    error, splits = (np.array([row[key] for row in rows]) for key in ("rel error", "nsplit"))
    return -np.diff(error) / np.diff(splits)


@pytest.mark.parametrize(("name", "program", "rows"), list(cp_tables()))
def test_the_sequence_is_rparts(name, program, rows):
    tree = grow(name, PROGRAMS[program])
    path = cost_complexity_path(tree, risk="error")
    root = path.impurities[-1]
    cp = path.ccp_alphas / root
    for row in rows:
        # T(alpha) for alpha from this row's cp on, which ends where the row before begins
        pruned = CostComplexity(row["CP"] * (1 + 1e-6) * root, "error").prune_tree(tree)
        step = np.flatnonzero(cp <= row["CP"] * (1 + 1e-6))[-1]
        if (name, row["nsplit"]) in NOT_A_SLOPE:
            assert pruned.n_leaves - 1 > row["nsplit"]
            step += 1
        else:
            assert pruned.n_leaves - 1 == row["nsplit"]
        assert path.impurities[step] / root == pytest.approx(row["rel error"], abs=ROUNDING)
    for row, slope in zip(rows, slopes(rows), strict=False):
        assert np.abs(cp - slope).min() < ROUNDING
        is_slope = abs(row["CP"] - slope) < ROUNDING
        assert is_slope == ((name, row["nsplit"]) not in NOT_A_SLOPE)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_step_that_is_no_slope(program):
    tree = grow("pima_diabetes", PROGRAMS[program])
    between = (2.5 + 8 / 3) / 2 / tree.weight[0]  # errors a split, as a fraction of the rows
    errors = tree.weight - tree.statistics.max(axis=1)
    ours = CostComplexity(between, "error").prune_tree(tree)
    rparts = CostComplexity(8 / 3 / tree.weight[0] * (1 + 1e-9), "error").prune_tree(tree)
    assert (ours.n_leaves, rparts.n_leaves) == (15, 12)

    def cost(pruned):
        errors = (pruned.weight - pruned.statistics.max(axis=1))[pruned.is_leaf].sum()
        return errors / tree.weight[0] + between * pruned.n_leaves

    assert cost(ours) < cost(rparts)
    (branch,) = np.flatnonzero((tree.weight == 129) & (errors == 32))
    second, last = tree.children(branch)
    assert errors[[second, last]].tolist() == [24, 8]
    third, last = tree.children(second)
    assert errors[[third, last]].tolist() == [9, 10]
    assert sorted(errors[list(tree.children(third))]) == [2, 4]
