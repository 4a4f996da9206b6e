// Small nodes are finished: a warp grows each node's whole subtree, a lane to a column.
//
// The rows of all nodes lie one after another, `rows` in all. Each column lists them sorted by
// value, node by node; every split partitions the lists stably, so none is sorted again:
//
//   keys[f]    sorted keys of column f: of values, or codes where codes decide
//   items[f]   the places of their rows; items[columns] lists them in the order of entries
//
// A column that is constant in a node stays so below it, and is neither scanned nor partitioned.
// Nodes are made breadth-first: those not yet looked at are the nodes after the one at work.

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

struct Lists {
    Bits* keys;
    i32* items;
    Bits* key_spill;
    i32* item_spill;
    u8* sides;
    i64 rows, columns;
};

struct Rows {
    const Target* target;  // of local classes
    const i64* weight;
};

// First place among the sorted keys s .. t that holds a missing value.
__device__ inline i64 known_end(const Bits* keys, i64 s, i64 t) {
    while (s < t) {
        const i64 middle = (s + t) / 2;
        if (keys[middle] == MISSING_KEY)
            t = middle;
        else
            s = middle + 1;
    }
    return s;
}

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

// Stable partition of places s .. t of one list by the sides of their rows. One lane.
__device__ void partition_list(const Lists& lists, i64 f, i64 s, i64 t) {
    const i64 base = f * lists.rows;
    i64 to_left = base + s, spilled = base + s;
    const bool keyed = f < lists.columns;
    for (i64 i = base + s; i < base + t; ++i) {
        const i32 item = lists.items[i];
        const bool left = lists.sides[item];
        const i64 to = left ? to_left++ : spilled++;
        (left ? lists.items : lists.item_spill)[to] = item;
        if (keyed) (left ? lists.keys : lists.key_spill)[to] = lists.keys[i];
    }
    for (i64 i = base + s; i < spilled; ++i, ++to_left) {
        lists.items[to_left] = lists.item_spill[i];
        if (keyed) lists.keys[to_left] = lists.key_spill[i];
    }
}

// Partition all lists at a cut; those of columns only where a child may split further.
__device__ void split_lists(const Lists& lists, const Cut& cut, i64 s, i64 known, i64 t, bool further) {
    const i32* items = lists.items + cut.column * lists.rows;
    for (i64 i = s + threadIdx.x; i < t; i += 32)
        lists.sides[items[i]] = i < known ? i <= cut.place : cut.missing_left;
    __syncwarp();
    for (i64 f = threadIdx.x; f <= lists.columns; f += 32) {
        const Bits* keys = lists.keys + f * lists.rows;
        const bool is_order = f == lists.columns;
        const bool done = f == cut.column && !cut.missing_left;
        if (is_order || (further && !done && keys[s] != keys[t - 1]))
            partition_list(lists, f, s, t);
    }
    __syncwarp();
}

// Threshold of a cut; infinity before missing values.
__device__ double threshold_of(
    const Lists& lists, const Cut& cut, const u8* by_code, const double* low, const double* high
) {
    const Bits* keys = lists.keys + cut.column * lists.rows + cut.place;
    if (keys[1] == MISSING_KEY) return infinity();
    if (!by_code[cut.column]) return midpoint(value_of(keys[0]), value_of(keys[1]));
    return midpoint(low[cut.column * 256 + keys[0]], high[cut.column * 256 + keys[1]]);
}

// Grid: nodes; block: one warp. Node j has places start[j] .. start[j + 1] and room for the nodes
// room[j] .. room[j + 1] of its subtree, places and children counted within the subtree;
// channel[j] .. channel[j + 1] are its statistics, 32 times in `lefts`. `used` becomes how many
// nodes there are.
extern "C" __global__ void __launch_bounds__(32, 1) grow_subtrees(
    double unit, double scale, i64 min_samples_leaf, i64 min_weight_leaf,
    i64 min_samples_split, i64 max_depth, double min_decrease, i64 max_features,
    i64 rounded, i64 columns, i64 rows, const i64* start, const i64* root_depth,
    const u64* root_key, const i64* room, const i64* channel, const Target* target,
    const i64* weight, Bits* keys, i32* items, Bits* key_spill, i32* item_spill, u8* sides,
    i64* totals, i64* lefts, i32* drawn, const u8* by_code, const double* low, const double* high,
    i32* first_child, i32* feature, double* threshold, u8* missing_left, double* gains,
    i32* begins, i32* ends, i32* depths, u64* node_keys, i32* used
) {
    const i64 j = blockIdx.x, r0 = start[j], node0 = room[j];
    const int lane = threadIdx.x;
    const i64 channels = channel[j + 1] - channel[j];
    const Criterion criterion = {channels, unit, scale};
    const Limits limits = {min_samples_leaf, min_weight_leaf};
    const Lists lists = {keys, items, key_spill, item_spill, sides, rows, columns};
    const Rows own = {target, weight};
    const i32* order = items + columns * rows;
    i64* total = totals + channel[j];
    const Strided left = {lefts + channel[j] * 32 + lane, 32};
    i64 least = min_samples_split > 2 ? min_samples_split : 2;
    if (2 * min_samples_leaf > least) least = 2 * min_samples_leaf;
    if (lane == 0) {
        begins[node0] = 0;
        ends[node0] = i32(start[j + 1] - r0);
        depths[node0] = i32(root_depth[j]);
        node_keys[node0] = root_key[j];
    }
    __syncwarp();
    i64 free = 1;
    for (i64 at = 0; at < free; ++at) {
        const i64 node = node0 + at, s = r0 + begins[node], t = r0 + ends[node];
        const i64 depth = depths[node];
        const u64 key = node_keys[node];
        Cut cut = no_cut();
        double decrease = 0.0;
        if (depth < max_depth && t - s >= least) {
            sum_places(own, order, s, t, total, channels);
            if (!is_settled(own, order, s, t, total, criterion, rounded)) {
                cut = best_cut(
                    criterion, limits, own, lists, max_features, key, drawn + j * columns, s, t,
                    total, channels, left
                );
                if (cut.score > -infinity()) {
                    decrease = gain(criterion, cut.score, total);
                    if (decrease * double(weight_in(criterion, total)) < min_decrease)
                        cut = no_cut();
                }
            }
        }
        __syncwarp();
        if (cut.score == -infinity()) {
            if (lane == 0) {
                first_child[node] = feature[node] = -1;
                threshold[node] = gains[node] = 0.0;
                missing_left[node] = 0;
            }
            continue;
        }
        const i64 known = known_end(lists.keys + cut.column * rows, s, t);
        const i64 middle = cut.place + 1 + (cut.missing_left ? t - known : 0);
        if (lane == 0) {
            first_child[node] = i32(free);
            feature[node] = cut.column;
            threshold[node] = threshold_of(lists, cut, by_code, low, high);
            missing_left[node] = known < t ? cut.missing_left : middle - s > t - middle;
            gains[node] = decrease;
            for (int side = 0; side < 2; ++side) {
                const i64 child = node0 + free + side;
                begins[child] = i32((side ? middle : s) - r0);
                ends[child] = i32((side ? t : middle) - r0);
                depths[child] = i32(depth + 1);
                node_keys[child] = child_key(key, side);
            }
        }
        __syncwarp();
        const i64 larger = middle - s > t - middle ? middle - s : t - middle;
        split_lists(lists, cut, s, known, t, depth + 1 < max_depth && larger >= least);
        free += 2;
    }
    if (lane == 0) used[j] = i32(free);
}

// One thread a row: the entries of all nodes in leaf order.
extern "C" __global__ void __launch_bounds__(256) order_entries(
    const i32* entries, const i32* places, const i32* order, i64 rows, i32* out
) {
    const i64 r = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r < rows) out[r] = entries[places[order[r]]];
}
