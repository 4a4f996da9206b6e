// Split criteria: the formulas of gputree/criteria, operation for operation. Compiled with
// --fmad=false, so that every score has the same bits as on the CPU; the reasons are there.
//
// One of GINI, WIDE_GINI, ENTROPY, MANY_CLASS_ENTROPY and SQUARED_ERROR is defined. Statistics
// are anything with an operator[] that gives int64 channels.
#ifdef MANY_CLASS_ENTROPY
#define ANY_ENTROPY
#elif defined(ENTROPY)
#define ANY_ENTROPY
#endif
#define LOG2_E 1.4426950408889634
#define BOUND_MARGIN 1e-9

struct Criterion {
    i64 n_classes;
    double unit;
    double scale;  // SQUARED_ERROR: unit of squares; MANY_CLASS_ENTROPY: fixed-point units of a bit
};

__device__ inline double log2_of(double x) {
    const i64 bits = __double_as_longlong(x);
    i64 exponent = (bits >> 52) - 1023;
    double m = __longlong_as_double((bits & 0x000FFFFFFFFFFFFFll) | 0x3FF0000000000000ll);
    if (m > 1.4142135623730951) {
        m = m * 0.5;
        exponent += 1;
    }
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 0.2;
    p = p * z + 1.0 / 3.0;
    p = p * z;
    return double(exponent) + (s + s * p) * (2.0 * LOG2_E);
}

__device__ inline double xlog2x(double x) { return x > 0.0 ? x * log2_of(x) : 0.0; }

#ifndef ANY_ENTROPY
template <class Total>
__device__ double margin(const Criterion&, double value, const Total&) {
    return BOUND_MARGIN * value;
}
#endif

#if !defined(GINI) && !defined(WIDE_GINI)
template <class Left, class Cells, class Total>
__device__ double tighten(const Criterion&, const Left&, const Cells&, const Total&, double value) {
    return value;
}
#endif
