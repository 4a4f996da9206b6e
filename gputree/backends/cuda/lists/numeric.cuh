// Cuts of a numeric column.
//
// A cut between two values of the same class is not considered (Fayyad and Irani 1992) unless it is
// the first or the last that is admissible. So a cut is decided on where the value after it ends,
// or by the block where that is in another warp's span:
//
//   values    | 3  3 | 5 | 7  7  7 |      the cut behind 5 is open until the end of 7: it is
//   classes   | 0  1 | 1 | 1  1  1 |      out, since the class has not turned since 5 began
struct Cut {
    i64 gain, place, before;  // its gain, the last place left of it, the weight up to there
};

struct Open {  // a cut that is not decided on yet
    Cut cut;
    i64 begin;  // of the value before it
};

struct Walk {  // the cuts that a warp finds in its span
    Cut best, first, last;  // best of those decided on; first and last of all admissible
    i64 tries;
    i64 turned;  // where the class turned last before the first value's end, -1 without one
    Open open;
};

#define NO_CUT {0, -1, 0}

__device__ __forceinline__ Cut better(const Cut& a, const Cut& b) {
    return b.gain > a.gain || (b.gain == a.gain && b.place < a.place) ? b : a;
}

__device__ Cut warp_best(Cut cut) {
    for (int distance = 16; distance > 0; distance /= 2)
        cut = better(cut, from_lane(cut, lane_of() ^ distance));
    return cut;
}

__device__ Cut warp_last(Cut cut) {
    for (int distance = 16; distance > 0; distance /= 2) {
        const Cut other = from_lane(cut, lane_of() ^ distance);
        if (other.place > cut.place) cut = other;
    }
    return cut;
}

// Minimum units on either side of a cut; more than `total` where too few entries are known.
__device__ i64 least_side(const Task& task, i64 total, i64 count) {
    const BranchLimits& limits = task.limits;
    double weight = limits.cut_share * double(total);
    weight = weight <= limits.least + limits.slack ? limits.least : lesser_of(weight, limits.most);
    if (double(count) < (2.0 * weight - limits.slack) * limits.unit) return total + 1;
    const i64 units = i64(ceil(weight - limits.slack));
    return units > 1 ? units : 1;
}

// Terms of the classes on both sides, minus the terms of the node.
__device__ i64 terms_left_of(const Task& task, const i64* known, const i64* left) {
    i64 terms = 0;
    for (i64 k = lane_of(); k < task.n_classes; k += 32) {
        if (left[k] == 0) continue;
        terms += term(task.information, left[k]) - term(task.information, known[k]);
        terms += term(task.information, known[k] - left[k]);
    }
    return warp_sum(terms);
}

// Last place in the tile, up to this lane, with a bit in `lanes`; else `before`.
__device__ __forceinline__ i64 last_upto(u32 lanes, i64 i0, i64 before) {
    lanes &= (2u << lane_of()) - 1u;
    return lanes ? i0 + 31 - __clz(int(lanes)) : before;
}

struct Halves {  // the weight of a numeric column that cuts divide
    i64 total, least;  // known weight, and the minimum on either side of a cut
    const i64* known;
    i64* left;
};

// Move a place of each lane to the left; returns the change of the sum of terms.
__device__ i64 move_left(const Task& task, const Halves& sides, const Place& place) {
    const Information& information = task.information;
    const u32 alike = __match_any_sync(ALL_LANES, place.valid ? i32(place.k) : -1);
    const i64 upto = weight_upto(task.entries, alike, place.weight);
    i64 change = 0, left = 0;
    if (place.valid) {
        left = sides.left[place.k] + upto;
        const i64 right = sides.known[place.k] - left;
        change = term(information, left) - term(information, left - place.weight) +
                 term(information, right) - term(information, right + place.weight);
    }
    __syncwarp();
    if (place.valid && is_last(alike)) sides.left[place.k] = left;
    __syncwarp();
    return change;
}

struct Ends {  // of the values in a tile
    Cut cut;  // behind the value that ends at this lane, of gain -1 where it is not admissible
    bool is_end, is_cut;
    i64 begin, turn;  // of the value at this lane; where the class turned last
};

// Process the cuts of a tile: each is decided on where the next value ends.
__device__ void take_cuts(const Ends& ends, i64 i0, Walk& walk) {
    if (ends.is_cut) walk.last = ends.cut;
    const u32 cuts = __ballot_sync(ALL_LANES, ends.is_cut);
    if (walk.tries == 0 && cuts) walk.first = from_lane(ends.cut, __ffs(int(cuts)) - 1);
    walk.tries += __popc(cuts);
    const bool in_tile = ends.begin > i0;  // where the value before ends
    const int lane = in_tile ? int(ends.begin - 1 - i0) : 0;
    const Open opened = {ends.cut, ends.begin};
    const Open before = from_lane(opened, lane), open = in_tile ? before : walk.open;
    if (ends.is_end && ends.turn > open.begin) walk.best = better(walk.best, open.cut);
    const u32 ending = __ballot_sync(ALL_LANES, ends.is_end);
    if (!ending) return;
    if (walk.open.cut.place < 0)
        walk.turned = __shfl_sync(ALL_LANES, ends.turn, __ffs(int(ending)) - 1);
    walk.open = from_lane(opened, 31 - __clz(int(ending)));
}

// The cuts in a warp's span; `turned`: last place before it where the class changed.
__device__ Walk walk_cuts(
    const Task& task, const Segment& segment, Span span, const Halves& sides, i64 turned
) {
    const Information& information = task.information;
    const u32* code = segment.list.code;
    Walk walk = {NO_CUT, NO_CUT, NO_CUT, 0, -1, {NO_CUT, 0}};
    if (span.first == span.last) return walk;
    i64 previous = class_before(task, segment, span.first);
    i64 begun = code_begin(code, segment.begin, span.first + 1);
    i64 before = sum_of(sides.left, task.n_classes);
    i64 gained = term(information, sides.total) + terms_left_of(task, sides.known, sides.left);
    for (i64 i0 = span.first; i0 < span.last; i0 += 32) {
        const i64 i = i0 + lane_of();
        const Place place = place_at(segment.list, task.entries, i, span.last);
        const i64 terms = gained + inclusive_sum(move_left(task, sides, place));
        const i64 weight = before + inclusive_sum(place.weight), rest = sides.total - weight;
        const bool starts = place.valid && (i == segment.begin || code[i - 1] != place.code);
        const bool is_end = place.valid && (i + 1 == segment.known || code[i + 1] != place.code);
        const bool is_cut = is_end && weight >= sides.least && rest >= sides.least;
        Ends ends = {{-1, i, weight}, is_end, is_cut};
        ends.begin = last_upto(__ballot_sync(ALL_LANES, starts), i0, begun);
        ends.turn = last_upto(__ballot_sync(ALL_LANES, turns_at(place, previous)), i0, turned);
        if (is_cut) {
            const i64 both = term(information, weight) + term(information, rest);
            ends.cut.gain = in_steps(information, terms - both);
        }
        take_cuts(ends, i0, walk);
        before = last_lane(weight);
        gained = last_lane(terms);
        begun = last_lane(ends.begin);
        turned = last_lane(ends.turn);
        previous = last_lane(place.k);
    }
    return walk;
}

// Join the walks of all warps.
__device__ Cut join(const Walk* walks, int warps, i64& tries) {
    Cut cut = NO_CUT, last = NO_CUT;
    Open open = {NO_CUT, 0};
    for (int w = 0; w < warps; ++w) {
        const Walk& walk = walks[w];
        if (walk.turned > open.begin) cut = better(cut, open.cut);
        cut = better(cut, walk.best);
        if (tries == 0) cut = better(cut, walk.first);
        if (walk.tries > 0) last = walk.last;
        if (walk.open.cut.place >= 0) open = walk.open;
        tries += walk.tries;
    }
    return better(cut, last);
}

__device__ Candidate score_numeric(
    const Task& task, const Segment& segment, const Vectors& vectors, i64 whole
) {
    __shared__ Walk walks[MOST_WARPS];
    const Information& information = task.information;
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const Candidate none = {-1, 0, 0, 2, 0, 0};
    const i64 total = sum_of(vectors.known, task.n_classes);
    const i64 min_weight = least_side(task, total, segment.known - segment.begin);
    if (total < 2 * min_weight) return none;
    const Halves sides = {total, min_weight, vectors.known, vectors.left + warp * task.n_classes};
    i64 turned = segment.begin;
    for (int w = 0; w < warp; ++w) turned = vectors.turned[w] > turned ? vectors.turned[w] : turned;
    Walk walk =
        walk_cuts(task, segment, span_of(segment.begin, segment.known, warp, warps), sides, turned);
    walk.best = warp_best(walk.best);
    walk.last = warp_last(walk.last);
    if (lane_of() == 0) walks[warp] = walk;
    __syncthreads();
    if (threadIdx.x != 0) return none;
    i64 tries = 0;
    const Cut cut = join(walks, warps, tries);
    if (cut.gain == 0) return none;
    const i64 split = term(information, whole) - term(information, cut.before) -
                      term(information, total - cut.before) - term(information, whole - total);
    const u32* code = segment.list.code + cut.place;
    return {cut.gain, split, tries, 2, code[0], code[1]};
}
