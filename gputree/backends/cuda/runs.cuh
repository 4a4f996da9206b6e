// Category groups of a node, called runs, and their order: gputree/backends/cpu/runs.py. A warp
// processes a node.
struct Measure {
    Criterion criterion;
    Limits limits;

    // Number of statistics that scores depend on: classes, or weight and sum.
    __device__ i64 channels() const { return REGRESSION ? 2 : criterion.n_classes; }
};

struct Node {
    i64 known, rows;  // missing values are at known .. rows
    const i64* total;

    __device__ bool has_missing() const { return known < rows; }
};

struct Runs {  // of a node
    i64 count;
    i64* begin;  // (count + 2): rows before each run; the missing values' run follows, then the end
    i64* left;  // (width,) scratch
    i64* other;  // (width,) scratch
    i64* cells;  // (count + 1, width): statistics of each run, where they are summed
    double* share;  // padded to a power of two
    i32* order;

    __device__ i64 rows(i64 r) const { return begin[r + 1] - begin[r]; }
};

__device__ void clear(i64* sums, i64 size) {
    __syncwarp();
    for (i64 k = lane_of(); k < size; k += 32) sums[k] = 0;
    __syncwarp();
}

// Runs whose statistics are summed.
struct Summed {
    __device__ void add(
        const Measure& measure, const Runs& runs, i64 first, i64 last, i64* sums
    ) const {
        const i64 width = measure.channels();
        for (i64 k = lane_of(); k < width; k += 32)
            for (i64 r = first; r < last; ++r) sums[k] += runs.cells[r * width + k];
        __syncwarp();
    }
};

// The rows of a node, sorted by category.
template <class Keys, class Item>
struct Listed {
    Keys keys;  // missing values last
    const Item* items;
    const Target* target;
    const i64* weight;  // null where every row has a weight of one unit

    __device__ void add_row(i64 i, i64* sums) const {
        const i64 e = items[i];
        if (REGRESSION) add_to_global(sums + 1, target[e]);
        add_to_global(sums + (REGRESSION ? 0 : target[e]), weight_of(weight, e));
    }

    __device__ void add(const Measure&, const Runs& runs, i64 first, i64 last, i64* sums) const {
        for (i64 i = runs.begin[first] + lane_of(); i < runs.begin[last]; i += 32) add_row(i, sums);
        __syncwarp();
    }
};

// Set the offsets of the runs of sorted rows; returns their number.
__device__ i64 find_runs(const auto& list, const Node& node, const Runs& runs) {
    i64 number = 0;
    for (i64 i0 = 0; i0 < node.known; i0 += 32) {
        const i64 i = i0 + lane_of();
        const bool starts = i < node.known && (i == 0 || list.keys[i - 1] != list.keys[i]);
        const u32 vote = __ballot_sync(ALL_LANES, starts);
        if (starts) runs.begin[number + __popc(vote & ((1u << lane_of()) - 1u))] = i;
        number += __popc(vote);
    }
    if (lane_of() == 0) {
        runs.begin[number] = node.known;
        runs.begin[number + 1] = node.rows;
    }
    __syncwarp();
    return number;
}

// Statistics of all runs and of missing values; summed over rows where these are sorted.
__device__ void sum_runs(const Summed&, const Node&, const Runs&, i64) {}

__device__ void sum_runs(const auto& list, const Node& node, const Runs& runs, i64 width) {
    clear(runs.cells, (runs.count + 1) * width);
    i64 before = -1;  // run of the place before the tile
    for (i64 i0 = 0; i0 < node.rows; i0 += 32) {
        const i64 i = i0 + lane_of();
        const bool valid = i < node.rows;
        const bool is_first = i == 0 || i == node.known;
        const bool starts = valid && (is_first || list.keys[i - 1] != list.keys[i]);
        const u32 vote = __ballot_sync(ALL_LANES, starts);
        const i64 run = before + __popc(vote & ((2u << lane_of()) - 1u));
        if (valid) list.add_row(i, runs.cells + run * width);
        before += __popc(vote);
    }
    __syncwarp();
}

// Compare two vectors of statistics: negative where a is first, 0 where they are equal.
__device__ int compare_cells(const i64* a, const i64* b, i64 channels) {
    for (i64 k = 0; k < channels; ++k)
        if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
    return 0;
}

// True if run a comes after run b: by `share`, then by rows, statistics, code.
__device__ bool is_after(const Measure& measure, const Runs& runs, i64 width, i32 a, i32 b) {
    if (a >= runs.count || b >= runs.count) return a > b;
    if (runs.share[a] != runs.share[b]) return runs.share[a] > runs.share[b];
    if (runs.rows(a) != runs.rows(b)) return runs.rows(a) > runs.rows(b);
    const int order =
        compare_cells(runs.cells + a * width, runs.cells + b * width, measure.channels());
    return order ? order > 0 : a > b;
}

// The statistic of number `number` among those present.
__device__ i64 statistic_of(const Node& node, i64 number) {
    if (REGRESSION) return number;
    i64 k = 0;
    while (node.total[k] == 0 || number-- > 0) ++k;
    return k;
}

// Order the runs by their fraction of statistic k: a bitonic sort; see `is_after`.
__device__ void sort_runs(const Measure& measure, const Runs& runs, i64 width, i64 k) {
    __syncwarp();  // all have read the order before
    i64 padded = 1;
    while (padded < runs.count) padded *= 2;
    for (i64 r = lane_of(); r < padded; r += 32) {
        runs.order[r] = i32(r);
        if (r >= runs.count) continue;
        const i64* cells = runs.cells + r * width;
        runs.share[r] = double(cells[k]) / double(weight_in(measure.criterion, cells));
    }
    __syncwarp();
    for (i64 size = 2; size <= padded; size *= 2)
        for (i64 distance = size / 2; distance > 0; distance /= 2) {
            for (i64 pair = lane_of(); pair < padded / 2; pair += 32) {
                const i64 a = pair / distance * 2 * distance + pair % distance, b = a + distance;
                const i32 low = runs.order[a], high = runs.order[b];
                if (is_after(measure, runs, width, low, high) != ((a & size) != 0)) {
                    runs.order[a] = high;
                    runs.order[b] = low;
                }
            }
            __syncwarp();
        }
}

struct Judged {
    double score;
    bool admitted;
    double refused;  // score of what the criterion refuses
};

// Score of sending n rows left, and true if the limits admit it; -infinity where a side would be
// empty. Views of statistics may read across the warp: every lane takes part.
__device__ Judged judge(
    const Measure& measure, const Node& node, const auto& left, i64 n, bool valid
) {
    const i64 rest = node.rows - n, fewer = n < rest ? n : rest;
    valid = valid && fewer >= 1;
    if (!__any_sync(ALL_LANES, valid)) return {-infinity(), false, -infinity()};
    const Criterion& criterion = measure.criterion;
    const State state = begin(criterion, left, node.total);
    const i64 weight = state.weight_left, others = weight_in(criterion, node.total) - weight;
    const bool admitted = valid && measure.limits.admit_sides(fewer, weight, others);
    const double value = score(criterion, state, left, node.total);
    const double refused = refused_score(criterion, state, left, node.total);
    return {valid ? value : -infinity(), admitted, valid ? refused : -infinity()};
}

// The score if the limits admit the cut, else -infinity.
__device__ double admitted_score(
    const Measure& measure, const Node& node, const auto& left, i64 n, bool valid
) {
    const i64 min_rows = measure.limits.min_samples_leaf;
    const Judged found =
        judge(measure, node, left, n, valid && n >= min_rows && node.rows - n >= min_rows);
    return found.admitted ? found.score : -infinity();
}
