"""`gputree train`: what is read, how it is scored, and which model comes of it."""

import inspect
import io
import re
import shlex
import sys
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    load_model,
)
from gputree.cli import main
from gputree.cli.options import METHODS, parse_pruner
from gputree.cli.report import as_argument, parse_names
from gputree.cli.resampling import resampling
from gputree.criteria.named import CRITERIA
from gputree.datasets import ReadingWarning, load_auto_mpg, load_golf, load_iris, read_table
from gputree.pruning import PRUNERS, CostComplexity, CostComplexityCV, Pessimistic

GOLF = load_golf().filename
IRIS = load_iris().filename
CARS = load_auto_mpg().filename


# --------------------------------------------------------------- the model is the estimator's
cells = st.sampled_from(["", "?", "1", "2", "2.5", "-3", "0"])
words = st.sampled_from(["", "?", "red", "green", "blue"])
tables = st.lists(st.tuples(cells, words, words, st.sampled_from("ab")), min_size=2, max_size=12)
CLASSES = {"cart": DecisionTreeClassifier, "c45": C45Classifier, "id3": ID3Classifier}


@pytest.mark.filterwarnings(
    "ignore::gputree.errors.MixedColumnWarning"
)  # the command's own is said
@given(rows=tables, algorithm=st.sampled_from(sorted(CLASSES)), missing=st.booleans())
def test_the_model_is_the_estimators(tmp_path_factory, rows, algorithm, missing):
    """Field by field, whether "?" is missing or not."""
    folder = tmp_path_factory.mktemp("table")
    data, path = folder / "table.csv", folder / "model"
    data.write_text("n,s,t,y\n" + "".join(",".join(row) + "\n" for row in rows))
    tokens = ["?"] if missing else []
    flags = [word for token in tokens for word in ("--missing", token)]
    command = ["train", data, "--target", "y", "--algorithm", algorithm, "--quiet", "-o", path]
    assert main([*map(str, command), *flags]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        table = read_table(data, "y", missing=tokens)
    expected = CLASSES[algorithm](random_state=0).fit(table.columns, table.target)
    model = load_model(path)
    assert type(model) is CLASSES[algorithm]
    assert model.tree_.equals(expected.tree_)
    params = expected.get_params()
    assert model.get_params().keys() == params.keys()
    assert {k: v for k, v in model.get_params().items() if params[k] != v} == {}


def test_numbers_that_are_categories_and_columns_that_must_be_numbers(
    train, fails, write, tmp_path
):
    data = write("month,flag,n,y\n1,true,3,a\n10,false,4,b\n2,true,5,a\n10,true,?,b\n")
    arguments = [data, "--target", "y", "--algorithm", "c45"]
    model = train(*arguments, "--categorical", "month", "--missing", "?")
    assert model.columns_.nominal.tolist() == [True, True, False]  # flag by its type
    assert model.columns_.categories[0].tolist() == [1, 2, 10]
    model = train(*arguments, "--numeric", "flag,n", "--missing", "?")
    assert model.columns_.nominal.tolist() == [False, False, False]
    out = ["-o", tmp_path / "other"]
    error = fails("train", *arguments, "--numeric", "n", *out)
    assert error.endswith(
        "column 'n' must hold numbers; it holds '?'. If that stands for a missing value, add "
        "--missing '?'\n"
    )
    missing = ["--missing", "?", "--numeric", "m"]
    assert "no feature column 'm'" in fails("train", *arguments, *missing, *out)
    both = ["--numeric", "month", "--categorical", "month"]
    assert "both name 'month'" in fails("train", *arguments, *both, *out, status=2)


def test_text_columns_of_parquet_can_be_numbers(train, tmp_path):
    data = tmp_path / "table.parquet"
    columns = {"n": ["1", "2.5", "?", "4"], "y": ["a", "b", "a", "b"]}
    pq.write_table(pa.table(columns), data)
    model = train(data, "--target", "y", "--numeric", "n", "--missing", "?")
    assert not model.columns_.nominal[0]


def test_cells_that_look_missing_are_told(train, write):
    data = write("a,b,c,d,y\n1,?,x,NA,p\n?,u,?,v,q\n3,v,z,w,p\n")
    *_, errors = train(data, "--target", "y", words=True)
    first, *others = errors.splitlines()
    assert "column 'a' holds 2 numbers and 1 text ('?'), and is taken for text" in first
    assert "add --missing '?'; --numeric a makes an error of it" in first
    assert "'?' is a category like others in 'b', 'c'." in others[0]
    assert "'NA' is a category like others in 'd'." in others[1]
    marks = ["--missing", "?", "--missing", "NA"]
    *_, errors = train(data, "--target", "y", *marks, words=True)
    assert errors == ""


def test_dates_are_refused_with_advice(fails, train, write, tmp_path):
    data = write("born,seen at,n,y\n2001-02-03,2024-01-31 10:00:00,1,a\n2001-02-04,,2,b\n")
    error = fails("train", data, "--target", "y", "-o", tmp_path / "model")
    assert f"{data} has dates or times in columns 'born', 'seen at', such as 2001-02-03" in error
    assert "(year, month, weekday, hour, days since a day)" in error
    flags = re.search("--ignore '(.*)'$", error)
    assert list(train(data, "--target", "y", "--ignore", flags[1]).feature_names_in_) == ["n"]


DATES = {
    "01/02/2020": "31/12/2020",  # either order
    "1/2/20": "12/31/20",
    "2020/01/02": "2020/12/31",
    "31.12.2020": "1.2.2020",
    "01-02-2020": "31-12-2020",
    "2020-01-02": "n.a.",  # which keeps the reader from seeing a date
    "2020-01": "2020-12",
    "2020-W01": "2020-W53",
    "1 Jan 2020": "31 December 2020",
    "Jan 1, 2020": "Dec 31st, 2020",
    "01-Jan-20": "31-Dec-20",
    "Mon, 3 Feb 2020 10:00:00 GMT": "Tue, 4 Feb 2020 10:00:00 GMT",
    "01/02/2020 10:30": "31/12/2020 23:59:59",
    "2020-01-02T10:30:00.5+02:00": "2020-01-02T10:30:00.5-0930",
    "10:30": "23:59",
    "10:30 pm": "9:05 AM",
    "9:30:00": "23:05:10",
    "2001-02": "2001-03",
    "10:30:00.25": "00:00:00.5",
}


@pytest.mark.parametrize("first", DATES)
def test_dates_in_any_writing_are_refused(fails, train, write, tmp_path, first):
    data = write(f'born,n,y\n"{first}",1,a\n,2,b\n"{DATES[first]}",3,a\n')
    arguments = [data, "--target", "y"]
    error = fails("train", *arguments, "-o", tmp_path / "model")
    assert f"has dates or times in column 'born', such as {first[:10]}" in error
    assert "Make numbers of them (year, month, weekday, hour, days since a day)" in error
    assert error.endswith("leave it out: --ignore born\n")
    assert list(train(*arguments, "--ignore", "born").feature_names_in_) == ["n"]


def test_dates_that_are_but_names(fails, train, write, tmp_path):
    data = write("lot,n,y\n2020-01,1,a\n2020-02,2,b\n")
    arguments = [data, "--target", "y"]
    error = fails("train", *arguments, "-o", tmp_path / "model")
    assert "; if they are categories: --categorical lot; or leave it out" in error
    model = train(*arguments, "--categorical", "lot")
    assert model.columns_.categories[0].tolist() == ["2020-01", "2020-02"]


def test_dates_of_a_type_that_are_but_names(fails, train, gputree, write, tmp_path):
    data = write("at,day,y\n10:30,2001-02-03,a\n09:30,2001-02-04,b\n")
    arguments = [data, "--target", "y"]
    error = fails("train", *arguments, "-o", tmp_path / "model")
    assert "if they are categories: --categorical at,day; or leave them out" in error
    model = train(*arguments, "--categorical", "at,day")
    found = [words.tolist() for words in model.columns_.categories]
    assert found == [["09:30", "10:30"], ["2001-02-03", "2001-02-04"]]
    answers = gputree("predict", tmp_path / "model", data)[1]
    assert answers == "prediction\na\nb\n"


def test_leading_zeros_of_codes(train, gputree, tmp_path):
    data, kept = tmp_path / "table.csv", tmp_path / "model"
    data.write_text("zip,n,y\n" + "007,1,01\n7,2,1\n07,3,2\n" * 4)
    arguments = [data, "--target", "y", "--categorical", "zip"]
    model, _, errors = train(*arguments, words=True)
    assert "target column 'y' holds '01', and is taken for classes; --task regression" in errors
    assert model.classes_.tolist() == ["01", "1", "2"]
    assert model.columns_.categories[0].tolist() == ["007", "07", "7"]
    assert gputree("predict", kept, data)[1] == "prediction\n" + "01\n1\n2\n" * 4
    *_, errors = train(*arguments, "--task", "regression", words=True)
    assert errors == ""
    assert gputree("predict", kept, data)[1] == "prediction\n" + "1.0\n1.0\n2.0\n" * 4
    assert gputree("evaluate", kept, data)[::2] == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("10-12", "13-17"),  # bands of ages
        ("1.2.3", "1.10.12"),  # versions
        ("32/13/2020", "01/02/2020"),
        ("10/20/30", "20/30/40"),  # shares
        ("may", "june"),
        ("Octavia 2010", "Maybach 2012"),
        ("1:2", "3:1"),
        ("555-12-3456", "555-12-3457"),
        ("01/02/2020", "unknown day"),
        ("3:45", "12:10"),  # lengths, scores
        ("20-12-31", "20-11-15"),  # codes
        ("10.10.10", "12.1.11"),
        ("31.12.20", "01.02.20"),
        ("2001-02", "2002-03"),  # seasons
        ("1999-00", "2000-01"),
    ],
)
def test_words_that_are_no_dates(train, write, words):
    data = write("word,y\n" + "".join(f"{word},{word[0]}{i}\n" for i, word in enumerate(words)))
    assert sorted(train(data, "--target", "y").columns_.categories[0]) == sorted(words)


@pytest.mark.parametrize("dates", [("2020-01-02", "2020-01-03"), ("1/2/2020", "31/2/2020")])
def test_a_target_of_dates(fails, train, write, tmp_path, dates):
    data = write("n,day\n" + "".join(f"{i},{day}\n" for i, day in enumerate(dates)))
    arguments = [data, "--target", "day"]
    error = fails("train", *arguments, "-o", tmp_path / "model")
    assert f"The target column 'day' of {data} holds dates or times, such as {dates[0]}" in error
    assert train(*arguments, "--task", "classification").classes_.tolist() == list(dates)


# ------------------------------------------------------------------- how a CSV file is written
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_and_decimal_commas(train, gputree, write, tmp_path, delimiter):
    comma, other = tmp_path / "comma.csv", tmp_path / "other.csv"
    rows = [
        ["n", "w", "i", "y"],
        *([f"{i / 4}", "ab"[i % 2], str(i), "pq"[i > 4]] for i in range(9)),
    ]
    comma.write_text("".join(",".join(row) + "\n" for row in rows))
    commas = [[cell.replace(".", ",") for cell in row] for row in rows]
    other.write_text("".join(delimiter.join(row) + "\n" for row in commas))
    expected, model = (train(path, "--target", "y") for path in (comma, other))
    assert model.tree_.equals(expected.tree_)
    assert model.columns_.nominal.tolist() == [False, True, False]
    path = tmp_path / "model"
    assert gputree("predict", path, other) == gputree("predict", path, comma)
    assert gputree("predict", path, "-", stdin=other.read_bytes()) == gputree(
        "predict", path, comma
    )
    assert gputree("evaluate", path, other)[1] == gputree("evaluate", path, comma)[1]
    points = write("".join(delimiter.join(row) + "\n" for row in rows), "points.csv")
    assert train(points, "--target", "y").tree_.equals(expected.tree_)


def test_decimal_commas_between_quotes_are_told(train, fails, write, tmp_path):
    data = write('n,y\n"1,5",a\n"2,25",b\n3,a\n')
    *_, errors = train(data, "--target", "y", words=True)
    assert "column 'n' holds numbers with commas, such as 1,5, and is taken for text" in errors
    error = fails("train", data, "--target", "y", "--numeric", "n", "-o", tmp_path / "out")
    assert "it holds '1,5'. If that is a decimal comma, add --decimal ," in error
    model = train(data, "--target", "y", "--decimal", ",")
    assert not model.columns_.nominal[0]
    assert "--missing" not in error


# ------------------------------------------------------------------------- marks of missing
def test_marks_of_missing_cells_are_kept(train, gputree, tmp_path):
    """Neither predict nor evaluate need them again, and neither does a pruned model."""
    data, path = tmp_path / "table.csv", tmp_path / "model"
    numbers = ["?" if i % 3 == 0 else str(i) for i in range(20)]
    words = ["-" if i % 4 == 0 else "uv"[i % 2] for i in range(20)]
    rows = zip(numbers, words, "a" * 10 + "b" * 10, strict=True)
    data.write_text("n,w,y\n" + "".join(",".join(row) + "\n" for row in rows))
    model = train(data, "--target", "y", "--missing", "?", "--missing", " -")
    assert model.missing_marks_ == ["?", "-"]
    marked = gputree("predict", path, data, "--missing", "?", "--missing", "-")
    assert gputree("predict", path, data) == marked
    assert marked[0] == 0
    assert marked[2] == ""
    assert gputree("evaluate", path, data)[2] == ""
    assert "Missing values are written as '?', '-'." in gputree("show", path)[1]
    small = tmp_path / "small"
    assert gputree("prune", path, "--pruning", "penalized_loss", "-o", small)[0] == 0
    assert load_model(small).missing_marks_ == ["?", "-"]
    text = tmp_path / "model.json"
    assert gputree("export", path, "-o", text)[0] == 0
    assert gputree("predict", text, data) == marked
    assert not hasattr(train(data, "--target", "y"), "missing_marks_")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit([[1.0], [2.0]], ["a"])
    assert model.missing_marks_ == ["?", "-"]
    assert not hasattr(model.fit([[1.0], [2.0]], ["a", "b"]), "missing_marks_")


def test_lists_of_names_add_up(train, write):
    data = write('"a,b",c,d,e,y\n1,2,3,4,x\n3,4,5,6,z\n')
    model = train(data, "--target", "y", "--ignore", '"a,b",e', "--ignore", "d")
    assert list(model.feature_names_in_) == ["c"]
    model = train(data, "--target", "y", "--columns", '"a,b"', "--columns", "e,c")
    assert list(model.feature_names_in_) == ["a,b", "e", "c"]


names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1)


@given(names)
def test_advice_names_columns_as_they_are_read(columns):
    assert parse_names(*shlex.split(as_argument(columns))) == columns


# -------------------------------------------------------------------------------- scores
def score_rows(output):
    """The table of scores: numbers by name."""
    lines = output.split("\n\n")[1].splitlines()
    return lines[0], {
        line.split("  ")[0]: [float(x.replace(",", "")) for x in line.split()[-width:]]
        for line, width in ((line, 4 if "fold" in lines[0] else 3) for line in lines[2:])
        if not line.startswith("leaves")
    }


@pytest.mark.parametrize("evaluation", [["--cv", "3"], ["--holdout", "0.2"]])
def test_an_evaluation_needs_no_model_file(said, gputree, tmp_path, monkeypatch, evaluation):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", IRIS, "--target", "species", *evaluation]
    output = said(*arguments)
    assert not list(tmp_path.iterdir())
    with_file = gputree(*arguments, "-o", "model")[1]
    lines, more = output.splitlines(), with_file.splitlines()
    assert [line for line in more if not line.startswith(("model", "training"))] == [
        line for line in lines if not line.startswith("training")
    ]
    assert load_model(tmp_path / "model").get_n_leaves() == 9


def test_cross_validation_is_scikit_learns(train):
    arguments = [IRIS, "--target", "species", "--cv", "5", "--random-state", "3"]
    _, output, errors = train(*arguments, words=True)
    assert errors == ""
    heading, scores = score_rows(output)
    assert heading == "5-fold cross-validation, stratified, seed 3"
    table = read_table(IRIS, "species")
    splits = resampling(table.target, True, None, 5, 3).splits
    X = np.stack([column.to_numpy() for column in table.columns.columns], axis=1)
    model = DecisionTreeClassifier(random_state=3)
    expected = cross_val_score(model, X, table.target, cv=splits)
    summary = [expected.mean(), expected.std(ddof=1), expected.min(), expected.max()]
    assert scores["accuracy"] == pytest.approx(summary, abs=1e-4)
    for _, test in splits:  # stratified
        assert np.unique(table.target[test], return_counts=True)[1].tolist() == [10, 10, 10]
    assert train(*arguments, words=True)[1].splitlines()[-4:] == output.splitlines()[-4:]


def test_rows_held_out(train):
    model, output, _ = train(CARS, "--target", "mpg", "--holdout", "0.25", words=True)
    heading, scores = score_rows(output)
    assert heading == "100 rows of 398 held out, seed 0"
    table = read_table(CARS, "mpg")
    assert model.tree_.n_rows[0] == 398  # the model has them all
    [(grown, held)] = resampling(table.target, False, 0.25, None, 0).splits
    part = DecisionTreeRegressor().fit(table.columns.take(grown), table.target[grown])
    X, y = table.columns.take(held), table.target[held]
    inside = part.score(table.columns.take(grown), table.target[grown])
    off = np.abs(part.predict(X) - y)
    assert scores["R2"][::2] == pytest.approx([part.score(X, y), inside], abs=1e-4)
    spread = off.std(ddof=1) / 10
    assert scores["MAE"][:2] == pytest.approx([off.mean(), spread], abs=1e-4)
    assert scores["RMSE"][0] == pytest.approx(np.sqrt((off**2).mean()), abs=1e-4)


@given(counts=st.lists(st.integers(1, 12), min_size=1, max_size=4), share=st.floats(0.05, 0.95))
def test_held_out_rows_are_a_share_of_each_class(counts, share):
    y = np.repeat(np.arange(len(counts)), counts)
    rest = sum(count for count in counts if count > 1)
    classes = sum(count > 1 for count in counts)
    if min(np.ceil(share * rest), rest - np.ceil(share * rest)) < max(classes, 1):
        with pytest.raises(ValueError, match="too few rows on a side"):
            resampling(y, True, share, None, 0)
        return
    [(train, test)] = resampling(y, True, share, None, 0).splits
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(y.size))
    for code, count in enumerate(counts):
        held = int((y[test] == code).sum())
        assert abs(held - share * count) <= 1.5 or count == 1
        if count == 1:
            assert held == 0


def test_splits_that_cannot_be(misused, tmp_path):
    out = ["-o", tmp_path / "model"]
    golf = ["train", GOLF, "--target", "play", *out]
    assert "--cv must be from 2 to the number of rows, 14. Got 15" in misused(*golf, "--cv", 15)
    assert "--holdout 0.05 of 14 rows leaves too few" in misused(*golf, "--holdout", 0.05)
    for share in ("20", "1", "0"):
        assert f"between 0 and 1, got '{share}'" in misused(*golf, "--holdout", share)
    assert "not allowed with" in misused(*golf, "--holdout", 0.2, "--cv", 5)
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------- pruning
def test_pruners_and_their_parameters():
    assert parse_pruner("penalized-loss") == "penalized_loss"
    pruner = parse_pruner("cost_complexity:alpha=0.01,risk=error")
    assert type(pruner) is CostComplexity
    assert pruner.get_params() == {"alpha": 0.01, "risk": "error", "cp": None}
    assert parse_pruner("cost_complexity:cp=0.01").get_params()["cp"] == 0.01
    pruner = parse_pruner("pessimistic: confidence=.1, subtree-raising=False")
    assert type(pruner) is Pessimistic
    assert pruner.get_params()["confidence"] == 0.1
    assert pruner.get_params()["subtree_raising"] is False
    assert parse_pruner("cost_complexity_cv:cv=5,rule=1se").get_params()["rule"] == "1se"


def test_parameters_of_pruners_are_told():
    """They are written out: those of the classes, but that of a random state."""
    assert METHODS.keys() == PRUNERS.keys()
    for name in PRUNERS.keys() - {"cost_complexity"}:
        given = inspect.signature(PRUNERS[name]).parameters.values()
        told = [f"{p.name}={p.default}" for p in given if p.name != "random_state"]
        assert METHODS[name] == ", ".join(told).replace("=True", "=true")
    named = re.findall(r"\w+(?= or|,|=)", METHODS["cost_complexity"])
    assert {*named} == {*CostComplexity().get_params()}


def test_criteria_are_told(gputree):
    names = "; ".join(" or ".join(names) for names in CRITERIA.values())
    assert f" {names} (cart, forests); " in " ".join(gputree("train", "--help")[1].split())


def test_every_pruner_can_be_asked_for(train):
    full = train(IRIS, "--target", "species")
    for name in sorted(PRUNERS, key="cost_complexity".__eq__):  # which comes last
        given = f"{name}:alpha=0.02" if name == "cost_complexity" else name
        model = train(IRIS, "--target", "species", "--pruning", given)
        assert model.get_n_leaves() <= full.get_n_leaves()
    table = read_table(IRIS, "species")
    expected = DecisionTreeClassifier(ccp_alpha=0.02).fit(table.columns, table.target)
    assert model.tree_.equals(expected.tree_)
    assert 1 < model.get_n_leaves() < full.get_n_leaves()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("best", "'best' is none of cost_complexity, "),
        ("cost_complexity", "lacks its alpha: write cost_complexity:alpha=0.01"),
        ("cost_complexity:risk=error", "lacks its alpha"),
        ("cost_complexity:alpha=1,cp=1", "cost_complexity: cp must be None where alpha is given"),
        ("pessimistic:alpha=1", "pessimistic takes confidence=..., subtree_raising=..., "),
        ("pessimistic:0.1", "got '0.1'"),
        ("pessimistic:confidence=2", "confidence must be a float in the range (0.0, 1.0). Got 2"),
        ("cost_complexity_cv:cv=ten", "cv must be"),
        ("reduced_error:validation-fraction=3", "validation_fraction must be a float"),
    ],
)
def test_pruners_that_cannot_be(misused, tmp_path, given, message):
    error = misused("train", IRIS, "--target", "species", "--pruning", given, "-o", tmp_path / "m")
    assert message in error


def test_prune_a_saved_model(said, gputree, tmp_path):
    full, small = tmp_path / "full", tmp_path / "small"
    assert gputree("train", IRIS, "--target", "species", "-o", full)[0] == 0
    output = said("prune", full, "--pruning", "cost_complexity:alpha=0.02", "-o", small)
    before, after = load_model(full), load_model(small)
    assert after.tree_.equals(CostComplexity(0.02).prune(before).tree_)
    assert output.splitlines()[1].endswith(f"{after.get_n_leaves()} leaves, depth 3")
    for name in ("cost_complexity_cv:cv=5", "reduced_error", "validation-pre-pruning"):
        assert gputree("prune", full, IRIS, "--pruning", name, "-o", small)[0] == 0
    table = read_table(IRIS, "species")
    assert gputree("prune", full, IRIS, "--pruning", "cost_complexity_cv", "-o", small)[0] == 0
    expected = CostComplexityCV(random_state=0).prune(before, table.columns, table.target)
    assert load_model(small).tree_.equals(expected.tree_)


def test_seeds_of_pruning(said, gputree, tmp_path, monkeypatch):
    """The seed of a pruner overrides that of the command."""
    seeds = []
    monkeypatch.setattr(
        CostComplexityCV, "prune",
        lambda self, estimator, *_: seeds.append(self.random_state) or estimator,
    )  # fmt: skip
    monkeypatch.setattr(CostComplexityCV, "alpha_", 0.0, raising=False)
    full, small = tmp_path / "full", tmp_path / "small"
    assert gputree("train", IRIS, "--target", "species", "-o", full)[0] == 0
    for pruner in ("cost_complexity_cv", "cost_complexity_cv:random_state=7"):
        for seed in ([], ["--random-state", 3]):
            said("prune", full, IRIS, "--pruning", pruner, *seed, "-o", small)
    assert seeds == [0, 3, 7, 7]


def test_prune_errors(gputree, misused, fails, tmp_path):
    full, out = tmp_path / "full", tmp_path / "small"
    assert gputree("train", CARS, "--target", "mpg", "-o", full)[0] == 0
    asked = partial_prune(full, out)
    error = misused(*asked("reduced_error"))
    assert "reduced_error needs rows that the tree was not grown on: name the table" in error
    assert "needs no rows: leave" in misused(*asked("penalized_loss", CARS))
    assert "leaves the tree as it is" in misused(*asked("none"))
    assert "would overwrite" in misused("prune", full, "--pruning", "penalized_loss", "-o", full)
    assert "needs a classification tree" in fails(*asked("pessimistic:subtree_raising=false"))
    iris = fails(*asked("reduced_error", IRIS), "--target", "species")
    assert "has no columns 'cylinders'" in iris
    assert not out.exists()


def partial_prune(model, out):
    return lambda given, *data: ["prune", model, *data, "--pruning", given, "-o", out]


# --------------------------------------------------------------------------- the terminal
def test_compiling_is_told_on_a_terminal_only(gputree, tmp_path, monkeypatch):
    from gputree.compilation import waits

    def fit(self, X, y, sample_weight=None):
        waits._waits[1].announce()
        return fitted(self, X, y, sample_weight)

    fitted = DecisionTreeClassifier.fit
    monkeypatch.setattr(DecisionTreeClassifier, "fit", fit)
    arguments = ["train", IRIS, "--target", "species", "-o", tmp_path / "model"]
    assert gputree(*arguments)[2] == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main([str(argument) for argument in arguments]) == 0
    said = [line for line in terminal.getvalue().splitlines() if line.startswith("gputree")]
    assert said == [f"gputree: {waits.MESSAGE}"]
    assert load_model(tmp_path / "model").verbose == 0  # of the terminal, not of the model
