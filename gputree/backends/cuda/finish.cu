// Subtrees of small nodes: a block grows the whole subtree of each, level by level.
//
// All warps of a block split a node together while a level has few nodes, then each warp one of its
// nodes. Lanes are shared out among the columns: where there are more lanes than columns, several
// take a column, a piece of the rows each.

// Grid: nodes. List the entries of each node, one node after another.
extern "C" __global__ void __launch_bounds__(256) list_places(
    const i64* begin, const i64* start, i32* places, i32* node
) {
    const i64 j = blockIdx.x;
    for (i64 r = start[j] + threadIdx.x; r < start[j + 1]; r += blockDim.x) {
        places[r] = i32(begin[j] + r - start[j]);
        node[r] = i32(j);
    }
}

// One thread a row and column: the key that the column's list is sorted by.
extern "C" __global__ void __launch_bounds__(256) fill_lists(
    const Bits* values, Table table, const i32* entries, const i32* places, const i32* node,
    i64 nodes, i64 rows, Bits* keys, u32* segments
) {
    const i64 entry = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry >= rows * table.columns) return;
    const i64 f = entry / rows, r = entry % rows, row = entries[places[r]];
    segments[entry] = u32(f * nodes + node[r]);
    if (table.by_code[f]) {
        const i64 code = table.codes[row * table.stride + f];
        keys[entry] = code == missing_bin_of(table, f) ? MISSING_KEY : Bits(code);
    } else {
        keys[entry] = key_of(values[row * table.columns + f]);
    }
}

// One thread a row and column, and for the order of entries: the lists of all nodes from the order
// of their sorted keys; node j has places from start[j] on.
extern "C" __global__ void __launch_bounds__(256) rank_rows(
    const Bits* keys, const i64* order, const i32* node, const i64* start, Lists lists
) {
    const i64 entry = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (entry >= lists.rows * (lists.columns + 1)) return;
    const i64 f = entry / lists.rows, place = entry % lists.rows, first = start[node[place]];
    if (f == lists.columns) {
        lists.items[entry] = u16(place - first);
        return;
    }
    const Bits* column = keys + f * lists.rows;
    const Bits key = column[place];
    const auto is_equal = [&](i64 i) { return column[i] >= key; };
    const bool is_first = place == first || !is_equal(place - 1);
    const i64 equal = is_first ? place : first_behind(first, place, is_equal);
    const i64 row = order[entry] % lists.rows - first;
    lists.items[entry] = u16(row);
    lists.ranks[f * lists.rows + first + row] =
        key == MISSING_KEY ? u16(MISSING_RANK) : u16(equal - first);
}

// Memory of a warp for the search of category subsets. Compiled for tables that have categories.
struct SubsetMemory {
    const i64* categories;  // of each column, 0 where it is numeric
    i64* begin;
    i64* left;
    double* share;
    i32* order;
    u8* is_left;
#if CATEGORIES
    Search search;
#endif

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
// missing and all on one side. Lane by lane of a group, a piece of the rows each: in the order in
// which they go left, missing values first. Every lane of the warp takes part.
__device__ Cut scan_side(
    const Work& work, const Group& group, i64 f, bool searched, i64 s, i64 known, i64 t,
    bool missing_left, const Constraint& constraint, u64 rank, Cut cut
) {
    const Criterion& criterion = work.rules.criterion;
    const Rows& rows = work.rows;
    const u16 *items = work.lists.list(f), *ranks = work.lists.ranks + f * work.lists.rows;
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

// The better of `cut` and the best cut of column f, if it is `searched`. A group, lane by lane;
// every lane of the warp takes part.
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
    const u16* ranks;
    const u16* items;

    __device__ __forceinline__ u32 operator[](i64 i) const { return ranks[items[i]]; }
};

struct Sorted {  // places s .. t of a categorical column
    Node node;
    Listed<Ranks, u16> list;
    Runs runs;
    i64 present;
    int kind;
};

// Find the runs of places s .. t of categorical column f, and sum their statistics.
__device__ Sorted sort_out(const Work& work, const Measure& measure, i64 f, i64 s, i64 t) {
    const Lists& lists = work.lists;
    const SubsetMemory& subsets = work.subsets;
    const i64 width = measure.channels();
    const u16* items = lists.list(f) + s;
    Sorted sorted = {
        {lists.known_end(f, s, t) - s, t - s, work.total},
        {{lists.ranks + f * lists.rows, items}, items, work.rows.target, work.rows.weight},
        {
            0, subsets.begin, subsets.left, subsets.left + width, subsets.left + 2 * width,
            subsets.share, subsets.order
        }
    };
    sorted.runs.count = find_runs(sorted.list, sorted.node, sorted.runs);
    sorted.present = count_channels(measure, sorted.node);
    sorted.kind = choose_search(subsets.search, sorted.node, sorted.runs.count, sorted.present);
    if (sorted.kind != ONE_VS_REST) sum_runs(sorted.list, sorted.node, sorted.runs, width);
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
    const u16* items = lists.list(lists.columns);
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
    __shared__ Cut cuts[MOST_WARPS];
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

// A warp: statistics of places s .. t in the order of entries, after all lanes have used those before.
__device__ void sum_places(const Work& work, i64 s, i64 t) {
    const Rows& rows = work.rows;
    const u16* items = work.lists.list(work.lists.columns);
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
    const u16* items = work.lists.list(work.lists.columns);
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

// Nodes of a subtree; begin and end are counted from its first place.
struct Nodes {
    i32* first_child;
    i32* feature;
    double* threshold;
    u8* missing_left;
    double* gain;
    i32* begin;
    i32* end;
    i32* depth;
    u64* key;
    double* lower;  // bounds of the mean; null without monotonic constraints
    double* upper;
    i64* set;  // of columns that may split the node; null without interaction constraints

    __device__ Nodes from(i64 node) const {
        return {
            first_child + node, feature + node, threshold + node, missing_left + node,
            gain + node, begin + node, end + node, depth + node, key + node,
            MONOTONIC ? lower + node : nullptr, MONOTONIC ? upper + node : nullptr,
            INTERACTIONS ? set + node : nullptr
        };
    }

    __device__ Monotonic monotonic(i64 node, const i32* signs) const {
        return {signs, MONOTONIC ? lower + node : nullptr, MONOTONIC ? upper + node : nullptr};
    }

    __device__ void bound(i64 node, double lowest, double highest) const {
        lower[node] = lowest;
        upper[node] = highest;
    }

    __device__ void add(i64 node, i64 from, i64 to, i64 level, u64 hash) const {
        begin[node] = i32(from);
        end[node] = i32(to);
        depth[node] = i32(level);
        key[node] = hash;
    }

    // Copy a node of another subtree memory, whose children and places are shifted.
    __device__ void copy(i64 node, const Nodes& from, i64 child_shift, i64 place_shift) const {
        const i32 child = from.first_child[node];
        first_child[node] = child < 0 ? child : i32(child + child_shift);
        feature[node] = from.feature[node];
        threshold[node] = from.threshold[node];
        missing_left[node] = from.missing_left[node];
        gain[node] = from.gain[node];
        begin[node] = i32(from.begin[node] + place_shift);
        end[node] = i32(from.end[node] + place_shift);
        depth[node] = from.depth[node];
        key[node] = from.key[node];
        if (MONOTONIC) bound(node, from.lower[node], from.upper[node]);
        if (INTERACTIONS) set[node] = from.set[node];
    }

    __device__ void close(i64 node) const {
        first_child[node] = -1;
        feature[node] = -1;
        threshold[node] = gain[node] = 0.0;
        missing_left[node] = 0;
    }
};

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

#if MONOTONIC
// A warp: bounds on the means of both children of a node: below a cut of a constrained column, each child
// stays on its side of the middle of their means. Places s .. middle went left; `work.total` is
// used up.
__device__ void bound_children(
    const Work& work, const Nodes& nodes, i32 sign, i64 node, i64 child, i64 s, i64 middle
) {
    const Criterion& criterion = work.rules.criterion;
    const i64* total = work.total;
    const i64 weight = weight_in(criterion, total), sum = total[1];
    if (sign != 0) sum_places(work, s, middle);
    if (lane_of() == 0) {
        const double lower = nodes.lower[node], upper = nodes.upper[node];
        double between = 0.0;
        if (sign != 0) {
            const i64 left = weight_in(criterion, total);
            between = 0.5 * mean_of(total[1], left) + 0.5 * mean_of(sum - total[1], weight - left);
        }
        nodes.bound(child, sign < 0 ? between : lower, sign > 0 ? between : upper);
        nodes.bound(child + 1, sign > 0 ? between : lower, sign < 0 ? between : upper);
    }
}
#endif

// A team: split a node, if some cut of it is admissible; its children are the next of `number`
// nodes.
__device__ void split_node(
    const Work& work, const Team& team, const Nodes& nodes, i64 node, i32* number
) {
    const Lists& lists = work.lists;
    const i64 s = nodes.begin[node], t = nodes.end[node], depth = nodes.depth[node];
    const u64 key = nodes.key[node];
    const bool leads = team.thread() == 0;
    ColumnSet allowed = work.interactions.of(nodes.set, node, lists.columns);
    Cut cut = no_cut();
    double decrease = 0.0;
    if (work.rules.may_split(t - s, depth))
        cut = choose_cut(
            work, team, allowed, key, s, t, nodes.monotonic(node, work.signs), decrease
        );
    if (cut.score == -infinity()) {
        if (leads) nodes.close(node);
        return;
    }
    const i64 known = lists.known_end(cut.column, s, t);
    const bool categorical = work.subsets.is_categorical(cut.column);
    i64 middle = cut.place + 1 + (cut.missing_left ? t - known : 0);
    if (leads) nodes.threshold[node] = categorical ? 0.0 : threshold_of(work, cut);
#if CATEGORIES
    if (categorical && team.warp == 0) mark_categories(work, cut, s, t);
#endif
    if (!categorical) mark_rows(lists, team, cut, s, known, t);
    team.wait();
#if CATEGORIES
    if (categorical) {
        middle = s + count_left(lists, s, t);
        team.wait();  // before the order of entries changes
    }
#endif
#if INTERACTIONS
    const i64 set_below = allowed.below[allowed.place_of(cut.column)];
    allowed = work.interactions.of(&set_below, 0, lists.columns);
#endif
    i64 child = 0;
    if (leads) {
        child = atomicAdd(number, 2);
        nodes.first_child[node] = i32(child);
        nodes.feature[node] = cut.column;
        nodes.missing_left[node] = known < t ? cut.missing_left : middle - s > t - middle;
        nodes.gain[node] = decrease;
        nodes.add(child, s, middle, depth + 1, child_key(key, 0));
        nodes.add(child + 1, middle, t, depth + 1, child_key(key, 1));
#if INTERACTIONS
        nodes.set[child] = nodes.set[child + 1] = set_below;
#endif
    }
    const i64 larger = middle - s > t - middle ? middle - s : t - middle;
    const i64 done = categorical || cut.missing_left ? -1 : cut.column;  // left rows come first
    split_lists(lists, team, allowed, done, s, t, work.rules.may_split(larger, depth + 1));
#if MONOTONIC
    team.wait();
    if (team.warp == 0)
        bound_children(work, nodes, work.signs[cut.column], node, child, s, middle);
#endif
}

// Nodes whose subtrees are grown. Node j has places first[j] .. last[j] and memory for nodes from
// `room[j]` on, with places and children relative to its subtree; its statistics are channel[j] ..
// channel[j + 1].
struct Roots {
    const i64* first;
    const i64* last;
    const i64* depth;
    const u64* key;
    const i64* room;
    const i64* channel;
};

// Memory of the warps of a launch, one after another.
struct Scratch {
    i64* sums;   // a node's statistics, and 32 copies; null: in shared memory
    i32* drawn;  // columns
    RunMemory heap;
    u8* run_sides;
};

enum Copied { NOTHING, STATISTICS, LISTS };  // in shared memory

// A block: copy the statistics of `size` rows to shared memory, and their lists.
__device__ void copy_rows(i64 copied, Lists& lists, Rows& rows, i64 size, i64* memory) {
    const i64 columns = lists.columns;
    i64* weight = memory;
    Target* target = (Target*)(weight + (WEIGHTED ? size : 0));
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) {
        target[i] = rows.target[i];
        if (WEIGHTED) weight[i] = rows.weight[i];
    }
    rows.target = target;
    rows.weight = weight;
    if (copied < LISTS) return;
    u16* ranks = (u16*)(target + size);
    u16* items = ranks + columns * size;
    u16* spill = items + (columns + 1) * size;
    for (i64 f = 0; f <= columns; ++f)
        for (i64 i = threadIdx.x; i < size; i += blockDim.x) {
            items[f * size + i] = lists.items[f * lists.rows + i];
            if (f < columns) ranks[f * size + i] = lists.ranks[f * lists.rows + i];
        }
    lists = {ranks, items, spill, (u8*)(spill + (columns + 1) * size), size, columns};
}

// Grid: roots from `first_root` on; rows have the classes of their root. `used` becomes the number
// of nodes. Of lists in shared memory only the order of entries is copied back.
extern "C" __global__ void __launch_bounds__(256, 1) grow_subtrees(
    Rules rules, Search search, Table table, Rows rows, Lists lists, const Bits* keys, Roots roots,
    i64 first_root, i64 copied, Monotonic monotonic, Interactions interactions, const i64* sets,
    Scratch scratch, Nodes all, i32* used
) {
    extern __shared__ u64 memory[];
    __shared__ i32 number;
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const i64 j = first_root + blockIdx.x, worker = i64(blockIdx.x) * warps + warp;
    const i64 channel = roots.channel[j], channels = roots.channel[j + 1] - channel;
    const i64 first = roots.first[j], size = roots.last[j] - first, stride = lists.rows;
    u16* order = lists.items + lists.columns * stride + first;
    rules.criterion.n_classes = channels;
    rows = {rows.target + first, WEIGHTED ? rows.weight + first : nullptr, nullptr, nullptr};
    lists = {
        lists.ranks + first, lists.items + first, lists.spill + first, lists.sides + first, stride,
        lists.columns
    };
    const i64 width = channels * (1 + 32);
    const bool inside = !scratch.sums;
    i64* sums = inside ? (i64*)memory
                       : scratch.sums + (channel - roots.channel[first_root]) * (1 + 32) * warps;
    if (copied != NOTHING)
        copy_rows(copied, lists, rows, size, (i64*)memory + (inside ? width * warps : 0));
    sums += warp * width;
    const Nodes nodes = all.from(roots.room[j]);
    if (threadIdx.x == 0) {
        number = 1;
        nodes.add(0, 0, size, roots.depth[j], roots.key[j]);
        if (MONOTONIC) nodes.bound(0, monotonic.lower[j], monotonic.upper[j]);
        if (INTERACTIONS) nodes.set[0] = sets[j];
    }
#if CATEGORIES
    const Runs runs = scratch.heap.of(worker, REGRESSION ? 2 : channels);
    const SubsetMemory own_subsets = {
        table.categories, runs.begin, runs.left, runs.share, runs.order,
        scratch.run_sides + scratch.heap.run_at[worker], search
    };
#else
    const SubsetMemory own_subsets = {};
#endif
    const Work work = {
        rules, table, rows, lists, keys + first, stride, own_subsets, channels, sums,
        {sums + channels + lane_of(), 32}, scratch.drawn + worker * lists.columns,
        monotonic.signs, interactions
    };
    __syncthreads();
    // The nodes of a level are before .. end: those before them are split, or leaves.
    for (i64 before = 0, end = 1; before < end;) {
        const bool together = end - before < warps;
        const Team team = {together ? warp : 0, together ? warps : 1};
        const i64 step = together ? 1 : warps;
        for (i64 node = before + (together ? 0 : warp); node < end; node += step)
            split_node(work, team, nodes, node, &number);
        __syncthreads();
        before = end;
        end = number;
        __syncthreads();
    }
    if (copied == LISTS)
        for (i64 i = threadIdx.x; i < size; i += blockDim.x)
            order[i] = lists.items[lists.columns * size + i];
    if (threadIdx.x == 0) used[j] = number;
}

// Grid: roots. Copy the `used` nodes of each subtree to start[j] and on, with children by their
// places there and places of all rows.
extern "C" __global__ void __launch_bounds__(256) compact_nodes(
    Nodes all, Roots roots, const i32* used, const i64* start, Nodes out
) {
    const i64 j = blockIdx.x;
    const Nodes from = all.from(roots.room[j]), to = out.from(start[j]);
    for (i64 i = threadIdx.x; i < used[j]; i += blockDim.x)
        to.copy(i, from, start[j], roots.first[j]);
}

// One thread a row: the entries of all nodes in leaf order.
extern "C" __global__ void __launch_bounds__(256) order_entries(
    const i32* entries, const i32* places, const i32* node, const i64* start, const u16* order,
    i64 rows, i32* out
) {
    const i64 r = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r < rows) out[r] = entries[places[start[node[r]] + order[r]]];
}
