// Entries of a level are assigned to the halves of their nodes' splits, and moved there.

// The first of the ends first .. stop that lies behind place i.
__device__ i64 run_of(const i64* last, i64 first, i64 stop, i64 i) {
    --stop;
    while (first < stop) {
        const i64 middle = first + (stop - first) / 2;
        if (last[middle] > i) stop = middle;
        else first = middle + 1;
    }
    return first;
}

// Grid: pieces of the splits owner[]. The half of each entry, by its place in the list of the
// split column; those of categories by the sides of their runs.
extern "C" __global__ void __launch_bounds__(256) assign_halves(
    const i64* owner, const i64* first, const i64* last, const u8* nominal, i64 n_entries,
    const i32* item, const u32* code, const i32* feature, const i64* missing_left,
    const i64* place, const i64* category, const i64* run_last, const i64* is_left, u8* child,
    i32* seen_missing
) {
    const i64 c = blockIdx.x, j = owner[c], f = feature[j];
    for (i64 i = first[c] + threadIdx.x; i < last[c]; i += blockDim.x) {
        const u32 own = code[f * n_entries + i];
        bool right = i64(own) > place[j];
        if (own == MISSING_CODE) {
            right = !missing_left[j];
            atomicMax(&seen_missing[j], 1);
        } else if (nominal[f]) {
            right = !is_left[run_of(run_last, category[j], category[j + 1], i)];
        }
        child[item[f * n_entries + i]] = right;
    }
}

// Grid: pieces of ranges owner[] of entries; each in whole warps. Sums of both halves of each,
// and, for regression, between what bounds one target may stand for all rows of a half.
extern "C" __global__ void __launch_bounds__(256) sum_halves(
    i64 rounded, const i64* owner, const i64* first, const i64* last, const Target* target,
    const i64* weight, const i64* square, const i64* square_rest, const u8* child, i64 width,
    i64* rows, i64* sums, i64* low, i64* high
) {
    const i64 c = blockIdx.x;
#pragma unroll 1
    for (i64 i0 = first[c] + (threadIdx.x & ~31u); i0 < last[c]; i0 += blockDim.x) {
        const i64 e = i0 + lane_of();
        const bool valid = e < last[c];
        const i64 half = valid ? 2 * owner[c] + child[e] : -1;
        const i64 own = valid ? weight_of(weight, e) : 0;
#if REGRESSION
        double from = -infinity(), to = infinity();
        if (valid) narrow(from, to, target[e], own, rounded);
        const i64 parts[] = {
            1, own, valid ? target[e] : 0, valid ? square[e] : 0, valid ? square_rest[e] : 0
        };
        const u32 alike = __match_any_sync(ALL_LANES, half);
        for (int s = 0; s < 5; ++s) {
            const i64 sum = sum_upto(alike, parts[s]);
            i64* to = s == 0 ? rows + half : sums + half * width + s - 1;
            if (valid && is_last(alike)) add_to_global(to, sum);
        }
        if (valid) {
            atomicMax(&low[half], order_of(from));
            atomicMin(&high[half], order_of(to));
        }
#else
        const i64 at = valid ? half * width + target[e] : -1;
        const u32 alike = __match_any_sync(ALL_LANES, at);
        const i64 sum = WEIGHTED ? sum_upto(alike, own) : __popc(alike);
        if (valid && is_last(alike)) {
            add_to_global(sums + at, sum);
            add_to_global(rows + half, __popc(alike));
        }
#endif
    }
}

// Grid: pieces of ranges owner[] of entries, in whole warps. Entries go to the next free place
// of their half, from part_begin[] on and in any order; -1 there where it is not opened.
extern "C" __global__ void __launch_bounds__(256) move_halves(
    const i64* owner, const i64* first, const i64* last, const u8* child,
    const i64* part_begin, i64* taken, const Target* target, const i64* weight,
    const i64* square, const i64* square_rest, i64* route, Target* new_target, i64* new_weight,
    i64* new_square, i64* new_square_rest
) {
    const i64 c = blockIdx.x;
    for (i64 i0 = first[c] + (threadIdx.x & ~31u); i0 < last[c]; i0 += blockDim.x) {
        const i64 e = i0 + lane_of();
        const i64 side = e < last[c] ? child[e] : -1;
        const i64 half = 2 * owner[c] + side;
        const bool moves = side >= 0 && part_begin[half] >= 0;
        const u32 alike = __match_any_sync(ALL_LANES, moves ? i32(side) : -1);
        i64 start = 0;
        if (moves && is_last(alike))
            start = part_begin[half] + i64(atomicAdd((u64*)&taken[half], u64(__popc(alike))));
        start = __shfl_sync(ALL_LANES, start, 31 - __clz(int(alike)));
        if (side >= 0 && !moves) route[e] = -1;
        if (!moves) continue;
        const i64 at = start + __popc(alike & ((1u << lane_of()) - 1u));
        route[e] = side << 32 | at;
        new_target[at] = target[e];
        if (WEIGHTED) new_weight[at] = weight[e];
        if (!REGRESSION) continue;
        new_square[at] = square[e];
        new_square_rest[at] = square_rest[e];
    }
}
