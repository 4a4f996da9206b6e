"""`TreeEditor`: alternatives compared with searches by hand, edits by their laws."""

import json
from itertools import combinations

import numpy as np
import pandas
import pytest
from oracles import impurity_of_rows
from sklearn.base import clone
from tunings import HOST, tuned

from gputree import (
    C45Classifier,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    RandomForestClassifier,
    export_text,
    load_model,
    save_model,
)
from gputree.backends.cpu.partition import BLOCK_ROWS
from gputree.base.dtypes import NO_FEATURE
from gputree.datasets import load_golf, load_iris
from gputree.editing import TreeEditor
from gputree.export import export_sql

WEIGHTS = {"no": None, "integers": [1, 2, 3], "fractions": [0.25, 0.7, 1.3]}


def table(seed: int, missing: float = 0.1, n: int = 60):
    """A frame of numbers and categories, classes and targets that depend on it."""
    rng = np.random.default_rng(seed)
    X = pandas.DataFrame(
        {
            "size": rng.normal(size=n).round(1),
            "count": rng.integers(0, 6, n).astype(float),
            "colour": rng.choice(["red", "green", "blue", "grey"], n),
            "sex": rng.choice(["m", "f"], n),
        }
    )
    signal = X["size"] + (X["colour"] == "red") + 0.7 * rng.normal(size=n)
    X = X.mask(pandas.DataFrame(rng.random(X.shape) < missing, columns=X.columns))
    return X, np.digitize(signal, [0.0, 1.0]), signal.to_numpy().round(2)


def weights(kind: str, n: int, seed: int = 0):
    """Weights of rows of a kind of `WEIGHTS`."""
    return None if kind == "no" else np.random.default_rng(seed).choice(WEIGHTS[kind], n)


def best_gain(column, y, weight, criterion: str, least: int) -> float:
    """Highest gain of any cut or subset of a column, of any side for missing values."""
    missing = column.isna().to_numpy()
    values = sorted(set(column[~missing]))
    if column.dtype.kind == "f":
        lefts = [(column <= v).to_numpy() for v in values]  # the last one: present or missing
    else:
        sets = [s for k in range(1, len(values) + 1) for s in combinations(values, k)]
        lefts = [column.isin(s).to_numpy() for s in sets]
    total, best = impurity_of_rows(criterion, y, weight) * weight.sum(), -np.inf
    for left in lefts:
        for side in (left, left | missing):
            if least <= side.sum() <= len(side) - least:
                parts = (
                    impurity_of_rows(criterion, y[s], weight[s]) * weight[s].sum()
                    for s in (side, ~side)
                )
                best = max(best, (total - sum(parts)) / weight.sum())
    return best


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_alternatives_are_the_best_of_all_cuts(criterion, kind):
    """Every cut and subset of each column is tried by hand, at the nodes of a small tree."""
    X, classes, target = table(len(criterion) + len(kind))
    is_target = criterion == "squared_error"
    y, estimator = (
        (target, DecisionTreeRegressor) if is_target else (classes, DecisionTreeClassifier)
    )
    given = weights(kind, len(X))
    unfitted = estimator(criterion=criterion, max_depth=2, min_samples_leaf=3)
    editor = TreeEditor(unfitted, X, y, given)
    weight = np.ones(len(X)) if given is None else given
    for node in editor.numbers:
        rows = editor.rows(int(node))
        part = X.iloc[rows]
        expected = {
            name: gain
            for name in X
            if len(set(y[rows])) > 1  # else there is nothing to split
            and (gain := best_gain(part[name], y[rows], weight[rows], criterion, 3)) > -np.inf
        }
        found = {one.column: one.gain for one in editor.alternatives(int(node))}
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_agreement_is_what_counting_gives():
    X, y, _ = table(3, missing=0.2)
    weight = weights("fractions", len(X))
    editor = TreeEditor(DecisionTreeClassifier(max_depth=2), X, y, weight)
    used, *others = editor.alternatives(0)
    assert used.is_used
    assert (used.agreement, used.adjusted) == (1.0, 1.0)

    def first(one, row):
        if one.threshold is not None:
            return row[one.column] <= one.threshold
        return row[one.column] in one.categories

    for one in others:
        total = left = same = other = 0.0
        for (_, row), w in zip(X.iterrows(), weight, strict=True):
            if pandas.isna(row[used.column]):
                continue
            total += w
            left += w * first(used, row)
            if not pandas.isna(row[one.column]):
                agrees = first(used, row) == first(one, row)
                same, other = same + w * agrees, other + w * (not agrees)
        most = max(left, total - left) / total
        agreement = max(same, other) / total
        assert one.agreement == pytest.approx(agreement)
        assert one.adjusted == pytest.approx((agreement - most) / (1 - most))
        assert one.is_reversed == (other > same)


ESTIMATORS = {
    "cart": DecisionTreeClassifier(max_depth=4),
    "drawn": DecisionTreeClassifier(max_features=2, ties="random", random_state=1),
    "random": DecisionTreeClassifier(splitter="random", random_state=2, max_depth=5),
    "few_bins": DecisionTreeClassifier(max_bins=4, max_depth=4),
    "binned": DecisionTreeClassifier(max_bins=4, splitter="binned", max_depth=4),
    "costs": DecisionTreeClassifier(class_weight="balanced", max_depth=4),
    "regression": DecisionTreeRegressor(min_samples_leaf=3),
    "c45": C45Classifier(pruning=None, collapse=False),
    "c45_binary": C45Classifier(pruning=None, collapse=False, binary_splits=True, laplace=True),
    "pairwise": DecisionTreeClassifier(interaction_cst="pairwise", max_depth=5),
    "c45_groups": C45Classifier(pruning=None, interaction_cst=[[0, 2], [1, 2, 3]]),
    "id3": ID3Classifier(max_depth=3, categorical_features=["count"]),
}


def edited(name: str, kind: str = "integers"):
    """An editor of one of the estimators, fitted."""
    X, classes, target = table(7, n=40)
    y = target if name == "regression" else classes
    if name == "id3":
        X = X[["count", "colour", "sex"]]
    weight = weights(kind, len(X))
    return TreeEditor(ESTIMATORS[name].fit(X, y, weight), X, y, weight), X, y, weight


@pytest.mark.parametrize("name", ESTIMATORS)
def test_regrowth_of_any_node_is_the_tree_that_was_fitted(name):
    editor, *_ = edited(name, "fractions")
    fitted = editor.estimator.tree_
    limit = editor.estimator.max_depth or 99
    for node in np.flatnonzero((fitted.depth < limit) & (fitted.weight > 0))[::6].tolist():
        editor.grow(node)
        tree = editor.estimator.tree_
        tree.check()
        assert tree.equals(fitted)
        editor.undo()


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"drawn", "random", "binned"}))
def test_the_first_alternative_is_the_split_of_growth(name):
    editor, *_ = edited(name)
    fitted = editor.estimator.tree_
    for node in np.flatnonzero(~fitted.is_leaf)[::2].tolist():
        first = editor.alternatives(node, k=1)[0]
        assert first.is_used
        children = list(fitted.children(node))
        assert first.gain == fitted.gain[node]
        assert first.rows == fitted.n_rows[children].tolist()
        assert first.statistics == fitted.statistics[children].tolist()
        assert first.missing == fitted.missing_child[node]
        if first.threshold is not None:
            assert first.threshold == fitted.threshold[node]
        assert len(editor.rows(node)) == fitted.n_rows[node]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_edits_are_undone_and_replayed_bit_for_bit(name):
    editor, X, y, weight = edited(name)
    trees = [editor.estimator.tree_]
    inner = 1 + int(np.flatnonzero(trees[0].n_children[1:])[0])
    edits = [
        lambda: editor.prune(inner),
        lambda: editor.split(0, "colour"),
        lambda: editor.grow(0),
        lambda: editor.split(0, "count"),
        lambda: editor.prune([0]),
    ]
    for edit in edits:
        edit()
        trees.append(editor.estimator.tree_)
        trees[-1].check()
    assert not trees[1].equals(trees[0])
    assert trees[-1].n_nodes == 1 < trees[-2].n_nodes
    for tree in reversed(trees[:-1]):
        editor.undo()
        assert editor.estimator.tree_ is tree
    for tree in trees[1:]:
        editor.redo()
        assert editor.estimator.tree_ is tree
    for other in (editor.replay(editor.history), editor.replay(editor.history, X, y, weight)):
        assert other.skipped == []
        assert other.history == editor.history
        assert other.estimator.tree_.equals(trees[-1])


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, C45Classifier])
def test_columns_of_a_node_are_those_that_constraints_leave(kind):
    X, y, _ = table(7)
    editor = TreeEditor(kind(max_depth=3, interaction_cst=[["size", "count"]]), X, y)
    groups = {"size", "count"}, {"colour", "sex"}
    assert {one.column for one in editor.alternatives(0)} == groups[0] | groups[1]
    editor.split(0, "count")
    (first, second) = editor.numbers[1:3].tolist()
    for node in (first, second):
        assert {one.column for one in editor.alternatives(node)} <= groups[0]
        editor.grow(node)
    used = set(editor.estimator.tree_.feature.tolist()) - {NO_FEATURE}
    assert used <= {0, 1}
    with pytest.raises(ValueError, match=r"Column 'sex' may not split node .* interaction_cst"):
        editor.split(first, "sex")
    assert editor.apply([{"edit": "split", "path": [0], "column": "sex"}])


@pytest.mark.parametrize("name", ["cart", "drawn", "random", "c45", "pairwise", "id3"])
def test_excluded_columns_take_no_part_in_growth(name):
    """The tree is that of a table without them, or of one where they are constant."""
    editor, X, y, weight = edited(name)
    exclude = ["colour", "sex"]
    editor.grow(0, exclude=exclude)
    grown = editor.estimator.tree_
    columns = X.columns.get_indexer(exclude)
    assert not set(columns) & set(grown.feature.tolist())
    if name not in ("drawn", "random", "pairwise"):  # which number or draw columns
        constant = TreeEditor(clone(ESTIMATORS[name]), X.assign(colour="red", sex="f"), y, weight)
        found = constant.estimator.tree_
        assert found.n_rows.tolist() == grown.n_rows.tolist()
        assert found.gain.tolist() == grown.gain.tolist()
    editor.grow(0, exclude=X.columns.tolist())
    assert editor.estimator.tree_.n_nodes == 1
    assert editor.replay(editor.history).estimator.tree_.n_nodes == 1
    with pytest.raises(ValueError, match="'exclude' lists columns by name or index, got 'sex'"):
        editor.grow(0, exclude="sex")
    with pytest.raises(ValueError, match="There is no column 'sez'"):
        editor.grow(0, exclude=["sez"])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_sides_of_cuts_inside_bins_are_what_counting_gives(kind, weighted):
    """Cuts inside the three bins of a column, over blocks of rows of which the last is not full."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2 * BLOCK_ROWS + 7, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    label, weight = rng.integers(0, 3, len(X)), np.ones(len(X))
    if weighted:
        weight = rng.integers(1, 4, len(X)).astype(float)
    model = kind(max_bins=3, max_depth=2)
    editor = TreeEditor(model, X, label, weight if weighted else None)
    for node in editor.numbers.tolist():
        rows = editor.rows(node)
        for one in editor.alternatives(node):
            x, w, y = X[rows, int(one.column[1:])], weight[rows], label[rows]
            cut = np.inf if one.threshold is None else one.threshold  # missing values alone
            first = (x <= cut) | (np.isnan(x) & (one.missing == 0))
            assert one.rows == [first.sum(), (~first).sum()]
            for side, found in zip((first, ~first), one.statistics, strict=True):
                expected = np.bincount(y[side], w[side], 3)
                if kind is DecisionTreeRegressor:
                    expected = [np.average(y[side], weights=w[side])]
                assert found == pytest.approx(expected)


def test_a_split_by_hand_is_that_of_the_alternative():
    for name in ("cart", "regression", "c45_binary"):
        editor, *_ = edited(name)
        for one in editor.alternatives(0):
            editor.split(0, one.column)
            best = editor.estimator.tree_
            editor.split(0, one.column, one.threshold, one.categories)
            found = editor.estimator.tree_
            assert found.n_rows.tolist() == best.n_rows.tolist() == [40, *one.rows]
            assert found.gain[0] == pytest.approx(best.gain[0])
            assert found.equals(best) or name == "c45_binary"


@pytest.mark.parametrize(
    ("limits", "y", "weight"),
    [
        ({"criterion": "poisson"}, [3, 3, 0, 0, 1], [2, 3, 3, 3, 1]),  # 0 and 0: no events
        ({"min_weight_fraction_leaf": 0.4}, [2, 3, 2, 2, 3], [3, 2, 2, 2, 3]),  # 4 of 12: light
    ],
)
def test_missing_values_go_to_a_side_that_growth_admits(limits, y, weight):
    X = np.array([[0.0], [0], [1], [1], [np.nan]])
    editor = TreeEditor(DecisionTreeRegressor(max_depth=1, **limits), X, y, weight)
    grown = editor.estimator.tree_
    editor.split(0, 0, threshold=0.5)
    assert editor.estimator.tree_.equals(grown)
    assert grown.missing_child[0] == 1


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, C45Classifier])
def test_thresholds_are_not_rounded_to_the_type_of_a_table(kind):
    """Rows of a node are those that reach it: 0.2 in float32 is above 0.2."""
    X = np.array([[0.1], [0.1], [0.2], [0.2], [0.3]], np.float32)
    editor = TreeEditor(kind(min_samples_leaf=1), X, [0, 0, 1, 1, 1])
    editor.split(0, 0, threshold=0.2)
    edited = editor.estimator
    assert edited.tree_.n_rows.tolist() == [5, 2, 3]
    assert edited.apply(X).tolist() == [1, 1, 2, 2, 2]


def test_alternatives_can_be_chosen_as_they_are_shown():
    X = pandas.DataFrame({"a": [1.0, 1, 1, np.nan, np.nan, np.nan]})
    editor = TreeEditor(DecisionTreeClassifier(), X, [0, 0, 0, 1, 1, 1])
    (one,) = editor.alternatives(0)
    assert (one.condition, one.threshold) == ("a is present", None)
    assert repr(editor.alternatives(0)) == str(editor.alternatives(0))
    assert "Infinity" not in editor.alternatives(0).to_json()
    golf = editor_of_golf()
    assert [one.is_used for one in golf.alternatives(0)] == [True, False, False, False]
    assert all(one.categories is None for one in golf.alternatives(0))


def test_edits_that_no_longer_apply_are_left_out_for_any_reason():
    editor = TreeEditor(DecisionTreeClassifier(max_depth=2), X_, Y_)
    size = {"edit": "split", "path": [], "column": "size"}
    found = editor.apply(
        [
            {"edit": "grow", "path": [], "limits": {"criterion": "poisson"}},
            {"edit": "grow", "path": [], "limits": {"laplace": True}},
            size | {"threshold": 10**400},
            {"edit": "grow", "path": []},
        ]
    )
    assert len(found) == 3
    editor.grow(0, max_depth=np.int64(2))  # as JSON has it
    assert json.loads(json.dumps(editor.history))[-1]["limits"] == {"max_depth": 2}
    editor.prune(range(1))
    assert editor.estimator.tree_.n_nodes == 1


def test_numbers_last_as_long_as_their_nodes():
    editor = TreeEditor(DecisionTreeClassifier(max_depth=4), *table(7)[:2])
    before = editor.numbers
    rows = {int(node): editor.rows(int(node)).tolist() for node in before}
    editor.prune(1)
    editor.grow(1)
    editor.split(2, "count", threshold=2.0)
    kept = [int(node) for node in editor.numbers if node in rows]
    assert {0, 1, 2} <= set(kept)
    assert all(editor.rows(node).tolist() == rows[node] for node in kept)
    new = sorted(set(editor.numbers.tolist()) - set(before.tolist()))
    assert new
    assert min(new) == before.size
    assert editor.rows((1, 0)).size + editor.rows((1, 1)).size == len(rows[2])


def test_words_of_nodes():
    X, y, _ = table(7, missing=0.0)
    editor = TreeEditor(DecisionTreeClassifier(max_depth=1), X, y, validation=(X, y))
    editor.split(0, "size", threshold=0.25)
    editor.split(3, "colour", categories=["red", "blue"])
    assert editor.path(5) == ["size <= 0.25", "colour in {blue, red}"]
    assert str(editor).splitlines()[:2] == ["0: all rows", "3: size <= 0.25"]
    found = editor.summary(3)
    assert found["rows"] == found["validation_rows"] == (X["size"] <= 0.25).sum()
    labels = y[X["size"] <= 0.25]
    assert found["validation_loss_as_leaf"] == len(labels) - np.bincount(labels).max()
    assert found["validation_loss"] <= found["validation_loss_as_leaf"]
    opinions = editor.pruning(3)
    assert opinions.keys() == {
        "cost_complexity", "penalized_loss", "pessimistic", "reduced_error",
        "validation_pre_pruning",
    }  # fmt: skip
    printed = str(editor.alternatives(3))
    assert "in use" in printed
    assert "agreement" in printed
    assert list(editor.alternatives(3).to_frame()["column"]) == [
        one.column for one in editor.alternatives(3)
    ]


def test_the_edited_estimator_is_an_ordinary_one(tmp_path):
    X, y, _ = table(5)
    editor = TreeEditor(DecisionTreeClassifier(max_depth=3), X, y)
    editor.split(0, "sex")
    editor.grow(editor.numbers[-1], max_depth=4, min_samples_leaf=2)
    model = editor.estimator
    assert export_text(model)
    assert "CASE" in export_sql(model)
    assert model.score(X, y) > 0.4
    save_model(model, tmp_path / "edited.gputree")
    loaded = load_model(tmp_path / "edited.gputree")
    assert loaded.tree_.equals(model.tree_)
    assert loaded.edits_ == editor.history
    again = TreeEditor(loaded, X, y)
    again.prune(0)
    assert again.history[:2] == editor.history
    assert not hasattr(loaded.fit(X, y), "edits_")


def test_replay_on_other_rows_says_what_no_longer_applies():
    X, y, _ = table(5)
    editor = TreeEditor(DecisionTreeClassifier(max_depth=3), X, y)
    editor.split(0, "colour", categories=["red", "grey"])
    editor.grow(editor.numbers[1], max_depth=3)
    editor.split(editor.numbers[2], "size")
    editor.prune(0)
    other = editor.replay(editor.history, X[X["colour"] != "grey"], y[X["colour"] != "grey"])
    assert [skipped.edit["edit"] for skipped in other.skipped] == ["split"]
    assert "has no category 'grey'" in str(other.skipped[0])
    without = editor.replay(editor.history, X.drop(columns="size"), y)
    assert "There is no column 'size'" in without.skipped[0].reason


def test_coded_tables_and_rows_without_weight():
    iris = load_iris()
    weight = np.arange(150) % 3 > 0
    coded = CodedTable(iris.data)
    tree = DecisionTreeClassifier().fit(coded, iris.target, weight)
    editor = TreeEditor(tree, coded, iris.target, weight)
    editor.grow(0)
    assert editor.estimator.tree_.equals(tree.tree_)
    assert weight[editor.rows((1,))].all()


def test_tables_in_batches_are_refused():
    iris = load_iris()
    coded = CodedTable.from_batches(lambda: [(iris.data, iris.target)])
    tree = DecisionTreeClassifier(max_depth=2).fit(coded, coded.target)
    with pytest.raises(ValueError, match="in the memory of the host: pass X itself"):
        TreeEditor(tree, coded, coded.target)
    assert str(TreeEditor(tree, iris.data, iris.target))


def test_sizes_of_the_search_decide_nothing():
    """Sub-bins and fine codes of large nodes, which these rows would be too few for."""
    X, y, _ = table(11, n=80)
    X["size"] += np.random.default_rng(0).normal(size=80)  # many distinct values
    tree = DecisionTreeClassifier(max_depth=2, max_bins=8).fit(X, y)
    expected = list(TreeEditor(tree, X, y).alternatives(0))
    for name in ("always", "found", "few cells"):
        with tuned(HOST[name]):
            assert list(TreeEditor(tree, X, y).alternatives(0)) == expected


def editor_of_golf():
    """An editor of the golf table's tree of C4.5."""
    golf = load_golf()
    return TreeEditor(C45Classifier, golf.data, golf.target)


X_, Y_, _T = table(1)
ERRORS = {
    "takes one of DecisionTreeClassifier": lambda _: TreeEditor(RandomForestClassifier(), X_, Y_),
    "monotonic constraints": lambda _: TreeEditor(
        DecisionTreeRegressor(monotonic_cst={"size": 1}), X_, _T
    ),
    "soft thresholds": lambda _: TreeEditor(C45Classifier(soft_thresholds=True), X_, Y_),
    "it was grown on 60 rows, got 50": lambda e: TreeEditor(e.estimator, X_[:50], Y_[:50]),
    "classes or mean target are": lambda e: TreeEditor(e.estimator, X_, np.sort(Y_) // 2),
    "node 1 has": lambda e: TreeEditor(e.estimator, X_[::-1].assign(size=0.0), Y_),
    "prune takes one node at least": lambda e: e.prune([]),
    "labels that the tree was not grown on": lambda e: TreeEditor(e.estimator, X_, Y_ + 7),
    "no node 99": lambda e: e.rows(99),
    "no node True. It has 0, 1": lambda e: e.prune(True),
    "must be a number, got True": lambda e: e.split(0, "size", threshold=True),
    "no node at": lambda e: e.prune((0, 0, 0, 0, 0)),
    "is a leaf already": lambda e: e.prune(int(e.numbers[-1])),
    "no column 'sise'": lambda e: e.split(0, "sise"),
    "split by 'categories'": lambda e: e.split(0, "colour", threshold=1.0),
    "split by 'threshold'": lambda e: e.split(0, "size", categories=["red"]),
    "'size' has both": lambda e: e.split(0, "size", 1.0, ["red"]),
    "as a list: .'red'.": lambda e: e.split(0, "colour", categories="red"),
    "no category 'rad'": lambda e: e.split(0, "colour", categories=["rad"]),
    "must be a number": lambda e: e.split(0, "size", threshold="big"),
    "go to one side": lambda _: TreeEditor(
        DecisionTreeClassifier, *load_iris(return_X_y=True)
    ).split(0, 0, threshold=99.0),
    "would go to one side": lambda _: TreeEditor(C45Classifier, *load_iris(return_X_y=True)).split(
        0, 0, threshold=-1.0
    ),
    "larger 'max_depth'": lambda e: e.grow(1, max_depth=1),
    "larger 'max_leaf_nodes'": lambda e: e.grow(1, max_leaf_nodes=2),
    "no limit 'depth'. Did you mean 'max_depth'": lambda e: e.grow(1, depth=1),
    "no limit of one subtree": lambda e: e.grow(1, monotonic_cst={"size": 1}),
    "which has no RandomState": lambda e: e.grow(1, random_state=np.random.RandomState(0)),
    "'criterion' is of the whole tree": lambda e: e.grow(1, criterion="entropy"),
    "'forced_splits' is of the whole tree": lambda e: e.grow(1, forced_splits={}),
    "'max_depth' parameter": lambda e: e.grow(1, max_depth="deep"),
    "k must be 1 or more": lambda e: e.alternatives(0, k=-1),
    "no edit to undo": lambda e: e.undo(),
    "no edit to redo": lambda e: e.redo(),
    "is no JSON": lambda e: e.replay("["),
    "is a list of edits": lambda e: e.replay(3),
    "Edit 0 of the history is of kind": lambda e: e.replay([{"edit": "cut"}]),
    "has the fields": lambda e: e.replay([{"edit": "grow", "node": 3}]),
    "no list of ordinals": lambda e: e.replay([{"edit": "grow", "path": ["a"]}]),
    "branch for every category": lambda _: editor_of_golf().split(0, 0, categories=["rain"]),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
    editor = TreeEditor(DecisionTreeClassifier(max_depth=2), X_, Y_)
    with pytest.raises((ValueError, TypeError), match=message):
        ERRORS[message](editor)
    assert editor.history == []
