// Formulas that the criteria of targets share: gputree/criteria/shared.py.
#if REGRESSION
__device__ __forceinline__ i64 floor_divide(i64 a, i64 b) {  // b > 0
    const i64 quotient = a / b;
    return quotient * b > a ? quotient - 1 : quotient;
}

// Intersect an interval with the range of a row's true target, in units. `target` is the product
// with the weight; where it was rounded, so was the weight.
__device__ __forceinline__ void narrow(
    double& low, double& high, Target target, i64 weight, i64 rounded
) {
    const double value = rounded ? double(target) / double(weight)
                                 : double(floor_divide(target, weight));
    const double error =
        rounded ? 1.0 / double(weight) + fabs(value) * 8.881784197001252e-16 : 0.0;  // 2**-50
    low = greater_of(low, value - error);
    high = lesser_of(high, value + error);
}

__device__ i64 weight_in(const Criterion&, const auto& statistics) {
    return statistics[0];
}

__device__ bool is_pure(const Criterion&, const auto&) {
    return false;
}
#endif
