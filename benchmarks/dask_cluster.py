"""Trees over a local cluster of Dask: workers, bytes, and workers that are killed or join.

    python -m benchmarks.dask_cluster workers      1, 2, 4 workers of one thread: seconds, bytes
    python -m benchmarks.dask_cluster wide         2 workers, each level: bytes, tasks, seconds
    python -m benchmarks.dask_cluster killed       workers killed at random moments
    python -m benchmarks.dask_cluster joined       a worker that joins, and what it does
    python -m benchmarks.dask_cluster peers        XGBoost and LightGBM, undisturbed and disturbed

Partitions are made on the workers. The tree of each fit is compared with that of the table in one
piece. Seconds are of a machine that may be busy; bytes are not.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from gputree import DecisionTreeClassifier
from gputree.backends.sharded.backend import ShardedBackend
from gputree.backends.sharded.tasks import Tasks
from gputree.distributed import DaskDecisionTreeClassifier

LEVELS: list[dict[str, float]] = []


def block(seed: int, rows: int, columns: int, classes: int = 2) -> np.ndarray:
    """A table with its labels in the last column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns + 1), np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * X[:, -1]
    X[:, -1] = np.digitize(signal, np.linspace(-2.5, 2.5, classes - 1) if classes > 2 else [0.1])
    return X


def table(options: argparse.Namespace) -> tuple[da.Array, da.Array]:
    """The table in partitions, made where they are."""
    rows = options.rows // options.partitions
    whole = da.map_blocks(
        lambda block_info=None: block(
            block_info[None]["chunk-location"][0], rows, options.columns, options.classes
        ),
        chunks=((rows,) * options.partitions, (options.columns + 1,)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )
    return whole[:, :-1], whole[:, -1].astype(np.int64)


def in_one_piece(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    rows = options.rows // options.partitions
    whole = np.concatenate(
        [block(p, rows, options.columns, options.classes) for p in range(options.partitions)]
    )
    return whole[:, :-1], whole[:, -1].astype(np.int64)


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[LocalCluster, Client]]:
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50,
            memory_limit=0,
        ) as local,
        Client(local) as client,
    ):  # fmt: skip
        yield local, client


def log_levels() -> None:
    """Note what each level takes, in batches of nodes: see `LEVELS`."""
    histogram, refine, partition = (
        ShardedBackend.histogram, ShardedBackend.refine, ShardedBackend.partition
    )  # fmt: skip
    submit, map_, tasks = Tasks.submit, Tasks.map, [0]

    def submitted(self: Any, *arguments: Any) -> Any:
        tasks[0] += 1
        return submit(self, *arguments)

    def mapped(self: Any, *arguments: Any) -> Any:
        futures = map_(self, *arguments)
        tasks[0] += len(futures)
        return futures

    def state(backend: Any) -> dict[str, float]:
        received = backend.shards.tasks.received
        return {"received": received, "tasks": tasks[0], "seconds": time.perf_counter()}

    def begun(self: Any, begin: Any, end: Any, out: Any, slots: Any, *others: Any) -> None:
        modelled = slots.size * self.histogram_bytes
        LEVELS.append({"counted": slots.size, "histograms": modelled, "pairs": self.refined_pairs})
        LEVELS[-1] |= {name: -value for name, value in state(self).items()}
        histogram(self, begin, end, out, slots, *others)

    def refined(self: Any, *arguments: Any) -> Any:
        splits = refine(self, *arguments)
        for name, value in state(self).items():
            LEVELS[-1][name] += value
        LEVELS[-1]["pairs"] = self.refined_pairs - LEVELS[-1]["pairs"]
        return splits

    def parted(self: Any, *arguments: Any) -> Any:
        before = state(self)
        found = partition(self, *arguments)
        LEVELS[-1]["partition"] = state(self)["seconds"] - before["seconds"]
        LEVELS[-1]["tasks"] += state(self)["tasks"] - before["tasks"]
        return found

    ShardedBackend.histogram, ShardedBackend.refine = begun, refined
    ShardedBackend.partition, Tasks.submit, Tasks.map = parted, submitted, mapped


def print_levels() -> None:
    for level in LEVELS:
        print("        " + "  ".join(f"{k} {v:,.{2 * (k in SECONDS)}f}" for k, v in level.items()))


SECONDS = ("seconds", "partition")


def new_tree(options: argparse.Namespace, client: Client, splitter: str) -> Any:
    return DaskDecisionTreeClassifier(
        max_depth=options.depth, splitter=splitter, client=client, n_jobs=1
    )


def between_workers(client: Client) -> int:
    """Bytes that workers have had from each other."""
    logs = client.run(
        lambda dask_worker: sum(e["total"] for e in dask_worker.transfer_incoming_log)
    )
    return sum(logs.values())


def expected(options: argparse.Namespace, splitter: str) -> Any:
    model = DecisionTreeClassifier(max_depth=options.depth, splitter=splitter, n_jobs=1)
    X, y = in_one_piece(options)
    model.fit(X, y)  # compiles what is not compiled yet
    start = time.perf_counter()
    model.fit(X, y)
    print(f"{splitter:7} in one piece, 1 thread   {time.perf_counter() - start:6.2f} s")
    return model.tree_


def run_workers(options: argparse.Namespace) -> None:
    for splitter in ("exact", "binned"):
        tree = expected(options, splitter)
        for workers in (1, 2, 4):
            with cluster(workers) as (_, client):
                X, y = (client.persist(array) for array in table(options))
                client.gather(client.compute([X[:1], y[:1]]))
                new_tree(options, client, splitter).fit(X, y)  # starts and loads all there is
                before = between_workers(client)
                LEVELS.clear()
                start = time.perf_counter()
                found = new_tree(options, client, splitter).fit(X, y)
                seconds = time.perf_counter() - start
                same = "equal" if found.tree_.equals(tree) else "DIFFERENT"
                moved = (between_workers(client) - before) / 1e6
                received = found.growth_report_["received_bytes"] / 1e6
                print(
                    f"{splitter:7} {workers} workers   {seconds:6.2f} s   tree {same}   "
                    f"client {received:.1f} MB   between workers {moved:.1f} MB"
                )
        print_levels()


def run_wide(options: argparse.Namespace) -> None:
    """A level is from its histograms to its splits, then its partition."""
    for options.classes in (2, 10):
        tree = expected(options, options.splitter)
        with cluster(2) as (_, client):
            X, y = (client.persist(array) for array in table(options))
            client.gather(client.compute([X[:1], y[:1]]))
            small = argparse.Namespace(**{**vars(options), "rows": 8000})
            new_tree(options, client, options.splitter).fit(*table(small))  # loads all there is
            before = between_workers(client)
            LEVELS.clear()
            start = time.perf_counter()
            found = new_tree(options, client, options.splitter).fit(X, y)
            seconds = time.perf_counter() - start
            same = "equal" if found.tree_.equals(tree) else "DIFFERENT"
            moved = (between_workers(client) - before) / 1e6
            received = found.growth_report_["received_bytes"] / 1e6
            print(
                f"{options.classes} classes, {options.splitter}, 2 workers   {seconds:6.2f} s   "
                f"tree {same}   client {received:.1f} MB   between workers {moved:.1f} MB"
            )
            print_levels()


def nobody(client: Client) -> None:
    """Kill no worker."""


def disturbed(client: Client, seconds: float, act: Callable[[Client], None]) -> threading.Timer:
    timer = threading.Timer(seconds, act, [client])
    timer.start()
    return timer


def kill_one(client: Client) -> None:
    pids = list(client.run(os.getpid, on_error="ignore").values())
    with contextlib.suppress(ProcessLookupError):
        os.kill(random.choice(pids), signal.SIGKILL)


def has_workers(client: Client, number: int) -> bool:
    """Whether so many are there soon: a worker that dies while it starts is not started again."""
    try:
        client.wait_for_workers(number, timeout=20)
    except TimeoutError:
        return False
    return True


def run_killed(options: argparse.Namespace) -> None:
    tree = expected(options, options.splitter)
    random.seed(0)
    with contextlib.ExitStack() as opened:
        client = opened.enter_context(cluster(3))[1]
        X, y = table(options)
        times, same = [], 0
        for number in range(-2, options.kills):
            if not has_workers(client, 3):
                opened.close()
                client = opened.enter_context(cluster(3))[1]
            start = time.perf_counter()
            whole = times[1] if number >= 0 else 0.0
            timer = disturbed(client, random.random() * whole, kill_one if number >= 0 else nobody)
            found = new_tree(options, client, options.splitter).fit(X, y)
            times.append(time.perf_counter() - start)
            timer.join()
            equal = found.tree_.equals(tree)
            same += number >= 0 and equal
            print(
                f"fit {number}: {times[-1]:6.2f} s   {'equal' if equal else 'DIFFERENT'}",
                flush=True,
            )
        print(
            f"undisturbed {times[1]:.2f} s, killed: median {np.median(times[2:]):.2f} s, "
            f"{min(times[2:]):.2f} to {max(times[2:]):.2f} s; trees equal {same} of {options.kills}"
        )


def run_joined(options: argparse.Namespace) -> None:
    tree = expected(options, options.splitter)
    with cluster(1) as (local, client):
        X, y = table(options)
        new_tree(options, client, options.splitter).fit(X, y)
        disturbed(client, 0.5, lambda _: local.scale(2))
        for fit in range(3):
            found = new_tree(options, client, options.splitter).fit(X, y)
            done = client.run(lambda dask_worker: dask_worker.state.executed_count)
            print(
                f"fit {fit}: tree {'equal' if found.tree_.equals(tree) else 'DIFFERENT'}, "
                f"tasks done by each worker: {list(done.values())}"
            )


def run_peers(options: argparse.Namespace) -> None:
    with cluster(3) as (_, client):
        X, y = (client.persist(array) for array in table(options))
        for name, fit in peers(options, client).items():
            for kill in (False, True):
                client.wait_for_workers(3)
                X, y = table(options)
                fit(X, y) if not kill else None
                start = time.perf_counter()
                done = threading.Event()
                errors: list[str] = []
                thread = threading.Thread(
                    target=attempt, args=(fit, X, y, done, errors), daemon=True
                )
                thread.start()
                if kill:
                    time.sleep(options.after)
                    kill_one(client)
                ended = done.wait(options.patience)
                what = "hangs" if not ended else errors[0] if errors else "done"
                seconds = time.perf_counter() - start
                end = "killed" if kill else "      "
                print(f"{name:10} {end} {seconds:6.2f} s  {what}", flush=True)


def attempt(fit: Any, X: Any, y: Any, done: threading.Event, errors: list[str]) -> None:
    try:
        fit(X, y)
    except BaseException as error:
        errors.append(f"{type(error).__name__}: {str(error).splitlines()[0][:90]}")
    done.set()


def peers(options: argparse.Namespace, client: Client) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        "gputree": lambda X, y: new_tree(options, client, options.splitter).fit(X, y)
    }
    with contextlib.suppress(ImportError):
        import xgboost.dask

        one = {"max_depth": options.depth, "n_estimators": 1, "tree_method": "hist"}
        found["XGBoost"] = lambda X, y: xgboost.dask.DaskXGBClassifier(**one).fit(X, y)
    with contextlib.suppress(ImportError):
        import lightgbm

        leaves = {"num_leaves": 2**options.depth, "n_estimators": 1, "verbose": -1}
        found["LightGBM"] = lambda X, y: lightgbm.DaskLGBMClassifier(
            max_depth=options.depth, **leaves
        ).fit(X, y)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(CASES))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--splitter", default="exact")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--after", type=float, default=1.0, help="seconds before a peer's worker dies"
    )
    parser.add_argument("--patience", type=float, default=60.0, help="seconds until a fit hangs")
    log_levels()
    options = parser.parse_args()
    CASES[options.what](options)


CASES = {
    "workers": run_workers,
    "wide": run_wide,
    "killed": run_killed,
    "joined": run_joined,
    "peers": run_peers,
}


if __name__ == "__main__":
    main()
