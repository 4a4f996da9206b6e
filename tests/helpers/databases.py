"""Databases that need no server, and their results."""

import sqlite3

import pyarrow as pa
import pytest


def statements(text: str) -> tuple[str, str]:
    """Split a query: the statement that makes a table of nodes, and the rest."""
    before, _, query = text.rpartition("\n\nSELECT ")
    return (before, f"SELECT {query}") if before else ("", text)


def in_sqlite(query: str, columns: dict) -> list:
    """The last column of the result; columns are written without a type, unchanged."""
    database = sqlite3.connect(":memory:")
    names = ", ".join(f"`{name}`" for name in columns)
    database.execute(f"CREATE TABLE rows ({names})")
    places = ", ".join("?" * len(columns))
    rows = zip(*columns.values(), strict=True)
    database.executemany(f"INSERT INTO rows VALUES ({places})", rows)
    before, query = statements(query)
    database.executescript(before)
    return [row[-1] for row in database.execute(query)]


def in_duckdb(query: str, columns: dict) -> list:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    before, query = statements(query)
    with duckdb.connect() as database:
        database.register("rows", pa.table(columns))
        if before:
            database.execute(before)
        return database.sql(query.rstrip(";\n")).to_arrow_table().column(-1).to_pylist()
