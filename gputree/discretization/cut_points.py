"""Cut points of a column that pay for their own description, found on the host.

A sorted column is divided from the top down:

    begin                          end          the range on top of the stack
      |  a a b a a | b b b b a b |  b b b ...   its best cut, if it pays, becomes the next end
                   ^ cut                        and the range to its left comes first

so that ranges are done in the order of the column, and cuts come out in it.

The MDL principle: acceptance of cuts that save more bits than their description takes.

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

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import about_one, fix_weights
from gputree.backends.binning import midpoints
from gputree.backends.cpu.layout import NodeList
from gputree.backends.cpu.lists.score import best_cut, new_scan
from gputree.backends.cpu.sort import radix_argsort
from gputree.base.dtypes import ROW, Floats, Int32s, Int64s, Values, Weight
from gputree.compilation import borrowing, inner, kernel
from gputree.criteria.entropy import Information, new_information
from gputree.criteria.shared import log2, xlog2x

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


class MdlRule(NamedTuple):
    """Criterion by which a cut is accepted."""

    by_kononenko: bool  # True: description of labels by Kononenko; else by Fayyad and Irani
    # True: identifying a cut takes the logarithm of the number of cuts; else of the rows less one
    counts_cuts: bool


class MdlTask(NamedTuple):
    """Labels of n rows, for the cut points of any column over them."""

    target: NDArray[np.integer]  # (n,), codes of labels
    weight: Int64s  # (n,), in units
    n_classes: int
    information: Information
    scale: float  # rows that correspond to a unit of weight
    rule: MdlRule
    place: Int32s  # (n,): 0, 1, ..., n - 1


def new_mdl_task(
    target: NDArray[np.integer], sample_weight: Weight, n_classes: int, rule: MdlRule
) -> MdlTask:
    """Return the task for columns of the rows of `target`; weights are positive, or None."""
    weights = about_one(fix_weights(sample_weight, target.size), target.size)
    return MdlTask(
        target=target,
        weight=np.ones(target.size, np.int64) if weights.weight is None else weights.weight,
        n_classes=n_classes,
        information=new_information(weights.total, weights.unit),
        scale=weights.unit * weights.scale,
        rule=rule,
        place=np.arange(target.size, dtype=ROW),
    )


def cut_values(column: Values, task: MdlTask) -> Floats:
    """Cut points of a column, ascending: midway between the values on both sides.

    Rows without a value (NaN) are ignored.
    """
    column = np.ascontiguousarray(column)
    order, keys = radix_argsort(column)
    n_present = int(np.searchsorted(keys, ~keys.dtype.type(0)))
    # Of one type for both precisions: one kernel is compiled.
    keys = keys[:n_present].astype(np.uint64, copy=False)
    last = cut_sorted(
        task.information, task.rule, task.scale, task.n_classes, task.place, order[:n_present],
        keys, task.target, task.weight,
    )  # fmt: skip
    low, high = column[order[last]], column[order[last + 1]]
    return midpoints(low.astype(np.float64), high.astype(np.float64))


FIRST_ROOM = 64  # initial size of the stack of waiting ranges, and of the array of cuts


@borrowing
def add_up(target, weight, begin, end, class_weights):
    """Class weights of the rows ``begin .. end``, and their sum."""
    class_weights[:] = 0
    total = np.int64(0)
    for i in range(begin, end):
        class_weights[target[i]] += weight[i]
        total += weight[i]
    return total


@inner
def gather(values, order):
    """``values[order]``."""
    out = np.empty(order.size, values.dtype)
    for i in range(order.size):
        out[i] = values[order[i]]
    return out


@inner
def pays(rule, left, class_weights, tries, scale):
    """Return True if a cut, `left` of the node's `class_weights`, is worth its description."""
    on_left, on_right = np.empty(class_weights.size), np.empty(class_weights.size)
    total = 0.0
    for k in range(class_weights.size):
        on_left[k] = np.float64(left[k]) * scale
        on_right[k] = np.float64(class_weights[k] - left[k]) * scale
        total += np.float64(class_weights[k]) * scale
    names = np.float64(tries) if rule.counts_cuts else total - 1.0
    if names <= 0.0:  # less than a row, by weight
        return False
    if rule.by_kononenko:
        return pays_kononenko(on_left, on_right, log2(names))
    return pays_fayyad_irani(on_left, on_right, log2(names))


@inner
def longer(array):
    """Copy to an array of twice the size."""
    out = np.empty(2 * array.size, array.dtype)
    out[: array.size] = array
    return out


@kernel
def cut_sorted(information, rule, scale, n_classes, place, order, keys, target, weight):
    """Find the last places before each cut of a column sorted by `order`; `keys` ascend.

    For the other arguments see `gputree.discretization.cut_points.MdlTask`.
    """
    target = gather(target, order)
    weight = gather(weight, order)
    scan = new_scan(n_classes)
    class_weights = scan.known
    left = np.empty(n_classes, np.int64)
    cuts = np.empty(FIRST_ROOM, np.int64)
    ends = np.empty(FIRST_ROOM, np.int64)
    ends[0] = order.size
    n_cuts, waiting, begin = 0, 1, 0
    while waiting > 0:
        end = ends[waiting - 1]
        total = add_up(target, weight, begin, end, class_weights)
        tries = np.int64(0)
        last = np.int64(-1)
        if end > begin and keys[begin] != keys[end - 1]:
            column = NodeList(place, keys, target, weight, begin, end)
            _, tries, last, _ = best_cut(information, column, scan, total, np.int64(1))
        if last >= 0:
            add_up(target, weight, begin, last + 1, left)
            if pays(rule, left, class_weights, tries, scale):
                if waiting == ends.size:
                    ends = longer(ends)
                ends[waiting] = last + 1
                waiting += 1
                continue
        waiting -= 1
        begin = end
        if waiting > 0:
            if n_cuts == cuts.size:
                cuts = longer(cuts)
            cuts[n_cuts] = end - 1
            n_cuts += 1
    return cuts[:n_cuts].copy()
