"""Ten thousand rows through every format: the tree's answer to the bit, or an error that helps."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from multiway_trees import POLICIES, heaviest, heaviest_answers, random_multiway_tree, random_rows
from test_export_formats import by_lightgbm, by_onnx, by_treelite
from test_export_json import estimator_of
from test_export_sql import DATABASES, _servers, columns_of, in_each_database  # noqa: F401

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_json,
    load_model,
    read_json,
    save_model,
)
from gputree.dtypes import MISSING_TO_ALL
from gputree.export import (
    export_c,
    export_lightgbm,
    export_python,
    export_sql,
    to_onnx,
    to_sklearn,
    to_treelite,
)
from gputree.prediction import class_distributions

N_ROWS = 10_000
ONE_PATH = {"LightGBM": export_lightgbm, "ONNX": to_onnx, "treelite": to_treelite}
SPREADING = {"model file", "JSON", "Python", "C"}  # these send rows down several branches, too


def by_model_file(tree, values):
    path = f"{by_c.folder}/model"
    save_model(estimator_of(tree), path)
    return class_distributions(load_model(path).tree_, values), slice(None)


def by_json(tree, values):
    again = read_json(export_json(estimator_of(tree))).tree_
    return class_distributions(again, values), slice(None)


def by_python(tree, values):
    module = {}
    exec(export_python(tree), module)
    rows = values.astype(float).tolist()
    return np.array([module["predict_proba"](row) for row in rows]), slice(None)


def by_c(tree, values):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    text = export_c(tree) + (
        "void run(const double *x, int n, double *out) { for (int i = 0; i < n; i++)"
        "tree_predict(x + i * tree_n_features, out + i * tree_n_outputs); }"
    )
    library = f"{by_c.folder}/{abs(hash(text))}.so"
    command = [compiler, "-x", "c", "-std=c99", "-O1", "-shared", "-fPIC", "-", "-o", library]
    subprocess.run([*command, "-lm"], input=text.encode(), check=True)
    rows, out = values.astype(float), np.empty((len(values), tree.n_classes))
    run = ctypes.CDLL(library).run
    run(ctypes.c_void_p(rows.ctypes.data), len(rows), ctypes.c_void_p(out.ctypes.data))
    return out, slice(None)


FORMATS = {
    "model file": by_model_file,
    "JSON": by_json,
    "Python": by_python,
    "C": by_c,
    "LightGBM": by_lightgbm,
    "ONNX": by_onnx,
    "treelite": by_treelite,
}


def case(policy, seed):
    rng = np.random.default_rng([POLICIES.index(policy), seed])
    tree = random_multiway_tree(rng, 150, policy, n_classes=int(rng.integers(2, 5)))
    return tree, random_rows(rng, N_ROWS)


@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", FORMATS)
def test_shares(name, policy, tmp_path):
    by_c.folder = tmp_path
    tree, values = case(policy, len(name))
    if name not in SPREADING and (tree.missing_child[~tree.is_leaf] == MISSING_TO_ALL).any():
        with pytest.raises(ValueError, match="cannot represent this tree: it sends rows to all"):
            ONE_PATH[name](tree)
    found, exact = FORMATS[name](tree, values)
    expected = (class_distributions if name in SPREADING else heaviest_answers)(tree, values)
    assert np.array_equal(found[:, exact], expected[:, exact])


@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES)
@in_each_database
def test_nodes(dialect, policy, request):
    tree, values = case(policy, 99)
    if (tree.missing_child[~tree.is_leaf] == MISSING_TO_ALL).any():
        with pytest.raises(ValueError, match="cannot represent this tree: it sends rows to all"):
            export_sql(tree, dialect=dialect)
    query = export_sql(tree, dialect=dialect, output="node", table="rows", missing="largest")
    expected = [heaviest(tree, row) for row in values]
    assert DATABASES[dialect](query, columns_of(values)) == expected


@pytest.mark.full
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_scikit_learns_trees(kind):
    """Of numbers in float32, missing ones included, which it can hold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N_ROWS, 4)).astype(np.float32).round(2)
    X[rng.random(X.shape) < 0.2] = np.nan
    train, rows = X[:N_ROWS], X[N_ROWS:]
    model = kind().fit(train, rng.integers(0, 3, N_ROWS))
    theirs = to_sklearn(model)
    assert np.array_equal(theirs.apply(rows), model.apply(rows))
    assert np.array_equal(theirs.predict(rows), model.predict(rows))


WORDS = np.array(["Bern", "Kyiv", "L'Aquila", 'say "so"', "", "Lima", None], object)


@pytest.mark.full
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_fitted_estimators_asked_by_words(kind):
    """Numbers beside words, holes, and words that training did not have."""
    rng = np.random.default_rng(1)
    table = np.empty((N_ROWS, 3), object)
    table[:, 0], table[:, 2] = rng.normal(size=N_ROWS).round(3), rng.integers(0, 50, N_ROWS) / 4
    table[:, 1] = WORDS[rng.integers(0, WORDS.size, N_ROWS)]
    table[rng.random(N_ROWS) < 0.1, 0] = None
    y = rng.integers(0, 3, 2000)
    model = kind(max_depth=10).fit(table[:2000], y)
    table[rng.random(N_ROWS) < 0.1, 1] = "nowhere"
    expected = model.predict(table).tolist()
    module = {}
    exec(export_python(model), module)
    assert [module["predict"](row) for row in table.tolist()] == expected
    again = read_json(export_json(model))
    assert again.predict(table).tolist() == expected
    columns = {f"x{j}": table[:, j].tolist() for j in range(3)}
    for dialect in ("duckdb", "sqlite"):
        query = export_sql(model, dialect=dialect, table="rows")
        assert DATABASES[dialect](query, columns) == expected
