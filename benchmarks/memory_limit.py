"""The most memory that `gputree train --memory` takes, of its own and of mapped files.

    python -m benchmarks.memory_limit [--rows 4000000] [--folder FOLDER] [--limits 200MB 500MB]

A table of 20 float32 columns, one of text, labels that are text, a float32 target and float64
weights lies in a Parquet file, and a quarter of it in a CSV file. `RssAnon` and `RssFile` of
/proc/PID/status are looked at every 5 ms, in the second of two runs: the first compiles kernels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BLOCK_ROWS = 500_000


def write_tables(folder: Path, rows: int) -> None:
    """Write table.parquet and quarter.csv."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = text = None
    for begin in range(0, rows, BLOCK_ROWS):
        n = min(BLOCK_ROWS, rows - begin)
        X = rng.standard_normal((n, 20), np.float32)
        signal = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + rng.standard_normal(n, np.float32)
        columns = {f"x{f}": X[:, f] for f in range(20)}
        columns["colour"] = np.array([f"colour_{k}" for k in range(8)])[rng.integers(0, 8, n)]
        columns["label"] = np.array(["the-class-no", "the-class-yes"])[(signal > 0.1).astype(int)]
        table = pa.table({**columns, "target": signal, "weight": np.exp(X[:, 3].astype(float))})
        writer = writer or pq.ParquetWriter(folder / "table.parquet", table.schema)
        text = text or pc.CSVWriter(folder / "quarter.csv", table.schema)
        writer.write_table(table)
        if begin < rows / 4:
            text.write_table(table)
    for file in filter(None, (writer, text)):
        file.close()


def most_memory(arguments: list[str]) -> tuple[int, int]:
    """The most bytes that a command had, of its own and of files."""
    most = [0, 0]
    command = [sys.executable, "-m", "gputree", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            try:
                pairs = [line.split() for line in status.read_text("utf-8").splitlines() if line]
            except OSError:  # it has just ended
                break
            held = {pair[0]: int(pair[1]) << 10 for pair in pairs if pair[0].startswith("Rss")}
            now = held.get("RssAnon:", 0), held.get("RssFile:", 0) + held.get("RssShmem:", 0)
            most = list(map(max, most, now))
            time.sleep(0.005)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return most[0], most[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--folder", help="of the tables; default: that of temporary files")
    parser.add_argument("--limits", nargs="+", default=["200MB", "500MB"])
    options = parser.parse_args()
    labels = ["--target", "label", "--ignore", "target,weight"]
    fits = {
        "labels, Parquet": ["table.parquet", *labels],
        "labels, a quarter of the rows in CSV": ["quarter.csv", *labels],
        "regression with weights, Parquet": ["table.parquet", "--target", "target", "--weights",
                                             "weight", "--ignore", "label"],
    }  # fmt: skip
    print(f"{options.rows:,} rows x 21 columns, depth 8\n")
    print("| table | --memory | private memory | mapped files |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        write_tables(Path(name), options.rows)
        for what, (file, *given) in fits.items():
            for limit in options.limits:
                words = ["train", str(Path(name, file)), *given, "--max-depth", "8"]
                words += ["--memory", limit, "-o", str(Path(name, "model")), "--quiet"]
                most_memory(words)
                anonymous, mapped = (f"{size / 1e6:,.0f} MB" for size in most_memory(words))
                print(f"| {what} | {limit} | {anonymous} | {mapped} |", flush=True)


if __name__ == "__main__":
    main()
