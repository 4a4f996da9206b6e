// Candidate bins, and the scan of their sorted rows.

// True if the best cut may be inside a bin of n rows that follows `before`, missing values right.
__device__ __forceinline__ bool is_candidate(
    const Rules& rules, BeforeBin before, const Cell* missing, i64 n, const i64* total,
    double needed
) {
    const Criterion& criterion = rules.criterion;
    for (int side = 0; n > 1 && side < (missing ? 2 : 1); ++side) {
        if (side) before.missing = missing;
        if (!cut_inside(rules, before, n, total)) continue;
        const double most = bound(criterion, before, before.bin, total);
        if (most < needed) continue;
        if (tighten(criterion, before, before.bin, total, most, needed) >= needed) return true;
    }
    return false;
}

// A block: mark the bins of column f of node j that may contain the best cut. place[] becomes the
// first place of a bin among those of the column, -1 where it is no candidate, as the bin of
// missing values never is. take() returns the number of places that its rows need, 0 for others.
// Returns the number of all places.
__device__ __forceinline__ i64 mark_bins(
    const Rules& rules, const Table& table, const Level& level, i64 j, i64 f, double needed,
    i32* place, const auto& take
) {
    const i64 channels = rules.channels, bins = table.offset[table.columns];
    const i64* total = level.totals + j * channels;
    const Column column = column_of(table, f);
    const Cell* cells = level.cells(table, j, channels);
    const Cell* missing = missing_cell(column, cells, channels);
    i64 used = 0;
    for (i64 b0 = 0; b0 < column.value_bins; b0 += blockDim.x) {
        const i64 b = column.first + b0 + threadIdx.x;
        const bool exists = b0 + threadIdx.x < column.value_bins;
        const Cell* bin = cells + b * channels;
        const i64 rows = exists && !table.single[b] ? rows_in(rules.criterion, bin, channels) : 0;
        const BeforeBin before = {level.cumulatives + (j * bins + b) * channels, bin, nullptr};
        const i64 n = is_candidate(rules, before, missing, rows, total, needed) ? rows : 0;
        const i64 before_it = sum_before(take(b, exists, n), used);
        if (exists) place[b] = n > 0 ? i32(before_it) : -1;
    }
    if (threadIdx.x == 0 && column.has_missing) place[column.first + column.value_bins] = -1;
    return used;
}

#define MOST_SORTED 1024  // rows that a warp sorts in shared memory; not measured

// The rows of a candidate in the order of their values.
struct Sorted {
    const Bits* keys;
    const i32* rows;
    i64 size;
    Bits behind;  // key of the row after the last

    __device__ __forceinline__ Bits key(i64 i) const { return i < size ? keys[i] : behind; }
};

// A warp: sort n slots by their keys into memory whose size is the next power of two.
__device__ void sort_slots(
    const Bits* from_keys, const i32* from_items, i64 n, Bits* keys, i32* items
) {
    const int lane = threadIdx.x;
    i64 size = 2;
    while (size < n) size *= 2;
    for (i64 i = lane; i < size; i += 32) {
        keys[i] = i < n ? from_keys[i] : MISSING_KEY;
        items[i] = i < n ? from_items[i] : -1;
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

// The statistics of the rows first .. last.
__device__ void sum_rows(
    const Rows& rows, i64 channels, const Sorted& sorted, i64 first, i64 last, auto sum
) {
    for (i64 k = 0; k < channels; ++k) sum[k] = 0;
    for (i64 i = first; i < last; ++i) {
        const i64 row = sorted.rows[i];
#if REGRESSION
        sum[0] += weight_of(rows.weight, row);
        sum[1] += rows.target[row];
#else
        sum[rows.target[row]] += weight_of(rows.weight, row);
#endif
        if (WEIGHTED) sum[channels - 1] += 1;
    }
}

// The better of `cut` and the best cut behind one of the rows first .. last, where `left` are the
// statistics before them; `left` is updated.
__device__ Cut scan_rows(
    const Rules& rules, const Constraint& constraint, const Rows& rows, const Sorted& sorted,
    i64 first, i64 last, auto left, const i64* total, Cut found, Cut cut
) {
    const Criterion& criterion = rules.criterion;
    const i64 channels = rules.channels, whole = rows_in(criterion, total, channels);
    const i64 all_weight = weight_in(criterion, total);
    const i64 before = rows_in(criterion, left, channels);
    State state = begin(criterion, left, total);
    for (i64 i = first; i < last; ++i) {
        const i64 row = sorted.rows[i];
        const Bits key = sorted.keys[i], next = sorted.key(i + 1);
        move(criterion, state, left, total, rows.target[row], weight_of(rows.weight, row));
        if (key == next) continue;
        const i64 n = before + i + 1 - first;
        if (!rules.limits.admit(n, whole, state.weight_left, all_weight)) continue;
        if (!constraint.admits(criterion, state, left, total)) continue;
        found.score = score(criterion, state, left, total);
        found.threshold = midpoint(value_of(key), value_of(next));
        if (precedes(found, cut)) cut = found;
    }
    return cut;
}

// One lane: the best cut behind one of the rows first .. last of a bin, missing values right and
// left; `left` are the statistics before them, and is used up.
__device__ Cut scan_piece(
    const Rules& rules, const Table& table, const Level& level, const Monotonic& monotonic,
    const Rows& rows, const Sorted& sorted, i64 pair, i32 bin, i64 first, i64 last, auto left
) {
    const i64 channels = rules.channels, f = pair % table.columns, j = pair / table.columns;
    const i64* total = level.totals + j * channels;
    const Constraint constraint = monotonic.of(j, f);
    Cut found = {0.0, i32(f), 0, bin, 0, 0.0, level.rank(j, f)};
    Cut cut =
        scan_rows(rules, constraint, rows, sorted, first, last, left, total, found, no_cut());
    const Cell* cells = level.cells(table, j, channels);
    const Cell* missing = missing_cell(column_of(table, f), cells, channels);
    if (missing) {
#if !REGRESSION
        for (i64 i = first; i < last; ++i) {
            const i64 row = sorted.rows[i];
            left[rows.target[row]] -= weight_of(rows.weight, row);
        }
#endif
        for (i64 k = 0; k < channels; ++k) left[k] += i64(missing[k]);
        found.missing_left = 1;
        cut = scan_rows(rules, constraint, rows, sorted, first, last, left, total, found, cut);
    }
    return cut;
}

// A warp: the same of the rows 0 .. last, a piece of them per lane, result in every lane; `left` is
// scratch of the lane.
__device__ Cut scan_sorted(
    const Rules& rules, const Table& table, const Level& level, const Monotonic& monotonic,
    const Rows& rows, const Sorted& sorted, i64 pair, i32 bin, i64 last, const BeforeBin& before,
    auto left
) {
    const i64 channels = rules.channels, piece = (last + 31) / 32;
    const i64 begin = threadIdx.x * piece, end = begin + piece < last ? begin + piece : last;
    sum_rows(rows, channels, sorted, begin, end, left);
    for (i64 k = 0; k < channels; ++k) {
        const i64 count = left[k];
        left[k] = before[k] + inclusive_sum(count) - count;
    }
    Cut cut = no_cut();
    if (begin < end)
        cut = scan_piece(rules, table, level, monotonic, rows, sorted, pair, bin, begin, end, left);
    return warp_first(cut);
}
