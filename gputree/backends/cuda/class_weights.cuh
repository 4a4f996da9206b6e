// Functions that the criteria of classes share.
#if !REGRESSION
__device__ i64 weight_in(const Criterion& criterion, const auto& statistics) {
    i64 weight = 0;
    for (i64 k = 0; k < criterion.n_classes; ++k) weight += statistics[k];
    return weight;
}

__device__ i64 sum_left(const auto&, const auto& left) {
    return left[1];
}

__device__ bool is_pure(const Criterion& criterion, const auto& total) {
    i64 present = 0;
    for (i64 k = 0; k < criterion.n_classes; ++k) present += total[k] > 0;
    return present < 2;
}
#endif

// State of criteria whose formula of `begin` is `weights_begin` of gputree/criteria/shared.py.
#ifdef STATE_OF_WEIGHTS
struct State {
    i64 weight_left, weight_right;
};

__device__ State begin(const Criterion& criterion, const auto& left, const auto& total) {
    State state = {0, 0};
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        state.weight_left += left[k];
        state.weight_right += total[k] - left[k];
    }
    return state;
}

__device__ void move(
    const Criterion&, State& state, auto& left, const auto&, Target target, i64 weight
) {
    left[target] += weight;
    state.weight_left += weight;
    state.weight_right -= weight;
}
#endif
