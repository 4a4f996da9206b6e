"""Files that count the bytes read."""

from __future__ import annotations

import io
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from gputree.growth.progress import new_bar


@contextmanager
def opened(path: Path, verbose: bool, compression: str | None = None) -> Iterator[pa.NativeFile]:
    """Open a file for pyarrow, with a progress bar of the bytes read where `verbose`.

    `compression` is the codec of a compressed file, whose compressed bytes are counted.
    """
    bar = new_bar(
        path.stat().st_size, verbose, desc=f"reading {path.name}", unit="B", unit_scale=True,
        unit_divisor=1024, delay=0.5,
    )  # fmt: skip
    try:
        # without a bar, pyarrow prefetches in separate threads
        file = pa.OSFile(str(path)) if bar is None else pa.PythonFile(_Counted(path, bar), "r")
        with file:
            yield decompressed(file, compression)
    finally:
        if bar is not None:
            bar.close()


def decompressed(file: pa.NativeFile, compression: str | None) -> pa.NativeFile:
    """The content of a file that is compressed by a codec, or of the one member of an archive."""
    if compression is None:
        return file
    if compression == "xz":
        return pa.PythonFile(lzma.open(file), "r")
    if compression == "zip":
        archive = zipfile.ZipFile(file)
        return pa.PythonFile(archive.open(members_of(archive)[0]), "r")
    return pa.CompressedInputStream(file, compression)


def members_of(archive: zipfile.ZipFile) -> list[str]:
    """Names of the files in an archive, without what macOS adds to each."""
    names = [one.filename for one in archive.infolist() if not one.is_dir()]
    return [name for name in names if not name.startswith("__MACOSX/")]


class _Counted(io.BufferedReader):
    """File that moves a progress bar by the bytes read."""

    def __init__(self, path: Path, bar: Any) -> None:
        super().__init__(io.FileIO(path))
        self._bar = bar

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._bar.update(min(len(data), self._bar.total - self._bar.n))  # ends are read twice
        return data
