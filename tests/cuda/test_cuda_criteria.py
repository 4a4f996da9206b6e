"""criteria.cuh gives the bits of gputree/criteria: scores, moves of rows, bounds, gains, log2."""

from importlib.resources import files

import numpy as np
import pytest
from cuda_emulator import emulated_cuda
from devices import needs_emulator
from numba import njit

from gputree import criteria
from gputree.backends.cuda.kernels import CRITERIA as CRITERIA_HEADERS
from gputree.backends.cuda.kernels import OPTIONS, Variant
from gputree.criteria.named import FORMS, TARGET_FORMS

pytestmark = needs_emulator

OUTPUTS = 10  # numbers that the formulas make of the statistics of a bin
FORMULAS = r"""
#define OUTPUTS 10
extern "C" __global__ void formulas(
    i64 cases, i64 n_classes, double unit, double scale, i64 channels, const i64* before,
    const Cell* bin, const i64* left, const i64* total, const i64* target, double* out
) {
    const i64 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= cases) return;
    const Criterion criterion = {n_classes, unit, scale};
    const i64* l = left + i * channels;
    const i64* t = total + i * channels;
    const i64* first = before + i * channels;
    const Cell* cells = bin + i * channels;
    double* to = out + OUTPUTS * i;
    const double value = score(criterion, begin(criterion, l, t), l, t);
    to[0] = value;
    to[1] = bound(criterion, first, cells, t);
    to[2] = gain(criterion, value, t);
    to[3] = margin(criterion, value, t);
    to[4] = tighten(criterion, first, cells, t, to[1], infinity());
    to[5] = tighten(criterion, first, cells, t, to[1], to[4] - (to[1] - value) / 8);
    i64 moved[4];
    for (i64 c = 0; c < channels; ++c) moved[c] = l[c];
    State state = begin(criterion, l, t);
    move(criterion, state, moved, t, target[2 * i], target[2 * i + 1]);
    to[6] = score(criterion, state, moved, t);
    to[7] = refused_score(criterion, state, moved, t);
    to[8] = weight_in(criterion, l);
    to[9] = is_pure(criterion, l);
}
extern "C" __global__ void logarithms(i64 cases, const double* x, double* out) {
    const i64 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < cases) out[i] = log2_of(x[i]);
}
"""

CRITERIA = {
    "gini": criteria.Gini(4, 1.0),
    "wide gini": criteria.WideGini(4, 2.0**-3),
    "entropy": criteria.Entropy(4, 2.0**-2),
    "many-class entropy": criteria.ManyClassEntropy(4, 2.0**-2, 2.0**30),
    "squared error": criteria.SquaredError(2.0**-20, 2.0**-7),
    "poisson": criteria.Poisson(2.0**-20, 2.0**5),
}


@njit(error_model="numpy")
def formulas(criterion, before, bin_, left, total, target, out):
    for i in range(len(out)):
        first, cells, sums, t, to = before[i], bin_[i], left[i], total[i], out[i]
        value = criteria.score(criterion, criteria.begin(criterion, sums, t), sums, t)
        to[0] = value
        to[1] = criteria.bound(criterion, first, cells, 0, t)
        to[2] = criteria.gain(criterion, value, t)
        to[3] = criteria.margin(criterion, value, t)
        to[4] = criteria.tighten(criterion, first, cells, 0, t, to[1], np.inf)
        needed = to[4] - (to[1] - value) / 8
        to[5] = criteria.tighten(criterion, first, cells, 0, t, to[1], needed)
        moved, state = sums.copy(), criteria.begin(criterion, sums, t)
        state = criteria.move(criterion, state, moved, t, target[i, 0], target[i, 1])
        to[6] = criteria.score(criterion, state, moved, t)
        to[7] = criteria.refused_score(criterion, state, moved, t)
        to[8] = criteria.left_weight(criterion, sums, 0)
        to[9] = criteria.is_pure(criterion, sums)


def class_cases(rng, n, n_classes=4):
    """Statistics before a bin, in it and after it: sizes of 1 to 1e6, many of them zero."""
    size = 10.0 ** rng.uniform(0, 6, (3, n, 1))
    before, bin_, after = (rng.uniform(0, 1, (3, n, n_classes)) * size).astype(np.int64)
    for part in (before, bin_, after):
        part[rng.random(part.shape) < 0.3] = 0
    before[rng.random(n) < 0.1] = 0
    after[rng.random(n) < 0.1] = 0
    bin_[:, 0] += 1
    after[:, 1] += after.sum(axis=1) == 0  # something is right of the cut
    return before, bin_, before + bin_ + after


def target_cases(rng, n):
    """The same for regression: weight, sum and sum of squares."""
    weight = (10.0 ** rng.uniform(0, 5, (3, n))).astype(np.int64)
    weight[0][rng.random(n) < 0.1] = 0
    mean = rng.normal(0, 2.0**12, (3, n))
    total = (weight * mean).astype(np.int64)
    square = (weight * (mean * mean + 2.0**20)).astype(np.int64) >> 7
    before, bin_, after = np.stack([weight, total, square], axis=-1)
    return before, bin_, before + bin_ + after


def rate_cases(rng, n):
    """The same for Poisson: weight, sum of targets and sum of their terms."""
    before, bin_, total = np.abs(target_cases(rng, n))
    unit = CRITERIA["poisson"].unit
    parts = [before, bin_, total - before - bin_]
    for part in parts:
        part[rng.random(n) < 0.1, 1] = 0
        part[part[:, 0] == 0] = 0
        part[:, 1] = np.minimum(part[:, 1], part[:, 0] << 19)
        share = part[:, 1] * unit / np.maximum(part[:, 0], 1)
        deviation = part[:, 1] * np.log2(np.where(share > 0, share, 1.0))
        part[:, 2] = -deviation - rng.uniform(0, 0.2, n) * part[:, 1]
    return parts[0], parts[1], parts[0] + parts[1] + parts[2]


def compiled(cupy, variant):
    folder = files("gputree.backends.cuda")
    parts = [(folder / name).read_text() for name in ("types.cuh", *CRITERIA_HEADERS)]
    return cupy.RawModule(code="\n".join([*parts, FORMULAS]), options=(*OPTIONS, *variant.macros))


def test_every_criterion_is_here():
    assert {type(criterion) for criterion in CRITERIA.values()} == {*FORMS}


def statistics(name, criterion, rng, n):
    """Criteria of several numbers of classes, with statistics, and a row to move of each case."""
    if type(criterion) in TARGET_FORMS:
        cases = target_cases if name == "squared error" else rate_cases
        before, bin_, total = cases(rng, n)
        weight = np.minimum(bin_[:, 0], 1)
        yield criterion, (before, bin_, total), np.stack([weight * 3, weight], axis=1)
        return
    for n_classes in (2, 3, 4):
        before, bin_, total = class_cases(rng, n, n_classes)
        row = np.stack([np.ones(n, np.int64), (total - before - bin_)[:, 1] // 2], axis=1)
        yield criterion._replace(n_classes=n_classes), (before, bin_.astype(np.uint32), total), row


@pytest.mark.parametrize("name", CRITERIA)
def test_formulas(name):
    rng, n = np.random.default_rng(5), 10_000
    for criterion, (before, cells, total), row in statistics(name, CRITERIA[name], rng, n):
        left = before + cells
        expected = np.empty((n, OUTPUTS))
        with np.errstate(all="ignore"):
            formulas(criterion, before, cells, left, total, row, expected)
        with emulated_cuda() as cupy:
            module = compiled(cupy, Variant(type(criterion), False, 64))
            out = cupy.empty((n, OUTPUTS), dtype=np.float64)
            scale = getattr(criterion, "square_unit", getattr(criterion, "scale", 0.0))
            sizes = n, getattr(criterion, "n_classes", 0), criterion.unit, scale, left.shape[1]
            arrays = [cupy.asarray(a) for a in (before, cells, left, total, row)]
            module.get_function("formulas")((-(-n // 256),), (256,), (*sizes, *arrays, out))
            found = out.get()
        same = (expected.view(np.int64) == found.view(np.int64)) | (
            np.isnan(expected) & np.isnan(found)
        )
        assert np.argwhere(~same).tolist() == []
        assert np.isfinite(expected[:, 1]).mean() > 0.9
        if "gini" in name and criterion.n_classes > 2:  # most bounds reach what is needed, not all
            assert 0.1 < (expected[:, 5] != expected[:, 4]).mean() < 0.99


def test_log2():
    rng = np.random.default_rng(0)
    x = np.concatenate([2.0 ** rng.uniform(-300, 300, 50_000), rng.uniform(0.5, 2, 50_000)])
    x = np.concatenate([x, 2.0 ** np.arange(-50, 50), np.sqrt(2) * 2.0 ** np.arange(-50, 50)])
    logarithm = njit(lambda values: [criteria.log2(v) for v in values])
    with emulated_cuda() as cupy:
        module = compiled(cupy, Variant(criteria.Entropy, False, 64))
        out = cupy.empty(x.size, dtype=np.float64)
        module.get_function("logarithms")(
            (-(-x.size // 256),), (256,), (x.size, cupy.asarray(x), out)
        )
        found = out.get()
    assert np.array_equal(np.array(logarithm(x)), found)
