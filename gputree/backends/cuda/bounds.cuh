// Defaults of criteria that do not tighten bounds or widen the margin themselves.
#ifndef OWN_MARGIN
__device__ double margin(const Criterion&, double value, const auto&) {
    return BOUND_MARGIN * value;
}
#endif

#ifndef OWN_TIGHTEN
__device__ double tighten(const Criterion&, const auto&, const auto&, const auto&, double value) {
    return value;
}
#endif
