// Additive histograms of row statistics by (column, bin), and the larger sibling's by subtraction.

// Add entries first .. last to `cells`, which begin at the first bin of column 4 * first_word.
// Codes are read as words of four columns: neighbouring threads read neighbouring words.
template <class Memory>
__device__ void add_entries(
    const Table& table, const Rows& rows, const i32* entries, i64 first, i64 last, i64 first_word,
    i64 last_word, i64 channels, Cell* cells
) {
    const u32 words = u32(last_word - first_word), items = u32(last - first) * words;
    for (u32 item = threadIdx.x; item < items; item += blockDim.x) {
        const i64 row = entries[first + item / words];
        const i64 word = first_word + item % words;
        u32 packed = ((const u32*)(table.codes + row * table.stride))[word];
        for (i64 f = 4 * word; f < 4 * word + 4 && f < table.columns; ++f) {
            const i64 bin = table.offset[f] - table.offset[4 * first_word] + (packed & 0xff);
            packed >>= 8;
            add_row<Memory>(cells + bin * channels, channels, rows, row);
        }
    }
}

// Grid: chunks of entries x groups of columns, groups of a chunk next to each other, since they
// read the same rows; one dimension, since others end at 65,535. Chunk c is added to the histogram
// at out[slot[owner]]; group g has the words group[g] .. group[g + 1] of a row of codes.
extern "C" __global__ void __launch_bounds__(256) histogram(
    Table table, Rows rows, const i32* entries, Chunks chunks, const i64* slot, const i64* group,
    i64 groups, i64 channels, Cell* out
) {
    extern __shared__ i64 dynamic[];
    Cell* cells = (Cell*)dynamic;
    const i64 c = blockIdx.x / groups, g = blockIdx.x % groups;
    const i64 first_word = group[g], last_word = group[g + 1];
    const i64* offset = table.offset;
    const i64 begin = offset[4 * first_word];
    const i64 end = offset[4 * last_word < table.columns ? 4 * last_word : table.columns];
    const i64 size = (end - begin) * channels;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) cells[i] = 0;
    __syncthreads();
    add_entries<InShared>(
        table, rows, entries, chunks.first[c], chunks.last[c], first_word, last_word, channels,
        cells
    );
    __syncthreads();
    Cell* cells_out = out + (slot[chunks.owner[c]] * offset[table.columns] + begin) * channels;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x)
        if (cells[i] != 0) add_to_global(cells_out + i, cells[i]);
}

// The same without shared memory, for cells that do not fit it. One group of columns.
extern "C" __global__ void __launch_bounds__(256) histogram_global(
    Table table, Rows rows, const i32* entries, Chunks chunks, const i64* slot, const i64* group,
    i64 groups, i64 channels, Cell* out
) {
    const i64 c = blockIdx.x, node_first = slot[chunks.owner[c]] * table.offset[table.columns];
    add_entries<InGlobal>(
        table, rows, entries, chunks.first[c], chunks.last[c], group[0], group[1], channels,
        out + (node_first + table.offset[4 * group[0]]) * channels
    );
}

// One thread a statistic. out[slots] = whole[whole_slots] - out[part_slots], `width` each.
extern "C" __global__ void __launch_bounds__(256) subtract(
    const Cell* whole, const i64* whole_slots, Cell* out, const i64* part_slots, const i64* slots,
    i64 nodes, i64 width
) {
    const i64 cell = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (cell >= nodes * width) return;
    const i64 j = cell / width, i = cell % width;
    out[slots[j] * width + i] = whole[whole_slots[j] * width + i] - out[part_slots[j] * width + i];
}
