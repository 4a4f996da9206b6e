// Statistics that are computed when they are read.
struct Strided {  // channels that are `stride` apart
    i64* first;
    i64 stride;
    __device__ i64& operator[](i64 k) const { return first[k * stride]; }
};

struct AfterBin {  // left of the cut after a bin; `missing` is null where missing values go right
    const i64* cumulative;
    const Cell* missing;
    __device__ i64 operator[](i64 k) const {
        return cumulative[k] + (missing ? i64(missing[k]) : 0);
    }
};

struct BeforeBin {  // left of the cut before a bin
    const i64* cumulative;
    const Cell* bin;
    const Cell* missing;
    __device__ i64 operator[](i64 k) const {
        return cumulative[k] - i64(bin[k]) + (missing ? i64(missing[k]) : 0);
    }
};

// Cells of one column of one node: value bins first, then the bin of missing values, if any.
struct Column {
    i64 first;  // of its bins
    i64 value_bins;
    bool has_missing;
};

__device__ __forceinline__ Column column_of(const Table& table, i64 f) {
    const i64 first = table.offset[f];
    return {first, table.offset[f + 1] - first - table.missing[f], table.missing[f] != 0};
}

struct Level {  // nodes with histograms
    const Cell* histograms;
    const i64* slots;
    const i64* cumulatives;  // sums over the bins of each column, node by node
    const i64* totals;
    const u64* keys;  // of nodes, where ties between columns are broken at random; else null
    const i64* number;  // of nodes, or null: as many as the grid is for

    __device__ __forceinline__ bool lacks(i64 j) const { return is_behind(number, j); }

    __device__ __forceinline__ const Cell* cells(const Table& table, i64 j, i64 channels) const {
        return histograms + slot_of(slots, j) * table.offset[table.columns] * channels;
    }

    // Rank of column f among cuts of equal score in node j.
    __device__ __forceinline__ u64 rank(i64 j, i64 f) const {
        return tie_rank(keys != nullptr, keys ? keys[j] : 0, f);
    }
};

struct Scores {  // (nodes, columns): best boundaries, and the highest bounds of bins
    double* best;
    i32* bins;
    u8* sides;
    double* bounds;

    // Exclude a column from the splits of a node: its bound is NaN, which reaches no other, while
    // -infinity reaches that of a node without a cut.
    __device__ __forceinline__ void exclude(i64 pair) const {
        best[pair] = -infinity();
        bounds[pair] = __longlong_as_double(0x7ff8000000000000ll);
    }

    // A column whose bins are not counted has no known cut, and may have any.
    __device__ __forceinline__ void leave_open(i64 pair) const {
        best[pair] = -infinity();
        bounds[pair] = infinity();
    }

    __device__ __forceinline__ bool excludes(i64 pair) const {
        return bounds[pair] != bounds[pair];
    }
};

// The cell of missing values if the node has any, else null: then only one side is tried.
__device__ inline const Cell* missing_cell(const Column& column, const Cell* cells, i64 channels) {
    if (!column.has_missing) return nullptr;
    const Cell* cell = cells + (column.first + column.value_bins) * channels;
    for (i64 k = 0; k < channels; ++k)
        if (cell[k] != 0) return cell;
    return nullptr;
}
