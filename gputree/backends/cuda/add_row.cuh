// Adding rows to the cells of histograms, in shared memory or in global.
struct InShared {
    static __device__ void add(Cell* cell, Cell value) { add_to_shared(cell, value); }
};
struct InGlobal {
    static __device__ void add(Cell* cell, Cell value) { add_to_global(cell, value); }
};

// Add a row to the channels of the cell of one of its bins.
template <class Memory>
__device__ void add_row(Cell* cell, i64 channels, const Rows& rows, i64 row) {
#if REGRESSION
    Memory::add(cell, weight_of(rows.weight, row));
    Memory::add(cell + 1, rows.target[row]);
    Memory::add(cell + 2, rows.square[row]);
#else
    Memory::add(cell + rows.target[row], Cell(weight_of(rows.weight, row)));
#endif
    if (WEIGHTED) Memory::add(cell + channels - 1, 1);
}
