"""The tree as text: every leaf once, words and numbers as requested."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hand_made_trees import chain, make_tree
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn_trees import from_sklearn

import gputree
from gputree.base.dtypes import BRANCH_SPLIT, MISSING_STOPS, MISSING_TO_ALL
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.export import export_text, path_rules
from gputree.export.describe import describe, format_number
from gputree.export.text import text_lines
from gputree.tree import Tree
from gputree.tree.branches import BranchLists

IRIS = load_iris()
CARS = load_auto_mpg()


def iris_tree(**parameters) -> Tree:
    model = DecisionTreeClassifier(random_state=0, **parameters)
    return from_sklearn(model.fit(IRIS.data[:, 3:], IRIS.target))


def text_of(tree, **options) -> str:
    names = {"feature_names": ["petal width"], "class_names": np.unique(IRIS.target)}
    return export_text(tree, **{**names, **options})


def stump(threshold=2.5, weight=(10.0, 4, 6), missing_child=1, **changes) -> Tree:
    """Two leaves on x0, of classes 0 and 1."""
    fields = {
        "feature": [0, -2, -2],
        "threshold": [threshold, -2.0, -2.0],
        "missing_child": [missing_child, MISSING_STOPS, MISSING_STOPS],
        "weight": weight,
        "n_rows": [10, 4, 6],
        "statistics": [weight[1:], [weight[1], 0], [0, weight[2]]],
        "impurity": [0.48, 0, 0],
        "gain": [0.48, 0, 0],
    }
    return make_tree([2, 0, 0], task="classification", criterion="gini", **fields | changes)


def test_iris():
    assert text_of(iris_tree(max_depth=2)) == (
        "petal width <= 0.8: setosa (50)\n"
        "petal width > 0.8\n"
        "|   petal width <= 1.75: versicolor (54/5)\n"
        "|   petal width > 1.75: virginica (46/1)\n"
    )


def test_regression():
    model = DecisionTreeRegressor(max_depth=1).fit(CARS.data[:, [3]], CARS.target)
    low, high = (
        CARS.target[side] for side in (CARS.data[:, 3] <= 2764.5, CARS.data[:, 3] > 2764.5)
    )
    lines = export_text(from_sklearn(model), feature_names=["weight"], decimals=2).splitlines()
    expected = [
        f"weight {operator} 2764.5: {part.mean():.2f} ({part.size}, mse {part.var():.4g})"
        for operator, part in (("<=", low), (">", high))
    ]
    assert lines == expected


def test_names_default_to_the_estimators():
    class Fitted(BaseEstimator):
        tree_ = stump()
        classes_ = np.array(["no", "yes"])
        feature_names_in_ = np.array(["age"], dtype=object)

        def fit(self):
            return self

    assert export_text(Fitted()) == "age <= 2.5: no (4)\nage > 2.5: yes (6)\n"
    assert export_text(Fitted.tree_) == "x0 <= 2.5: 0 (4)\nx0 > 2.5: 1 (6)\n"
    assert export_text(Fitted(), feature_names=["a"], class_names=["n", "y"]).startswith(
        "a <= 2.5: n"
    )


def test_max_depth_counts_what_it_leaves_out():
    tree = iris_tree()
    for depth in range(tree.max_depth + 1):
        text = text_of(tree, max_depth=depth)
        hidden = sum(map(int, re.findall(r"\.\.\. (\d+) more nodes", text)))
        assert hidden == np.count_nonzero(tree.depth > depth)
    assert text == text_of(tree)
    assert text_of(tree, max_depth=0) == f"setosa (150/100) ... {tree.n_nodes - 1} more nodes\n"


def test_weights_of_classes():
    text = text_of(iris_tree(max_depth=1), show_weights=True)
    assert text.splitlines()[1].endswith("(100/50) [setosa 0, versicolor 50, virginica 50]")


@pytest.mark.parametrize(
    ("missing_child", "rows", "marked"),
    [
        (1, (10, 4, 6), None),  # the child of more rows
        (0, (10, 4, 6), "x0 <= 2.5 or missing"),
        (0, (10, 6, 4), None),
        (1, (10, 6, 4), "x0 > 2.5 or missing"),
        (1, (10, 5, 5), None),
        (0, (10, 5, 5), "x0 <= 2.5 or missing"),
        (MISSING_TO_ALL, (10, 4, 6), None),
        (MISSING_STOPS, (10, 4, 6), None),
    ],
)
def test_missing_direction(missing_child, rows, marked):
    heavy_right = (10.0, 1, 9)  # weights play no part
    tree = stump(weight=heavy_right, missing_child=missing_child, n_rows=np.array(rows))
    text = export_text(tree)
    assert [line.split(":")[0] for line in text.splitlines() if "missing" in line] == (
        [marked] if marked else []
    )


@pytest.mark.parametrize("missing", [False, True])
def test_growth_follows_the_direction_that_is_not_marked(missing):
    X = np.array([[1.0], [2], [3], [4], [5], [6]])
    y, weight = np.array([0, 0, 0, 1, 1, 1]), [9.0, 9, 9, 1, 1, 1]
    if missing:  # equals: the second child would take them
        X, y, weight = [[1.0], [2], [np.nan], [4], [5], [6]], y, None
    tree = gputree.DecisionTreeClassifier().fit(X, y, weight).tree_
    assert tree.n_rows.tolist() == [6, 3, 3]
    assert ("or missing" in export_text(tree)) == missing


def test_names_stay_on_their_line():
    text = export_text(stump(), feature_names=["a\nb\t€"], class_names=["n\u2028o", "y\x1b[1m"])
    assert text.splitlines() == [
        "a\\nb\\t€ <= 2.5: n\\u2028o (4)",
        "a\\nb\\t€ > 2.5: y\\x1b[1m (6)",
    ]


def test_missing_against_present():
    text = export_text(stump(threshold=np.inf))
    assert text == "x0 is present: 0 (4)\nx0 is missing: 1 (6)\n"


def test_multiway_and_category_sets():
    lists = BranchLists.of_pairs(3, np.array([2, 1, 2]), np.array([0, 1, 3]))
    kind = np.array([BRANCH_SPLIT, 0, 0], np.uint8)
    text = export_text(stump(threshold=-2.0, split_kind=kind, **lists._asdict()))
    assert text == "x0 = 1: 0 (4)\nx0 in {0, 3}: 1 (6)\n"


def branches(table, missing_child=MISSING_STOPS, categories=None, **changes) -> str:
    """The text of a stump that sends category j to child table[j]."""
    code = np.flatnonzero(np.array(table) >= 0)
    changes |= BranchLists.of_pairs(3, 1 + np.array(table)[code], code)._asdict()
    kind = np.array([BRANCH_SPLIT, 0, 0], np.uint8)
    tree = stump(threshold=-2.0, split_kind=kind, missing_child=missing_child, **changes)
    description = describe(tree)
    return "".join(text_lines(replace(description, categories=[categories])))


def test_categories_go_by_their_names():
    names = np.array(["rain", "wind", "sun", "", "a, b", "x: y", " b", "missing", "ü\nx"], object)
    assert branches([0, 1, 1, -1, 1, 1, 1, 1, 1], categories=names) == (
        'x0 = rain: 0 (4)\nx0 in {wind, sun, "a, b", "x: y", " b", "missing", ü\\nx}: 1 (6)\n'
    )
    assert branches([0, -1, -1, 1], categories=names).endswith('x0 = "": 1 (6)\n')
    numbers = np.array([0.1, 1e16, 3.0])
    assert branches([0, 1, 1], categories=numbers) == ("x0 = 0.1: 0 (4)\nx0 in {1e+16, 3}: 1 (6)\n")
    truths = np.array([False, True])
    assert branches([1, 0], categories=truths) == "x0 = True: 0 (4)\nx0 = False: 1 (6)\n"


def test_many_categories_are_counted():
    text = branches([0] + [1] * 5000, categories=np.arange(5001))
    assert text.splitlines()[1].endswith(", 19, 20, ... 4,980 more}: 1 (6)")


def test_a_branch_of_missing_values():
    text = branches([0, -1], missing_child=1, categories=np.array(["a", "b"], object))
    assert text == "x0 = a: 0 (4)\nx0 is missing: 1 (6)\n"


def test_a_leaf_without_cases_answers_as_its_parent():
    table = {"missing_child": MISSING_TO_ALL, "categories": np.array(["a", "b"], object)}
    empty = {"weight": (3.0, 0, 3), "n_rows": np.array([3, 0, 3])}
    assert branches([0, 1], **table, **empty) == "x0 = a: 1 (0)\nx0 = b: 1 (3)\n"


def test_an_estimator_knows_its_categories():
    golf = load_golf()
    X = golf.data.copy()
    X[0, 2] = None
    tree = gputree.ID3Classifier().fit(X, golf.target)
    assert export_text(tree, feature_names=golf.feature_names) == (
        "outlook = overcast: yes (4)\n"
        "outlook = rain\n"
        "|   wind = strong: no (2)\n"
        "|   wind = weak: yes (3)\n"
        "outlook = sunny\n"
        "|   humidity = high: no (2)\n"
        "|   humidity = normal: yes (2)\n"
        "|   humidity is missing: no (1)\n"
    )


def test_a_deep_tree_is_no_recursion_and_no_square():
    tree = chain(10_000)
    lines = export_text(tree).splitlines()
    assert len(lines) == tree.n_nodes - 1
    assert max(map(len, lines)) < 250
    assert "[9999] x0 > " in lines[-1]


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (2.0, 4, "2"),
        (2.45, 4, "2.45"),
        (-0.5, 0, "-0.5"),
        (1 / 3, 4, "0.3333"),
        (1 / 3, None, "0.3333333333333333"),
        (100.0, None, "100"),
        (0.1 + 0.2, None, "0.30000000000000004"),
        (1.25e-7, 4, "1.25e-07"),
        (-3e-9, 2, "-3e-09"),
        (6e-5, 4, "6e-05"),
        (1.23456e-4, 4, "0.0001235"),
        (0.0123456, 2, "0.012"),
        (0.99996, 4, "1"),
        (0.0, 4, "0"),
        (1234567.0, 0, "1234567"),
        (1000.0, 0, "1000"),
        (1.5e300, 4, "1.5e+300"),
        (np.float32(0.5), None, "0.5"),
    ],
)
def test_numbers(value, decimals, text):
    assert format_number(value, decimals) == text


@pytest.mark.parametrize(
    ("column", "decimals", "texts"),
    [
        ([5.12345, 5.12348, 5.12352], 4, ["5.12346", "5.1235"]),
        ([5.0, 5.2, 5.6], 0, ["5.1", "5.4"]),
        ([0.1, np.nextafter(0.1, 1), 0.5], 4, ["0.1", "0.3"]),
        ([2e16, 2e16 + 32, 2e16 + 64], 3, ["2.000000000000002e+16", "2.000000000000005e+16"]),
    ],
)
def test_thresholds_are_told_apart(column, decimals, texts):
    """A path of ``x > 5.1235`` and ``x <= 5.1235`` would contradict itself."""
    X = np.array(column)[:, None]
    tree = gputree.DecisionTreeClassifier(device="cpu").fit(X, [0, 1, 2])
    text = export_text(tree, decimals=decimals)
    found = sorted(set(re.findall(r"<= (\S+):?", text.replace(":", ""))), key=float)
    assert found == texts
    rules = path_rules(tree, decimals=decimals)
    assert f"{texts[0]} < x0 <= {texts[1]}" in str(rules[1])


@pytest.mark.full
def test_neighbours_at_random_are_told_apart():
    """And stay in order; those that are far from all others keep their digits."""
    rng = np.random.default_rng(0)
    for decimals in range(5):
        X = np.sort(rng.normal(size=300) * 10.0 ** rng.integers(-6, 4, 300))[:, None]
        tree = gputree.DecisionTreeClassifier(device="cpu").fit(X, np.arange(300) % 2)
        description = describe(tree, decimals=decimals)
        values = np.unique(tree.tree_.threshold[~tree.tree_.is_leaf])
        texts = [description.threshold(0, value) for value in values]
        assert len(set(texts)) == len(values)
        assert (np.diff([float(text) for text in texts]) > 0).all()
        assert format_number(values[-1], decimals) in (texts[-1], texts[-2])


def test_exact_numbers_read_back():
    values = np.random.default_rng(0).normal(size=200) * 10.0 ** np.arange(-100, 100)
    assert [float(format_number(value, None)) for value in values] == values.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a", "b"]}, "feature_names must contain 1 elements, got 2"),
        ({"class_names": ["a"]}, "class_names must contain 2 elements, got 1"),
        ({"max_depth": -1}, "'max_depth' parameter of export_text must be an int .* Got -1"),
        ({"decimals": -1}, "'decimals' parameter of export_text must be an int .* Got -1"),
        ({"decimals": "x"}, "'decimals' parameter of export_text must be an int .* Got 'x'"),
        ({"feature_names": "a"}, "'feature_names' parameter of .* array-like or None. Got 'a'"),
        ({"show_weights": "no"}, "'show_weights' parameter of export_text must be .* Got 'no'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        export_text(stump(), **options)


def test_the_root_has_no_condition():
    with pytest.raises(ValueError, match="root has no condition"):
        describe(stump()).condition(0)


class _Odd:
    tree_ = "oak"


@pytest.mark.parametrize(
    "other",
    [
        None,
        "tree",
        _Odd(),
        DecisionTreeClassifier,
        make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit([[0.0], [1.0]], [0, 1]),
    ],
)
def test_what_is_no_tree_of_gputree(other):
    """Was an AttributeError."""
    with pytest.raises(TypeError, match=r"Exports take a fitted estimator of gputree.*got "):
        export_text(other)


def test_the_error_is_called_by_its_name():
    model = gputree.DecisionTreeRegressor(criterion="poisson", max_depth=1)
    text = export_text(model.fit([[0.0], [1.0], [2.0]], [1.0, 1.0, 4.0]))
    assert "(2, deviance 0)" in text
    assert "mse" not in text
    assert "deviance 0" in str(path_rules(model)[0])
