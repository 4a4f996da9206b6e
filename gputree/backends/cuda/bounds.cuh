// What bounds are taken for where a criterion says nothing else.
#ifndef OWN_MARGIN
template <class Total>
__device__ double margin(const Criterion&, double value, const Total&) {
    return BOUND_MARGIN * value;
}
#endif

#ifndef OWN_TIGHTEN
template <class Left, class Cells, class Total>
__device__ double tighten(const Criterion&, const Left&, const Cells&, const Total&, double value) {
    return value;
}
#endif
