"""A table coded once: parts of it grow the trees of their rows alone."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from strategies import examples, random_sample

from gputree import CodedTable, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.backends.cpu import table as cpu_table
from gputree.growth import grower
from gputree.pruning import CostComplexityCV, ReducedError


@pytest.fixture
def codings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tables coded so far on the host, by their numbers of rows."""
    seen: list[int] = []
    code = cpu_table.code

    def count(table: Any, *args: Any) -> Any:
        seen.append(len(table.values))
        return code(table, *args)

    monkeypatch.setattr(cpu_table, "code", count)
    return seen


@pytest.fixture
def by_histograms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code small tables, too, and build only the subtrees of small nodes at once."""
    monkeypatch.setattr(grower, "FEWEST_ROWS", 8)
    monkeypatch.setattr(grower, "finish_rows", lambda *_: 24)


def table_of(kind: str, n: int = 300) -> tuple[Any, np.ndarray]:
    """Return a table and its target: numbers with missing values, or words and numbers."""
    sample = random_sample(5, n, 5, 0 if kind == "regression" else 3, False)
    if kind != "words":
        return sample.values, sample.y
    frame = pd.DataFrame(sample.values, columns=list("abcde"))
    frame["word"] = np.array(["red", "green", "blue", None, "grey"], object)[np.arange(n) % 5]
    frame["flag"] = np.array(["no", "yes"], object)[np.arange(n) % 7 % 2]
    return frame, sample.y


def estimator_of(kind: str, **params: Any) -> Any:
    estimator = DecisionTreeRegressor if kind == "regression" else DecisionTreeClassifier
    return estimator(**params)


def rows_of(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


@pytest.mark.parametrize("kind", ["classes", "regression", "words"])
@pytest.mark.usefixtures("by_histograms")
@given(st.integers(0, 1000), st.booleans())
@examples(15)
def test_the_tree_of_a_part_is_that_of_its_rows(kind, seed, weighted):
    X, y = table_of(kind, 150)
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), rng.integers(40, 80), replace=bool(seed % 2))
    weight = rng.integers(0, 3, rows.size).astype(float) if weighted else None
    part = CodedTable(X, max_bins=16).take(rows)
    alone = estimator_of(kind).fit(rows_of(X, rows), y[rows], weight)
    shared = estimator_of(kind).fit(part, y[rows], weight)
    assert shared.tree_.equals(alone.tree_)
    assert np.array_equal(shared.predict(X), alone.predict(X))
    assert np.array_equal(shared.predict(part), alone.predict(rows_of(X, rows)))


@pytest.mark.usefixtures("by_histograms")
def test_a_part_on_every_device(device):
    X, y = table_of("classes", 160)
    where = device.split("-")[0]
    table, on_host = CodedTable(X, device=where), CodedTable(X, device="cpu")
    for rows in (np.arange(160), np.arange(7, 160, 2)):
        alone = DecisionTreeClassifier(device="cpu").fit(X[rows], y[rows])
        binned = DecisionTreeClassifier(splitter="binned").fit(on_host.take(rows), y[rows])
        for expected in (alone, binned, alone):  # codes of both kinds are kept side by side
            model = DecisionTreeClassifier(splitter=expected.splitter)
            assert model.fit(table.take(rows), y[rows]).tree_.equals(expected.tree_)


def test_parts_of_parts_masks_and_places():
    X, y = table_of("classes")
    table, mask = CodedTable(X), np.arange(300) % 3 != 0
    assert table.take(mask).shape == (200, 5)
    assert len(table[mask, ...]) == 200
    part = table.take(mask).take([-1, 0, 5]).take(slice(1, None))
    expected = DecisionTreeClassifier().fit(X, y).predict_proba(X[mask][[0, 5]])
    assert np.array_equal(DecisionTreeClassifier().fit(table, y).predict_proba(part), expected)
    assert len(table.take([])) == 0
    with pytest.raises(IndexError):
        table.take([300])
    with pytest.raises(TypeError, match="columns stay together"):
        table[:, 1]
    with pytest.raises(ValueError, match="places of rows"):
        table.take([[1]])


def test_bins_are_those_of_the_whole_table():
    X, y = table_of("regression")
    rows, table = np.arange(0, 300, 3), CodedTable(X, max_bins=8)
    whole = DecisionTreeRegressor(splitter="binned").fit(table, y)
    alone = DecisionTreeRegressor(splitter="binned", max_bins=8).fit(X, y)
    assert whole.tree_.equals(alone.tree_)
    part = DecisionTreeRegressor(splitter="binned").fit(table.take(rows), y[rows])
    coded = table._table.on("cpu", 1).coded(8, False, 1)
    tree = part.tree_
    assert tree.n_nodes > 1
    for f, threshold in zip(
        tree.feature[~tree.is_leaf], tree.threshold[~tree.is_leaf], strict=True
    ):
        low, high = coded.highest[f][:, None], coded.lowest[f][None, :]
        with np.errstate(invalid="ignore"):
            between = 0.5 * low + 0.5 * high
        assert threshold == np.inf or (between == threshold).any()


# ------------------------------------------------------------- many fits, one coding
@pytest.mark.full
@pytest.mark.usefixtures("by_histograms")
def test_a_grid_codes_once(codings):
    X, y = table_of("classes")
    grid = {"max_depth": [2, 3, 4], "criterion": ["gini", "entropy"]}
    search = GridSearchCV(DecisionTreeClassifier(), grid, cv=4)
    arrays = clone(search).fit(X, y)
    codings.clear()
    found = search.fit(CodedTable(X), y)
    assert codings == [300]
    assert found.best_params_ == arrays.best_params_
    for name in ("mean_test_score", "std_test_score"):
        assert np.array_equal(found.cv_results_[name], arrays.cv_results_[name])


@pytest.mark.process
def test_processes_share_a_table():
    X, y = table_of("words")
    scores = cross_val_score(DecisionTreeClassifier(), CodedTable(X), y, cv=3, n_jobs=2)
    assert np.array_equal(scores, cross_val_score(DecisionTreeClassifier(), X, y, cv=3))


@pytest.mark.usefixtures("by_histograms")
def test_a_pickled_table_keeps_its_codes(codings):
    X, y = table_of("classes")
    table = pickle.loads(pickle.dumps(CodedTable(X).take(np.arange(200))))
    codings.clear()
    model = DecisionTreeClassifier().fit(table, y[:200])
    assert codings == []
    assert model.tree_.equals(DecisionTreeClassifier().fit(X[:200], y[:200]).tree_)


@pytest.mark.full
@pytest.mark.usefixtures("by_histograms")
@pytest.mark.parametrize("kind", ["classes", "regression", "words"])
def test_folds_of_the_pruner_share_one_coding(kind, codings, monkeypatch):
    X, y = table_of(kind)
    model = estimator_of(kind, pruning=CostComplexityCV(cv=KFold(4)))
    shared = clone(model).fit(X, y)
    assert len(codings) <= 1
    pruner = CostComplexityCV(cv=KFold(4))
    by_hand = pruner.prune(estimator_of(kind).fit(X, y), X, y)
    monkeypatch.setattr(type(model), "_shares_codes", False)
    copied = clone(model).fit(X, y)
    assert shared.tree_.equals(copied.tree_)
    assert by_hand.tree_.equals(copied.tree_)
    assert shared.unpruned_tree_.equals(copied.unpruned_tree_)


@pytest.mark.parametrize("words", [["red", "blue"], [f"w{i}" for i in range(400)]])
def test_rows_to_prune_by_may_have_categories_that_fit_did_not_see(words, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"word": rng.choice(words, 150), "x": rng.normal(size=150)})
    y = rng.integers(0, 3, 150)
    fitted = DecisionTreeClassifier().fit(frame, y)
    frame.loc[::7, "word"] = "never seen"
    pruned = CostComplexityCV(cv=KFold(3)).prune(fitted, frame, y)
    assert pruned.tree_.n_nodes <= fitted.tree_.n_nodes
    monkeypatch.setattr(DecisionTreeClassifier, "_shares_codes", False)
    assert pruned.tree_.equals(CostComplexityCV(cv=KFold(3)).prune(fitted, frame, y).tree_)


def test_folds_may_be_chosen_by_the_table(codings):
    X, y = table_of("words")

    class ByColumn:
        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

        def split(self, X, y=None, groups=None):
            for side in (X["flag"] == "no", X["flag"] == "yes"):
                yield np.flatnonzero(side), np.flatnonzero(~side)

    pruner = CostComplexityCV(cv=ByColumn())
    listed = DecisionTreeClassifier(categorical_features=["word", "flag"], pruning=pruner)
    by_hand = pruner.prune(clone(listed).set_params(pruning=None).fit(X, y), X, y)
    assert by_hand.tree_.equals(listed.fit(X, y).tree_)


@pytest.mark.parametrize("kind", ["classes", "words"])
def test_rows_held_out_are_a_part(kind):
    X, y = table_of(kind, 150)
    pruned = estimator_of(kind, pruning=ReducedError(random_state=3))
    growing, _ = ReducedError(random_state=3).hold_out(len(y))
    alone = estimator_of(kind).fit(rows_of(X, growing), y[growing])
    assert clone(pruned).fit(X, y).unpruned_tree_.equals(alone.tree_)
    table = CodedTable(X)
    assert clone(pruned).fit(table, y).tree_.equals(clone(pruned).fit(X, y).tree_)
    path, same = (DecisionTreeClassifier().cost_complexity_pruning_path(T, y) for T in (table, X))
    assert np.array_equal(path.ccp_alphas, same.ccp_alphas)


# -------------------------------------------------------------------- errors
def test_what_does_not_fit_is_told():
    X, y = table_of("words")
    table = CodedTable(X)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 7\)\)"):
        DecisionTreeClassifier().fit(table.take([]), y[:0])
    with pytest.raises(ValueError, match="makes categories of numbers"):
        ID3Classifier().fit(table, y)
    with pytest.raises(ValueError, match="give 'categorical_features' to CodedTable"):
        DecisionTreeClassifier(categorical_features=["word"]).fit(table, y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[300, 299\]"):
        DecisionTreeClassifier().fit(table, y[1:])
    model = DecisionTreeClassifier().fit(table, y)
    with pytest.raises(ValueError, match="X has 5 features, but DecisionTreeClassifier is expect"):
        model.predict(CodedTable(X[list("abcde")]))
    with pytest.raises(ValueError, match="coded otherwise"):
        model.predict(CodedTable(X.replace("red", "violet")))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(CodedTable(X.rename(columns={"a": "z"})))
    assert list(model.feature_names_in_) == [*"abcde", "word", "flag"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_bins": 1}, "The 'max_bins' parameter of CodedTable must be an int in the range"),
        ({"device": "gpu"}, "The 'device' parameter of CodedTable must be a str among"),
        ({"categorical_features": ["q"]}, "names columns, but X has no column names"),
    ],
)
def test_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        CodedTable(np.zeros((4, 2)), **params)


def test_a_table_must_be_finite():
    with pytest.raises(ValueError, match="contains infinity"):
        CodedTable([[1.0], [np.inf]])
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        CodedTable(np.zeros((0, 2)))


def test_the_table_is_told_in_a_line():
    assert repr(CodedTable(np.zeros((1500, 2)))) == (
        "CodedTable of 1,500 rows x 2 columns, device='cpu'"
    )


def test_a_coded_table_is_no_array():
    table = CodedTable([[1.0], [2.0]])
    for convert in (np.asarray, np.array, lambda t: np.asarray(t, float)):
        with pytest.raises(TypeError, match="holds codes, and is no array: pass X itself"):
            convert(table)


@pytest.mark.parametrize("kind", [np.inf, -np.inf])
def test_infinity_is_named_with_its_column(kind):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b col": [1.0, kind]})
    for fit in (CodedTable, lambda X: DecisionTreeClassifier(device="cpu").fit(X, [0, 1])):
        with pytest.raises(ValueError, match=r"infinity.*b col"):
            fit(frame)
