// Random column subsets that depend on the node only: gputree/arithmetic/bits.py and
// gputree/backends/cpu/cut.py.
__device__ __forceinline__ u64 mix(u64 key) {  // SplitMix64
    u64 z = key + 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ __forceinline__ u64 child_key(u64 key, u64 ordinal) {
    return mix(key ^ mix(ordinal + 1));
}

// Rank of a column among cuts of equal score in the node of `key`: the lowest wins.
__device__ __forceinline__ u64 tie_rank(bool random_ties, u64 key, i64 column) {
    return random_ties ? mix((key ^ 0x7469657362796861ull) + u64(column)) : u64(column);
}

// Permute the first `count` columns of `order` as drawn from `key` (Fisher-Yates).
__device__ inline void draw_columns(u64 key, i32* order, i64 count) {
    for (i64 i = 0; i < count; ++i) {
        const i64 j = i + i64(((mix(key + u64(i)) >> 32) * u64(count - i)) >> 32);
        const i32 other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
}
