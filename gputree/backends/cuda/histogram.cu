// Additive histograms of row statistics by (column, bin).

// Grid: chunks of entries x groups of columns, groups of a chunk next to each other, since they
// read the same rows; one dimension, since others end at 65,535. Chunk c is added to the histogram
// at out[slot[owner]], or, `slot` null, at out[owner]; group g has the columns group[g] ..
// group[g + 1] of the table, or of those that the owner visits in these `orders`. They have `bins`
// bins at most, which are in shared memory; 0 where they do not fit it.
extern "C" __global__ void __launch_bounds__(256) histogram(
    Table table, Rows rows, const i32* entries, Chunks chunks, const i64* slot, const i64* group,
    i64 groups, const i32* orders, i64 channels, i64 bins, Cell* out
) {
    extern __shared__ i64 dynamic[];
    Cell* cells = (Cell*)dynamic;
    const i64 c = blockIdx.x / groups, g = blockIdx.x % groups;
    if (chunks.lack(c)) return;
    const i64 j = chunks.owner[c], first = chunks.first[c], begin = group[g];
    const i32* drawn = orders ? orders + j * table.columns + begin : nullptr;
    const auto column = [&](u32 k) { return drawn ? drawn[k] : begin + k; };
    const u32 width = u32(group[g + 1] - begin), items = u32(chunks.last[c] - first) * width;
    const u32 size = u32(bins * channels);
    Cell* node = out + slot_of(slot, j) * table.offset[table.columns] * channels;
    for (u32 i = threadIdx.x; i < width * size; i += blockDim.x) cells[i] = 0;
    __syncthreads();
    // Neighbouring threads read codes of one row.
    for (u32 item = threadIdx.x; item < items; item += blockDim.x) {
        const i64 row = entries[first + item / width], f = column(item % width);
        const i64 code = table.codes_of(row)[f];
        if (size > 0)
            add_row<InShared>(cells + item % width * size + code * channels, channels, rows, row);
        else
            add_row<InGlobal>(node + (table.offset[f] + code) * channels, channels, rows, row);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < width * size; i += blockDim.x)
        if (cells[i] != 0)
            add_to_global(node + table.offset[column(i / size)] * channels + i % size, cells[i]);
}

#define READ_AT_ONCE 8  // rows whose codes a lane reads before it counts the first

// The same of two classes that are counted: a lane keeps to a column, and to its bank of shared
// memory, which no other lane uses. Lane l counts column l % width of the group, of every
// `copies`-th row, a power of two up to 32 / READ_AT_ONCE; width = 32 / copies. A cell has 16 bits
// for each class: a chunk has fewer than 2**16 rows. Lanes without a column count what is not read.
extern "C" __global__ void __launch_bounds__(256) histogram_of_two(
    Table table, Rows rows, const i32* entries, Chunks chunks, const i64* slot, const i64* group,
    i64 groups, const i32* orders, i64 copies, i64 bins, Cell* out
) {
    extern __shared__ i64 dynamic[];
    u32* words = (u32*)dynamic;
    const i64 c = blockIdx.x / groups, g = blockIdx.x % groups;
    if (chunks.lack(c)) return;
    const i64 last = chunks.last[c], first = group[g], end = group[g + 1], j = chunks.owner[c];
    const auto column = [&](i64 i) { return orders ? orders[j * table.columns + i] : i; };
    const u32 lane = threadIdx.x & 31, step = u32(copies), width = 32 / step, size = u32(bins) * 32;
    for (u32 i = threadIdx.x; i < size; i += blockDim.x) words[i] = 0;
    __syncthreads();
    const i64 counted = first + lane % width;
    const u8* codes = table.codes + column(counted < end ? counted : first);
    // A warp counts 32 rows, whose lanes know row and class; 0 is added for rows behind the last.
    for (i64 i0 = chunks.first[c] + (threadIdx.x & ~31u); i0 < last; i0 += blockDim.x) {
        const i64 row = i0 + lane < last ? entries[i0 + lane] : entries[i0];
        const u32 one = i0 + lane < last ? 1u << 16 * u32(rows.target[row]) : 0;
        const i64 origin = table.row_of(row);
        for (u32 k = lane / width; k < 32; k += READ_AT_ONCE * step) {
            u32 code[READ_AT_ONCE];
#pragma unroll
            for (u32 a = 0; a < READ_AT_ONCE; ++a)
                code[a] = codes[__shfl_sync(ALL_LANES, origin, k + a * step) * table.stride];
#pragma unroll
            for (u32 a = 0; a < READ_AT_ONCE; ++a)
                atomicAdd(words + code[a] * 32 + lane, __shfl_sync(ALL_LANES, one, k + a * step));
        }
    }
    __syncthreads();
    Cell* node = out + slot_of(slot, j) * table.offset[table.columns] * 2;
    for (u32 i = threadIdx.x; i < size; i += blockDim.x) {
        const u32 both = words[i];
        const i64 place = first + (i & 31) % width;
        if (both == 0 || place >= end) continue;
        Cell* cell = node + (table.offset[column(place)] + i / 32) * 2;
        if (both & 0xffff) add_to_global(cell, Cell(both & 0xffff));
        if (both >> 16) add_to_global(cell + 1, Cell(both >> 16));
    }
}
