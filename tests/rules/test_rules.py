"""Rules from trees: each step against the obvious way to take it, and C4.5rules' own output."""

import json

import numpy as np
import pytest
import rules_oracle as slow
from databases import in_duckdb, in_sqlite
from hypothesis import example, given
from hypothesis import strategies as st
from mixed_tables import MixedTable, mixed_tables, random_mixed_table, random_mixed_tables
from sklearn.exceptions import NotFittedError
from strategies import examples

from gputree import (
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    to_rules,
)
from gputree.base.dtypes import UNSEEN
from gputree.datasets import load_contact_lenses, load_golf, load_iris
from gputree.pruning.error_limit import error_limit
from gputree.rules import coverage as masks_module
from gputree.rules import estimator as rules_module
from gputree.rules.conditions import Condition, rules_of_leaves
from gputree.rules.coverage import Masks, _transposed, coverage
from gputree.rules.estimator import _rows
from gputree.rules.learning import harmless, order_classes
from gputree.rules.selection import (
    MOST_TRIED,
    column_bits,
    exception_bits,
    rule_bits,
    select,
    starts,
)
from gputree.rules.simplification import WeightedRows, simplify

KINDS = {
    "c45": lambda nominal: C45Classifier(pruning=None, categorical_features=nominal),
    "cart": lambda nominal: DecisionTreeClassifier(categorical_features=nominal),
    "id3": lambda nominal: ID3Classifier(categorical_features=nominal),
}
TABLES = st.one_of(mixed_tables(), random_mixed_tables(60))
in_each_kind = pytest.mark.parametrize("kind", KINDS)


def grown(kind: str, table: MixedTable):
    """A tree, its coded rows, class codes and weights."""
    tree = KINDS[kind](table.nominal).fit(table.X, table.y, table.weight)
    y = np.searchsorted(tree.classes_, table.y)
    weight = np.ones(y.size) if table.weight is None else table.weight
    return tree, tree._values(table.X).astype(float), y, weight


# -------------------------------------------------- C4.5rules' own figures
WEATHER = [
    ("sunny", 85, 85, "false", "no"),
    ("sunny", 80, 90, "true", "no"),
    ("overcast", 83, 78, "false", "yes"),
    ("rain", 70, 96, "false", "yes"),
    ("rain", 68, 80, "false", "yes"),
    ("rain", 65, 70, "true", "no"),
    ("overcast", 64, 65, "true", "yes"),
    ("sunny", 72, 95, "false", "no"),
    ("sunny", 69, 70, "false", "yes"),
    ("rain", 75, 80, "false", "yes"),
    ("sunny", 75, 70, "true", "yes"),
    ("overcast", 72, 90, "true", "yes"),
    ("overcast", 81, 75, "false", "yes"),
    ("rain", 71, 80, "true", "no"),
]


@pytest.fixture(scope="module")
def weather():
    table = np.array(WEATHER, dtype=object)
    return table[:, :4], table[:, 4].astype(str)


def test_the_session_that_release_8_prints_for_golf(weather):
    """Rules, their order, confidences and the default class.

    golf.names declares Play first, which decides between classes whose rules do no harm.
    """
    X, y = weather
    tree = C45Classifier(pruning=None, threshold_placement="data")
    rules = C45Rules(tree).fit(X, y == "no").rules_
    names = ["outlook", "temperature", "humidity", "windy"]
    assert rules.to_text(feature_names=names, class_names=["Play", "Don't Play"]).split("\n") == [
        "Rule 1: outlook = overcast -> class Play [0.707] (4)",
        "Rule 2: outlook = rain and windy = false -> class Play [0.630] (3)",
        "Rule 3: outlook = sunny and humidity > 75 -> class Don't Play [0.630] (3)",
        "Rule 4: outlook = rain and windy = true -> class Don't Play [0.500] (2)",
        "Default: class Play",
    ]
    assert rules.decided_weights.tolist() == [[4, 0], [3, 0], [0, 3], [0, 2], [2, 0]]


@pytest.mark.parametrize(
    ("covered", "missed", "bits"),
    [(0, 9, 21.3), (4, 5, 17.6 - 3.5 / 2), (7, 2, 14.9 - 8.8 / 2), (0, 5, 18.8), (5, 0, 3.8)],
)
def test_bits_of_exceptions_that_release_8_prints(covered, missed, bits):
    assert exception_bits(14.0, float(covered), 0.0, float(missed)) == pytest.approx(bits, abs=0.06)


def test_bits_of_rules_that_release_8_prints(weather):
    X, y = weather
    tree = C45Classifier(pruning=None).fit(X, y == "no")
    rows = _rows(tree, X, y == "no", None)
    rules = C45Rules(C45Classifier(pruning=None)).fit(X, y == "no").rules_.rules
    bits = rule_bits(rules, rows, tree.columns_.n_categories, 1.0)
    np.testing.assert_allclose(bits, [3.5, 6.4, 8.0, 6.4], atol=0.06)


def test_missing_is_one_number_more():
    """Three numbers take 1 + log2(3) / 2 bits, with missing values among them 1 + log2(4) / 2."""
    values = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [3.0, np.nan]])
    rows = WeightedRows(values, np.array([0, 1, 0, 1]), np.empty(0, np.int64), 1.0, 2)
    bits = column_bits(rows, np.zeros(2, np.int64))
    np.testing.assert_allclose(bits, [1 + np.log2(3) / 2, 2.0])


# --------------------------------------------------------------------- masks
TESTED = st.one_of(
    st.tuples(st.just(0), st.sampled_from(["<=", ">"]), st.sampled_from([-1.5, 0.0, 0.1, 2.0])).map(
        lambda given: Condition(*given)
    ),
    st.sets(st.integers(0, 4)).map(lambda codes: Condition(1, "in", codes=tuple(sorted(codes)))),
    st.tuples(st.integers(0, 1), st.sampled_from(["present", "missing"])).map(
        lambda given: Condition(*given)
    ),
)


@given(
    tests=st.lists(TESTED, unique=True, max_size=12),
    numbers=st.lists(st.sampled_from([-2.0, -0.0, 0.1, np.float32(0.1), np.nan]), max_size=200),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_masks_are_of_the_rows_that_meet_each_condition(tests, numbers, dtype):
    codes = [(7 * i) % 8 - 2.0 for i in range(len(numbers))]
    values = np.array([numbers, codes], dtype).T.copy()
    values[::11, 1] = np.nan
    (block,) = Masks(values, tests)
    assert block.masks.shape == (len(tests), -(-len(numbers) // 64))
    for mask, one in zip(block.masks, tests, strict=True):
        found = np.unpackbits(mask.astype("<u8").view(np.uint8), bitorder="little")
        expected = [slow.meets(row, tuple(one)) for row in values]
        assert found[: len(numbers)].tolist() == expected
        assert not found[len(numbers) :].any()


@given(table=TABLES, most=st.integers(1, 40))
def test_groups_of_rules_are_as_large_as_they_may_be(table, most):
    rules = rules_of_leaves(grown("c45", table)[0].tree_)
    n = masks_module.BLOCK_BYTES * 8 // most  # as many rows as leave that many conditions
    found = list(masks_module.groups(rules, n))
    assert [end for _, end in found[:-1]] == [begin for begin, _ in found[1:]]
    assert (found[0][0], found[-1][1]) == (0, rules.label.size)

    def n_conditions(begin, end):
        return len({i for rule in range(begin, end) for i in rules.of(rule)})

    for begin, end in found:
        assert begin < end
        assert n_conditions(begin, end) <= most or end == begin + 1
        assert end == rules.label.size or n_conditions(begin, end + 1) > most


# ------------------------------------------------------------ simplification
@in_each_kind
@given(table=TABLES, quantile=st.sampled_from(["release8", "exact"]))
@example(table=random_mixed_table(2068, 58, True), quantile="exact")  # present, below a number
def test_conditions_are_dropped_as_one_by_one(kind, table, quantile):
    tree, X, y, weight = grown(kind, table)
    rows = _rows(tree, table.X, table.y, table.weight)
    leaves = rules_of_leaves(tree.tree_)
    found, error = simplify(leaves, rows, error_limit(0.25, quantile), 1)
    expected = {}
    label = tree.tree_.answers.argmax(axis=1)
    share = np.bincount(y, weight, minlength=tree.n_classes_)
    for leaf in np.flatnonzero(tree.tree_.is_leaf & (tree.tree_.weight > 0)):
        code = int(label[leaf])
        tests = slow.leaf_tests(tree.tree_, leaf)

        def rate(tests, code=code):
            return slow.error_rate(tests, code, X, y, weight, quantile, 0.25)

        tests, least = slow.simplified(tests, rate)
        if tests and least <= 0.7 and least < 1 - (share[code] + 1) / (share.sum() + 2):
            expected[code, frozenset(tests)] = least
    keys = [
        (int(found.label[r]), frozenset(slow.as_tests([found.conditions[i] for i in found.of(r)])))
        for r in range(error.size)
    ]
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, error, strict=True)) == pytest.approx(expected, rel=1e-12)


# ----------------------------------------------------------------- selection
def chosen_by_class(tree, table, rule_weight):
    """For each class: its candidates' rows and bits, what was chosen, and its value."""
    rows = _rows(tree, table.X, table.y, table.weight)
    leaves = rules_of_leaves(tree.tree_)
    rules, _ = simplify(leaves, rows, error_limit(0.25, "exact"), 1)
    cover = coverage(rules, rows.values)
    bits = rule_bits(rules, rows, tree.columns_.n_categories, 1.0)
    for label in np.unique(rules.label):
        candidates = np.flatnonzero(rules.label == label)
        of_class = rows.label == label
        picked, value = select(
            cover.take(candidates), rows, of_class, bits[candidates], rule_weight
        )
        covered = [set(cover.of(r).tolist()) for r in candidates]
        yield covered, bits[candidates], of_class, np.flatnonzero(picked).tolist(), value


@given(seed=st.integers(0, 10**6), heaviest=st.sampled_from([1, 3, 200]))
@examples(15)
def test_a_climb_takes_the_best_step_each_time(seed, heaviest):
    """More rules than every subset is tried of, with weights of few units and of many."""
    random = np.random.default_rng(seed)
    n, n_rules = 60, MOST_TRIED + int(random.integers(1, 20))
    shares = random.choice([0.02, 0.1, 0.4], n_rules)
    covered = [np.flatnonzero(random.random(n) < share) for share in shares]
    of_class = random.random(n) < 0.4
    weight = random.integers(1, heaviest + 1, n)
    bits = random.choice([1.0, 2.5, 7.0], n_rules)
    begin = np.append(0, np.cumsum([part.size for part in covered]))
    cover = _transposed(begin, np.concatenate(covered).astype(np.int32), n)
    rows = WeightedRows(np.zeros((n, 1)), of_class.astype(np.int64), weight, 1.0, 2)
    picked, value = select(cover, rows, of_class, bits, 0.5)
    sets = [set(part.tolist()) for part in covered]

    def message(chosen):
        return slow.message(sorted(chosen), sets, bits, of_class, weight.tolist(), 0.5)

    begins = [set(np.flatnonzero(start).tolist()) for start in starts(n_rules)]
    assert len(begins[0]) == 0
    assert len(begins[-1]) == n_rules
    ends = [slow.climbed(message, n_rules, begin) for begin in begins]
    assert value == pytest.approx(min(map(message, ends)), abs=1e-6)
    assert value == pytest.approx(message(np.flatnonzero(picked).tolist()), abs=1e-6)


def test_of_equal_rules_the_first_is_chosen():
    """Choose among more rules than subsets are tried of: 6 blocks of rows, two rules for each."""
    of_class = np.arange(60) < 48
    covered = [np.arange(8 * k, 8 * k + 8) for k in [*range(6), *range(6)]]
    begin = np.append(0, np.cumsum([part.size for part in covered]))
    cover = _transposed(begin, np.concatenate(covered).astype(np.int32), 60)
    rows = WeightedRows(np.zeros((60, 1)), of_class.astype(np.int64), np.ones(60, np.int64), 1.0, 2)
    picked, _ = select(cover, rows, of_class, np.full(12, 9.0), 0.5)
    assert np.flatnonzero(picked).tolist() == list(range(6))


@in_each_kind
@given(table=random_mixed_tables(120), rule_weight=st.sampled_from([0.0, 0.1, 0.5, 2.0]))
def test_no_subset_takes_fewer_bits(kind, table, rule_weight):
    """For few rules, no subset at all; for many, none that has one more or one less."""
    tree, _, _, weight = grown(kind, table)
    for covered, bits, of_class, picked, value in chosen_by_class(tree, table, rule_weight):

        def sent(rules, covered=covered, bits=bits, of_class=of_class):
            return slow.message(list(rules), covered, bits, of_class, weight.tolist(), rule_weight)

        assert value == pytest.approx(sent(picked), abs=1e-6)
        if len(covered) <= 8:
            others = slow.subsets(len(covered))
        else:
            others = [set(picked) ^ {rule} for rule in range(len(covered))]
        if len(covered) <= 8 or len(covered) > MOST_TRIED:
            assert value <= min(map(sent, others)) + 1e-6


# ------------------------------------------------------------------- the set
def test_of_classes_that_do_no_harm_the_first_declared_comes_first():
    """The order of C4.5rules, also where another class covers more rows."""
    rows = WeightedRows(np.zeros((5, 1)), np.array([0, 1, 1, 1, 0]), np.empty(0, np.int64), 1.0, 2)
    cover = _transposed(np.array([0, 3, 4]), np.array([1, 2, 3, 0], np.int32), 5)
    assert order_classes(cover, np.array([1, 0]), rows) == [0, 1]


@given(seed=st.integers(0, 10**6))
@examples(40)
def test_the_first_rule_that_does_harm_is_removed_then_the_next(seed):
    random = np.random.default_rng(seed)
    n, n_rules = 25, 8
    truth, weight = random.integers(0, 3, n), random.integers(1, 4, n)
    label, covered = random.integers(0, 3, n_rules), random.random((n_rules, n)) < 0.3
    begin = np.append(0, np.cumsum(covered.sum(axis=1)))
    cover = _transposed(begin, np.nonzero(covered)[1].astype(np.int32), n)
    left = harmless(cover, label, 0, WeightedRows(np.zeros((n, 1)), truth, weight, 1.0, 3))

    def errors(rules):
        answer = [next((label[r] for r in rules if covered[r, i]), 0) for i in range(n)]
        return weight[np.array(answer) != truth].sum()

    rest = list(range(n_rules))
    while harmful := [r for r in rest if errors([o for o in rest if o != r]) < errors(rest)]:
        rest.remove(harmful[0])
    assert np.flatnonzero(left).tolist() == rest


@in_each_kind
@given(table=TABLES)
def test_the_order_of_classes_and_what_rows_get(kind, table):
    tree, X, y, weight = grown(kind, table)
    rules = to_rules(tree, table.X, table.y, table.weight)
    learned = rules.rules_
    labels = np.searchsorted(rules.classes_, [rule.label for rule in learned]).astype(int)
    hits = np.array([[slow.covers(row, rule.conditions) for rule in learned] for row in X])
    hits = hits.reshape(len(X), len(learned))
    first = np.array([np.flatnonzero(row)[0] if row.any() else -1 for row in hits])
    np.testing.assert_array_equal(rules.apply(table.X), first)
    answers = np.where(first < 0, learned.default, np.append(labels, 0)[first])
    np.testing.assert_array_equal(rules.predict(table.X), rules.classes_[answers])
    for r in range(-1, len(learned)):
        decided = np.bincount(y[first == r], weight[first == r], minlength=rules.n_classes_)
        np.testing.assert_array_equal(learned.decided_weights[r], decided)
    for r, rule in enumerate(learned):
        by_class = np.bincount(y[hits[:, r]], weight[hits[:, r]], minlength=rules.n_classes_)
        np.testing.assert_array_equal(rule.class_weights, by_class)
        assert rule.coverage == by_class.sum()
        assert rule.errors == pytest.approx(by_class.sum() - by_class[labels[r]])
        expected = slow.error_rate(rule.conditions, labels[r], X, y, weight, "release8", 0.25)
        assert rule.confidence == pytest.approx(1 - expected)
    order = list(dict.fromkeys(labels.tolist()))
    assert labels.tolist() == sorted(labels.tolist(), key=order.index)  # class by class
    for label in order:
        of_class = [
            rule.confidence
            for rule, predicted in zip(learned, labels, strict=True)
            if predicted == label
        ]
        assert of_class == sorted(of_class, reverse=True)
    errors = weight[answers != y].sum()
    for r in range(len(learned)):  # each rule does some good, or no harm
        without = hits.copy()
        without[:, r] = False
        other = [np.flatnonzero(row)[0] if row.any() else -1 for row in without]
        others = np.where(np.array(other) < 0, learned.default, np.append(labels, 0)[other])
        assert weight[others != y].sum() >= errors


@in_each_kind
def test_probabilities(kind):
    table = random_mixed_table(3, 120, True)
    rules = to_rules(grown(kind, table)[0], table.X, table.y, table.weight)
    proba = rules.predict_proba(table.X)
    prior = np.bincount(table.y, table.weight) / table.weight.sum()
    for r in np.unique(decided := rules.apply(table.X)):
        here = np.bincount(table.y[decided == r], table.weight[decided == r], minlength=prior.size)
        share = (here + 2 * prior) / (here.sum() + 2)
        np.testing.assert_allclose(proba[decided == r], np.tile(share, (sum(decided == r), 1)))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (proba > 0).all()
    np.testing.assert_array_equal(rules.predict_log_proba(table.X), np.log(proba))


# ------------------------------------------------- what must not make a difference
@pytest.mark.full
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_and_threads_do_not_matter(weighted, monkeypatch):
    table = random_mixed_table(5, 900, weighted)
    whole = C45Rules(KINDS["c45"](table.nominal), n_jobs=1).fit(table.X, table.y, table.weight)
    monkeypatch.setattr(masks_module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(masks_module, "LEAST_BLOCK", 64)
    parts = C45Rules(KINDS["c45"](table.nominal), n_jobs=2).fit(table.X, table.y, table.weight)
    assert whole.rules_.to_json() == parts.rules_.to_json()
    np.testing.assert_array_equal(whole.apply(table.X), parts.apply(table.X))


# -------------------------------------------------------------- missing values
def test_a_missing_value_meets_no_condition_but_its_own():
    X = np.array([[0.0, 0.0]] * 8 + [[1.0, 0.0]] * 8 + [[np.nan, 1.0]] * 8)
    y = np.repeat(["low", "high", "gone"], 8)
    rules = C45Rules(DecisionTreeClassifier(max_features=None)).fit(X[:, :1], y)
    assert rules.predict([[0.0], [1.0], [np.nan]]).tolist() == ["low", "high", "gone"]
    assert any("x0 is missing" in str(rule) for rule in rules.rules_) or (
        rules.rules_.classes[rules.rules_.default] == "gone"
    )
    fractions = C45Rules().fit(X[:16, :1], y[:16])
    assert fractions.apply([[np.nan]]).tolist() == [-1]


def test_a_column_without_values_makes_no_rule():
    X = np.full((20, 2), np.nan)
    rules = C45Rules().fit(X, np.repeat([0, 1], [8, 12]))
    assert len(rules.rules_) == 0
    assert rules.predict(X).tolist() == [1] * 20
    assert rules.rules_.to_text() == "Default: class 1"


def test_unseen_categories_meet_no_condition():
    golf = load_golf()
    rules = C45Rules().fit(golf.data, golf.target)
    row = [["snow", "cool", "normal", "none"]]
    assert rules.estimator_._values(row)[0, 0] == UNSEEN
    assert not any("snow" in str(rule) for rule in rules.rules_)
    assert rules.apply([["snow", "tepid", "wet", "none"]]).tolist() == [-1]


# -------------------------------------------------------------------- texts
def test_text_of_iris():
    iris = load_iris()
    rules = C45Rules().fit(iris.data, iris.target).rules_
    assert rules.to_text(feature_names=iris.feature_names).startswith(
        "Rule 1: petal width <= 0.8 -> class setosa [0.973] (50)\n"
    )
    assert str(rules) == rules.to_text()
    assert str(rules[0]) == "x3 <= 0.8 -> class setosa [0.973] (50)"
    assert str(rules[-1]) == str(list(rules)[-1])
    assert [str(rule) for rule in rules[:2]] == [str(rules[0]), str(rules[1])]
    with pytest.raises(IndexError, match=r"is out of range for \d+ rules"):
        rules[len(rules)]
    with pytest.raises(ValueError, match="feature_names must contain 4 elements, got 1"):
        rules.to_text(feature_names=["a"])


def test_thresholds_that_are_near_are_told_apart():
    X = np.repeat([[1.0], [1.00001], [1.00002]], 20, axis=0)
    text = C45Rules(DecisionTreeClassifier()).fit(X, np.repeat([0, 1, 0], 20)).rules_.to_text()
    assert "x0 <= 1.000005" in text


@in_each_kind
@given(table=TABLES)
def test_json_and_sql_answer_as_predict(kind, table):
    rules = to_rules(grown(kind, table)[0], table.X, table.y, table.weight)
    rows = [[None if np.isnan(v) else v for v in row] for row in table.X.tolist()]
    expected = rules.predict(table.X).tolist()
    columns = {f"x{j}": column for j, column in enumerate(zip(*rows, strict=True))}
    document = json.loads(rules.rules_.to_json())
    records = (dict(zip(columns, row, strict=True)) for row in rows)
    assert [slow.json_class(document, record) for record in records] == expected
    query = rules.rules_.to_sql(dialect="sqlite", table="rows")
    assert in_sqlite(query, columns) == expected
    numbers = rules.rules_.to_sql(dialect="sqlite", output="rule", table="rows")
    assert in_sqlite(numbers, columns) == (rules.apply(table.X) + 1).tolist()


def test_sql_of_words_and_nan_in_duckdb():
    lenses = load_contact_lenses()
    names = {name: lenses.data[:, j] for j, name in enumerate(lenses.feature_names)}
    rules = C45Rules().fit(lenses.data, lenses.target)
    query = rules.rules_.to_sql(table="rows", feature_names=lenses.feature_names)
    columns = {name: values.tolist() for name, values in names.items()}
    assert in_duckdb(query, columns) == rules.predict(lenses.data).tolist()
    iris = load_iris()
    X = np.vstack([iris.data, np.full((1, 4), np.nan)])
    rules = C45Rules().fit(iris.data, iris.target)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    query = rules.rules_.to_sql(table="rows", output="confidence")
    decided = rules.apply(X)
    expected = [None if r < 0 else rules.rules_.confidence[r] for r in decided]
    assert in_duckdb(query, columns) == expected


# --------------------------------------------------------------- the estimator


def test_one_class():
    rules = C45Rules().fit([[1.0], [2.0]], ["a", "a"])
    assert len(rules.rules_) == 0
    assert rules.predict([[5.0]]).tolist() == ["a"]
    assert rules.predict_proba([[5.0]]).tolist() == [[1.0]]
    assert rules.rules_.to_sql() == "'a'\n"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"soft_thresholds": True}, "No rules are made of this C45Classifier: it has soft"),
        ({"misclassification_costs": {("setosa", "virginica"): 2.0}}, "No rules .* more than two"),
    ],
)
def test_trees_that_rules_cannot_answer_as_are_refused_before_learning(
    params, message, monkeypatch
):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(rules_module, "learn", lambda *_: pytest.fail("rules are learned"))
    tree = C45Classifier(**params)
    with pytest.raises(ValueError, match=message):
        C45Rules(tree).fit(X, y)
    with pytest.raises(ValueError, match=message):
        to_rules(tree.fit(X, y), X, y)


def test_errors():
    iris = load_iris()
    X, y = iris.data, iris.target
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    with pytest.raises(NotFittedError):
        C45Rules().predict(X)
    with pytest.raises(NotFittedError):
        to_rules(DecisionTreeClassifier(), X, y)
    with pytest.raises(TypeError, match="to_rules takes a fitted estimator of gputree, got Tree"):
        to_rules(tree.tree_, X, y)
    with pytest.raises(TypeError, match="classification tree of gputree, got DecisionTreeReg"):
        to_rules(DecisionTreeRegressor().fit(X, np.arange(150)), X, y)
    with pytest.raises(ValueError, match="labels that the tree was not grown on: \\['rose'\\]"):
        to_rules(tree, X[:2], ["rose", "setosa"])
    with pytest.raises(ValueError, match="'confidence' parameter of C45Rules must be a float"):
        to_rules(tree, X, y, confidence=1.5)
    with pytest.raises(ValueError, match="'estimator' parameter of C45Rules must be"):
        C45Rules(DecisionTreeRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        C45Rules().fit(X, y).predict([[np.inf, 0.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        to_rules(tree, X, y[:5])


# ------------------------------------------------------------------- weights
@pytest.mark.parametrize(
    ("params", "by_class"),
    [
        ({"misclassification_costs": [[0.0, 1.0], [6.0, 0.0]]}, [1.0, 6.0]),
        ({"class_weight": {0: 1.0, 1: 6.0}}, [1.0, 6.0]),
        ({"misclassification_costs": [[0, 1], [3, 0]], "class_weight": {0: 1, 1: 2}}, [1.0, 6.0]),
    ],
)
@pytest.mark.parametrize("kind", [C45Classifier, DecisionTreeClassifier])
def test_costs_and_class_weights_count_once(kind, params, by_class):
    """Sample weights of the same total have the same effect."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (150, 4)).astype(float)
    y = (X[:, 0] + X[:, 1] - X[:, 2] + rng.normal(size=150) > 4.0).astype(int)
    weight = np.array(by_class)[y]
    if "misclassification_costs" in params:  # they keep the total
        total = np.array([1, params.get("class_weight", {}).get(1, 1)])[y].sum()
        weight *= total / weight.sum()
    ours = C45Rules(kind(**params)).fit(X, y).rules_
    theirs = C45Rules(kind()).fit(X, y, weight).rules_
    assert len(ours) > 1
    assert ours.to_text() == theirs.to_text()
    tree = kind(**params).fit(X, y)
    assert to_rules(tree, X, y).rules_.to_text() == ours.to_text()
