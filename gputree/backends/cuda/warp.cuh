// Scans and reductions within a warp, or a block; every lane takes part.
__device__ __forceinline__ int lane_of() { return threadIdx.x & 31; }

// The sum over the lanes up to this one, of `lanes` neighbours each: a power of two.
__device__ __forceinline__ i64 inclusive_sum(i64 value, int lanes = 32) {
    const int lane = threadIdx.x & (lanes - 1);
    for (int distance = 1; distance < lanes; distance *= 2) {
        const i64 before = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value += before;
    }
    return value;
}

// The sum of `value` over the threads of a block before, plus `all`, to which the block's sum is
// added.
__device__ __forceinline__ i64 sum_before(i64 value, i64& all) {
    __shared__ i64 sums[32];  // of warps
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const i64 upto = inclusive_sum(value);
    if (lane == 31) sums[warp] = upto;
    __syncthreads();
    i64 before = all + upto - value;
    for (int w = 0; w < warps; ++w) {
        if (w < warp) before += sums[w];
        all += sums[w];
    }
    __syncthreads();
    return before;
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
