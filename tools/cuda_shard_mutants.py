"""Seeded bugs in what shards of a table count on a device, and the trees that show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strategies import random_sample

from gputree.backends.cuda.copies import Copies
from gputree.backends.sharded import cuda_shard
from gputree.check.parts import InParts

# Name, old, new.
PART_MUTANTS = [
    ("parts: keys of the table's width", "wide < 0 ? ~u64(wide) :", "wide < 0 ? u64(wide) :"),
    (
        "parts: before all ranges",
        "interval < begin || key > high[interval]",
        "key > high[interval < begin ? begin : interval]",
    ),
    ("parts: bound exclusive", "return low[i] > key;", "return low[i] >= key;"),
    ("parts: behind a range", "interval < begin || key > high[interval]", "interval < begin"),
    (
        "parts: cells not shifted",
        "(key - low[interval]) >> shift[interval]",
        "(key - low[interval]) >> 0",
    ),
    ("parts: keys not shifted", "key >> intervals.key_shift", "key"),
    ("parts: column", "columns + intervals.column[pair]]", "columns + pair - begin]"),
    ("parts: least", "atomicMin(lowest + cell, key);", "atomicMax(lowest + cell, key);"),
    ("parts: plain greatest", "atomicMax(highest + cell, key);", "highest[cell] = key;"),
    ("parts: missing category", "MISSING_KEY ? categories :", "MISSING_KEY ? 0 :"),
    ("parts: room for missing ones", "* (categories + 1) * channels;", "* categories * channels;"),
    ("parts: category", "code[first] == category && is_left[first]", "is_left[first]"),
]


def compare_parts() -> None:
    """Compare numbers of both widths with missing values, some repeated, and categories."""
    for dtype, seed in ((np.float32, 1), (np.float64, 2)):
        sample = random_sample(seed, 200, 4, 3, weighted=seed == 2)
        X = np.clip(sample.values, -1e38, 1e38).astype(dtype)
        _assert_same(X, sample.y, sample.weight, max_depth=3, max_bins=4)
    rng = np.random.default_rng(0)
    code = np.arange(700) % 300  # more categories than bins
    X = np.stack([code, rng.integers(0, 7, 700), rng.normal(size=700)], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (code % 7 < 3) ^ (rng.random(700) < 0.2) ^ np.isnan(X[:, 0])
    search = {"categorical_split": "ordered", "categorical_features": [0, 1]}
    _assert_same(X, y, None, max_depth=3, max_bins=8, **search)


def _assert_same(X: Any, y: Any, weight: Any, **parameters: Any) -> None:
    trees = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_shard, "COPIES", Copies())
        patch.setattr("gputree.growth.grower.finish_rows", lambda *_: 1)
        patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
        for device in ("cpu", "cuda"):
            model = InParts(device=device, n_jobs=1, **parameters)
            trees.append(model.fit(X, y, weight).tree_)
    assert trees[0].equals(trees[1])
