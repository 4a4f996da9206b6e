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

// Grid: nodes x columns; a thread a bin. Mark the bins that may contain the best cut, and reserve
// their sub-bins, which are empty: place[] becomes the first of a bin's among those of the column,
// taken[] their number; without any, neither is set.
extern "C" __global__ void __launch_bounds__(256, 1) mark_candidates(
    Rules rules, Table table, Level level, const double* bounds, Visits visits, const i64* cuts,
    i64 cell_rows, Grid grid, SubBins sub_bins, i64* tally
) {
    __shared__ i64 start;
    const i64 columns = table.columns, bins = table.offset[columns], channels = rules.channels;
    const i64 pair = blockIdx.x, f = pair % columns, j = pair / columns;
    if (level.lacks(j)) return;
    const Cut cut = ((const Cut*)cuts)[j];
    const double needed = needed_bound(rules.criterion, cut, level.totals + j * channels);
    i64 cells = 0;
    if (visits.include(j, f, columns) && bounds[pair] >= needed) {
        const auto take = [&](i64 b, bool exists, i64 n) {
            const i64 number = n > 0 ? cells_of(n, cell_rows) : 0;
            if (exists) grid.taken[j * bins + b] = u32(number);
            return number;
        };
        cells = mark_bins(rules, table, level, j, f, needed, grid.place + j * bins, take);
    }
    if (threadIdx.x == 0) {
        start = cells > 0 ? i64(atomicAdd((u64*)tally + CELLS, u64(cells))) : 0;
        grid.start[pair] = start;
        grid.size[pair] = cells;
        grid.searched[pair] = 0;
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < cells; i += blockDim.x) sub_bins.column[start + i] = pair;
    for (i64 i = threadIdx.x; i < cells * channels; i += blockDim.x)
        sub_bins.counts[start * channels + i] = 0;
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
    __device__ __forceinline__ void append_to(const PairList& list, i64* tally) {
        __syncthreads();
        const u32 size = number;
        if (threadIdx.x == 0 && size > 0) first = i64(atomicAdd((u64*)tally + PAIRS, u64(size)));
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
    Grid grid, SubBins sub_bins, PairList list, i64* tally
) {
    __shared__ PairBlock pairs;
    const i64 c = blockIdx.x;
    if (of.lack(c)) return;
    const i64 j = of.owner[c], columns = table.columns;
    if (threadIdx.x == 0) pairs.number = 0;
    const auto is_searched = [&](i64 f) { return grid.has_any(j * columns + f); };
    const auto count = [&](i64 f, i64 row) {
        Bits value;
        const i64 cell = grid.cell_of(table, j, f, row, values, value);
        if (cell < 0) return;
        add_row<InGlobal>(sub_bins.counts + cell * channels, channels, rows, row);
        pairs.add(cell, row, value);
    };
    const auto append = [&] { pairs.append_to(list, tally); };
    visit_searched(of, c, entries, columns, is_searched, count, append);
}

// The best score of a cut behind sub-bin c, missing values right or (if any) left.
__device__ __forceinline__ double score_behind(
    const Rules& rules, const Constraint& constraint, const SubBins& sub_bins, i64 c,
    const Cell* missing, const i64* total
) {
    const i64* sums = sub_bins.sums + c * rules.channels;
    double best = -infinity();
    for (int side = 0; side < (missing ? 2 : 1); ++side) {
        const AfterBin left = {sums, side ? missing : nullptr};
        best = greater_of(best, score_of(rules, constraint, left, total));
    }
    return best;
}

// A warp: sums over the sub-bins begin .. end of a bin, from the statistics left of it (`left`, a
// channel at a time) on; missing values are separate.
__device__ __forceinline__ void accumulate_cells(
    const SubBins& sub_bins, i64 channels, i64 begin, i64 end, const BeforeBin& left
) {
    const u32 lane = threadIdx.x & 31;
    for (i64 k = 0; k < channels; ++k) {
        i64 sum = left[k];
        for (i64 c0 = begin; c0 < end; c0 += 32) {
            const i64 c = c0 + lane;
            const i64 cell = c < end ? i64(sub_bins.counts[c * channels + k]) : 0;
            sum += inclusive_sum(cell);
            if (c < end) sub_bins.sums[c * channels + k] = sum;
            sum = last_lane(sum);
        }
    }
}

// Grid: nodes x columns x slices; block: the warps of all slices process the candidate bins in turn.
// Sums over the sub-bins of each, their bin, and the next with rows. Raises the order of the best
// score of a boundary in the node.
extern "C" __global__ void __launch_bounds__(256, 1) accumulate_sub_bins(
    Rules rules, Table table, Level level, Monotonic monotonic, Grid grid, SubBins sub_bins,
    i64 slices, i64* best_boundaries
) {
    const i64 columns = table.columns, bins = table.offset[columns], channels = rules.channels;
    const i64 pair = blockIdx.x / slices, f = pair % columns, j = pair / columns;
    if (level.lacks(j) || !grid.has_any(pair)) return;
    const i32* place = grid.place + j * bins;
    const i64* total = level.totals + j * channels;
    const Cell* cells = level.cells(table, j, channels);
    const Column column = column_of(table, f);
    const Cell* missing = missing_cell(column, cells, channels);
    const Constraint constraint = monotonic.of(j, f);
    const u32 lane = threadIdx.x & 31, warps = (blockDim.x >> 5) * u32(slices);
    const u32 warp = blockIdx.x % slices * (blockDim.x >> 5) + (threadIdx.x >> 5);
    double best = -infinity();
    u32 number = 0;  // of candidate bins so far
    for (i64 b0 = 0; b0 < column.value_bins; b0 += 32) {
        const bool candidate = b0 + lane < column.value_bins && place[column.first + b0 + lane] >= 0;
        for (u32 rest = __ballot_sync(ALL_LANES, candidate); rest != 0; rest &= rest - 1) {
            if (number++ % warps != warp) continue;
            const i64 b = b0 + __ffs(rest) - 1, bin = column.first + b;
            const i64 begin = grid.start[pair] + place[bin];
            const i64 end = begin + grid.taken[j * bins + bin];
            const BeforeBin left = {
                level.cumulatives + (j * bins + bin) * channels, cells + bin * channels, nullptr
            };
            accumulate_cells(sub_bins, channels, begin, end, left);
            i64 filled = -1;  // the last one with rows so far
            for (i64 c0 = begin; c0 < end; c0 += 32) {
                const i64 c = c0 + lane;
                const bool has_rows =
                    c < end &&
                    rows_in(rules.criterion, sub_bins.counts + c * channels, channels) > 0;
                const u32 vote = __ballot_sync(ALL_LANES, has_rows);
                const u32 before = vote & ((1u << lane) - 1u);
                const i64 previous = before ? c0 + 31 - __clz(before) : filled;
                if (c < end) sub_bins.bin_of[c] = i32(b);
                if (has_rows && previous >= 0) sub_bins.next[previous] = i32(c);
                if (vote) filled = c0 + 31 - __clz(vote);
                if (!has_rows) continue;
                best = greater_of(
                    best, score_behind(rules, constraint, sub_bins, c, missing, total)
                );
            }
            if (lane == 0 && filled >= 0) sub_bins.next[filled] = -1;
        }
    }
    best = warp_greatest(best);
    if (lane == 0 && best > -infinity()) atomicMax(best_boundaries + j, order_of(best));
}

// The double of an order, the inverse of order_of.
__device__ __forceinline__ double of_order(i64 order) {
    return __longlong_as_double(order ^ (order >> 63 & 0x7fffffffffffffffll));
}

// Number of rows of sub-bin c if the best cut may be next to it or inside, else 0.
__device__ __forceinline__ i64 candidate_rows(
    const Rules& rules, const Table& table, const Level& level, const Monotonic& monotonic,
    const SubBins& sub_bins, i64 c, const i64* best_boundaries
) {
    const Criterion& criterion = rules.criterion;
    const i64 channels = rules.channels, pair = sub_bins.column[c];
    const Cell* cell = sub_bins.counts + c * channels;
    const i64 n = rows_in(criterion, cell, channels);
    if (n == 0) return 0;
    const i64 f = pair % table.columns, j = pair / table.columns;
    const Constraint constraint = monotonic.of(j, f);
    const i64* total = level.totals + j * channels;
    const Cell* missing =
        missing_cell(column_of(table, f), level.cells(table, j, channels), channels);
    Cut best = no_cut();
    best.score = of_order(best_boundaries[j]);
    const double needed = needed_bound(criterion, best, total);
    for (int side = 0; side < (missing ? 2 : 1); ++side) {
        const Cell* to_left = side ? missing : nullptr;
        const AfterBin after = {sub_bins.sums + c * channels, to_left};
        const BeforeBin before = {sub_bins.sums + c * channels, cell, to_left};
        if (score_of(rules, constraint, after, total) >= needed) return n;
        if (score_of(rules, constraint, before, total) >= needed) return n;
        if (!cut_inside(rules, before, n, total)) continue;
        const double most = bound(criterion, before, cell, total);
        if (most >= needed && tighten(criterion, before, cell, total, most, needed) >= needed)
            return n;
    }
    return 0;
}

// A thread a sub-bin; blocks process 256 of them in turn. Mark the candidates, list them, and reserve
// their slots: the search overflows if more than `slots` or `cuts` are needed, or if a warp cannot
// sort one.
extern "C" __global__ void __launch_bounds__(256, 1) mark_sub_bins(
    Rules rules, Table table, Level level, Monotonic monotonic, Grid grid, SubBins sub_bins,
    i64* tally, const i64* best_boundaries, i64 slots, i64 cuts
) {
    __shared__ i64 first_slot, first_place;
    const i64 all = tally[CELLS];
    for (i64 c0 = i64(blockIdx.x) * blockDim.x; c0 < all; c0 += i64(gridDim.x) * blockDim.x) {
        const i64 c = c0 + threadIdx.x;
        const i64 n = c < all ? candidate_rows(
                                    rules, table, level, monotonic, sub_bins, c, best_boundaries
                                )
                              : 0;
        i64 rows = 0, number = 0;  // of the candidates of the block
        const i64 slot = sum_before(n, rows), place = sum_before(n > 0, number);
        if (threadIdx.x == 0 && number > 0) {
            first_slot = i64(atomicAdd((u64*)tally + SLOTS, u64(rows)));
            first_place = i64(atomicAdd((u64*)tally + CANDIDATES, u64(number)));
            if (first_slot + rows > slots || first_place + number > cuts)
                atomicMax(tally + OVERFLOWS, i64(1));
        }
        if (n > MOST_SORTED) atomicMax(tally + OVERFLOWS, i64(2));
        __syncthreads();
        if (c < all) {
            sub_bins.slot[c] = n > 0 ? first_slot + slot : -1;
            sub_bins.taken[c] = 0;
            sub_bins.least[c] = MISSING_KEY;
        }
        if (n > 0) {
            sub_bins.candidates[first_place + place] = i32(c);
            atomicMax(grid.searched + sub_bins.column[c], 1);
        }
        __syncthreads();
    }
}
