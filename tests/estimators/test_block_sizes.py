"""Sizes of blocks and of first buffers decide nothing: two of everything gives the same results."""

import sys

import numpy as np
import pytest
from mixed_tables import mixed_table
from test_weights import numbers

from gputree import (
    C45Classifier,
    C45Rules,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    MDLPDiscretizer,
    RandomForestClassifier,
    RandomForestRegressor,
    rank_features,
)

# Rows, values or bytes that are taken at a time, or from which on work is done in another way.
SMALL = {
    "backends.cpu.block.BLOCK_ROWS": 3,
    "backends.cpu.drawn_columns.RANKED_ROWS": 3,
    "backends.cpu.drawn_ranks.BINNED_ROWS": 17,
    "backends.cpu.drawn_ranks.ROWS_PER_BIN": 3,
    "backends.cpu.drawn_values.BLOCK_ROWS": 3,
    "backends.cpu.encode.BLOCK_ROWS": 3,
    "backends.cpu.encode.INSPECTED_ROWS": 2,
    "backends.cpu.encode.MOST_PICKED": 1,
    "backends.cpu.encode.MOST_UNSEEN": 2,
    "backends.cpu.encode.SORTED_ROWS": 3,
    "backends.cpu.finish_scan.FEW_ROWS": 2,
    "backends.cpu.sub_bins.GATHER_ROWS": 3,
    "backends.cpu.sub_bins.READ_ROWS": 2,
    "backends.cpu.layout.CHUNK_ROWS": 3,
    "backends.cpu.sort.FEW_PAIRS": 9,
    "columns.specification.BLOCK_BYTES": 64,
    "columns.specification.FIRST_LOOK": 2,
    "discretization.cut_points.FIRST_ROOM": 2,
    "ensemble.out_of_bag.BLOCK_BYTES": 64,
    "estimators.coded_table._SLICE_ROWS": 3,
    "inputs.tables.BLOCK_BYTES": 64,
    "arithmetic.fixed_point._BLOCK": 3,
    "prediction.answers.BLOCK_ROWS": 3,
    "prediction.answers.FEWEST_ROWS": 2,
    "prediction.answers.FIRST_ROWS": 2,
    "prediction.descent.FEW_NODES": 2,
    "prediction.descent.LEVELS": 2,
    "prediction.forest.BLOCK_BYTES": 64,
    "prediction.descent.FEW_CODES": 2,
    "pruning.raising_walk.FIRST_LOOK": 2,
    "pruning.pessimistic.FEW_ROWS": 2,
    "rules.coverage.BLOCK_BYTES": 64,
    "rules.coverage.LEAST_BLOCK": 2,
    "rules.selection.MOST_KEPT": 2,
    "scores.targets.FEW_PAIRS": 2,
}


@pytest.fixture
def in_small_blocks(monkeypatch):
    def patch():
        for path, size in SMALL.items():
            module, _, name = f"gputree.{path}".rpartition(".")
            __import__(module)
            before = getattr(sys.modules[module], name)
            for other in [m for n, m in sys.modules.items() if n.startswith("gputree")]:
                if vars(other).get(name) is before:
                    monkeypatch.setattr(other, name, size)

    return patch


def table(n=90):
    X, y = mixed_table(5, n)
    X[:, 0] = np.array([f"w{k}" for k in range(25)])[np.arange(n) * 7 % 25]
    return X, y, np.unique(y, return_inverse=True)[1] + (np.arange(n) * 7 % 25) / 10


X, Y, T = table()
NUMBERS = X[:, 1:].astype(float)
WEIGHT = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(Y))
WORDS = {"categorical_features": [0]}
FITS = {
    "gini": lambda: DecisionTreeClassifier(**WORDS).fit(X, Y),
    "weighted": lambda: DecisionTreeClassifier(criterion="entropy").fit(NUMBERS, Y, WEIGHT),
    "drawn": lambda: DecisionTreeClassifier(max_features=1, random_state=0).fit(NUMBERS, Y),
    "binned": lambda: DecisionTreeClassifier(splitter="binned", max_bins=4).fit(NUMBERS, Y),
    "coded": lambda: DecisionTreeClassifier().fit(CodedTable(X).take(np.arange(1, 80)), Y[1:80]),
    "regression": lambda: DecisionTreeRegressor(max_depth=5, **WORDS).fit(X, T, WEIGHT),
    "poisson": lambda: DecisionTreeRegressor(criterion="poisson", max_depth=4).fit(NUMBERS, T),
    "C4.5": lambda: C45Classifier(soft_thresholds=True).fit(X, Y, WEIGHT),
    "rules": lambda: C45Rules().fit(NUMBERS, Y),
    "forest": lambda: RandomForestClassifier(
        6, max_samples=0.3, oob_score=True, random_state=0).fit(NUMBERS, Y),
    "quantiles": lambda: RandomForestRegressor(
        2, max_depth=4, quantreg=True, random_state=0).fit(NUMBERS, T),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_sizes_of_blocks_decide_nothing(name, in_small_blocks):
    values = X if name in ("gini", "regression", "C4.5", "coded") else NUMBERS
    found = []
    for prepare in (lambda: None, in_small_blocks):
        prepare()
        model = FITS[name]()
        found.append(numbers(model, values))
        if name == "quantiles":
            found[-1]["quantiles"] = model.predict_quantiles(values, [0.1, 0.5])
    assert found[0].keys() == found[1].keys()
    for key in found[0]:
        np.testing.assert_array_equal(found[1][key], found[0][key], err_msg=key)


def test_scores_do_not_depend_on_blocks(in_small_blocks):
    found = []
    for prepare in (lambda: None, in_small_blocks):
        prepare()
        cuts = MDLPDiscretizer().fit(NUMBERS, Y).transform(NUMBERS)
        found.append((str(rank_features(X, Y)), str(rank_features(NUMBERS, T)), cuts))
    assert found[0][:2] == found[1][:2]
    np.testing.assert_array_equal(found[0][2], found[1][2])
