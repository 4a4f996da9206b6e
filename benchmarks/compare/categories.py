"""`python -m benchmarks.compare.categories`: C4.5 beside other trees over strings with holes.

End to end from a data frame, after a first fit of a few rows. Every library is a process of
its own that may take `--limit` seconds; one that is not installed is left out. ``--python``
names the interpreter that has them; J48 is run by java from the jars of WEKA_JARS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import data
from benchmarks.compare import report
from benchmarks.compare.libraries import GPUTREE
from benchmarks.compare.peers import PEERS, write_table

ROOT = Path(__file__).parents[2]
GENERATED = "mixed"
TABLES = ("adult", "kddcup99_corrected", "flights_nyc13", GENERATED)


class LeftOut(Exception):
    """Why a library has no figure."""


def save(folder: Path, name: str, rows: int) -> str:
    """Write a table for the peers; returns what to call it."""
    if name == GENERATED:
        X, y = data.mixed_table(rows)
        nominal = [c for c in X if X[c].dtype.kind != "f"]
    else:
        table = data.frame_table(name)
        X, y, nominal = table.X, table.y, [c for c in table.X if c in table.categories]
    write_table(folder, X, y, nominal)
    return f"{name}, {len(X):,} x {X.shape[1]}"


def measure(peer: str, folder: Path, options: argparse.Namespace) -> dict:
    """Seconds and notes of a peer on the table in `folder`."""
    python = sys.executable if peer == GPUTREE else options.python
    command = [python, "-m", "benchmarks.compare.peers", peer, str(folder), str(options.repeats)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "2"},
            capture_output=True,
            text=True,
            timeout=options.limit,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        raise LeftOut(f"did not finish in {options.limit:.0f} s") from expired
    if done.returncode:
        raise LeftOut((done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


def compare(name: str, options: argparse.Namespace) -> Iterator[report.Row]:
    """All peers on one table; gputree is the first."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            title = save(Path(folder), name, options.rows)
        except data.TableAbsent as absent:
            print(f"{name} is left out: {absent}", file=sys.stderr)
            return
        ours = None
        for peer in options.peers:
            try:
                found = measure(peer, Path(folder), options)
            except LeftOut as reason:
                print(f"{peer} is left out on {title}: {reason}", file=sys.stderr)
                continue
            ours = found["best"] if peer == GPUTREE else ours
            ratio = found["best"] / ours if ours else None
            best, median, notes = found["best"], found["median"], found["notes"]
            yield report.Row("categories", title, peer, best, median, ratio, notes=notes)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare.categories", description=__doc__
    )
    parser.add_argument("tables", nargs="*", default=TABLES, help=f"of {', '.join(TABLES)}, ...")
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS, metavar="peer")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the peers")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds a peer may take")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="size of the mixed table")
    parser.add_argument("--output", type=Path, help="file to write, .md or .json")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    rows = []
    print(report.header(), flush=True)
    for name in options.tables:
        for row in compare(name, options):
            print(report.table_line(row.cells()), flush=True)
            rows.append(row)
    print(f"\n{report.machine_line()}")
    if options.output:
        write = report.as_json if options.output.suffix == ".json" else report.as_markdown
        options.output.write_text(write(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
