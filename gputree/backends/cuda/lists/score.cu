// The best test of a column in a node, by information gain, from its sorted list.
//
//   warps      | 0         | 1         | 2         |      spans of the known values; before it
//   classes    | counted   | counted   | counted   |      walks, each knows the class weights
//   left       | 0         | 0         | 0 + 1     |      left of its span
//
// A place changes only the terms of its class. All sums are of integers: neither their order nor
// the assignment to warps has any effect.

struct LevelNodes {
    i64 number;
    const i64* begin;  // their entries
    const i64* end;
    const i64* weights;  // (number, classes)
    const u8* resting;   // (columns, number): lists that are no longer updated
};

// Grid: pairs of the nodes node[] and columns, in turn; block: 1 to MOST_WARPS warps. A block
// works in (warps + 1) vectors of class weights, in shared memory or in `scratch`.
// out[.][f][j]: the fields of `Candidate`, in 64 bits each.
extern "C" __global__ void __launch_bounds__(512) score_columns(
    const __grid_constant__ Task task, Columns columns, LevelNodes nodes, const i64* node,
    i64 n_nodes, i64* scratch, i64* out
) {
    extern __shared__ i64 shared[];
    __shared__ i64 turned[MOST_WARPS];
    const i64 n_classes = task.n_classes, width = ((blockDim.x >> 5) + 1) * n_classes;
    i64* known = scratch ? scratch + blockIdx.x * width : shared;
    const Vectors vectors = {known, known + n_classes, turned};
    for (i64 pair = blockIdx.x; pair < n_nodes * columns.number; pair += gridDim.x) {
        const i64 f = pair % columns.number, j = node[pair / columns.number];
        const i64 slot = f * nodes.number + j;
        const i64 *begin = nodes.begin, *end = nodes.end;
        Candidate found = {-1, 0, 0, 1, 0, 0};
        const List list = columns.list(f);
        const bool categorical = columns.categorical[f] != 0;
        const bool as_is = nodes.resting[slot] || (categorical && task.missing_is_category);
        const i64 stop = as_is ? end[j] : known_end(list.code, begin[j], end[j]);
        const Segment segment = {list, begin[j], stop, end[j], categorical};
        const bool varies = !nodes.resting[slot] && stop > begin[j] &&
                            list.code[begin[j]] != list.code[stop - 1];
        if (varies) {
            const i64* weights = nodes.weights + j * n_classes;
            prepare(task, segment, weights, vectors);
            const i64 whole = sum_of(weights, n_classes);
            found = segment.categorical ? score_categorical(task, segment, vectors, whole)
                                    : score_numeric(task, segment, vectors, whole);
        }
        if (threadIdx.x == 0) {
            const i64 plane = columns.number * nodes.number;
            const i64 fields[] = {
                found.gain, found.split, found.tries, found.parts, found.cut, found.after
            };
            for (int field = 0; field < 6; ++field) out[field * plane + slot] = fields[field];
        }
        __syncthreads();
    }
}
