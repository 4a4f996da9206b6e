"""Files of the command line; `-` is standard input or output."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gputree.base.files import replaced_file, require_destination
from gputree.cli.report import UsageError, say
from gputree.errors import InputError

STANDARD = "-"


def check_inputs(*inputs: str | None) -> None:
    """Raise an error if two inputs are standard input."""
    if inputs.count(STANDARD) > 1:
        raise UsageError("Only one of MODEL and DATA can be standard input (-).")


def check_output(output: str | None, *inputs: str | None) -> None:
    """Raise errors of the output or of an input before the work, not after it."""
    if output is None or output == STANDARD:
        return
    path = Path(output)
    require_destination(path)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, output) from error
    for name in inputs:
        if name is None or name == STANDARD:
            continue
        if path.exists() and os.path.exists(name) and path.samefile(name):
            raise UsageError(f"The output {output} would overwrite the input {name}.")


def table_origin(data: str) -> Any:
    """Argument of readers of `gputree.datasets` for a table: its file, or standard input."""
    if data != STANDARD:
        return data
    if sys.stdin.isatty():
        say("reading CSV from the terminal; Ctrl-D ends it")
    return sys.stdin.buffer


def load(model: str) -> Any:
    """The estimator of a model file, or of one as JSON."""
    from gputree.persistence import load_model

    return _read(model, load_model)


def load_saved(model: str) -> Any:
    """Load like `load`, but a tree of a model file without the class of its estimator."""
    from gputree.persistence import read_saved

    return _read(model, read_saved)


def _read(model: str, read: Callable[[str | Path], Any]) -> Any:
    if model.lower().endswith(".json"):
        from gputree.persistence import read_json

        return read_json(model)
    if model != STANDARD:
        return read(model)
    if sys.stdin.isatty():
        raise UsageError("A model file cannot be typed: pipe it in, or name it.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "standard input")
        path.write_bytes(sys.stdin.buffer.read())
        try:
            return read(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), "standard input")) from error


def save(estimator: Any, output: str) -> None:
    """Write a model file."""
    from gputree.persistence import save_model

    if output != STANDARD:
        save_model(estimator, output)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        save_model(estimator, path)
        sys.stdout.buffer.write(path.read_bytes())


def forbid_terminal(output: str | None, what: str) -> None:
    """Refuse to fill a terminal with bytes."""
    if output == STANDARD and sys.stdout.isatty():
        raise UsageError(f"{what} is no text: redirect the output, or name a file with -o.")


@contextmanager
def opened_output(output: str | None) -> Iterator[BinaryIO]:
    """Open a file that gets its name once it is complete, or standard output."""
    if output is not None and output != STANDARD:
        with replaced_file(output) as file:
            yield file
        return
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # replaced by something that takes text alone
        text = io.BytesIO()
        yield text
        sys.stdout.write(text.getvalue().decode())
        return
    yield buffer
    buffer.flush()


def write_text(text: str, output: str | None) -> None:
    """Write text, as UTF-8."""
    with opened_output(output) as file:
        file.write(text.encode())
