"""Trees as Python and C: the code predicts as `predict_proba` does, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases
from programs import Library, module_of, needs_compiler

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_auto_mpg, load_golf
from gputree.export import export_c, export_python
from gputree.prediction import class_distributions

GOLF = load_golf()


@given(multiway_cases())
def test_python_answers_as_the_tree_does(case):
    tree, values = case
    module = module_of(export_python(tree))
    found = [module["predict_proba"](row) for row in values.tolist()]
    expected = class_distributions(tree, values)
    assert np.array_equal(np.array(found).reshape(expected.shape), expected)
    labels = [module["predict"](row) for row in values.tolist()]
    assert labels == expected.argmax(axis=1).tolist()


@needs_compiler
@given(multiway_cases(min_rows=1))
def test_c_answers_as_the_tree_does(tmp_path_factory, case):
    tree, values = case
    library = Library(export_c(tree), tmp_path_factory.mktemp("c"))
    expected = class_distributions(tree, values)
    assert np.array_equal(library.answers(values, tree.n_classes), expected)
    assert library.classes(values) == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize("kind", [C45Classifier, ID3Classifier, DecisionTreeClassifier])
def test_python_takes_values_as_they_were_in_fit(kind):
    model = kind().fit(GOLF.data, GOLF.target)
    module = module_of(export_python(model, feature_names=GOLF.feature_names))
    rows = [*GOLF.data.tolist(), [None, "mild", "high", "weak"], ["fog", "hot", "high", None]]
    expected = model.predict_proba(np.array(rows, object))
    assert np.array_equal([module["predict_proba"](row) for row in rows], expected)
    named = [dict(zip(GOLF.feature_names, row, strict=True)) for row in rows]
    assert [module["predict"](row) for row in named] == model.classes_[expected.argmax(1)].tolist()


@needs_compiler
def test_regression(tmp_path):
    cars = load_auto_mpg()
    model = DecisionTreeRegressor(min_samples_leaf=5).fit(cars.data, cars.target)
    module = module_of(export_python(model))
    expected = model.predict(cars.data)
    assert [module["predict"](row) for row in cars.data.tolist()] == expected.tolist()
    with pytest.raises(TypeError, match="has no classes"):
        module["predict_proba"](cars.data[0])
    source = export_c(model)
    assert "tree_class(" not in source
    coded = model.columns_.encode(cars.data)
    assert Library(source, tmp_path).answers(coded, 1)[:, 0].tolist() == expected.tolist()


@needs_compiler
def test_c_knows_categories_by_their_text(tmp_path):
    words = ["tab\there", 'quote"', "back\\slash", "what??/", "ärger", "12"]
    model = ID3Classifier().fit(np.array(words, object)[:, None], np.arange(len(words)))
    library = Library(export_c(model), tmp_path).functions
    categories = model.columns_.categories[0].tolist()
    for code, word in enumerate(categories):
        assert library.tree_code(0, word.encode()) == code
    assert library.tree_code(0, "ärger".encode()) == categories.index("ärger")
    assert library.tree_code(0, b"nowhere") == -1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([1, "1", "a"], r"of the categories of column 'x0', 1 and '1' are the same text"),
        (["1", "1\0002", "a"], r"'1\\x002' holds a NUL, where text ends"),
    ],
)
def test_categories_that_are_one_text_in_c(words, message):
    """Refuse them: by its text, one would be taken for the other."""
    model = ID3Classifier().fit(np.array(words, object)[:, None], np.arange(len(words)))
    with pytest.raises(ValueError, match=message):
        export_c(model)
    export_c(model.tree_)  # which knows codes alone
    with pytest.raises(ValueError, match="of the classes, '1' and '1' are the same text"):
        export_c(ID3Classifier().fit(GOLF.data, GOLF.target), class_names=[1, "1"])


def test_rows_of_another_width_are_refused():
    module = module_of(export_python(C45Classifier().fit(GOLF.data, GOLF.target)))
    with pytest.raises(ValueError, match="a row has 4 columns, got 3"):
        module["predict"](["sunny", "hot", "high"])
    with pytest.raises(ValueError, match=r"a row lacks the columns \['x1', 'x3'\]"):
        module["predict"]({"x0": "sunny", "x2": "high"})


@pytest.mark.parametrize("name", ["", "2nd", "a-b", "für"])
def test_names_that_c_has_not(name):
    with pytest.raises(ValueError, match="name must be an identifier of C"):
        export_c(C45Classifier().fit(GOLF.data, GOLF.target), name=name)


def test_labels_that_python_cannot_write():
    model = ID3Classifier().fit(GOLF.data, np.where(GOLF.target == "no", 1.0, 2.0))
    assert module_of(export_python(model))["CLASSES"] == [1.0, 2.0]
    model.classes_ = np.array(["2020-01-01", "2021-01-01"], "datetime64[D]")
    with pytest.raises(TypeError, match="Python source cannot represent"):
        export_python(model)
