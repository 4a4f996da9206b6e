"""A temporary Postgres server, on a socket in a temporary folder, for as long as tests run."""

import json
import math
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

PROGRAMS = ("initdb", "pg_ctl", "postgres", "psql")
TYPES = {float: "DOUBLE PRECISION", int: "BIGINT", str: "TEXT", bool: "BOOLEAN", Decimal: "NUMERIC"}


def missing_program() -> str | None:
    """The first of the programs that is not installed; None where all are."""
    return next((name for name in PROGRAMS if shutil.which(name) is None), None)


@contextmanager
def server() -> Iterator[Path]:
    """Start a server; yields the folder of its socket."""
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    as_other = os.geteuid() == 0  # Postgres refuses to be run by root
    # A short name: those of sockets have at most 107 letters. All may pass through /tmp, while
    # the folder for temporary files may be root's alone.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp" if as_other else None))
    if as_other:
        other = pwd.getpwnam("nobody")
        os.chown(folder, other.pw_uid, other.pw_gid)
        options |= {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
    data = str(folder / "data")
    settings = f"-k {folder} -c listen_addresses= -c fsync=off -c max_stack_depth=2MB"
    try:
        initdb = ["initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N"]
        subprocess.run(initdb, check=True, cwd=folder, **options)
        start = ["pg_ctl", "-D", data, "-w", "-o", settings, "start"]
        subprocess.run(start, check=True, cwd=folder, **options)
        try:
            yield folder
        finally:
            stop = ["pg_ctl", "-D", data, "-m", "immediate", "stop"]
            subprocess.run(stop, check=True, cwd=folder, **options)
    finally:
        shutil.rmtree(folder)


def ask(folder: Path, query: str, columns: dict[str, list]) -> list:
    """The last column of the result of a query of a table "rows" with these columns.

    Statements before the query end in an empty line.
    """
    before, _, query = query.rpartition("\n\nSELECT ")
    query, before = f"SELECT {query}" if before else query, f"BEGIN;\n{before}"
    kinds = [_type_of(values) for values in columns.values()]
    names = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in columns]
    fields = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    rows = zip(*columns.values(), strict=True)
    lines = ["\t".join(map(_field, row)) for row in rows]
    answers = f"SELECT json_agg(answers) FROM ({query.strip().rstrip(';')}) AS answers;"
    script = [
        f"CREATE TEMPORARY TABLE rows ({fields});",
        "COPY rows FROM STDIN;",
        *lines,
        "\\.",
        before,
    ]
    command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(folder)]
    done = subprocess.run(
        [*command, "-U", "postgres", "-d", "postgres"],
        input="\n".join([*script, answers]),
        capture_output=True,
        text=True,
        env=os.environ | {"PGCLIENTENCODING": "UTF8"},
    )
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    return [list(row.values())[-1] for row in json.loads(done.stdout)]


def _type_of(values: list) -> str:
    return TYPES[next((type(value) for value in values if value is not None), float)]


def _field(value: Any) -> str:
    """A value in the text format of COPY."""
    if value is None:
        return "\\N"
    if isinstance(value, str):
        escapes = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
        return "".join(escapes.get(letter, letter) for letter in value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return str(value)
