// Stable partition of the entries and lists of a level into the entries and lists of the next.
//
//   list of the tested column   | a d | b e | c |      parts are side by side in it, and
//   entries of the next level   | a d c | b e c |      entries are numbered in its order; c is
//                                                      missing: a fraction goes to every part
//
// Neither the numbers of entries nor the order of entries of the same code affect any sum.

struct Tests {  // of nodes of a level
    i64 number;
    const i64* begin;  // the node's entries
    const i64* end;
    const i32* feature;
    const u32* cut;
    const i64* part;  // (number + 1): the first of its parts
    i64* missing;  // entries that are in no part
    i64* whole;    // known weight
};

struct Parts {  // of tests
    const i64* test;
    i64* first;  // places in the list of the tested column
    i64* last;
    i64* code;
    i64* rows;     // entries, fractions included
    i64* known;    // known weight
    i64* weights;  // (parts, classes), fractions included
};

struct Routes {  // from a level to the next
    const i64* begin;   // of every part: its first entry, -1 where it does not become a node
    const i64* part;    // parts that become nodes, in order
    const i64* opened;  // (tests + 1): the first of them
    const i64* room;    // (tests + 1): the first place of a test in `spread`
    i64* route;         // of entries: see `move_entries`
    i32* spread;        // places of fractions, -1 where there is none
};

struct NewEntries {
    i32* target;
    i64* weight;
};

// The part of place i, among the parts start .. stop of its test: the first that ends behind it.
__device__ i64 part_of(const i64* last, i64 start, i64 stop, i64 i) {
    return first_behind(start, stop - 1, [&](i64 part) { return last[part] > i; });
}

// The fraction part / whole of a weight, in units.
__device__ __forceinline__ i64 fraction(i64 weight, i64 part, i64 whole) {
    return i64(rint(double(weight) * (double(part) / double(whole))));
}

// The first place whose code is above the cut.
__device__ i64 behind_cut(const u32* code, i64 begin, i64 end, u32 cut) {
    return first_behind(begin, end, [&](i64 i) { return code[i] > cut; });
}

// Places and codes of the branches of a categorical column; `part` is the first of them.
__device__ void find_branches(
    const u32* code, i64 begin, i64 end, i64 part, const Parts& parts
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
        const i64 p = part + __popc(vote & ((2u << lane_of()) - 1u)) - 1;
        if (starts) {
            parts.first[p] = i;
            parts.code[p] = code[i];
        }
        if (valid && (i + 1 == end || code[i + 1] != code[i])) parts.last[p] = i + 1;
        part += __popc(vote);
    }
}

// Grid: the tests test[]; block: 1 to MOST_WARPS warps. Find the places of the parts in the list of
// the tested column, their codes, and the number of missing values.
extern "C" __global__ void __launch_bounds__(512) find_parts(
    const i64* test, const __grid_constant__ Columns columns, i64 missing_is_category, Tests tests,
    Parts parts
) {
    const i64 j = test[blockIdx.x], f = tests.feature[j];
    const i64 *begin = tests.begin, *end = tests.end;
    const u32* codes = columns.list(f).code;
    const i64 stop = missing_is_category ? end[j] : known_end(codes, begin[j], end[j]);
    if (threadIdx.x == 0) tests.missing[j] = end[j] - stop;
    if (columns.categorical[f]) {
        find_branches(codes, begin[j], stop, tests.part[j], parts);
    } else if (threadIdx.x == 0) {
        const i64 p = tests.part[j], middle = behind_cut(codes, begin[j], stop, tests.cut[j]);
        parts.first[p] = begin[j];
        parts.last[p] = parts.first[p + 1] = middle;
        parts.last[p + 1] = stop;
        parts.code[p] = codes[begin[j]];
        parts.code[p + 1] = codes[middle];
    }
}

// Grid: pieces of the tests owner[]. Sum the class weights (P, K) of known values.
extern "C" __global__ void __launch_bounds__(256) sum_parts(
    Chunks pieces, Columns columns, Entries entries, i64 n_classes, Tests tests, Parts parts
) {
    const i64 c = blockIdx.x, j = pieces.owner[c];
    const List list = columns.list(tests.feature[j]);
    const i64 known = tests.end[j] - tests.missing[j];
    const i64 stop = pieces.last[c] < known ? pieces.last[c] : known;
    for (i64 i0 = pieces.first[c] + (threadIdx.x & ~31u); i0 < stop; i0 += blockDim.x) {
        const i64 i = i0 + lane_of();
        const Place place = place_at(list, entries, i, stop);
        i64 cell = -1;
        if (place.valid) {
            const i64 p = part_of(parts.last, tests.part[j], tests.part[j + 1], i);
            cell = p * n_classes + place.k;
        }
        const u32 alike = __match_any_sync(ALL_LANES, cell);
        const i64 sum = weight_upto(entries, alike, place.weight);
        if (place.valid && is_last(alike)) add_to_global(parts.weights + cell, sum);
    }
}

// Grid: parts; block: one warp. Known entries and weight of each part, and of its test.
extern "C" __global__ void __launch_bounds__(32) weigh_parts(
    i64 n_classes, Tests tests, Parts parts
) {
    const i64 p = blockIdx.x;
    i64 sum = 0;
    for (i64 k = lane_of(); k < n_classes; k += 32) sum += parts.weights[p * n_classes + k];
    sum = warp_sum(sum);
    if (lane_of() != 0) return;
    parts.rows[p] = parts.last[p] - parts.first[p];
    parts.known[p] = sum;
    add_to_global(tests.whole + parts.test[p], sum);
}

// Grid: parts; block: one warp. Add the fractions of entries whose value is missing.
extern "C" __global__ void __launch_bounds__(32) add_fractions(
    Columns columns, Entries entries, i64 n_classes, Tests tests, Parts parts
) {
    const i64 p = blockIdx.x, j = parts.test[p], end = tests.end[j];
    const i64 known = parts.known[p], whole = tests.whole[j];
    const List list = columns.list(tests.feature[j]);
    i64* weights = parts.weights + p * n_classes;
    i64 number = 0;
    for (i64 i0 = end - tests.missing[j]; i0 < end; i0 += 32) {
        const Place place = place_at(list, entries, i0 + lane_of(), end);
        const i64 share = place.valid ? fraction(place.weight, known, whole) : 0;
        const u32 alike = __match_any_sync(ALL_LANES, place.valid ? i32(place.k) : -1);
        const i64 sum = sum_upto(alike, share);
        if (place.valid && is_last(alike)) weights[place.k] += sum;
        number += __popc(__ballot_sync(ALL_LANES, share > 0));
        __syncwarp();
    }
    if (lane_of() == 0) parts.rows[p] += number;
}

// Grid: pieces of the tests owner[]. Entries of known values go to the places of their part, in the
// order of the list. The route becomes part of the test << 32 | place, -1 where the part does not
// become a node, and for missing values -2 - the row of their places in `spread`: one in each part
// that becomes a node.
extern "C" __global__ void __launch_bounds__(256) move_entries(
    Chunks pieces, Columns columns, Entries entries, Tests tests, Parts parts, Routes routes,
    NewEntries to
) {
    const i64 c = blockIdx.x, j = pieces.owner[c];
    const i64 start = tests.part[j], stop = tests.part[j + 1];
    const i64 known = tests.end[j] - tests.missing[j];
    const i32* item = columns.list(tests.feature[j]).item;
    for (i64 i = pieces.first[c] + threadIdx.x; i < pieces.last[c]; i += blockDim.x) {
        const i64 e = item[i];
        if (i >= known) {
            const i64 width = routes.opened[j + 1] - routes.opened[j];
            routes.route[e] = -2 - (routes.room[j] + (i - known) * width);
            continue;
        }
        const i64 p = part_of(parts.last, start, stop, i);
        if (routes.begin[p] < 0) {
            routes.route[e] = -1;
            continue;
        }
        const i64 place = routes.begin[p] + i - parts.first[p];
        routes.route[e] = (p - start) << 32 | place;
        to.target[place] = entries.target[e];
        if (entries.weight) to.weight[place] = entries.weight[e];
    }
}

// Grid: parts that become nodes; block: one warp. Fractions of missing values are placed behind the
// part's known ones; their places go to `spread`, -1 where there is none.
extern "C" __global__ void __launch_bounds__(32) place_fractions(
    Columns columns, Entries entries, Tests tests, Parts parts,
    const __grid_constant__ Routes routes, NewEntries to
) {
    const i64 q = blockIdx.x, p = routes.part[q], j = parts.test[p], end = tests.end[j];
    const i64 begin = end - tests.missing[j], width = routes.opened[j + 1] - routes.opened[j];
    const i64 known = parts.known[p], whole = tests.whole[j];
    const i32* item = columns.list(tests.feature[j]).item;
    i64 free = routes.begin[p] + parts.last[p] - parts.first[p];
    for (i64 i0 = begin; i0 < end; i0 += 32) {
        const i64 i = i0 + lane_of();
        const bool valid = i < end;
        const i64 e = valid ? item[i] : 0;
        const i64 share = valid ? fraction(units_of(entries, e), known, whole) : 0;
        const u32 vote = __ballot_sync(ALL_LANES, share > 0);
        const i64 place = free + __popc(vote & ((1u << lane_of()) - 1u));
        free += __popc(vote);
        const i64 slot = routes.room[j] + (i - begin) * width + q - routes.opened[j];
        if (valid) routes.spread[slot] = share > 0 ? i32(place) : -1;
        if (share == 0) continue;
        to.target[place] = entries.target[e];
        if (entries.weight) to.weight[place] = share;
    }
}

// ------------------------------------------------------------------------- lists
#define SHARED_CURSORS 512

struct OwnRoutes {  // of the entries of a test
    const i64* route;
    const i32* spread;
    const i64* opened;  // its parts that become nodes
    i64 n_opened, first;  // the first of all its parts
};

struct NewList {  // of one column
    i32* item;
    u32* code;
};

struct NewLists {  // of columns
    i64 entries;
    i32* item;
    u32* code;
};

struct Cursors {
    i64 number;        // of a column
    const i64* begin;  // of each test among them
    i32* next;         // (columns, number)
};

// Move the entries of a span, in order, each to the next place of its part; those in fractions to a
// place in every part that becomes a node. Cursors are advanced either way.
template <bool MOVE>
__device__ void walk(
    const List& list, const OwnRoutes& routes, Span span, i32* cursor, const NewList& to
) {
    const int lane = lane_of();
    for (i64 i0 = span.first; i0 < span.last; i0 += 32) {
        const bool valid = i0 + lane < span.last;
        const i64 way = valid ? routes.route[list.item[i0 + lane]] : -1;
        const u32 code = valid ? list.code[i0 + lane] : 0;
        u32 spread = __ballot_sync(ALL_LANES, way < -1);
        for (int from = 0; from < 32;) {
            const int upto = spread ? __ffs(int(spread)) - 1 : 32;  // whole ones before
            const bool moves = way >= 0 && lane >= from && lane < upto;
            const i32 part = moves ? i32(way >> 32) : -1;
            const u32 alike = __match_any_sync(ALL_LANES, part);
            const i32 position = moves ? cursor[part] + __popc(alike & ((1u << lane) - 1u)) : 0;
            __syncwarp();
            if (moves && is_last(alike)) cursor[part] = position + 1;
            if (MOVE && moves) {
                to.item[position] = i32(way & 0xffffffff);
                to.code[position] = code;
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

// Grid: pairs of the tests test[] and columns, in turn; block: 1 to MOST_WARPS warps, each with a
// span of the list and a cursor a part, in shared memory where they fit. skip[f][j]: lists that are
// not read again. 2 blocks a multiprocessor: for more, registers would spill.
extern "C" __global__ void __launch_bounds__(512, 2) move_lists(
    const i64* test, i64 n_tests, Columns columns, Tests tests, const u8* skip, Routes routes,
    Cursors cursors, NewLists next
) {
    __shared__ i32 shared[SHARED_CURSORS];
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (i64 pair = blockIdx.x; pair < n_tests * columns.number; pair += gridDim.x) {
        const i64 f = pair % columns.number, j = test[pair / columns.number];
        if (skip[f * tests.number + j]) continue;
        const i64 *part = tests.part, *opened = routes.opened;
        const i64 parts = part[j + 1] - part[j], n_cursors = parts * warps;
        i32* others = cursors.next + f * cursors.number + cursors.begin[j];
        i32* cursor = n_cursors <= SHARED_CURSORS ? shared : others;
        const List list = columns.list(f);
        const OwnRoutes test_routes = {
            routes.route, routes.spread, routes.part + opened[j], opened[j + 1] - opened[j],
            part[j]
        };
        const NewList to = {next.item + f * next.entries, next.code + f * next.entries};
        const Span span = span_of(tests.begin[j], tests.end[j], warp, warps);
        for (i64 c = threadIdx.x; c < n_cursors; c += blockDim.x) cursor[c] = 0;
        __syncthreads();
        if (warps > 1) walk<false>(list, test_routes, span, cursor + warp * parts, to);
        __syncthreads();
        for (i64 p = threadIdx.x; p < parts; p += blockDim.x) {
            i32 free = i32(routes.begin[part[j] + p]);
            for (int w = 0; w < warps; ++w) {
                const i32 count = cursor[w * parts + p];
                cursor[w * parts + p] = free;
                free += count;
            }
        }
        __syncthreads();
        walk<true>(list, test_routes, span, cursor + warp * parts, to);
        __syncthreads();
    }
}
