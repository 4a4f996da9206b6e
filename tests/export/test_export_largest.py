"""`missing="largest"` keeps its promise, of unknown categories as of missing values; by hand."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from gputree import C45Classifier, ID3Classifier
from gputree.export import export_lightgbm, export_sql, to_onnx, to_treelite


@pytest.fixture(scope="module")
def tree():
    """p, of the most rows, is split again; q and r are of class 0."""
    a, b = list("p" * 9 + "q" * 7 + "r" * 7), [*range(9), *range(7), *range(7)]
    y = [int(i > 3) for i in range(9)] + [0] * 14
    return C45Classifier(pruning=None).fit(pd.DataFrame({"a": a, "b": b}), y)


ROWS = [("p", 8), (None, 8), ("new", 8), ("new", 0), ("q", 8)]
HEAVIEST = [1, 1, 1, 0, 0]
CODES = np.array([[0, 8], [np.nan, 8], [-1, 8], [-1, 0], [1, 8]])


@pytest.mark.parametrize("nodes", [None, "n"])
def test_sql(tree, nodes):
    rows = sqlite3.connect(":memory:")
    rows.execute("CREATE TABLE t (a TEXT, b REAL)")
    rows.executemany("INSERT INTO t VALUES (?, ?)", ROWS)
    text = export_sql(tree, dialect="sqlite", missing="largest", table="t", nodes=nodes)
    before, _, query = text.rpartition("SELECT *")
    rows.executescript(before)
    assert [row[-1] for row in rows.execute(f"SELECT *{query}")] == HEAVIEST


def test_programs(tree):
    onnxruntime, lightgbm = map(pytest.importorskip, ("onnxruntime", "lightgbm"))
    model = onnxruntime.InferenceSession(to_onnx(tree, missing="largest").SerializeToString())
    cells = {
        "a": np.array([[a or ""] for a, _ in ROWS], object), "b": CODES[:, 1:].astype(float),
    }  # fmt: skip
    assert model.run(None, cells)[0].tolist() == HEAVIEST
    booster = lightgbm.Booster(model_str=export_lightgbm(tree, missing="largest"))
    assert booster.predict(CODES).tolist() == HEAVIEST
    treelite = pytest.importorskip("treelite")
    found = treelite.gtil.predict(to_treelite(tree, missing="largest"), CODES)
    assert found.reshape(len(CODES), -1)[:, -1].tolist() == HEAVIEST


def test_what_stops_still_stops():
    """ID3 knows no branch for an unknown category: the node answers, in SQL as in `predict`."""
    table = pd.DataFrame({"a": list("ppqqqrr")})
    tree = ID3Classifier().fit(table, list("nnyyynn"))
    sql = export_sql(tree, dialect="sqlite", missing="largest")
    rows = sqlite3.connect(":memory:")
    rows.execute("CREATE TABLE t (a TEXT)")
    rows.executemany("INSERT INTO t VALUES (?)", [("q",), ("new",)])
    assert [row[0] for row in rows.execute(f"SELECT {sql} FROM t")] == ["y", "n"]
