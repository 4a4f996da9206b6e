// Exact cuts inside bins whose bound reaches the best score known.
//
//   bins of a column   |   |   |xxx|   |   |xxx|     x: alive; their rows are gathered,
//   slots              |xxxxxxxxxxx|xxxxx|           sorted by (bin, value),
//   chunks             |xxxx|xxxx|x|xxxx|x|          and scanned, one thread a chunk
//
// Where many are alive, finer.cu comes in between.

// Places that a living bin of n rows takes: its rows, or cells of `cell_rows` on average.
__device__ __forceinline__ i64 places_of(i64 n, i64 cell_rows) {
    if (cell_rows == 0) return n;
    i64 cells = 1;
    while (cells * cell_rows < n && cells < MOST_CELLS) cells *= 2;
    return cells;
}

// Grid: nodes x columns; block: one warp. Mark the bins that may hold the best cut: place[bin]
// becomes the first slot of its rows among those of the column, -1 where the bin is dead, as that
// of missing values is: no cut lies inside it; taken[bin] becomes 0. Only the leading column of each
// node is looked at, or (`lead_only` = 0) all others. used[] and chunks[] become the slots and
// chunks of the column; without any, `place` is not set. With `cell_rows`, cells take the place of
// slots, and taken[bin] is their number.
extern "C" __global__ void __launch_bounds__(32, 1) mark_alive(
    Rules rules, Table table, Level level, const double* bounds, Visits visits, const i64* cuts,
    const i32* lead, i64 lead_only, i64 cell_rows, i32* place, u32* taken, i64* used, i64* chunks
) {
    const Criterion criterion = rules.criterion;
    const Limits limits = rules.limits;
    const i64 columns = table.columns, channels = rules.channels;
    const i64 at = blockIdx.x, f = at % columns, j = at / columns;
    const i64 bins = table.offset[columns], width = bins * channels;
    const int lane = threadIdx.x;
    const i64* total = level.totals + j * channels;
    const double bar = bar_of(criterion, ((const Cut*)cuts)[j], total);
    i64 rows = 0, pieces = 0;
    if (visits.include(j, f, columns) && bounds[at] >= bar &&
        (f == lead[j]) == (lead_only != 0)) {
        const Column column = column_of(table, f);
        const Cell* cells = level.histograms + slot_of(level.slots, j) * width;
        const Cell* absent = missing_cell(column, cells, channels);
        for (i64 b0 = 0; b0 < column.value_bins; b0 += 32) {
            const i64 b = column.first + b0 + lane;
            const bool exists = b0 + lane < column.value_bins;
            const Cell* bin = cells + b * channels;
            const i64 n = exists && !table.single[b] ? rows_in(criterion, bin, channels) : 0;
            const BeforeBin before = {level.cumulatives + j * width + b * channels, bin, nullptr};
            const bool alive = is_alive(criterion, limits, before, absent, n, total, channels, bar);
            const i64 places = alive ? places_of(n, cell_rows) : 0;
            const i64 sum = rows + inclusive_sum(places);
            if (exists) {
                place[j * bins + b] = alive ? i32(sum - places) : -1;
                taken[j * bins + b] = cell_rows ? u32(places) : 0;
            }
            rows = last_lane(sum);
            pieces += last_lane(inclusive_sum(alive ? (n - 2) / CHUNK + 1 : 0));
        }
        if (column.has_missing && lane == 0)
            place[j * bins + column.first + column.value_bins] = -1;
    }
    if (lane != 0) return;
    used[at] = rows;
    chunks[at] = pieces;
}

// Grid: chunks of entries. Put the rows of the alive bins of the columns begin .. end (counted
// through all nodes) into slots, each with the key of its value; `segment` is its bin's first
// slot, start[] each column's.
extern "C" __global__ void __launch_bounds__(256) gather_rows(
    const Bits* values, Table table, const i32* entries, Chunks of, i64 begin, i64 end,
    const i64* used, const i64* start, const i32* place, u32* taken, u32* segment, Bits* keys,
    i32* items
) {
    const i64 c = blockIdx.x, j = of.owner[c], first = of.first[c], columns = table.columns;
    for (i64 item = threadIdx.x; item < (of.last[c] - first) * columns; item += blockDim.x) {
        const i64 f = item % columns, column = j * columns + f;
        if (column < begin || column >= end || used[column] == 0) continue;
        const i32 row = entries[first + item / columns];
        const i64 code = table.codes[row * table.stride + f];
        const i64 bin = j * table.offset[columns] + table.offset[f] + code;
        if (place[bin] < 0) continue;
        const i64 base = start[column] + place[bin];
        const i64 slot = base + atomicAdd(&taken[bin], 1u);
        segment[slot] = u32(base);
        keys[slot] = key_of(values[row * columns + f]);
        items[slot] = row;
    }
}

// One thread a column: cut the slots of its alive bins into chunks, which keep their column,
// their bin among all bins of the column, and their slots but the last of the bin, which no
// cut follows.
extern "C" __global__ void __launch_bounds__(256) list_chunks(
    Rules rules, Table table, Level level, i64 begin, i64 end, const i64* used, const i64* start,
    const i64* chunk_start, const i32* place, Pieces pieces
) {
    const i64 at = begin + i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= end || used[at] == 0) return;
    const i64 columns = table.columns, channels = rules.channels, bins = table.offset[columns];
    const i64 f = at % columns, j = at / columns;
    const Column column = column_of(table, f);
    i64 chunk = chunk_start[at];
    for (i64 b = 0; b < column.value_bins; ++b) {
        const i64 bin = column.first + b;
        if (place[j * bins + bin] < 0) continue;
        const i64 slot = start[at] + place[j * bins + bin];
        const Cell* cell = level.histograms + (slot_of(level.slots, j) * bins + bin) * channels;
        const i64 stop = slot + rows_in(rules.criterion, cell, channels) - 1;
        for (i64 i = slot; i < stop; i += CHUNK) {
            pieces.column[chunk] = at;
            pieces.bin[chunk] = i32(b);
            pieces.first[chunk] = i;
            pieces.last[chunk] = i + CHUNK < stop ? i + CHUNK : stop;
            ++chunk;
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

// One thread a chunk and channel; the first chunk of a bin does the work for all of its bin:
// sums become the statistics left of each chunk, missing values apart.
extern "C" __global__ void __launch_bounds__(256) accumulate_chunks(
    i64 count, i64 channels, Table table, Level level, Pieces pieces, i64* sums
) {
    const i64 t = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    const i64 k = t % channels;
    i64 c = t / channels;
    if (c >= count) return;
    const i64 at = pieces.column[c], columns = table.columns;
    const i32 bin = pieces.bin[c];
    if (c > 0 && pieces.column[c - 1] == at && pieces.bin[c - 1] == bin) return;
    const i64 bins = table.offset[columns], j = at / columns;
    const i64 cell = table.offset[at % columns] + bin;
    i64 left = level.cumulatives[(j * bins + cell) * channels + k] -
               i64(level.histograms[(slot_of(level.slots, j) * bins + cell) * channels + k]);
    for (; c < count && pieces.column[c] == at && pieces.bin[c] == bin; ++c) {
        const i64 own = sums[c * channels + k];
        sums[c * channels + k] = left;
        left += own;
    }
}

// One thread a chunk: its best cut, missing values right and left. `lefts` is used up.
extern "C" __global__ void __launch_bounds__(256, 1) scan_chunks(
    Rules rules, Table table, Level level, Monotonic held, i64 count, Rows rows,
    const Bits* keys, const i32* items, Pieces pieces, i64* lefts, i64* chunk_cuts
) {
    const i64 c = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (c >= count) return;
    const Strided left = {lefts + c * rules.channels, 1};
    const Cut cut = scan_piece(
        rules, table, level, held, rows, keys, items, pieces.column[c], pieces.bin[c],
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
    cut = first_cut(cut);
    __syncwarp();
    if (threadIdx.x == 0) ((Cut*)cuts)[j] = cut;
}
