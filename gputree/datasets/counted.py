"""Files that count the bytes read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from gputree.growth.progress import new_bar


@contextmanager
def opened(path: Path, verbose: bool, compression: str | None = None) -> Iterator[pa.NativeFile]:
    """Open a file for pyarrow, with a bar of the bytes that are read where `verbose`.

    `compression` is the codec of a compressed file; the bar counts compressed bytes.
    """
    bar = new_bar(
        path.stat().st_size, verbose, desc=f"reading {path.name}", unit="B", unit_scale=True,
        unit_divisor=1024, delay=0.5,
    )  # fmt: skip
    try:
        # without a bar, pyarrow prefetches in separate threads
        file = pa.OSFile(str(path)) if bar is None else pa.PythonFile(_Counted(path, bar), "r")
        with file:
            yield file if compression is None else pa.CompressedInputStream(file, compression)
    finally:
        if bar is not None:
            bar.close()


class _Counted(io.BufferedReader):
    """A file that moves a bar by what is read of it."""

    def __init__(self, path: Path, bar: Any) -> None:
        super().__init__(io.FileIO(path))
        self._bar = bar

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._bar.update(min(len(data), self._bar.total - self._bar.n))  # ends are read twice
        return data
