// Visits of the rows of a node in the columns that are searched, and in no others.

#define VISITED_AT_ONCE 4  // items of a thread in a step

// A block: visit(f, row) for the entries of chunk c and each column that `is_searched`; then
// finish_step(), after at most VISITED_AT_ONCE visits of each thread. Columns are listed in shared
// memory, as many at once as there are threads; a chunk has fewer than 2**24 rows.
__device__ void visit_searched(
    const Chunks& of, i64 c, const i32* entries, i64 columns, const auto& is_searched,
    const auto& visit, const auto& finish_step
) {
    __shared__ i32 searched[256];
    __shared__ u32 number;
    const i32* node_entries = entries + of.first[c];
    const u32 rows = u32(of.last[c] - of.first[c]);
    for (i64 f0 = 0; f0 < columns; f0 += blockDim.x) {
        if (threadIdx.x == 0) number = 0;
        __syncthreads();
        const i64 f = f0 + threadIdx.x;
        if (f < columns && is_searched(f)) searched[atomicAdd(&number, 1u)] = i32(f);
        __syncthreads();
        const u32 width = number, items = rows * width, step = VISITED_AT_ONCE * blockDim.x;
        for (u32 begin = 0; begin < items; begin += step) {
            const u32 end = items - begin < step ? items : begin + step;
            for (u32 item = begin + threadIdx.x; item < end; item += blockDim.x)
                visit(i64(searched[item % width]), i64(node_entries[item / width]));
            finish_step();
        }
        __syncthreads();
    }
}

// The same where nothing is left to do after a step.
__device__ void visit_searched(
    const Chunks& of, i64 c, const i32* entries, i64 columns, const auto& is_searched,
    const auto& visit
) {
    visit_searched(of, c, entries, columns, is_searched, visit, [] {});
}
