// Cuts inside bins of few rows, a warp a bin; the host does not wait while they are searched.
//
//   bins of a column   |   |   |xxx|   |   |xxx|     x: candidates; their rows are gathered
//   slots              |xxxxxxx|xxxxx|               anywhere, each bin's together,
//   a warp             |sort, scan   |               and sorted in shared memory
//
// Where slots do not suffice, or a bin has more rows than a warp sorts, the tally says so: the rest
// is left out, and refine.cu searches everything.

// State of the search inside the candidate bins of a level.
struct Inside {
    i64 slots;   // that there are
    i64* tally;  // see Tally of record.cuh
    i32* place;  // of every bin of a column that is searched: its first slot, or -1
    u32* taken;  // of its slots
    Pieces bins;
    Found found;

    __device__ __forceinline__ bool overflows() const { return tally[OVERFLOWS] != 0; }
};

// One lane: reserve slots and bins of a column; returns the first of each, or -1 if they do not
// fit.
__device__ __forceinline__ i64 take(
    const Inside& inside, i64 pair, i64 rows, i64 bins, bool is_large, i64& first
) {
    u64* tally = (u64*)inside.tally;
    const i64 slot = i64(atomicAdd(tally + SLOTS, u64(rows)));
    const bool fits = !is_large && slot + rows <= inside.slots;
    // Only of columns that fit: their bins, of two rows or more, are as many as the list can have.
    first = i64(atomicAdd(tally + BINS, u64(fits ? bins : 0)));
    if (!fits) atomicMax(tally + OVERFLOWS, u64(1));
    inside.found.first[pair] = first;
    inside.found.number[pair] = fits ? i32(bins) : 0;
    return fits ? slot : -1;
}

// A warp: list the bins of column f of node j that may contain the best cut, and reserve their
// slots.
__device__ void mark_column(
    const Rules& rules, const Table& table, const Level& level, const Inside& inside, i64 j, i64 f,
    double needed
) {
    const Criterion& criterion = rules.criterion;
    const i64 columns = table.columns, channels = rules.channels;
    const i64 bins = table.offset[columns];
    const int lane = threadIdx.x;
    const Column column = column_of(table, f);
    const Cell* cells = level.cells(table, j, channels);
    i32* place = inside.place + j * bins;
    i64 number = 0;
    bool is_large = false;
    const auto count = [&](i64, bool, i64 n) {
        number += __popc(__ballot_sync(ALL_LANES, n > 0));
        is_large = is_large || __any_sync(ALL_LANES, n > MOST_SORTED);
        return n;
    };
    const i64 rows = mark_bins(rules, table, level, j, f, needed, place, count);
    i64 slot = -1, first = 0;
    if (lane == 0 && number > 0)
        slot = take(inside, j * columns + f, rows, number, is_large, first);
    slot = __shfl_sync(ALL_LANES, slot, 0);
    first = __shfl_sync(ALL_LANES, first, 0);
    const u32 before = (1u << lane) - 1u;  // lanes
    for (i64 b0 = 0; slot >= 0 && b0 < column.value_bins; b0 += 32) {
        const i64 b = column.first + b0 + lane;
        const bool candidate = b0 + lane < column.value_bins && place[b] >= 0;
        const u32 vote = __ballot_sync(ALL_LANES, candidate);
        if (candidate) {
            const i64 entry = first + __popc(vote & before);
            place[b] += i32(slot);
            inside.taken[j * bins + b] = 0;
            inside.bins.column[entry] = j * columns + f;
            inside.bins.bin[entry] = i32(b0 + lane);
            inside.bins.first[entry] = place[b];
            inside.bins.last[entry] = place[b] + rows_in(criterion, cells + b * channels, channels);
        }
        first += __popc(vote);
    }
}

// Grid: nodes x columns; block: one warp. List the candidate bins.
extern "C" __global__ void __launch_bounds__(32, 1) mark_inside(
    Rules rules, Table table, Level level, const double* bounds, Visits visits, const i64* cuts,
    Inside inside
) {
    const i64 columns = table.columns, pair = blockIdx.x, f = pair % columns, j = pair / columns;
    if (threadIdx.x == 0) inside.found.number[pair] = 0;
    if (!visits.include(j, f, columns)) return;
    const Cut cut = ((const Cut*)cuts)[j];
    const double needed =
        needed_bound(rules.criterion, cut, level.totals + j * rules.channels);
    if (bounds[pair] >= needed) mark_column(rules, table, level, inside, j, f, needed);
}

// Grid: chunks of entries. Put the rows of the candidate bins into slots, each with the key of its
// value.
extern "C" __global__ void __launch_bounds__(256) gather_inside(
    const Bits* values, Table table, const i32* entries, Chunks of, Inside inside, Bits* keys,
    i32* items
) {
    if (inside.overflows()) return;
    const i64 c = blockIdx.x, j = of.owner[c], columns = table.columns;
    const i64 bins = j * table.offset[columns];
    const auto is_searched = [&](i64 f) { return inside.found.number[j * columns + f] > 0; };
    visit_searched(of, c, entries, columns, is_searched, [&](i64 f, i64 row) {
        const i64 bin = bins + table.offset[f] + table.codes[row * table.stride + f];
        if (inside.place[bin] < 0) return;
        const i64 slot = inside.place[bin] + atomicAdd(&inside.taken[bin], 1u);
        keys[slot] = key_of(values[row * columns + f]);
        items[slot] = i32(row);
    });
}

// Block: one warp; blocks process the listed bins in turn. The best cut inside each. A lane has a
// piece of the rows; `lefts` is of size 32 x channels per block.
extern "C" __global__ void __launch_bounds__(32, 1) scan_inside(
    Rules rules, Table table, Level level, Monotonic monotonic, Rows rows, Inside inside,
    const Bits* keys, const i32* items, i64* lefts
) {
    __shared__ Bits own_keys[MOST_SORTED];
    __shared__ i32 own_items[MOST_SORTED];
    if (inside.overflows()) return;
    const int lane = threadIdx.x;
    const i64 channels = rules.channels, bins = table.offset[table.columns];
    const i64 end = inside.tally[BINS];
    const Strided left = {lefts + blockIdx.x * channels * 32 + lane, 32};
    for (i64 i = blockIdx.x; i < end; i += gridDim.x) {
        const i64 pair = inside.bins.column[i], j = pair / table.columns;
        const i64 slot = inside.bins.first[i], n = inside.bins.last[i] - slot;
        const i32 b = inside.bins.bin[i];
        sort_slots(keys + slot, items + slot, n, own_keys, own_items);
        const i64 cell = (table.offset[pair % table.columns] + b) * channels;
        const BeforeBin before = {
            level.cumulatives + j * bins * channels + cell,
            level.cells(table, j, channels) + cell, nullptr
        };
        const Cut cut = scan_sorted(  // no cut follows the last row
            rules, table, level, monotonic, rows, own_keys, own_items, pair, b, 0, n - 1, before,
            left
        );
        if (lane == 0) ((Cut*)inside.found.cuts)[i] = cut;
        __syncwarp();
    }
}
