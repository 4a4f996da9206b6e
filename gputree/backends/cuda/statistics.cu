// Sums of row statistics over nodes: class weights, or weight, sum, square and rest of the square.

// Grid: chunks of entries. `width` statistics a node are added to `out`, through shared memory
// where they fit it.
extern "C" __global__ void __launch_bounds__(256) node_statistics(
    Rows rows, const i32* entries, Chunks chunks, i64 width, i64 fits_shared, i64* out
) {
    extern __shared__ i64 sums[];
    const i64 c = blockIdx.x;
    i64* node_sums = out + chunks.owner[c] * width;
    if (fits_shared)
        for (i64 k = threadIdx.x; k < width; k += blockDim.x) sums[k] = 0;
    __syncthreads();
    for (i64 i = chunks.first[c] + threadIdx.x; i < chunks.last[c]; i += blockDim.x) {
        const i64 row = entries[i];
#if REGRESSION
        add_to_shared(sums, weight_of(rows.weight, row));
        add_to_shared(sums + 1, rows.target[row]);
        add_to_shared(sums + 2, rows.square[row]);
        add_to_shared(sums + 3, rows.square_rest[row]);
#else
        if (fits_shared)
            add_to_shared(sums + rows.target[row], weight_of(rows.weight, row));
        else
            add_to_global(node_sums + rows.target[row], weight_of(rows.weight, row));
#endif
    }
    __syncthreads();
    if (fits_shared)
        for (i64 k = threadIdx.x; k < width; k += blockDim.x)
            if (sums[k] != 0) add_to_global(node_sums + k, sums[k]);
}
