// Sorted lists of CART: statistics of rows, as criteria take them.
struct Rows {
    const Target* target;
    const i64* weight;  // null where every row weighs one unit
};

struct Row {
    bool valid;
    u32 code;
    Target target;
    i64 weight;
};

struct Node {  // of a list: its rows, missing values at known .. end, and their statistics
    List list;
    i64 begin, known, end;
    const i64* total;

    __device__ i64 rows() const { return end - begin; }
    __device__ bool has_missing() const { return known < end; }
};

struct Measure {
    Criterion criterion;
    i64 min_samples_leaf, min_weight_leaf;

    // Statistics that scores are made of: classes, or weight and sum.
    __device__ i64 channels() const { return REGRESSION ? 2 : criterion.n_classes; }
};

__device__ inline Row row_at(const List& list, const Rows& rows, i64 i, i64 last) {
    if (i >= last) return {false, MISSING_CODE, 0, 0};
    const i64 e = list.item[i];
    return {true, list.code[i], rows.target[e], weight_of(rows.weight, e)};
}

// What a row adds to statistic k.
__device__ __forceinline__ i64 share_of(const Row& row, i64 k) {
    if (!row.valid) return 0;
    if (REGRESSION) return k == 0 ? row.weight : row.target;
    return row.target == k ? row.weight : 0;
}

__device__ inline void add_row(i64* sums, const Row& row) {
    if (!row.valid) return;
    if (REGRESSION) add_to_global(sums + 1, row.target);
    add_to_global(sums + (REGRESSION ? 0 : row.target), row.weight);
}

// Add the rows first .. last of a list to `sums`.
__device__ void add_rows(const List& list, const Rows& rows, i64 first, i64 last, i64* sums) {
    for (i64 i = first + lane_of(); i < last; i += 32) add_row(sums, row_at(list, rows, i, last));
    __syncwarp();
}

__device__ void clear(i64* sums, i64 size) {
    __syncwarp();
    for (i64 k = lane_of(); k < size; k += 32) sums[k] = 0;
    __syncwarp();
}

struct Judged {
    double score;
    bool admitted;
};

// Score of sending n rows left, and whether the limits admit it; -infinity where a side would be
// empty. Views of statistics may read across the warp: every lane takes part.
template <class Left>
__device__ Judged judge(
    const Measure& measure, const Node& node, const Left& left, i64 n, bool asked
) {
    const i64 rest = node.rows() - n, fewer = n < rest ? n : rest;
    asked = asked && fewer >= 1;
    if (!__any_sync(ALL_LANES, asked)) return {-infinity(), false};
    const Criterion& criterion = measure.criterion;
    const State state = begin(criterion, left, node.total);
    const i64 weight = state.weight_left, others = weight_in(criterion, node.total) - weight;
    const bool admitted = asked && fewer >= measure.min_samples_leaf &&
                          weight >= measure.min_weight_leaf && others >= measure.min_weight_leaf;
    const double value = score(criterion, state, left, node.total);
    return {asked ? value : -infinity(), admitted};
}

// The same where only what the limits admit counts: -infinity elsewhere.
template <class Left>
__device__ double admitted_score(
    const Measure& measure, const Node& node, const Left& left, i64 n, bool asked
) {
    const i64 least = measure.min_samples_leaf;
    const Judged found =
        judge(measure, node, left, n, asked && n >= least && node.rows() - n >= least);
    return found.admitted ? found.score : -infinity();
}
