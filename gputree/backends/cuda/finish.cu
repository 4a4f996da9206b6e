// Subtrees of small nodes: a warp grows each node's whole subtree, a lane to a column.
//
// Nodes are numbered breadth-first: those that are still to be grown are after the current one.
// Nodes whose lists fit shared memory are put off, then grown there, one warp per node.
#define PUT_OFF (-2)  // as the first child of a node

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

// Arguments of a warp that grows a subtree; `total` and `left` are statistics of the current node.
struct Work {
    const Rules& rules;
    const Table& table;
    const Rows& rows;
    const Lists& lists;
    const SubsetMemory& subsets;
    i64 channels;
    i64* total;
    Strided left;
    i32* drawn;
    const i32* signs;
    const Interactions& interactions;
};

// The better of `cut` and the best cut of column f in places s .. t, of which known .. t are
// missing and all on one side.
__device__ Cut scan_side(
    const Work& work, i64 f, i64 s, i64 known, i64 t, bool missing_left,
    const Constraint& constraint, u64 rank, Cut cut
) {
    const Criterion& criterion = work.rules.criterion;
    const Rows& rows = work.rows;
    const Bits* keys = work.lists.keys + f * work.lists.rows;
    const i32* items = work.lists.items + f * work.lists.rows;
    const i64* total = work.total;
    Strided left = work.left;
    for (i64 k = 0; k < work.channels; ++k) left[k] = 0;
    State state = begin(criterion, left, total);
    const auto move_row = [&](i64 row) {
        move(criterion, state, left, total, rows.target[row], weight_of(rows.weight, row));
    };
    const i64 moved = missing_left ? t - known : 0;
    for (i64 i = known; i < known + moved; ++i) move_row(items[i]);
    const i64 whole = weight_in(criterion, total);
    const i64 last = known < t && !missing_left ? known : known - 1;
    for (i64 i = s; i < last; ++i) {
        move_row(items[i]);
        if (keys[i] == keys[i + 1]) continue;
        if (!work.rules.limits.admit(i + 1 - s + moved, t - s, state.weight_left, whole)) continue;
        if (!constraint.admits(criterion, state, left, total)) continue;
        const Cut found = {
            score(criterion, state, left, total), i32(f), missing_left, i32(i), 1, 0.0, rank
        };
        if (precedes(found, cut)) cut = found;
    }
    return cut;
}

// The better of `cut` and the best cut of column f.
__device__ Cut scan_column(
    const Work& work, i64 f, i64 s, i64 t, const Monotonic& monotonic, u64 rank, Cut cut
) {
    const Bits* keys = work.lists.keys + f * work.lists.rows;
    if (keys[s] == keys[t - 1]) return cut;
    const i64 known = known_end(keys, s, t);
    for (int side = 0; side < (known < t ? 2 : 1); ++side)
        cut = scan_side(work, f, s, known, t, side, monotonic.of(0, f), rank, cut);
    return cut;
}

#if CATEGORIES
struct Sorted {  // places s .. t of a categorical column
    Node node;
    Listed list;
    Runs runs;
    i64 present;
    int kind;
};

// Find the runs of places s .. t of categorical column f, and sum their statistics.
__device__ Sorted sort_out(const Work& work, const Measure& measure, i64 f, i64 s, i64 t) {
    const Lists& lists = work.lists;
    const SubsetMemory& subsets = work.subsets;
    const i64 offset = f * lists.rows + s, width = measure.channels();
    Sorted sorted = {
        {known_end(lists.keys + offset, 0, t - s), t - s, work.total},
        {lists.keys + offset, lists.items + offset, work.rows.target, work.rows.weight},
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
    const Bits* keys = work.lists.keys + f * work.lists.rows;
    if (keys[s] == keys[t - 1]) return cut;
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

// Like `mark_rows`, by the subset `cut`; returns how many go left.
__device__ i64 mark_categories(const Work& work, const Cut& cut, i64 s, i64 t) {
    const Measure measure = {work.rules.criterion, {0, 0}};
    const Sorted sorted = sort_out(work, measure, cut.column, s, t);
    mark_subset(
        measure, sorted.node, sorted.runs, sorted.kind, cut.place,
        __double_as_longlong(cut.threshold), work.subsets.is_left
    );
    i64 lefts = cut.missing_left ? sorted.node.rows - sorted.node.known : 0;
    for (i64 i = sorted.node.known + lane_of(); i < sorted.node.rows; i += 32)
        work.lists.sides[sorted.list.items[i]] = u8(cut.missing_left);
    for (i64 r = 0; r < sorted.runs.count; ++r) {
        const u8 left = work.subsets.is_left[r];
        if (left) lefts += sorted.runs.rows(r);
        for (i64 i = sorted.runs.begin[r] + lane_of(); i < sorted.runs.begin[r + 1]; i += 32)
            work.lists.sides[sorted.list.items[i]] = left;
    }
    return lefts;
}
#endif

// Best cut of places s .. t: over the columns that are `allowed`, or over those of them that the
// node's key draws; then others are visited one by one until some cut is admissible.
__device__ Cut best_cut(
    const Work& work, const ColumnSet& allowed, u64 key, i64 s, i64 t, const Monotonic& monotonic
) {
    const int lane = threadIdx.x;
    const SubsetMemory& subsets = work.subsets;
    const i32* drawn = work.drawn;
    const i64 columns = allowed.number;
    const bool drawing = work.rules.max_features < columns;
    const i64 visited = drawing ? work.rules.max_features : columns;
    const auto rank = [&](i64 f) { return tie_rank(work.rules.random_ties, key, f); };
    if (drawing && lane == 0) {
        list_columns(allowed, work.drawn);
        draw_columns(key, work.drawn, columns);
    }
    __syncwarp();
    Cut cut = no_cut();
    for (i64 c = lane; c < visited; c += 32) {
        const i64 f = drawing ? drawn[c] : allowed[c];
        if (!subsets.is_categorical(f)) cut = scan_column(work, f, s, t, monotonic, rank(f), cut);
    }
    cut = warp_first(cut);
#if CATEGORIES
    for (i64 c = 0; c < visited; ++c) {
        const i64 f = drawing ? drawn[c] : allowed[c];
        if (subsets.is_categorical(f)) cut = scan_categories(work, f, s, t, rank(f), cut);
    }
#endif
    for (i64 c0 = visited; c0 < columns && cut.score == -infinity(); c0 += 32) {
        if (c0 + lane < columns && !subsets.is_categorical(drawn[c0 + lane]))
            cut = scan_column(work, drawn[c0 + lane], s, t, monotonic, 0, cut);
#if CATEGORIES
        for (i64 c = c0; c < c0 + 32 && c < columns; ++c) {
            if (__ballot_sync(ALL_LANES, cut.score > -infinity()) & ((2u << (c - c0)) - 1u)) break;
            if (!subsets.is_categorical(drawn[c])) continue;
            const Cut scanned = scan_categories(work, drawn[c], s, t, 0, no_cut());
            if (lane == c - c0) cut = scanned;
        }
#endif
        const u32 found = __ballot_sync(ALL_LANES, cut.score > -infinity());
        if (lane != __ffs(found) - 1) cut = no_cut();
        cut = warp_first(cut);
    }
    return cut;
}

// Statistics of places s .. t in the order of entries; every lane returns after all are added.
__device__ void sum_places(const Work& work, i64 s, i64 t) {
    const Rows& rows = work.rows;
    const i32* items = work.lists.items + work.lists.columns * work.lists.rows;
    i64* total = work.total;
    for (i64 k = threadIdx.x; k < work.channels; k += 32) total[k] = 0;
    __syncwarp();
    for (i64 i = s + threadIdx.x; i < t; i += 32) {
        const i64 r = items[i];
        add_to_global(total + (REGRESSION ? 0 : rows.target[r]), weight_of(rows.weight, r));
        if (REGRESSION) add_to_global(total + 1, i64(rows.target[r]));
    }
    __syncwarp();
}

// True if a single target may be true of all places s .. t.
__device__ bool is_settled(const Work& work, i64 s, i64 t) {
#if REGRESSION
    const Rows& rows = work.rows;
    const i32* items = work.lists.items + work.lists.columns * work.lists.rows;
    double low = -infinity(), high = infinity();
    for (i64 i = s + threadIdx.x; i < t; i += 32) {
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
    const Bits* keys = work.lists.keys + cut.column * work.lists.rows + cut.place;
    if (keys[1] == MISSING_KEY) return infinity();
    if (!table.by_code[cut.column]) return midpoint(value_of(keys[0]), value_of(keys[1]));
    return midpoint(
        table.highest[cut.column * 256 + keys[0]], table.lowest[cut.column * 256 + keys[1]]
    );
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

    __device__ void close(i64 node, i32 child) const {
        first_child[node] = child;
        feature[node] = -1;
        threshold[node] = gain[node] = 0.0;
        missing_left[node] = 0;
    }
};

// The split of places s .. t, if its decrease is sufficient; `decrease` is its gain.
__device__ Cut choose_cut(
    const Work& work, const ColumnSet& allowed, u64 key, i64 s, i64 t, const Monotonic& monotonic,
    double& decrease
) {
    const Rules& rules = work.rules;
    sum_places(work, s, t);
    if (is_settled(work, s, t)) return no_cut();
    const Cut cut = best_cut(work, allowed, key, s, t, monotonic);
    if (cut.score == -infinity()) return cut;
    decrease = gain(rules.criterion, cut.score, work.total);
    const double weight = double(weight_in(rules.criterion, work.total));
    return decrease * weight < rules.min_decrease ? no_cut() : cut;
}

#if MONOTONIC
// Bounds on the means of both children of a node: below a cut of a constrained column, each child
// stays on its side of the middle of their means. Places s .. middle went left; `work.total` is
// used up.
__device__ void bound_children(
    const Work& work, const Nodes& nodes, i32 sign, i64 node, i64 child, i64 s, i64 middle
) {
    const Criterion& criterion = work.rules.criterion;
    const i64* total = work.total;
    const i64 weight = weight_in(criterion, total), sum = total[1];
    __syncwarp();
    if (sign != 0) sum_places(work, s, middle);
    if (threadIdx.x == 0) {
        const double lower = nodes.lower[node], upper = nodes.upper[node];
        double between = 0.0;
        if (sign != 0) {
            const i64 left = weight_in(criterion, total);
            between = 0.5 * mean_of(total[1], left) + 0.5 * mean_of(sum - total[1], weight - left);
        }
        nodes.bound(child, sign < 0 ? between : lower, sign > 0 ? between : upper);
        nodes.bound(child + 1, sign > 0 ? between : lower, sign < 0 ? between : upper);
    }
    __syncwarp();
}
#endif

// Grow the subtree under the first of `nodes`, whose places begin at `base`; nodes of at most
// `small` rows are put off. Returns the number of nodes.
__device__ i64 grow(const Work& work, const Nodes& nodes, i64 base, i64 small) {
    const int lane = threadIdx.x;
    const Lists& lists = work.lists;
    i64 free = 1;
    for (i64 node = 0; node < free; ++node) {
        const i64 s = base + nodes.begin[node], t = base + nodes.end[node];
        const i64 depth = nodes.depth[node];
        const u64 key = nodes.key[node];
        const bool open = work.rules.may_split(t - s, depth);
        ColumnSet allowed = work.interactions.of(nodes.set, node, lists.columns);
        Cut cut = no_cut();
        double decrease = 0.0;
        if (open && t - s > small)
            cut = choose_cut(
                work, allowed, key, s, t, nodes.monotonic(node, work.signs), decrease
            );
        __syncwarp();
        if (cut.score == -infinity()) {
            if (lane == 0) nodes.close(node, open && t - s <= small ? PUT_OFF : -1);
            continue;
        }
        const i64 known = known_end(lists.keys + cut.column * lists.rows, s, t);
        const bool categorical = work.subsets.is_categorical(cut.column);
        i64 middle = cut.place + 1 + (cut.missing_left ? t - known : 0);
#if CATEGORIES
        if (categorical) middle = s + mark_categories(work, cut, s, t);
#endif
        if (!categorical) mark_rows(lists, cut, s, known, t);
#if INTERACTIONS
        const i64 set_below = allowed.below[allowed.place_of(cut.column)];
        if (lane == 0) nodes.set[free] = nodes.set[free + 1] = set_below;
        allowed = work.interactions.of(&set_below, 0, lists.columns);
#endif
        if (lane == 0) {
            nodes.first_child[node] = i32(free);
            nodes.feature[node] = cut.column;
            nodes.threshold[node] = categorical ? 0.0 : threshold_of(work, cut);
            nodes.missing_left[node] = known < t ? cut.missing_left : middle - s > t - middle;
            nodes.gain[node] = decrease;
            nodes.add(free, s - base, middle - base, depth + 1, child_key(key, 0));
            nodes.add(free + 1, middle - base, t - base, depth + 1, child_key(key, 1));
        }
        __syncwarp();
        const i64 larger = middle - s > t - middle ? middle - s : t - middle;
        const i64 done = categorical || cut.missing_left ? -1 : cut.column;  // left rows come first
        split_lists(lists, allowed, done, s, t, work.rules.may_split(larger, depth + 1));
#if MONOTONIC
        bound_children(work, nodes, work.signs[cut.column], node, free, s, middle);
#endif
        free += 2;
    }
    return free;
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

// Grid: roots from `first_root` on; block: one warp. `lefts` has 32 copies of the statistics; rows
// have the classes of their root. `used` becomes the number of nodes.
//
// Nodes of at most `small` rows are put off. Where `small` is 0, lists are copied to shared memory,
// and only the order of entries is copied back; there are no spills then.
extern "C" __global__ void __launch_bounds__(32, 1) grow_subtrees(
    Rules rules, Search search, Table table, Rows rows, Lists lists, i64 small, i64 first_root,
    Roots roots, Monotonic monotonic, Interactions interactions, const i64* sets, i64* totals,
    i64* lefts, i32* drawn, Nodes all, i32* used, RunMemory heap, u8* run_sides
) {
    extern __shared__ u64 memory[];
    const i64 j = first_root + blockIdx.x;
    const i64 channel = roots.channel[j], channels = roots.channel[j + 1] - channel;
    const i64 first = roots.first[j], size = roots.last[j] - first;
    rules.criterion.n_classes = channels;
    const Nodes nodes = all.from(roots.room[j]);
    if (threadIdx.x == 0) {
        nodes.add(0, 0, size, roots.depth[j], roots.key[j]);
        if (MONOTONIC) nodes.bound(0, monotonic.lower[j], monotonic.upper[j]);
        if (INTERACTIONS) nodes.set[0] = sets[j];
    }
#if CATEGORIES
    const Runs runs = heap.of(j, REGRESSION ? 2 : channels);
    const SubsetMemory own_subsets = {
        table.categories, runs.begin, runs.left, runs.share, runs.order,
        run_sides + heap.run_at[j], search
    };
#else
    const SubsetMemory own_subsets = {};
#endif
    // If this returned a `Work`, NVRTC would place `lefts` in local memory.
    const auto grow_on = [&](const Lists& copied, i64 base) -> i64 {
        const Work work = {
            rules, table, rows, copied, own_subsets, channels, totals + channel,
            {lefts + channel * 32 + threadIdx.x, 32}, drawn + j * table.columns, monotonic.signs,
            interactions
        };
        return grow(work, nodes, base, small);
    };
    i64 number;
    if (small > 0) {
        __syncwarp();
        number = grow_on(lists, first);
    } else {
        const Lists copies = copy_lists(lists, first, size, memory);
        __syncwarp();
        number = grow_on(copies, 0);
        i32* items = lists.items + lists.columns * lists.rows + first;
        for (i64 i = threadIdx.x; i < size; i += 32)
            items[i] = copies.items[lists.columns * size + i];
    }
    if (threadIdx.x == 0) used[j] = i32(number);
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
    const i32* entries, const i32* places, const i32* order, i64 rows, i32* out
) {
    const i64 r = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r < rows) out[r] = entries[places[order[r]]];
}
