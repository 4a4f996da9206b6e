"""First splits beside those that rpart printed, on real tables with categories.

The tables are in the folder that GPUTREE_DATA names; beside it or in it are `reference.json`
and ``splits/NAME.npz``, the rows that rpart grew on. It scores a column by its known rows
alone and sends the others by surrogates: tables where its first column has missing
values are left out.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import frame_table
from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.dtypes import SUBSET_SPLIT

PROGRAMS = {"rpart_default": "gini", "rpart_information": "entropy"}
LEAST_LEAF = 7  # of rpart, for a node of 20 rows and more
FEWEST_ROWS = 20
ROUNDING = 1e-9  # rpart's figures have 11 digits


def _reference_folder():
    folder = Path(os.environ.get("GPUTREE_DATA", "absent"))
    found = [d for d in (folder, folder.parent) if (d / "reference.json").is_file()]
    return found[0] if found else None


FOLDER = _reference_folder()
pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(FOLDER is None, reason="GPUTREE_DATA names no folder with a reference.json"),
]


def printed_splits():
    """Tables with categories, programs and what those printed."""
    if FOLDER is None:
        return
    datasets = json.loads((FOLDER / "reference.json").read_text("utf-8"))["datasets"]
    for name, dataset in datasets.items():
        for program in PROGRAMS:
            printed = dataset["results"].get(program, {})
            if dataset["n_nominal"] and "first_split" in printed:
                yield pytest.param(name, program, printed, id=f"{name}-{program}")


def improvement(tree, criterion: str) -> float:
    """What rpart calls improvement: weight x decrease, of entropy in nats; 1 - relative error."""
    if tree.task == "regression":
        return tree.gain[0] / tree.impurity[0]
    unit = np.log(2.0) if criterion == "entropy" else 1.0
    return tree.gain[0] * tree.weight[0] * unit


@pytest.mark.parametrize(("name", "program", "printed"), list(printed_splits()))
def test_first_splits_are_those_of_rpart(name, program, printed):
    table = frame_table(name)
    rows = np.load(FOLDER / "splits" / f"{name}.npz")["train"]
    X, y = table.X.iloc[rows], table.y[rows]
    if X[printed["first_feature"]].isna().any() or len(X) < FEWEST_ROWS:
        pytest.skip("rpart's first column has missing values, or there are too few rows")
    limits = {"max_depth": 1, "min_samples_leaf": LEAST_LEAF, "categorical_split": "exhaustive"}
    if table.classes:
        model = DecisionTreeClassifier(criterion=PROGRAMS[program], **limits).fit(X, y)
    else:
        model = DecisionTreeRegressor(**limits).fit(X, y)
    tree = model.tree_
    feature = X.columns[tree.feature[0]]
    assert feature == printed["first_feature"]
    expected = pytest.approx(printed["first_improve"], rel=ROUNDING)
    assert improvement(tree, PROGRAMS[program]) == expected
    if tree.split_kind[0] == SUBSET_SPLIT:
        named = set(printed["first_split"].removeprefix(f"{feature}=").split(","))
        categories = model.columns_.categories[tree.feature[0]]
        sides = [set(categories[tree.categories(1 + side)].tolist()) for side in (0, 1)]
        assert named in sides
