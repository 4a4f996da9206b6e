"""Sizes and speed of the formats that a tree is exported to, and whether they answer alike.

``python -m benchmarks.formats`` prints a table of one regression tree of 99,999 nodes on
float32 columns; ``python -m benchmarks.formats 9999 SQL JSON`` one of another size, in the
formats that are named so. A format that cannot hold the tree, or that its reader refuses, is
listed with the reason.

Times are seconds of processor time on one thread, the best of three for prediction (the first
where that takes long); a row's is that of a batch, by the number of its rows. Databases read the
expression anew with each query.
"""

from __future__ import annotations

import ctypes
import io
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree import DecisionTreeRegressor, export_json, load_model, read_json, save_model
from gputree.export import (
    export_c,
    export_lightgbm,
    export_python,
    export_sql,
    to_onnx,
    to_sklearn,
    to_treelite,
)

NODES = 99_999
COLUMNS = 10
ROWS = 100_000  # predicted at a time
FEW_ROWS = 2_000  # where a row takes long
ROWS_OF_A_QUERY = 200  # databases compare column by column
REPEATS, LONG = 3, 5.0  # seconds

Predict = Callable[[NDArray], NDArray]


class Format(NamedTuple):
    """One format: its bytes, how a reader is made of them, and how many rows it is asked for."""

    write: Callable[[Any, Path], bytes]
    read: Callable[[bytes, Path], Predict]
    n_rows: int = ROWS


def main(n_nodes: int = NODES, names: tuple[str, ...] = ("",)) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n_nodes, COLUMNS)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
    model = DecisionTreeRegressor(max_leaf_nodes=n_nodes // 2 + 1, n_jobs=1).fit(X, y)
    rows = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    print(f"{model.tree_.n_nodes:,} nodes, depth {model.get_depth()}\n")
    print("| format | size | to write | to read | prediction of a row | equal |")
    print("|---|---|---|---|---|---|")
    for name, form in FORMATS.items():
        if any(part in name for part in names):
            print(f"| {name} | {_line(model, form, rows)} |", flush=True)


def _line(model: Any, form: Format, rows: NDArray) -> str:
    rows = rows[: form.n_rows]
    expected = model.predict(rows)
    with tempfile.TemporaryDirectory() as folder:
        try:
            content, writing = _timed(form.write, model, Path(folder))
            predict, reading = _timed(form.read, content, Path(folder))
            runs = [_timed(predict, rows)]
            while len(runs) < REPEATS and runs[0][1] < LONG:
                runs.append(_timed(predict, rows))
        except Exception as error:  # of any reader
            return f"{type(error).__name__}: {str(error).splitlines()[0][:90]} | | | |"
    found, best = runs[0][0], min(seconds for _, seconds in runs)
    equal = "to the bit" if np.array_equal(found, expected) else f"{abs(found - expected).max():g}"
    return (
        f"{len(content) / 1e6:.1f} MB | {writing:.2f} s | {reading:.2f} s | "
        f"{1e6 * best / len(rows):.2f} µs | {equal}"
    )


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What it returns, and the processor time of this process and of those it started."""
    begin = process_time() + _of_children()
    result = function(*arguments)
    return result, process_time() + _of_children() - begin


def _of_children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ------------------------------------------------------------------- formats
def _write_model(model: Any, folder: Path) -> bytes:
    save_model(model, folder / "model")
    return (folder / "model").read_bytes()


def _read_model(content: bytes, folder: Path) -> Predict:
    return load_model(folder / "model").predict


def _read_lightgbm(content: bytes, folder: Path) -> Predict:
    import lightgbm

    booster = lightgbm.Booster(model_str=content.decode())
    return lambda rows: booster.predict(rows.astype(np.float64), num_threads=1)


def _read_treelite(content: bytes, folder: Path) -> Predict:
    import treelite

    model = treelite.Model.deserialize_bytes(content)
    return lambda rows: treelite.gtil.predict(model, rows.astype(np.float64), nthread=1).ravel()


def _read_onnx(content: bytes, folder: Path) -> Predict:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options)
    return lambda rows: session.run(None, {"X": rows.astype(np.float64)})[0].ravel()


def _read_python(content: bytes, folder: Path) -> Predict:
    module: dict[str, Any] = {}
    exec(content, module)
    return lambda rows: np.array([module["predict"](row) for row in rows.tolist()])


_LOOP = """
void run(const double *x, int n, double *out) {
    for (int i = 0; i < n; i++) tree_predict(x + i * tree_n_features, out + i);
}
"""


def _read_c(content: bytes, folder: Path) -> Predict:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise RuntimeError("there is no compiler of C")
    source, library = folder / "tree.c", folder / "tree.so"
    source.write_bytes(content + _LOOP.encode())
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    run = ctypes.CDLL(str(library)).run

    def predict(rows: NDArray) -> NDArray:
        values, out = rows.astype(np.float64), np.empty(len(rows))
        run(ctypes.c_void_p(values.ctypes.data), len(values), ctypes.c_void_p(out.ctypes.data))
        return out

    return predict


def _write_sql(dialect: Any) -> Callable[[Any, Path], bytes]:
    return lambda model, folder: export_sql(model, dialect=dialect, table="asked").encode()


def _read_duckdb(content: bytes, folder: Path) -> Predict:
    import duckdb
    import pyarrow

    database = duckdb.connect(config={"threads": 1})
    query = content.decode()

    def predict(rows: NDArray) -> NDArray:
        table = pyarrow.table({f"x{j}": rows[:, j] for j in range(rows.shape[1])})
        database.register("asked", table)
        return database.sql(query).fetchnumpy()["prediction"]

    return predict


def _read_sqlite(content: bytes, folder: Path) -> Predict:
    database = sqlite3.connect(":memory:")
    query = content.decode()

    def predict(rows: NDArray) -> NDArray:
        names = [f"x{j}" for j in range(rows.shape[1])]
        database.execute("DROP TABLE IF EXISTS asked")
        database.execute(f"CREATE TABLE asked ({', '.join(names)})")
        places = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO asked VALUES ({places})", rows.astype(float).tolist())
        return np.array([row[-1] for row in database.execute(query)])

    return predict


def _pickled(estimator: Any) -> bytes:
    stream = io.BytesIO()
    pickle.dump(estimator, stream)
    return stream.getvalue()


FORMATS: dict[str, Format] = {
    "model file": Format(_write_model, _read_model),
    "JSON": Format(
        lambda model, _: export_json(model).encode(),
        lambda content, _: read_json(content.decode()).predict,
    ),
    "LightGBM": Format(lambda model, _: export_lightgbm(model).encode(), _read_lightgbm),
    "treelite": Format(lambda model, _: to_treelite(model).serialize_bytes(), _read_treelite),
    "ONNX": Format(lambda model, _: to_onnx(model).SerializeToString(), _read_onnx),
    "scikit-learn": Format(
        lambda model, _: _pickled(to_sklearn(model)),
        lambda content, _: pickle.loads(content).predict,
    ),
    "C": Format(lambda model, _: export_c(model).encode(), _read_c),
    "Python": Format(lambda model, _: export_python(model).encode(), _read_python, FEW_ROWS),
    "SQL in DuckDB": Format(_write_sql("duckdb"), _read_duckdb, ROWS_OF_A_QUERY),
    "SQL in SQLite": Format(_write_sql("sqlite"), _read_sqlite, ROWS_OF_A_QUERY),
}

if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else NODES, tuple(sys.argv[2:]) or ("",))
