"""Tables of any library as one matrix, against a coding by hand."""

import datetime
import decimal
import fractions
from unittest import mock

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree import CodedTable, DecisionTreeClassifier
from gputree.base.dtypes import UNSEEN
from gputree.columns import Columns, fit_columns, fit_encode

polars = pytest.importorskip("polars", reason="polars is not installed")

NAN = float("nan")
WORDS = ["sunny", None, "rain", "overcast", "rain", ""]
NUMBERS = [1.5, 2.0, None, -3.0, 0.0, 2.0]
TRUTHS = [True, False, None, True, True, False]
WORD_CODES = [3, NAN, 2, 1, 2, 0]
TRUTH_CODES = [1, 0, NAN, 1, 1, 0]


def objects(*columns):
    table = np.empty((len(columns[0]), len(columns)), object)
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def pandas_frame(**types):
    columns = {"word": WORDS, "number": NUMBERS, "truth": TRUTHS}
    return pandas.DataFrame(
        {name: pandas.Series(cells, dtype=types[name]) for name, cells in columns.items()}
    )


ARROW = pyarrow.table({"word": WORDS, "number": NUMBERS, "truth": TRUTHS})
POLARS = polars.DataFrame({"word": WORDS, "number": NUMBERS, "truth": TRUTHS})
TABLES = {
    "pandas": pandas_frame(word="str", number="float64", truth="boolean"),
    "pandas objects": pandas_frame(word="object", number="object", truth="object"),
    "pandas nullable": pandas_frame(word="string", number="Float64", truth="boolean"),
    "pandas categories": pandas_frame(word="category", number="float32", truth="category"),
    "pandas of arrow": ARROW.to_pandas(types_mapper=pandas.ArrowDtype),
    "polars": POLARS,
    "polars categories": POLARS.with_columns(polars.col("word").cast(polars.Categorical)),
    "arrow": ARROW,
    "arrow in chunks": pyarrow.concat_tables([ARROW[:2], ARROW[2:]]),
    "arrow large": ARROW.cast(
        pyarrow.schema([
            ("word", pyarrow.large_string()), ("number", pyarrow.float32()),
            ("truth", pyarrow.bool_()),
        ])
    ),
    "arrow views": ARROW.set_column(0, "word", pyarrow.array(WORDS, pyarrow.string_view())),
    "objects": objects(WORDS, NUMBERS, TRUTHS),
    "lists": np.array(objects(WORDS, NUMBERS, TRUTHS).tolist(), object),
}  # fmt: skip


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("library", TABLES)
def test_one_matrix_whatever_the_library(library, order):
    table = TABLES[library]
    columns, values = fit_encode(table, order=order)
    expected = np.array([WORD_CODES, np.array(NUMBERS, float), TRUTH_CODES]).T
    np.testing.assert_array_equal(values, expected)
    assert values.dtype == np.float32
    assert values.flags[f"{order}_CONTIGUOUS"]
    assert columns.nominal.tolist() == [True, False, True]
    assert columns.n_categories.tolist() == [4, 0, 2]
    assert columns.categories[0].tolist() == ["", "overcast", "rain", "sunny"]
    assert columns.categories[1] is None
    assert columns.categories[2].tolist() == [False, True]
    for other in TABLES.values():
        np.testing.assert_array_equal(columns.encode(other, order), expected)
    assert fit_columns(table).categories[0].tolist() == columns.categories[0].tolist()


@given(
    st.lists(st.none() | st.text(max_size=3) | st.integers(-3, 3) | st.booleans(), min_size=1),
    st.lists(st.none() | st.text(max_size=3) | st.integers(-3, 3) | st.booleans(), min_size=1),
)
def test_columns_of_several_types(cells, others):
    """Numbers come before text, and a table does not depend on the order of its rows."""
    columns = fit_columns(objects([*cells, "text", 1]))
    known = {cell for cell in [*cells, "text", 1] if cell is not None}
    ordered = sorted(known, key=lambda cell: (isinstance(cell, str), cell))
    assert columns.categories[0].tolist() == ordered
    expected = [
        NAN if cell is None else ordered.index(cell) if cell in known else UNSEEN for cell in others
    ]
    np.testing.assert_array_equal(columns.encode(objects(others))[:, 0], expected)
    assert fit_columns(objects([1, "text", *cells[::-1]])).categories[0].tolist() == ordered


# --------------------------------------------------------------------- missing
@pytest.mark.parametrize(
    "hole",
    [None, NAN, np.float32("nan"), pandas.NA, pandas.NaT, np.datetime64("NaT", "s")],
    ids=repr,
)
def test_every_missing_value(hole):
    table = objects(["b", hole, "a"], [2, hole, 1.5], [True, hole, False], ["b", hole, 1])
    columns, values = fit_encode(table)
    np.testing.assert_array_equal(
        values, [[1, 2, 1, 1], [NAN] * 4, [0, 1.5, 0, 0]], err_msg=repr(hole)
    )
    assert columns.nominal.tolist() == [True, False, True, True]


def test_columns_without_any_value():
    frame = pandas.DataFrame({"a": pandas.Series([None, None], dtype="string"), "b": [None, None]})
    columns, values = fit_encode(frame)
    assert np.isnan(values).all()
    assert columns.n_categories.tolist() == [0, 0]
    assert columns.nominal.tolist() == [True, True]
    assert columns.encode(frame.assign(a="x"))[:, 0].tolist() == [UNSEEN, UNSEEN]


# ---------------------------------------------------------- categorical types
def test_categories_are_those_declared():
    """In their order, those without rows among them."""
    sizes = ["small", "medium", "large", "huge"]
    cells = ["large", None, "small"]
    for column in (
        pandas.Series(pandas.Categorical(cells, sizes)).to_frame(),
        pandas.Series(pandas.Categorical(cells, sizes, ordered=True)).to_frame(),
        polars.DataFrame({"size": polars.Series(cells, dtype=polars.Enum(sizes))}),
        pyarrow.table({"size": pyarrow.array(pandas.Categorical(cells, sizes))}),
    ):
        columns, values = fit_encode(column)
        assert columns.categories[0].tolist() == sizes
        np.testing.assert_array_equal(values[:, 0], [2, NAN, 0])


def test_codes_follow_the_values_not_the_codes_of_another_table():
    columns = fit_columns(pandas.DataFrame({"a": pandas.Categorical(["x", "y"])}))
    other = pandas.DataFrame({"a": pandas.Categorical(["y", "z"], ["z", "y"])})
    assert columns.encode(other)[:, 0].tolist() == [1, UNSEEN]


@pytest.mark.parametrize("numbers", [[3, 1, 2], [2.5, -1.0, 0.0], [True, False]])
def test_categories_that_are_numbers(numbers):
    cells = pandas.Categorical(numbers[:2], numbers)
    columns, values = fit_encode(pandas.DataFrame({"a": cells}))
    assert columns.categories[0].tolist() == numbers
    assert values[:, 0].tolist() == [0, 1]
    assert columns.encode(np.array(numbers)[:, None])[:, 0].tolist() == list(range(len(numbers)))


@pytest.mark.parametrize("zone", ["", ", UTC"])
def test_days_are_the_same_categories_in_any_unit(zone):
    days = pandas.to_datetime(["2020-01-01", "2021-06-30", "2020-01-01"], utc=bool(zone))
    coarse, fine = (
        pandas.DataFrame({"day": days.astype(f"datetime64[{unit}{zone}]")}).astype("category")
        for unit in ("s", "ns")
    )
    columns = fit_columns(coarse)
    np.testing.assert_array_equal(columns.encode(fine)[:, 0], [0, 1, 0])


def test_categories_of_other_types_go_by_their_text():
    ages = pandas.cut(pandas.Series([1, 5, 9]), [0, 4, 8, 12])
    columns, values = fit_encode(ages.to_frame())
    assert columns.categories[0].tolist() == ["(0, 4]", "(4, 8]", "(8, 12]"]
    assert values[:, 0].tolist() == [0, 1, 2]


def test_dictionaries_with_repeated_or_missing_words():
    for words in (["b", "a", "b"], ["b", "a", None]):
        column = pyarrow.DictionaryArray.from_arrays([0, 1, 2, None], words)
        columns, values = fit_encode(pyarrow.table({"a": column}))
        assert columns.categories[0].tolist() == ["a", "b"]
        np.testing.assert_array_equal(values[:, 0], [1, 0, NAN if None in words else 1, NAN])


def test_chunks_with_dictionaries_of_their_own():
    chunks = [pyarrow.array(["b", "a"]).dictionary_encode(), pyarrow.array(["c"])]
    table = pyarrow.table({"a": pyarrow.chunked_array([chunks[0], chunks[1].dictionary_encode()])})
    columns, values = fit_encode(table)
    assert [columns.categories[0][int(code)] for code in values[:, 0]] == ["b", "a", "c"]


# ------------------------------------------------------ categorical_features
LISTED = {
    "mask": [False, True, False],
    "indices": [1],
    "names": ["b"],
    "array of names": np.array(["b"]),
    "index": pandas.Index(["b"]),
}


@pytest.mark.parametrize("how", LISTED)
def test_listed_columns_are_nominal(how):
    frame = pandas.DataFrame({"a": [1, 2, 2], "b": [30, -5, 30], "c": [True, False, True]})
    columns, values = fit_encode(frame, LISTED[how])
    assert columns.nominal.tolist() == [False, True, False]  # booleans are numbers, unless listed
    assert columns.categories[1].tolist() == [-5, 30]
    assert values.tolist() == [[1, 1, 1], [2, 0, 0], [2, 1, 1]]
    assert columns.encode(frame.assign(b=[30.0, NAN, 7.0]))[:, 1].tolist()[::2] == [1, UNSEEN]


def test_text_is_nominal_in_any_case():
    columns, values = fit_encode(objects(["x", "y"], [1, 2]), None)
    assert columns.nominal.tolist() == [True, False]
    assert values.tolist() == [[0, 1], [1, 2]]


def test_categories_that_are_numbers_are_numbers_unless_listed():
    cells = pandas.Categorical([30, None, 10], [30, 20, 10])
    columns, values = fit_encode(pandas.DataFrame({"a": cells}), [])
    assert not columns.nominal.any()
    np.testing.assert_array_equal(values[:, 0], [30, NAN, 10])


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ([3], "indices from 0 to 2 or a mask of 3 booleans. Got \\[3\\]"),
        ([-1], "indices from 0"),
        ([True, False], "a mask of 3 booleans"),
        ([0.5], "'categorical_features' parameter must be"),
        ([[0]], "'categorical_features' parameter must be"),
        ("a", "'categorical_features' parameter must be"),
        (["d", "b", "e"], r"must name columns of X. Got \['d', 'e'\]"),
    ],
)
def test_listed_columns_that_are_none(listed, message):
    frame = pandas.DataFrame({"a": [1], "b": [2], "c": [3]})
    with pytest.raises(ValueError, match=message):
        fit_columns(frame, listed)


def test_names_need_a_frame():
    with pytest.raises(ValueError, match="X has no column names"):
        fit_columns(np.zeros((2, 2)), ["a"])


# --------------------------------------------------------------------- numbers
def test_floats_are_not_copied():
    for dtype in (np.float32, np.float64):
        for order in "CF":
            table = np.ones((4, 3), dtype, order)
            values = fit_encode(table, order=order)[1]
            assert np.shares_memory(values, table)
    frame = pandas.DataFrame(np.ones((4, 3), order="F"))
    assert np.shares_memory(fit_encode(frame, order="F")[1], frame.to_numpy())


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        ([1.5, NAN, 2.0**100], np.float32),
        ([0.1, NAN, 1.0], np.float64),
        ([1.0] * 5000 + [0.1], np.float64),
        ([1.0] * 5001 + [0.1], np.float64),
        ([NAN] * 5001 + [0.5], np.float32),
        ([1e300, 1.0, 2.0], np.float64),
        ([1e-300, 1.0, 2.0], np.float64),
        ([2**24, -(2**24), 0], np.float32),
        ([2**24 + 1, 0, 1], np.float64),
        ([-(2**24) - 1, 0, 1], np.float64),
    ],
)
def test_float32_only_where_it_is_exact(cells, dtype):
    """A column of text next to the numbers has the table read by column."""
    frame = pandas.DataFrame({"a": cells, "b": "text"})
    values = fit_encode(frame)[1]
    assert values.dtype == dtype
    np.testing.assert_array_equal(values[:, 0].astype(float), np.array(cells, float))


def test_objects_that_are_numbers():
    cells = [1, 2.5, decimal.Decimal("0.5"), fractions.Fraction(1, 4), None, np.int8(3)]
    expected = [1, 2.5, 0.5, 0.25, NAN, 3]
    np.testing.assert_array_equal(fit_encode(objects(cells))[1][:, 0], expected)


def test_decimals():
    column = pyarrow.array([decimal.Decimal("1.25"), None])
    np.testing.assert_array_equal(fit_encode(pyarrow.table({"a": column}))[1][:, 0], [1.25, NAN])


def test_other_byte_orders():
    table = np.array([[3.0, 1.0], [2.0, 1.0]], ">f8")
    columns, values = fit_encode(table, [0])
    assert columns.categories[0].tolist() == [2, 3]
    assert values.tolist() == [[1, 1], [0, 1]]


def test_every_column_nominal():
    """The distinct numbers, exact also beyond 2**53; the two zeros are one."""
    wide = np.array([[2**62 + 1, 7], [2**62, 7], [5, 8]])
    columns, values = fit_encode(wide, every_nominal=True)
    assert columns.categories[0].tolist() == [5, 2**62, 2**62 + 1]
    assert values.tolist() == [[2, 0], [1, 0], [0, 1]]
    columns, values = fit_encode(np.array([[0.0, -0.0, NAN, -1.0]]).T, every_nominal=True)
    np.testing.assert_array_equal(values[:, 0], [1, 1, NAN, 0])
    assert columns.encode(np.array([[-0.0], [-1], [0.5]]))[:, 0].tolist() == [1, 0, UNSEEN]


def test_infinity_is_no_category():
    with pytest.raises(ValueError, match="infinity in column 1, whose values are categories"):
        fit_columns(np.array([[1.0, np.inf]]), every_nominal=True)


def test_many_categories():
    words = np.array([f"{j:06}" for j in range(70_000)], object)
    shuffled = np.random.default_rng(0).permutation(70_000)
    columns, values = fit_encode(objects(words[shuffled], shuffled), [1])
    np.testing.assert_array_equal(values, np.column_stack([shuffled, shuffled]))
    assert columns.n_categories.tolist() == [70_000, 70_000]


# ---------------------------------------------------------------------- errors


def test_categories_of_another_kind():
    """The error names the kinds: that "7" is no category would be true, and no help."""
    text, numbers = objects(["7", "8"]), objects([7, 8])
    with pytest.raises(ValueError, match="held text in fit; now it holds numbers, such as 7"):
        fit_columns(text).encode(numbers)
    with pytest.raises(ValueError, match="held numbers in fit; now it holds text, such as '7'"):
        fit_columns(numbers, [0]).encode(text)
    for columns in (fit_columns(text), fit_columns(numbers, [0])):
        assert np.isnan(columns.encode(objects([None, None]))).all()


def test_another_number_of_columns():
    with pytest.raises(ValueError, match="X has 2 columns, expected 3"):
        Columns.numeric(3).encode(np.zeros((1, 2)))


DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (pandas.DataFrame({"d": [pandas.Timestamp(DAY)]}), ValueError, "Column 'd'.*datetime64"),
        (polars.DataFrame({"d": [DAY]}), ValueError, "Column 'd' of X: .*date32"),
        (pyarrow.table({"d": [b"a"]}), ValueError, "Column 'd' of X: .*got binary"),
        (
            pyarrow.table({"d": [[1]]}),
            ValueError,
            "'d' .* must hold numbers, booleans or text, got list",
        ),
        (objects([DAY, None]), TypeError, "Column 0 of X: .*date"),
        (objects(["a", DAY]), TypeError, "Column 0 of X: it holds a date among text"),
        (objects(["a", {}]), TypeError, "Column 0 of X: it holds a dict among text"),
        (objects(["a", b"b"]), TypeError, "it holds bytes among text. Decode them first"),
        (objects([b"a", "b"]), TypeError, "it holds a bytes among text"),
        (objects([b"a", None]), ValueError, "Column 0 of X: .*got bytes"),
        (objects([1.0, 10**400]), ValueError, "Column 0 of X: .*too large"),
    ],
)
def test_columns_that_hold_neither_numbers_nor_text(table, error, message):
    with pytest.raises(error, match=message):
        fit_columns(table)


@st.composite
def tables_of_codes(draw):
    """Numbers of a few columns, most of which are codes, and which columns are nominal."""
    kind = draw(st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.uint8]))
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    codes = st.integers(0, draw(st.integers(0, 4))).map(float)
    cells = codes
    if np.dtype(kind).kind == "f":
        odd = st.sampled_from([np.nan, -0.0, 0.5, -1.0, 7.0, 1e30 if kind != np.float16 else 99.0])
        cells = st.integers(0, draw(st.sampled_from([3, 20, 400]))).flatmap(
            lambda rare: odd if rare == 0 else codes
        )
    X = np.array(draw(st.lists(cells, min_size=n * d, max_size=n * d)), kind).reshape(n, d)
    return X, np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))


@given(tables_of_codes(), st.sampled_from(["C", "F"]), st.data())
def test_numbers_that_are_codes_need_no_coding(problem, order, data):
    """The same columns and numbers as where each column is coded by its values."""
    X, listed = problem
    columns, values = fit_encode(X, listed, order=order)
    with mock.patch("gputree.columns.specification.codes_present", return_value=None):
        coded, expected = fit_encode(X, listed, order=order)
    assert columns.same_as(coded)
    assert values.dtype == expected.dtype
    for column, other in zip(columns.categories, coded.categories, strict=True):
        assert column is other is None or column.dtype == other.dtype
    np.testing.assert_array_equal(values, expected)
    rows = data.draw(st.lists(st.integers(0, len(X) - 1), max_size=9))
    later = np.concatenate([X[rows], X[:1] + X.dtype.type(data.draw(st.integers(0, 3)))])
    with mock.patch("gputree.columns.specification.hold_codes", return_value=False):
        expected = coded.encode(later)
    np.testing.assert_array_equal(columns.encode(later), expected)
    assert columns.encode(later).dtype == expected.dtype


def test_codes_are_taken_as_they_are():
    X = np.array([[0.5, 1.0], [2.5, 0.0], [1e-9, np.nan]])
    columns, values = fit_encode(X, [1])
    assert values is X
    assert columns.categories[1].tolist() == [0.0, 1.0]
    assert columns.encode(X) is X
    later = columns.encode(X + np.array([0, 1]))
    assert later[:2].tolist() == [[0.5, -1.0], [2.5, 1.0]]


def test_a_mask_may_change_afterwards():
    mask = np.array([False, True])
    columns = fit_columns(np.array([[0.5, 1.0], [2.5, 0.0]]), mask)
    mask[:] = False
    assert columns.nominal.tolist() == [False, True]


def test_batches_that_miss_codes():
    """A batch with all codes from 0 on and one without are read alike."""
    batches = [np.array([[0.5, 0.0], [1.5, 2.0]]), np.array([[2.5, 1.0], [3.5, 0.0]])]
    table = CodedTable.from_batches(batches, categorical_features=[1])
    whole = CodedTable(np.concatenate(batches), categorical_features=[1])
    assert table.shape == whole.shape == (4, 2)
    y = [0, 1, 1, 0]
    fits = [DecisionTreeClassifier(device="cpu").fit(X, y).tree_ for X in (table, whole)]
    assert fits[0].equals(fits[1])
