// Split criteria: the formulas of gputree/criteria. Scores and bounds are the same sequence of
// operations, and compiled with --fmad=false, so that they have the same bits as on the CPU; the
// reasons are there.
//
// One macro is defined, by the criterion's type: GINI, WIDE_GINI, ENTROPY, SQUARED_ERROR, ...
// Statistics are anything whose operator[] returns int64 channels. Criteria that define `margin` or
// `tighten` themselves define OWN_MARGIN or OWN_TIGHTEN, those that refuse cuts REFUSES.
#ifdef MANY_CLASS_ENTROPY
#define ANY_ENTROPY
#elif defined(ENTROPY)
#define ANY_ENTROPY
#endif
#define BOUND_MARGIN 1e-9

struct Criterion {
    i64 n_classes;
    double unit;
    double scale;  // see gputree/criteria/dispatch.py: SQUARED_ERROR has its square unit here
};
