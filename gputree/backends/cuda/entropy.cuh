// Entropy: gputree/criteria/entropy.py.
#ifdef MANY_CLASS_ENTROPY
struct State {
    i64 weight_left, weight_right, terms;
};

__device__ inline i64 fixed_xlog2x(const Criterion& criterion, i64 weight) {
    return i64(rint(xlog2x(double(weight) * criterion.unit) * criterion.scale));
}

__device__ State begin(const Criterion& criterion, const auto& left, const auto& total) {
    State state = {0, 0, 0};
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const i64 a = left[k];
        const i64 b = total[k] - a;
        state.weight_left += a;
        state.weight_right += b;
        if (a > 0) state.terms += fixed_xlog2x(criterion, a);
        if (b > 0) state.terms += fixed_xlog2x(criterion, b);
    }
    return state;
}

__device__ void move(
    const Criterion& criterion, State& state, auto& left, const auto& total, Target target,
    i64 weight
) {
    const i64 a = left[target];
    const i64 b = total[target] - a;
    left[target] = a + weight;
    state.terms += fixed_xlog2x(criterion, a + weight) - fixed_xlog2x(criterion, a);
    state.terms += fixed_xlog2x(criterion, b - weight) - fixed_xlog2x(criterion, b);
    state.weight_left += weight;
    state.weight_right -= weight;
}

__device__ double score(const Criterion& criterion, const State& state, const auto&, const auto&) {
    const double weight_left = double(state.weight_left) * criterion.unit;
    const double weight_right = double(state.weight_right) * criterion.unit;
    const double value = double(state.terms) / criterion.scale;
    return value - (xlog2x(weight_left) + xlog2x(weight_right));
}
#endif

#ifdef ENTROPY
__device__ double score(
    const Criterion& criterion, const State& state, const auto& left, const auto& total
) {
    double value = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double a = double(i64(left[k])) * criterion.unit;
        const double b = double(total[k] - left[k]) * criterion.unit;
        value += xlog2x(a) + xlog2x(b);
    }
    const double weight_left = double(state.weight_left) * criterion.unit;
    const double weight_right = double(state.weight_right) * criterion.unit;
    return value - (xlog2x(weight_left) + xlog2x(weight_right));
}
#endif

#ifdef ANY_ENTROPY
#define OWN_MARGIN
__device__ double margin(const Criterion& criterion, double value, const auto& total) {
    return BOUND_MARGIN * (double(weight_in(criterion, total)) * criterion.unit - value);
}

__device__ double gain(const Criterion& criterion, double value, const auto& total) {
    double weight = 0.0, within = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double a = double(i64(total[k])) * criterion.unit;
        weight += a;
        within += xlog2x(a);
    }
    return (value - (within - xlog2x(weight))) / weight;
}

__device__ double bound(
    const Criterion& criterion, const auto& left, const auto& cells, const auto& total
) {
    double middle = 0.0, whole = 0.0;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        middle += double(i64(left[k])) + 0.5 * double(i64(cells[k]));
        whole += double(i64(total[k]));
    }
    middle *= criterion.unit;
    whole *= criterion.unit;
    const double slope_left = log2_of(middle) + LOG2_E;
    const double slope_right = log2_of(whole - middle) + LOG2_E;
    double value = whole * LOG2_E;
    for (i64 k = 0; k < criterion.n_classes; ++k) {
        const double t = double(i64(total[k])) * criterion.unit;
        double a = double(i64(left[k])) * criterion.unit;
        const double start = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a);
        if (cells[k] == 0) {
            value += start;
        } else {
            a = double(left[k] + i64(cells[k])) * criterion.unit;
            const double end = xlog2x(a) + xlog2x(t - a) - slope_left * a - slope_right * (t - a);
            value += greater_of(start, end);
        }
    }
    return value;
}
#endif
