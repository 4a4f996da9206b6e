// Additive histograms of row statistics by (column, bin), and the larger sibling's by subtraction.

struct InShared {
    static __device__ void add(Cell* cell, Cell value) { add_to_shared(cell, value); }
};
struct InGlobal {
    static __device__ void add(Cell* cell, Cell value) { add_to_global(cell, value); }
};

// Add one row to the channels of the cell of one of its bins.
template <class Memory>
__device__ void add_row(Cell* cell, i64 channels, Target target, i64 weight, i64 square) {
#if REGRESSION
    Memory::add(cell, weight);
    Memory::add(cell + 1, target);
    Memory::add(cell + 2, square);
#else
    Memory::add(cell + target, Cell(weight));
#endif
    if (WEIGHTED) Memory::add(cell + channels - 1, 1);
}

// Add entries first .. last to `cells`, which begin at the first bin of column 4 * first_word.
// Codes are read as words of four columns: neighbouring threads read neighbouring words.
template <class Memory>
__device__ void add_entries(
    const u8* codes, i64 stride, const Target* target, const i64* weight, const i64* square,
    const i32* entries, i64 first, i64 last, i64 first_word, i64 last_word, i64 columns,
    const i64* offset, i64 channels, Cell* cells
) {
    const i64 words = last_word - first_word;
    for (i64 item = threadIdx.x; item < (last - first) * words; item += blockDim.x) {
        const i64 row = entries[first + item / words];
        const i64 word = first_word + item % words;
        u32 packed = ((const u32*)(codes + row * stride))[word];
        for (i64 f = 4 * word; f < 4 * word + 4 && f < columns; ++f) {
            const i64 bin = offset[f] - offset[4 * first_word] + (packed & 0xff);
            packed >>= 8;
            add_row<Memory>(
                cells + bin * channels, channels, target[row], weight_of(weight, row),
                REGRESSION ? square[row] : 0
            );
        }
    }
}

// Grid: chunks of entries x groups of columns, groups of a chunk side by side, since they read the
// same rows; one dimension, since others end at 65,535. Chunk c adds entries first[c] .. last[c] to
// the histogram at out[slot[c]]; group g has the words group[g] .. group[g + 1] of a row of codes.
extern "C" __global__ void __launch_bounds__(256) histogram(
    const u8* codes, i64 stride, const Target* target, const i64* weight, const i64* square,
    const i32* entries, const i64* slot, const i64* first, const i64* last, const i64* group,
    i64 groups, i64 columns, const i64* offset, i64 channels, Cell* out
) {
    extern __shared__ i64 dynamic[];
    Cell* cells = (Cell*)dynamic;
    const i64 c = blockIdx.x / groups, g = blockIdx.x % groups;
    const i64 first_word = group[g], last_word = group[g + 1];
    const i64 begin = offset[4 * first_word];
    const i64 end = offset[4 * last_word < columns ? 4 * last_word : columns];
    const i64 size = (end - begin) * channels;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) cells[i] = 0;
    __syncthreads();
    add_entries<InShared>(
        codes, stride, target, weight, square, entries, first[c], last[c], first_word, last_word,
        columns, offset, channels, cells
    );
    __syncthreads();
    Cell* own = out + (slot[c] * offset[columns] + begin) * channels;
    for (i64 i = threadIdx.x; i < size; i += blockDim.x)
        if (cells[i] != 0) add_to_global(own + i, cells[i]);
}

// The same without shared memory, for cells that do not fit it. One group: all columns.
extern "C" __global__ void __launch_bounds__(256) histogram_global(
    const u8* codes, i64 stride, const Target* target, const i64* weight, const i64* square,
    const i32* entries, const i64* slot, const i64* first, const i64* last, const i64* group,
    i64 groups, i64 columns, const i64* offset, i64 channels, Cell* out
) {
    const i64 c = blockIdx.x;
    add_entries<InGlobal>(
        codes, stride, target, weight, square, entries, first[c], last[c], group[0], group[1],
        columns, offset, channels, out + slot[c] * offset[columns] * channels
    );
}

// One thread a statistic. out[slots] = whole[whole_slots] - out[part_slots], `width` each.
extern "C" __global__ void __launch_bounds__(256) subtract(
    const Cell* whole, const i64* whole_slots, Cell* out, const i64* part_slots, const i64* slots,
    i64 nodes, i64 width
) {
    const i64 at = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= nodes * width) return;
    const i64 j = at / width, i = at % width;
    out[slots[j] * width + i] = whole[whole_slots[j] * width + i] - out[part_slots[j] * width + i];
}
