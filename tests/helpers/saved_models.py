"""Fitted models of every kind that files hold, and whether two are the same in every field."""

from functools import cache

import numpy as np
import pandas
from multiway_trees import N_CODES

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
    to_rules,
)
from gputree.columns import Columns
from gputree.datasets import load_auto_mpg, load_golf
from gputree.persistence import Contents
from gputree.persistence.codecs import ALGORITHMS, rebuild
from gputree.pruning import Pessimistic
from gputree.rules import RuleSet
from gputree.tree import Tree

RANDOM = np.random.default_rng(0)
N = 120
NUMBERS = RANDOM.normal(size=(N, 4))
NUMBERS[RANDOM.random((N, 4)) < 0.1] = np.nan
WORDS = np.array(["no", "perhaps", "yes"], dtype=object)[
    np.digitize(np.nan_to_num(NUMBERS[:, 0]) + np.nan_to_num(NUMBERS[:, 1]), [-0.5, 0.5])
]
TWO = WORDS == "yes"
CODES = np.unique(WORDS, return_inverse=True)[1]
FRAME = pandas.DataFrame(
    {
        "größe, m": NUMBERS[:, 0],
        "kind": pandas.Categorical(RANDOM.choice(list("abc"), N), ["c", "b", "a", "never"]),
        "text": np.where(NUMBERS[:, 1] > 0, "many", "few"),
        "noise": RANDOM.integers(0, 3, N),
    }
)
FRAME.loc[::7, "text"] = None
COSTS = {("yes", "no"): 5.0, ("no", "yes"): 0.25}
COSTS_IN_A_FRAME = pandas.DataFrame([[0, 3], [1, 0]], [True, False], [True, False])
WEIGHT = RANDOM.integers(0, 4, N)
GOLF, CARS = load_golf(), load_auto_mpg()
HARD = np.array([5e-324, -0.0, 1 / 3, 1e308, np.nextafter(1.0, 2.0), -1e-310])

# Columns of every type that a table may have.
MIXED = pandas.DataFrame(
    {
        "text": ["b", None, "a", "größe", "", "b"],
        "truth": [True, False, True, True, False, False],
        "mixed": pandas.Series(["x", 3, 2.5, True, None, "x"], dtype=object),
        "declared": pandas.Categorical(list("uvuvuv"), ["w", "v", "u"]),
        "of_integers": pandas.Categorical([2**60, 1, 1, 1, 2**60, 1]),
        "of_floats": pandas.Categorical([0.1, 0.2, 0.1, None, 0.2, 0.1], [0.2, np.inf, 0.1]),
        "number": [0.5, np.nan, 1.0, 2.0, 3.0, 4.0],
    }
)

CART, SHARES = DecisionTreeClassifier, ["maybe", "no", "perhaps", "yes"]
LABELS = {
    "str": WORDS.astype(str),
    "object": WORDS,
    "int64": CODES * 10**12 - 5,
    "int8": CODES.astype(np.int8),
    "float64": CODES / 1.0,
    "float32": CODES.astype(np.float32),
    "bool": TWO,
    "large": np.where(TWO, 2**62 + 1, 2**62 + 3),
}
# Name: estimator, table, labels or targets, and perhaps weights.
TREES = {
    f"labels, {name}": (CART(max_depth=2, class_weight="balanced"), NUMBERS, labels)
    for name, labels in LABELS.items()
} | {
    "ID3": (ID3Classifier(), GOLF.data, GOLF.target),
    "a pruner": (C45Classifier(pruning=Pessimistic(0.1)), GOLF.data, GOLF.target),
    "class weights": (CART(class_weight={0: 1.0, 1: 2.5, 2: 1}), NUMBERS, CODES),
    "regression": (DecisionTreeRegressor(), CARS.data, CARS.target, np.linspace(0.1, 3, 398)),
    "poisson": (DecisionTreeRegressor(criterion="poisson", max_depth=4), CARS.data, CARS.target),
    "hard numbers": (DecisionTreeRegressor(), HARD[:, None], np.arange(6) / 7),
    "infinite threshold": (DecisionTreeRegressor(), [[1.0], [np.nan], [2.0]], [0.0, 1.0, 0.0]),
    "truth": (CART(), np.array([[True], [False]]), [True, False]),
    "every type": (C45Classifier(pruning=None), MIXED, list("abcabc")),
    "every type, ID3": (ID3Classifier(pruning=None), MIXED, list("abcabc")),
    "subsets": (CART(), FRAME, WORDS, WEIGHT),
    "winnowed": (C45Classifier(winnow=True, random_state=1), FRAME, WORDS),
    "soft thresholds": (C45Classifier(soft_thresholds=True), NUMBERS, WORDS),
    "laplace": (C45Classifier(laplace=True), FRAME, WORDS),
    "monotonic": (CART(monotonic_cst=[1, 0, 0, 0]), NUMBERS, TWO),
    "costs of two": (C45Classifier(misclassification_costs={(True, False): 4.0}), FRAME, TWO),
    "costs in a frame": (CART(misclassification_costs=COSTS_IN_A_FRAME), FRAME, TWO),
}
ONLY_IN_MODEL_FILES = {
    "costs of three": (C45Classifier(misclassification_costs=COSTS), FRAME, WORDS),
    "boosted, numbers": (BoostedC45Classifier(n_trials=4), NUMBERS, WORDS),
    "boosted, a frame": (BoostedC45Classifier(n_trials=3, pruning=None), FRAME, WORDS),
    "boosted, weights": (BoostedC45Classifier(n_trials=3), FRAME, TWO, WEIGHT),
    "boosted, costs": (
        BoostedC45Classifier(n_trials=3, misclassification_costs=COSTS), FRAME, WORDS,
    ),
    "boosted, costs in a frame": (
        BoostedC45Classifier(n_trials=2, misclassification_costs=COSTS_IN_A_FRAME), FRAME, TWO,
    ),
    "boosted, soft thresholds": (
        BoostedC45Classifier(n_trials=3, soft_thresholds=True), NUMBERS, WORDS,
    ),
    "boosted, winnowed": (
        BoostedC45Classifier(n_trials=3, winnow=True, random_state=1), FRAME, WORDS,
    ),
    "boosted, shares and classes": (
        BoostedC45Classifier(
            n_trials=3, min_samples_split=0.05, class_weight={"yes": 2.0}, classes=SHARES,
            binary_splits=True,
        ), FRAME, WORDS,
    ),
    "boosted, one class": (BoostedC45Classifier(), NUMBERS, np.zeros(N, int)),
    "forest": (RandomForestClassifier(n_estimators=3, random_state=1), FRAME, WORDS),
    "forest, targets": (RandomForestRegressor(n_estimators=2, max_samples=0.5), NUMBERS, CODES),
    "forest, quantiles": (
        RandomForestRegressor(n_estimators=2, bootstrap=False, quantreg=True), FRAME, CODES, WEIGHT,
    ),
    "drawn cuts": (ExtraTreesClassifier(n_estimators=2), FRAME, WORDS),
    "drawn cuts, targets": (ExtraTreesRegressor(n_estimators=2), FRAME, CODES),
    "forest, all rows": (
        RandomForestClassifier(n_estimators=2, bootstrap=False), NUMBERS, TWO, WEIGHT,
    ),
    "rules, numbers": (C45Rules(), NUMBERS, WORDS),
    "rules, a frame": (C45Rules(rule_weight=0.25, n_jobs=1), FRAME, WORDS, WEIGHT),
    "rules, CART": (C45Rules(CART(max_depth=4)), FRAME, WORDS),
    "rules, ID3": (C45Rules(ID3Classifier(), redundancy=2.0), FRAME[["kind", "text"]], WORDS),
    "rules, costs": (
        C45Rules(
            C45Classifier(
                misclassification_costs={(True, False): 4.0}, winnow=True, random_state=0
            )
        ), FRAME, TWO,
    ),
    "rules, laplace": (C45Rules(C45Classifier(laplace=True, binary_splits=True)), FRAME, WORDS),
    "rules, monotonic": (C45Rules(CART(monotonic_cst=[1, 0, 0, 0])), NUMBERS, TWO),
    "rules, of a tree": (C45Classifier(), FRAME, WORDS),
    "rules, none": (C45Rules(), NUMBERS, np.zeros(N, int)),
    "boosted rules, numbers": (BoostedC45Rules(n_trials=3), NUMBERS, WORDS),
    "boosted rules, a frame": (BoostedC45Rules(n_trials=3, n_jobs=1), FRAME, WORDS, WEIGHT),
    "boosted rules, costs": (
        BoostedC45Rules(n_trials=3, misclassification_costs=COSTS), FRAME, WORDS,
    ),
    "boosted rules, winnowed": (
        BoostedC45Rules(n_trials=3, winnow=True, random_state=1), FRAME, WORDS,
    ),
    "boosted rules, parameters": (
        BoostedC45Rules(n_trials=2, confidence=0.1, rule_weight=0.25, min_samples_split=0.05),
        FRAME, WORDS,
    ),
    "boosted rules, none": (BoostedC45Rules(), NUMBERS, np.zeros(N, int)),
}  # fmt: skip
CASES = TREES | ONLY_IN_MODEL_FILES
FORESTS = [name for name in CASES if name.startswith(("forest", "drawn cuts"))]


@cache
def fitted(case):
    """The model of a case; it is not to be changed."""
    estimator, X, *rest = CASES[case]
    estimator.fit(X, *rest)
    return to_rules(estimator, X, *rest) if case == "rules, of a tree" else estimator


def estimator_of(tree):
    """A fitted estimator around a random tree."""
    words = ["a", "b'", 'c"', "<d>", "é", "", " g"]
    header = {
        "algorithm": "C45Classifier",
        "params": {},
        "classes": {"array": list(range(tree.n_classes)), "dtype": "<i8"},
        "feature_names": None,
        "categories": [{"array": words[:n], "dtype": "|O"} if n else None for n in N_CODES],
    }
    return rebuild("a test", Contents(header, [tree]), ALGORITHMS)


_NOT_STORED = {"unpruned_tree_", "growth_report_", "_packed"}


def assert_equal(found, expected):
    """The same in every field, however deep."""
    assert type(found) is type(expected)
    if isinstance(expected, Tree):
        assert found.equals(expected)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert list(map(repr, found.ravel())) == list(map(repr, expected.ravel()))
        assert found.shape == expected.shape
    elif isinstance(expected, Columns):
        assert_equal([found.nominal, found.categories], [expected.nominal, expected.categories])
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, dict):
        assert_equal(list(found.items()), list(expected.items()))
    elif isinstance(expected, RuleSet):  # which keeps what was computed from it
        for name in RuleSet.__dataclass_fields__:
            assert_equal(getattr(found, name), getattr(expected, name))
    elif hasattr(expected, "__dict__") and not callable(expected):
        names = vars(expected).keys() - _NOT_STORED
        assert vars(found).keys() - _NOT_STORED == names
        for name in names - {"misclassification_costs"}:
            assert_equal(getattr(found, name), getattr(expected, name))
        if isinstance(
            costs := getattr(expected, "misclassification_costs", None), pandas.DataFrame
        ):
            costs = expected.costs_  # kept as an array, by the order of the classes
        assert_equal(getattr(found, "misclassification_costs", None), costs)
    else:
        assert repr(found) == repr(expected)
