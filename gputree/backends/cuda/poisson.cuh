// Half Poisson deviance: gputree/criteria/poisson.py.
#ifdef POISSON
#define LN_2 0.6931471805599453
#define ROUNDING 1e-12

struct State {
    i64 weight_left, weight, sum_left, whole;
    double mean;
};

__device__ State begin(const Criterion&, const auto& left, const auto& total) {
    const i64 weight = total[0], whole = total[1];
    return {left[0], weight, left[1], whole, double(whole) / double(weight)};
}

__device__ void move(
    const Criterion&, State& state, auto&, const auto&, Target target, i64 weight
) {
    state.weight_left += weight;
    state.sum_left += target;
}

__device__ i64 sum_left(const State& state, const auto&) {
    return state.sum_left;
}

__device__ inline double excess(double total, double weight, double mean) {
    return total > 0.0 ? total * log2_of(total / weight / mean) : 0.0;
}

__device__ inline bool splits_events(const State& state) {
    return 0 < state.sum_left && state.sum_left < state.whole;
}

__device__ inline double both_excesses(const State& state) {
    const double side = excess(double(state.sum_left), double(state.weight_left), state.mean);
    const double other = excess(
        double(state.whole - state.sum_left), double(state.weight - state.weight_left), state.mean
    );
    return side + other;
}

__device__ double score(const Criterion&, const State& state, const auto&, const auto&) {
    return splits_events(state) ? both_excesses(state) : -infinity();
}

#define REFUSES 1
__device__ double refused_score(
    const Criterion&, const State& state, const auto&, const auto&
) {
    return splits_events(state) ? -infinity() : both_excesses(state);
}

__device__ double gain(const Criterion& criterion, double value, const auto& total) {
    return value * (criterion.unit * criterion.scale * LN_2) / double(i64(total[0]));
}

#define OWN_MARGIN
__device__ double margin(const Criterion&, double value, const auto& total) {
    return BOUND_MARGIN * value + ROUNDING * double(i64(total[1]));
}

__device__ double bound(
    const Criterion& criterion, const auto& left, const auto& cells, const auto& total
) {
    const double whole = double(i64(total[1]));
    if (whole <= 0.0) return -infinity();
    const double mean = whole / double(i64(total[0]));
    const double a = double(i64(left[0]));
    const double before = double(i64(left[1]));
    const double b = double(i64(cells[0]));
    const double s = double(i64(cells[1]));
    const double r = double(total[0] - left[0] - i64(cells[0]));
    const double after = double(total[1] - left[1] - i64(cells[1]));
    const double single = -double(i64(cells[2])) - s * log2_of(mean * criterion.unit);
    const double apart = excess(before, a, mean) + single + excess(after, r, mean);
    if (a == 0.0 || r == 0.0) return apart;
    double d = 0.0;
    if (s > 0.0) {
        const double spread = greater_of(single - excess(s, b, mean), 0.0) + ROUNDING * s;
        d = lesser_of(sqrt(0.5 * LN_2 * spread / s), 1.0);
    }
    double most = 0.0;
#pragma unroll 1  // logarithms bound the loop
    for (int i = 0; i < 6; ++i) {
        const double p = i == 1 || i == 5 ? 1.0 : i == 3 ? d : i == 4 ? 1.0 - d : 0.0;
        const double q = i == 1 || i == 4 ? 1.0 : i == 2 ? d : i == 5 ? 1.0 - d : 0.0;
        const double side = excess(before + q * s, a + p * b, mean);
        const double other = excess(after + (1.0 - q) * s, r + (1.0 - p) * b, mean);
        most = greater_of(most, side + other);
    }
    return lesser_of(most, apart);
}
#endif
