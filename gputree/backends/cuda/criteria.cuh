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
#define BOUND_MARGIN 1e-9

struct Criterion {
    i64 n_classes;
    double unit;
    double scale;  // SQUARED_ERROR: unit of squares; MANY_CLASS_ENTROPY: fixed-point units of a bit
};

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
