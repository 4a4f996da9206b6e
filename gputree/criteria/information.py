"""Information in integers: ``x log2 x`` of fixed-point weights, summed in fixed point.

The information of class weights n_1, ..., n_K of a node of weight N, in bits x weight, is ``N H = N
log2 N - sum n_k log2 n_k``. With every term an integer, sums have no order: a scan that adds and
subtracts terms row by row agrees to the last bit with one that adds up whole branches.

Total gains are compared in steps of ``2**-20`` bits x weight: far above the rounding of
the terms, so that cuts of equal gain are equal, and far below what one row can change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.compilation import jitable, kernel
from gputree.criteria.entropy import entropy_scale
from gputree.criteria.logarithm import fixed_xlog2x, log2

# Gains and ratios that differ by less are equal, as in J48; less split information counts as none.
TOLERANCE = 1e-6

GAIN_BITS = 20  # total gains are compared in steps of 2**-20 bits x weight

# Weights and terms have fewer bits: a shift by so many gives 0; a shift by 64 is undefined.
MOST_SHIFT = 62

# Terms of integer weights up to here come from a table: a row that crosses a cut changes four of
# them.
TABLE_SIZE = 1 << 20


class Information(NamedTuple):
    """Fixed-point terms of weights counted in `unit`."""

    unit: float  # weight of one unit, a power of two
    scale: float  # steps of a term per bit x weight, a power of two
    shift: int  # a term shifted right by so many bits is in steps of ``2**-GAIN_BITS``
    row_bits: int  # units of a row of weight 1, as a power of two
    terms: NDArray[np.int64]  # of the weights of ``0 .. size`` rows


def new_information(total: int, unit: float) -> Information:
    """Return the measure for tables of `total` units of weight."""
    scale = entropy_scale(total, unit)
    shift = min(max(int(np.frexp(scale)[1]) - 1 - GAIN_BITS, 0), MOST_SHIFT)
    row_bits = 1 - int(np.frexp(unit)[1])
    size = min((total >> row_bits) + 1, TABLE_SIZE) if row_bits >= 0 else 1
    row_bits = min(max(row_bits, 0), MOST_SHIFT)
    return Information(unit, scale, shift, row_bits, _terms(size, scale))


@jitable
def term(information, weight):
    """``x log2 x`` of a weight in units, in fixed point, from the table if it is there."""
    rows = weight >> information.row_bits
    if rows < information.terms.size and rows << information.row_bits == weight:
        return information.terms[rows]
    return fixed_xlog2x(weight, information.unit, information.scale)


@kernel
def _terms(size, scale):
    terms = np.empty(size, np.int64)
    for rows in range(size):
        terms[rows] = fixed_xlog2x(rows, 1.0, scale)
    return terms


@jitable
def in_steps(information, total):
    """Convert a sum of terms to steps of ``2**-GAIN_BITS``, rounded."""
    half = (np.int64(1) << information.shift) >> 1
    return (total + half) >> information.shift


@kernel
def logarithms(values):
    """Compute `log2` of each positive value of an array; 0 where it is not positive."""
    out = np.zeros(values.size)
    for i in range(values.size):
        if values[i] > 0:
            out[i] = log2(np.float64(values[i]))
    return out
