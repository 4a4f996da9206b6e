// Scans within a warp; every lane takes part.
__device__ __forceinline__ i64 inclusive_sum(i64 value) {
    const int lane = threadIdx.x & 31;
    for (int distance = 1; distance < 32; distance *= 2) {
        const i64 before = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value += before;
    }
    return value;
}

__device__ __forceinline__ i64 last_lane(i64 value) { return __shfl_sync(ALL_LANES, value, 31); }
