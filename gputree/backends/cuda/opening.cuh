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

// Number of pieces of at most `size` rows: rows are fewer than 2**31.
__device__ __forceinline__ u32 pieces_of(i64 rows, u32 size) {
    return (u32(rows) + size - 1) / size;
}

// A block: cut nodes into pieces; returns how many there are.
__device__ i64 cut_nodes(const Pieces& pieces, i64 nodes, const i64* begin, const i64* end) {
    i64 rows = 0, number = 0;
    for (i64 j0 = 0; j0 < nodes; j0 += blockDim.x) {
        const i64 j = j0 + threadIdx.x;
        sum_before(j < nodes ? end[j] - begin[j] : 0, rows);
    }
    const u32 share = pieces_of(rows, u32(pieces.filling));
    const u32 least = share > pieces.fewest ? share : u32(pieces.fewest);
    const u32 size = least < pieces.most ? least : u32(pieces.most);
    // the pieces of the nodes before j0 are numbered
    for (i64 j0 = 0; j0 < nodes; j0 += blockDim.x) {
        const i64 j = j0 + threadIdx.x;
        const i64 start = sum_before(j < nodes ? pieces_of(end[j] - begin[j], size) : 0, number);
        if (j < nodes) pieces.start[j] = start;
    }
    __syncthreads();
    const u32 lane = threadIdx.x & 31;
    for (i64 j = threadIdx.x >> 5; j < nodes; j += blockDim.x >> 5) {
        const i64 last = end[j];
        i64 c = pieces.start[j] + lane;
        for (i64 i = begin[j] + lane * size; i < last; i += 32 * size, c += 32) {
            pieces.owner[c] = j;
            pieces.first[c] = i;
            pieces.last[c] = i + size < last ? i + size : last;
        }
    }
    return number;
}

// A level that one block opens while the others still move the entries of the level above.
struct Opening {
    Above above;
    i64 fewest;
    i64 subtracts;  // histograms of larger siblings: else all are counted
    OpenNodes level;
    Pieces counted, searched, split;  // of the level: no memory of pieces of the level above
    i64* tally;
    i64 words;  // of the tally
};

// Siblings: the entries begin .. middle and middle .. end.
struct Siblings {
    i64 begin, middle, end;

    __device__ __forceinline__ i64 first(int side) const { return side ? middle : begin; }
    __device__ __forceinline__ i64 last(int side) const { return side ? end : middle; }
    __device__ __forceinline__ i64 rows(int side) const { return last(side) - first(side); }
    __device__ __forceinline__ int larger() const { return rows(1) >= rows(0); }
};

// A block: open the children of `fewest` rows or more of the nodes above. Of two that are open, the
// smaller is counted; a larger one alone is its parent less its sibling, which is counted in its
// place. Nodes beyond `most` are left out, and the level's search begins with an empty `tally`.
__device__ void open_level(const Opening& opening) {
    const Above& above = opening.above;
    const OpenNodes& level = opening.level;
    const i64 parents = *above.number, fewest = opening.fewest;
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
            const bool subtracts =
                opening.subtracts && above.records && side == siblings.larger();
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
#pragma unroll 1  // three times the code takes more registers than the entries that move
    for (int kind = 0; kind < 3; ++kind) {
        const i64* begin = kind ? level.begin : level.count_begin;
        const i64* end = kind ? level.end : level.count_end;
        const i64 number = cut_nodes((&opening.counted)[kind], nodes, begin, end);
        if (threadIdx.x == 0) level.numbers[1 + kind] = number;
    }
    if (threadIdx.x < opening.words) opening.tally[threadIdx.x] = 0;
    if (threadIdx.x == 0) level.numbers[0] = nodes;
}
