// Number of rows behind statistics of `channels` channels.
__device__ i64 rows_in(const Criterion& criterion, const auto& statistics, i64 channels) {
    return WEIGHTED ? i64(statistics[channels - 1]) : weight_in(criterion, statistics);
}

// Limits on splits: `admits` of gputree/backends/cpu/cut.py.
struct Limits {
    i64 min_samples_leaf, min_weight_leaf;

    // True if both sides of a cut are large enough: n of `whole` rows, `weight` of `all_weight`.
    __device__ bool admit(i64 n, i64 whole, i64 weight, i64 all_weight) const {
        const i64 min_rows = min_samples_leaf > 1 ? min_samples_leaf : 1;
        if (n < min_rows || whole - n < min_rows) return false;
        return weight >= min_weight_leaf && all_weight - weight >= min_weight_leaf;
    }

    // The same if the smaller side has `fewer` rows, at least one. Each form spills
    // registers where the other does not.
    __device__ bool admit_sides(i64 fewer, i64 weight, i64 others) const {
        return fewer >= min_samples_leaf && weight >= min_weight_leaf && others >= min_weight_leaf;
    }
};

// Rules by which a task grows trees.
struct Rules {
    Criterion criterion;
    Limits limits;
    i64 channels;  // of a cell of a histogram
    i64 max_features;
    i64 min_samples_split, max_depth;
    double min_decrease;
    i64 rounded;  // weight x target had to be rounded to units
    i64 random_ties;

    // True if a node of `rows` rows may be split.
    __device__ bool may_split(i64 rows, i64 depth) const {
        const i64 min_rows = min_samples_split > 2 ? min_samples_split : 2;
        return depth < max_depth && rows >= min_rows && rows >= 2 * limits.min_samples_leaf;
    }
};

// Monotonic constraints: the direction of means with a column, and their bounds:
// gputree/backends/cpu/monotonic.py. Compiled for tasks that have constraints: MONOTONIC is 1.
#ifndef MONOTONIC
#define MONOTONIC 0
#endif

// The probability of class 1, or the mean target in units, from statistics or their sums.
__device__ __forceinline__ double mean_of(i64 sum, i64 weight) {
    return double(sum) / double(weight);
}

struct Constraint {  // of cuts of one column in one node
    i32 sign;
    double lower, upper;

    // True if the means of both sides are in order, and within the bounds.
    __device__ bool admits(
        const Criterion& criterion, const State& state, const auto& left, const auto& total
    ) const {
#if MONOTONIC
        if (sign == 0) return true;
        const i64 sum = sum_left(state, left);
        const i64 rest = weight_in(criterion, total) - state.weight_left;
        double low = mean_of(sum, state.weight_left), high = mean_of(total[1] - sum, rest);
        if (sign < 0) {
            const double swapped = low;
            low = high;
            high = swapped;
        }
        return low <= high && lower <= low && high <= upper;
#else
        return true;
#endif
    }
};

struct Monotonic {  // of some nodes; null without constraints
    const i32* signs;
    const double* lower;
    const double* upper;

    __device__ __forceinline__ Constraint of(i64 node, i64 column) const {
#if MONOTONIC
        return {signs[column], lower[node], upper[node]};
#else
        return {0, 0.0, 0.0};
#endif
    }
};

__device__ bool admissible(
    const Rules& rules, const Constraint& constraint, const auto& left, const auto& total
) {
    const Criterion& criterion = rules.criterion;
    const bool weighs = rules.limits.min_weight_leaf > 0;  // else weights are not summed
    const bool admitted = rules.limits.admit(
        rows_in(criterion, left, rules.channels), rows_in(criterion, total, rules.channels),
        weighs ? weight_in(criterion, left) : 0, weighs ? weight_in(criterion, total) : 0
    );
#if MONOTONIC
    return admitted && constraint.admits(criterion, begin(criterion, left, total), left, total);
#else
    return admitted;
#endif
}

// Score of an admissible cut with the statistics `left` before it, or -infinity.
__device__ double score_of(
    const Rules& rules, const Constraint& constraint, const auto& left, const auto& total
) {
    if (!admissible(rules, constraint, left, total)) return -infinity();
    return score(rules.criterion, begin(rules.criterion, left, total), left, total);
}

// True if an admissible cut can be inside a bin of n rows that follows `before`.
__device__ bool cut_inside(const Rules& rules, const auto& before, i64 n, const auto& total) {
    if (n < 2) return false;
    const i64 min_rows = rules.limits.min_samples_leaf;
    if (min_rows <= 1) return true;
    const i64 left = rows_in(rules.criterion, before, rules.channels);
    const i64 right = rows_in(rules.criterion, total, rules.channels) - left - n;
    return left + n - 1 >= min_rows && right + n - 1 >= min_rows;
}
