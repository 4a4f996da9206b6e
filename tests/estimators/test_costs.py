"""Costs of misclassification: weights, decisions, and what is refused."""

import json

import numpy as np
import pytest
from databases import in_sqlite
from hypothesis import given
from hypothesis import strategies as st
from programs import walk_nested
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut
from sklearn.utils import compute_sample_weight
from strategies import examples

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    export_json,
    export_text,
    load_model,
    read_json,
    save_model,
)
from gputree.export import (
    explain,
    export_c,
    export_graphviz,
    export_html,
    export_lightgbm,
    export_python,
    export_sql,
    path_rules,
    to_dict,
    to_sklearn,
)
from gputree.pruning import CostComplexityCV, Pessimistic, ReducedError

KINDS = [C45Classifier, ID3Classifier, DecisionTreeClassifier, BoostedC45Classifier]
THREE = np.array([[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [20.0, 4.0, 0.0]])
TWO = np.array([[0.0, 1.0], [6.0, 0.0]])
FREE = np.array([[0, 1, 1], [0, 0, 0], [4, 1, 0]])  # errors of the second class cost nothing


def make(kind, **params):
    return kind(n_trials=3, **params) if kind is BoostedC45Classifier else kind(**params)


def table(seed: int, n_classes: int = 3, n: int = 120):
    """Few values, so that ID3 learns, with noise; later classes are rarer."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 4)).astype(float)
    score = X[:, 0] + X[:, 1] - X[:, 2] + rng.normal(size=n)
    return X, np.digitize(score, [3.0, 5.0][: n_classes - 1])


def trees_of(model):
    return [tree.tree_ for tree in getattr(model, "estimators_", [model])]


def same_trees(a, b):
    return all(x.equals(y) for x, y in zip(trees_of(a), trees_of(b), strict=True))


def naive_weights(y, costs):
    """Multiply the weight of each row by the cost of errors of its class; keep the total."""
    costly = np.array([sum(costs[k]) for k in y])
    return costly * (len(y) / costly.sum())


# --------------------------------------------------------------------- growth
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("costs", [THREE, TWO, FREE])
def test_rows_weigh_what_errors_of_their_class_cost(kind, costs):
    X, y = table(0, len(costs))
    weighted = make(kind).fit(X, y, naive_weights(y, costs))
    model = make(kind, misclassification_costs=costs).fit(X, y)
    assert not same_trees(model, make(kind).fit(X, y))
    for ours, theirs in zip(trees_of(model), trees_of(weighted), strict=True):
        for name in ("first_child", "feature", "threshold", "n_rows"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        np.testing.assert_allclose(ours.statistics, theirs.statistics, rtol=1e-9, atol=1e-12)


@examples(12)
@given(
    st.integers(0, 100),
    st.sampled_from([0.1, 3.0, 1 / 3, 7e9, 1e-8]),
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5, 10.0]), min_size=6, max_size=6),
)
def test_a_factor_of_all_costs_changes_nothing(seed, factor, errors):
    X, y = table(seed, n=60)
    costs = np.zeros((3, 3))
    costs[~np.eye(3, dtype=bool)] = errors
    if not costs[np.unique(y)].any():
        costs[0, 1] = 1.0
    one = C45Classifier(misclassification_costs=costs).fit(X, y)
    other = C45Classifier(misclassification_costs=factor * costs).fit(X, y)
    assert same_trees(one, other)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


# ---------------------------------------------------------------- predictions


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_least_expected_cost(kind):
    """Find them by a plain loop over classes, from the class proportions without cost weights."""
    X, y = table(0)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    costs = np.array([[0, 9, 1], [1, 0, 9], [9, 1, 0]])
    model = make(kind, misclassification_costs=costs, max_depth=2).fit(X, y)
    shares = model.predict_proba(X) / costs.sum(axis=1)
    expected = [[sum(row[i] * costs[i, j] for i in range(3)) for j in range(3)] for row in shares]
    found = np.searchsorted(model.classes_, model.predict(X))
    least = np.min(expected, axis=1)
    np.testing.assert_allclose(np.array(expected)[np.arange(len(X)), found], least, rtol=1e-12)
    other = model.predict_proba(X).argmax(axis=1)
    assert (found != other).any()


def test_two_classes_answer_with_the_class_of_most_weight():
    X, y = table(6, 2)
    model = C45Classifier(misclassification_costs=TWO).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), shares.argmax(axis=1))
    program: dict = {}
    exec(export_python(model), program)
    assert [program["predict"](row) for row in X.tolist()] == model.predict(X).tolist()


# -------------------------------------------------------------------- pruning
def test_pruning_counts_what_errors_cost():
    X, y = table(8)
    weight = naive_weights(y, THREE)
    grown = C45Classifier(misclassification_costs=THREE, pruning=None).fit(X, y)
    pruned = C45Classifier(misclassification_costs=THREE, pruning=Pessimistic()).fit(X, y)
    assert Pessimistic().prune(grown, X, y).tree_.equals(pruned.tree_)
    plain = C45Classifier(pruning=None).fit(X, y, weight)
    reduced = ReducedError().prune(grown, X[::2], y[::2]).tree_
    share = weight[::2] * (len(y[::2]) / naive_weights(y[::2], THREE).sum())
    assert reduced.n_leaves == ReducedError().prune(plain, X[::2], y[::2], share).get_n_leaves()


def same_tables(ours, theirs):
    assert ours.dtype == theirs.dtype
    for name in ours.dtype.names:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-12)


def cross_validated(model, X, y, weight=None, cv=10):
    pruner = CostComplexityCV(cv=cv, random_state=0)
    return pruner.prune(model.fit(X, y, weight), X, y, weight).get_n_leaves(), pruner.cp_table_


@pytest.mark.full
@pytest.mark.parametrize("cv", [10, LeaveOneOut()])
@pytest.mark.parametrize("costs", [TWO, THREE, FREE])
def test_cross_validated_pruning_counts_what_errors_cost(costs, cv):
    """Also where a fold lacks a class, or tests rows whose errors cost nothing."""
    X, y = table(9, len(costs), n=60)
    if len(costs) == 3:
        y[y == 2] = 0
        y[7] = 2
    weight = naive_weights(y, costs)
    ours = cross_validated(DecisionTreeClassifier(misclassification_costs=costs), X, y, cv=cv)
    theirs = cross_validated(DecisionTreeClassifier(), X, y, weight, cv)
    assert ours[0] == theirs[0]
    same_tables(ours[1], theirs[1])


@pytest.mark.parametrize("params", [{"misclassification_costs": TWO}, {"class_weight": {1: 6.0}}])
def test_the_cross_validated_error_of_the_root_is_one(params):
    X, y = table(9, 2)
    xerror = cross_validated(DecisionTreeClassifier(**params), X, y, cv=4)[1]["xerror"]
    assert xerror[0] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("class_weight", [{0: 0.3, 1: 2.0}, "balanced"])
def test_pruning_counts_class_weights(class_weight):
    X, y = table(10, n=100)
    weight = compute_sample_weight(class_weight, y)
    ours = cross_validated(DecisionTreeClassifier(class_weight=class_weight), X, y, cv=4)
    theirs = cross_validated(DecisionTreeClassifier(), X, y, weight, cv=4)
    assert ours[0] == theirs[0]
    same_tables(ours[1], theirs[1])
    other, answers = table(11, n=100)
    grown = DecisionTreeClassifier(class_weight=class_weight).fit(X, y)
    by_weight = compute_sample_weight(class_weight, answers)
    plain = DecisionTreeClassifier().fit(X, y, weight)
    expected = ReducedError().prune(plain, other, answers, by_weight).tree_
    assert ReducedError().prune(grown, other, answers).tree_.equals(expected)
    assert not ReducedError().prune(plain, other, answers).tree_.equals(expected)


def test_rows_to_prune_by_whose_errors_cost_nothing():
    X, y = table(4)
    model = DecisionTreeClassifier(misclassification_costs=FREE)
    held = y == 1
    assert ReducedError().prune(model.fit(X, y), X[held], y[held]).get_n_leaves() == 1


# ------------------------------------------------------------- a drop-in part
def test_pairs_of_labels():
    X, y = table(0)
    y = np.array(["low", "middle", "high"])[y]  # classes_ are high, low, middle
    pairs = {("high", "low"): 9.0, ("middle", "low"): 2.0, ("low", "high"): 0.5}
    costs = [[0, 9, 1], [0.5, 0, 1], [1, 2, 0]]
    of_pairs = C45Classifier(misclassification_costs=pairs).fit(X, y)
    of_array = C45Classifier(misclassification_costs=costs).fit(X, y)
    assert same_trees(of_pairs, of_array)
    np.testing.assert_array_equal(of_pairs.predict(X), of_array.predict(X))


def test_labels_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    X, y = table(0)
    y = np.array(["low", "middle", "high"])[y]  # classes_ are high, low, middle
    names = ["high", "low", "middle"]
    frame = pandas.DataFrame(THREE, names, names)
    expected = C45Classifier(misclassification_costs=THREE).fit(X, y).costs_
    mixed = frame.loc[["low", "middle", "high"], ["middle", "high", "low"]]
    for given_costs in (frame, mixed, pandas.DataFrame(THREE)):
        model = C45Classifier(misclassification_costs=given_costs).fit(X, y)
        np.testing.assert_array_equal(model.costs_, expected)
    for wrong in (frame.rename({"low": "Low"}), pandas.DataFrame(THREE, columns=names)):
        with pytest.raises(ValueError, match=r"have the classes .* as its index and as its col"):
            C45Classifier(misclassification_costs=wrong).fit(X, y)


@pytest.mark.parametrize("since", [None, THREE, {(0, 1): 2.0}, TWO, {(0, 3): 2.0}])
def test_files_take_no_costs_that_were_set_after_fit(since, tmp_path):
    X, y = table(1)
    model = C45Classifier(misclassification_costs=THREE.T).fit(X, y)
    model.set_params(misclassification_costs=since)
    with pytest.raises(ValueError, match="'misclassification_costs' parameter of C45Classifier"):
        save_model(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    save_model(model.set_params(misclassification_costs=2 * THREE.T), tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_costs_set_after_a_fit_without_them_say_what_to_do(tmp_path):
    model = C45Classifier().fit(*table(1)).set_params(misclassification_costs=THREE)
    with pytest.raises(ValueError, match="was set after fit: fit again, or set it back"):
        save_model(model, tmp_path / "model")
    with pytest.raises(ValueError, match="was set after fit: fit again, or set it back"):
        export_json(model)


def test_exports_that_would_answer_otherwise_are_refused():
    X, y = table(2)
    model = DecisionTreeClassifier(misclassification_costs=THREE, max_depth=3).fit(X, y)
    for export in (export_python, export_c, export_lightgbm, to_sklearn, export_json):
        with pytest.raises(ValueError, match="minimum of 'misclassification_costs'"):
            export(model)


def words_of_leaves(model):
    """Predictions of leaves in texts, from left to right."""
    return [line.rpartition(": ")[2].partition(" (")[0]
            for line in export_text(model).splitlines() if ": " in line]  # fmt: skip


@pytest.mark.parametrize(
    "model",
    [C45Classifier(), C45Classifier(laplace=True), ID3Classifier(), DecisionTreeClassifier()],
    ids=str,
)
def test_texts_name_the_class_of_the_least_expected_cost(model):
    X, y = table(2, n=200)
    model = clone(model).set_params(misclassification_costs=THREE, max_depth=3).fit(X, y)
    answers = model.predict(X)
    assert (answers != model.predict_proba(X).argmax(axis=1)).any()
    of_leaf = dict(zip(model.apply(X).tolist(), answers.tolist(), strict=True))
    rules = path_rules(model)
    told = {rule.node: rule.prediction for rule in rules}
    assert {leaf: told[leaf] for leaf in of_leaf} == {k: str(v) for k, v in of_leaf.items()}
    assert words_of_leaves(model) == [rule.prediction for rule in rules]
    assert [one.prediction for one in explain(model, X)] == list(map(str, answers))
    nested = to_dict(model)
    for row, answer in zip(X.tolist(), answers, strict=True):
        assert walk_nested(nested, {f"x{j}": x for j, x in enumerate(row)}) == answer
    assert "node" in export_graphviz(model)
    assert "node" in str(export_html(model))


def test_rows_down_all_branches_are_explained_by_the_least_cost():
    X, y = table(3)
    model = C45Classifier(misclassification_costs=THREE).fit(X, y)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    told = [one.prediction for one in explain(model, X)]
    assert told == list(map(str, model.predict(X)))


def test_sql_answers_with_the_least_cost():
    X, y = table(4)
    model = DecisionTreeClassifier(misclassification_costs=THREE, max_depth=5).fit(X, y)
    columns = {f"x{j}": X[:, j].tolist() for j in range(4)}
    query = export_sql(model, dialect="sqlite", table="rows")
    assert in_sqlite(query, columns) == model.predict(X).tolist()


def test_json_of_others_with_costs_that_decide_is_refused():
    X, y = table(5)
    plain = DecisionTreeClassifier(max_depth=3).fit(X, y)
    document = json.loads(export_json(plain))
    document["params"]["misclassification_costs"] = {"array": THREE.tolist(), "dtype": "<f8"}
    with pytest.raises(ValueError, match="'misclassification_costs' are of more than two classes"):
        read_json(json.dumps(document))
    for costs, message in (
        (TWO, "must have the shape"),
        (-THREE, "finite, non-negative"),
        (THREE + 1, "0 on the diagonal"),
        (np.ones((3, 3)) - np.eye(3), ""),
    ):
        document["params"]["misclassification_costs"]["array"] = costs.tolist()
        if message:
            with pytest.raises(ValueError, match=message):
                read_json(json.dumps(document))
        else:  # they change nothing
            again = read_json(json.dumps(document))
            np.testing.assert_array_equal(again.predict(X), plain.predict(X))


def test_trees_over_partitions_take_no_costs():
    pytest.importorskip("distributed")
    from gputree.distributed import DaskDecisionTreeClassifier

    with pytest.raises(ValueError, match="DaskDecisionTreeClassifier takes no 'misclassification_"):
        DaskDecisionTreeClassifier(misclassification_costs=TWO).fit(*table(0, 2))


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1], [1, 0]], r"have the shape \(n_classes, n_classes\) = \(3, 3\)\. Got an array of"),
        ([[0, 1, 1], [1, 0, 1]], r"have the shape .*Got an array of shape \(2, 3\)"),
        ([["a", "b", "c"]] * 3, r"be numbers and have the shape"),
        (np.full((3, 3), np.nan), r"hold finite, non-negative costs"),
        (-THREE, r"hold finite, non-negative costs"),
        (np.where(THREE > 9, np.inf, THREE), r"hold finite, non-negative costs"),
        (np.ones((3, 3)), r"contain 0 on the diagonal"),
        (np.zeros((3, 3)), r"hold an error that costs more than 0"),
        ({(0, 3): 2.0}, r"\(true, predicted\) of the classes \[0, 1, 2\].*Got the key \(0, 3\)"),
        ({0: 2.0}, r"\(true, predicted\) of the classes .*Got the key 0 instead"),
        ({(0, 1): "dear"}, r"hold numbers\. Got 'dear' for \(0, 1\)"),
        ({(0, 0): 1.0}, r"contain 0 on the diagonal"),
        (5, r"must be an array-like"),
        ("balanced", r"must be an array-like"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_errors(kind, costs, message):
    started = rf"The 'misclassification_costs' parameter of {kind.__name__} must"
    with pytest.raises(ValueError, match=started) as raised:
        kind(misclassification_costs=costs).fit(*table(0))
    raised.match(message)


def test_targets_without_classes():
    with pytest.raises(TypeError, match="targets have no classes"):
        DecisionTreeRegressor(misclassification_costs=TWO)


# -------------------------------------------------------------------- reports
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=3),
        BoostedC45Classifier(n_trials=2),
        BoostedC45Rules(n_trials=2),
        C45Rules(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_reports_tell_the_mean_cost(model, weighted):
    is_rules = isinstance(model, C45Rules)
    costs = TWO if is_rules else THREE
    name = "estimator__misclassification_costs" if is_rules else "misclassification_costs"
    X, y = table(6, len(costs), 60)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y)) if weighted else None
    model = clone(model.set_params(estimator=C45Classifier()) if is_rules else model)
    model.set_params(**{name: costs}).fit(X, y)
    spent = costs[y, model.predict(X)]
    found = model.report(X, y, weight).measures
    assert found["cost"] == pytest.approx(np.average(spent, weights=weight))
    assert "cost" not in clone(model).set_params(**{name: None}).fit(X, y).report(X, y).measures


def test_the_cost_of_classes_that_are_not_known_is_none():
    X, y = table(6)
    model = DecisionTreeClassifier(misclassification_costs=THREE, max_depth=3).fit(X, y)
    found = model.report(X, np.where(y == 2, 7, y))
    assert found.as_dict()["cost"] is None
