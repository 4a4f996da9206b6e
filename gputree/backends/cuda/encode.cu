// Coding of values into bins: bin b of a column holds the values x with edge[b-1] < x <= edge[b].

// First of the `count` ascending keys that is not below `key`.
__device__ __forceinline__ i64 lower_bound(const Bits* keys, i64 count, Bits key) {
    i64 first = 0;
    while (count > 0) {
        const i64 half = count / 2;
        if (keys[first + half] < key) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

// One thread a code; rows of codes are padded to `stride`. `edges` and `least` are keys,
// `room` a column. inexact[f] is set where a column taken for lossless has another value.
extern "C" __global__ void __launch_bounds__(256) encode_values(
    const Bits* values, i64 rows, i64 columns, i64 stride, const Bits* edges, const Bits* least,
    i64 room, const i64* count, const u8* lossless, u8* codes, i32* inexact
) {
    const i64 at = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= rows * stride) return;
    const i64 row = at / stride, f = at % stride;
    if (f >= columns) {
        codes[at] = 0;
        return;
    }
    const Bits key = key_of(values[row * columns + f]);
    if (key == MISSING_KEY) {
        codes[at] = u8(count[f]);
        return;
    }
    const i64 bin = lower_bound(edges + f * room, count[f] - 1, key);
    codes[at] = u8(bin);
    if (lossless[f] && least[f * room + bin] != key) atomicOr(&inexact[f], 1);
}

// Keys of values, for the tables above.
extern "C" __global__ void __launch_bounds__(256) value_keys(
    const Bits* values, i64 count, Bits* keys
) {
    const i64 at = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < count) keys[at] = key_of(values[at]);
}
