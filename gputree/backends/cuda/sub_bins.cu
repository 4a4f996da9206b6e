// Candidate bins counted into sub-bins and pruned by bound again: only rows of candidate sub-bins
// are gathered and sorted.
//
//   a candidate bin    |                               |   rows counted, sums over the sub-bins
//   its sub-bins       |   |   |   |xxx|xxx|   |   |   |   x: candidates; their rows are gathered,
//   slots                          |xx|xxxx|               sorted by (sub-bin, value), and scanned
//
// The sub-bin of a value never decreases as the value grows: boundaries of sub-bins are real cuts.
// One whose score is at least the bound needed keeps the filled sub-bins on both its sides
// candidates, and is found again among their rows. A cut between a candidate sub-bin and rows that
// were not gathered has a wrong threshold, but its score is too low for it to be chosen.

// Number of sub-bins of a bin of n rows: of `cell_rows` rows on average.
__device__ __forceinline__ i64 cells_of(i64 n, i64 cell_rows) {
    i64 cells = 1;
    while (cells * cell_rows < n && cells < MOST_CELLS) cells *= 2;
    return cells;
}

// Grid: nodes x columns; a thread a bin. Mark the bins that may contain the best cut: place[]
// becomes the first of a bin's sub-bins among those of the column, taken[] their number, used[]
// that of the column; without any, `place` is not set. best_scores[j] becomes the order of the
// score of node j's cut.
extern "C" __global__ void __launch_bounds__(256, 1) mark_candidates(
    Rules rules, Table table, Level level, const double* bounds, Visits visits, const i64* cuts,
    i64 cell_rows, i32* place, u32* taken, i64* used, i64* best_scores
) {
    const i64 columns = table.columns, bins = table.offset[columns];
    const i64 pair = blockIdx.x, f = pair % columns, j = pair / columns;
    const i64* total = level.totals + j * rules.channels;
    const Cut cut = ((const Cut*)cuts)[j];
    const double needed = needed_bound(rules.criterion, cut, total);
    i64 cells = 0;
    if (visits.include(j, f, columns) && bounds[pair] >= needed) {
        const auto take = [&](i64 b, bool exists, i64 n) {
            const i64 number = n > 0 ? cells_of(n, cell_rows) : 0;
            if (exists) taken[j * bins + b] = u32(number);
            return number;
        };
        cells = mark_bins(rules, table, level, j, f, needed, place + j * bins, take);
    }
    if (threadIdx.x != 0) return;
    used[pair] = cells;
    if (f == 0) best_scores[j] = order_of(cut.score);
}

// Grid: lists of `length` counts; block: 1,024 threads. Replace each count by the sum up to it, and
// total[] of a list by the sum of all.
extern "C" __global__ void __launch_bounds__(1024) sum_counts(
    i64* counts, i64 length, i64* total
) {
    i64 all = 0;
    counts += blockIdx.x * length;
    for (i64 i0 = 0; i0 < length; i0 += blockDim.x) {
        const i64 i = i0 + threadIdx.x, count = i < length ? counts[i] : 0;
        const i64 before = sum_before(count, all);
        if (i < length) counts[i] = before + count;
    }
    if (threadIdx.x == 0) total[blockIdx.x] = all;
}

// Pairs that a block appends to the list at once.
struct PairBlock {
    u32 number;
    i64 first;  // place in the list
    i32 cells[VISITED_AT_ONCE * 256], rows[VISITED_AT_ONCE * 256];
    Bits values[VISITED_AT_ONCE * 256];

    // A thread: add a pair.
    __device__ __forceinline__ void add(i64 cell, i64 row, Bits value) {
        const u32 i = atomicAdd(&number, 1u);
        cells[i] = i32(cell);
        rows[i] = i32(row);
        values[i] = value;
    }

    // A block: append all pairs, and begin anew.
    __device__ __forceinline__ void append_to(const PairList& list) {
        __syncthreads();
        const u32 size = number;
        if (threadIdx.x == 0 && size > 0) first = i64(atomicAdd((u64*)list.number, u64(size)));
        __syncthreads();
        if (threadIdx.x == 0) number = 0;
        for (i64 i = threadIdx.x; i < size && first + i < list.room; i += blockDim.x) {
            list.cells[first + i] = cells[i];
            list.rows[first + i] = rows[i];
            list.values[first + i] = values[i];
        }
        __syncthreads();
    }
};

// Grid: chunks of entries. Add them to the sub-bins of the candidate bins, and list them.
extern "C" __global__ void __launch_bounds__(256) count_sub_bins(
    const Bits* values, Table table, Rows rows, const i32* entries, Chunks of, i64 channels,
    Grid grid, SubBins sub_bins, PairList list
) {
    __shared__ PairBlock pairs;
    const i64 c = blockIdx.x, j = of.owner[c], columns = table.columns;
    if (threadIdx.x == 0) pairs.number = 0;
    const auto is_searched = [&](i64 f) { return grid.has_any(j * columns + f); };
    const auto count = [&](i64 f, i64 row) {
        Bits value;
        const i64 cell = grid.cell_of(table, j, f, row, values, value);
        if (cell < 0) return;
        add_row<InGlobal>(sub_bins.counts + cell * channels, channels, rows, row);
        pairs.add(cell, row, value);
    };
    const auto append = [&] { pairs.append_to(list); };
    visit_searched(of, c, entries, columns, is_searched, count, append);
}

// Grid: nodes x columns; block: warps process the candidate bins in turn. Sums over the sub-bins of
// each, with the statistics left of it, missing values separate, and the bin of each sub-bin.
extern "C" __global__ void __launch_bounds__(256, 1) accumulate_sub_bins(
    Table table, i64 channels, Level level, Grid grid, SubBins sub_bins
) {
    const i64 columns = table.columns, bins = table.offset[columns];
    const i64 pair = blockIdx.x, f = pair % columns, j = pair / columns;
    if (!grid.has_any(pair)) return;
    const i32* place = grid.place + j * bins;
    const u32* taken = grid.taken + j * bins;
    const Column column = column_of(table, f);
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    u32 number = 0;
    for (i64 b0 = 0; b0 < column.value_bins; b0 += 32) {
        const bool candidate = b0 + lane < column.value_bins && place[column.first + b0 + lane] >= 0;
        for (u32 rest = __ballot_sync(ALL_LANES, candidate); rest != 0; rest &= rest - 1) {
            if (number++ % warps != warp) continue;
            const i64 b = b0 + __ffs(rest) - 1, bin = column.first + b;
            const i64 begin = grid.start[pair] + place[bin], end = begin + taken[bin];
            for (i64 k = 0; k < channels; ++k) {
                i64 sum =
                    level.cumulatives[(j * bins + bin) * channels + k] -
                    i64(level.histograms[(slot_of(level.slots, j) * bins + bin) * channels + k]);
                for (i64 c0 = begin; c0 < end; c0 += 32) {
                    const i64 c = c0 + lane;
                    const i64 cell = c < end ? i64(sub_bins.counts[c * channels + k]) : 0;
                    sum += inclusive_sum(cell);
                    if (c < end) sub_bins.sums[c * channels + k] = sum;
                    sum = last_lane(sum);
                }
            }
            for (i64 c = begin + lane; c < end; c += 32) sub_bins.bin_of[c] = i32(b);
        }
    }
}

// Part of a column's sub-bins that a block visits: one of `slices`, a thread a sub-bin.
struct Slice {
    i64 column;  // numbered through all nodes
    i64 begin, end, step;
};

__device__ __forceinline__ Slice own_slice(const Grid& grid, i64 slices) {
    const i64 pair = blockIdx.x / slices, first = blockIdx.x % slices * blockDim.x;
    return {pair, grid.start[pair] + first, grid.start[pair + 1], slices * blockDim.x};
}

// Grid: nodes x columns x slices. Raise best_scores[j] to the order (see order_of) of the best score
// of a boundary of sub-bins of node j.
extern "C" __global__ void __launch_bounds__(256, 1) raise_best(
    Rules rules, Table table, Level level, Monotonic monotonic, Grid grid, SubBins sub_bins,
    i64 slices, i64* best_scores
) {
    const Criterion& criterion = rules.criterion;
    const i64 channels = rules.channels;
    const Slice slice = own_slice(grid, slices);
    if (slice.begin >= slice.end) return;
    const i64 f = slice.column % table.columns, j = slice.column / table.columns;
    const Constraint constraint = monotonic.of(j, f);
    const i64* total = level.totals + j * channels;
    const Cell* cells = level.cells(table, j, channels);
    const Cell* missing = missing_cell(column_of(table, f), cells, channels);
    double best = -infinity();
    for (i64 i = slice.begin + threadIdx.x; i < slice.end; i += slice.step) {
        const i64 c = i * channels;
        if (rows_in(criterion, sub_bins.counts + c, channels) == 0) continue;
        for (int side = 0; side < (missing ? 2 : 1); ++side) {
            const AfterBin left = {sub_bins.sums + c, side ? missing : nullptr};
            best = greater_of(best, score_of(rules, constraint, left, total));
        }
    }
    best = warp_greatest(best);
    if ((threadIdx.x & 31) == 0 && best > -infinity()) atomicMax(best_scores + j, order_of(best));
}

// The double of an order, the inverse of order_of.
__device__ __forceinline__ double of_order(i64 order) {
    return __longlong_as_double(order ^ (order >> 63 & 0x7fffffffffffffffll));
}

// Grid as for raise_best. Mark sub-bins: `place` becomes 0 for candidates, -1 for others.
extern "C" __global__ void __launch_bounds__(256, 1) mark_sub_bins(
    Rules rules, Table table, Level level, Monotonic monotonic, Grid grid, SubBins sub_bins,
    i64 slices, const i64* best_scores
) {
    const Criterion& criterion = rules.criterion;
    const i64 channels = rules.channels;
    const Slice slice = own_slice(grid, slices);
    if (slice.begin >= slice.end) return;
    const i64 f = slice.column % table.columns, j = slice.column / table.columns;
    const Constraint constraint = monotonic.of(j, f);
    const i64* total = level.totals + j * channels;
    const Cell* cells = level.cells(table, j, channels);
    const Cell* missing = missing_cell(column_of(table, f), cells, channels);
    Cut best = no_cut();
    best.score = of_order(best_scores[j]);
    const double needed = needed_bound(criterion, best, total);
    for (i64 c = slice.begin + threadIdx.x; c < slice.end; c += slice.step) {
        const Cell* cell = sub_bins.counts + c * channels;
        const i64 n = rows_in(criterion, cell, channels);
        bool candidate = false;
        for (int side = 0; n > 0 && !candidate && side < (missing ? 2 : 1); ++side) {
            const Cell* to_left = side ? missing : nullptr;
            const AfterBin after = {sub_bins.sums + c * channels, to_left};
            const BeforeBin before = {sub_bins.sums + c * channels, cell, to_left};
            candidate = score_of(rules, constraint, after, total) >= needed ||
                        score_of(rules, constraint, before, total) >= needed;
            if (candidate || !cut_inside(rules, before, n, total)) continue;
            const double most = bound(criterion, before, cell, total);
            candidate = most >= needed &&
                        tighten(criterion, before, cell, total, most, needed) >= needed;
        }
        sub_bins.place[c] = candidate ? 0 : -1;
        sub_bins.taken[c] = 0;
    }
}

// Grid: nodes x columns; a thread a sub-bin. Reserve the places of the candidates, and list them;
// used[], listed[] and large[], which are 0, become the slots of the column, its candidates and
// those too large for a warp.
extern "C" __global__ void __launch_bounds__(256) list_sub_bins(
    Rules rules, Grid grid, SubBins sub_bins, i64* used, i64* listed, i64* large
) {
    const i64 pair = blockIdx.x, first = grid.start[pair], end = grid.start[pair + 1];
    i64 rows = 0, number = 0, unsorted = 0;  // of candidates so far
    for (i64 c0 = first; c0 < end; c0 += blockDim.x) {
        const i64 c = c0 + threadIdx.x;
        const bool candidate = c < end && sub_bins.place[c] >= 0;
        const Cell* cell = sub_bins.counts + c * rules.channels;
        const i64 n = candidate ? rows_in(rules.criterion, cell, rules.channels) : 0;
        const i64 place = sum_before(n, rows);
        const i64 listed_at = first + sum_before(candidate, number);
        unsorted += __syncthreads_count(n > MOST_SORTED);
        if (!candidate) continue;
        sub_bins.place[c] = i32(place);
        sub_bins.candidates[listed_at] = i32(c);
    }
    if (threadIdx.x != 0) return;
    used[pair] = rows;
    listed[pair] = number;
    large[pair] = unsorted;
}
