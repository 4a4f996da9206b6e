"""The parameter `classes`: classes that are declared, whether y has them or not."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_tables
from sklearn.base import clone

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    DecisionTreeClassifier,
    ID3Classifier,
    export_json,
    export_text,
    load_model,
    read_json,
    save_model,
)
from gputree.export import export_python
from gputree.pruning import CostComplexityCV

KINDS = (DecisionTreeClassifier, C45Classifier, ID3Classifier)
X = np.arange(12.0).reshape(-1, 1)
Y = np.array(["b", "d"]).repeat(6)
WORDS = ["d", "a", "b", "c"]

DECLARING = {
    "pandas": pd.Categorical(Y, categories=WORDS),
    "series": pd.Series(pd.Categorical(Y, categories=WORDS)),
    "polars": pl.Series(Y.tolist(), dtype=pl.Enum(WORDS)),
    "pyarrow": pa.DictionaryArray.from_arrays(pa.array(2 * (Y == "b")), pa.array(WORDS)),
    "chunked": pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array(2 * (Y == "b")), pa.array(WORDS))]
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("y", [Y, Y.astype(object), Y.tolist()])
def test_classes_without_rows_have_columns_of_zeros(kind, y):
    model = kind(classes=WORDS).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.n_classes_ == 4
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(shares[:, [1, 3]], kind().fit(X, y).predict_proba(X))
    assert (shares[:, [0, 2]] == 0).all()
    assert (model.predict(X) == Y).all()


def test_boosted_trees_know_them():
    model = BoostedC45Classifier(n_trials=2, classes=WORDS, pruning=CostComplexityCV(cv=3))
    model.fit(X, Y)
    assert model.classes_.tolist() == sorted(WORDS)
    assert model.predict_proba(X).shape == (12, 4)
    assert (model.predict(X) == Y).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("y", DECLARING.values(), ids=DECLARING)
def test_the_type_of_y_declares_classes_where_it_is_asked(kind, y):
    assert kind(classes="declared").fit(X, y).classes_.tolist() == ["a", "b", "c", "d"]
    assert kind().fit(X, y).classes_.tolist() == ["b", "d"]


@given(random_mixed_tables(), st.integers(1, 3))
def test_more_classes_do_not_change_the_trees_of_cart_and_id3(table, more):
    for kind in (DecisionTreeClassifier, ID3Classifier):
        plain = kind(device="cpu").fit(table.X, table.y, table.weight).tree_
        wider = kind(device="cpu", classes=np.arange(int(table.y.max()) + 1 + more)).fit(
            table.X, table.y, table.weight
        )
        found = wider.tree_
        for field in ("first_child", "feature", "threshold", "missing_child", "impurity"):
            np.testing.assert_array_equal(getattr(plain, field), getattr(found, field))
        present = np.searchsorted(wider.classes_, np.unique(table.y))
        np.testing.assert_array_equal(plain.statistics, found.statistics[:, present])


def test_a_cut_of_c45_leaves_a_tenth_of_an_average_class_of_those_declared():
    """Three rows lie beyond it, of 103: a tenth of two classes is 5.15, of four it is 2.6."""
    X = np.arange(200.0).reshape(-1, 1)
    y = np.repeat([0, 1, 0], [3, 100, 97])
    given = {"pruning": None, "mdl_correction": False, "device": "cpu"}
    assert C45Classifier(classes=np.arange(4), **given).fit(X, y).tree_.threshold[1] == 2.5
    assert C45Classifier(**given).fit(X, y).tree_.threshold[1] == 5.5


@pytest.mark.parametrize(
    ("classes", "y", "message"),
    [
        (["a", "b"], Y, r"'classes' parameter of C45Classifier does not list: \['d'\]"),
        (["b", "d", "b"], Y, "must list different labels. Got"),
        ([], Y, "must list different labels, none missing"),
        (["b", None, "d"], Y, "must list different labels, none missing"),
        ([["b", "d"]], Y, "must list different labels, none missing"),
        ([0, 1], Y, "of the kind of y, which holds text"),
        (["0", "1"], [0, 1] * 6, "of the kind of y, which holds numbers"),
        ("declared", Y, "takes the classes that the type of y declares"),
        ("all", Y, "The 'classes' parameter of C45Classifier must be an array-like"),
        (3, Y, "The 'classes' parameter of C45Classifier must be an array-like"),
    ],
)
def test_classes_that_cannot_be(classes, y, message):
    with pytest.raises(ValueError, match=message):
        C45Classifier(classes=classes).fit(X, y)


@pytest.mark.parametrize(
    ("y", "classes", "kind"),
    [
        ([0, 5] * 6, [5, 7, 0], "i"),
        ([0.0, 5.0] * 6, [5.0, 7.5, 0.0], "f"),
        ([True, False] * 6, [False, True], "b"),
        ([True] * 12, [0, 1], "b"),
        (np.array([1, 2] * 6, np.uint8), [1, 2, 300], "i"),
    ],
)
def test_labels_keep_their_kind(y, classes, kind):
    model = DecisionTreeClassifier(classes=classes).fit(X, y)
    assert model.classes_.tolist() == sorted(classes)
    assert model.classes_.dtype.kind == kind
    assert set(model.predict(X).tolist()) <= set(np.asarray(y).tolist())


@pytest.mark.parametrize("classes", [WORDS, tuple(WORDS), np.array(WORDS), "declared"])
def test_a_file_keeps_them(classes, tmp_path):
    model = C45Classifier(classes=classes).fit(X, DECLARING["pandas"])
    save_model(model, tmp_path / "model")
    for again in (load_model(tmp_path / "model"), read_json(export_json(model))):
        np.testing.assert_array_equal(again.classes_, model.classes_)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.get_params()["classes"], classes)
    clone(model).fit(X, DECLARING["pandas"])


def test_formats_take_classes_without_rows():
    model = DecisionTreeClassifier(classes=WORDS).fit(X, Y)
    assert "d" in export_text(model).splitlines()[-1]
    space: dict = {}
    exec(export_python(model), space)
    assert space["predict_proba"]([0.0]) == [0.0, 1.0, 0.0, 0.0]


def test_cross_validated_pruning_keeps_classes_of_a_type():
    y = pd.Series(pd.Categorical(np.tile(Y, 4), categories=WORDS))
    pruner = CostComplexityCV(cv=3, random_state=0)
    model = DecisionTreeClassifier(classes="declared", pruning=pruner).fit(np.tile(X, (4, 1)), y)
    assert model.n_classes_ == 4
    assert (model.predict(X) == Y).all()
