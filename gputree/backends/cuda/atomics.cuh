// Sums that many threads add to.
// 64-bit sums in shared memory: two 32-bit atomics with a carry, which are native there.
__device__ __forceinline__ void add_to_shared(u32* cell, u32 count) { atomicAdd(cell, count); }

__device__ __forceinline__ void add_to_shared(i64* cell, i64 sum) {
    u32* half = (u32*)cell;
    const u32 low = u32(u64(sum)), high = u32(u64(sum) >> 32);
    const u32 before = atomicAdd(half, low);
    const u32 upper = high + u32(before + low < before);
    if (upper != 0) atomicAdd(half + 1, upper);
}

__device__ __forceinline__ void add_to_global(u32* cell, u32 count) { atomicAdd(cell, count); }

__device__ __forceinline__ void add_to_global(i64* cell, i64 sum) {
    atomicAdd((u64*)cell, u64(sum));
}
