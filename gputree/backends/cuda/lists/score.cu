// The best test of a column in a node, by information gain, from its sorted list.
//
//   warps      | 0         | 1         | 2         |      spans of the known values; before it
//   classes    | counted   | counted   | counted   |      walks, each knows the class weights
//   left       | 0         | 0         | 0 + 1     |      left of its span
//
// A place changes the terms of its own class alone. All sums are of integers: they have no
// order, and which warp adds what does not show.

// Grid: pairs of the nodes node[] and columns, in turn; block: 1 to MOST_WARPS warps. A block
// works in (warps + 1) vectors of class weights, in shared memory or in `scratch`.
// out[.][f][j]: the fields of `Candidate`, in 64 bits each.
extern "C" __global__ void __launch_bounds__(512) score_columns(
    double unit, double scale, i64 shift, i64 row_bits, const i64* terms, i64 n_terms,
    double least, double cut_share, double most, double slack, double weight_unit,
    i64 missing_is_category, const u8* nominal, i64 columns, i64 n_entries, const i32* item,
    const u32* code, const i32* target, const i64* weight, i64 n_classes, const i64* node,
    i64 n_nodes, const i64* begin, const i64* end, const i64* weights, const u8* resting,
    i64 level_nodes, i64* scratch, i64* out
) {
    extern __shared__ i64 shared[];
    __shared__ i64 turned[MOST_WARPS];
    const Task task = {
        {unit, scale, shift, row_bits, terms, n_terms},
        {least, cut_share, most, slack, weight_unit}, {target, weight}, n_classes
    };
    const i64 room = ((blockDim.x >> 5) + 1) * n_classes;
    i64* known = scratch ? scratch + blockIdx.x * room : shared;
    const Vectors vectors = {known, known + n_classes, turned};
    for (i64 pair = blockIdx.x; pair < n_nodes * columns; pair += gridDim.x) {
        const i64 f = pair % columns, j = node[pair / columns], at = f * level_nodes + j;
        Candidate found = {-1, 0, 0, 1, 0, 0};
        const List list = {item + f * n_entries, code + f * n_entries};
        const bool all_known = nominal[f] && missing_is_category;
        const bool as_is = all_known || resting[at];  // a list that rests is not kept up
        const i64 stop = as_is ? end[j] : known_end(list.code, begin[j], end[j]);
        const Segment segment = {list, begin[j], stop, end[j], nominal[f] != 0};
        const bool varies = !resting[at] && stop > begin[j] &&
                            list.code[begin[j]] != list.code[stop - 1];
        if (varies) {
            const i64* own = weights + j * n_classes;
            prepare(task, segment, own, vectors);
            const i64 whole = sum_of(own, n_classes);
            found = segment.nominal ? score_nominal(task, segment, vectors, whole)
                                    : score_numeric(task, segment, vectors, whole);
        }
        if (threadIdx.x == 0) {
            const i64 plane = columns * level_nodes;
            const i64 fields[] = {
                found.gain, found.split, found.tries, found.parts, found.cut, found.after
            };
            for (int field = 0; field < 6; ++field) out[field * plane + at] = fields[field];
        }
        __syncthreads();
    }
}
