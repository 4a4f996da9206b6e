"""Cut points of `MDLPDiscretizer` beside those of Weka's `Discretize` and of Orange's `EntropyMDL`.

    python -m benchmarks.cut_points                  # all real tables with labels, Weka
    python -m benchmarks.cut_points iris glass       # some of them
    python -m benchmarks.cut_points --orange         # with Orange3 installed: its cuts, too

Weka is run by java from the jars of WEKA_JARS, by all four of its rules; Orange has the first. A
table is cut to its first rows where it has more of them than --rows.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.compare.peers import WEKA_JARS
from benchmarks.discretization import orange_cuts
from gputree import MDLPDiscretizer

Cuts = list[list[float]]

# Weka's options, and ours.
RULES = {
    "": {"criterion": "fayyad_irani", "cut_cost": "rows"},
    "-K": {"criterion": "kononenko", "cut_cost": "rows"},
    "-E": {"criterion": "fayyad_irani", "cut_cost": "cuts"},
    "-K -E": {"criterion": "kononenko", "cut_cost": "cuts"},
}
FILTER = "weka.filters.supervised.attribute.Discretize"
DIGITS = 12  # behind the point, of the cuts that Weka writes
ROWS = 30_000


def numeric_part(name: str, rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Columns of numbers that have values, and codes of the labels."""
    table = data.frame_table(name)
    X = table.X[[c for c in table.X if c not in table.categories]].to_numpy(float)[:rows]
    codes = np.unique(table.y[:rows], return_inverse=True)[1]
    return X[:, ~np.isnan(X).all(axis=0)], codes


def our_cuts(X: NDArray[np.float64], y: NDArray[np.int64], rule: str) -> Cuts:
    return [cuts.tolist() for cuts in MDLPDiscretizer(**RULES[rule]).fit(X, y).cut_points_]


def weka_cuts(X: NDArray[np.float64], y: NDArray[np.int64], rule: str) -> Cuts:
    """Cut points that the header of Weka's output names."""
    jars = os.environ.get("WEKA_JARS", WEKA_JARS)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.arff"), Path(folder, "found.arff")
        write_arff(X, y, given)
        options = ["-precision", str(DIGITS), "-R", "first-last", "-c", "last", *rule.split()]
        command = ["java", "-Xmx4g", "-cp", jars, FILTER, *options, "-i", given, "-o", found]
        subprocess.run(command, check=True, capture_output=True, text=True)
        header = found.read_text("utf-8").partition("@data")[0]
    lines = [line for line in header.splitlines() if line.startswith("@attribute x")]
    return [[float(end) for end in re.findall(r"(?<=[\df])-(-?[\d.]+)]", line)] for line in lines]


def write_arff(X: NDArray[np.float64], y: NDArray[np.int64], path: Path) -> None:
    names = [f"@attribute x{f} numeric" for f in range(X.shape[1])]
    labels = ",".join(f"c{k}" for k in range(y.max() + 1))
    rows = (
        ",".join("?" if v != v else repr(v) for v in values) + f",c{k}"
        for values, k in zip(X.tolist(), y.tolist(), strict=True)
    )
    header = ["@relation table", *names, f"@attribute y {{{labels}}}", "@data"]
    path.write_text("\n".join([*header, *rows]) + "\n", "utf-8")


def agreeing(ours: Cuts, theirs: Cuts) -> int:
    """Columns with the same cuts."""
    pairs = zip(ours, theirs, strict=True)
    return sum(
        len(a) == len(b) and np.allclose(a, b, rtol=1e-12, atol=10.0**-DIGITS) for a, b in pairs
    )


def report(name: str, rows: int, beside_orange: bool) -> list[int] | None:
    """Print a line of a table: by rule, how many columns have whose cuts; their counts."""
    X, y = numeric_part(name, rows)
    if X.shape[1] == 0 or y.max() < 1:
        return None
    columns, cells, counts = X.shape[1], [], [X.shape[1]]
    for rule in RULES:
        ours = our_cuts(X, y, rule)
        equal, total = agreeing(ours, weka_cuts(X, y, rule)), sum(map(len, ours))
        cells.append(f"{equal} ({total:,} cuts)")
        counts += [equal, total]
    if beside_orange:
        counts.append(agreeing(our_cuts(X, y, ""), orange_cuts(X, y)))
        cells.append(str(counts[-1]))
    size = f"{len(X):,} x {columns}, {y.max() + 1} classes"
    print(f"| {name}, {size} | {' | '.join(cells)} |", flush=True)
    return counts


def main() -> None:
    """Compare all tables, and add up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--orange", action="store_true")
    options = parser.parse_args()
    heads = ["table", *(f"Weka {rule}".strip() for rule in RULES)]
    heads += ["Orange"] if options.orange else []
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    names = options.tables or data.real_names()
    counts = [c for n in names if (c := report(n, options.rows, options.orange)) is not None]
    print("all columns, then columns with equal cuts and cuts by rule:", np.sum(counts, axis=0))


if __name__ == "__main__":
    main()
