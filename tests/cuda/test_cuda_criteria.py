"""criteria.cuh gives the bits of gputree/criteria: log2, scores, bounds, gains, margins."""

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

FORMULAS = r"""
extern "C" __global__ void formulas(
    i64 cases, i64 n_classes, double unit, double scale, i64 channels, const i64* before,
    const Cell* bin, const i64* left, const i64* total, double* out
) {
    const i64 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= cases) return;
    const Criterion criterion = {n_classes, unit, scale};
    const i64* l = left + i * channels;
    const i64* t = total + i * channels;
    const double value = score(criterion, begin(criterion, l, t), l, t);
    out[5 * i] = value;
    out[5 * i + 1] = bound(criterion, before + i * channels, bin + i * channels, t);
    out[5 * i + 2] = gain(criterion, value, t);
    out[5 * i + 3] = margin(criterion, value, t);
    out[5 * i + 4] = tighten(
        criterion, before + i * channels, bin + i * channels, t, out[5 * i + 1]
    );
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
def formulas(criterion, before, bin_, left, total, out):
    for i in range(len(out)):
        value = criteria.score(
            criterion, criteria.begin(criterion, left[i], total[i]), left[i], total[i]
        )
        out[i, 0] = value
        out[i, 1] = criteria.bound(criterion, before[i], bin_[i], 0, total[i])
        out[i, 2] = criteria.gain(criterion, value, total[i])
        out[i, 3] = criteria.margin(criterion, value, total[i])
        out[i, 4] = criteria.tighten(criterion, before[i], bin_[i], 0, total[i], out[i, 1], np.inf)


def class_cases(rng, n):
    """Statistics before a bin, in it and after it: sizes of 1 to 1e6, many of them zero."""
    size = 10.0 ** rng.uniform(0, 6, (3, n, 1))
    before, bin_, after = (rng.uniform(0, 1, (3, n, 4)) * size).astype(np.int64)
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


@pytest.mark.parametrize("name", CRITERIA)
def test_formulas(name):
    criterion = CRITERIA[name]
    regression = type(criterion) in TARGET_FORMS
    cases = {"squared error": target_cases, "poisson": rate_cases}.get(name, class_cases)
    rng = np.random.default_rng(5)
    n = 20_000
    before, bin_, total = cases(rng, n)
    left = before + bin_
    cells = bin_ if regression else bin_.astype(np.uint32)
    expected = np.empty((n, 5))
    with np.errstate(all="ignore"):
        formulas(criterion, before, cells, left, total, expected)
    with emulated_cuda() as cupy:
        module = compiled(cupy, Variant(type(criterion), False, 64))
        out = cupy.empty((n, 5), dtype=np.float64)
        scale = getattr(criterion, "square_unit", getattr(criterion, "scale", 0.0))
        arrays = [cupy.asarray(a) for a in (before, cells, left, total)]
        module.get_function("formulas")(
            (-(-n // 256),), (256,), (n, 4, criterion.unit, scale, left.shape[1], *arrays, out)
        )
        found = out.get()
    same = (expected.view(np.int64) == found.view(np.int64)) | (
        np.isnan(expected) & np.isnan(found)
    )
    assert np.flatnonzero(~same.all(axis=1)).tolist() == []
    assert np.isfinite(expected[:, 1]).mean() > 0.9


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
