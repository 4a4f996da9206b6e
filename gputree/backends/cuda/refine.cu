// Exact cuts inside bins whose bound reaches the best score known.
//
//   bins of a column   |   |   |xxx|   |   |xxx|     x: candidates; their rows are gathered,
//   slots              |xxxxxxxxxxx|xxxxx|           sorted by (bin, value),
//   chunks             |xxxx|xxxx|x|xxxx|x|          and scanned, one thread a chunk
//
// Where there are many, sub_bins.cu comes in between.

// Places that a candidate bin of n rows takes: its rows, or cells of `cell_rows` on average.
__device__ __forceinline__ i64 places_of(i64 n, i64 cell_rows) {
    if (cell_rows == 0) return n;
    i64 cells = 1;
    while (cells * cell_rows < n && cells < MOST_CELLS) cells *= 2;
    return cells;
}

// Grid: nodes x columns; block: one warp. Mark the bins that may hold the best cut in place[], by
// the slots of their rows; taken[bin] becomes 0. Only the leading column of each node is searched,
// or (`lead_only` = 0) all others. used[] and chunks[] become the slots and chunks of the column;
// without any, `place` is not set. With `cell_rows`, sub-bins take the place of slots, and
// taken[bin] is their number.
extern "C" __global__ void __launch_bounds__(32, 1) mark_candidates(
    Rules rules, Table table, Level level, const double* bounds, Visits visits, const i64* cuts,
    const i32* lead, i64 lead_only, i64 cell_rows, i32* place, u32* taken, i64* used, i64* chunks
) {
    const i64 columns = table.columns, bins = table.offset[columns];
    const i64 at = blockIdx.x, f = at % columns, j = at / columns;
    const i64* total = level.totals + j * rules.channels;
    const double needed = needed_bound(rules.criterion, ((const Cut*)cuts)[j], total);
    i64 rows = 0, pieces = 0;
    const bool is_searched = (f == lead[j]) == (lead_only != 0) && visits.include(j, f, columns);
    if (is_searched && bounds[at] >= needed) {
        const auto take = [&](i64 b, bool exists, i64 n) {
            const i64 places = n > 0 ? places_of(n, cell_rows) : 0;
            if (exists) taken[j * bins + b] = cell_rows ? u32(places) : 0;
            pieces += last_lane(inclusive_sum(n > 0 ? (n - 2) / CHUNK + 1 : 0));
            return places;
        };
        rows = mark_bins(rules, table, level, j, f, needed, place + j * bins, take);
    }
    if (threadIdx.x != 0) return;
    used[at] = rows;
    chunks[at] = pieces;
}

// Grid: chunks of entries. Put the rows of the candidates, bins or sub-bins, of the columns
// begin .. end (counted through all nodes) into slots, each with the key of its value; `segment` is
// the first slot of its candidate, start[] each column's.
extern "C" __global__ void __launch_bounds__(256, 1) gather_rows(
    const Bits* values, Table table, const i32* entries, Chunks of, i64 begin, i64 end, Grid grid,
    const i64* start, const i32* place, u32* taken, u32* segment, Bits* keys, i32* items
) {
    const i64 c = blockIdx.x, j = of.owner[c], columns = table.columns;
    const auto is_searched = [&](i64 f) {
        const i64 column = j * columns + f;
        return column >= begin && column < end && start[column] < start[column + 1];
    };
    visit_searched(of, c, entries, columns, is_searched, [&](i64 f, i64 row) {
        const i64 cell = grid.cell_of(table, j, f, row, values);
        if (cell < 0 || place[cell] < 0) return;
        const i64 base = start[j * columns + f] + place[cell];
        const i64 slot = base + atomicAdd(&taken[cell], 1u);
        segment[slot] = u32(base);
        keys[slot] = key_of(values[row * columns + f]);
        items[slot] = i32(row);
    });
}

// Grid: the columns from `begin` on, counted through all nodes; block: one warp, a lane a bin or
// sub-bin. Cut the slots of candidates into chunks, which keep their column, their bin among all
// bins of the column, their candidate, and their slots but the last of a bin, which no cut follows.
extern "C" __global__ void __launch_bounds__(32) list_chunks(
    Rules rules, Table table, Level level, i64 begin, Grid grid, SubBins sub_bins,
    const i32* place, const i64* start, const i64* chunk_start, Pieces pieces, i64* candidates
) {
    const i64 channels = rules.channels, columns = table.columns;
    const i64 at = begin + blockIdx.x, j = at / columns;
    if (grid.used[at] == 0) return;
    const Column column = column_of(table, at % columns);
    const i32* bin_of = sub_bins.bin_of;
    const Cell* counts = sub_bins.counts_in(level, table, j, channels);
    const i64 from = bin_of ? grid.start[at] : j * table.offset[columns] + column.first;
    const i64 end = from + (bin_of ? grid.used[at] : column.value_bins);
    i64 next = chunk_start[at];
    for (i64 c0 = from; c0 < end; c0 += 32) {
        const i64 c = c0 + threadIdx.x;
        const bool candidate = c < end && place[c] >= 0;
        const i64 n = candidate ? rows_in(rules.criterion, counts + c * channels, channels) : 0;
        const i64 parts = candidate ? (n - (bin_of ? 1 : 2)) / CHUNK + 1 : 0;
        const i64 sum = next + inclusive_sum(parts);
        next = last_lane(sum);
        if (!candidate) continue;
        i64 follower = c + 1;
        while (bin_of && follower < end && bin_of[follower] == bin_of[c] && place[follower] < 0)
            ++follower;
        const bool is_last = !bin_of || follower == end || bin_of[follower] != bin_of[c];
        const i64 first = start[at] + place[c], stop = first + n - (is_last ? 1 : 0);
        for (i64 p = 0; p < parts; ++p) {
            const i64 chunk = sum - parts + p, slot = first + p * CHUNK;
            pieces.column[chunk] = at;
            pieces.bin[chunk] = bin_of ? bin_of[c] : i32(c - from);
            pieces.first[chunk] = slot;
            pieces.last[chunk] = slot + CHUNK < stop ? slot + CHUNK : stop;
            candidates[chunk] = c;
        }
    }
}

// One thread a chunk: the statistics of its rows.
extern "C" __global__ void __launch_bounds__(256) sum_chunks(
    i64 count, i64 channels, Rows rows, const i32* items, Pieces pieces, i64* sums
) {
    const i64 c = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (c < count)
        sum_slots(rows, channels, items, pieces.first[c], pieces.last[c], sums + c * channels);
}

// One thread a chunk and channel; the first chunk of a bin, or sub-bin, does the work for all of
// it: `lefts` become the statistics left of each chunk, missing values apart.
extern "C" __global__ void __launch_bounds__(256) accumulate_chunks(
    i64 count, i64 channels, Table table, Level level, SubBins sub_bins, Pieces pieces,
    const i64* candidates, i64* lefts
) {
    const i64 t = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    const i64 k = t % channels;
    i64 c = t / channels;
    if (c >= count) return;
    const i64 cell = candidates[c], at = cell * channels + k;
    if (c > 0 && candidates[c - 1] == cell) return;
    const i64 j = pieces.column[c] / table.columns;
    const i64* sums = sub_bins.sums ? sub_bins.sums : level.cumulatives;
    i64 left = sums[at] - i64(sub_bins.counts_in(level, table, j, channels)[at]);
    for (; c < count && candidates[c] == cell; ++c) {
        const i64 own = lefts[c * channels + k];
        lefts[c * channels + k] = left;
        left += own;
    }
}

// One thread a chunk: its best cut, missing values right and left. `lefts` is used up.
extern "C" __global__ void __launch_bounds__(256, 1) scan_chunks(
    Rules rules, Table table, Level level, Monotonic monotonic, i64 count, Rows rows,
    const Bits* keys, const i32* items, Pieces pieces, i64* lefts, i64* chunk_cuts
) {
    const i64 c = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (c >= count) return;
    const Strided left = {lefts + c * rules.channels, 1};
    const Cut cut = scan_piece(
        rules, table, level, monotonic, rows, keys, items, pieces.column[c], pieces.bin[c],
        pieces.first[c], pieces.last[c], left
    );
    ((Cut*)chunk_cuts)[c] = cut;
}

// Grid: nodes; block: one warp. The better of each node's cut and those of its chunks, which are
// start[] of its columns among begin .. end, counted through all nodes.
extern "C" __global__ void __launch_bounds__(32) pick_cuts(
    i64 begin, i64 end, i64 columns, const i64* start, const i64* chunk_cuts, i64* cuts
) {
    const i64 j = blockIdx.x;
    const i64 first = j * columns > begin ? j * columns : begin;
    const i64 last = (j + 1) * columns < end ? (j + 1) * columns : end;
    if (first >= last) return;
    Cut cut = ((Cut*)cuts)[j];
    for (i64 c = start[first] + threadIdx.x; c < start[last]; c += 32) {
        const Cut found = ((const Cut*)chunk_cuts)[c];
        if (found.score > -infinity() && precedes(found, cut)) cut = found;
    }
    cut = warp_first(cut);
    __syncwarp();
    if (threadIdx.x == 0) ((Cut*)cuts)[j] = cut;
}
