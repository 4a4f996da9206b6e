// Number of rows behind the statistics of so many channels.
template <class Statistics>
__device__ i64 rows_in(const Criterion& criterion, const Statistics& statistics, i64 channels) {
    return WEIGHTED ? i64(statistics[channels - 1]) : weight_in(criterion, statistics);
}

// Limits on splits: what gputree/backends/cpu/score.py calls admissible.
struct Limits {
    i64 min_samples_leaf, min_weight_leaf;
};

template <class Left, class Total>
__device__ bool admissible(
    const Criterion& criterion, const Limits& limits, const Left& left, const Total& total,
    i64 channels
) {
    const i64 n = rows_in(criterion, left, channels);
    const i64 least = limits.min_samples_leaf > 1 ? limits.min_samples_leaf : 1;
    if (n < least || rows_in(criterion, total, channels) - n < least) return false;
    if (limits.min_weight_leaf == 0) return true;
    const i64 weight = weight_in(criterion, left);
    return weight >= limits.min_weight_leaf &&
           weight_in(criterion, total) - weight >= limits.min_weight_leaf;
}

// Whether an admissible cut can lie inside a bin of n rows that follows `before`.
template <class Before, class Total>
__device__ bool cut_inside(
    const Criterion& criterion, const Limits& limits, const Before& before, i64 n,
    const Total& total, i64 channels
) {
    if (n < 2) return false;
    const i64 least = limits.min_samples_leaf;
    if (least <= 1) return true;
    const i64 left = rows_in(criterion, before, channels);
    const i64 right = rows_in(criterion, total, channels) - left - n;
    return left + n - 1 >= least && right + n - 1 >= least;
}
