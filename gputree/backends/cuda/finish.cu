// Small nodes are finished: a warp grows each node's whole subtree, a lane to a column.
//
// Nodes are made breadth-first: those not yet looked at are the nodes after the one at work.
// Nodes whose lists fit shared memory are put off, then grown there, a warp to each of them.
#define PUT_OFF (-2)  // as the first child of a node

// Grid: nodes. The entries of each node, one node after another.
extern "C" __global__ void __launch_bounds__(256) list_places(
    const i64* begin, const i64* start, i32* places, i32* node
) {
    const i64 j = blockIdx.x;
    for (i64 r = start[j] + threadIdx.x; r < start[j + 1]; r += blockDim.x) {
        places[r] = i32(begin[j] + r - start[j]);
        node[r] = i32(j);
    }
}

// One thread a row and column: what the column's list is sorted by.
extern "C" __global__ void __launch_bounds__(256) fill_lists(
    const Bits* values, const u8* codes, i64 stride, i64 columns, const i64* offset,
    const u8* missing, const u8* by_code, const i32* entries, const i32* places,
    const i32* node, i64 nodes, i64 rows, Bits* keys, u32* segments
) {
    const i64 at = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= rows * columns) return;
    const i64 f = at / rows, r = at % rows, row = entries[places[r]];
    segments[at] = u32(f * nodes + node[r]);
    if (by_code[f]) {
        const i64 code = codes[row * stride + f];
        const bool absent = missing[f] && code == offset[f + 1] - offset[f] - 1;
        keys[at] = absent ? MISSING_KEY : Bits(code);
    } else {
        keys[at] = key_of(values[row * columns + f]);
    }
}

struct Rows {
    const Target* target;  // of local classes
    const i64* weight;
};

// The better of `cut` and the best cut of column f in places s .. t, of which known .. t are
// missing and all on one side.
__device__ Cut scan_side(
    const Criterion& criterion, const Limits& limits, const Rows& rows, const Bits* keys,
    const i32* items, i64 f, i64 s, i64 known, i64 t, bool missing_left, const i64* total,
    i64 channels, Strided left, Cut cut
) {
    for (i64 k = 0; k < channels; ++k) left[k] = 0;
    State state = begin(criterion, left, total);
    const i64 moved = missing_left ? t - known : 0;
    for (i64 i = known; i < known + moved; ++i)
        move(criterion, state, left, total, rows.target[items[i]], weight_of(rows.weight, items[i]));
    const i64 whole = weight_in(criterion, total);
    const i64 last = known < t && !missing_left ? known : known - 1;
    for (i64 i = s; i < last; ++i) {
        move(criterion, state, left, total, rows.target[items[i]], weight_of(rows.weight, items[i]));
        if (keys[i] == keys[i + 1]) continue;
        const i64 n = i + 1 - s + moved;
        if (n < limits.min_samples_leaf || t - s - n < limits.min_samples_leaf) continue;
        if (state.weight_left < limits.min_weight_leaf ||
            whole - state.weight_left < limits.min_weight_leaf)
            continue;
        const Cut found = {
            score(criterion, state, left, total), i32(f), missing_left, i32(i), 1, 0.0
        };
        if (precedes(found, cut)) cut = found;
    }
    return cut;
}

// The better of `cut` and the best cut of column f.
__device__ Cut scan_column(
    const Criterion& criterion, const Limits& limits, const Rows& rows, const Lists& lists, i64 f,
    i64 s, i64 t, const i64* total, i64 channels, Strided left, Cut cut
) {
    const Bits* keys = lists.keys + f * lists.rows;
    const i32* items = lists.items + f * lists.rows;
    if (keys[s] == keys[t - 1]) return cut;
    const i64 known = known_end(keys, s, t);
    for (int side = 0; side < (known < t ? 2 : 1); ++side)
        cut = scan_side(
            criterion, limits, rows, keys, items, f, s, known, t, side, total, channels, left, cut
        );
    return cut;
}

// Best cut of places s .. t: over all columns, or over those that the node's key draws; then
// columns past `max_features` are visited one by one until some cut is admissible.
__device__ Cut best_cut(
    const Criterion& criterion, const Limits& limits, const Rows& rows, const Lists& lists,
    i64 max_features, u64 key, i32* drawn, i64 s, i64 t, const i64* total, i64 channels,
    Strided left
) {
    const int lane = threadIdx.x;
    const bool drawing = max_features < lists.columns;
    if (drawing && lane == 0) draw_columns(key, drawn, lists.columns);
    __syncwarp();
    Cut cut = no_cut();
    for (i64 c = lane; c < max_features; c += 32)
        cut = scan_column(
            criterion, limits, rows, lists, drawing ? drawn[c] : c, s, t, total, channels, left,
            cut
        );
    cut = first_cut(cut);
    for (i64 c0 = max_features; c0 < lists.columns && cut.score == -infinity(); c0 += 32) {
        if (c0 + lane < lists.columns)
            cut = scan_column(
                criterion, limits, rows, lists, drawn[c0 + lane], s, t, total, channels, left, cut
            );
        const u32 found = __ballot_sync(ALL_LANES, cut.score > -infinity());
        if (lane != __ffs(found) - 1) cut = no_cut();
        cut = first_cut(cut);
    }
    return cut;
}

// Statistics of places s .. t; every lane returns after all are added.
__device__ void sum_places(const Rows& rows, const i32* items, i64 s, i64 t, i64* total, i64 channels) {
    for (i64 k = threadIdx.x; k < channels; k += 32) total[k] = 0;
    __syncwarp();
    for (i64 i = s + threadIdx.x; i < t; i += 32) {
        const i64 r = items[i];
#if REGRESSION
        atomicAdd((u64*)total, u64(weight_of(rows.weight, r)));
        atomicAdd((u64*)total + 1, u64(rows.target[r]));
#else
        atomicAdd((u64*)total + rows.target[r], u64(weight_of(rows.weight, r)));
#endif
    }
    __syncwarp();
}

#if REGRESSION
// Whether one target may stand for all places s .. t.
__device__ bool is_settled(
    const Rows& rows, const i32* items, i64 s, i64 t, const i64*, const Criterion&,
    i64 rounded
) {
    double low = -infinity(), high = infinity();
    for (i64 i = s + threadIdx.x; i < t; i += 32)
        narrow(low, high, rows.target[items[i]], weight_of(rows.weight, items[i]), rounded);
    low = warp_greatest(low);
    high = -warp_greatest(-high);
    return !(low > high);
}
#else
__device__ bool is_settled(
    const Rows&, const i32*, i64, i64, const i64* total, const Criterion& criterion, double
) {
    return is_pure(criterion, total);
}
#endif

// Threshold of a cut; infinity before missing values.
__device__ double threshold_of(
    const Lists& lists, const Cut& cut, const u8* by_code, const double* greatest, const double* least
) {
    const Bits* keys = lists.keys + cut.column * lists.rows + cut.place;
    if (keys[1] == MISSING_KEY) return infinity();
    if (!by_code[cut.column]) return midpoint(value_of(keys[0]), value_of(keys[1]));
    return midpoint(greatest[cut.column * 256 + keys[0]], least[cut.column * 256 + keys[1]]);
}

// What subtrees are grown by.
struct Rules {
    Criterion criterion;
    Limits limits;
    i64 min_samples_split, max_depth;
    double min_decrease;
    i64 max_features, rounded;
    const u8* by_code;
    const double* greatest;
    const double* least;

    // Whether a node of so many rows may be split.
    __device__ bool may_split(i64 rows, i64 depth) const {
        const i64 least = min_samples_split > 2 ? min_samples_split : 2;
        return depth < max_depth && rows >= least && rows >= 2 * limits.min_samples_leaf;
    }
};

// Room for the nodes of a subtree; begin and end are counted from its first place.
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

    __device__ Nodes from(i64 node) const {
        return {
            first_child + node, feature + node, threshold + node, missing_left + node,
            gain + node, begin + node, end + node, depth + node, key + node
        };
    }

    __device__ void add(i64 node, i64 from, i64 to, i64 level, u64 hash) const {
        begin[node] = i32(from);
        end[node] = i32(to);
        depth[node] = i32(level);
        key[node] = hash;
    }

    __device__ void close(i64 node, i32 child) const {
        first_child[node] = child;
        feature[node] = -1;
        threshold[node] = gain[node] = 0.0;
        missing_left[node] = 0;
    }
};

// The split of places s .. t, if they have one that is worth it; `decrease` is its gain.
__device__ Cut choose_cut(
    const Rules& rules, const Rows& rows, const Lists& lists, u64 key, i32* drawn, i64 s, i64 t,
    i64* total, i64 channels, Strided left, double& decrease
) {
    const i32* order = lists.items + lists.columns * lists.rows;
    sum_places(rows, order, s, t, total, channels);
    if (is_settled(rows, order, s, t, total, rules.criterion, rules.rounded)) return no_cut();
    const Cut cut = best_cut(
        rules.criterion, rules.limits, rows, lists, rules.max_features, key, drawn, s, t, total,
        channels, left
    );
    if (cut.score == -infinity()) return cut;
    decrease = gain(rules.criterion, cut.score, total);
    if (decrease * double(weight_in(rules.criterion, total)) < rules.min_decrease) return no_cut();
    return cut;
}

// Grow the subtree under the first of `nodes`, whose places begin at `base`; nodes of at most
// `small` rows are put off. Returns how many nodes there are.
__device__ i64 grow(
    const Rules& rules, const Rows& rows, const Lists& lists, const Nodes& nodes, i64 base,
    i64 small, i32* drawn, i64* total, i64 channels, Strided left
) {
    const int lane = threadIdx.x;
    i64 free = 1;
    for (i64 node = 0; node < free; ++node) {
        const i64 s = base + nodes.begin[node], t = base + nodes.end[node];
        const i64 depth = nodes.depth[node];
        const u64 key = nodes.key[node];
        const bool open = rules.may_split(t - s, depth);
        Cut cut = no_cut();
        double decrease = 0.0;
        if (open && t - s > small)
            cut = choose_cut(
                rules, rows, lists, key, drawn, s, t, total, channels, left, decrease
            );
        __syncwarp();
        if (cut.score == -infinity()) {
            if (lane == 0) nodes.close(node, open && t - s <= small ? PUT_OFF : -1);
            continue;
        }
        const i64 known = known_end(lists.keys + cut.column * lists.rows, s, t);
        const i64 middle = cut.place + 1 + (cut.missing_left ? t - known : 0);
        if (lane == 0) {
            nodes.first_child[node] = i32(free);
            nodes.feature[node] = cut.column;
            nodes.threshold[node] = threshold_of(lists, cut, rules.by_code, rules.greatest, rules.least);
            nodes.missing_left[node] = known < t ? cut.missing_left : middle - s > t - middle;
            nodes.gain[node] = decrease;
            nodes.add(free, s - base, middle - base, depth + 1, child_key(key, 0));
            nodes.add(free + 1, middle - base, t - base, depth + 1, child_key(key, 1));
        }
        __syncwarp();
        const i64 larger = middle - s > t - middle ? middle - s : t - middle;
        split_lists(lists, cut, s, known, t, rules.may_split(larger, depth + 1));
        free += 2;
    }
    return free;
}

// Grid: nodes; block: one warp. Node j has places first[j] .. last[j] and room for the nodes from
// room[j] of its subtree, places and children counted within the subtree; channel[j] ..
// channel[j + 1] are its statistics, 32 times in `lefts`. `used` becomes how many nodes there are.
//
// Nodes of at most `small` rows are put off. Where `small` is 0, lists are copied to shared
// memory, and back but for the order of entries; there are no spills then.
extern "C" __global__ void __launch_bounds__(32, 1) grow_subtrees(
    double unit, double scale, i64 min_samples_leaf, i64 min_weight_leaf,
    i64 min_samples_split, i64 max_depth, double min_decrease, i64 max_features,
    i64 rounded, i64 columns, i64 rows, i64 small, const i64* first, const i64* last,
    const i64* root_depth, const u64* root_key, const i64* room, const i64* channel,
    const Target* target, const i64* weight, Bits* keys, i32* items, Bits* key_spill,
    i32* item_spill, u8* sides, i64* totals, i64* lefts, i32* drawn, const u8* by_code,
    const double* greatest, const double* least, i32* first_child, i32* feature, double* threshold,
    u8* missing_left, double* gains, i32* begins, i32* ends, i32* depths, u64* node_keys,
    i32* used
) {
    extern __shared__ u64 memory[];
    const i64 j = blockIdx.x, channels = channel[j + 1] - channel[j], size = last[j] - first[j];
    const Rules rules = {
        {channels, unit, scale}, {min_samples_leaf, min_weight_leaf}, min_samples_split,
        max_depth, min_decrease, max_features, rounded, by_code, greatest, least
    };
    const Rows own = {target, weight};
    const Lists lists = {keys, items, key_spill, item_spill, sides, rows, columns};
    const Nodes all = {
        first_child, feature, threshold, missing_left, gains, begins, ends, depths, node_keys
    };
    const Nodes nodes = all.from(room[j]);
    if (threadIdx.x == 0) nodes.add(0, 0, size, root_depth[j], root_key[j]);
    i64* total = totals + channel[j];
    const Strided left = {lefts + channel[j] * 32 + threadIdx.x, 32};
    i32* order = drawn + j * columns;
    i64 number;
    if (small > 0) {
        __syncwarp();
        number = grow(rules, own, lists, nodes, first[j], small, order, total, channels, left);
    } else {
        const Lists copies = copy_lists(lists, first[j], size, memory);
        __syncwarp();
        number = grow(rules, own, copies, nodes, 0, 0, order, total, channels, left);
        for (i64 i = threadIdx.x; i < size; i += 32)
            items[columns * rows + first[j] + i] = copies.items[columns * size + i];
    }
    if (threadIdx.x == 0) used[j] = i32(number);
}

// One thread a row: the entries of all nodes in leaf order.
extern "C" __global__ void __launch_bounds__(256) order_entries(
    const i32* entries, const i32* places, const i32* order, i64 rows, i32* out
) {
    const i64 r = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r < rows) out[r] = entries[places[order[r]]];
}
