"""CSV text, whole or in batches, through pyarrow."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from gputree.datasets.conversion import (
    OTHER_MISSING,
    PLAIN_MISSING,
    Kinds,
    NotANumberError,
    Spelling,
    convert,
    exact_numbers,
    leading_zeros,
    listed,
    numbers_of,
    says_more_than,
    without_missing,
)
from gputree.datasets.csv_head import Dialect, Opened, not_utf8, open_delimited
from gputree.datasets.file_format import Guess
from gputree.datasets.parser_errors import explained
from gputree.datasets.sources import Source, require_memory_for_csv
from gputree.datasets.words import guess_of_missing
from gputree.errors import InputError

# Bytes in a batch, by default: small compared with the memory, large compared with the cost of a
# call.
BATCH_BYTES = 1 << 24

# Bytes in a batch of rows that are predicted one after another: the reader holds several batches,
# as text and as columns, 270 MB of 16 MiB and 65 MB of 1 MiB, for the same CPU time (2,000,000
# rows of 7 columns).
SCAN_BYTES = 1 << 20

# Bytes in a batch for each column of the file, at least: a row has to fit.
_COLUMN_BYTES = 1 << 10

# Bytes of text whose types are inferred at once; rows of more columns may be longer than that.
_SMALL_BLOCK = 1 << 20
_MANY_COLUMNS = 1 << 12

_FIRST_CELLS = 1000  # cells that are looked at before all are


class Delimited(NamedTuple):
    """A table that was read whole, and what its text shows."""

    table: pa.Table
    opened: Opened
    guesses: list[Guess]


def read_delimited(source: Source, kinds: Kinds, verbose: bool) -> Delimited:
    """Read a whole table with the types that its cells suggest; categories have those of `codes`.

    Whole columns are numbers, whatever zeros are before them.
    """
    with source.open(verbose) as file:
        opened = open_delimited(source, file, tuple(kinds.missing))
        dialect = opened.dialect
        if source.path is not None and not source.is_stream:
            require_memory_for_csv(source.path, dialect.delimiter, source.codec)
        texts = [*kinds.text, *kinds.carried, *kinds.categorical, *kinds.whole, *source.form.units]
        try:
            table = pcsv.read_csv(
                opened.file,
                read_options=_reading(opened),
                parse_options=_parsing(dialect),
                convert_options=_converting(dialect, dict.fromkeys(texts, pa.string()), False),
            )
        except pa.ArrowInvalid as error:
            raise explained(source, error, opened) from error
    binary = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if binary:  # what the reader makes of bytes that are not UTF-8
        raise InputError(not_utf8(source, f"see {listed(binary)}"))
    table = _exact_whole(table, set(kinds.whole).difference(kinds.text, dialect.pointed), dialect)
    codes = set(kinds.categorical).difference(kinds.text, source.form.units)
    table, kept = _types_of_codes(table, codes, dialect)
    guesses: list[Guess] = []
    typed = _with_numbers(
        source,
        table,
        opened,
        {*kinds.text, *kinds.carried, *kept, *codes.difference(dialect.pointed)},
        kinds,
        guesses,
    )
    return Delimited(typed, opened, guesses)


def _with_numbers(
    source: Source,
    table: pa.Table,
    opened: Opened,
    kept: Collection[str],
    kinds: Kinds,
    guesses: list[Guess],
) -> pa.Table:
    """Convert columns of text to numbers, booleans or dates where all cells are."""
    for j, field in enumerate(table.schema):
        name = field.name
        if not pa.types.is_string(field.type) or (name in kept and name not in source.form.units):
            continue
        words = table.column(j)
        if name in kinds.numeric or name in source.form.units:
            found = numbers_of(words, spelling_of(opened.dialect, name))
            if isinstance(found, str) and name in source.form.units:
                raise NotANumberError(source.label, name, found, opened.dialect.units[name])
            column = words if isinstance(found, str) else found
        else:
            column = _typed(words, spelling_of(opened.dialect, name), opened.dialect)
        if column is not words:
            table = table.set_column(j, name, column)
            if counts := _other_missing(words):
                guesses.append(guess_of_missing(name, counts))
    return table


def _other_missing(words: pa.ChunkedArray) -> dict[str, int]:
    """Count missing numbers by their spellings, except the spellings of R and pandas."""
    cells = pc.utf8_trim_whitespace(words)
    found = cells.filter(pc.is_in(cells, value_set=pa.array(OTHER_MISSING))).value_counts()
    pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return dict(pairs)


def spelling_of(dialect: Dialect, name: str) -> Spelling:
    """Spelling of the numbers of a column."""
    decimal = "." if name in dialect.pointed else dialect.decimal_point
    has_unit, unit = name in dialect.units, dialect.units.get(name)
    return Spelling(decimal, dialect.thousands, dialect.missing, has_unit, unit)


def _typed(words: pa.ChunkedArray, spelling: Spelling, dialect: Dialect) -> pa.ChunkedArray:
    """Convert a column that the reader has left as text to the type that all its cells have."""
    first = numbers_of(words.drop_null().slice(0, _FIRST_CELLS), spelling)
    others = pa.array([*OTHER_MISSING, *(f" {mark}" for mark in OTHER_MISSING)])
    if pc.any(pc.is_in(words, value_set=others)).as_py():
        found = _taken(words, dialect)
        if not pa.types.is_string(found.type):
            return found
    found = first if isinstance(first, str) else numbers_of(words, spelling)
    if isinstance(found, str) and spelling.decimal == "." and dialect.delimiter != ",":
        found = _with_commas(words, spelling)  # further down than the first rows
    return words if isinstance(found, str) or found.null_count == len(found) else found


def _with_commas(words: pa.ChunkedArray, spelling: Spelling) -> pa.ChunkedArray | str:
    """Cells as numbers with decimal commas, where some are certainly no thousands."""
    cells = without_missing(words, spelling.missing)
    certain = pc.match_substring_regex(cells, r"^[+-]?(0?|\d{4,}),\d+$|,(\d{1,2}|\d{4,})$")
    if not pc.any(certain).as_py():
        return ""
    return numbers_of(words, spelling._replace(decimal=","))


def delimited_batches(
    source: Source, opened: Opened, wanted: Sequence[str], kinds: Kinds, batch_bytes: int
) -> Iterator[pa.Table]:
    """Yield the columns `wanted` batch by batch; each is of text, of numbers or of booleans.

    Other categories are integers, which may be of any length, and have
    fractions further down, where they are named as whole. The reader makes the numbers; where it
    cannot, the file is read again, and `numbers_of` makes those of that column. Of a stream, which
    cannot be read again, `numbers_of` makes all.
    """
    by_reader = set(kinds.numeric).difference(opened.dialect.pointed, source.form.units)
    by_reader = set() if source.is_stream else by_reader
    done = 0
    with ExitStack() as files:
        while True:
            seen = 0
            try:
                for table in _batches(source, opened, wanted, kinds, by_reader, batch_bytes):
                    n_before = max(done - seen, 0)
                    seen += table.num_rows
                    if n_before < table.num_rows:
                        done = seen
                        yield table.slice(n_before)
                return
            except NotANumberError as error:
                cell = pa.chunked_array([pa.array([error.cell], pa.string())])
                spelling = spelling_of(opened.dialect, error.name)
                if error.name not in by_reader or isinstance(numbers_of(cell, spelling, True), str):
                    raise
                by_reader.discard(error.name)
            again = files.enter_context(source.open(False))
            opened = open_delimited(source, again, tuple(kinds.missing))


def _batches(
    source: Source,
    opened: Opened,
    wanted: Sequence[str],
    kinds: Kinds,
    by_reader: Collection[str],
    batch_bytes: int,
) -> Iterator[pa.Table]:
    """The batches of `delimited_batches`, with numbers of some columns made by the reader."""
    dialect = opened.dialect
    types = dict.fromkeys([*kinds.text, *kinds.carried, *kinds.numeric], pa.string())
    types |= dict.fromkeys(by_reader, pa.float64()) | dict.fromkeys(kinds.boolean, pa.bool_())
    categorical = set(kinds.categorical).intersection(wanted)
    codes = {
        name: pa.float64() if name in kinds.numeric else pa.int64()
        for name in categorical.difference(kinds.text, kinds.boolean)
    }
    types |= dict.fromkeys([*codes, *kinds.inferred], pa.string())
    others = set(kinds.numeric).difference(by_reader, set(codes).difference(dialect.pointed))
    least = min(_COLUMN_BYTES * len(opened.names), BATCH_BYTES)
    try:
        reader = pcsv.open_csv(
            opened.file,
            read_options=_reading(opened, max(batch_bytes, least), batch_bytes >= BATCH_BYTES),
            parse_options=_parsing(dialect),
            convert_options=_converting(dialect, types, True, wanted),
        )
        for batch in reader:
            table = _numbers_of_codes(source, pa.table(batch), codes, kinds.whole, dialect)
            for place, name in enumerate(table.column_names):
                if name not in others:
                    continue
                found = numbers_of(table.column(place), spelling_of(dialect, name), True)
                if isinstance(found, str):
                    raise NotANumberError(source.label, name, found, dialect.units.get(name))
                table = table.set_column(place, name, found)
            if kinds.inferred:
                table, kept = _types_of_codes(table, set(kinds.inferred), dialect)
                typed = set(dialect.pointed).intersection(kinds.inferred).difference(kept)
                rest = set(table.column_names).difference(typed)
                table = _with_numbers(source, table, opened, rest, kinds, [])
            yield convert(source.label, table, Kinds(missing=kinds.missing))
    except pa.ArrowInvalid as error:
        raise explained(source, error, opened) from error


def column_types(
    source: Source, wanted: Sequence[str], categorical: Collection[str], missing: Sequence[str]
) -> dict[str, pa.DataType]:
    """The types that the beginning of a file suggests; null where no value is there."""
    # as text, and column by column: to infer all types at once takes 20 times a block
    text = dict.fromkeys(wanted, pa.string())
    with source.open(False) as file:
        opened = open_delimited(source, file, tuple(missing))
        dialect = opened.dialect
        size = BATCH_BYTES
        if len(opened.names) < _MANY_COLUMNS:
            size = min(size, _SMALL_BLOCK)
        try:
            reader = pcsv.open_csv(
                opened.file,
                read_options=_reading(opened, size, False),
                parse_options=_parsing(dialect),
                convert_options=_converting(dialect, text, True, wanted),
            )
            first = pa.Table.from_batches(
                itertools.islice(reader, BATCH_BYTES // size), reader.schema
            )
        except pa.ArrowInvalid as error:
            raise explained(source, error, opened) from error
        del reader
    types = {}
    for name in wanted:
        if name in categorical:
            one, kept = _types_of_codes(first.select([name]), {name}, dialect)
            kind = one.schema.field(0).type
        else:
            kind, kept = _taken(first[name], dialect).type, []
            if pa.types.is_string(kind):
                kind = _typed(first[name], spelling_of(dialect, name), dialect).type
        types[name] = pa.float64() if name in dialect.pointed and not kept else kind
    del first
    pa.default_memory_pool().release_unused()
    return types


def _reading(opened: Opened, block: int | None = None, use_threads: bool = True) -> Any:
    options = {} if block is None else {"block_size": block}
    names = opened.names if opened.is_headless else None
    return pcsv.ReadOptions(
        column_names=names, skip_rows=opened.skipped, use_threads=use_threads, **options
    )


def _parsing(dialect: Dialect) -> Any:
    # Without the second, a line break within quotes may end a row at the boundary of blocks of
    # text.
    return pcsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)


def _converting(
    dialect: Dialect,
    types: dict[str, Any],
    every_spelling: bool = True,
    wanted: Sequence[str] | None = None,
) -> Any:
    """Options of the reader; if not `every_spelling`, missing numbers are as in R and pandas."""
    forms = ("{}", " {}", "{} ")
    spaced = [form.format(token.strip()) for token in dialect.missing for form in forms]
    usual = pcsv.ConvertOptions().null_values if every_spelling else PLAIN_MISSING
    return pcsv.ConvertOptions(
        include_columns=[] if wanted is None else list(wanted),  # none is all
        column_types=types,
        null_values=[*usual, *spaced],
        decimal_point=dialect.decimal_point,
    )


def _types_of_codes(
    table: pa.Table, names: Collection[str], dialect: Dialect
) -> tuple[pa.Table, list[str]]:
    """Convert columns of text to the types of their cells; also return names of what stays text."""
    kept = []
    for j, name in enumerate(table.column_names):
        if name not in names:
            continue
        words = table.column(j)
        found = _taken(words, dialect)
        exact = exact_numbers(found, words)
        if says_more_than(found.type, words) or exact is words:
            kept.append(name)
        elif name not in dialect.pointed:
            table = table.set_column(j, name, exact)
    return table, kept


def _exact_whole(table: pa.Table, names: Collection[str], dialect: Dialect) -> pa.Table:
    """Columns of text as the reader takes them, but with integers as they stand."""
    for j, name in enumerate(table.column_names):
        if name in names:
            words = table.column(j)
            table = table.set_column(j, name, exact_numbers(_taken(words, dialect), words))
    return table


def _numbers_of_codes(
    source: Source,
    table: pa.Table,
    types: Mapping[str, pa.DataType],
    whole: Collection[str],
    dialect: Dialect,
) -> pa.Table:
    """Columns of text as numbers of these types, which the beginning of the table suggested."""
    for j, name in enumerate(table.column_names):
        if name not in types:
            continue
        words = table.column(j)
        if (cell := leading_zeros(words)) is not None:
            raise InputError(
                f"{source.label}: column {name!r} holds numbers at the beginning, and {cell!r} "
                f"further down. Read it as text: text=[{name!r}]; or as numbers, without the "
                f"leading zeros: numeric=[{name!r}]."
            )
        if name not in dialect.pointed:
            try:
                numbers = _of_type(words, dialect, types[name], name in whole)
                table = table.set_column(j, name, numbers)
            except pa.ArrowInvalid as error:
                raise explained(source, error, None, name) from error
    return table


def _of_type(
    words: pa.ChunkedArray, dialect: Dialect, kind: pa.DataType, of_any: bool
) -> pa.ChunkedArray:
    """Cells of text as numbers of a type; whole ones beyond it, and others if `of_any`, as well."""
    try:
        return _taken(words, dialect, kind)
    except pa.ArrowInvalid:
        found = _taken(words, dialect) if pa.types.is_integer(kind) else words
        numbers = exact_numbers(found, words)
        if pa.types.is_decimal(numbers.type) or (of_any and pa.types.is_floating(numbers.type)):
            return numbers
        raise


def _taken(
    words: pa.ChunkedArray, dialect: Dialect, kind: pa.DataType | None = None
) -> pa.ChunkedArray:
    """Cells of text as the reader of CSV takes them, of a type or of the one that it finds."""
    sink = pa.BufferOutputStream()
    pcsv.write_csv(pa.table({"": words}), sink)
    table = pcsv.read_csv(
        pa.BufferReader(sink.getvalue()),
        parse_options=_parsing(Dialect(",")),
        convert_options=_converting(dialect, {} if kind is None else {"": kind}),
    )
    return table.column(0)
