"""Columns ranked by all scores: a table of them, a data frame, a picture."""

import numpy as np
import pytest
from figures import close_figures  # noqa: F401
from matplotlib import pyplot

from gputree import (
    CodedTable,
    gain_ratio,
    gini_gain,
    information_gain,
    rank_features,
    symmetric_uncertainty,
    variance_reduction,
)
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.export import plot_feature_ranking

KINDS = [information_gain, gain_ratio, symmetric_uncertainty, gini_gain]
IRIS = load_iris()


@pytest.mark.parametrize("numeric", ["threshold", "mdl", "distinct"])
def test_scores_are_those_of_the_functions(numeric):
    ranking = rank_features(IRIS.data, IRIS.target, numeric=numeric)
    assert list(ranking.scores) == [kind.__name__ for kind in KINDS]
    for kind in KINDS:
        expected = kind(IRIS.data, IRIS.target, numeric=numeric)[ranking.features]
        np.testing.assert_array_equal(ranking.scores[kind.__name__], expected)
    assert (np.diff(ranking.scores["information_gain"]) <= 0).all()


def test_targets_are_ranked_by_variance():
    cars = load_auto_mpg()
    ranking = rank_features(cars.data, cars.target)
    assert list(ranking.scores) == ["variance_reduction"]
    expected = variance_reduction(cars.data, cars.target)[ranking.features]
    np.testing.assert_array_equal(ranking.scores["variance_reduction"], expected)
    assert ranking.missing.max() > 0
    whole = rank_features(cars.data, np.round(cars.target), task="regression")
    assert list(whole.scores) == ["variance_reduction"]


def test_the_table_is_printed_a_line_a_column():
    golf = load_golf()
    ranking = rank_features(golf.data, golf.target, feature_names=golf.feature_names)
    lines = repr(ranking).splitlines()
    head = "missing  information gain  gain ratio  symmetric uncertainty  gini gain  cut"
    assert lines[0].split() == head.split()
    assert [line.split()[0] for line in lines[1:]] == golf_order(golf)
    assert lines[1].endswith(
        "-            0.2467      0.1564                  0.196     0.1163  categories"
    )


def golf_order(golf):
    order = np.argsort(-information_gain(golf.data, golf.target), kind="stable")
    return np.array(golf.feature_names)[order].tolist()


def test_missing_values_and_cuts_are_shown():
    X = IRIS.data.copy()
    X[:15, 3] = np.nan
    ranking = rank_features(X, IRIS.target)
    place = ranking.names.tolist().index("x3")
    assert ranking.missing[place] == pytest.approx(0.1)
    assert ranking.cuts[place].tolist() == pytest.approx([0.8])
    assert "10.0%" in repr(ranking)
    ranges = rank_features(IRIS.data, IRIS.target, numeric="mdl")
    assert "2.45, 4.75" in repr(ranges)
    values = rank_features(IRIS.data, IRIS.target, numeric="distinct")
    assert values.cuts[0].size == 0


def test_rows_of_weight_zero_do_not_count():
    X = IRIS.data.copy()
    X[100:] = np.nan
    weight = np.repeat([1.0, 0.0], [100, 50])
    ranking = rank_features(X, IRIS.target, sample_weight=weight)
    assert ranking.missing.tolist() == [0.0] * 4
    kept = rank_features(X[:100], IRIS.target[:100])
    assert repr(ranking) == repr(kept)


def test_equal_columns_keep_their_order():
    X = np.repeat(np.arange(8.0)[:, None], 3, axis=1)
    assert rank_features(X, np.arange(8) > 3).features.tolist() == [0, 1, 2]


def test_a_frame_of_it():
    pandas = pytest.importorskip("pandas")
    frame = rank_features(
        pandas.DataFrame(IRIS.data, columns=IRIS.feature_names), IRIS.target
    ).to_frame()
    assert frame.index.name == "column"
    assert frame.index.tolist()[0] == IRIS.feature_names[frame["feature"].iloc[0]]
    assert frame.columns.tolist() == [
        "feature", "categorical", "missing", "information_gain", "gain_ratio",
        "symmetric_uncertainty", "gini_gain", "cuts",
    ]  # fmt: skip


def test_a_coded_table_and_threads():
    expected = repr(rank_features(IRIS.data, IRIS.target, n_jobs=1))
    assert repr(rank_features(CodedTable(IRIS.data), IRIS.target)) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "both"}, "'task' parameter of rank_features must be"),
        ({"numeric": "mdl", "task": "regression"}, "'numeric' parameter of rank_features must be"),
        ({"feature_names": ["a"]}, "must name all 4 columns of X. Got 1 names instead"),
        ({"device": "gpu"}, "'device' parameter of rank_features must be"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        rank_features(IRIS.data, np.arange(150) % 3, **options)


# ------------------------------------------------------------------------ plot
@pytest.mark.parametrize("score", [None, "gain_ratio"])
def test_bars_are_the_scores(score):
    ranking = rank_features(IRIS.data, IRIS.target)
    ax = ranking.plot(score=score)
    shown = np.sort(ranking.scores[score or "information_gain"])[::-1]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(shown.tolist())
    assert ax.get_xlabel() == (score or "information_gain").replace("_", " ")
    few = plot_feature_ranking(ranking, most=1, ax=pyplot.figure().add_subplot())
    assert len(few.patches) == 1
    assert few.get_xlabel() == "information gain (and 3 more columns)"


def test_what_cannot_be_drawn():
    ranking = rank_features(IRIS.data, IRIS.target)
    with pytest.raises(
        ValueError, match="'score' parameter of plot_feature_ranking must be one of"
    ):
        ranking.plot(score="chi2")
    with pytest.raises(ValueError, match="'most' parameter of plot_feature_ranking must be an int"):
        ranking.plot(most=0)
    with pytest.raises(ValueError, match=r"needs what rank_features returns\. Got dict"):
        plot_feature_ranking({})
