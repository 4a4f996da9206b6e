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
    i64* start;     // of each column, numbered through all nodes
    i64* size;      // sub-bins of the column
    i32* searched;  // 1 if it has candidates
    i32* place;     // of each bin: its first sub-bin among those of the column, or -1
    u32* taken;     // sub-bins of the bin
    const double* low;
    const double* scale;

    __device__ bool has_any(i64 column) const { return size[column] > 0; }

    // The sub-bin of a row's value in a column of node j with sub-bins, and its bits; -1 in bins
    // without.
    __device__ i64 cell_of(
        const Table& table, i64 j, i64 f, i64 row, const Bits* values, Bits& bits
    ) const {
        const i64 bin = table.offset[f] + table.codes_of(row)[f];
        const i64 index = j * table.offset[table.columns] + bin;
        if (place[index] < 0) return -1;
        bits = values[table.row_of(row) * table.columns + f];
        const i64 first = start[j * table.columns + f] + place[index];
        return first + sub_bin_in(low[bin], scale[bin], taken[index], bits);
    }
};

// Statistics and slots of sub-bins.
struct SubBins {
    Cell* counts;
    i64* sums;    // up to each, from the column's first bin
    i64* column;  // numbered through all nodes
    i32* bin_of;  // in the column
    i32* next;    // the next one of the bin that has rows, or -1; of those with rows
    i64* slot;    // its first one, -1 where it is no candidate
    u32* taken;   // of its slots
    Bits* least;  // minimum key of a candidate's rows, once they are gathered
    i32* candidates;
};

// Pairs of a row and a column in candidate bins, in any order: the first `room` of them.
struct PairList {
    i64 room;
    i32* cells;  // the sub-bin of each
    i32* rows;
    Bits* values;
};

// Memory for the rows of the candidates with slots begin .. end.
struct Slots {
    i64 begin, end;
    u32* segment;  // the first slot of its candidate; or null
    Bits* keys;    // of values
    i32* items;    // rows

    __device__ __forceinline__ bool has(i64 slot) const { return begin <= slot && slot < end; }

    // A thread: put a row of a candidate into one of its slots, with the key of its value.
    __device__ __forceinline__ void put(
        const SubBins& sub_bins, i64 cell, i64 row, Bits value
    ) const {
        const i64 first = sub_bins.slot[cell];
        const Bits key = key_of(value);
        atomicMin(sub_bins.least + cell, key);
        if (!has(first)) return;
        const i64 slot = first - begin + atomicAdd(&sub_bins.taken[cell], 1u);
        if (segment) segment[slot] = u32(first - begin);
        keys[slot] = key;
        items[slot] = i32(row);
    }
};
