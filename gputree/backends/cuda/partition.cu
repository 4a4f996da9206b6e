// Stable partition of entries: the rows of a node are divided among its children.
//
//   chunks    a block each: a copy of its entries with their sides, and how many go left, added up
//             to its node's
//   chunks    entries of nodes that are opened from the copy to their places, in the order they
//             had, behind those of the chunks before

// True if a category goes left: one that is not listed does not.
__device__ bool goes_left(const u32* code, const u8* is_left, i64 count, u32 category) {
    const i64 first = first_behind(0, count, [&](i64 i) { return code[i] >= category; });
    return first < count && code[first] == category && is_left[first];
}

// Sides of categories; see Sides of categories.py.
struct Sides {
    i64 nodes;
    const i32* place;
    const i64* start;
    const i32* count;
    const u32* code;
    const u8* is_left;
    u32* masks;  // (nodes, 256 bits), or null: the same of categories below 256, for the host
};

// An entry with its side: rows are not negative.
__device__ __forceinline__ i32 with_side(i32 row, bool left) { return left ? ~row : row; }

// Grid: chunks of entries. A copy of each, with its side, goes to `sided`. The record of a node
// gets its middle, and the maximum key in the bin before a cut between bins and the minimum in the
// bin after; no keys where `by_code`. A row has values of `width` columns: column f at place[f],
// or, of all columns (null), at f.
extern "C" __global__ void __launch_bounds__(256) mark_sides(
    const Bits* values, i64 width, const i32* place, Table table, const i32* entries,
    Chunks chunks, i64* records, const __grid_constant__ Sides sides, i32* sided,
    i64* lefts
) {
    __shared__ u32 left_rows;
    __shared__ Bits low, high;
    const i64 c = blockIdx.x;
    if (chunks.lack(c)) return;
    const i64 j = chunks.owner[c];
    Record& record = ((Record*)records)[j];  // others add to its last fields meanwhile
    const i64 f = record.column, cut_bin = record.cut_bin, next_bin = record.next_bin;
    const bool inside = record.inside, missing_left = record.missing_left;
    const double threshold = record.threshold;
    if (f < 0) {
        if (threadIdx.x == 0) lefts[c] = 0;
        return;
    }
    const bool has_codes = sides.nodes > 0 && sides.place[f] >= 0;
    const i64 pair = has_codes ? sides.place[f] * sides.nodes + j : -1;
    const bool look = pair < 0 && !inside && !table.by_code[f];
    const i64 missing_bin = missing_bin_of(table, f);
    const i64 own_place = place ? place[f] : f, start = has_codes ? sides.start[pair] : 0;
    if (has_codes && sides.masks && (c == 0 || chunks.owner[c - 1] != j)) {
        const bool left = goes_left(
            sides.code + start, sides.is_left + start, sides.count[pair], threadIdx.x
        );
        const u32 vote = __ballot_sync(ALL_LANES, left);
        if ((threadIdx.x & 31) == 0) sides.masks[8 * j + (threadIdx.x >> 5)] = vote;
    }
    if (threadIdx.x == 0) {
        left_rows = 0;
        low = 0;
        high = MISSING_KEY;
    }
    __syncthreads();
    for (i64 i = chunks.first[c] + threadIdx.x; i < chunks.last[c]; i += blockDim.x) {
        const i64 row = entries[i];
        const Bits* value = values + table.row_of(row) * width + own_place;
        const i64 bin = table.codes_of(row)[f];
        bool left = bin < cut_bin;
        if (bin == missing_bin) {
            left = missing_left;
        } else if (pair >= 0) {
            const u32 code = table.by_code[f] ? u32(bin) : u32(value_of(key_of(*value)));
            left = goes_left(sides.code + start, sides.is_left + start, sides.count[pair], code);
        } else if (bin == cut_bin) {
            const Bits key = inside || look ? key_of(*value) : Bits(0);
            left = !inside || value_of(key) <= threshold;
            if (look) atomicMax(&low, key);
        } else if (look && bin == next_bin) {
            atomicMin(&high, key_of(*value));
        }
        sided[i] = with_side(i32(row), left);
        if (left) atomicAdd(&left_rows, 1u);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    lefts[c] = left_rows;
    atomicAdd((u64*)&record.middle, u64(left_rows));
    if (look && low > 0) atomicMax(&record.low, u64(low));
    if (look && high < MISSING_KEY) atomicMin(&record.high, u64(high));
}

// True if the entries of node j move: of nodes `opened`, or (null) of all that have a split.
__device__ __forceinline__ bool is_opened(const u8* opened, const i64* records, i64 j) {
    return opened ? opened[j] != 0 : ((const Record*)records)[j].column >= 0;
}

// Blocks on a multiprocessor at once, so that a level that is opened takes no more registers: as many
// as 1,536 threads, or the 1,024 of sm_75.
#if __CUDA_ARCH__ == 750
#define PLACING_BLOCKS 4
#else
#define PLACING_BLOCKS 6
#endif

// Grid: the next level, which one block opens if it has nodes; then chunks of entries. Put each entry
// of opened nodes, of which there is a copy with its side, in its place; chunk[j] is the first chunk
// of node j.
extern "C" __global__ void __launch_bounds__(256, PLACING_BLOCKS) place_entries(
    const i32* sided, Chunks chunks, const i64* begin, const i64* chunk, const u8* opened,
    const i64* records, const i64* lefts, i32* entries, const __grid_constant__ Opening opening
) {
    __shared__ u32 warp_lefts[8];
    __shared__ i64 warp_sums[8];
    const i64 c = i64(blockIdx.x) - 1;
    if (c < 0) {
        if (opening.level.most > 0) open_level(opening);
        return;
    }
    if (chunks.lack(c)) return;
    const i64 j = chunks.owner[c], last = chunks.last[c];
    if (!is_opened(opened, records, j)) return;
    const i64 middle = ((const Record*)records)[j].middle;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    i64 n = 0;
    for (i64 i = chunk[j] + threadIdx.x; i < c; i += blockDim.x) n += lefts[i];
    n = inclusive_sum(n);
    if (lane == 31) warp_sums[warp] = n;
    __syncthreads();
    i64 before = 0;  // entries of the node that went left so far
    for (int w = 0; w < 8; ++w) before += warp_sums[w];
    for (i64 i0 = chunks.first[c]; i0 < last; i0 += blockDim.x) {
        const i64 i = i0 + threadIdx.x;
        const i32 entry = i < last ? sided[i] : 0;
        const bool left = entry < 0;
        const u32 vote = __ballot_sync(ALL_LANES, left);
        if (lane == 0) warp_lefts[warp] = __popc(vote);
        __syncthreads();
        i64 rank = before + __popc(vote & ((1u << lane) - 1u));
        for (int w = 0; w < 8; ++w) {
            if (w < warp) rank += warp_lefts[w];
            before += warp_lefts[w];
        }
        __syncthreads();
        if (i >= last) continue;
        if (left) entries[begin[j] + rank] = ~entry;
        else entries[middle + (i - begin[j]) - rank] = entry;
    }
}

// Grid: chunks of entries. For each entry the node, and in the lower half the category of its row
// in the column feature[j]; all ones where it is missing. Entries of node j begin at start[j].
extern "C" __global__ void __launch_bounds__(256) list_codes(
    const Bits* values, Table table, const i32* entries, Chunks chunks, const i64* begin,
    const i64* start, const i32* feature, const u8* by_code, u64* keys
) {
    const i64 c = blockIdx.x, j = chunks.owner[c], f = feature[j];
    const i64 missing_bin = missing_bin_of(table, f);
    for (i64 i = chunks.first[c] + threadIdx.x; i < chunks.last[c]; i += blockDim.x) {
        const i64 row = entries[i];
        i64 code = -1;
        if (by_code[f]) {
            const i64 bin = table.codes_of(row)[f];
            if (bin != missing_bin) code = i64(table.lowest[f * 256 + bin]);
        } else {
            const Bits key = key_of(values[table.row_of(row) * table.columns + f]);
            if (key != MISSING_KEY) code = i64(value_of(key));
        }
        keys[start[j] + i - begin[j]] = code < 0 ? ~u64(0) : u64(j) << 32 | u64(code);
    }
}
