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
        const i64 code = table.codes_of(row)[f];
        keys[entry] = code == missing_bin_of(table, f) ? MISSING_KEY : Bits(code);
    } else {
        keys[entry] = key_of(values[table.row_of(row) * table.columns + f]);
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
        lists.items[entry] = Item(place - first);
        return;
    }
    const Bits* column = keys + f * lists.rows;
    const Bits key = column[place];
    const auto is_equal = [&](i64 i) { return column[i] >= key; };
    const bool is_first = place == first || !is_equal(place - 1);
    const i64 equal = is_first ? place : first_behind(first, place, is_equal);
    const i64 row = order[entry] % lists.rows - first;
    lists.items[entry] = Item(row);
    lists.ranks[f * lists.rows + first + row] =
        key == MISSING_KEY ? Item(MISSING_RANK) : Item(equal - first);
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

    // Copy what the host reads of a node, whose children and places are shifted.
    __device__ void copy(i64 node, const Nodes& from, i64 child_shift, i64 place_shift) const {
        const i32 child = from.first_child[node];
        first_child[node] = child < 0 ? child : i32(child + child_shift);
        feature[node] = from.feature[node];
        threshold[node] = from.threshold[node];
        missing_left[node] = from.missing_left[node];
        gain[node] = from.gain[node];
        begin[node] = i32(from.begin[node] + place_shift);
        end[node] = i32(from.end[node] + place_shift);
    }

    __device__ void close(i64 node) const {
        first_child[node] = -1;
        feature[node] = -1;
        threshold[node] = gain[node] = 0.0;
        missing_left[node] = 0;
    }
};

#if MONOTONIC
// A warp: bounds on the means of both children of a node: below a cut of a constrained column, each
// child stays on its side of the middle of their means. Places s .. middle went left; `work.total`
// is used up.
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
    Item* ranks = (Item*)(target + size);
    Item* items = ranks + columns * size;
    Item* spill = items + (columns + 1) * size;
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
    Item* order = lists.items + lists.columns * stride + first;
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
    const SubsetMemory subset_memory = {
        table.categories, search, scratch.heap.of(worker, channels),
        scratch.run_sides + scratch.heap.run_at[worker]
    };
#else
    const SubsetMemory subset_memory = {};
#endif
    const Work work = {
        rules, table, rows, lists, keys + first, stride, subset_memory, channels, sums,
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
    const i32* entries, const i32* places, const i32* node, const i64* start, const Item* order,
    i64 rows, i32* out
) {
    const i64 r = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r < rows) out[r] = entries[places[start[node[r]] + order[r]]];
}
