// The best cut of a node of a subtree, over sorted lists of its rows.

// Memory of a warp for the search of category subsets. Compiled for tables that have categories.
struct SubsetMemory {
    const i64* categories;  // of each column, 0 where it is numeric
    Search search;
    Runs runs;
    u8* is_left;

    __device__ bool is_categorical(i64 f) const { return CATEGORIES && categories[f] > 0; }
};

// Arguments of a warp that splits nodes; `total` and `left` are statistics of the current one.
struct Work {
    const Rules& rules;
    const Table& table;
    const Rows& rows;
    const Lists& lists;
    const Bits* keys;  // sorted, of the root's rows; those of a column are `stride` apart
    i64 stride;
    const SubsetMemory& subsets;
    i64 channels;
    i64* total;
    Strided left;
    i32* drawn;
    const i32* signs;
    const Interactions& interactions;
};

// The better of `cut` and the best cut of column f in places s .. t, of which known .. t are
// missing and all on one side. A lane of a group takes a piece of the rows, in the order in which
// they go left: missing values first. Every lane of the warp takes part, and has its own result.
__device__ Cut scan_side(
    const Work& work, const Group& group, i64 f, bool searched, i64 s, i64 known, i64 t,
    bool missing_left, const Constraint& constraint, u64 rank, Cut cut
) {
    const Criterion& criterion = work.rules.criterion;
    const Rows& rows = work.rows;
    const Item *items = work.lists.list(f), *ranks = work.lists.ranks + f * work.lists.rows;
    const i64* total = work.total;
    Strided left = work.left;
    const i64 moved = missing_left ? t - known : 0;
    const i64 last = known < t && !missing_left ? known : known - 1;
    const i64 number = searched ? moved + last - s : 0;
    const i64 piece = (number + group.lanes - 1) / group.lanes;
    const i64 from = group.lane * piece < number ? group.lane * piece : number;
    const i64 upto = from + piece < number ? from + piece : number;
    const auto row_at = [&](i64 i) -> i64 { return items[i < moved ? known + i : s + i - moved]; };
    for (i64 k = 0; k < work.channels; ++k) left[k] = 0;
    if (group.lanes > 1) {
        for (i64 i = from; i < upto; ++i) {
            const i64 row = row_at(i), weight = weight_of(rows.weight, row);
            left[REGRESSION ? 0 : rows.target[row]] += weight;
            if (REGRESSION) left[1] += rows.target[row];
        }
        for (i64 k = 0; k < work.channels; ++k) {
            const i64 sum = left[k];
            left[k] = inclusive_sum(sum, group.lanes) - sum;
        }
    }
    State state = begin(criterion, left, total);
    const i64 whole = weight_in(criterion, total);
    i64 next = from < upto ? row_at(from) : 0;
    u32 next_rank = from < upto ? ranks[next] : 0;
    // `left` and `state` are of the rows before i, which is `next`.
    for (i64 i = from; i < upto; ++i) {
        const i64 row = next;
        const u32 own_rank = next_rank;
        next = row_at(i + 1);
        next_rank = ranks[next];
        move(criterion, state, left, total, rows.target[row], weight_of(rows.weight, row));
        if (i < moved || own_rank == next_rank) continue;
        if (!work.rules.limits.admit(i + 1, t - s, state.weight_left, whole)) continue;
        if (!constraint.admits(criterion, state, left, total)) continue;
        const Cut found = {
            score(criterion, state, left, total), i32(f), missing_left, i32(s + i - moved), 1, 0.0,
            rank
        };
        if (precedes(found, cut)) cut = found;
    }
    return cut;
}

// The better of `cut` and the best cut of column f, if it is `searched`: like `scan_side`.
__device__ Cut scan_column(
    const Work& work, const Group& group, i64 f, bool searched, i64 s, i64 t,
    const Monotonic& monotonic, u64 rank, Cut cut
) {
    searched = searched && !work.lists.is_constant(f, s, t);
    if (!__any_sync(ALL_LANES, searched)) return cut;
    const i64 known = searched ? work.lists.known_end(f, s, t) : t;
    const int sides = __any_sync(ALL_LANES, known < t) ? 2 : 1;
    for (int side = 0; side < sides; ++side)
        cut = scan_side(
            work, group, f, searched && (side == 0 || known < t), s, known, t, side,
            monotonic.of(0, f), rank, cut
        );
    return cut;
}

#if CATEGORIES
struct Ranks {  // of listed rows
    const Item* ranks;
    const Item* items;

    __device__ __forceinline__ u32 operator[](i64 i) const { return ranks[items[i]]; }
};

struct Sorted {  // places s .. t of a categorical column
    Node node;
    Listed<Ranks, Item> list;
    Runs runs;
    i64 present;
    int kind;
};

// Find the runs of places s .. t of categorical column f, and sum their statistics.
__device__ Sorted sort_out(const Work& work, const Measure& measure, i64 f, i64 s, i64 t) {
    const Lists& lists = work.lists;
    const Item* items = lists.list(f) + s;
    Sorted sorted = {
        {lists.known_end(f, s, t) - s, t - s, work.total},
        {{lists.ranks + f * lists.rows, items}, items, work.rows.target, work.rows.weight},
        work.subsets.runs
    };
    const Node& node = sorted.node;
    Runs& runs = sorted.runs;
    runs.count = find_runs(sorted.list, node, runs);
    sorted.present = count_channels(measure, node);
    sorted.kind = choose_search(work.subsets.search, node, runs.count, sorted.present);
    if (sorted.kind != ONE_VS_REST) sum_runs(sorted.list, node, runs, measure.channels());
    return sorted;
}

// The better of `cut` and the best subset of categorical column f; the whole warp. The order of a
// subset is its place as a cut, its place the threshold's bits.
__device__ Cut scan_categories(const Work& work, i64 f, i64 s, i64 t, u64 rank, Cut cut) {
    if (work.lists.is_constant(f, s, t)) return cut;
    const Measure measure = {work.rules.criterion, work.rules.limits};
    const Sorted sorted = sort_out(work, measure, f, s, t);
    const Subset best = best_subset(
        measure, work.subsets.search, sorted.node, sorted.list, sorted.runs, sorted.kind,
        sorted.present
    );
    __syncwarp();
    const Cut found = {
        best.score, i32(f), i32(best.missing_left), i32(best.order), 1,
        __longlong_as_double(best.place), rank
    };
    return best.score > -infinity() && precedes(found, cut) ? found : cut;
}

// A warp: like `mark_rows`, by the subset `cut`.
__device__ void mark_categories(const Work& work, const Cut& cut, i64 s, i64 t) {
    const Measure measure = {work.rules.criterion, {0, 0}};
    const Sorted sorted = sort_out(work, measure, cut.column, s, t);
    mark_subset(
        measure, sorted.node, sorted.runs, sorted.kind, cut.place,
        __double_as_longlong(cut.threshold), work.subsets.is_left
    );
    for (i64 i = sorted.node.known + lane_of(); i < sorted.node.rows; i += 32)
        work.lists.sides[sorted.list.items[i]] = u8(cut.missing_left);
    for (i64 r = 0; r < sorted.runs.count; ++r)
        for (i64 i = sorted.runs.begin[r] + lane_of(); i < sorted.runs.begin[r + 1]; i += 32)
            work.lists.sides[sorted.list.items[i]] = work.subsets.is_left[r];
}

// A warp: the number of places s .. t whose rows go left.
__device__ i64 count_left(const Lists& lists, i64 s, i64 t) {
    const Item* items = lists.list(lists.columns);
    i64 number = 0;
    for (i64 i0 = s; i0 < t; i0 += 32) {
        const i64 i = i0 + lane_of();
        number += __popc(__ballot_sync(ALL_LANES, i < t && lists.sides[items[i]]));
    }
    return number;
}
#endif

// The cut of a team's warps that precedes all others.
__device__ Cut team_first(const Team& team, Cut cut) {
    cut = warp_first(cut);
    if (team.warps == 1) return cut;
    __shared__ Cut cuts[BLOCK_WARPS];
    if (lane_of() == 0) cuts[team.warp] = cut;
    __syncthreads();
    for (int w = 0; w < team.warps; ++w)
        if (precedes(cuts[w], cut)) cut = cuts[w];
    __syncthreads();
    return cut;
}

// Best cut of places s .. t: over the columns that are `allowed`, or over those of them that the
// node's key draws; then others are visited one by one until some cut is admissible.
__device__ Cut best_cut(
    const Work& work, const Team& team, const ColumnSet& allowed, u64 key, i64 s, i64 t,
    const Monotonic& monotonic
) {
    const SubsetMemory& subsets = work.subsets;
    const i32* drawn = work.drawn;
    const i64 columns = allowed.number;
    const bool drawing = work.rules.max_features < columns;
    const i64 visited = drawing ? work.rules.max_features : columns;
    const auto rank = [&](i64 f) { return tie_rank(work.rules.random_ties, key, f); };
    if (drawing && lane_of() == 0) {
        list_columns(allowed, work.drawn);
        draw_columns(key, work.drawn, columns);
    }
    __syncwarp();
    Cut cut = no_cut();
    const Group group(team, visited);
    for (i64 c0 = 0; c0 < visited; c0 += group.number) {
        const i64 c = c0 + group.index, f = c >= visited ? 0 : drawing ? drawn[c] : allowed[c];
        const bool searched = c < visited && !subsets.is_categorical(f);
        cut = scan_column(work, group, f, searched, s, t, monotonic, rank(f), cut);
    }
#if CATEGORIES
    for (i64 c = team.warp; c < visited; c += team.warps) {
        const i64 f = drawing ? drawn[c] : allowed[c];
        if (subsets.is_categorical(f)) cut = scan_categories(work, f, s, t, rank(f), cut);
    }
#endif
    cut = team_first(team, cut);
    for (i64 c = visited; c < columns && cut.score == -infinity(); ++c) {  // every warp for itself
        const i64 f = drawn[c];
#if CATEGORIES
        if (subsets.is_categorical(f)) {
            cut = scan_categories(work, f, s, t, 0, cut);
            continue;
        }
#endif
        const Group whole({0, 1}, 1);
        cut = warp_first(scan_column(work, whole, f, true, s, t, monotonic, 0, cut));
    }
    return cut;
}

// A warp: statistics of places s .. t in the order of entries, once all lanes have used those of the
// node before.
__device__ void sum_places(const Work& work, i64 s, i64 t) {
    const Rows& rows = work.rows;
    const Item* items = work.lists.list(work.lists.columns);
    i64* total = work.total;
    clear(total, work.channels);
    for (i64 i = s + lane_of(); i < t; i += 32) {
        const i64 r = items[i];
        add_to_global(total + (REGRESSION ? 0 : rows.target[r]), weight_of(rows.weight, r));
        if (REGRESSION) add_to_global(total + 1, i64(rows.target[r]));
    }
    __syncwarp();
}

// True if a single target may be true of all places s .. t; a warp.
__device__ bool is_settled(const Work& work, i64 s, i64 t) {
#if REGRESSION
    const Rows& rows = work.rows;
    const Item* items = work.lists.list(work.lists.columns);
    double low = -infinity(), high = infinity();
    for (i64 i = s + lane_of(); i < t; i += 32) {
        const i64 r = items[i];
        narrow(low, high, rows.target[r], weight_of(rows.weight, r), work.rules.rounded);
    }
    low = warp_greatest(low);
    high = -warp_greatest(-high);
    return !(low > high);
#else
    return is_pure(work.rules.criterion, work.total);
#endif
}

// Threshold of a cut; infinity before missing values.
__device__ double threshold_of(const Work& work, const Cut& cut) {
    const Table& table = work.table;
    const Lists& lists = work.lists;
    const i64 f = cut.column;
    const u32 below = lists.rank(f, cut.place), above = lists.rank(f, cut.place + 1);
    if (above == MISSING_RANK) return infinity();
    const Bits* keys = work.keys + f * work.stride;
    if (!table.by_code[f]) return midpoint(value_of(keys[below]), value_of(keys[above]));
    return midpoint(table.highest[f * 256 + keys[below]], table.lowest[f * 256 + keys[above]]);
}

// The split of places s .. t, if its decrease is sufficient; `decrease` is its gain.
__device__ Cut choose_cut(
    const Work& work, const Team& team, const ColumnSet& allowed, u64 key, i64 s, i64 t,
    const Monotonic& monotonic, double& decrease
) {
    const Rules& rules = work.rules;
    sum_places(work, s, t);
    if (is_settled(work, s, t)) return no_cut();
    const Cut cut = best_cut(work, team, allowed, key, s, t, monotonic);
    if (cut.score == -infinity()) return cut;
    decrease = gain(rules.criterion, cut.score, work.total);
    const double weight = double(weight_in(rules.criterion, work.total));
    return decrease * weight < rules.min_decrease ? no_cut() : cut;
}
