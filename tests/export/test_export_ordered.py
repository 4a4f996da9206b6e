"""Ordered categories in every format: predictions as by `predict`, also without a rank."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from databases import in_duckdb
from figures import close_figures, pyplot  # noqa: F401  which closes them
from ordered_tables import LEVELS, asked, ordered_table
from programs import PROGRAMS, Library, booster_of, columns_of, needs_compiler, predictions
from rules_oracle import json_class

from gputree import (
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    export_json,
    export_text,
    json_schema,
    load_model,
    read_json,
    save_model,
)
from gputree.export import (
    export_c,
    export_graphviz,
    export_html,
    export_lightgbm,
    path_rules,
    plot_partition,
    to_sklearn,
)

X, LABELS, TARGET = ordered_table(n=80)
ROWS = asked(X)
WHOLE, _, OF_WHOLE = ordered_table(n=80, seed=1, missing=False)
TREES = {
    "missing go down": DecisionTreeClassifier(max_depth=4).fit(X, LABELS),
    "missing apart": DecisionTreeRegressor(max_depth=1).fit(X[["level"]], X["level"].isna() * 1.0),
    "none missing": DecisionTreeRegressor(max_depth=3).fit(WHOLE, OF_WHOLE),
    "forest": RandomForestClassifier(n_estimators=2, max_depth=2, random_state=0).fit(X, LABELS),
}
of_trees = pytest.mark.parametrize("model", TREES.values(), ids=TREES)


def rows_of(model):
    return ROWS[model.feature_names_in_.tolist()]


def answers(model):
    return predictions(model, rows_of(model))


def test_one_tree_separates_missing_values():
    tree = TREES["missing apart"].tree_
    assert tree.threshold[0] == np.inf
    assert answers(TREES["missing apart"]).mean() > 0.2


@of_trees
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_answer_as_the_model_does(program, model, tmp_path):
    PROGRAMS[program](model, rows_of(model), tmp_path)


@needs_compiler
@of_trees
def test_c_codes_levels_by_their_text(model, tmp_path):
    library = Library(export_c(model), tmp_path)
    unknown = library.functions.tree_code(0, b"beyond")
    assert unknown == -1
    assert library.functions.tree_code(0, LEVELS[4].encode()) == 4
    values = model.columns_.encode(rows_of(model)).astype(np.float64)
    values[rows_of(model)["level"].to_numpy() == "beyond", 0] = unknown
    expected = answers(model)
    np.testing.assert_array_equal(library.answers(values, expected.shape[1]), expected)


@of_trees
def test_lightgbm_takes_frames(model):
    rows = rows_of(model)
    known = rows["level"].where(rows["level"].isin(LEVELS), None)
    frame = rows.assign(level=pd.Categorical(known, LEVELS, ordered=True))
    if "c" in frame:
        frame["c"] = frame["c"].astype("category")
    found = booster_of(model).predict(frame)
    np.testing.assert_array_equal(found.reshape(len(ROWS), -1), answers(model))


def test_sql_and_json_of_rules():
    model = C45Rules(C45Classifier(pruning=None)).fit(X, LABELS)
    expected = model.predict(ROWS).tolist()
    assert in_duckdb(model.rules_.to_sql(table="rows"), columns_of(ROWS)) == expected
    document = json.loads(model.rules_.to_json())
    assert [json_class(document, row) for row in ROWS.to_dict("records")] == expected


def test_lightgbm_of_an_order_without_levels():
    empty = pd.DataFrame({"s": pd.Categorical([None] * 9, [], ordered=True), "b": np.arange(9.0)})
    text = export_lightgbm(DecisionTreeRegressor().fit(empty, np.arange(9.0)))
    assert "feature_infos=none [-1.79" in text


def test_scikit_learn_takes_ranks():
    model = DecisionTreeClassifier(max_depth=4).fit(X[["level", "z"]], LABELS)
    coded = model.columns_.encode(ROWS[["level", "z"]])
    made = to_sklearn(model)
    del made.feature_names_in_
    np.testing.assert_array_equal(made.predict_proba(coded), answers(model))


def test_pictures_have_the_names():
    model = DecisionTreeRegressor(max_depth=2).fit(WHOLE[["level", "z"]], OF_WHOLE)
    assert "<= very low" in export_graphviz(model)
    assert "level \\u003c= very low" in export_html(model)
    _, ax = pyplot.subplots()
    plot_partition(model, ("level", "z"), X=WHOLE[["level", "z"]], y=OF_WHOLE, ax=ax)
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == [*LEVELS[:4], f'"{LEVELS[4]}"']


# ----------------------------------------------------------------------- files
SAVED = [
    *TREES.values(),
    C45Classifier(soft_thresholds=True).fit(X, LABELS),
    C45Rules().fit(X, LABELS),
]


@pytest.mark.parametrize("model", SAVED, ids=lambda model: type(model).__name__)
def test_model_files(model, tmp_path):
    path = tmp_path / "model.gputree"
    save_model(model, path)
    again = load_model(path)
    assert again.columns_.same_as(model.columns_)
    np.testing.assert_array_equal(answers(again), answers(model))
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("model.json"))["format_version"] == 7


def test_model_files_without_an_order_are_of_an_older_version(tmp_path):
    model = DecisionTreeClassifier(max_depth=2, ordered_categories=None).fit(X, LABELS)
    save_model(model, tmp_path / "model.gputree")
    with zipfile.ZipFile(tmp_path / "model.gputree") as archive:
        header = json.loads(archive.read("model.json"))
    assert header["format_version"] == 3
    assert "ordered" not in header
    assert json.loads(export_json(model))["format_version"] == 1


@pytest.mark.parametrize("model", SAVED[:-1], ids=lambda model: type(model).__name__)
def test_json_documents(model):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    document = json.loads(export_json(model))
    assert (document["format_version"], document["ordered"]) == (5, [0])
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.validate(document)
    again = read_json(json.dumps(document))
    assert again.columns_.same_as(model.columns_)
    np.testing.assert_array_equal(answers(again), answers(model))
    for damaged in ({"format_version": 1}, {"ordered": []}):
        assert not validator.is_valid(document | damaged)


@pytest.mark.parametrize("ordered", [[1], [7], [True], "level", [2]])
def test_columns_that_no_order_can_be_of(ordered):
    document = json.loads(export_json(TREES["missing go down"]))
    with pytest.raises(ValueError, match=r"ordered"):
        read_json(json.dumps(document | {"ordered": ordered}))


def test_levels_that_are_numbers_read_as_numbers_only_where_they_ascend():
    def written(levels):
        frame = pd.DataFrame({"s": pd.Categorical(levels * 10, levels, ordered=True)})
        y = np.isin(frame["s"], levels[1:3]) * 1
        tree = DecisionTreeClassifier().fit(frame, y)
        rules = C45Rules(C45Classifier(pruning=None)).fit(frame, y).rules_
        ranges = [" and ".join(rule.conditions) for rule in path_rules(tree)]
        return export_text(tree), export_graphviz(tree), str(rules), " ".join(ranges)

    text, dot, rules, ranges = written(["2.5", "-1", "10", "3"])
    assert 's > "2.5"\n|   s <= "10": 1' in text
    assert 'label=" <= \\"2.5\\" "' in dot
    assert 's <= "10"' in rules
    assert '"2.5" < s <= "10"' in ranges
    for levels in ([3, 1, 2, 7], ["3", "low", "2", "7"]):
        assert 's <= "3"' in written(levels)[0]
    for levels in ([1, 2, 3, 7], ["1", "2", "3", "7"]):
        assert "1 < s <= 3" in written(levels)[3]
