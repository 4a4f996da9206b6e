// Sub-bins of candidate bins: their offsets and statistics.

// Sub-bin of a value among the `size` of its bin. In float64, which keeps subnormal numbers.
__device__ __forceinline__ i64 sub_bin_in(double low, double scale, u32 size, Bits bits) {
    const double place = (0.5 * value_of(key_of(bits)) - low) * scale * double(size);
    const double top = double(size - 1);
    return place > 0.0 ? i64(place < top ? place : top) : 0;
}

// Offsets of the sub-bins of each column of a node and of its bins, and the shift and scale of half
// a value.
struct Grid {
    const i64* start;
    const i32* place;
    const u32* taken;
    const double* low;
    const double* scale;

    __device__ bool has_any(i64 column) const { return start[column] < start[column + 1]; }

    // The sub-bin of a row's value in a column of node j with sub-bins, and its bits; -1 in bins
    // without.
    __device__ i64 cell_of(
        const Table& table, i64 j, i64 f, i64 row, const Bits* values, Bits& bits
    ) const {
        const i64 bin = table.offset[f] + table.codes[row * table.stride + f];
        const i64 index = j * table.offset[table.columns] + bin;
        if (place[index] < 0) return -1;
        bits = values[row * table.columns + f];
        const i64 first = start[j * table.columns + f] + place[index];
        return first + sub_bin_in(low[bin], scale[bin], taken[index], bits);
    }
};

// Statistics and places of sub-bins.
struct SubBins {
    Cell* counts;
    i64* sums;    // up to each, from the column's first bin
    i32* bin_of;  // in the column
    i32* place;  // first slot among those of the column, -1 where it is no candidate
    u32* taken;  // of its slots
    i32* candidates;  // of a column, listed from the first of its sub-bins on
};

// Pairs of a row and a column in candidate bins, in any order: the first `room` of them.
struct PairList {
    i64 room;
    i64* number;  // of all pairs
    i32* cells;  // the sub-bin of each
    i32* rows;
    Bits* values;
};
