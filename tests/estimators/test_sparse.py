"""Sparse matrices are taken as the dense arrays that they stand for."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

import gputree
from gputree import CodedTable
from gputree.backends.cpu.table import CpuTable
from gputree.base import memory
from gputree.columns import cells
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


@pytest.mark.parametrize("forest", [gputree.RandomForestRegressor, gputree.ExtraTreesRegressor])
def test_rows_descend_forests_as_dense_rows_do(monkeypatch, forest):
    """In blocks that share a buffer; in threads, out of the bag."""
    rng = np.random.default_rng(1)
    X, Z = awkward(rng), awkward(rng)
    y = rng.normal(size=50)
    monkeypatch.setattr(rows_of_sparse, "DENSE_BYTES", 1)
    monkeypatch.setattr(rows_of_sparse, "BIT_BYTES", 99)
    monkeypatch.setattr(answers, "FEWEST_ROWS", 1)
    model = forest(9, bootstrap=True, oob_score=True, quantreg=True, random_state=0, n_jobs=2)
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
        if X.dtype.kind == "c":  # the matrix that was given follows
            errors = [text.partition("\n")[0] for text in errors]
        assert errors[0] == errors[1]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_indices_that_lead_out_of_a_matrix_are_refused(kind):
    """SciPy would read other memory, and so would kernels."""
    tree = gputree.DecisionTreeClassifier().fit(DENSE, Y)
    nominal = gputree.DecisionTreeClassifier(categorical_features=[0]).fit(DENSE, Y)
    for name, place, value in (("indices", 3, 10**6), ("indices", 3, -1), ("indptr", 2, 10**6)):
        X = kind(DENSE)
        getattr(X, name)[place] = value
        for refuses in (lambda X: tree.fit(X, Y), tree.predict, nominal.predict):
            with pytest.raises(ValueError, match=r"ind(ex|ices|ptr)"):
                refuses(X)


def test_tables_that_do_not_fit_are_refused_where_all_values_are_read(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    X = sparse.random_array((1_000_000, 1_000), density=1e-7, format="csr", rng=0)
    tree = gputree.DecisionTreeClassifier(splitter="binned")
    words = r"sparse X of shape \(1000000, 1000\) .* takes at least 7.45 GiB .* 1 GiB are available"
    with pytest.raises(MemoryError, match=words):
        tree.fit(X, np.arange(1_000_000) % 2)
    booleans = sparse.csr_array((1_000_000, 2_000), dtype=bool)
    with pytest.raises(MemoryError, match=r"X\.astype\(np\.uint8\)\), which stay sparse"):
        tree.fit(booleans, np.ones(1_000_000))
    assert not hasattr(tree, "tree_")
    fitted = tree.fit(sparse.csr_array(np.eye(2, 1_000)), [0, 1])
    assert fitted.predict(X[:5000]).sum() == 5000


def of_few_values(kind, rng):
    """A sparse matrix of many columns, in one of the forms that SciPy and users make."""
    X = sparse.random_array((60, 70), density=0.05, format="coo", rng=rng)
    X.data = rng.choice([-1.0, 1.0, 2.5], X.nnz)
    row, column = X.coords
    if kind == "missing":
        X.data[::4] = np.nan
        return X.tocsr()
    if kind == "zeros":
        X.data[::3] = -0.0
        return X.tocsc()
    if kind == "short":
        return X.astype(np.int8).tolil()
    if kind == "empty":
        return sparse.csr_matrix((60, 70), dtype=np.float32)
    if kind == "wide indices":
        X = sparse.csr_matrix(X.astype(np.int64))
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        for field in (X.data, X.indices, X.indptr):
            field.flags.writeable = False
        return X
    order = rng.permutation(np.repeat(np.arange(row.size), 5))  # the order of sums counts
    values = rng.normal(size=order.size) * 10 ** rng.uniform(0, 16, order.size)
    row, column = row[order], column[order]
    if kind == "repeated":
        return sparse.coo_array((values, (row, column)), (60, 70))
    by_row = np.argsort(row, kind="stable")
    ends = np.searchsorted(row[by_row], np.arange(61))
    return sparse.csr_array((values[by_row], column[by_row], ends), (60, 70))


KINDS = ["missing", "zeros", "short", "empty", "wide indices", "repeated", "unsorted"]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("kind", KINDS)
def test_fits_of_few_values_make_no_dense_table(kind, monkeypatch):
    rng = np.random.default_rng(3)
    X, labels, targets = of_few_values(kind, rng), rng.integers(0, 3, 60), rng.normal(size=60)
    weight = rng.integers(0, 3, 60)
    tree = gputree.DecisionTreeClassifier(max_leaf_nodes=9, class_weight="balanced")
    forest = gputree.RandomForestRegressor(2, oob_score=True, quantreg=True, random_state=0)
    forest.set_params(max_depth=4, max_features="sqrt")
    dense = X.toarray()
    true, trees = clone(tree).fit(dense, labels, weight), clone(forest).fit(dense, targets, weight)
    monkeypatch.setattr(cells, "dense", lambda X: pytest.fail("a dense table is made"))
    table = CodedTable(X)
    for given in (X, table, pickle.loads(pickle.dumps(table))):
        assert tree.fit(given, labels, weight).tree_.equals(true.tree_)
        assert (tree.predict(given) == true.predict(dense)).all()
    forest.fit(X, targets, weight)
    assert all(one.tree_.equals(other.tree_) for one, other in zip(forest, trees, strict=True))
    assert forest.oob_score_ == trees.oob_score_
    np.testing.assert_array_equal(forest.predict_quantiles(X), trees.predict_quantiles(dense))


@pytest.mark.parametrize("kind", KINDS)
def test_cuts_that_are_drawn_are_those_of_the_dense_table(kind, monkeypatch):
    """The values themselves are read where no table counts as sparse."""
    rng = np.random.default_rng(5)
    X, labels, targets = of_few_values(kind, rng), rng.integers(0, 3, 60), rng.normal(size=60)
    weight, groups = rng.integers(0, 3, 60), [range(40), range(30, 70)]
    tree = gputree.DecisionTreeClassifier(splitter="random", interaction_cst=groups, random_state=0)
    forest = gputree.ExtraTreesRegressor(3, max_features=0.4, min_samples_leaf=2, random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(CpuTable, "is_sparse", False)
        true = clone(tree).fit(X.toarray(), labels, weight).tree_
        trees = clone(forest).fit(X.toarray(), targets)
    assert tree.fit(X.toarray(), labels, weight).tree_.equals(true)
    monkeypatch.setattr(cells, "dense", lambda X: pytest.fail("a dense table is made"))
    assert tree.fit(X, labels, weight).tree_.equals(true)
    forest.fit(X, targets)
    assert all(one.tree_.equals(other.tree_) for one, other in zip(forest, trees, strict=True))


def test_rows_of_a_sparse_table_are_those_of_the_dense_one():
    rng = np.random.default_rng(3)
    X, y = of_few_values("missing", rng), rng.normal(size=60)
    tree, taken = gputree.DecisionTreeRegressor(max_depth=3), rng.permutation(60)[:40]
    for rows in (taken, np.append(taken, taken[:5])):
        found = tree.fit(CodedTable(X).take(rows), y[rows]).tree_
        assert found.equals(tree.fit(X.toarray()[rows], y[rows]).tree_)


@pytest.mark.parametrize("kind", ["repeated", "unsorted"])
def test_cells_that_are_stored_repeatedly_are_sums_as_in_dense_tables(kind):
    X = of_few_values(kind, np.random.default_rng(3))
    assert (rows_of_sparse.SparseRows.of(X).dense == X.toarray()).all()
