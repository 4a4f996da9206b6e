// The categories of a node as runs of the sorted list of a column, and their order:
// gputree/backends/cpu/lists/runs.py. A warp takes a node.
struct Runs {  // of a node
    i64 count;
    i64* begin;  // (count + 2): those of missing values follow, then the end
    i64* left;  // (width,) scratch
    i64* cells;  // (count + 1, width): statistics of each, where they are held
    double* share;  // (room,) a power of two
    i32* order;

    __device__ i64 rows(i64 r) const { return begin[r + 1] - begin[r]; }
};

__device__ void find_runs(const Node& node, const Runs& runs) {
    i64 number = 0;
    for (i64 i0 = node.begin; i0 < node.known; i0 += 32) {
        const i64 i = i0 + lane_of();
        const u32* code = node.list.code;
        const bool starts = i < node.known && (i == node.begin || code[i - 1] != code[i]);
        const u32 vote = __ballot_sync(ALL_LANES, starts);
        if (starts) runs.begin[number + __popc(vote & ((1u << lane_of()) - 1u))] = i;
        number += __popc(vote);
    }
    if (lane_of() == 0) {
        runs.begin[runs.count] = node.known;
        runs.begin[runs.count + 1] = node.end;
    }
    __syncwarp();
}

// Statistics of all runs, of missing values too.
__device__ void sum_runs(const Node& node, const Rows& rows, const Runs& runs, i64 width) {
    clear(runs.cells, (runs.count + 1) * width);
    i64 before = -1;  // run of the place before the tile
    for (i64 i0 = node.begin; i0 < node.end; i0 += 32) {
        const i64 i = i0 + lane_of();
        const Row row = row_at(node.list, rows, i, node.end);
        const bool starts =
            row.valid && (i == node.begin || node.list.code[i - 1] != row.code);
        const u32 vote = __ballot_sync(ALL_LANES, starts);
        const i64 run = before + __popc(vote & ((2u << lane_of()) - 1u));
        add_row(runs.cells + run * width, row);
        before += __popc(vote);
    }
    __syncwarp();
}

// The first of two vectors of statistics: negative where that is a, 0 where they are equal.
__device__ int compare_cells(const i64* a, const i64* b, i64 channels) {
    for (i64 k = 0; k < channels; ++k)
        if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
    return 0;
}

// Whether run a comes after run b: by share; of equal ones, by rows, statistics, code.
__device__ bool is_after(const Measure& measure, const Runs& runs, i64 width, i32 a, i32 b) {
    if (a >= runs.count || b >= runs.count) return a > b;
    if (runs.share[a] != runs.share[b]) return runs.share[a] > runs.share[b];
    if (runs.rows(a) != runs.rows(b)) return runs.rows(a) > runs.rows(b);
    const int order =
        compare_cells(runs.cells + a * width, runs.cells + b * width, measure.channels());
    return order ? order > 0 : a > b;
}

// The statistic of that number, among those present.
__device__ i64 statistic_of(const Node& node, i64 number) {
    if (REGRESSION) return number;
    i64 k = 0;
    while (node.total[k] == 0 || number-- > 0) ++k;
    return k;
}

// Order the runs by their share of statistic k: a bitonic sort; see `is_after`.
__device__ void sort_runs(const Measure& measure, const Runs& runs, i64 width, i64 k) {
    i64 room = 1;
    while (room < runs.count) room *= 2;
    for (i64 r = lane_of(); r < room; r += 32) {
        runs.order[r] = i32(r);
        if (r >= runs.count) continue;
        const i64* own = runs.cells + r * width;
        runs.share[r] = double(own[k]) / double(weight_in(measure.criterion, own));
    }
    __syncwarp();
    for (i64 size = 2; size <= room; size *= 2)
        for (i64 distance = size / 2; distance > 0; distance /= 2) {
            for (i64 pair = lane_of(); pair < room / 2; pair += 32) {
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
