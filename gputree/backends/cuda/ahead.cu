// The nodes of a level, made on the device from the splits of the level above, and their pieces: no
// kernel of a level needs the host. A level has fewer nodes than memory is for, and the blocks
// behind them return at once.

// Nodes that were split, in order; without `records`, nodes that are to be split.
struct Above {
    const i64* number;
    const i64* begin;
    const i64* end;
    const u64* keys;
    const i64* records;
};

// Nodes of a level, in order: at most `most`.
struct OpenNodes {
    i64 most;
    i64* numbers;  // of nodes; and of pieces to be counted, searched and split
    i64* begin;
    i64* end;
    u64* keys;
    i64* low;  // interval of a target that all rows may have: unrestricted
    i64* high;
    i64* whole;  // node above whose histogram this node's is subtracted from, or -1
    i64* part;   // node of this level whose histogram is subtracted
    i64* count_begin;  // entries that are counted into the histogram
    i64* count_end;
};

// Pieces of at most `most` entries, but fewer, `fewest` at least, where there would be less than
// `filling` of them.
struct Pieces {
    i64 most, fewest, filling;
    i64* start;  // of nodes: the first piece
    i64* owner;
    i64* first;
    i64* last;
};

// A block: cut nodes into pieces; returns how many there are.
__device__ i64 cut_nodes(const Pieces& pieces, i64 nodes, const i64* begin, const i64* end) {
    i64 rows = 0, number = 0;
    for (i64 j0 = 0; j0 < nodes; j0 += blockDim.x) {
        const i64 j = j0 + threadIdx.x;
        sum_before(j < nodes ? end[j] - begin[j] : 0, rows);
    }
    const i64 share = (rows + pieces.filling - 1) / pieces.filling;
    const i64 least = share > pieces.fewest ? share : pieces.fewest;
    const i64 size = least < pieces.most ? least : pieces.most;
    // the pieces of the nodes before j0 are numbered
    for (i64 j0 = 0; j0 < nodes; j0 += blockDim.x) {
        const i64 j = j0 + threadIdx.x;
        const i64 n = j < nodes ? (end[j] - begin[j] + size - 1) / size : 0;
        const i64 start = sum_before(n, number);
        if (j < nodes) pieces.start[j] = start;
    }
    __syncthreads();
    for (i64 j = threadIdx.x >> 5; j < nodes; j += blockDim.x >> 5)
        for (i64 i = begin[j] + (threadIdx.x & 31) * size; i < end[j]; i += 32 * size) {
            const i64 c = pieces.start[j] + (i - begin[j]) / size;
            pieces.owner[c] = j;
            pieces.first[c] = i;
            pieces.last[c] = i + size < end[j] ? i + size : end[j];
        }
    return number;
}

// Siblings: the entries begin .. middle and middle .. end.
struct Siblings {
    i64 begin, middle, end;

    __device__ __forceinline__ i64 first(int side) const { return side ? middle : begin; }
    __device__ __forceinline__ i64 last(int side) const { return side ? end : middle; }
    __device__ __forceinline__ i64 rows(int side) const { return last(side) - first(side); }
    __device__ __forceinline__ int larger() const { return rows(1) >= rows(0); }
};

// One block: open the children of `fewest` rows or more of the nodes above. Of two that are open,
// the smaller is counted; a larger one alone is its parent less its sibling, which is counted in its
// place. Nodes beyond `most` are left out, and the level's search begins with an empty `tally`.
extern "C" __global__ void __launch_bounds__(256, 1) open_level(
    const __grid_constant__ Above above, i64 fewest, const __grid_constant__ OpenNodes level,
    const __grid_constant__ Pieces counted, const __grid_constant__ Pieces searched,
    const __grid_constant__ Pieces split, i64* tally, i64 words
) {
    const i64 parents = *above.number;
    i64 opened = 0;  // children of the parents before j0
    for (i64 j0 = 0; j0 < parents; j0 += blockDim.x) {
        const i64 j = j0 + threadIdx.x;
        Siblings siblings = {0, 0, 0};
        if (j < parents) {
            const Record* record = above.records ? (const Record*)above.records + j : nullptr;
            if (!record) siblings = {above.begin[j], above.end[j], above.end[j]};
            else if (record->column >= 0) siblings = {above.begin[j], record->middle, above.end[j]};
        }
        const bool opens[2] = {siblings.rows(0) >= fewest, siblings.rows(1) >= fewest};
        const i64 place = sum_before(opens[0] + opens[1], opened);
        const i64 places[2] = {place, place + opens[0]};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const i64 p = places[side], q = places[1 - side];
            if (!opens[side] || p >= level.most) continue;
            const bool subtracts = above.records && side == siblings.larger();
            const bool has_sibling = opens[1 - side] && q < level.most;
            const int count = subtracts ? 1 - side : side;
            level.begin[p] = siblings.first(side);
            level.end[p] = siblings.last(side);
            level.keys[p] = above.records ? child_key(above.keys[j], side) : above.keys[j];
            level.low[p] = i64(1) << 63;
            level.high[p] = ~(i64(1) << 63);
            level.whole[p] = subtracts ? j : -1;
            level.part[p] = subtracts && has_sibling ? q : p;
            level.count_begin[p] = siblings.first(count);
            level.count_end[p] = subtracts && has_sibling ? siblings.first(count)
                                                          : siblings.last(count);
        }
    }
    const i64 nodes = opened < level.most ? opened : level.most;
    __syncthreads();
    const i64 counts = cut_nodes(counted, nodes, level.count_begin, level.count_end);
    const i64 searches = cut_nodes(searched, nodes, level.begin, level.end);
    const i64 splits = cut_nodes(split, nodes, level.begin, level.end);
    if (threadIdx.x < words) tally[threadIdx.x] = 0;
    if (threadIdx.x != 0) return;
    level.numbers[0] = nodes;
    level.numbers[1] = counts;
    level.numbers[2] = searches;
    level.numbers[3] = splits;
}
