"""Sparse matrices are taken as the dense arrays that they stand for."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

import gputree
from gputree import CodedTable
from gputree.base import memory
from gputree.export import explain, shap_values
from gputree.prediction import answers
from gputree.prediction import sparse as rows_of_sparse
from gputree.prediction.descent import walk

FORMATS = ["coo", "csr", "csc", "bsr", "lil", "dok", "dia"]
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((60, 5)) < 0.3, RNG.integers(1, 4, (60, 5)), 0).astype(np.float32)
Y = (DENSE[:, 0] + DENSE[:, 1] > 1).astype(int)
ESTIMATORS = [
    gputree.DecisionTreeClassifier(random_state=0),
    gputree.DecisionTreeRegressor(pruning="cost_complexity_cv", random_state=0),
    gputree.C45Classifier(),
    gputree.ID3Classifier(),
    gputree.BoostedC45Classifier(n_trials=2),
    gputree.C45Rules(),
    gputree.BoostedC45Rules(n_trials=2),
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_fits_and_predictions_are_those_of_the_dense_table(estimator, kind):
    X = sparse.coo_array(DENSE).asformat(kind)
    expected = estimator.fit(DENSE, Y).predict(DENSE)
    assert get_tags(estimator).input_tags.sparse
    found = estimator.fit(X, Y)
    assert np.array_equal(found.predict(X), expected)
    assert np.array_equal(found.predict(DENSE), expected)
    assert found.score(X, Y) == found.score(DENSE, Y)
    if hasattr(found, "tree_"):
        assert found.tree_.equals(estimator.fit(DENSE, Y).tree_)


def test_matrices_of_older_code_are_taken():
    X = sparse.csr_matrix(DENSE)
    tree = gputree.DecisionTreeClassifier(random_state=0).fit(X, Y)
    assert np.array_equal(shap_values(tree, X[:3]).values, shap_values(tree, DENSE[:3]).values)
    assert explain(tree, X[:3]) == explain(tree, DENSE[:3])
    table = CodedTable(X)
    assert gputree.DecisionTreeClassifier(random_state=0).fit(table, Y).tree_.equals(tree.tree_)


def test_one_hot_encoding_in_a_pipeline():
    """The default of OneHotEncoder is sparse; a search takes parts of it."""
    frame = pd.DataFrame({"c": np.array(["a", "b", "c"])[RNG.integers(0, 3, 60)], "x": DENSE[:, 0]})
    y = (frame["c"] == "a") | (frame["x"] > 1)
    encoder = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough",
                                      sparse_threshold=1.0)  # fmt: skip
    assert sparse.issparse(encoder.fit_transform(frame))
    model = make_pipeline(encoder, gputree.DecisionTreeClassifier(random_state=0))
    assert model.fit(frame, y).score(frame, y) == 1.0
    grid = {"decisiontreeclassifier__max_depth": [1, 4]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(frame, y)
    assert search.best_params_ == {"decisiontreeclassifier__max_depth": 4}


def awkward(rng):
    """A matrix with missing values, explicit zeros, negative ones, and cells stored twice."""
    X = sparse.csr_matrix(rng.choice([0, 0, 0, -1.5, 2.0, np.nan], (50, 7)))
    X.data[::5] = 0.0
    twice = sparse.coo_matrix(([1.0, 2.0], ([3, 3], [2, 2])), (50, 7)).tocsr()
    X = sparse.csr_matrix(X + twice)
    X.indices = np.append(X.indices, X.indices[-1:])
    X.data, X.indptr[-1] = np.append(X.data, 1.0), X.indptr[-1] + 1
    return X


@pytest.mark.parametrize("splits", [0, np.inf])
@pytest.mark.parametrize("forest", [gputree.RandomForestRegressor, gputree.ExtraTreesRegressor])
def test_rows_descend_forests_as_dense_rows_do(monkeypatch, forest, splits):
    """In blocks that share a buffer, or by paths of zeros; in threads, out of the bag."""
    monkeypatch.setattr(rows_of_sparse, "SPLITS_PER_LEVEL", splits)
    rng = np.random.default_rng(1)
    X, Z = awkward(rng), awkward(rng)
    y = rng.normal(size=50)
    monkeypatch.setattr(rows_of_sparse, "DENSE_BYTES", 1)
    monkeypatch.setattr(answers, "FEWEST_ROWS", 1)
    model = forest(24, bootstrap=True, oob_score=True, quantreg=True, random_state=0, n_jobs=2)
    found, dense = model.fit(X, y), Z.toarray()
    calls = [lambda X: found.decision_path(X)[0].toarray()]
    calls += [found.predict, found.apply, found.predict_quantiles]
    for call in calls:
        np.testing.assert_array_equal(call(Z.tocsc()), call(dense))
    plain = forest(3, random_state=0).fit(np.nan_to_num(X.toarray()), y)
    assert (plain.apply(Z) == plain.apply(dense)).all()
    for tree in found[:3]:
        assert (tree.apply(Z) == tree.apply(dense)).all()
    assert found.oob_score_ == model.fit(X.toarray(), y).oob_score_
    importances = [found.oob_permutation_importance(x, y).importances for x in (X, X.toarray())]
    np.testing.assert_array_equal(*importances)


def test_paths_of_zeros_lead_where_each_split_does():
    """Also from splits where missing values stay, in trees one after another."""
    rng = np.random.default_rng(2)
    X = awkward(rng)
    forest = gputree.RandomForestRegressor(4, random_state=0).fit(X, rng.normal(size=50))
    rows, packed = next(forest._parts(X)), forest._trees.packed(np.float64, 1)
    nodes = packed.joined[0].nodes.nodes
    numbers = np.concatenate([np.arange(tree.nodes.nodes.size) for tree in packed])
    nodes["missing"][::3] = numbers[::3]
    paths = rows_of_sparse.ZeroPaths.of(nodes, packed.joined[0].node_ends, 7)
    reached = paths.descend(rows, 3, 50)
    for tree, found in zip(packed, reached, strict=True):
        expected = np.empty(47, np.int32)
        walk(np.ascontiguousarray(rows[3:50]), tree.nodes, int(tree.depth[0]), expected)
        assert found.tolist() == expected.tolist()
    assert len(np.unique(reached)) > 9


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.float32, np.float64])
def test_trees_read_numbers_of_any_type_as_in_dense_rows(dtype):
    """Also trees that divide rows, and those that were fitted on categories."""
    X = DENSE.astype(dtype)
    for model in ESTIMATORS[:1], [gputree.C45Classifier(soft_thresholds=True)]:
        for categories in ("auto", [1]):
            tree = model[0].set_params(categorical_features=categories).fit(X, Y)
            Z = sparse.csc_array(X[::2])
            assert (tree.predict_proba(Z) == tree.predict_proba(X[::2])).all()
            assert (tree.decision_path(Z) != tree.decision_path(X[::2])).nnz == 0
            assert tree.report(Z, Y[::2]).as_dict() == tree.report(X[::2], Y[::2]).as_dict()
        model[0].set_params(categorical_features="auto")


def test_errors_of_sparse_rows_are_those_of_dense_rows():
    tree = gputree.DecisionTreeClassifier().fit(DENSE, Y)
    bad = sparse.csr_array(np.where(DENSE == 1, np.inf, DENSE))
    for X in (bad, bad[:, :3], bad[:0], sparse.coo_array(np.ones(5)), bad.astype(complex)):
        errors = []
        for given in (X, X.toarray()):
            with pytest.raises(ValueError) as error:  # noqa: PT011
                tree.predict(given)
            errors.append(str(error.value))
        assert errors[0] == errors[1]


@pytest.mark.parametrize("given", [{"splitter": "random"}, {"splitter": "binned"}])
def test_tables_that_do_not_fit_are_refused_where_all_values_are_read(monkeypatch, given):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    X = sparse.random_array((1_000_000, 1_000), density=1e-7, format="csr", rng=0)
    tree = gputree.DecisionTreeClassifier(**given)
    words = r"sparse X of shape \(1000000, 1000\) .* takes at least 7.45 GiB .* 1 GiB are available"
    with pytest.raises(MemoryError, match=words):
        tree.fit(X, np.arange(1_000_000) % 2)
    assert not hasattr(tree, "tree_")
    fitted = gputree.DecisionTreeClassifier().fit(X, np.arange(1_000_000) == X.indices[0])
    assert fitted.predict(X[:5000]).sum() == 0
