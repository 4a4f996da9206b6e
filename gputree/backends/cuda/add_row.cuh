// Adding rows to the cells of histograms, in shared memory or in global.
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
