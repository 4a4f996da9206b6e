// Exact cuts inside sub-bins whose bound reaches the best score so far: see sub_bins.cu.
//
//   sub-bins of a column   |   |   |xxx|xx|  |xxx|     x: candidates; their rows are gathered,
//   slots                  |xxxxxxxxxxx|xxxxx|xxx|     sorted by value,
//   warps                  |a          |b    |c  |     and scanned, a warp a candidate
//
// A warp sorts its candidate in shared memory; where one has too many rows, the host has sorted all
// slots by (candidate, value).

// Grid: chunks of entries. Put the rows of candidates into slots: from the list, if it holds all
// pairs.
extern "C" __global__ void __launch_bounds__(256, 1) gather_rows(
    const Bits* values, Table table, const i32* entries, Chunks of, Grid grid, SubBins sub_bins,
    PairList list, Slots slots, const i64* tally
) {
    if (tally[OVERFLOWS] != 0) return;
    const i64 c = blockIdx.x, number = tally[PAIRS];
    if (number <= list.room) {
        const i64 step = i64(gridDim.x) * blockDim.x;
        for (i64 i = c * blockDim.x + threadIdx.x; i < number; i += step) {
            const i64 cell = list.cells[i];
            if (sub_bins.slot[cell] >= 0)
                slots.put(sub_bins, cell, list.rows[i], list.values[i]);
        }
        return;
    }
    if (of.lack(c)) return;
    const i64 j = of.owner[c], columns = table.columns;
    const auto is_searched = [&](i64 f) { return grid.searched[j * columns + f] != 0; };
    visit_searched(of, c, entries, columns, is_searched, [&](i64 f, i64 row) {
        Bits value;
        const i64 cell = grid.cell_of(table, j, f, row, values, value);
        if (cell >= 0 && sub_bins.slot[cell] >= 0) slots.put(sub_bins, cell, row, value);
    });
}

// Block: one warp; blocks process the candidates in turn, those that have slots. The best cut of
// each, and behind its last row if rows of the same bin follow; a lane has a piece of the rows.
// `lefts` is of size 32 x channels per block.
extern "C" __global__ void __launch_bounds__(32, 1) scan_candidates(
    Rules rules, Table table, Level level, Monotonic monotonic, Rows rows, SubBins sub_bins,
    Slots slots, Found found, i64* lefts
) {
    __shared__ Bits own_keys[MOST_SORTED];
    __shared__ i32 own_rows[MOST_SORTED];
    if (found.tally[OVERFLOWS] != 0) return;
    const i64 channels = rules.channels, end = found.tally[CANDIDATES];
    const Strided left = {lefts + blockIdx.x * channels * 32 + threadIdx.x, 32};
    for (i64 i = blockIdx.x; i < end; i += gridDim.x) {
        const i64 c = sub_bins.candidates[i], first = sub_bins.slot[c];
        if (!slots.has(first)) continue;
        const i64 pair = sub_bins.column[c], next = sub_bins.next[c];
        const BeforeBin before = {
            sub_bins.sums + c * channels, sub_bins.counts + c * channels, nullptr
        };
        // Both sides of the best cut between sub-bins are candidates.
        const bool is_last = next < 0 || sub_bins.slot[next] < 0;
        const Bits behind = is_last ? MISSING_KEY : sub_bins.least[next];
        const i64 n = rows_in(rules.criterion, before.bin, channels), slot = first - slots.begin;
        Sorted sorted = {slots.keys + slot, slots.items + slot, n, behind};
        if (n <= MOST_SORTED) {
            sort_slots(sorted.keys, sorted.rows, n, own_keys, own_rows);
            sorted.keys = own_keys;
            sorted.rows = own_rows;
        }
        const Cut cut = scan_sorted(
            rules, table, level, monotonic, rows, sorted, pair, sub_bins.bin_of[c],
            n - (is_last ? 1 : 0), before, left
        );
        if (threadIdx.x == 0) found.add(i, pair / table.columns, cut);
        __syncwarp();
    }
}
