// A column in a node, and the class weights that a block scores it with.
struct BranchLimits {
    double least, cut_share, most, slack, unit;
};

struct Candidate {  // of a column in a node; see gputree/backends/lists.py
    i64 gain, split, tries, parts;
    u32 cut, after;
};

struct Task {
    Information information;
    BranchLimits limits;
    Entries entries;
    i64 n_classes, missing_is_category;
};

struct Segment {  // of a list: a node's; missing values are at known .. end
    List list;
    i64 begin, known, end;
    bool categorical;
};

struct Vectors {  // of class weights, of a block
    i64* known;
    i64* left;  // one a warp: left of its place in the list, or in its branch
    i64* turned;  // one number a warp: last place where its class changed
};

// Subtract the missing values from `known`.
__device__ void take_missing(const Task& task, const Segment& segment, i64* known) {
    for (i64 i0 = segment.known + (threadIdx.x & ~31u); i0 < segment.end; i0 += blockDim.x) {
        const Place place = place_at(segment.list, task.entries, i0 + lane_of(), segment.end);
        const u32 alike = __match_any_sync(ALL_LANES, place.valid ? i32(place.k) : -1);
        const i64 sum = weight_upto(task.entries, alike, place.weight);
        if (place.valid && is_last(alike)) add_to_global(known + place.k, -sum);
    }
    __syncthreads();
}

// The first place of the code at last - 1, or `first` if it begins before.
__device__ i64 code_begin(const u32* code, i64 first, i64 last) {
    const u32 last_code = code[last - 1];
    return first_behind(first, last - 1, [&](i64 i) { return code[i] == last_code; });
}

// Class of the place before, -1 where there is none.
__device__ i64 class_before(const Task& task, const Segment& segment, i64 i) {
    return i > segment.begin ? task.entries.target[segment.list.item[i - 1]] : -1;
}

// True if the class differs from the place before; `previous` is the class before the tile.
__device__ bool turns_at(const Place& place, i64 previous) {
    const i64 before = __shfl_up_sync(ALL_LANES, place.k, 1);
    return place.valid && place.k != (lane_of() == 0 ? previous : before);
}

// Class weights of a warp's span; only of its last branch in a categorical column. Returns the last
// place in it whose class differs from that of the place before, or its first.
__device__ i64 count_span(const Task& task, const Segment& segment, Span span, i64* left) {
    if (span.first == span.last) return segment.begin;
    if (segment.categorical) span.first = code_begin(segment.list.code, span.first, span.last);
    i64 turned = segment.begin, previous = class_before(task, segment, span.first);
    for (i64 i0 = span.first; i0 < span.last; i0 += 32) {
        const Place place = place_at(segment.list, task.entries, i0 + lane_of(), span.last);
        const u32 alike = __match_any_sync(ALL_LANES, place.valid ? i32(place.k) : -1);
        const i64 sum = weight_upto(task.entries, alike, place.weight);
        if (place.valid && is_last(alike)) left[place.k] += sum;
        const u32 turns = __ballot_sync(ALL_LANES, turns_at(place, previous));
        if (turns) turned = i0 + 31 - __clz(int(turns));
        previous = last_lane(place.k);
        __syncwarp();
    }
    return turned;
}

// Turn counts of spans into class weights left of each; of its first branch in a categorical
// column.
__device__ void carry_over(const Task& task, const Segment& segment, int warps, i64* left) {
    const u32* code = segment.list.code;
    for (i64 k = threadIdx.x; k < task.n_classes; k += blockDim.x) {
        i64 carry = 0;
        for (int w = 0; w < warps; ++w) {
            const Span span = span_of(segment.begin, segment.known, w, warps);
            if (span.first == span.last) break;
            i64* place = left + w * task.n_classes + k;
            const i64 count = *place;
            const bool goes_on = !segment.categorical ||
                                 (w > 0 && code[span.first - 1] == code[span.first]);
            if (!goes_on) carry = 0;
            *place = carry;
            const bool is_whole = !segment.categorical || code[span.first] == code[span.last - 1];
            carry = count + (is_whole ? carry : 0);
        }
    }
}

// Fill the vectors: the node's known class weights, and those left of each warp's span.
__device__ void prepare(
    const Task& task, const Segment& segment, const i64* weights, const Vectors& vectors
) {
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (i64 k = threadIdx.x; k < task.n_classes; k += blockDim.x) vectors.known[k] = weights[k];
    for (i64 k = threadIdx.x; k < task.n_classes * warps; k += blockDim.x) vectors.left[k] = 0;
    __syncthreads();
    take_missing(task, segment, vectors.known);
    if (warps == 1) return;
    const Span span = span_of(segment.begin, segment.known, warp, warps);
    const i64 turned = count_span(task, segment, span, vectors.left + warp * task.n_classes);
    if (lane_of() == 0) vectors.turned[warp] = turned;
    __syncthreads();
    carry_over(task, segment, warps, vectors.left);
    __syncthreads();
}

__device__ i64 sum_of(const i64* weights, i64 n_classes) {
    i64 sum = 0;
    for (i64 k = lane_of(); k < n_classes; k += 32) sum += weights[k];
    return warp_sum(sum);
}
