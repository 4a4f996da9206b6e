"""Messages say what is wrong in the words of who reads them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gputree import DecisionTreeClassifier, save_model
from gputree.columns import fit_columns

Y = list("nnnnpppp")


def test_infinity_is_told_with_the_name_of_its_column():
    for cells in ([1.0] * 7 + [np.inf], [Decimal(i) for i in range(7)] + [Decimal("Infinity")]):
        frame = pd.DataFrame({"a": [1.0] * 8, "d": pd.Series(cells, dtype=object)})
        with pytest.raises(ValueError, match=r"contains infinity .* in column 'd'"):
            DecisionTreeClassifier().fit(frame, Y)
    with pytest.raises(ValueError, match=r"contains infinity .* in column 1"):
        DecisionTreeClassifier().fit(frame.to_numpy(float), Y)


def test_integers_of_128_bits():
    frame = pl.DataFrame({"a": pl.Series([1, 2**100, None, 2**100 + 1], dtype=pl.Int128)})
    assert fit_columns(frame, ["a"]).categories[0].tolist() == [1, 2**100, 2**100 + 1]


def test_text_that_is_not_unicode(tmp_path):
    frame = pd.DataFrame({"t": pd.Series(["\ud800"] * 4 + ["b"] * 4, dtype=object)})
    tree = DecisionTreeClassifier().fit(frame, Y)
    with pytest.raises(
        ValueError, match=r"cannot represent text that is not Unicode, such as '\\ud800'"
    ):
        save_model(tree, tmp_path / "m.gputree")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def command(gputree, tmp_path):
    """``command(train, new)``: words on standard error of training and prediction."""

    def run(train, new, target="y"):
        path, other, model = tmp_path / "t.csv", tmp_path / "n.csv", tmp_path / "m.gputree"
        path.write_text(train)
        other.write_text(new or train)
        status, _, errors = gputree("train", path, "--target", target, "-o", model, "--quiet")
        return errors if status else errors + gputree("predict", model, other)[2]

    return run


def rows(form):
    return "".join(form(i, "no" if i < 4 else "yes") + "\n" for i in range(8))


@pytest.mark.parametrize(
    ("head", "form", "new", "target", "words"),
    [
        ("temp,y", lambda i, y: f"{'inf' if i == 7 else i},{y}", None, "y", "in column 'temp'"),
        (
            "smokes,y",
            lambda i, y: f"{'true' if i < 4 else 'false'},{y}",
            "smokes\ntrue\nunknown\n",
            "y",
            "held booleans in training; now it holds text, such as 'unknown'",
        ),
        (
            "pop,y",
            lambda i, y: (f'"{i},100"' if i > 3 else f"{900 + i}") + f",{y}",
            None,
            "y",
            "commas before three digits, such as 4,100, and is taken for text. If they separate",
        ),
        (
            "pop;p;y",
            lambda i, y: f"{i + 1}.{500 + i * 7};{i},5;{y}",
            None,
            "y",
            "points before three digits, such as 1.500, and is taken for text. If they separate",
        ),
        (
            "a,y",
            lambda i, y: f"{i}, {y} " if i % 2 else f"{i},{y}",
            None,
            "y",
            "are two classes of the target column 'y': they differ in blanks",
        ),
    ],
)  # fmt: skip
def test_words_of_the_command(command, head, form, new, target, words):
    assert words in command(f"{head}\n{rows(form)}", new, target=target)


def test_a_mark_that_was_in_training_is_not_said_to_be_new(command):
    said = command(
        "a, b, y\n" + rows(lambda i, y: f"{i}, {'?' if i == 2 else 'k'}, {y}"),
        None,
        target=" y",
    )
    assert "'?' is a category like others" in said
    assert "training had no '?'" not in said


def test_tables_that_hold_no_rows_or_no_columns():
    lazy = pl.DataFrame({"a": [1.0, 2.0]}).lazy()
    tree = DecisionTreeClassifier().fit(lazy.collect(), [0, 1])
    for call in (lambda: tree.fit(lazy, [0, 1]), lambda: tree.predict(lazy)):
        with pytest.raises(TypeError, match=r"LazyFrame, which holds no rows yet: pass X.collect"):
            call()
    records = np.array([(1.0, b"x"), (2.0, b"y")], [("a", "f8"), ("b", "S1")])
    with pytest.raises(ValueError, match=r"structured array: pass pandas.DataFrame\(X\)"):
        tree.fit(records, [0, 1])
    with pytest.raises(ValueError, match=r"Column 'b' of X: .* got bytes: decode them first"):
        tree.fit(pd.DataFrame(records), [0, 1])
