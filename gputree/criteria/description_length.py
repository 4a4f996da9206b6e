"""The MDL principle: acceptance of cuts that save more bits than their description takes.

A cut divides N rows of k labels, N_1 and N_2 of which lie on its sides, with k_1 and k_2 labels.

    Fayyad and Irani (1993), section 3: the bits that identify the cut and describe the labels of
    both sides are fewer than those it saves.

        N gain  >  log2(N - 1) + log2(3**k - 2) - (k H - k_1 H_1 - k_2 H_2)

    Kononenko (1995), section 2: the labels of all rows take more bits than the cut and the labels
    of both sides, each described by proportions of labels and an arrangement with these.

        L(n_1, ..., n_k) = log2 binomial(N + k - 1, k - 1) + log2 multinomial(n_1, ..., n_k)
        L(whole)  >  log2(N - 1) + L(left) + L(right)

k counts the labels of the rows that are divided. With weights, N is their sum: a weight of two
stands for two rows.
"""

from __future__ import annotations

import math

import numpy as np

from gputree.compilation import inner
from gputree.criteria.logarithm import log2, xlog2x

_LN2 = 0.6931471805599453

# Bits that are no more than rounding, relative to the largest sum: ties do not pay.
_SLACK = 2.0**-44


@inner
def entropy_bits(counts):
    """``N H`` of counts, N, and the number of positive counts."""
    whole = within = 0.0
    present = 0
    for k in range(counts.size):
        whole += counts[k]
        within += xlog2x(counts[k])
        present += counts[k] > 0.0
    return max(xlog2x(whole) - within, 0.0), whole, present


@inner
def pays_fayyad_irani(left, right, cost):
    """Return True if a cut, identified by `cost` bits, saves more bits than it takes."""
    bits_left, n_left, k_left = entropy_bits(left)
    bits_right, n_right, k_right = entropy_bits(right)
    bits, n, k = entropy_bits(left + right)
    # log2(3**k - 2), from where it does not overflow
    names = k * log2(3.0) + log2(1.0 - 2.0 * 3.0**-k)
    labels = k * bits / n - k_left * bits_left / n_left - k_right * bits_right / n_right
    saved = bits - bits_left - bits_right
    return saved - (cost + names - labels) > _SLACK * (xlog2x(n) + names + cost)


@inner
def pays_kononenko(left, right, cost):
    """Return True if the cut, of `cost` bits, and its sides' labels take less than all labels."""
    whole = left + right
    k = entropy_bits(whole)[2]
    saved = label_bits(whole, k) - label_bits(left, k) - label_bits(right, k)
    n = whole.sum()
    return saved - cost > _SLACK * (math.lgamma(n + k) / _LN2 + k + cost)


@inner
def label_bits(counts, k):
    """Bits of the labels of rows: proportions of k labels, and an arrangement with these."""
    n = arrangement = 0.0
    for j in range(counts.size):
        n += counts[j]
        arrangement -= math.lgamma(counts[j] + 1.0)
    shares = math.lgamma(n + k) - math.lgamma(np.float64(k)) - math.lgamma(n + 1.0)
    return (arrangement + math.lgamma(n + 1.0) + shares) / _LN2
