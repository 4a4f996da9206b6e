"""What the CPU kernels share: how a coded table and its rows lie in memory."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import NDArray


class Table(NamedTuple):
    """A table of n rows and d columns, with its codes.

    Histograms are ragged: the cells of column f begin at ``offset[f]``, one a bin in
    order of value, and the last is the bin of missing values where ``missing[f]``.

        codes          row-major: one cache line serves all columns of a row
        values         row-major too, read only where a code does not decide

    Codes decide in columns of at most 256 distinct values, where every bin holds one,
    and everywhere when cuts are made between bins only; then a cut after bin b lies
    midway between ``greatest[f, b]`` and ``least`` of the bin that follows.
    """

    values: NDArray  # (n, d) float32 or float64, C-contiguous
    codes: NDArray  # (n, d) uint8
    offset: NDArray  # (d + 1,) int64
    missing: NDArray  # (d,) bool: the column has missing values
    single: NDArray  # (offset[d],) bool: the bin holds one distinct value
    by_code: NDArray  # (d,) bool: codes decide every cut; the values are not needed
    greatest: NDArray  # (d, 256) float64: greatest value of a bin, where `by_code`
    least: NDArray  # (d, 256) float64: least value of a bin, where `by_code`


class Rows(NamedTuple):
    """Per-row statistics in fixed-point units; `weight` is None where every weight is 1."""

    target: NDArray  # class index, or weight x target
    weight: NDArray | None  # int64
    square: NDArray | None  # int64, weight x target squared; regression
    square_rest: NDArray | None  # int64, its fraction in units of 2**-30
