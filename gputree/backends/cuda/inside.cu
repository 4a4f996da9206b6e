// Cuts inside bins of few rows, a warp a bin; the host asks nothing while they are looked for.
//
//   bins of a column   |   |   |xxx|   |   |xxx|     x: alive; their rows are gathered
//   slots              |xxxxxxx|xxxxx|               anywhere, one bin's side by side,
//   a warp             |sort, scan   |               and sorted in shared memory
//
// First in the leading column of each node, whose cuts raise the bar, then in all others. Where
// slots do not suffice, or a bin has more rows than a warp sorts, the tally says so: the rest is left
// out, and refine.cu does it all.

#define MOST_SORTED 1024  // rows of a bin; not measured

// What lies inside living bins of a level.
struct Living {
    i64 slots;   // that there are
    i64* tally;  // see Tally of record.cuh
    i32* place;  // of every bin of a column that is looked into: its first slot, or -1
    u32* taken;  // of its slots
    i64 rest;    // where bins of other than leading columns are listed
    Pieces bins;
    Found found;

    __device__ __forceinline__ bool overflows() const {
        return (tally[OVERFLOWS] | tally[OVERFLOWS + 1]) != 0;
    }
};

// One lane: room for so many slots and bins of a column; returns the first of each, or -1.
__device__ __forceinline__ i64 take(
    const Living& living, i64 at, i64 others, i64 rows, i64 bins, bool is_large, i64& first
) {
    u64* tally = (u64*)living.tally + others;
    const i64 slot = i64(atomicAdd(tally + SLOTS, u64(rows)));
    first = others * living.rest + i64(atomicAdd(tally + BINS, u64(bins)));
    const bool fits = !is_large && slot + rows <= living.slots;
    if (!fits) atomicMax(tally + OVERFLOWS, u64(1));
    living.found.first[at] = first;
    living.found.number[at] = fits ? i32(bins) : 0;
    return fits ? slot : -1;
}

// A warp: list the bins of column f of node j that may hold the best cut, and give them slots.
__device__ void mark_column(
    const Rules& rules, const Table& table, const Level& level, const Living& living, i64 j, i64 f,
    i64 others, const Cut& best
) {
    const Criterion criterion = rules.criterion;
    const Limits limits = rules.limits;
    const i64 columns = table.columns, channels = rules.channels, at = j * columns + f;
    const i64 bins = table.offset[columns], width = bins * channels;
    const int lane = threadIdx.x;
    const i64* total = level.totals + j * channels;
    const double bar = bar_of(criterion, best, total);
    const Column column = column_of(table, f);
    const Cell* cells = level.histograms + slot_of(level.slots, j) * width;
    const Cell* absent = missing_cell(column, cells, channels);
    i32* place = living.place + j * bins;
    i64 rows = 0, number = 0;
    bool is_large = false;
    for (i64 b0 = 0; b0 < column.value_bins; b0 += 32) {
        const i64 b = column.first + b0 + lane;
        const bool exists = b0 + lane < column.value_bins;
        const Cell* bin = cells + b * channels;
        const i64 n = exists && !table.single[b] ? rows_in(criterion, bin, channels) : 0;
        const BeforeBin before = {level.cumulatives + j * width + b * channels, bin, nullptr};
        const bool alive = is_alive(criterion, limits, before, absent, n, total, channels, bar);
        const i64 sum = rows + inclusive_sum(alive ? n : 0);
        if (exists) place[b] = alive ? i32(sum - n) : -1;
        rows = last_lane(sum);
        number += __popc(__ballot_sync(ALL_LANES, alive));
        is_large = is_large || __any_sync(ALL_LANES, alive && n > MOST_SORTED);
    }
    if (lane == 0 && column.has_missing) place[column.first + column.value_bins] = -1;
    i64 slot = -1, first = 0;
    if (lane == 0 && number > 0) slot = take(living, at, others, rows, number, is_large, first);
    if (lane == 0 && number == 0) living.found.number[at] = 0;
    slot = __shfl_sync(ALL_LANES, slot, 0);
    first = __shfl_sync(ALL_LANES, first, 0);
    const u32 before = (1u << lane) - 1u;  // lanes
    for (i64 b0 = 0; slot >= 0 && b0 < column.value_bins; b0 += 32) {
        const i64 b = column.first + b0 + lane;
        const bool alive = b0 + lane < column.value_bins && place[b] >= 0;
        const u32 vote = __ballot_sync(ALL_LANES, alive);
        if (alive) {
            const i64 own = first + __popc(vote & before);
            place[b] += i32(slot);
            living.taken[j * bins + b] = 0;
            living.bins.column[own] = at;
            living.bins.bin[own] = i32(b0 + lane);
            living.bins.first[own] = place[b];
            living.bins.last[own] = place[b] + rows_in(criterion, cells + b * channels, channels);
        }
        first += __popc(vote);
    }
}

// Grid: nodes; block: one warp. As choose_boundary of choose.cu; list the living bins of the
// leading columns.
extern "C" __global__ void __launch_bounds__(32, 1) mark_leading(
    Rules rules, Table table, Level level, Boundaries boundaries, Living living
) {
    const i64 j = blockIdx.x;
    const i64* total = level.totals + j * rules.channels;
    i32 leading;
    const Cut best = boundaries.choose(rules, total, j, table.columns, leading);
    if (leading >= 0) mark_column(rules, table, level, living, j, leading, 0, best);
}

// Grid: nodes x columns; block: one warp. List those of all others, whose bar the cuts in the
// leading columns raise.
extern "C" __global__ void __launch_bounds__(32, 1) mark_others(
    Rules rules, Table table, Level level, const double* bounds, Visits visits, const i64* cuts,
    const i32* lead, Living living
) {
    const i64 columns = table.columns, at = blockIdx.x, f = at % columns, j = at / columns;
    if (f == lead[j]) return;
    if (threadIdx.x == 0) living.found.number[at] = 0;
    if (living.tally[OVERFLOWS] != 0 || !visits.include(j, f, columns)) return;
    Cut best = ((const Cut*)cuts)[j];
    if (lead[j] >= 0) best = living.found.better(best, j * columns + lead[j]);
    if (bounds[at] >= bar_of(rules.criterion, best, level.totals + j * rules.channels))
        mark_column(rules, table, level, living, j, f, 1, best);
}

// Grid: chunks of entries. Put the rows of the living bins of the leading columns, or of all
// others, into slots, each with the key of its value.
extern "C" __global__ void __launch_bounds__(256) gather_living(
    const Bits* values, Table table, const i32* entries, Chunks of, const i32* lead, i64 others,
    Living living, Bits* keys, i32* items
) {
    if (living.overflows()) return;
    const i64 c = blockIdx.x, j = of.owner[c], first = of.first[c], columns = table.columns;
    const i64 own = lead[j], looked = others ? columns : 1;
    if (!others && own < 0) return;
    for (i64 item = threadIdx.x; item < (of.last[c] - first) * looked; item += blockDim.x) {
        const i64 f = others ? item % looked : own;
        if ((f == own) == (others != 0) || living.found.number[j * columns + f] == 0) continue;
        const i64 row = entries[first + item / looked];
        const i64 code = table.codes[row * table.stride + f];
        const i64 bin = j * table.offset[columns] + table.offset[f] + code;
        if (living.place[bin] < 0) continue;
        const i64 slot = living.place[bin] + atomicAdd(&living.taken[bin], 1u);
        keys[slot] = key_of(values[row * columns + f]);
        items[slot] = i32(row);
    }
}

// A warp: sort n keys, and their items along, with room for the next power of two.
__device__ void sort_slots(Bits* keys, i32* items, i64 n) {
    const int lane = threadIdx.x;
    i64 size = 2;
    while (size < n) size *= 2;
    for (i64 i = n + lane; i < size; i += 32) {
        keys[i] = MISSING_KEY;
        items[i] = -1;
    }
    __syncwarp();
    for (i64 run = 2; run <= size; run *= 2)
        for (i64 step = run / 2; step > 0; step /= 2) {
            for (i64 t = lane; t < size / 2; t += 32) {
                const i64 low = 2 * t - (t & (step - 1)), high = low + step;
                const Bits a = keys[low], b = keys[high];
                if ((low & run) == 0 ? a <= b : a >= b) continue;
                const i32 item = items[low];
                keys[low] = b;
                keys[high] = a;
                items[low] = items[high];
                items[high] = item;
            }
            __syncwarp();
        }
}

// Block: one warp; blocks take the listed bins in turn. The best cut inside each. A lane has a
// piece of the rows; `lefts` has room for 32 x channels a block.
extern "C" __global__ void __launch_bounds__(32, 1) scan_living(
    Rules rules, Table table, Level level, Monotonic held, Rows rows, i64 others, Living living,
    const Bits* keys, const i32* items, i64* lefts
) {
    __shared__ Bits own_keys[MOST_SORTED];
    __shared__ i32 own_items[MOST_SORTED];
    if (living.overflows()) return;
    const int lane = threadIdx.x;
    const i64 channels = rules.channels, bins = table.offset[table.columns];
    const i64 begin = others * living.rest, end = begin + living.tally[BINS + others];
    const Strided left = {lefts + blockIdx.x * channels * 32 + lane, 32};
    for (i64 i = begin + blockIdx.x; i < end; i += gridDim.x) {
        const i64 at = living.bins.column[i], j = at / table.columns;
        const i64 slot = living.bins.first[i], n = living.bins.last[i] - slot;
        const i32 b = living.bins.bin[i];
        for (i64 s = lane; s < n; s += 32) {
            own_keys[s] = keys[slot + s];
            own_items[s] = items[slot + s];
        }
        sort_slots(own_keys, own_items, n);
        const i64 piece = (n - 1 + 31) / 32;  // no cut follows the last row
        const i64 first = lane * piece;
        const i64 last = first + piece < n - 1 ? first + piece : n - 1;
        sum_slots(rows, channels, own_items, first, last, left);
        const i64 cell = (j * bins + table.offset[at % table.columns] + b) * channels;
        const Cell* inside = level.histograms + cell + (slot_of(level.slots, j) - j) * bins * channels;
        for (i64 k = 0; k < channels; ++k) {
            const i64 own = left[k];
            left[k] = level.cumulatives[cell + k] - i64(inside[k]) + inclusive_sum(own) - own;
        }
        Cut cut = no_cut();
        if (first < last)
            cut = scan_piece(
                rules, table, level, held, rows, own_keys, own_items, at, b, first, last, left
            );
        cut = first_cut(cut);
        if (lane == 0) ((Cut*)living.found.cuts)[i] = cut;
        __syncwarp();
    }
}
