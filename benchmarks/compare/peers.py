"""Trees over categories in other libraries; run as a process of its own, which a limit can end.

``python -m benchmarks.compare.peers PEER FOLDER REPEATS`` reads table.csv and nominal.json of
FOLDER, fits, and prints one JSON object: seconds and notes. Only gputree's own peer imports
gputree, so that an interpreter without it can run the others.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.compare.timing import THREADS

if TYPE_CHECKING:
    import pandas as pd

WARM_ROWS = 2_000
TARGET = "target"
WEKA_JARS = "/usr/share/java/weka.jar"  # where Debian has it


class Table(NamedTuple):
    """A data frame with strings, and its classes."""

    X: pd.DataFrame
    y: pd.Series
    nominal: list[str]
    folder: Path

    def head(self, n: int) -> Table:
        return self._replace(X=self.X.iloc[:n], y=self.y.iloc[:n])


class Run(NamedTuple):
    seconds: float
    notes: str


Peer = Callable[[Table], Run]


def timed(fit: Callable[[], Any], notes: Callable[[Any], str]) -> Run:
    started = time.perf_counter()
    model = fit()
    return Run(time.perf_counter() - started, notes(model))


# -------------------------------------------------------------------- peers
def gputree(table: Table) -> Run:
    """C4.5, not pruned beyond the collapse, as J48's -U."""
    from gputree import C45Classifier

    model = C45Classifier(pruning=None, device="cpu", n_jobs=THREADS)
    return timed(lambda: model.fit(table.X, table.y), lambda m: f"{m.get_n_leaves():,} leaves")


def j48(table: Table) -> Run:
    """Weka's, by the time that it says it took to build; jars of WEKA_JARS."""
    jars = os.environ.get("WEKA_JARS", WEKA_JARS)
    path = table.folder / "table.arff"
    write_arff(table, path)
    options = ["-t", str(path), "-T", str(path), "-U"]
    command = ["java", "-Xmx6g", "-cp", jars, "weka.classifiers.trees.J48", *options]
    started = time.perf_counter()
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    whole = time.perf_counter() - started
    build = re.search(r"Time taken to build model: ([\d.]+)", printed.stdout)
    leaves = re.search(r"Number of Leaves\s*:\s*(\d+)", printed.stdout)
    if build is None or leaves is None:
        raise RuntimeError(f"{printed.stderr.strip()[-200:] or 'Weka printed no tree'}")
    return Run(float(build[1]), f"{int(leaves[1]):,} leaves; whole process {whole:.1f} s")


def write_arff(table: Table, path: Path) -> None:
    """The table as Weka reads it; names are places, categories in order of text."""
    lines = ["@relation table"]
    for place, column in enumerate([*table.X, TARGET]):
        values = table.y if column == TARGET else table.X[column]
        kind = "numeric"
        if column == TARGET or column in table.nominal:
            kind = f"{{{','.join(map(_quoted, sorted(values.dropna().unique())))}}}"
        lines.append(f"@attribute column{place} {kind}")
    columns = [_arff_cells(table.X[c], c in table.nominal) for c in table.X]
    rows = zip(*columns, map(_quoted, table.y), strict=True)
    path.write_text("\n".join([*lines, "@data", *map(",".join, rows)]) + "\n", "utf-8")


def _arff_cells(values: pd.Series, nominal: bool) -> list[str]:
    write = _quoted if nominal else repr
    return ["?" if cell is None or cell != cell else write(cell) for cell in values.tolist()]


def _quoted(text: str) -> str:
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


def chefboost(table: Table) -> Run:
    """C4.5, in pure Python."""
    from chefboost import Chefboost

    frame = table.X.assign(Decision=table.y)
    os.chdir(table.folder)  # it writes its rules where it is, and imports them from there
    sys.path.insert(0, str(table.folder))
    config = {"algorithm": "C4.5", "enableParallelism": False}
    return timed(lambda: Chefboost.fit(frame, config=config, silent=True), lambda _: "")


def c50py(table: Table) -> Run:
    """C5.0's rules, in pure Python, unpruned."""
    from c50py import C5Classifier

    model = C5Classifier(pruning=False, global_pruning=False)
    return timed(lambda: model.fit(table.X, table.y), lambda _: "")


def ydf(table: Table) -> Run:
    """A CART tree with subsets of categories, unpruned."""
    import ydf as library

    learner = library.CartLearner(
        label=TARGET,
        min_examples=2,
        max_depth=-1,
        validation_ratio=0.0,
        min_vocab_frequency=1,
        max_vocab_count=-1,
        num_threads=THREADS,
    )

    def fit() -> Any:
        return learner.train(table.X.assign(**{TARGET: table.y}), verbose=0)

    return timed(fit, lambda m: f"{(m.num_nodes() + 1) // 2:,} leaves")


def scikit_learn(table: Table) -> Run:
    """A CART tree on ordinal codes, unlimited."""
    from sklearn.preprocessing import OrdinalEncoder
    from sklearn.tree import DecisionTreeClassifier

    def fit() -> Any:
        X = table.X.copy()
        if table.nominal:
            X[table.nominal] = OrdinalEncoder().fit_transform(X[table.nominal])
        return DecisionTreeClassifier(random_state=0).fit(X.to_numpy("float32"), table.y)

    return timed(fit, lambda m: f"{m.get_n_leaves():,} leaves")


PEERS: dict[str, tuple[Peer, str | None]] = {  # and the distribution whose version is told
    "gputree": (gputree, "gputree-learn"),
    "J48": (j48, None),
    "c50py": (c50py, "c50py"),
    "chefboost": (chefboost, "chefboost"),
    "YDF": (ydf, "ydf"),
    "scikit-learn": (scikit_learn, "scikit-learn"),
}


# ------------------------------------------------------------------ process
def write_table(folder: Path, X: pd.DataFrame, y: Any, nominal: list[str]) -> None:
    X.assign(**{TARGET: y}).to_csv(folder / "table.csv", index=False)
    (folder / "nominal.json").write_text(json.dumps(nominal))


def read_table(folder: Path) -> Table:
    import pandas as pd

    nominal = json.loads((folder / "nominal.json").read_text())
    text = dict.fromkeys([*nominal, TARGET], str)
    X = pd.read_csv(folder / "table.csv", dtype=text, keep_default_na=False, na_values=[""])
    return Table(X, X.pop(TARGET), nominal, folder)


def process(peer: str, folder: str, repeats: str) -> None:
    fit, distribution = PEERS[peer]
    table = read_table(Path(folder))
    fit(table.head(WARM_ROWS))
    runs = [fit(table) for _ in range(int(repeats))]
    notes = runs[-1].notes
    if distribution:
        notes = "; ".join(filter(None, [notes, f"version {_version(distribution)}"]))
    seconds = [run.seconds for run in runs]
    print(json.dumps({"best": min(seconds), "median": statistics.median(seconds), "notes": notes}))


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # run from a checkout
        return "of this checkout"


if __name__ == "__main__":
    process(*sys.argv[1:])
