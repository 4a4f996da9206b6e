// The best subset of the categories of a node: gputree/backends/cpu/subsets.py.
//
// The rows of a category are a run; a warp processes a node.
#define ORDERED 0
#define EXHAUSTIVE 1
#define ONE_VS_REST 2

// Places: the length of a prefix and, in higher bits, one more than the place of the moved run, 0
// for none; or, negative, a mask less NO_MASK.
#define MOVED_BITS 31
#define NO_MASK (i64(1) << 62)

struct Subset {
    double score;
    i64 missing_left, order, place;
};

__device__ __forceinline__ bool precedes(const Subset& one, const Subset& other) {
    if (one.score != other.score) return one.score > other.score;
    if (one.missing_left != other.missing_left) return !one.missing_left;
    if (one.order != other.order) return one.order < other.order;
    return one.place < other.place;
}

struct Search {  // see gputree/backends/base.py
    i64 many_categories;
    double rows_per_category;
    i64 most_exhaustive, most_limited, most_moved, most_cells;
};

// Memory for the runs of each pair of a node and a column, and its offsets; see `Runs`.
struct RunMemory {
    const i64* run_at;
    const i64* sort_at;
    const i64* cell_at;
    i64* runs;
    double* shares;
    i32* orders;
    i64* cells;

    __device__ __forceinline__ Runs of(i64 p, i64 width) const {
        i64* left = cells + cell_at[p];
        return {
            0, runs + run_at[p], left, left + width, left + 2 * width, shares + sort_at[p],
            orders + sort_at[p]
        };
    }
};

// Number of statistics of a node: classes present, or weight and sum.
__device__ i64 count_channels(const Measure& measure, const Node& node) {
    if (REGRESSION) return 2;
    i64 present = 0;
    for (i64 k = 0; k < measure.channels(); ++k) present += node.total[k] > 0;
    return present;
}

// The search for the categories of a node.
__device__ int choose_search(const Search& search, const Node& node, i64 count, i64 channels) {
    const double rows = double(node.known);
    if (count > search.many_categories && rows < search.rows_per_category * double(count))
        return ONE_VS_REST;
    if (channels <= 2) return ORDERED;
    if (count <= search.most_exhaustive) return EXHAUSTIVE;
    return channels <= 3 || count * channels <= search.most_cells ? ORDERED : ONE_VS_REST;
}

// ------------------------------------------------------------------------ ordered
// Statistics of the runs up to the lane's.
struct LeftOfHead {
    const i64* before;  // of the tile
    const i64* cells;  // of the run, null where there is none
    __device__ i64 operator[](i64 k) const {
        return before[k] + inclusive_sum(cells ? cells[k] : 0);
    }
};

__device__ void start_side(const Runs& runs, i64 side, i64 width) {
    __syncwarp();
    for (i64 k = lane_of(); k < width; k += 32)
        runs.left[k] = side ? runs.cells[runs.count * width + k] : 0;
    __syncwarp();
}

// Highest scores of excluded subsets: of too small ones, and of ones that the criterion refuses.
struct Kept {
    double small, refused;

    __device__ void add(const Judged& found) {
        refused = found.refused > refused ? found.refused : refused;
        if (!found.admitted) small = found.score > small ? found.score : small;
    }
};

// The better of `best` and the best prefix of the ordered runs.
__device__ void scan_heads(
    const Measure& measure, const Node& node, const Runs& runs, i64 width, i64 number,
    Subset& best, Kept& kept
) {
    for (i64 side = 0; side < (node.has_missing() ? 2 : 1); ++side) {
        start_side(runs, side, width);
        i64 n = side ? runs.rows(runs.count) : 0;
        const i64 heads = node.has_missing() && !side ? runs.count : runs.count - 1;
        for (i64 i0 = 0; i0 < heads; i0 += 32) {
            const i64 i = i0 + lane_of();
            const i64 run = i < heads ? runs.order[i] : -1;
            const LeftOfHead left = {runs.left, run < 0 ? nullptr : runs.cells + run * width};
            const i64 upto = n + inclusive_sum(run < 0 ? 0 : runs.rows(run));
            const Judged found = judge(measure, node, left, upto, run >= 0);
            const Subset subset = {found.score, side, number, i + 1};
            kept.add(found);
            if (found.admitted && precedes(subset, best)) best = subset;
            n = last_lane(upto);
            for (i64 c = 0; c < measure.channels(); ++c) {
                const i64 sum = last_lane(left[c]);
                __syncwarp();
                if (lane_of() == 0) runs.left[c] = sum;
            }
            __syncwarp();
        }
    }
}

// -------------------------------------------------------------------------- moved
struct LeftOfMove {
    const i64* head;
    const i64* cells;  // of the run that is moved, null where there is none
    i64 sign;
    __device__ i64 operator[](i64 k) const { return head[k] + (cells ? sign * cells[k] : 0); }
};

// Add the ordered runs first .. last to the left side; returns their rows.
__device__ i64 add_runs(
    const Measure& measure, const Runs& runs, i64 width, i64 first, i64 last
) {
    i64 n = 0;
    __syncwarp();
    for (i64 i = first; i < last; ++i) {
        const i64 run = runs.order[i];
        n += runs.rows(run);
        for (i64 k = lane_of(); k < measure.channels(); k += 32)
            runs.left[k] += runs.cells[run * width + k];
    }
    __syncwarp();
    return n;
}

// The better of `best` and the best prefix of 0, step, 2 step, .. last ordered runs with one run
// moved across.
__device__ void scan_moves(
    const Measure& measure, const Node& node, const Runs& runs, i64 width, i64 last, i64 step,
    i64 number, Subset& best, Kept& kept
) {
    for (i64 side = 0; side < (node.has_missing() ? 2 : 1); ++side) {
        start_side(runs, side, width);
        i64 n = side ? runs.rows(runs.count) : 0;
        for (i64 head = 0; head <= last; head += step) {
            if (head) n += add_runs(measure, runs, width, head - step, head);
            for (i64 i0 = 0; i0 < runs.count; i0 += 32) {
                const i64 i = i0 + lane_of();
                const i64 run = i < runs.count ? runs.order[i] : -1, sign = i < head ? -1 : 1;
                const i64* cells = run < 0 ? nullptr : runs.cells + run * width;
                const LeftOfMove left = {runs.left, cells, sign};
                const i64 rows = n + (run < 0 ? 0 : sign * runs.rows(run));
                const Judged found = judge(measure, node, left, rows, run >= 0);
                const Subset tried = {found.score, side, number, head | (i + 1) << MOVED_BITS};
                kept.add(found);
                if (found.admitted && found.score > -infinity() && precedes(tried, best))
                    best = tried;
            }
        }
    }
}

// --------------------------------------------------------------------- exhaustive
struct LeftOfMask {
    const Runs& runs;
    i64 width, mask, side;
    __device__ i64 operator[](i64 k) const {
        i64 sum = side ? runs.cells[runs.count * width + k] : 0;
        for (i64 i = 0; i < runs.count; ++i)
            if (mask >> i & 1) sum += runs.cells[runs.order[i] * width + k];
        return sum;
    }
};

// The better of `best` and the best of all subsets without the last of the ordered runs, or of
// all runs.
__device__ void scan_masks(
    const Measure& measure, const Node& node, const Runs& runs, i64 width, i64 number,
    Subset& best
) {
    const i64 masks = i64(1) << (runs.count - 1), all = 2 * masks - 1;
    for (i64 side = 0; side < (node.has_missing() ? 2 : 1); ++side) {
        const i64 last = node.has_missing() && !side ? masks : masks - 1;
        for (i64 m0 = 1; m0 <= last; m0 += 32) {
            const i64 m = m0 + lane_of(), mask = m == masks ? all : m;
            i64 n = side ? runs.rows(runs.count) : 0;
            for (i64 i = 0; i < runs.count; ++i)
                n += mask >> i & 1 ? runs.rows(runs.order[i]) : 0;
            const LeftOfMask left = {runs, width, mask, side};
            const double value = admitted_score(measure, node, left, n, m <= last);
            const Subset subset = {value, side, number, mask - NO_MASK};
            if (value > -infinity() && precedes(subset, best)) best = subset;
        }
    }
}

// ---------------------------------------------------------------- ordered subsets
// Number of ordered runs without events.
__device__ i64 count_eventless(const Runs& runs) {
    i64 count = 0;
    while (count < runs.count && runs.share[runs.order[count]] == 0.0) ++count;
    return count;
}

// The best prefix over the orders by each statistic from the first on; where the limits exclude a
// better one, the best subset of other forms.
__device__ Subset scan_ordered(
    const Measure& measure, const Search& search, const Node& node, const Runs& runs, i64 width,
    i64 first, i64 channels, bool exhaustive
) {
    Subset best = {-infinity(), 0, 0, 0};
    Kept kept = {-infinity(), -infinity()};
    const i64 last = REGRESSION || exhaustive ? first + 1 : channels;
    for (i64 number = first; number < last; ++number) {
        sort_runs(measure, runs, width, statistic_of(node, number));
        if (exhaustive) scan_masks(measure, node, runs, width, number, best);
        else scan_heads(measure, node, runs, width, number, best, kept);
    }
    best = warp_first(best);
    // First what the criterion refuses, then what the limits do: one place calls `scan_moves`, or
    // the compiler makes it a function of local memory.
    for (int refused = REFUSES; refused >= 0; --refused) {
        const double excluded = refused ? kept.refused : kept.small;
        if (!__any_sync(ALL_LANES, excluded > best.score)) continue;
        const bool few = !refused && runs.count <= search.most_limited;
        const i64 end = refused || few ? first + 1 : last;
        for (i64 number = first; number < end; ++number) {
            sort_runs(measure, runs, width, statistic_of(node, number));
            const i64 heads = refused ? count_eventless(runs) : runs.count;
            const i64 step = heads && (refused || heads > search.most_moved) ? heads : 1;
            if (few) scan_masks(measure, node, runs, width, number, best);
            else scan_moves(measure, node, runs, width, heads, step, number, best, kept);
        }
        best = warp_first(best);
    }
    return best;
}

// True if the i-th of the ordered runs goes left in the subset `place`.
__device__ bool is_left_of(i64 place, i64 i) {
    if (place < 0) return (place + NO_MASK) >> i & 1;
    const i64 head = place & ((i64(1) << MOVED_BITS) - 1), moved = place >> MOVED_BITS;
    return (i < head) != (i + 1 == moved);
}

// -------------------------------------------------------------------- one vs rest
// True if run r, whose statistics are `runs.left`, has fewer rows than the best one, or the same
// number and lower statistics.
__device__ bool is_less(
    const Measure& measure, const auto& source, const Runs& runs, i64 r, const Subset& best
) {
    if (runs.rows(r) != runs.rows(best.place)) return runs.rows(r) < runs.rows(best.place);
    clear(runs.other, measure.channels());
    source.add(measure, runs, best.place, best.place + 1, runs.other);
    if (best.missing_left) source.add(measure, runs, runs.count, runs.count + 1, runs.other);
    return compare_cells(runs.left, runs.other, measure.channels()) < 0;
}

__device__ Subset scan_single(
    const Measure& measure, const Node& node, const auto& source, const Runs& runs, i64 number
) {
    Subset best = {-infinity(), 0, 0, 0};
    for (i64 r = 0; r < runs.count + node.has_missing(); ++r) {
        clear(runs.left, measure.channels());
        const i64 first = r < runs.count ? r : 0, last = r < runs.count ? r + 1 : runs.count;
        source.add(measure, runs, first, last, runs.left);
        i64 n = runs.begin[last] - runs.begin[first];
        for (i64 side = 0; side < (node.has_missing() && r < runs.count ? 2 : 1); ++side) {
            if (side) source.add(measure, runs, runs.count, runs.count + 1, runs.left);
            if (side) n += node.rows - node.known;
            const double value = admitted_score(measure, node, runs.left, n, true);
            const Subset subset = {value, side, number, r};
            bool better = value > -infinity();
            if (better && value == best.score && side == best.missing_left && r < runs.count)
                better = is_less(measure, source, runs, r, best);
            else
                better = better && precedes(subset, best);
            if (better) best = subset;
            __syncwarp();  // all have read the memory that is added to next
        }
    }
    return best;
}

// ------------------------------------------------------------------------- subset
// The best subset of a node's runs. All searches except for single runs need summed statistics.
__device__ Subset best_subset(
    const Measure& measure, const Search& search, const Node& node, const auto& source,
    const Runs& runs, int kind, i64 channels
) {
    const i64 first = channels == 2;  // of two, the order by the second is enough
    if (kind == ONE_VS_REST) return scan_single(measure, node, source, runs, first);
    return scan_ordered(
        measure, search, node, runs, measure.channels(), first, channels, kind == EXHAUSTIVE
    );
}

// Mark the runs that go left in is_left[].
__device__ void mark_subset(
    const Measure& measure, const Node& node, const Runs& runs, int kind, i64 order, i64 place,
    u8* is_left
) {
    if (kind != ONE_VS_REST)
        sort_runs(measure, runs, measure.channels(), statistic_of(node, order));
    for (i64 i = lane_of(); i < runs.count; i += 32) {
        const i64 r = kind == ONE_VS_REST ? i : runs.order[i];
        is_left[r] = kind == ONE_VS_REST ? place == r || place == runs.count : is_left_of(place, i);
    }
    __syncwarp();
}
