// Split criteria: the formulas of gputree/criteria, operation for operation. Compiled with
// --fmad=false, so that every score has the same bits as on the CPU; the reasons are there.
//
// One of GINI, WIDE_GINI, ENTROPY, MANY_CLASS_ENTROPY, SQUARED_ERROR and POISSON is defined.
// Statistics are anything with an operator[] that gives int64 channels. Those with a `margin`
// or a `tighten` of their own define OWN_MARGIN or OWN_TIGHTEN, those that refuse cuts REFUSES.
#ifdef MANY_CLASS_ENTROPY
#define ANY_ENTROPY
#elif defined(ENTROPY)
#define ANY_ENTROPY
#endif
#define BOUND_MARGIN 1e-9

struct Criterion {
    i64 n_classes;
    double unit;
    double scale;  // see gputree/criteria/kinds.py: SQUARED_ERROR has its square unit here
};
