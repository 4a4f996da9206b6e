// Stable partition of entries: the rows of a node become those of its children.
//
//   chunks    a block each: sides of its entries, and how many go left
//   nodes     a warp each: where the left and right parts of its chunks begin
//   chunks    entries of nodes that are opened to their places, in the order they had

// Grid: chunks of entries, of the nodes in owner[]. neighbours[2 j], [2 j + 1]: greatest key in
// the bin before a cut between bins, least in the bin after; left as they are where `by_code`.
extern "C" __global__ void __launch_bounds__(256) mark_sides(
    const Bits* values, const u8* codes, i64 stride, i64 columns, const i32* entries,
    const i64* owner, const i64* first, const i64* last, const i64* records, const i64* offset,
    const u8* missing, const u8* by_code, u8* sides, i64* lefts, Bits* neighbours
) {
    __shared__ u32 left_rows;
    __shared__ Bits low, high;
    const i64 c = blockIdx.x, j = owner[c];
    const Record cut = ((const Record*)records)[j];
    const i64 f = cut.column;
    if (f < 0) {
        if (threadIdx.x == 0) lefts[c] = 0;
        return;
    }
    const bool look = !cut.inside && !by_code[f];
    const i64 missing_bin = missing[f] ? offset[f + 1] - offset[f] - 1 : -1;
    if (threadIdx.x == 0) {
        left_rows = 0;
        low = 0;
        high = MISSING_KEY;
    }
    __syncthreads();
    for (i64 i = first[c] + threadIdx.x; i < last[c]; i += blockDim.x) {
        const i64 row = entries[i];
        const i64 bin = codes[row * stride + f];
        bool left = bin < cut.cut_bin;
        if (bin == cut.cut_bin) {
            const Bits key = cut.inside || look ? key_of(values[row * columns + f]) : Bits(0);
            left = !cut.inside || value_of(key) <= cut.threshold;
            if (look) atomicMax(&low, key);
        } else if (bin == missing_bin) {
            left = cut.missing_left;
        } else if (look && bin == cut.next_bin) {
            atomicMin(&high, key_of(values[row * columns + f]));
        }
        sides[i] = left;
        if (left) atomicAdd(&left_rows, 1u);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    lefts[c] = left_rows;
    if (look) {
        atomicMax(&neighbours[2 * j], low);
        atomicMin(&neighbours[2 * j + 1], high);
    }
}

// Grid: nodes; block: one warp. Chunks chunk[j] .. chunk[j + 1] of node j: `lefts` becomes the
// entries that go left in the chunks before. The record gets its middle and its neighbours.
extern "C" __global__ void __launch_bounds__(32) find_middles(
    const i64* begin, const i64* chunk, const Bits* neighbours, i64* lefts, i64* records
) {
    const i64 j = blockIdx.x;
    i64 sum = 0;
    for (i64 c0 = chunk[j]; c0 < chunk[j + 1]; c0 += 32) {
        const i64 c = c0 + threadIdx.x;
        const i64 own = c < chunk[j + 1] ? lefts[c] : 0;
        const i64 upto = inclusive_sum(own);
        if (c < chunk[j + 1]) lefts[c] = sum + upto - own;
        sum += last_lane(upto);
    }
    if (threadIdx.x != 0) return;
    Record& record = ((Record*)records)[j];
    record.middle = begin[j] + sum;
    record.low = value_of(neighbours[2 * j]);
    record.high = value_of(neighbours[2 * j + 1]);
}

// Grid: chunks of entries. Copy each entry of the nodes `opened` to its place in `out`.
extern "C" __global__ void __launch_bounds__(256) place_entries(
    const i32* entries, const i64* owner, const i64* first, const i64* last, const i64* begin,
    const u8* opened, const i64* records, const i64* lefts, const u8* sides, i32* out
) {
    __shared__ u32 warp_lefts[8];
    const i64 c = blockIdx.x, j = owner[c];
    if (!opened[j]) return;
    const i64 middle = ((const Record*)records)[j].middle;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    i64 before = lefts[c];  // entries of the node that went left so far
    for (i64 i0 = first[c]; i0 < last[c]; i0 += blockDim.x) {
        const i64 i = i0 + threadIdx.x;
        const bool left = i < last[c] && sides[i];
        const u32 vote = __ballot_sync(ALL_LANES, left);
        if (lane == 0) warp_lefts[warp] = __popc(vote);
        __syncthreads();
        i64 rank = before + __popc(vote & ((1u << lane) - 1u));
        for (int w = 0; w < 8; ++w) {
            if (w < warp) rank += warp_lefts[w];
            before += warp_lefts[w];
        }
        __syncthreads();
        if (i < last[c])
            out[left ? begin[j] + rank : middle + (i - begin[j]) - rank] = entries[i];
    }
}

// Grid: chunks of entries. Copy them back.
extern "C" __global__ void __launch_bounds__(256) copy_entries(
    const i32* out, const i64* owner, const i64* first, const i64* last, const u8* opened,
    i32* entries
) {
    const i64 c = blockIdx.x;
    if (!opened[owner[c]]) return;
    for (i64 i = first[c] + threadIdx.x; i < last[c]; i += blockDim.x) entries[i] = out[i];
}
