"""Callbacks of scikit-learn: called at the start and the end of a fit and of its parts."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    load_model,
    save_model,
)

pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

rng = np.random.default_rng(3)
X = rng.integers(0, 6, (60, 3)).astype(np.float64)
y = (X[:, 0] + rng.integers(0, 5, 60) > 5).astype(np.int64)
FOREST = RandomForestClassifier(5, random_state=1, bootstrap=True, oob_score=False)
WITH_PARTS = [
    (FOREST, "tree"),
    (BoostedC45Classifier(n_trials=3), "trial"),
    (BoostedC45Rules(n_trials=3), "trial"),
]
WHOLE = [DecisionTreeClassifier(), DecisionTreeRegressor(), C45Rules()]


class Recorder:
    """A callback that keeps what it is called with; `last` is the part that is to be the last."""

    def __init__(self, last: int | None = None, fails_at: int | None = None) -> None:
        self.last, self.fails_at = last, fails_at
        self.events: list[tuple[str, str, int]] = []
        self.fitted: dict[int, Any] = {}
        self.data: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.events.append(("setup", context.task_name, context.max_subtasks))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.events.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(
        self,
        estimator: Any,
        context: Any,
        *,
        X: Any,
        y: Any,
        metadata: Any,
        fitted_estimator: Any,
    ) -> bool:
        self.events.append(("end", context.task_name, context.task_id))
        is_part = context.parent is not None
        if is_part and context.task_id == self.fails_at:
            raise RuntimeError("no more")
        if fitted_estimator is not None:  # a search has none
            self.fitted[context.task_id if is_part else -1] = fitted_estimator.predict(X)
        self.data.append((X, y, metadata))
        return is_part and context.task_id == self.last


class Passed(Recorder):
    """A recorder that searches pass to what they fit."""

    max_propagation_depth = None


def new(model: Any) -> Any:
    return type(model)(**model.get_params(deep=False))


def labels_of(model: Any) -> Any:
    return model.predict(X)


@pytest.mark.parametrize(("model", "part"), WITH_PARTS, ids=lambda given: type(given).__name__)
def test_parts_are_told_in_their_order(model, part):
    weight = np.arange(60.0)
    recorder = Recorder()
    fitted = new(model).set_callbacks(recorder).fit(X, y, sample_weight=weight)
    plain = new(model).fit(X, y, sample_weight=weight)
    n = len(plain.estimators_)
    assert (labels_of(fitted) == labels_of(plain)).all()
    ends = [event for event in recorder.events if event[0] == "end"]
    assert ends == [*(("end", part, t) for t in range(n)), ("end", "fit", 0)]
    assert recorder.events[:2] == [("setup", "fit", n), ("begin", "fit", 0)]
    assert recorder.events[-1] == ("teardown", "fit", 0)
    begun = [event[2] for event in recorder.events if event[:2] == ("begin", part)]
    assert begun == list(range(n))
    assert all(given[0] is X and given[1] is y for given in recorder.data)
    assert all(given[2] == {"sample_weight": weight} for given in recorder.data[:1])
    assert not {"_callback_fit_ctx", "_fit_arguments"} & vars(fitted).keys()


@pytest.mark.parametrize("model", WHOLE, ids=lambda model: type(model).__name__)
def test_one_tree_has_no_parts(model):
    recorder = Recorder()
    fitted = new(model).set_callbacks(recorder).fit(X, y)
    assert [event[0] for event in recorder.events] == ["setup", "begin", "end", "teardown"]
    assert (recorder.fitted[-1] == labels_of(fitted)).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parts_have_the_forest_so_far(n_jobs):
    recorder = Recorder()
    forest = new(FOREST).set_params(n_jobs=n_jobs).set_callbacks(recorder).fit(X, y)
    for t in range(5):
        assert (recorder.fitted[t] == labels_of(forest[: t + 1])).all()


def test_boosting_so_far():
    recorder = Recorder()
    boosted = BoostedC45Classifier(n_trials=3, winnow=True).set_callbacks(recorder).fit(X, y)
    for t, labels in enumerate(boosted.staged_predict(X)):
        assert (recorder.fitted[t] == labels).all()


def test_a_forest_ends_where_a_callback_says():
    """It is the first trees of the whole one, and a warm start grows the others."""
    whole = new(FOREST).fit(X, y)
    model = new(FOREST).set_params(warm_start=True, oob_score=True, n_estimators=5)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        short = model.set_callbacks(Recorder(last=1)).fit(X, y)
    assert len(short.estimators_) == 2
    assert all(a.tree_.equals(b.tree_) for a, b in zip(short, whole[:2], strict=True))
    assert short.oob_decision_function_.shape == (60, 2)
    grown = short.set_params(oob_score=False).set_callbacks().fit(X, y)
    assert all(a.tree_.equals(b.tree_) for a, b in zip(grown, whole, strict=True))


def test_boosting_ends_where_a_callback_says(tmp_path):
    boosted = BoostedC45Classifier(n_trials=4).set_callbacks(Recorder(last=1)).fit(X, y)
    assert boosted.stop_reason_ == "a callback has ended the fit"
    expected = BoostedC45Classifier(n_trials=2).fit(X, y)
    assert (labels_of(boosted) == labels_of(expected)).all()
    assert boosted.estimator_errors_.tolist() == expected.estimator_errors_.tolist()
    save_model(boosted, tmp_path / "model")
    assert load_model(tmp_path / "model").stop_reason_ == boosted.stop_reason_


@pytest.mark.parametrize("model", [FOREST, BoostedC45Classifier(n_trials=3)], ids=["rf", "boosted"])
def test_an_error_of_a_callback_leaves_the_fit_before(model):
    fitted = new(model).fit(X, y)
    before, recorder = pickle.dumps(labels_of(fitted)), Recorder(fails_at=1)
    fitted.set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="no more"):
        fitted.fit(X[::-1], 1 - y)
    assert recorder.events[-1] == ("teardown", "fit", 0)
    assert pickle.dumps(labels_of(fitted)) == before
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & vars(fitted).keys()


def test_a_search_passes_them_on():
    """Warnings are errors: one would say that an estimator takes no callbacks."""
    recorder = Passed()
    search = GridSearchCV(new(FOREST), {"max_depth": [1, 2]}, cv=2).set_callbacks(recorder)
    search.fit(X, y)
    trees = [event for event in recorder.events if event[:2] == ("end", "tree")]
    assert len(trees) == (2 * 2 + 1) * 5
    assert [event[0] for event in recorder.events].count("setup") == 1
