"""Errors for parameters and arguments of other libraries, which say what to write instead."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn import ensemble as sklearn_ensemble
from sklearn import tree as sklearn_tree
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import has_fit_parameter

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.base.sklearn import validate_parameter_constraints
from gputree.pruning import CostComplexity, PenalizedLoss

Classifier, Regressor = DecisionTreeClassifier, DecisionTreeRegressor
ESTIMATORS = (Classifier, Regressor, C45Classifier, ID3Classifier)
FORESTS = (
    RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor
)  # fmt: skip
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=80) > 0).astype(int)


# ------------------------------------------------------------ constructors
@pytest.mark.parametrize("kind", [*ESTIMATORS, *FORESTS])
def test_every_parameter_of_scikit_learn_is_taken_or_explained(kind):
    """Refuse each parameter that `kind` lacks with a separate text, at once and by `set_params`."""
    theirs = set()
    for name in ("DecisionTreeClassifier", "DecisionTreeRegressor"):
        theirs |= set(inspect.signature(getattr(sklearn_tree, name)).parameters)
    if kind in FORESTS:
        parameters = set(inspect.signature(kind).parameters)
        assert set(inspect.signature(of_scikit_learn(kind)).parameters) <= parameters
        theirs |= set(inspect.signature(Classifier).parameters)
    lacking = theirs - set(inspect.signature(kind).parameters)
    assert ("monotonic_cst" in lacking) == (kind in (C45Classifier, ID3Classifier))
    for name in lacking:
        advice = kind._lacks[name]
        for call in (lambda: kind(**{name: None}), lambda: kind().set_params(**{name: None})):  # noqa: B023
            with pytest.raises((TypeError, ValueError)) as error:
                call()
            assert str(error.value) == f"{kind.__name__} has no parameter {name!r}: {advice}"


@pytest.mark.parametrize("kind", [*ESTIMATORS, *FORESTS])
def test_nothing_that_is_taken_is_refused(kind):
    assert not set(kind._lacks) & set(inspect.signature(kind).parameters)
    for name in inspect.signature(kind).parameters:
        kind().set_params(**{name: getattr(kind(), name)})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Classifier("gini"), r"by name: write DecisionTreeClassifier\(criterion='gini'\)"),
        (lambda: Classifier("gini", "best"), r"Classifier\(criterion='gini', \.\.\.\)\."),
        (lambda: C45Classifier(5), r"write C45Classifier\(min_samples_leaf=5\)\."),
        (lambda: Classifier(max_dept=3), r"'max_dept': did you mean 'max_depth'\?"),
        (lambda: Classifier(zzz=3), "no parameter 'zzz': it has criterion, max_depth, "),
        (lambda: Classifier(confidence=0.1), r"Write pruning=Pessimistic\(confidence=\.\.\.\)"),
        (lambda: C45Classifier(alpha=1), r"CostComplexity\(alpha=\.\.\.\) or pruning=Penali"),
        (lambda: C45Classifier(monotonic_cst=[1, 0]), "for multiway trees. Leave it out, or"),
        (lambda: RandomForestClassifier(100, "gini"), r"write .*\(n_estimators=100, \.\.\.\)\."),
        (lambda: RandomForestRegressor(mtry=3), "'mtry': write max_features"),
        (lambda: ExtraTreesClassifier(device="cuda"), "'device': cuts are drawn, on the CPU"),
        (lambda: C45Classifier(ccp_alpha=0.1), r"write pruning=CostComplexity\(alpha\)"),
    ],
)  # fmt: skip
def test_constructors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_constructors_look_as_they_are(kind):
    """The check is seen neither by `help` nor by `clone`, `pickle` and scikit-learn."""
    assert "args" not in inspect.signature(kind).parameters
    assert set(kind().get_params(deep=False)) == set(inspect.signature(kind).parameters)
    assert has_fit_parameter(kind(), "sample_weight")
    assert not has_fit_parameter(kind(), "check_input")
    model = kind(max_depth=2).fit(X, Y)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).tree_.equals(model.tree_)
    assert inspect.getdoc(kind.predict) is not None


# ----------------------------------------------------------------- methods
METHODS = ("predict", "apply", "decision_path")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_input_is_always_checked(kind):
    model = kind(max_depth=2).fit(X, Y)
    advice = "tables are always checked. Leave it out."
    methods = [*METHODS, "predict_proba"] if hasattr(kind, "predict_proba") else METHODS
    for name in methods:
        method = getattr(model, name)
        with pytest.raises(TypeError, match=f"{kind.__name__}.{name} has no.*'check_.*{advice}"):
            method(X, check_input=False)
        with pytest.raises(TypeError, match=f"{name} got 2 arguments: it takes X. If.*{advice}"):
            method(X, False)
    with pytest.raises(TypeError, match=f"{kind.__name__}.fit has no.*'check_input'.*{advice}"):
        model.fit(X, Y, check_input=False)
    with pytest.raises(TypeError, match=f"fit got 4 .* takes X, y, sample_weight. If.*{advice}"):
        model.fit(X, Y, None, False)
    with pytest.raises(TypeError, match="fit has no parameter 'weights': it takes X, y, sample_w"):
        model.fit(X, Y, weights=None)


def test_ensembles_of_scikit_learn():
    """Ensembles of scikit-learn pass `check_input` to bases that have it."""
    forest = BaggingClassifier(Classifier(max_depth=2), n_estimators=3, random_state=0)
    assert forest.fit(X, Y, sample_weight=Y + 1.0).score(X, Y) > 0.7


# ------------------------------------------------------------------ values
@pytest.mark.full
def test_best_is_exact():
    for kind in (Classifier, Regressor):
        best = kind(splitter="best").fit(X, Y)
        assert best.splitter == "best"
        assert best.tree_.equals(kind(splitter="exact").fit(X, Y).tree_)
    rng = np.random.default_rng(1)
    table, target = rng.normal(size=(3000, 4)), rng.integers(0, 2, 3000)
    trees = {
        s: Classifier(splitter=s, max_bins=4, max_depth=2).fit(table, target).tree_
        for s in ("best", "exact", "binned")
    }
    assert trees["best"].equals(trees["exact"])
    assert not trees["best"].equals(trees["binned"])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Regressor(criterion="mae"), "Got 'mae'.*Write 'absolute_error'"),
        (Regressor(criterion="friedman_mse"), "Write 'squared_error', whose cuts are the same"),
        (Regressor(criterion="gini"), "For classes use DecisionTreeClassifier"),
        (Classifier(criterion="squared_error"), "For numbers use DecisionTreeRegressor"),
        (ExtraTreesRegressor(criterion="gini"), "For classes use ExtraTreesClassifier"),
        (RandomForestClassifier(criterion="poisson"), "For numbers use RandomForestRegressor"),
        (Classifier(criterion="gain_ratio"), "C45Classifier splits by the gain ratio"),
        (C45Classifier(criterion="entropy"), "'criterion' .* Got 'entropy' .*DecisionTreeClass"),
        (BoostedC45Classifier(criterion="gini"), "For gini or entropy use DecisionTreeClassifier"),
        (C45Classifier(criterion="information_gain"), "Write 'gain'"),
        (Classifier(criterion=np.array(["gini"])), r"must be a str among .* Got array\("),
    ],
)  # fmt: skip
def test_values_of_other_trees(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


def test_choices_are_listed_in_alphabetical_order():
    with pytest.raises(ValueError, match=r"among \{'best', 'binned', 'exact', 'random'\}"):
        Classifier(splitter="none").fit(X, Y)


@pytest.mark.parametrize("kind", [Classifier, Regressor, *FORESTS])
def test_parameters_of_scikit_learn_come_back(kind):
    """Defaults of its tree or forest may be written out, and set from there."""
    theirs = of_scikit_learn(kind)().get_params()
    few = {"n_estimators": 2} if kind in FORESTS else {}
    grown = kind(**theirs).set_params(**theirs | few).fit(X, Y)
    assert grown.get_params().items() >= (theirs | few).items()


def of_scikit_learn(kind):
    return getattr(sklearn_ensemble if kind in FORESTS else sklearn_tree, kind.__name__)


@pytest.mark.parametrize("kind", [Classifier, Regressor, *FORESTS])
def test_every_criterion_of_scikit_learn_is_taken_or_explained(kind):
    (theirs,) = (
        constraint.options
        for constraint in of_scikit_learn(kind)._parameter_constraints["criterion"]
        if isinstance(getattr(constraint, "options", None), set)
    )
    (ours,) = (constraint.options for constraint in kind._parameter_constraints["criterion"])
    assert theirs - ours == {"friedman_mse"} & theirs
    assert {("criterion", value) for value in theirs - ours} <= set(kind._refuses)


# ---------------------------------------------------------- pruners in grids
@pytest.mark.parametrize(
    ("model", "grid", "message"),
    [
        (Classifier(), {"pruning__alpha": [0.0, 0.1]}, "'pruning__alpha' of DecisionTreeClassifier "
         "belongs to its pruner, and pruning is None. Set pruning='cost_complexity' or pruning='"
         "penalized_loss', too: in the estimator, or in the same grid. Or use 'ccp_alpha'"),
        (C45Classifier(pruning=None), {"pruning__alpha": [0.1]}, r"or in the same grid\.$"),
        (C45Classifier(), {"pruning": [None], "pruning__confidence": [0.1]}, "='pessimistic', too"),
        (Classifier(), {"pruning__depth": [1]}, "They have: cost_complexity: alpha, risk, cp; "),
    ],
)  # fmt: skip
def test_parameters_of_no_pruner(model, grid, message):
    with pytest.raises(ValueError, match=message):
        GridSearchCV(model, grid).fit(X, Y)


def test_the_advice_on_pruners_holds():
    alphas = [0.0, 0.02, 5.0]
    searches = [
        GridSearchCV(Classifier(pruning="cost_complexity"), {"pruning__alpha": alphas}),
        GridSearchCV(Classifier(), {"pruning": ["cost_complexity"], "pruning__alpha": alphas}),
        GridSearchCV(Classifier(), {"ccp_alpha": alphas}),
        GridSearchCV(Classifier(), {"pruning": [CostComplexity(a) for a in alphas]}),
    ]
    found = [search.fit(X, Y).best_estimator_.tree_ for search in searches]
    assert all(tree.equals(found[0]) for tree in found)
    assert isinstance(searches[1].best_estimator_.pruning, CostComplexity)
    pipe = make_pipeline(Classifier(pruning="penalized_loss"))
    pipe.set_params(decisiontreeclassifier__pruning__alpha=2.0)
    assert pipe[0].pruning.get_params() == PenalizedLoss(alpha=2.0).get_params()
    with pytest.raises(ValueError, match="pruning='cost_complexity' lacks its alpha"):
        Classifier(pruning="cost_complexity").set_params(pruning__risk="error")


@pytest.mark.parametrize("kind", [*ESTIMATORS, *FORESTS])
def test_what_is_left_by_default_is_valid(kind):
    """A fit may then check only the parameters that were given."""
    defaults = kind().get_params(deep=False)
    validate_parameter_constraints(kind._parameter_constraints, defaults, kind.__name__)


@pytest.mark.parametrize("kind", [*ESTIMATORS, *FORESTS, BoostedC45Classifier, C45Rules])
def test_constraints_are_of_the_parameters_that_there_are(kind):
    assert set(kind._parameter_constraints) == set(kind().get_params(deep=False))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_default_of_a_subclass_is_checked(kind):
    class Own(kind):
        def __init__(self, max_depth=0):
            super().__init__(max_depth=max_depth)

    for model in (Own(), Own(max_depth=-1)):
        with pytest.raises(ValueError, match=r"'max_depth' parameter of Own must be"):
            model.fit(X, Y)
    Own(max_depth=2).fit(X, Y)


def test_a_subclass_may_pass_on_what_it_is_given():
    class Own(DecisionTreeClassifier):
        def __init__(self, **parameters):
            super().__init__(**parameters)

    assert Own(max_depth=1).fit(X, Y).get_depth() <= 1
