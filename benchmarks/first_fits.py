"""What a new user waits for: imports, first fits without kept kernels, and in the next process.

`python -m benchmarks.first_fits [ESTIMATOR ...]` prints seconds of the clock for each estimator and
table, in fresh processes: the import, then fit and predict with an empty folder of kernels, then
the same in a second process, and how many kernels each compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

ESTIMATORS = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "C45Classifier",
    "ID3Classifier",
    "C45Rules",
    "BoostedC45Classifier",
    "BoostedC45Rules",
)
TABLES = ("iris", "mixed, 891 x 7", "normal, 20,000 x 28")

CHILD = """
import json, sys, time, warnings
start = time.perf_counter()
import numpy as np
from gputree import {estimator}
imported = time.perf_counter() - start
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
table = {table!r}
if table == "iris":
    from gputree.datasets import load_iris
    X, y = load_iris(return_X_y=True)
elif table.startswith("mixed"):
    import pandas as pd
    X = pd.DataFrame({{
        "class": rng.choice(["first", "second", "third"], 891),
        "sex": rng.choice(["female", "male"], 891),
        "age": np.where(rng.random(891) < 0.2, np.nan, rng.integers(1, 80, 891)),
        "siblings": rng.integers(0, 6, 891),
        "parents": rng.integers(0, 5, 891),
        "fare": rng.lognormal(3, 1, 891).round(2),
        "port": rng.choice(["C", "Q", "S"], 891),
    }})
    chance = 0.2 + 0.4 * (X["sex"] == "female") + 0.2 * (X["class"] == "first")
    y = np.where(rng.random(891) < chance, "yes", "no")
else:
    X = rng.normal(size=(20_000, 28)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
if "Regressor" in {estimator!r}:
    y = np.unique(y, return_inverse=True)[1] + rng.normal(size=len(y))
from gputree.compilation.waits import waiting
start = time.perf_counter()
with waiting() as wait:
    model = {estimator}().fit(X, y)
    fitted = time.perf_counter()
    model.predict(X)
print(json.dumps([imported, fitted - start, time.perf_counter() - fitted, wait.kernels]))
"""


def measure(estimator: str, table: str, cache: str) -> list[Any]:
    """Seconds of import, fit and predict, and kernels compiled, of a fresh process."""
    result = subprocess.run(
        [sys.executable, "-c", CHILD.format(estimator=estimator, table=table)],
        env=os.environ | {"NUMBA_CACHE_DIR": cache, "GPUTREE_JIT": "auto"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    answer: list[Any] = json.loads(result.stdout)
    return answer


def main(estimators: list[str]) -> None:
    columns = ("import", "fit", "predict", "compiled", "2nd fit", "predict", "compiled")
    print(f"{'':22} {'':20}", *(f"{name:>8}" for name in columns))
    for table in TABLES:
        for estimator in estimators or ESTIMATORS:
            if table == TABLES[2] and estimator not in ESTIMATORS[:3]:
                continue  # ID3 takes no numbers; rules and boosting of noise take minutes
            with tempfile.TemporaryDirectory() as cache:
                first, second = (measure(estimator, table, cache) for _ in range(2))
            seconds = [first[0], first[1], first[2], first[3], *second[1:]]
            shown = (f"{x:8d}" if isinstance(x, int) else f"{x:8.2f}" for x in seconds)
            print(f"{estimator:22} {table:20}", *shown, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
