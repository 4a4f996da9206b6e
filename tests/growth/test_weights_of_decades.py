"""Weights of many decades: files are read again, and no better cut is missed.

The best cut is found by Fractions.
"""

from fractions import Fraction

import numpy as np
import pytest

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    export_json,
    load_model,
    read_json,
    save_model,
)
from gputree.growth import grower
from gputree.rules import BoostedC45Rules, C45Rules


# ------------------------------------------------------------------------------ files
def table(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    X = np.stack([rng.integers(0, 6, n) * 1.0, rng.random(n), rng.integers(0, 3, n) * 1.0], 1)
    words = X.astype(object)
    words[:, 2] = np.array(list("abc"), object)[X[:, 2].astype(int)]
    if seed % 3 == 0:
        words[rng.random(X.shape) < 0.2] = None
    w = 10.0 ** rng.uniform(-12, 0, n)
    if seed % 2:
        w = rng.choice([1e-12, 1e-9, 1e-6, 1e-3, 1.0], n)
    return X, words, rng.integers(0, 3, n), rng.exponential(size=n), w


KINDS = {  # with tables where gains exceeded their impurity
    "id3": (ID3Classifier, (33, 35, 47)),
    "regression": (DecisionTreeRegressor, (3, 39, 45, 55)),
}
OTHERS = {
    "id3, pruned": lambda: ID3Classifier(pruning="reduced_error"),
    "monotonic": lambda: DecisionTreeRegressor(monotonic_cst=[1, 0, 0]),
    "gini": DecisionTreeClassifier,
    "entropy": lambda: DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=7),
    "binned": lambda: DecisionTreeClassifier(splitter="binned", max_bins=4),
    "poisson": lambda: DecisionTreeRegressor(criterion="poisson"),
    "c45": C45Classifier,
    "c45, grown out": lambda: C45Classifier(pruning=None, min_samples_leaf=1e-3),
    "boosted": lambda: BoostedC45Classifier(n_trials=3),
    "boosted rules": lambda: BoostedC45Rules(n_trials=3),
    "rules": lambda: C45Rules(C45Classifier(pruning=None)),
}
TARGETS = ("regression", "monotonic", "poisson")


def through_files(name, make, seed, path):
    X, words, classes, targets, w = table(seed)
    cells = X if name == "monotonic" else words
    model = make().fit(cells, targets if name in TARGETS else classes, sample_weight=w)
    save_model(model, path)
    again = load_model(path)
    assert again.predict(cells).tolist() == model.predict(cells).tolist()
    if name not in ("boosted", "boosted rules", "rules"):
        assert again.tree_.equals(model.tree_)
        assert read_json(export_json(model)).tree_.equals(model.tree_)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_written_is_read(name, tmp_path):
    make, seeds = KINDS[name]
    for seed in seeds:
        through_files(name, make, seed, tmp_path / "m")


def test_large_targets_that_differ_little_are_read(tmp_path):
    """Their Poisson deviance is less than the rounding of a cut's decrease, which is below 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), 1e9 + rng.normal(size=60)
    model = DecisionTreeRegressor(criterion="poisson", splitter="random", random_state=0).fit(X, y)
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").tree_.equals(model.tree_)


@pytest.mark.full
@pytest.mark.parametrize("name", [*KINDS, *OTHERS])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_estimator_writes_what_it_reads(name, tmp_path):
    make = KINDS[name][0] if name in KINDS else OTHERS[name]
    for seed in range(150):
        through_files(name, make, seed, tmp_path / "m")


# ----------------------------------------------------------------------------- bounds
def decades(seed):
    """One row of weight and a target far out, all others light."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([6, 8, 12, 20, 40, 100, 300]))
    low = float(rng.choice([1e-3, 1e-4, 1e-6, 1e-8, 1e-10]))
    out = float(rng.choice([1, 1e3, 1e6, 1e9]))
    x = np.arange(n) * 1.0
    rng.shuffle(x)
    y, w = rng.random(n), low * rng.random(n) + low / 10
    y[0], w[0] = out, 1.0
    if rng.random() < 0.5:
        w = w * 10.0 ** rng.uniform(-3, 3, n)
        w[0] = max(w.max(), 1)
    X = np.stack([x, np.arange(n) == 0], 1).astype(float)
    return X, y, rng.integers(0, 3, n), w


def decrease(rows, y, w, is_classes):
    """Decrease of the weighted impurity by a side: sum of squares over weight, exactly."""
    weight = sum(w[i] for i in rows)
    if not is_classes:
        return sum(w[i] * y[i] for i in rows) ** 2 / weight
    return sum(sum(w[i] for i in rows if y[i] == k) ** 2 for k in set(y)) / weight


def best_and_found(X, y, w, is_classes, tree):
    """The highest decrease of any cut at the root, and that of the tree's; of the impurity."""
    y = y.tolist() if is_classes else [Fraction(v) for v in y.tolist()]
    w = [Fraction(v) for v in w.tolist()]
    n, best, of_tree = range(len(y)), Fraction(-1), Fraction(-1)
    for f in range(X.shape[1]):
        for cut in np.unique(X[:, f])[:-1]:
            left = [i for i in n if X[i, f] <= cut]
            found = decrease(left, y, w, is_classes) + decrease(
                [i for i in n if X[i, f] > cut], y, w, is_classes
            )
            best = max(best, found)
            if f == tree.feature[0] and left == [i for i in n if X[i, f] <= tree.threshold[0]]:
                of_tree = found
    return best, of_tree


FORMS = {
    "gini": (DecisionTreeClassifier, (198, 811, 927, 1244)),
    "squared error": (DecisionTreeRegressor, (2169, 2654)),
}


def grown_in_bins(monkeypatch, make, X, y, w, bins):
    """A tree of which every node is searched by histograms."""
    with monkeypatch.context() as all_the_way:
        all_the_way.setattr(grower, "FEWEST_ROWS", 0)
        all_the_way.setattr(grower, "finish_rows", lambda *_: 1)
        return make(max_depth=3, max_bins=bins).fit(X, y, w).tree_


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_bound_is_one_under_rounding(name, monkeypatch):
    make, seeds = FORMS[name]
    for seed in seeds:
        X, y, classes, w = decades(seed)
        target = classes if name == "gini" else y
        whole = make(max_depth=3).fit(X, target, w).tree_
        for bins in (2, 5):
            assert grown_in_bins(monkeypatch, make, X, target, w, bins).equals(whole)
        best, of_tree = best_and_found(X, target, w, name == "gini", whole)
        assert of_tree >= best * (1 - Fraction(1, 10**12))


@pytest.mark.full
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_search_for_better_cuts(criterion, monkeypatch):
    """Trees do not depend on bins, nor on how small subtrees are built."""
    is_classes = criterion in ("gini", "entropy")
    kind = DecisionTreeClassifier if is_classes else DecisionTreeRegressor

    def make(**options):
        return kind(criterion=criterion, **options)

    for seed in range(3000):
        X, y, classes, w = decades(seed)
        target = classes if is_classes else y
        whole = make(max_depth=3).fit(X, target, w).tree_
        found = grown_in_bins(monkeypatch, make, X, target, w, (2, 5)[seed % 2])
        assert found.equals(whole), seed
