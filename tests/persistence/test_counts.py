"""Counts in the header of a file are those of the trees, or the file is refused, by its name."""

import json

import numpy as np
import pytest
from damage import pack, unpack
from saved_models import CASES, fitted

from gputree import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    load_model,
    save_model,
)

X = np.arange(20.0)[:, None]
Y = X[:, 0]
FORESTS = {
    "drawn": RandomForestRegressor(2, random_state=0).fit(X, Y),
    "few drawn": RandomForestRegressor(3, random_state=0, max_samples=9).fit(X, Y),
    "balanced": RandomForestClassifier(2, random_state=0, class_weight="balanced_subsample").fit(
        X, Y > 12
    ),
    "by weight": RandomForestRegressor(2, random_state=0).fit(X, Y, Y),
    "all rows": ExtraTreesRegressor(2, random_state=0).fit(X, Y, Y > 3),
}
HUGE = (2**31, 2**63, 10**20)


def changed(path, change):
    """The file with another header."""
    parts = unpack(path)
    header = json.loads(parts["model.json"])
    change(header)
    pack(path, parts | {"model.json": json.dumps(header).encode()})


@pytest.mark.parametrize("case", FORESTS)
def test_forests_are_read_again(case, tmp_path):
    path, forest = tmp_path / "forest.gputree", FORESTS[case]
    save_model(forest, path)
    again = load_model(path)
    if case != "by weight":
        for ours, theirs in zip(forest.estimators_samples_, again.estimators_samples_, strict=True):
            assert (ours == theirs).all()


@pytest.mark.parametrize(
    ("case", "field", "values"),
    [
        ("drawn", "n_rows", (-1, 0, 12, 40, 10**15, *HUGE)),
        ("drawn", "draws", (-1, 0, 19, 21, 40, None, *HUGE)),
        ("drawn", "seed", (-1, 1, 2**64)),
        ("few drawn", "n_rows", (8, 19, 30, 2**31 - 1, *HUGE)),
        ("few drawn", "draws", (8, 10, 20, None, *HUGE)),
        ("balanced", "draws", (19, 21, 2**31)),
        ("by weight", "n_rows", (0, 9, *HUGE)),
        ("by weight", "draws", (19, 21, *HUGE)),
        ("all rows", "n_rows", (0, 15, *HUGE)),
        ("all rows", "draws", (1, 20, *HUGE)),
    ],
)
def test_draws_of_a_forest(case, field, values, tmp_path):
    path = tmp_path / "forest.gputree"
    for value in values:
        save_model(FORESTS[case], path)
        changed(path, lambda header, to=value: header["bootstrap"].update({field: to}))
        with pytest.raises(ValueError, match=r"forest\.gputree does not hold a valid"):
            load_model(path)


def test_draws_of_large_forests_are_compared_by_their_number(tmp_path, monkeypatch):
    """The rows of many draws are known to a few standard deviations."""
    monkeypatch.setattr("gputree.persistence.forests.MOST_DRAWN_AGAIN", 0)
    monkeypatch.setattr("gputree.persistence.forests.MOST_DEVIATIONS", 0.5)
    path = tmp_path / "forest.gputree"
    save_model(FORESTS["drawn"], path)
    load_model(path)
    for rows in (100, 10**9):
        save_model(FORESTS["drawn"], path)
        changed(path, lambda header, to=rows: header["bootstrap"].update(n_rows=to))
        with pytest.raises(ValueError, match=f"20 draws of {rows} n_rows give"):
            load_model(path)
    one = RandomForestRegressor(1, random_state=0).fit([[1.0]], [1.0])
    save_model(one, path)
    assert load_model(path).predict([[1.0]]) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines.pop(), "bootstrap must contain 4 elements, got 2"),
        (lambda lines: lines[1]["trees"].append(7), "bootstrap must contain 4 elements, got 5"),
        (lambda lines: lines[1].update(trees=[0, -1]), "must be integers from 0 to"),
        (lambda lines: lines[1].update(trees=[0, 2.0]), "must be integers from 0 to"),
        (lambda lines: lines[1].update(trees=[5, 6]), "draws of 20 n_rows give"),
        (lambda lines: lines.append(3), "must be an object, or a list of them"),
        (lambda lines: lines[0].pop("trees"), "its header lacks trees"),
    ],
)
def test_draws_of_joined_forests(change, message, tmp_path):
    path = tmp_path / "forest.gputree"
    other = RandomForestRegressor(2, random_state=1).fit(X, Y)
    save_model(FORESTS["drawn"] + other, path)
    changed(path, lambda header: change(header["bootstrap"]))
    with pytest.raises(ValueError, match=message):
        load_model(path)


def test_rows_that_are_split_and_columns_that_are_winnowed(tmp_path):
    path = tmp_path / "boosted.gputree"
    for least in HUGE:
        save_model(fitted("boosted, costs"), path)
        changed(path, lambda header, to=least: header.update(min_samples_split=to))
        with pytest.raises(ValueError, match=f"min_samples_split is {least}; trees of"):
            load_model(path)
    boosted = fitted("boosted, winnowed")
    tested = boosted.estimators_[0].tree_.feature[0]
    save_model(boosted, path)
    changed(path, lambda header: header["winnowed"].append(int(tested)))
    with pytest.raises(ValueError, match="a split tests a column of winnowed"):
        load_model(path)


# ------------------------------------------------------------------- every number
def places(value, path=()):
    """Paths of the numbers of a header; of lists, of the first few."""
    if isinstance(value, dict):
        value = value.items()
    elif isinstance(value, list):
        value = enumerate(value[:4])
    else:
        if type(value) in (int, float):
            yield path
        return
    for key, item in value:
        yield from places(item, (*path, key))


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_every_number_of_every_header(case, tmp_path):
    """A file is refused, or holds a model whose parts are as large as the trees are."""
    path = tmp_path / "model.gputree"
    save_model(fitted(case), path)
    parts = unpack(path)
    for place in places(json.loads(parts["model.json"])):
        for value in (-1, 0, *HUGE, 1e300):
            header = json.loads(parts["model.json"])
            inner = header
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            pack(path, parts | {"model.json": json.dumps(header).encode()})
            try:
                model = load_model(path)
            except ValueError as error:
                assert str(path) in str(error)  # noqa: PT017
                continue
            assert not hasattr(model, "_origins") or model._draws.n < 1000
            assert repr(model)
