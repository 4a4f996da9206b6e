"""Where the time of C4.5 goes: coding the table, growth, pruning with subtree raising.

    python -m benchmarks.c45_stages adult kddcup99_corrected flights_nyc13 mixed

Tables of the folder that GPUTREE_DATA names, and the generated "mixed" (`--rows`), from data
frames. Each figure is the median of `--repeats` runs, of the clock or, with `--cpu`, of the
processor; the two fits take turns. Pruning is the fit with it less the fit without.
"""

from __future__ import annotations

import argparse
import time

from benchmarks import data
from benchmarks.compare import report
from benchmarks.compare.timing import THREADS, interleave
from gputree import C45Classifier, CodedTable

HEADER = ("table", "coding", "growth", "pruning", "pruning / growth", "nodes", "pruned")


def measure(name: str, options: argparse.Namespace) -> list[str]:
    """The cells of one table's line."""
    if name == "mixed":
        X, y = data.mixed_table(options.rows)
    else:
        X, y = (frame := data.frame_table(name)).X, frame.y
    table = CodedTable(X)
    grown, pruned = C45Classifier(pruning=None, n_jobs=THREADS), C45Classifier(n_jobs=THREADS)
    actions = {
        "code": lambda: CodedTable(X),
        "grow": lambda: grown.fit(table, y),
        "prune": lambda: pruned.fit(table, y),
    }
    for action in actions.values():
        action()  # compiles
    clock = time.process_time if options.cpu else time.perf_counter
    timings = interleave(actions, options.repeats, clock)
    coding, growth, whole = (timings[key].median for key in actions)
    seconds = (report.quantity(s, "s") for s in (coding, growth, whole - growth))
    share = f"{(whole - growth) / growth:.2f}"
    nodes = (f"{model.tree_.node_count:,}" for model in (grown, pruned))
    return [f"{name}, {len(X):,} x {X.shape[1]}", *seconds, share, *nodes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--rows", type=int, default=1_000_000, help='of "mixed"')
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="processor time, not the clock's")
    options = parser.parse_args()
    print(report.table_line(HEADER))
    print(report.table_line(["---"] * len(HEADER)))
    for name in options.tables:
        try:
            print(report.table_line(measure(name, options)), flush=True)
        except data.TableAbsent as absent:
            print(f"{name} is left out: {absent}")


if __name__ == "__main__":
    main()
