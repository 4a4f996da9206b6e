// Coding of values into bins: bin b of a column holds the values x with edge[b-1] < x <= edge[b].
#define ROOM 256  // maximum number of bins of a column
#define NO_KEY SIGN_BIT  // of zero: the host puts it where there is no key

// First of the `count` ascending keys that is not below `key`.
__device__ __forceinline__ i64 lower_bound(const Bits* keys, i64 count, Bits key) {
    return first_behind(0, count, [&](i64 i) { return keys[i] >= key; });
}

// Each thread keeps to one column: threads are a multiple of `columns`. found[f] gets bit 0 if
// the column has missing values, bit 1 if it has infinite ones.
extern "C" __global__ void __launch_bounds__(256) inspect_values(
    const Bits* values, i64 rows, i64 columns, i64 threads, i32* found
) {
    const i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread >= threads) return;
    i32 seen = 0;
#pragma unroll 4  // more, and registers spill on sm_90
    for (i64 i = thread; i < rows * columns; i += threads) {
        const Bits size = values[i] & ~SIGN_BIT;
        if (size > INFINITY_BITS) seen |= 1;
        if (size == INFINITY_BITS) seen |= 2;
    }
    if (seen) atomicOr(&found[thread % columns], seen);
}

// One thread per value: keys[f * rows + i] is the key of row places[i], or of row i if `places`
// is null.
extern "C" __global__ void __launch_bounds__(256) column_keys(
    const Bits* values, const i64* places, i64 rows, i64 columns, Bits* keys
) {
    const i64 item = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item >= rows * columns) return;
    const i64 i = item / columns, f = item % columns;
    keys[f * rows + i] = key_of(values[(places ? places[i] : i) * columns + f]);
}

// One thread a value: values whose hash is among the lowest `share` of 2**63 are picked, in any
// order of rows. taken[f] counts them all; `picked` has the first `most_picked` of a column.
extern "C" __global__ void __launch_bounds__(256) pick_values(
    const Bits* values, i64 rows, i64 columns, i64 share, i64 most_picked, u32* taken, Bits* picked
) {
    const i64 item = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item >= rows * columns) return;
    const Bits key = key_of(values[item]);
    if (key == MISSING_KEY) return;
    const u64 hash = mix(u64(__double_as_longlong(value_of(key))));
    if (i64(hash >> 1) >= share) return;
    const i64 f = item % columns, slot = atomicAdd(&taken[f], 1u);
    if (slot < most_picked) picked[f * most_picked + slot] = key;
}

// The key of the largest value below the value of `key`.
__device__ __forceinline__ Bits key_below(Bits key) {
    return key == SIGN_BIT ? SIGN_BIT - 2 : key - 1;  // -0.0 has no key
}

// A set of keys that a block collects.
struct Keys {
    Bits* key;
    u32* size;
    __device__ void add(Bits one) { key[atomicAdd(size, 1u)] = one; }
};

// Candidates for the edges of `known` sorted keys, at `quantiles`, or (null) even ones; a value
// that fills a bin has a bin to itself, where that leaves at most `most` bins. Returns their
// number.
__device__ i64 quantile_edges(
    const Bits* keys, i64 known, i64 most, const double* quantiles, Bits* picks, Keys edges
) {
    const i64 i = threadIdx.x;
    if (i < most - 1)
        picks[i] = keys[quantiles ? i64(quantiles[i] * double(known - 1))
                                  : (i + 1) * (known - 1) / most];
    __syncthreads();
    const bool exists = i < most - 1;
    const bool again = exists && i > 0 && picks[i] == picks[i - 1];
    if (exists && !again) edges.add(picks[i]);
    __syncthreads();
    const i64 plain = *edges.size;
    __syncthreads();
    const bool heavy = again && (i == 1 || picks[i - 2] != picks[i - 1]);
    if (heavy && picks[i] > ~(INFINITY_BITS - 1 | SIGN_BIT)) {  // above the smallest finite value
        const Bits below = key_below(picks[i]);
        const i64 place = lower_bound(picks, most - 1, below);
        if (picks[place] != below) edges.add(below);
    }
    __syncthreads();
    const i64 isolated = *edges.size;
    return isolated < most ? isolated : plain;
}

// Grid: columns in column[]; block: `ROOM` threads. Fit the bins of a column to its `length` sorted
// keys, missing ones last: at most most[f] bins, one a distinct value where they suffice; quantiles
// (or null) of the edges are `ROOM` a column. Edges, minimum and maximum keys are padded;
// distinct[f] counts the distinct values.
extern "C" __global__ void __launch_bounds__(ROOM) fit_bins(
    const Bits* ordered, i64 length, const i64* column, const i64* most, const double* quantiles,
    Bits* edge, Bits* lowest, Bits* highest, i64* count, i64* distinct
) {
    __shared__ Bits found[2 * ROOM], picks[ROOM], sorted[2 * ROOM];
    __shared__ u32 size, changes;
    const i64 f = column[blockIdx.x], tid = threadIdx.x;
    const Bits* keys = ordered + blockIdx.x * length;
    const i64 known = lower_bound(keys, length, MISSING_KEY);
    if (tid == 0) size = changes = 0;
    __syncthreads();
    for (i64 i = tid; i < known; i += blockDim.x) {
        if (i > 0 && keys[i] == keys[i - 1]) continue;
        const u32 place = atomicAdd(&changes, 1u);
        if (place < ROOM) found[place] = keys[i];
    }
    __syncthreads();
    const bool lossless = changes <= most[f];
    const double* fractions = quantiles ? quantiles + blockIdx.x * ROOM : nullptr;
    i64 edges =
        lossless ? changes : quantile_edges(keys, known, most[f], fractions, picks, {found, &size});
    for (i64 i = tid; i < edges; i += blockDim.x) {
        i64 rank = 0;
        for (i64 k = 0; k < edges; ++k) rank += found[k] < found[i];
        sorted[rank] = found[i];
    }
    __syncthreads();
    if (lossless && edges > 0) --edges;  // no edge after the largest value
    const Bits beyond = INFINITY_BITS | SIGN_BIT;
    const i64 upper = tid < edges ? lower_bound(keys, known, sorted[tid] + 1) : known;
    const i64 lower = tid > 0 && tid <= edges ? lower_bound(keys, known, sorted[tid - 1] + 1) : 0;
    const bool holds = tid <= edges && known > 0;
    edge[f * ROOM + tid] = tid < edges ? sorted[tid] : beyond;
    highest[f * ROOM + tid] = holds ? keys[upper > 0 ? upper - 1 : 0] : NO_KEY;
    lowest[f * ROOM + tid] = holds ? keys[lower < known ? lower : known - 1] : NO_KEY;
    if (tid != 0) return;
    count[f] = edges + 1;
    distinct[f] = changes;
}

// Place of edge i of a column in shared memory: edges that searches read at once, a power of two
// apart, or in columns four apart, are in different banks.
#define EDGE_STRIDE 265  // of columns
__device__ __forceinline__ u32 edge_place(u32 i) { return i + i / 32; }

// Number of a column's edges below a key; behind them are keys of infinity, up to `ROOM`.
__device__ __forceinline__ u32 bin_of(const Bits* edge, Bits key) {
    u32 bin = 0;
#pragma unroll
    for (u32 step = ROOM / 2; step > 0; step /= 2)
        if (edge[edge_place(bin + step - 1)] < key) bin += step;
    return bin;
}

// Grid: chunks of rows x groups of columns, interleaved; one thread a word, four columns of a row.
// The edges of a group's columns are in shared memory. Rows of codes are padded to `words`; edges
// and `lowest` are keys, `ROOM` a column. inexact[f] is set where a column taken for lossless has
// another value.
extern "C" __global__ void __launch_bounds__(256, 1) encode_values(
    const Bits* values, i64 rows, i64 columns, i64 words, i64 chunk_rows, i64 group_words,
    const Bits* edges, const Bits* lowest, const i64* count, const u8* lossless, u8* codes,
    i32* inexact
) {
    extern __shared__ u64 dynamic[];
    Bits* copy = (Bits*)dynamic;
    const i64 groups = (words + group_words - 1) / group_words;
    const i64 first_row = blockIdx.x / groups * chunk_rows;
    const i64 first_word = blockIdx.x % groups * group_words, first = 4 * first_word;
    const i64 last = first + 4 * group_words < columns ? first + 4 * group_words : columns;
    for (u32 i = threadIdx.x; i < u32(last - first) * ROOM; i += blockDim.x)
        copy[i / ROOM * EDGE_STRIDE + edge_place(i % ROOM)] = edges[first * ROOM + i];
    __syncthreads();
    const u32 width = u32((last - first + 3) / 4);
    const u32 height = u32(rows - first_row < chunk_rows ? rows - first_row : chunk_rows);
    for (u32 item = threadIdx.x; item < height * width; item += blockDim.x) {
        const i64 row = first_row + item / width, word = first_word + item % width;
        u32 packed = 0;
        for (i64 f = 4 * word; f < 4 * word + 4 && f < columns; ++f) {
            const Bits key = key_of(values[row * columns + f]);
            const bool missing = key == MISSING_KEY;
            const u32 code =
                missing ? u32(count[f]) : bin_of(copy + (f - first) * EDGE_STRIDE, key);
            packed |= code << 8 * (f % 4);
            if (!missing && lossless[f] && lowest[f * ROOM + code] != key) atomicOr(&inexact[f], 1);
        }
        ((u32*)codes)[row * words + word] = packed;
    }
}
