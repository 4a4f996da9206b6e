// Sub-bins of candidate bins, and what is known of them.

// Sub-bin of a value among the `size` of its bin. In float64, which keeps subnormal numbers.
__device__ __forceinline__ i64 sub_bin_in(double low, double scale, u32 size, Bits bits) {
    const double place = (0.5 * value_of(key_of(bits)) - low) * scale * double(size);
    const double top = double(size - 1);
    return place > 0.0 ? i64(place < top ? place : top) : 0;
}

// How many sub-bins each column of a node has and where they begin, those of its bins, and what
// half of a value is less and times. Where `start` is null, bins are not subdivided.
struct Grid {
    const i64* used;
    const i64* start;
    const i32* place;
    const u32* taken;
    const double* low;
    const double* scale;

    // The bin, or sub-bin, of a row's value in a column of node j that has any; -1 where it is no
    // candidate's.
    __device__ i64 cell_of(const Table& table, i64 j, i64 f, i64 row, const Bits* values) const {
        const i64 bin = table.offset[f] + table.codes[row * table.stride + f];
        const i64 at = j * table.offset[table.columns] + bin;
        if (place[at] < 0 || !start) return place[at] < 0 ? -1 : at;
        const Bits bits = values[row * table.columns + f];
        const i64 first = start[j * table.columns + f] + place[at];
        return first + sub_bin_in(low[bin], scale[bin], taken[at], bits);
    }
};

// What is counted in sub-bins; null for bins, whose histograms and cumulatives a level has.
struct SubBins {
    Cell* counts;
    i64* sums;    // up to each, from the column's first bin
    i32* bin_of;  // in the column

    // Statistics of the bins of node j, numbered through all nodes, or of sub-bins.
    __device__ const Cell* counts_in(
        const Level& level, const Table& table, i64 j, i64 channels
    ) const {
        if (counts) return counts;
        return level.cells(table, j, channels) - j * table.offset[table.columns] * channels;
    }
};
