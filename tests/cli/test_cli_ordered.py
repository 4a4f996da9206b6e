"""`--ordered`: categories in their order, from text, from ARFF headers and from types."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import pandas as pd
import pytest
from ordered_tables import LEVELS, as_text, asked, ordered_table

from gputree import DecisionTreeClassifier
from gputree.cli.cells import parse_order

X, LABELS, _ = ordered_table(n=60)
ORDER = 'level=very low<low<medium<high<"top, above all"'


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "table.csv"
    as_text(X).assign(y=LABELS).to_csv(path, index=False)
    return path


@pytest.fixture
def train(train):
    return partial(train, "--target=y")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=x<y", [("a", ["x", "y"])]),
        (' a = x < y y <"<=" ', [("a", ["x", "y y", "<="])]),
        ('"a=b,c"=1<2', [("a=b,c", ["1", "2"])]),
        ('a=x<"say ""y"""', [("a", ["x", 'say "y"'])]),
        ("a=x=1<y=2", [("a", ["x=1", "y=2"])]),
        ("a", [("a", "declared")]),
        ('a,"b,c"', [("a", "declared"), ("b,c", "declared")]),
    ],
)
def test_orders_that_are_read(text, found):
    assert parse_order(text) == found


@pytest.mark.parametrize("text", ["a=", "a=x", "a=x<", "a=<x", "a=x<<y", 'a=x<"y"z', '""=x<y'])
def test_orders_that_are_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"must be COLUMN=LOWEST<...<HIGHEST"):
        parse_order(text)


def test_a_model_knows_the_order(train, gputree, data, tmp_path):
    model = train(data, "--ordered", ORDER)
    expected = DecisionTreeClassifier().fit(X, LABELS)
    assert model.ordered_categories == {"level": LEVELS}
    assert model.columns_.same_as(expected.columns_)
    assert model.tree_.equals(expected.tree_)
    rows = tmp_path / "rows.csv"
    asked(X).to_csv(rows, index=False)
    status, output, errors = gputree("predict", tmp_path / "model", rows)
    assert (status, errors) == (0, "")
    assert output.split()[1:] == expected.predict(asked(X)).tolist()
    assert "level <= medium" in gputree("show", tmp_path / "model")[1]
    assert "level <= " in gputree("explain", tmp_path / "model", rows)[1]


def test_several_files_have_one_order(train, data, tmp_path):
    half = tmp_path / "half.csv"
    as_text(X).assign(y=LABELS).head(30).to_csv(half, index=False)
    model = train(half, data, "--ordered", ORDER)
    assert model.columns_.ordered.tolist() == [True, False, False]
    assert model.columns_.categories[0].tolist() == LEVELS


def test_numbers_that_are_levels_are_taken_as_they_are_written(train, write):
    path = write("grade,y\n" + "1,a\n10,b\n2,a\n10,b\n3,b\n" * 3)
    model = train(path, "--ordered", "grade=10<3<2<1")
    assert model.tree_.n_leaves == 2
    assert model.columns_.categories[0].tolist() == ["10", "3", "2", "1"]


def test_orders_that_are_declared(train, tmp_path):
    arff = tmp_path / "table.arff"
    arff.write_text(
        "@relation r\n@attribute size {small,medium,large}\n@attribute y {a,b}\n@data\n"
        + "small,a\nlarge,b\nmedium,a\n?,b\n" * 3
    )
    assert not train(arff).columns_.ordered.any()
    model = train(arff, "--ordered", "size")
    assert model.columns_.ordered.tolist() == [True]
    assert model.columns_.categories[0].tolist() == ["small", "medium", "large"]
    parquet = tmp_path / "table.parquet"
    X.assign(y=LABELS).to_parquet(parquet)
    assert train(parquet).columns_.ordered.tolist() == [True, False, False]
    assert train(parquet, parquet).columns_.ordered.tolist() == [True, False, False]
    pd.DataFrame(
        {"size": pd.Categorical(["s", "l", "m"] * 4, ["s", "m", "l"]), "y": np.tile([1, 2, 1], 4)}
    ).to_parquet(parquet)
    assert train(parquet).columns_.nominal.all()
    assert train(parquet, "--ordered", "size").columns_.ordered.all()


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--ordered", "level=low<high"], 1, "which --ordered does not list: ['low', 'high']"),
        (["--ordered", "level"], 1, "--ordered takes the order of column 'level' from its type"),
        (["--ordered", "levels=low<high"], 1, "no feature column 'levels'. Did you mean 'level'?"),
        (["--ordered", "level=low"], 2, "argument --ordered: must be COLUMN=LOWEST<...<HIGHEST"),
        (["--ordered", "level", "--ordered", "level=a<b"], 2, "gives two orders of 'level'"),
        (["--ordered", "level", "--categorical", "level"], 2, "--categorical and --ordered both"),
        (["--ordered", "z", "--numeric", "z"], 2, "--numeric and --ordered both name 'z'"),
        (["--ordered", ORDER, "--algorithm", "id3"], 2, "--ordered is no option of id3: add"),
    ],
)  # fmt: skip
def test_orders_that_do_not_fit(gputree, data, options, status, message):
    found, _, errors = gputree("train", data, "--target", "y", *options, "-o", "model")
    assert (found, message in errors) == (status, True), errors
