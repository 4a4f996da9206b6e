// Scans and reductions within a warp; every lane takes part.
__device__ __forceinline__ i64 inclusive_sum(i64 value) {
    const int lane = threadIdx.x & 31;
    for (int distance = 1; distance < 32; distance *= 2) {
        const i64 before = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value += before;
    }
    return value;
}

__device__ __forceinline__ i64 last_lane(i64 value) { return __shfl_sync(ALL_LANES, value, 31); }

// Broadcast a struct from one lane.
template <class T>
__device__ __forceinline__ T from_lane(const T& value, int lane) {
    struct Words {
        u32 word[sizeof(T) / 4];
    };
    Words words = __builtin_bit_cast(Words, value);
    for (u32& word : words.word) word = __shfl_sync(ALL_LANES, word, lane);
    return __builtin_bit_cast(T, words);
}

// The value in a warp that precedes all others, in every lane.
__device__ inline auto warp_first(auto value) {
    for (int distance = 16; distance > 0; distance /= 2) {
        const auto other = from_lane(value, (threadIdx.x & 31) ^ distance);
        if (precedes(other, value)) value = other;
    }
    return value;
}

__device__ __forceinline__ double warp_greatest(double value) {
    for (int distance = 16; distance > 0; distance /= 2)
        value = greater_of(value, __shfl_xor_sync(ALL_LANES, value, distance));
    return value;
}

// An integer that grows with x, for atomics; both zeros are one.
__device__ __forceinline__ i64 order_of(double x) {
    const i64 bits = __double_as_longlong(x + 0.0);
    return bits ^ (bits >> 63 & 0x7fffffffffffffffll);
}
