// Candidate bins counted again into sub-bins, which are pruned by bound again: only rows of
// candidate sub-bins are gathered and sorted.
//
//   a candidate bin    |                               |   rows counted, sums over the sub-bins
//   its sub-bins       |   |   |   |xxx|xxx|   |   |   |   x: candidates; their rows are gathered,
//   slots                          |xx|xxxx|               sorted by (sub-bin, value), and scanned
//
// The sub-bin of a value never falls as the value grows: boundaries of sub-bins are real cuts. One
// whose score is at least the bound needed keeps the filled sub-bins on both its sides candidates,
// and is found again among their rows. A cut between a candidate sub-bin and rows that were not
// gathered has a wrong threshold, but its score is too low for it to be chosen.

// Grid: chunks of entries. Add them to the sub-bins of the candidate bins.
extern "C" __global__ void __launch_bounds__(256) count_sub_bins(
    const Bits* values, Table table, Rows rows, const i32* entries, Chunks of, i64 channels,
    Grid grid, SubBins sub_bins
) {
    const i64 c = blockIdx.x, j = of.owner[c], columns = table.columns;
    const auto is_searched = [&](i64 f) { return grid.used[j * columns + f] > 0; };
    visit_searched(of, c, entries, columns, is_searched, [&](i64 f, i64 row) {
        const i64 cell = grid.cell_of(table, j, f, row, values);
        if (cell >= 0) add_row<InGlobal>(sub_bins.counts + cell * channels, channels, rows, row);
    });
}

// Grid: nodes x columns; block: one warp, a lane a bin. Sums over the sub-bins of each candidate
// bin, with what is left of it, missing values apart, and the bin of each sub-bin.
extern "C" __global__ void __launch_bounds__(32) accumulate_sub_bins(
    Table table, i64 channels, Level level, Grid grid, SubBins sub_bins
) {
    const i64 columns = table.columns, bins = table.offset[columns];
    const i64 at = blockIdx.x, f = at % columns, j = at / columns;
    const i32* place = grid.place + j * bins;
    const u32* taken = grid.taken + j * bins;
    if (grid.used[at] == 0) return;
    const Column column = column_of(table, f);
    for (i64 b = threadIdx.x; b < column.value_bins; b += 32) {
        const i64 bin = column.first + b;
        if (place[bin] < 0) continue;
        const i64 begin = grid.start[at] + place[bin], end = begin + taken[bin];
        for (i64 k = 0; k < channels; ++k) {
            i64 sum = level.cumulatives[(j * bins + bin) * channels + k] -
                      i64(level.histograms[(slot_of(level.slots, j) * bins + bin) * channels + k]);
            for (i64 c = begin; c < end; ++c) {
                sum += i64(sub_bins.counts[c * channels + k]);
                sub_bins.sums[c * channels + k] = sum;
            }
        }
        for (i64 c = begin; c < end; ++c) sub_bins.bin_of[c] = i32(b);
    }
}

// Grid: nodes x columns; block: 128 threads, a thread a sub-bin. best_scores[j] becomes the order
// (see order_of) of the best score of node j: of its cut, or of a boundary of sub-bins.
extern "C" __global__ void __launch_bounds__(128, 1) raise_best(
    Rules rules, Table table, Level level, Monotonic monotonic, Grid grid, SubBins sub_bins,
    i64* best_scores
) {
    const Criterion& criterion = rules.criterion;
    const i64 channels = rules.channels;
    const i64 at = blockIdx.x, f = at % table.columns, j = at / table.columns;
    const Constraint constraint = monotonic.of(j, f);
    const i64* total = level.totals + j * channels;
    const Cell* cells = level.cells(table, j, channels);
    const Cell* absent = missing_cell(column_of(table, f), cells, channels);
    double best = -infinity();
    for (i64 i = threadIdx.x; i < grid.used[at]; i += blockDim.x) {
        const i64 c = (grid.start[at] + i) * channels;
        if (rows_in(criterion, sub_bins.counts + c, channels) == 0) continue;
        for (int side = 0; side < (absent ? 2 : 1); ++side) {
            const AfterBin left = {sub_bins.sums + c, side ? absent : nullptr};
            best = greater_of(best, score_of(rules, constraint, left, total));
        }
    }
    best = warp_greatest(best);
    if ((threadIdx.x & 31) == 0 && best > -infinity()) atomicMax(best_scores + j, order_of(best));
}

// One thread a node: best_scores[j] becomes the order of the score of its cut.
extern "C" __global__ void __launch_bounds__(256) start_best(
    i64 nodes, const i64* cuts, i64* best_scores
) {
    const i64 j = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j < nodes) best_scores[j] = order_of(((const Cut*)cuts)[j].score);
}

// The double behind order_of.
__device__ __forceinline__ double of_order(i64 order) {
    return __longlong_as_double(order ^ (order >> 63 & 0x7fffffffffffffffll));
}

// Grid: nodes x columns; block: one warp, a lane a sub-bin. place[] becomes the first slot of a
// sub-bin among those of the column, -1 where it is no candidate.
extern "C" __global__ void __launch_bounds__(32, 1) mark_sub_bins(
    Rules rules, Table table, Level level, Monotonic monotonic, Grid grid, SubBins sub_bins,
    const i64* best_scores, i32* place, u32* taken, i64* used, i64* chunks
) {
    const Criterion& criterion = rules.criterion;
    const i64 channels = rules.channels;
    const i64 at = blockIdx.x, f = at % table.columns, j = at / table.columns;
    const Constraint constraint = monotonic.of(j, f);
    const i64* total = level.totals + j * channels;
    const Cell* cells = level.cells(table, j, channels);
    const Cell* absent = missing_cell(column_of(table, f), cells, channels);
    Cut best = no_cut();
    best.score = of_order(best_scores[j]);
    const double needed = needed_bound(criterion, best, total);
    i64 rows = 0, pieces = 0;
    for (i64 i0 = 0; i0 < grid.used[at]; i0 += 32) {
        const i64 i = i0 + threadIdx.x, c = grid.start[at] + i;
        const Cell* cell = sub_bins.counts + c * channels;
        const i64 n = i < grid.used[at] ? rows_in(criterion, cell, channels) : 0;
        bool candidate = false;
        for (int side = 0; n > 0 && !candidate && side < (absent ? 2 : 1); ++side) {
            const Cell* to_left = side ? absent : nullptr;
            const AfterBin after = {sub_bins.sums + c * channels, to_left};
            const BeforeBin before = {sub_bins.sums + c * channels, cell, to_left};
            candidate = score_of(rules, constraint, after, total) >= needed ||
                        score_of(rules, constraint, before, total) >= needed;
            if (candidate || !cut_inside(rules, before, n, total)) continue;
            const double most = bound(criterion, before, cell, total);
            candidate = most >= needed && tighten(criterion, before, cell, total, most) >= needed;
        }
        const i64 sum = rows + inclusive_sum(candidate ? n : 0);
        if (i < grid.used[at]) {
            place[c] = candidate ? i32(sum - n) : -1;
            taken[c] = 0;
        }
        rows = last_lane(sum);
        pieces += last_lane(inclusive_sum(candidate ? (n - 1) / CHUNK + 1 : 0));
    }
    if (threadIdx.x != 0) return;
    used[at] = rows;
    chunks[at] = pieces;
}
