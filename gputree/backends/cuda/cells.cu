// Count the rows of nodes by ranges of their values, or by category. Shards report these counts, so
// that cuts are searched without their rows; see gputree.backends.sharded.cells.

// The key of a value as float64, for tables of either precision: keys of all shards are comparable.
__device__ __forceinline__ u64 wide_key_of(Bits bits) {
#if VALUE_BITS == 64
    return key_of(bits);
#else
    const i64 wide = __double_as_longlong(value_of(key_of(bits)));
    return wide < 0 ? ~u64(wide) : u64(wide) | 0x8000000000000000ull;
#endif
}

// Pairs node_pairs[j] .. node_pairs[j + 1] are columns of node j, and the intervals
// pair_intervals[p] .. pair_intervals[p + 1] are of pair p, ascending; their cells begin at first.
struct Intervals {
    i64 key_shift;
    const i64* node_pairs;
    const i64* column;
    const i64* pair_intervals;
    const u64* low;
    const u64* high;  // included
    const u64* shift;
    const i64* first;

    // The cell of a key in a pair, or -1.
    __device__ i64 cell_of(i64 pair, u64 key) const {
        const i64 begin = pair_intervals[pair], end = pair_intervals[pair + 1];
        const i64 interval = first_behind(begin, end, [&](i64 i) { return low[i] > key; }) - 1;
        if (interval < begin || key > high[interval]) return -1;
        return first[interval] + i64((key - low[interval]) >> shift[interval]);
    }
};

// Grid: chunks of entries. Add them to the cells of their keys, with the minimum and maximum key of
// each; neighbouring threads read the columns of a row.
extern "C" __global__ void __launch_bounds__(256) count_intervals(
    const Bits* values, i64 columns, Rows rows, const i32* entries, Chunks chunks,
    Intervals intervals, i64 channels, Cell* counts, u64* lowest, u64* highest
) {
    const i64 c = blockIdx.x, j = chunks.owner[c], first = chunks.first[c];
    const i64 begin = intervals.node_pairs[j], pairs = intervals.node_pairs[j + 1] - begin;
    for (i64 item = threadIdx.x; item < (chunks.last[c] - first) * pairs; item += blockDim.x) {
        const i64 pair = begin + item % pairs, row = entries[first + item / pairs];
        const u64 key = wide_key_of(values[row * columns + intervals.column[pair]]);
        const i64 cell = intervals.cell_of(pair, key >> intervals.key_shift);
        if (cell < 0) continue;  // missing values are above all ranges
        add_row<InGlobal>(counts + cell * channels, channels, rows, row);
        atomicMin(lowest + cell, key);
        atomicMax(highest + cell, key);
    }
}

// Grid: chunks of entries. Add them to the cell of their category of a column, the last one for
// missing values; each node has `categories` + 1 cells.
extern "C" __global__ void __launch_bounds__(256) count_categories(
    const Bits* values, i64 columns, i64 column, i64 categories, Rows rows, const i32* entries,
    Chunks chunks, i64 channels, Cell* counts
) {
    const i64 c = blockIdx.x;
    Cell* node_cells = counts + chunks.owner[c] * (categories + 1) * channels;
    for (i64 i = chunks.first[c] + threadIdx.x; i < chunks.last[c]; i += blockDim.x) {
        const i64 row = entries[i];
        const Bits key = key_of(values[row * columns + column]);
        const i64 cell = key == MISSING_KEY ? categories : i64(value_of(key));
        add_row<InGlobal>(node_cells + cell * channels, channels, rows, row);
    }
}
