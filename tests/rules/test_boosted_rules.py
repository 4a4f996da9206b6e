"""Boosted rules: the rules of a plain loop over fresh fits, their votes, what is refused."""

import numpy as np
import pytest
from mixed_tables import mixed_table
from sklearn.exceptions import NotFittedError

from gputree import BoostedC45Rules, C45Classifier, C45Rules
from gputree.estimators.winnowing import first_weights, next_weights, outcome_of
from gputree.pruning import Pessimistic


def oracle(X, y, n_trials, weight=None, **params):
    """Rules from fresh fits; the weights are those that boosted trees are held to."""
    weights, found = first_weights(weight, len(y)), []
    for trial in range(n_trials):
        tree = C45Classifier(pruning=None, exclude_high_cardinality=True, **params)
        rules = C45Rules(tree).fit(X, y, weight)
        wrong = rules.predict(X) != y
        outcome = outcome_of(weights, wrong)
        if trial and outcome.error >= 0.5:
            break
        found.append(rules)
        if outcome.wrong * weights.unit < 0.1 or outcome.error >= 0.5:
            break
        weights = next_weights(weights, wrong, outcome)
        weight = weights.values
    return found


def same_rules(ours, theirs):
    assert str(ours.rules_) == str(theirs.rules_)
    for name in ("confidence", "class_weights", "decided_weights"):
        np.testing.assert_array_equal(getattr(ours.rules_, name), getattr(theirs.rules_, name))
    assert ours.rules_.default == theirs.rules_.default
    assert ours.estimator_.tree_.equals(theirs.estimator_.tree_)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_rules_are_those_of_fresh_fits(seed, weighted):
    X, y = mixed_table(seed, 50)
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, len(y)) if weighted else None
    model = BoostedC45Rules(n_trials=3).fit(X, y, weight)
    expected = oracle(X, y, 3, weight)
    assert len(expected) > 1
    for ours, theirs in zip(model.estimators_, expected, strict=True):
        same_rules(ours, theirs)
    votes = np.mean([rules.predict_proba(X) for rules in expected], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), votes, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(X), model.classes_[votes.argmax(axis=1)])


def test_parameters_are_those_of_trees_and_rules():
    X, y = mixed_table(0)
    given = {"confidence": 0.1, "rule_weight": 1.0, "redundancy": 2.0, "quantile": "exact"}
    model = BoostedC45Rules(n_trials=1, min_samples_leaf=5, pruning="pessimistic", **given)
    alone = C45Rules(C45Classifier(min_samples_leaf=5, pruning=Pessimistic()), **given)
    same_rules(model.fit(X, y).estimators_[0], alone.fit(X, y))


def test_members_answer_with_labels_and_columns_of_the_whole():
    X, y = mixed_table(1)
    noise = np.random.default_rng(5).normal(size=(len(y), 3)).astype(object)
    wide = np.concatenate([noise, X], axis=1)
    model = BoostedC45Rules(n_trials=3, winnow=True, random_state=2).fit(wide, y)
    assert model.winnowed_.any()
    left = set(np.flatnonzero(model.winnowed_).tolist())
    for member in model.estimators_:
        assert set(member.predict(wide)) <= set(model.classes_)
        tested = {one.feature for rule in member.rules_ for one in rule.conditions}
        assert tested.isdisjoint(left)
        assert all(f"x{f}" in str(member.rules_) for f in tested)
    errors = [(member.predict(wide) != y).mean() for member in model.estimators_]
    assert errors[0] == pytest.approx(model.estimator_errors_[0])


def test_costs_decide_by_the_votes():
    X, y = mixed_table(0)
    costs = {("low", "high"): 10.0, ("middle", "high"): 4.0}
    model = BoostedC45Rules(n_trials=3, misclassification_costs=costs).fit(X, y)
    assert set(model.predict(X)) <= set(model.classes_)
    plain = BoostedC45Rules(n_trials=3).fit(X, y)

    def spent(answers):
        return sum(costs.get((a, b), 1.0) for a, b in zip(y, answers, strict=True) if a != b)

    assert spent(model.predict(X)) < spent(plain.predict(X))


def test_stages():
    X, y = mixed_table(0)
    model = BoostedC45Rules(n_trials=3).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == len(model.estimators_) > 1
    np.testing.assert_array_equal(stages[-1], model.predict(X))


def test_one_class_is_answered_without_rules():
    model = BoostedC45Rules().fit([[0.0], [1.0], [2.0]], ["a", "a", "a"])
    assert [len(member.rules_) for member in model.estimators_] == [0]
    assert model.predict([[5.0]]).tolist() == ["a"]


def test_errors():
    X, y = mixed_table(0)
    with pytest.raises(NotFittedError):
        BoostedC45Rules().predict(X)
    with pytest.raises(ValueError, match="'confidence' parameter of BoostedC45Rules must be"):
        BoostedC45Rules(confidence=2.0).fit(X, y)
    with pytest.raises(TypeError, match="BoostedC45Rules has no parameter 'soft_thresholds'"):
        BoostedC45Rules(soft_thresholds=True)
    with pytest.raises(ValueError, match="grows on the CPU alone"):
        BoostedC45Rules(binary_splits=True, device="cuda").fit(X, y)
