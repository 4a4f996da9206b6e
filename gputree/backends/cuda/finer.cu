// Living bins counted again into cells, which the bound sieves again: only rows of living cells
// are gathered and sorted.
//
//   a living bin       |                               |   rows counted, sums over the cells
//   its cells          |   |   |   |xxx|xxx|   |   |   |   x: alive; their rows are gathered,
//   slots                          |xx|xxxx|               sorted by (cell, value), and scanned
//
// The cell of a value never falls as the value grows: boundaries of cells are real cuts. One that
// reaches the bar keeps the filled cells on both its sides alive, and is found again among their
// rows. A cut between a living cell and rows that were not gathered has a wrong threshold, but
// its score is below the bar, so it is not chosen.

// Cell of a value in a bin of `size` cells. Arithmetic is in float64, which keeps subnormal numbers.
__device__ __forceinline__ i64 cell_in(double low, double scale, u32 size, Bits bits) {
    const double place = (0.5 * value_of(key_of(bits)) - low) * scale * double(size);
    const double top = double(size - 1);
    return place > 0.0 ? i64(place < top ? place : top) : 0;
}

// Where a row's value is counted: how many cells each column of a node has and where they begin,
// those of its bins, and what half of a value is less and times.
struct Sieve {
    const i64* used;
    const i64* start;
    const i32* place;
    const u32* taken;
    const double* low;
    const double* scale;

    // The cell of an entry's value in column f of node j, or -1.
    __device__ i64 cell_of(const Table& table, i64 j, i64 f, i64 row, Bits bits) const {
        const i64 column = j * table.columns + f;
        if (used[column] == 0) return -1;
        const i64 bin = table.offset[f] + table.codes[row * table.stride + f];
        const i64 at = j * table.offset[table.columns] + bin;
        if (place[at] < 0) return -1;
        return start[column] + place[at] + cell_in(low[bin], scale[bin], taken[at], bits);
    }
};

// Grid: chunks of entries. Add them to the cells of the living bins.
extern "C" __global__ void __launch_bounds__(256) count_cells(
    const Bits* values, Table table, Rows rows, const i32* entries, Chunks of, i64 channels,
    Sieve sieve, Cell* counts
) {
    const i64 c = blockIdx.x, j = of.owner[c], first = of.first[c], columns = table.columns;
    for (i64 item = threadIdx.x; item < (of.last[c] - first) * columns; item += blockDim.x) {
        const i64 f = item % columns, row = entries[first + item / columns];
        const i64 cell = sieve.cell_of(table, j, f, row, values[row * columns + f]);
        if (cell < 0) continue;
        add_row<InGlobal>(
            counts + cell * channels, channels, rows.target[row], weight_of(rows.weight, row),
            REGRESSION ? rows.square[row] : 0
        );
    }
}

// Grid: nodes x columns; block: one warp, a lane a bin. Sums over the cells of each living bin,
// with what lies left of it, missing values apart; bin_of[cell] becomes its bin in the column.
extern "C" __global__ void __launch_bounds__(32) accumulate_cells(
    Table table, i64 channels, Level level, Sieve sieve, const Cell* counts, i64* sums, i32* bin_of
) {
    const i64 columns = table.columns, bins = table.offset[columns];
    const i64 at = blockIdx.x, f = at % columns, j = at / columns;
    const i32* place = sieve.place + j * bins;
    const u32* taken = sieve.taken + j * bins;
    if (sieve.used[at] == 0) return;
    const Column column = column_of(table, f);
    for (i64 b = threadIdx.x; b < column.value_bins; b += 32) {
        const i64 bin = column.first + b;
        if (place[bin] < 0) continue;
        const i64 begin = sieve.start[at] + place[bin], end = begin + taken[bin];
        for (i64 k = 0; k < channels; ++k) {
            i64 sum = level.cumulatives[(j * bins + bin) * channels + k] -
                      i64(level.histograms[(slot_of(level.slots, j) * bins + bin) * channels + k]);
            for (i64 c = begin; c < end; ++c) {
                sum += i64(counts[c * channels + k]);
                sums[c * channels + k] = sum;
            }
        }
        for (i64 c = begin; c < end; ++c) bin_of[c] = i32(b);
    }
}

// Score of an admissible cut that has `left` behind it, or -infinity.
template <class Left>
__device__ double score_of(
    const Criterion& criterion, const Limits& limits, const Hold& hold, const Left& left,
    const i64* total, i64 channels
) {
    if (!admissible(criterion, limits, hold, left, total, channels)) return -infinity();
    return score(criterion, begin(criterion, left, total), left, total);
}

// Grid: nodes x columns; block: 128 threads, a thread a cell. bars[j] becomes the order (see
// order_of) of the best score of node j: of its cut, or of a boundary of cells.
extern "C" __global__ void __launch_bounds__(128, 1) raise_bars(
    Rules rules, Table table, Level level, Monotonic held, const i64* used, const i64* start,
    const Cell* counts, const i64* sums, i64* bars
) {
    const Criterion criterion = rules.criterion;
    const Limits limits = rules.limits;
    const i64 channels = rules.channels;
    const i64 at = blockIdx.x, f = at % table.columns, j = at / table.columns;
    const Hold hold = held.of(j, f);
    const i64* total = level.totals + j * channels;
    const Cell* cells = level.cells(table, j, channels);
    const Cell* absent = missing_cell(column_of(table, f), cells, channels);
    double best = -infinity();
    for (i64 i = threadIdx.x; i < used[at]; i += blockDim.x) {
        const i64 c = (start[at] + i) * channels;
        if (rows_in(criterion, counts + c, channels) == 0) continue;
        for (int side = 0; side < (absent ? 2 : 1); ++side) {
            const AfterBin left = {sums + c, side ? absent : nullptr};
            best = greater_of(best, score_of(criterion, limits, hold, left, total, channels));
        }
    }
    best = warp_greatest(best);
    if ((threadIdx.x & 31) == 0 && best > -infinity()) atomicMax(bars + j, order_of(best));
}

// One thread a node: bars[j] becomes the order of the score of its cut.
extern "C" __global__ void __launch_bounds__(256) start_bars(i64 nodes, const i64* cuts, i64* bars) {
    const i64 j = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j < nodes) bars[j] = order_of(((const Cut*)cuts)[j].score);
}

// The double behind order_of.
__device__ __forceinline__ double of_order(i64 order) {
    return __longlong_as_double(order ^ (order >> 63 & 0x7fffffffffffffffll));
}

// Grid: nodes x columns; block: one warp, a lane a cell. As mark_alive of refine.cu, for cells:
// cell_place[] becomes the first slot of the cell among those of the column, -1 where it is dead.
extern "C" __global__ void __launch_bounds__(32, 1) mark_cells(
    Rules rules, Table table, Level level, Monotonic held, const i64* used, const i64* start,
    const Cell* counts, const i64* sums, const i64* bars, i32* cell_place, u32* cell_taken, i64* rows_used, i64* chunks
) {
    const Criterion criterion = rules.criterion;
    const Limits limits = rules.limits;
    const i64 channels = rules.channels;
    const i64 at = blockIdx.x, f = at % table.columns, j = at / table.columns;
    const Hold hold = held.of(j, f);
    const i64* total = level.totals + j * channels;
    const Cell* cells = level.cells(table, j, channels);
    const Cell* absent = missing_cell(column_of(table, f), cells, channels);
    Cut best = no_cut();
    best.score = of_order(bars[j]);
    const double bar = bar_of(criterion, best, total);
    i64 rows = 0, pieces = 0;
    for (i64 i0 = 0; i0 < used[at]; i0 += 32) {
        const i64 i = i0 + threadIdx.x, c = start[at] + i;
        const Cell* cell = counts + c * channels;
        const i64 n = i < used[at] ? rows_in(criterion, cell, channels) : 0;
        bool alive = false;
        for (int side = 0; n > 0 && !alive && side < (absent ? 2 : 1); ++side) {
            const Cell* to_left = side ? absent : nullptr;
            const AfterBin after = {sums + c * channels, to_left};
            const BeforeBin before = {sums + c * channels, cell, to_left};
            alive = score_of(criterion, limits, hold, after, total, channels) >= bar ||
                    score_of(criterion, limits, hold, before, total, channels) >= bar;
            if (alive || !cut_inside(criterion, limits, before, n, total, channels)) continue;
            const double most = bound(criterion, before, cell, total);
            alive = most >= bar && tighten(criterion, before, cell, total, most) >= bar;
        }
        const i64 sum = rows + inclusive_sum(alive ? n : 0);
        if (i < used[at]) {
            cell_place[c] = alive ? i32(sum - n) : -1;
            cell_taken[c] = 0;
        }
        rows = last_lane(sum);
        pieces += last_lane(inclusive_sum(alive ? (n - 1) / CHUNK + 1 : 0));
    }
    if (threadIdx.x != 0) return;
    rows_used[at] = rows;
    chunks[at] = pieces;
}

// Grid: chunks of entries. As gather_rows of refine.cu, for living cells; `segment` is the first
// slot of the cell.
extern "C" __global__ void __launch_bounds__(256) gather_cells(
    const Bits* values, Table table, const i32* entries, Chunks of, i64 begin, i64 end,
    Sieve sieve, const i64* row_start, const i32* cell_place, u32* cell_taken, u32* segment,
    Bits* keys, i32* items
) {
    const i64 c = blockIdx.x, j = of.owner[c], first = of.first[c], columns = table.columns;
    for (i64 item = threadIdx.x; item < (of.last[c] - first) * columns; item += blockDim.x) {
        const i64 f = item % columns, column = j * columns + f;
        if (column < begin || column >= end) continue;
        const i32 row = entries[first + item / columns];
        const Bits bits = values[row * columns + f];
        const i64 cell = sieve.cell_of(table, j, f, row, bits);
        if (cell < 0 || cell_place[cell] < 0) continue;
        const i64 base = row_start[column] + cell_place[cell];
        const i64 slot = base + atomicAdd(&cell_taken[cell], 1u);
        segment[slot] = u32(base);
        keys[slot] = key_of(bits);
        items[slot] = row;
    }
}

// Grid: the columns begin .. end, counted through all nodes; block: one warp, a lane a cell. As
// list_chunks of refine.cu, for living cells; only the last one of a bin has a slot that no cut
// follows.
extern "C" __global__ void __launch_bounds__(32) list_cells(
    Rules rules, i64 begin, const i64* used, const i64* start, const Cell* counts,
    const i32* bin_of, const i32* cell_place, const i64* row_start, const i64* chunk_start,
    Pieces pieces, i64* chunk_cell
) {
    const i64 channels = rules.channels;
    const i64 at = begin + blockIdx.x, end = start[at] + used[at];
    i64 next = chunk_start[at];
    for (i64 c0 = start[at]; c0 < end; c0 += 32) {
        const i64 c = c0 + threadIdx.x;
        const bool alive = c < end && cell_place[c] >= 0;
        const i64 n = alive ? rows_in(rules.criterion, counts + c * channels, channels) : 0;
        const i64 parts = alive ? (n - 1) / CHUNK + 1 : 0;
        const i64 sum = next + inclusive_sum(parts);
        next = last_lane(sum);
        if (!alive) continue;
        i64 follower = c + 1;
        while (follower < end && bin_of[follower] == bin_of[c] && cell_place[follower] < 0)
            ++follower;
        const bool is_last = follower == end || bin_of[follower] != bin_of[c];
        const i64 first = row_start[at] + cell_place[c], stop = first + n - (is_last ? 1 : 0);
        for (i64 p = 0; p < parts; ++p) {
            const i64 chunk = sum - parts + p, from = first + p * CHUNK;
            pieces.column[chunk] = at;
            pieces.bin[chunk] = bin_of[c];
            chunk_cell[chunk] = c;
            pieces.first[chunk] = from;
            pieces.last[chunk] = from + CHUNK < stop ? from + CHUNK : stop;
        }
    }
}

// One thread a chunk and channel; the first chunk of a cell does the work for all of its cell:
// as accumulate_chunks of refine.cu.
extern "C" __global__ void __launch_bounds__(256) accumulate_living(
    i64 count, i64 channels, const Cell* counts, const i64* sums, const i64* chunk_cell, i64* lefts
) {
    const i64 t = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    const i64 k = t % channels;
    i64 c = t / channels;
    if (c >= count) return;
    const i64 cell = chunk_cell[c];
    if (c > 0 && chunk_cell[c - 1] == cell) return;
    i64 left = sums[cell * channels + k] - i64(counts[cell * channels + k]);
    for (; c < count && chunk_cell[c] == cell; ++c) {
        const i64 inside = lefts[c * channels + k];
        lefts[c * channels + k] = left;
        left += inside;
    }
}
