// Exact cuts inside sub-bins whose bound reaches the best score so far: see sub_bins.cu.
//
//   sub-bins of a column   |   |   |xxx|xx|  |xxx|     x: candidates; their rows are gathered,
//   slots                  |xxxxxxxxxxx|xxxxx|xxx|     sorted by value,
//   warps                  |a          |b    |c  |     and scanned, a warp a candidate
//
// A warp sorts its candidate in shared memory; where one has too many rows, the host has sorted all
// slots by (sub-bin, value).

// Slots of the candidates of the columns begin .. end, numbered through all nodes.
struct Slots {
    i64 begin, end;
    const i64* start;  // each column's first
    u32* segment;      // the first of the slot's candidate; or null
    Bits* keys;        // of values
    i32* items;        // rows

    // A thread: put a row into a slot of its candidate, with the key of its value.
    __device__ __forceinline__ void put(
        const SubBins& sub_bins, i64 column, i64 cell, i64 row, Bits value
    ) const {
        const i64 base = start[column] + sub_bins.place[cell];
        const i64 slot = base + atomicAdd(&sub_bins.taken[cell], 1u);
        if (segment) segment[slot] = u32(base);
        keys[slot] = key_of(value);
        items[slot] = i32(row);
    }
};

// A thread a listed pair. Put those of candidates into slots.
extern "C" __global__ void __launch_bounds__(256) gather_listed(
    PairList list, i64 number, Grid grid, SubBins sub_bins, Slots slots
) {
    const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= number) return;
    const i64 cell = list.cells[i];
    if (sub_bins.place[cell] < 0) return;
    if (cell < grid.start[slots.begin] || cell >= grid.start[slots.end]) return;
    const auto is_behind = [&](i64 column) { return grid.start[column] > cell; };
    const i64 column = first_behind(slots.begin, slots.end, is_behind) - 1;
    slots.put(sub_bins, column, cell, list.rows[i], list.values[i]);
}

// Grid: chunks of entries. The same without the list, which does not hold all pairs.
extern "C" __global__ void __launch_bounds__(256, 1) gather_rows(
    const Bits* values, Table table, const i32* entries, Chunks of, Grid grid, SubBins sub_bins,
    Slots slots
) {
    const i64 c = blockIdx.x, j = of.owner[c], columns = table.columns;
    const auto is_searched = [&](i64 f) {
        const i64 column = j * columns + f;
        return column >= slots.begin && column < slots.end &&
               slots.start[column] < slots.start[column + 1];
    };
    visit_searched(of, c, entries, columns, is_searched, [&](i64 f, i64 row) {
        Bits value;
        const i64 cell = grid.cell_of(table, j, f, row, values, value);
        if (cell < 0 || sub_bins.place[cell] < 0) return;
        slots.put(sub_bins, j * columns + f, cell, row, value);
    });
}

// A warp: the minimum key of n slots, in every lane.
__device__ Bits least_key(const Bits* keys, i64 n) {
    Bits lowest = MISSING_KEY;
    for (i64 i = threadIdx.x; i < n; i += 32) lowest = keys[i] < lowest ? keys[i] : lowest;
    for (int distance = 16; distance > 0; distance /= 2) {
        const Bits other = __shfl_xor_sync(ALL_LANES, lowest, distance);
        if (other < lowest) lowest = other;
    }
    return lowest;
}

// Block: one warp; blocks process the candidates of the columns up to `end` in turn: those of
// pair p are first[p] .. first[p + 1], below 0 where others have searched it, and their slots
// begin at start[p]. The best cut of each, and between its last row and the next one's first
// in the same bin. `lefts` as in scan_inside. Slots are sorted before, or (`sorts`) here.
extern "C" __global__ void __launch_bounds__(32, 1) scan_candidates(
    Rules rules, Table table, Level level, Monotonic monotonic, Rows rows, i64 end, Grid grid,
    SubBins sub_bins, const i64* start, const i64* first, i64 sorts, const Bits* keys,
    const i32* items, i64* lefts, i64* cuts
) {
    __shared__ Bits own_keys[MOST_SORTED + 1];
    __shared__ i32 own_items[MOST_SORTED];
    const i64 channels = rules.channels;
    const Strided left = {lefts + blockIdx.x * channels * 32 + threadIdx.x, 32};
    for (i64 i = blockIdx.x; i < first[end]; i += gridDim.x) {
        const i64 pair = first_behind(0, end, [&](i64 column) { return first[column] > i; }) - 1;
        const i64 candidate = grid.start[pair] + i - first[pair],
                  c = sub_bins.candidates[candidate];
        const i32 bin = sub_bins.bin_of[c];
        const BeforeBin before = {
            sub_bins.sums + c * channels, sub_bins.counts + c * channels, nullptr
        };
        const i64 next = i + 1 < first[pair + 1] ? sub_bins.candidates[candidate + 1] : -1;
        const bool is_last = next < 0 || sub_bins.bin_of[next] != bin;
        const i64 slot = start[pair] + sub_bins.place[c];
        const i64 n = rows_in(rules.criterion, before.bin, channels);
        const Bits* sorted = keys + slot;
        const i32* order = items + slot;
        if (sorts) {
            sort_slots(sorted, order, n, own_keys, own_items);
            const Cell* behind = sub_bins.counts + next * channels;
            const i64 rows_behind = is_last ? 0 : rows_in(rules.criterion, behind, channels);
            const Bits key_behind = least_key(sorted + n, rows_behind);
            if (threadIdx.x == 0) own_keys[n] = key_behind;
            __syncwarp();
            sorted = own_keys;
            order = own_items;
        }
        const Cut cut = scan_sorted(
            rules, table, level, monotonic, rows, sorted, order, pair, bin, 0,
            n - (is_last ? 1 : 0), before, left
        );
        if (threadIdx.x == 0) ((Cut*)cuts)[i] = cut;
        __syncwarp();
    }
}

// Grid: nodes; block: one warp. The better of each node's cut and those of its candidates, which
// are start[] of its columns among begin .. end, numbered through all nodes.
extern "C" __global__ void __launch_bounds__(32) pick_cuts(
    i64 begin, i64 end, i64 columns, const i64* start, const i64* found_cuts, i64* cuts
) {
    const i64 j = blockIdx.x;
    const i64 first = j * columns > begin ? j * columns : begin;
    const i64 last = (j + 1) * columns < end ? (j + 1) * columns : end;
    if (first >= last) return;
    Cut cut = ((Cut*)cuts)[j];
    for (i64 c = start[first] + threadIdx.x; c < start[last]; c += 32) {
        const Cut found = ((const Cut*)found_cuts)[c];
        if (found.score > -infinity() && precedes(found, cut)) cut = found;
    }
    cut = warp_first(cut);
    __syncwarp();
    if (threadIdx.x == 0) ((Cut*)cuts)[j] = cut;
}
