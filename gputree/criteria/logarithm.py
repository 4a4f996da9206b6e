"""A reproducible logarithm: logarithms of system libraries differ in the last bit."""

from __future__ import annotations

import numpy as np

from gputree.compilation import jitable

LOG2_E = 1.4426950408889634
_SQRT2 = 1.4142135623730951
_MANTISSA = 0x000FFFFFFFFFFFFF
_ONE = 0x3FF0000000000000


@jitable
def log2(x):
    """Base-2 logarithm of a positive normal float64, from IEEE + - * / only.

    With x = 2**e m, sqrt(1/2) < m <= sqrt(2) and s = (m - 1) / (m + 1),
    ``log2 x = e + 2 log2(e) (s + s**3/3 + s**5/5 + ...)``. The series is cut where its
    next term is below 2**-53. Exact at powers of two; error below 4 ulp elsewhere.
    """
    bits = np.float64(x).view(np.int64)
    exponent = (bits >> 52) - 1023
    m = np.int64((bits & _MANTISSA) | _ONE).view(np.float64)
    if m > _SQRT2:
        m = m * 0.5
        exponent += 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 0.2
    p = p * z + 1.0 / 3.0
    p = p * z
    return np.float64(exponent) + (s + s * p) * (2.0 * LOG2_E)


@jitable
def xlog2x(x):
    """Return ``x log2 x``, and 0 at 0."""
    return x * log2(x) if x > 0.0 else 0.0


@jitable
def fixed_xlog2x(weight, unit, scale):
    """Return ``x log2 x`` of a weight in units, as an integer of steps ``1 / scale``."""
    return np.int64(np.rint(xlog2x(np.float64(weight) * unit) * scale))
