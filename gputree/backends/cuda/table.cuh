// Structs that launchers pass to kernels: kernels.py reads their layouts.
struct Table {  // codes, and properties of its columns
    const u8* codes;
    i64 stride;  // bytes of a row of codes
    i64 columns;
    const i64* offset;  // (columns + 1): first bin of each column among all
    const u8* missing;  // 1: the last bin of the column has the missing values
    const u8* single;   // bins of one value
    const u8* by_code;  // columns whose cuts are by code, not by value
    const i64* categories;   // of categorical columns, 0 of numeric ones
    const double* highest;  // (columns, 256): value of each bin
    const double* lowest;
    const i32* origin;  // of rows of several trees: rows of the table; null where rows are these

    __device__ __forceinline__ i64 row_of(i64 row) const { return origin ? origin[row] : row; }

    __device__ __forceinline__ const u8* codes_of(i64 row) const {
        return codes + row_of(row) * stride;
    }
};

// The bin of missing values of a column, -1 where it has none.
__device__ __forceinline__ i64 missing_bin_of(const Table& table, i64 f) {
    return table.missing[f] ? table.offset[f + 1] - table.offset[f] - 1 : -1;
}

// The number of the histogram of node j: slots[j], or j where `slots` is null.
__device__ __forceinline__ i64 slot_of(const i64* slots, i64 j) { return slots ? slots[j] : j; }

struct Rows {  // statistics of rows, in units; null where there are none
    const Target* target;
    const i64* weight;
    const i64* square;
    const i64* square_rest;
};

// True of an item behind the number of those that there are; where `number` is null, all are.
__device__ __forceinline__ bool is_behind(const i64* number, i64 item) {
    return number && item >= *number;
}

struct Chunks {  // pieces of nodes: entries first[c] .. last[c], of node owner[c]
    const i64* owner;
    const i64* first;
    const i64* last;
    const i64* number;  // of pieces, or null: as many as blocks

    __device__ __forceinline__ bool lack(i64 c) const { return is_behind(number, c); }
};
