// Branches of a categorical column, one a category.
struct Branches {
    i64 gain, split, heavy, parts;
};

// Sums over the branches that end in a warp's span; `left` has the class weights of the branch that
// begins before it.
__device__ Branches add_branches(
    const Task& task, const Segment& segment, Span span, i64* left
) {
    const Information& information = task.information;
    Branches sums = {0, 0, 0, 0};
    i64 carried = sum_of(left, task.n_classes);
    for (i64 i0 = span.first; i0 < span.last; i0 += 32) {
        const i64 i = i0 + lane_of();
        const u32* code = segment.list.code;
        const Place place = place_at(segment.list, task.entries, i, span.last);
        const bool starts = place.valid && (i == segment.begin || code[i - 1] != place.code);
        const bool ends = place.valid && (i + 1 == segment.known || code[i + 1] != place.code);
        const u32 begun = __ballot_sync(ALL_LANES, starts) & ((2u << lane_of()) - 1u);
        const int first = begun ? 31 - __clz(int(begun)) : -1;  // lane where the branch begins
        const u64 pair = place.valid ? u64(first + 1) << 32 | u64(place.k) : ~u64(0);
        const u32 alike = __match_any_sync(ALL_LANES, pair);
        i64 after = weight_upto(task.entries, alike, place.weight);
        if (place.valid) {
            if (first < 0) after += left[place.k];
            sums.gain += term(information, after) - term(information, after - place.weight);
        }
        const i64 upto = inclusive_sum(place.weight);
        const i64 before = __shfl_sync(ALL_LANES, upto - place.weight, first < 0 ? 0 : first);
        const i64 branch = first < 0 ? carried + upto : upto - before;
        if (ends) {
            const i64 terms = term(information, branch);
            sums.gain -= terms;
            sums.split -= terms;
            sums.parts += 1;
            sums.heavy += double(branch) >= task.limits.least - task.limits.slack;
        }
        carried = last_lane(branch);
        const int open = __shfl_sync(ALL_LANES, first, 31);
        __syncwarp();
        if (open >= 0)
            for (i64 k = lane_of(); k < task.n_classes; k += 32) left[k] = 0;
        __syncwarp();
        if (place.valid && first == open && is_last(alike)) left[place.k] = after;
        __syncwarp();
    }
    return {warp_sum(sums.gain), warp_sum(sums.split), warp_sum(sums.heavy), warp_sum(sums.parts)};
}

__device__ Candidate score_categorical(
    const Task& task, const Segment& segment, const Vectors& vectors, i64 whole
) {
    __shared__ Branches partial[MOST_WARPS];
    __shared__ i64 terms[MOST_WARPS];
    const Information& information = task.information;
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const Branches added = add_branches(
        task, segment, span_of(segment.begin, segment.known, warp, warps),
        vectors.left + warp * task.n_classes
    );
    i64 within = 0;
    for (i64 k = threadIdx.x; k < task.n_classes; k += blockDim.x)
        within += term(information, vectors.known[k]);
    within = warp_sum(within);
    if (lane_of() == 0) {
        partial[warp] = added;
        terms[warp] = within;
    }
    const i64 total = sum_of(vectors.known, task.n_classes);
    __syncthreads();
    Candidate found = {-1, 0, 0, 0, 0, 0};
    if (threadIdx.x != 0) return found;
    i64 gain = term(information, total);
    found.split = term(information, whole) - term(information, whole - total);
    for (int w = 0; w < warps; ++w) {
        gain += partial[w].gain - terms[w];
        found.split += partial[w].split;
        found.tries += partial[w].heavy;
        found.parts += partial[w].parts;
    }
    const i64 steps = in_steps(information, gain);
    if (found.tries >= 2) found.gain = steps > 0 ? steps : 0;
    return found;
}
