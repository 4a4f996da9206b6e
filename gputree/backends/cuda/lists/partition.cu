// Entries and lists of a level become those of the next.
//
//   list of the tested column   | a d | b e | c |      parts lie side by side in it, and
//   entries of the next level   | a d c | b e c |      entries are numbered in its order; c is
//                                                      missing: a fraction goes to every part
//
// Numbers of entries, and the order of those of one code, change nothing that is ever summed.

// The part of place i, among the parts start .. stop of its test: the first that ends behind it.
__device__ i64 part_of(const i64* last, i64 start, i64 stop, i64 i) {
    --stop;
    while (start < stop) {
        const i64 middle = start + (stop - start) / 2;
        if (last[middle] > i) stop = middle;
        else start = middle + 1;
    }
    return start;
}

// The share part / whole of a weight, in units.
__device__ __forceinline__ i64 fraction(i64 weight, i64 part, i64 whole) {
    return i64(rint(double(weight) * (double(part) / double(whole))));
}

// The first place whose code is above the cut.
__device__ i64 behind_cut(const u32* code, i64 begin, i64 end, u32 cut) {
    while (begin < end) {
        const i64 middle = begin + (end - begin) / 2;
        if (code[middle] > cut) end = middle;
        else begin = middle + 1;
    }
    return begin;
}

// Places and codes of the branches of a nominal column; `part` is the first of them.
__device__ void find_branches(
    const u32* code, i64 begin, i64 end, i64 part, i64* first, i64* last, i64* part_code
) {
    __shared__ i64 begun[MOST_WARPS];
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const Span span = span_of(begin, end, warp, warps);
    i64 number = 0;
    for (i64 i = span.first + lane_of(); i < span.last; i += 32)
        number += i == begin || code[i - 1] != code[i];
    number = warp_sum(number);
    if (lane_of() == 0) begun[warp] = number;
    __syncthreads();
    for (int w = 0; w < warp; ++w) part += begun[w];
    for (i64 i0 = span.first; i0 < span.last; i0 += 32) {
        const i64 i = i0 + lane_of();
        const bool valid = i < span.last;
        const bool starts = valid && (i == begin || code[i - 1] != code[i]);
        const u32 vote = __ballot_sync(ALL_LANES, starts);
        const i64 own = part + __popc(vote & ((2u << lane_of()) - 1u)) - 1;
        if (starts) {
            first[own] = i;
            part_code[own] = code[i];
        }
        if (valid && (i + 1 == end || code[i + 1] != code[i])) last[own] = i + 1;
        part += __popc(vote);
    }
}

// Grid: the tests test[]; block: 1 to MOST_WARPS warps. Where the parts lie in the list of the
// tested column, their codes, and how many values are missing.
extern "C" __global__ void __launch_bounds__(512) find_parts(
    const i64* test, const u8* nominal, i64 missing_is_category, i64 n_entries, const u32* code,
    const i64* begin, const i64* end, const i32* feature, const u32* cut, const i64* part,
    i64* first, i64* last, i64* part_code, i64* missing
) {
    const i64 j = test[blockIdx.x], f = feature[j];
    const u32* own = code + f * n_entries;
    const i64 stop = missing_is_category ? end[j] : known_end(own, begin[j], end[j]);
    if (threadIdx.x == 0) missing[j] = end[j] - stop;
    if (nominal[f]) {
        find_branches(own, begin[j], stop, part[j], first, last, part_code);
    } else if (threadIdx.x == 0) {
        const i64 p = part[j], middle = behind_cut(own, begin[j], stop, cut[j]);
        first[p] = begin[j];
        last[p] = first[p + 1] = middle;
        last[p + 1] = stop;
        part_code[p] = own[begin[j]];
        part_code[p + 1] = own[middle];
    }
}

// Grid: pieces of the tests owner[]. Sum up the class weights (P, K) of known values.
extern "C" __global__ void __launch_bounds__(256) sum_parts(
    const i64* owner, const i64* piece_first, const i64* piece_last, i64 n_entries,
    const i32* item, const u32* code, const i32* target, const i64* weight, i64 n_classes,
    const i64* end, const i32* feature, const i64* part, const i64* last, const i64* missing,
    i64* weights
) {
    const i64 c = blockIdx.x, j = owner[c], f = feature[j];
    const List list = {item + f * n_entries, code + f * n_entries};
    const Entries entries = {target, weight};
    const i64 known = end[j] - missing[j];
    const i64 stop = piece_last[c] < known ? piece_last[c] : known;
    for (i64 i0 = piece_first[c] + (threadIdx.x & ~31u); i0 < stop; i0 += blockDim.x) {
        const i64 i = i0 + lane_of();
        const Place place = place_at(list, entries, i, stop);
        i64 at = -1;
        if (place.valid) at = part_of(last, part[j], part[j + 1], i) * n_classes + place.k;
        const u32 alike = __match_any_sync(ALL_LANES, at);
        const i64 sum = weight_upto(entries, alike, place.weight);
        if (place.valid && is_last(alike)) add_to_global(weights + at, sum);
    }
}

// Grid: parts; block: one warp. Known entries and weight of each part, and of its test.
extern "C" __global__ void __launch_bounds__(32) weigh_parts(
    const i64* test, const i64* first, const i64* last, i64 n_classes, const i64* weights,
    i64* rows, i64* known, i64* whole
) {
    const i64 p = blockIdx.x;
    i64 sum = 0;
    for (i64 k = lane_of(); k < n_classes; k += 32) sum += weights[p * n_classes + k];
    sum = warp_sum(sum);
    if (lane_of() != 0) return;
    rows[p] = last[p] - first[p];
    known[p] = sum;
    add_to_global(whole + test[p], sum);
}

// Grid: parts; block: one warp. Add the fractions of entries whose value is missing.
extern "C" __global__ void __launch_bounds__(32) add_fractions(
    const i64* test, i64 n_entries, const i32* item, const u32* code, const i32* target,
    const i64* weight, i64 n_classes, const i64* end, const i32* feature, const i64* missing,
    const i64* known, const i64* whole, i64* rows, i64* weights
) {
    const i64 p = blockIdx.x, j = test[p], f = feature[j];
    const List list = {item + f * n_entries, code + f * n_entries};
    const Entries entries = {target, weight};
    i64* own = weights + p * n_classes;
    i64 number = 0;
    for (i64 i0 = end[j] - missing[j]; i0 < end[j]; i0 += 32) {
        const Place place = place_at(list, entries, i0 + lane_of(), end[j]);
        const i64 share = place.valid ? fraction(place.weight, known[p], whole[j]) : 0;
        const u32 alike = __match_any_sync(ALL_LANES, place.valid ? i32(place.k) : -1);
        const i64 sum = sum_upto(alike, share);
        if (place.valid && is_last(alike)) own[place.k] += sum;
        number += __popc(__ballot_sync(ALL_LANES, share > 0));
        __syncwarp();
    }
    if (lane_of() == 0) rows[p] += number;
}

// Grid: pieces of the tests owner[]. Entries of known values go to the places of their part,
// in the order of the list. `route` becomes part of the test << 32 | place, -1 where the part
// is not opened, and for missing values -2 - the row of their places in `spread`: one in each
// part that is opened, opened[j] .. opened[j + 1] of all of them.
extern "C" __global__ void __launch_bounds__(256) move_entries(
    const i64* owner, const i64* piece_first, const i64* piece_last, i64 n_entries,
    const i32* item, const i32* target, const i64* weight, const i64* end, const i32* feature,
    const i64* part, const i64* first, const i64* last, const i64* missing,
    const i64* part_begin, const i64* opened, const i64* spread_begin, i64* route,
    i32* new_target, i64* new_weight
) {
    const i64 c = blockIdx.x, j = owner[c], start = part[j], stop = part[j + 1];
    const i64 known = end[j] - missing[j];
    for (i64 i = piece_first[c] + threadIdx.x; i < piece_last[c]; i += blockDim.x) {
        const i64 e = item[feature[j] * n_entries + i];
        if (i >= known) {
            route[e] = -2 - (spread_begin[j] + (i - known) * (opened[j + 1] - opened[j]));
            continue;
        }
        const i64 p = part_of(last, start, stop, i);
        if (part_begin[p] < 0) {
            route[e] = -1;
            continue;
        }
        const i64 to = part_begin[p] + i - first[p];
        route[e] = (p - start) << 32 | to;
        new_target[to] = target[e];
        if (weight) new_weight[to] = weight[e];
    }
}

// Grid: parts that are opened; block: one warp. Fractions of missing values lie behind the
// part's known ones; their places go to `spread`, -1 where there is none.
extern "C" __global__ void __launch_bounds__(32) place_fractions(
    const i64* open_part, const i64* test, i64 n_entries, const i32* item, const i32* target,
    const i64* weight, const i64* end, const i32* feature, const i64* first, const i64* last,
    const i64* missing, const i64* known, const i64* whole, const i64* part_begin,
    const i64* opened, const i64* spread_begin, i32* spread, i32* new_target, i64* new_weight
) {
    const i64 q = blockIdx.x, p = open_part[q], j = test[p];
    const i64 begin = end[j] - missing[j], width = opened[j + 1] - opened[j];
    const Entries entries = {target, weight};
    i64 free = part_begin[p] + last[p] - first[p];
    for (i64 i0 = begin; i0 < end[j]; i0 += 32) {
        const i64 i = i0 + lane_of();
        const bool valid = i < end[j];
        const i64 e = valid ? item[feature[j] * n_entries + i] : 0;
        const i64 share = valid ? fraction(units_of(entries, e), known[p], whole[j]) : 0;
        const u32 vote = __ballot_sync(ALL_LANES, share > 0);
        const i64 to = free + __popc(vote & ((1u << lane_of()) - 1u));
        free += __popc(vote);
        const i64 at = spread_begin[j] + (i - begin) * width + q - opened[j];
        if (valid) spread[at] = share > 0 ? i32(to) : -1;
        if (share == 0) continue;
        new_target[to] = target[e];
        if (weight) new_weight[to] = share;
    }
}

// ------------------------------------------------------------------------- lists
#define SHARED_CURSORS 512

struct Routes {  // of the entries of a test; see `move_entries`
    const i64* route;
    const i32* spread;
    const i64* opened;  // its parts that are opened
    i64 n_opened, first;  // the first of all its parts
};

struct Lists {
    i32* item;
    u32* code;
};

// Entries of a span in their order, each to the next place of its part; those in fractions to
// a place in every part that is opened. Cursors are advanced either way.
template <bool MOVE>
__device__ void walk(
    const List& list, const Routes& routes, Span span, i32* cursor, const Lists& to
) {
    const int lane = lane_of();
    for (i64 i0 = span.first; i0 < span.last; i0 += 32) {
        const bool valid = i0 + lane < span.last;
        const i64 way = valid ? routes.route[list.item[i0 + lane]] : -1;
        const u32 code = valid ? list.code[i0 + lane] : 0;
        u32 spread = __ballot_sync(ALL_LANES, way < -1);
        for (int from = 0; from < 32;) {
            const int upto = spread ? __ffs(int(spread)) - 1 : 32;  // whole ones before
            const bool own = way >= 0 && lane >= from && lane < upto;
            const i32 part = own ? i32(way >> 32) : -1;
            const u32 alike = __match_any_sync(ALL_LANES, part);
            const i32 at = own ? cursor[part] + __popc(alike & ((1u << lane) - 1u)) : 0;
            __syncwarp();
            if (own && is_last(alike)) cursor[part] = at + 1;
            if (MOVE && own) {
                to.item[at] = i32(way & 0xffffffff);
                to.code[at] = code;
            }
            __syncwarp();
            if (upto == 32) break;
            const i64 row = -2 - __shfl_sync(ALL_LANES, way, upto);
            const u32 row_code = __shfl_sync(ALL_LANES, code, upto);
            for (i64 q = lane; q < routes.n_opened; q += 32) {
                const i32 item = routes.spread[row + q];
                if (item < 0) continue;
                const i32 free = cursor[routes.opened[q] - routes.first]++;
                if (!MOVE) continue;
                to.item[free] = item;
                to.code[free] = row_code;
            }
            __syncwarp();
            from = upto + 1;
            spread &= spread - 1;
        }
    }
}

// Grid: pairs of the tests test[] and columns, in turn; block: 1 to MOST_WARPS warps, each
// with a span of the list and a cursor a part, in shared memory where they fit. skip[f][j]:
// lists that nobody will look at. 2 blocks a multiprocessor: for more, registers would spill.
extern "C" __global__ void __launch_bounds__(512, 2) move_lists(
    const i64* test, i64 n_tests, i64 columns, i64 level_tests, i64 n_entries, const i32* item,
    const u32* code, const i64* begin, const i64* end, const i64* part, const u8* skip,
    const i64* route, const i32* spread, const i64* part_begin, const i64* open_part,
    const i64* opened, const i64* cursor_begin, i64 n_cursors, i32* cursors, i64 new_entries,
    i32* new_item, u32* new_code
) {
    __shared__ i32 shared[SHARED_CURSORS];
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (i64 pair = blockIdx.x; pair < n_tests * columns; pair += gridDim.x) {
        const i64 f = pair % columns, j = test[pair / columns];
        if (skip[f * level_tests + j]) continue;
        const i64 parts = part[j + 1] - part[j], room = parts * warps;
        i32* cursor = room <= SHARED_CURSORS ? shared : cursors + f * n_cursors + cursor_begin[j];
        const List list = {item + f * n_entries, code + f * n_entries};
        const Routes routes = {
            route, spread, open_part + opened[j], opened[j + 1] - opened[j], part[j]
        };
        const Lists to = {new_item + f * new_entries, new_code + f * new_entries};
        const Span span = span_of(begin[j], end[j], warp, warps);
        for (i64 c = threadIdx.x; c < room; c += blockDim.x) cursor[c] = 0;
        __syncthreads();
        if (warps > 1) walk<false>(list, routes, span, cursor + warp * parts, to);
        __syncthreads();
        for (i64 p = threadIdx.x; p < parts; p += blockDim.x) {
            i32 next = i32(part_begin[part[j] + p]);
            for (int w = 0; w < warps; ++w) {
                const i32 count = cursor[w * parts + p];
                cursor[w * parts + p] = next;
                next += count;
            }
        }
        __syncthreads();
        walk<true>(list, routes, span, cursor + warp * parts, to);
        __syncthreads();
    }
}
