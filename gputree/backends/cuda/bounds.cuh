// Defaults of criteria that refuse no cut, tighten no bound or widen no margin themselves.
#ifndef REFUSES
#define REFUSES 0
// Score of a cut that `score` refuses, were it admitted; else -infinity.
__device__ double refused_score(const Criterion&, const State&, const auto&, const auto&) {
    return -infinity();
}
#endif

#ifndef OWN_MARGIN
__device__ double margin(const Criterion&, double value, const auto&) {
    return BOUND_MARGIN * value;
}
#endif

#ifndef OWN_TIGHTEN
__device__ double tighten(
    const Criterion&, const auto&, const auto&, const auto&, double value, double
) {
    return value;
}
#endif
