"""Models in the formats of other programs, which predict as the model does, bit for bit.

Each function of `PROGRAMS` takes a fitted model, rows in a frame and a folder for files.
"""

import ctypes
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest
from databases import in_duckdb, in_sqlite

import gputree.export as formats
from gputree import export_json, read_json

COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")


def predictions(model, rows):
    """Probabilities of classes, or targets, of shape (n, K)."""
    found = getattr(model, "predict_proba", model.predict)(rows)
    return found.reshape(len(rows), -1)


def columns_of(rows):
    """Cells of each column, with None where missing."""
    return {
        name: [None if x is None or x != x else x for x in rows[name].tolist()] for name in rows
    }


def coded(model, rows):
    return model.columns_.encode(rows).astype(np.float64)


def module_of(source: str) -> dict:
    module: dict = {}
    exec(compile(source, "tree.py", "exec"), module)
    return module


def assert_python(model, rows, _):
    module = module_of(formats.export_python(model))
    cells = list(zip(*columns_of(rows).values(), strict=True))
    assert [module["predict"](row) for row in cells] == model.predict(rows).tolist()
    if hasattr(model, "classes_"):
        found = [module["predict_proba"](row) for row in cells]
        np.testing.assert_array_equal(found, predictions(model, rows))


class Library:
    """The functions of a compiled file."""

    def __init__(self, source: str, folder) -> None:
        (folder / "tree.c").write_text(source, "ascii")
        options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
        options += ["-Wno-overlength-strings", "-shared", "-fPIC"]
        command = [COMPILER, *options, "tree.c", "-o", "tree.so"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        self.functions = ctypes.CDLL(str(folder / "tree.so"))

    def answers(self, values: np.ndarray, n_outputs: int) -> np.ndarray:
        rows = np.ascontiguousarray(values, np.float64)
        out = np.full((len(rows), n_outputs), np.nan)
        for row, place in zip(rows, out, strict=True):
            assert self.functions.tree_predict(_pointer(row), _pointer(place)) == 0
        return out

    def classes(self, values: np.ndarray) -> list[int]:
        return [self.functions.tree_class(_pointer(row)) for row in np.float64(values)]


def _pointer(row: np.ndarray) -> ctypes.c_void_p:
    return row.ctypes.data_as(ctypes.c_void_p)


def assert_c(model, rows, folder):
    if COMPILER is None:
        pytest.skip("no C compiler is installed")
    library, expected = Library(formats.export_c(model), folder), predictions(model, rows)
    values = coded(model, rows)
    np.testing.assert_array_equal(library.answers(values, expected.shape[1]), expected)
    if hasattr(model, "classes_"):
        assert library.classes(values) == expected.argmax(axis=1).tolist()


def run_onnx(made, cells, threads=1):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(made.SerializeToString(), options).run(None, cells)


def assert_onnx(model, rows, _):
    cells = {}
    for name, column in rows.items():
        text = column.dtype == object
        cells[name] = (column.fillna("") if text else column).to_numpy()[:, None]
    for inputs, given in (("columns", cells), ("matrix", {"X": coded(model, rows)})):
        *labels, found = run_onnx(formats.to_onnx(model, inputs=inputs), given)
        np.testing.assert_array_equal(found.reshape(len(rows), -1), predictions(model, rows))
        if labels and inputs == "columns":
            assert labels[0].tolist() == model.predict(rows).tolist()


def assert_treelite(model, rows, _):
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    made = formats.to_treelite(model)
    assert made.num_tree == len(getattr(model, "estimators_", [model]))
    for one in (made, treelite.Model.deserialize_bytes(made.serialize_bytes())):
        found = treelite.gtil.predict(one, coded(model, rows), nthread=1)
        np.testing.assert_array_equal(found.reshape(len(rows), -1), predictions(model, rows))


def booster_of(model, **options):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return lightgbm.Booster(model_str=formats.export_lightgbm(model, **options))


def assert_lightgbm(model, rows, _):
    expected = predictions(model, rows)
    if hasattr(model, "classes_") and len(model.classes_) == 2:
        expected = expected[:, 1:]
    found = booster_of(model).predict(coded(model, rows))
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def assert_sql(model, rows, _, dialect):
    ask = {"duckdb": in_duckdb, "sqlite": in_sqlite}[dialect]
    columns, options = columns_of(rows), {"dialect": dialect, "table": "rows"}
    assert ask(formats.export_sql(model, **options), columns) == model.predict(rows).tolist()
    if hasattr(model, "classes_"):
        options |= {"output": "probability", "probability_of": model.classes_.tolist()[-1]}
        share = ask(formats.export_sql(model, **options), columns)
        assert share == predictions(model, rows)[:, -1].tolist()


def assert_json(model, rows, _):
    again = read_json(export_json(model))
    np.testing.assert_array_equal(predictions(again, rows), predictions(model, rows))


PROGRAMS = {
    "Python": assert_python,
    "JSON": assert_json,
    "C": assert_c,
    "ONNX": assert_onnx,
    "treelite": assert_treelite,
    "LightGBM": assert_lightgbm,
    "SQLite": partial(assert_sql, dialect="sqlite"),
    "DuckDB": partial(assert_sql, dialect="duckdb"),
}


def walk_nested(nested, row):
    """Prediction of a row without missing values; None where no branch has a value."""
    while isinstance(nested, dict):
        ((name, branches),) = nested.items()
        nested = next((below for key, below in branches.items() if _leads(key, row[name])), None)
    return nested


def _leads(key, x):
    if isinstance(key, str):
        sign, _, bound = key.partition(" ")
        return sign == "present" or (x <= float(bound) if sign == "<=" else x > float(bound))
    return x in key if isinstance(key, tuple) else x == key
