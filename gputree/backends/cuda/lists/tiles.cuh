// Sorted lists, a tile of 32 places at a time: a place to each lane of a warp.
#define MISSING_CODE 0xffffffffu
#define MOST_WARPS 16  // of a block

struct List {  // of one column
    const i32* item;
    const u32* code;
};

struct Columns {  // of a table, with the lists of the entries of a level
    const u8* categorical;
    i64 number, entries;
    const i32* item;  // (number, entries)
    const u32* code;

    __device__ __forceinline__ List list(i64 f) const {
        return {item + f * entries, code + f * entries};
    }
};

struct Entries {
    const i32* target;
    const i64* weight;  // null where every entry has a weight of one unit
};

struct Place {  // of a list
    bool valid;
    u32 code;
    i64 k, weight;
};

__device__ __forceinline__ i64 units_of(const Entries& entries, i64 e) {
    return entries.weight ? entries.weight[e] : 1;
}

__device__ inline Place place_at(const List& list, const Entries& entries, i64 i, i64 last) {
    if (i >= last) return {false, MISSING_CODE, 0, 0};
    const i64 e = list.item[i];
    return {true, list.code[i], entries.target[e], units_of(entries, e)};
}

// The end of the known values, which come first.
__device__ inline i64 known_end(const u32* code, i64 begin, i64 end) {
    if (begin == end || code[end - 1] != MISSING_CODE) return end;
    return first_behind(begin, end, [&](i64 i) { return code[i] == MISSING_CODE; });
}

struct Span {
    i64 first, last;
};

// The tiles of first .. last that one of the block's warps processes; later spans may be empty.
__device__ inline Span span_of(i64 first, i64 last, int warp, int warps) {
    const i64 tiles = (last - first + 31) / 32;
    const i64 size = (tiles + warps - 1) / warps * 32;
    const i64 begin = first + warp * size;
    if (begin >= last) return {last, last};
    return {begin, begin + size < last ? begin + size : last};
}

__device__ __forceinline__ bool is_last(u32 lanes) { return lanes >> lane_of() == 1; }

// Sum over the lanes of `lanes` up to this one; every lane passes the same `lanes`.
__device__ inline i64 sum_upto(u32 lanes, i64 value) {
    const int lane = lane_of();
    const u32 below = lanes & ((1u << lane) - 1u);
    int next = below ? 31 - __clz(int(below)) : -1;  // whose sum is still to be added
    for (int step = 0; step < 5; ++step) {
        const int from = next < 0 ? lane : next;
        const i64 other = __shfl_sync(ALL_LANES, value, from);
        const int after = __shfl_sync(ALL_LANES, next, from);
        if (next < 0) continue;
        value += other;
        next = after;
    }
    return value;
}

// The same for weights that are mostly one unit.
__device__ inline i64 weight_upto(const Entries& entries, u32 lanes, i64 weight) {
    if (entries.weight) return sum_upto(lanes, weight);
    return __popc(lanes & ((2u << lane_of()) - 1u));
}

__device__ inline i64 warp_sum(i64 value) {
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}
