"""One tree of the 0.9 quantile, beside LightGBM's of 255 bins: processor time and pinball loss.

    python -m benchmarks.quantile [ROWS]    # 100,000

Depth 8, 28 normal numbers, one thread each; the least time of some fits, after one that compiles.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import lightgbm
from numpy.typing import NDArray
from sklearn.metrics import mean_pinball_loss

from benchmarks import data
from benchmarks.several_targets import seconds
from gputree import DecisionTreeRegressor

QUANTILE, DEPTH, REPEATS = 0.9, 8, 5
OTHERS = {
    "objective": "quantile", "alpha": QUANTILE, "max_depth": DEPTH, "num_leaves": 2**DEPTH,
    "learning_rate": 1.0, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0,
    "feature_pre_filter": False, "num_threads": 1, "verbose": -1,
}  # fmt: skip


def ours(X: NDArray, y: NDArray) -> Any:
    tree = DecisionTreeRegressor(
        criterion="quantile", quantile=QUANTILE, max_depth=DEPTH, n_jobs=1, device="cpu"
    )
    return tree.fit(X, y)


def theirs(X: NDArray, y: NDArray) -> Any:
    return lightgbm.train(OTHERS, lightgbm.Dataset(X, y), num_boost_round=1)


def main(arguments: list[str]) -> None:
    n = int(arguments[0]) if arguments else 100_000
    X, y = data.regression_table(n + data.TEST_ROWS)
    print("| library | s | training loss | loss of other rows |\n|---|---|---|---|")
    for name, fit in (("gputree", ours), ("LightGBM, 255 bins", theirs)):
        model = fit(X[:n], y[:n])
        losses = [
            mean_pinball_loss(y[rows], model.predict(X[rows]), alpha=QUANTILE)
            for rows in (slice(n), slice(n, None))
        ]
        time_of_fit = seconds(partial(fit, X[:n], y[:n]), time.process_time, REPEATS)
        print(f"| {name} | {time_of_fit:.2f} | {losses[0]:.4f} | {losses[1]:.4f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
