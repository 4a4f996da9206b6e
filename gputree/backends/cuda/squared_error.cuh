// Squared error: gputree/criteria/squared_error.py.
#ifdef SQUARED_ERROR
struct State {
    i64 weight_left, whole, deviation, centre;
    double rest;
};

__device__ State begin(const Criterion&, const auto& left, const auto& total) {
    const i64 weight = total[0];
    const i64 centre = floor_divide(total[1], weight);
    const double rest = double(total[1] - centre * weight) / double(weight);
    return {left[0], weight, left[1] - centre * left[0], centre, rest};
}

__device__ void move(
    const Criterion&, State& state, auto&, const auto&, Target target, i64 weight
) {
    state.weight_left += weight;
    state.deviation += target - state.centre * weight;
}

__device__ i64 sum_left(const State& state, const auto&) {
    return state.deviation + state.centre * state.weight_left;
}

__device__ double score(const Criterion&, const State& state, const auto&, const auto&) {
    const double a = double(state.weight_left);
    const double d = double(state.deviation) - a * state.rest;
    return (d * d) / (a * double(state.whole - state.weight_left));
}

__device__ double gain(const Criterion& criterion, double value, const auto&) {
    return value * criterion.unit * criterion.unit;
}

__device__ double bound(
    const Criterion& criterion, const auto& left, const auto& cells, const auto& total
) {
    const i64 weight = total[0];
    const i64 centre = floor_divide(total[1], weight);
    const double rest = double(total[1] - centre * weight) / double(weight);
    const double n = double(weight);
    const double a0 = double(i64(left[0]));
    const double b = double(cells[0]);
    const double d0 = double(left[1] - centre * left[0]) - a0 * rest;
    const double s = double(cells[1] - centre * cells[0]) - b * rest;
    const double mean = s / b;
    const double sum = double(cells[1]);
    const double rows = double(cells[WEIGHTED ? 3 : 0]);
    const double off = 0.5 * (criterion.scale < 0x1p29 ? rows : b);
    const double cancelled = (fabs(d0) + fabs(s)) * 0x1p-50 + 1.0;
    const double low = greater_of(fabs(sum) - off, 0.0);
    double spread = (double(cells[2]) + rows) * criterion.scale * (1.0 + 1e-12);
    spread = greater_of(spread - low * (low / b) * (1.0 - 1e-12), 0.0);
    const double half = 0.5 * sqrt(spread * b);
    const bool free_left = a0 == 0.0, free_right = a0 + b == n;
    double most_left = 0.0, most_right = 0.0, most_both = 0.0;
    for (int i = 0; i < 4; ++i) {
        const bool outer = i == 0 || i == 3;
        const double share =
            outer ? double(i) / 3.0 : 0.5 + (double(i) - 1.5) * 0.41421356237309503;
        const double height = (outer ? half * 0.41421356237309503 : half) + off + cancelled;
        const double c = share * b;
        const double a = a0 + c;
        const double r = n - a;
        const double d =
            greater_of(fabs(d0 + mean * c + height), fabs(d0 + mean * c - height));
        if (!free_left) most_left = greater_of(most_left, d * d / a);
        if (!free_right) most_right = greater_of(most_right, d * d / r);
        if (!free_left && !free_right) most_both = greater_of(most_both, d * d / a + d * d / r);
    }
    const double side = fabs(s) + off + cancelled;
    const double root = sqrt(spread + side * (side / b)) + sqrt(0.5 * off);
    const double alone = root * root;
    if (free_left && free_right) return 2.0 * alone / n;
    if (free_left) return (alone + most_right) / n;
    if (free_right) return (alone + most_left) / n;
    return most_both / n;
}
#endif
