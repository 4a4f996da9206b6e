"""Forests on flights, late or not: seconds, AUC, memory and size of the model, in one run.

    python -m benchmarks.airline                       # 100,000 rows, 20 trees, depth 10 and full
    python -m benchmarks.airline --rows 100000 1000000 10000000 --trees 100 --depths 10 15 20 0
    python -m benchmarks.airline --peers intelex lightgbm xgboost ydf --seeds 3

The table is generated: it has the columns, the categories and the share of late flights of the one
that public benchmarks of forests use, but not its values. Carriers and airports are codes, which
"gputree, categories" takes as nominal and all others as numbers. Each forest is grown in a process
of its own, after one tree that compiles. A depth of 0 is none. Seconds are those of the clock, or
of processors with --cpu. Size is that of the pickle, in MiB; YDF's is that of its file.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import time
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.forests import OURS, PEERS, THEIRS, new_forest, peak

CATEGORIES = "gputree, categories"
NOMINAL = [4, 5, 6]
CARRIERS, AIRPORTS = 22, 300
LATE = 0.19  # share of the rows
OTHERS = 100_000  # rows to score


def airline_table(n: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Flights of shape (n, 8), and 1 for the late ones.

    Columns are month, day of the month, day of the week, departure as hhmm, carrier, origin,
    destination, distance.
    """
    world = np.random.default_rng(0)  # the same airports and carriers for every seed
    place = world.uniform((0, 0), (2700, 1400), (AIRPORTS, 2))  # miles
    share = world.pareto(0.9, AIRPORTS) + 0.02  # a few hubs have most of the flights
    fleet = world.pareto(1.1, CARRIERS) + 0.1
    hub_delay, carrier_delay = world.normal(0, 0.35, AIRPORTS), world.normal(0, 0.35, CARRIERS)
    evening = world.normal(0, 0.4, AIRPORTS)  # how much worse an airport becomes during the day
    winter = world.normal(0, 0.3, AIRPORTS)

    rng = np.random.default_rng(seed + 1)
    origin, destination = rng.choice(AIRPORTS, (2, n), p=share / share.sum())
    destination = np.where(origin == destination, (origin + 1) % AIRPORTS, destination)
    carrier = rng.choice(CARRIERS, n, p=fleet / fleet.sum())
    month, day = rng.integers(1, 13, n), rng.integers(1, 31, n)
    week_day = rng.integers(1, 8, n)
    minute = np.clip(rng.normal(13.5, 4.3, n), 5, 23.98) * 60 // 5 * 5
    distance = np.hypot(*(place[origin] - place[destination]).T).round()

    late = (minute / 60 - 13.5) / 6
    cold = np.cos((month - 1) * np.pi / 6)
    z = 0.9 * late + carrier_delay[carrier] + hub_delay[origin] + 0.6 * hub_delay[destination]
    z += evening[origin] * late + winter[origin] * cold + 0.25 * np.isin(week_day, (4, 5))
    z += 0.35 * ((month == 12) & (day > 19)) + rng.logistic(0, 1, n)
    columns = month, day, week_day, minute // 60 * 100 + minute % 60, carrier, origin, destination
    X = np.column_stack((*columns, distance)).astype(np.float32)
    return X, (z > np.quantile(z, 1 - LATE)).astype(np.int32)


def measure(library: str, rows: int, depth: int, seed: int, given: argparse.Namespace) -> None:
    """Print the figures of one forest."""
    trees, clock = given.trees, time.process_time if given.cpu else time.perf_counter
    X, y = airline_table(rows + OTHERS, seed)
    X, test, y, truth = X[:rows], X[rows:], y[:rows], y[rows:]
    name = library.partition(",")[0]

    def forest(n: int) -> Any:
        made = new_forest(name, "sqrt", n, seed, given.threads, X.shape[1], depth or None)
        return made.set_params(categorical_features=NOMINAL) if library == CATEGORIES else made

    forest(1).fit(X, y).predict_proba(test)  # compiles
    before, start = peak(), clock()
    grown = forest(trees).fit(X, y)
    fitted = clock()
    found = {"fit": fitted - start, "memory": peak() - before}
    chances = grown.predict_proba(test)[:, 1]
    found |= {"predict": clock() - fitted, "auc": float(roc_auc_score(truth, chances))}
    size = grown.nbytes if name == "ydf" else len(pickle.dumps(grown))
    print(json.dumps({**found, "size": size / 2**20}))


def main() -> None:
    """Print a row for each library."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--depths", type=int, nargs="+", default=[10, 0])
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true", help="seconds of processors, not the clock")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[])
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        library, *numbers = given.one
        rows, depth, seed = map(int, numbers)
        measure(library, rows, depth, seed, given)
        return
    print(f"{given.trees} trees, {given.threads} threads, {given.seeds} seeds; memory in MiB\n")
    print("| rows | depth | library | fit, s | times | predict, s | times | AUC | peak | model |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for rows in given.rows:
        for depth in given.depths:
            compare(rows, depth, given)


def compare(rows: int, depth: int, given: argparse.Namespace) -> None:
    """Print the medians over seeds of each library's figures, and ratios to ours."""
    ours: dict[str, float] = {}
    for library in (OURS, CATEGORIES, THEIRS, *given.peers):
        runs = []
        for seed in range(given.seeds):
            which = [library, str(rows), str(depth), str(seed)]
            how = ["--trees", str(given.trees), "--threads", str(given.threads)]
            how += ["--cpu"] if given.cpu else []
            command = [sys.executable, "-m", "benchmarks.airline", *how, "--one", *which]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        found = {name: median(run[name] for run in runs) for name in runs[0]}
        ours = ours or found
        fit, predict = (found[name] / ours[name] for name in ("fit", "predict"))
        print(
            f"| {rows:,} | {depth or 'full'} | {library} | {found['fit']:.2f} | {fit:.2f} | "
            f"{found['predict']:.3f} | {predict:.2f} | {found['auc']:.4f} | "
            f"{found['memory']:.0f} | {found['size']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
