// Choosing among cuts: over the columns a node visits, then with what refinement found.

#if REGRESSION
// Grid: chunks of entries. One target may stand for all rows of node j unless low[j] > high[j].
extern "C" __global__ void __launch_bounds__(256) narrow_targets(
    i64 rounded, const Target* target, const i64* weight, const i32* entries,
    const i64* owner, const i64* first, const i64* last, i64* low, i64* high
) {
    const i64 c = blockIdx.x;
    double from = -infinity(), to = infinity();
#pragma unroll 1  // divisions bound the loop; unrolled, it spills registers on sm_120
    for (i64 i = first[c] + threadIdx.x; i < last[c]; i += blockDim.x) {
        const i64 row = entries[i];
        narrow(from, to, target[row], weight_of(weight, row), rounded);
    }
    from = warp_greatest(from);
    to = -warp_greatest(-to);
    if ((threadIdx.x & 31) != 0) return;
    atomicMax(&low[owner[c]], order_of(from));
    atomicMin(&high[owner[c]], order_of(to));
}
#endif

// One thread a node. Nodes start without a cut; those whose targets are all equal visit no
// column: for regression those where low[j] <= high[j].
extern "C" __global__ void __launch_bounds__(256) start_cuts(
    i64 n_classes, i64 nodes, i64 columns, i64 channels, i64 max_features, const i64* totals,
    const i64* low, const i64* high, i64* cuts, i32* done, i32* upto
) {
    const i64 j = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j >= nodes) return;
    const Criterion criterion = {n_classes, 1.0, 1.0};
    ((Cut*)cuts)[j] = no_cut();
    upto[j] = i32(max_features);
    const bool settled = REGRESSION ? low[j] <= high[j] : is_pure(criterion, totals + j * channels);
    done[j] = settled ? i32(columns) : 0;
}

// The order in which each node visits its columns, and the place of each column in it.
extern "C" __global__ void __launch_bounds__(256) draw_orders(
    const u64* keys, i64 nodes, i64 columns, i32* orders, i32* ranks
) {
    const i64 j = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j >= nodes) return;
    draw_columns(keys[j], orders + j * columns, columns);
    for (i64 i = 0; i < columns; ++i) ranks[j * columns + orders[j * columns + i]] = i32(i);
}

// Grid: nodes; block: one warp. Each node's best boundary among the columns it visits, and
// in `lead` the column to refine first: that of the greatest bound, -1 if none reaches the cut.
extern "C" __global__ void __launch_bounds__(32) choose_boundary(
    i64 n_classes, double unit, i64 columns, i64 channels, const i64* totals, const double* best,
    const i32* bins, const u8* sides, const double* bounds, const i32* ranks, const i32* done,
    const i32* upto, i64* cuts, i32* lead
) {
    const i64 j = blockIdx.x;
    const int lane = threadIdx.x;
    const Criterion criterion = {n_classes, unit, 1.0};
    Cut cut = ((Cut*)cuts)[j];
    for (i64 f = lane; f < columns; f += 32) {
        const i64 at = j * columns + f;
        if (!is_visited(ranks, done, upto, j, f, columns) || best[at] == -infinity()) continue;
        const Cut found = {best[at], i32(f), sides[at], bins[at], 1, 0.0};
        if (precedes(found, cut)) cut = found;
    }
    cut = first_cut(cut);
    const double bar = bar_of(criterion, cut, totals + j * channels);
    Cut first = no_cut();
    for (i64 f = lane; f < columns; f += 32) {
        const double bound = bounds[j * columns + f];
        if (!is_visited(ranks, done, upto, j, f, columns) || !(bound >= bar)) continue;
        const Cut found = {bound, i32(f), 0, 0, 1, 0.0};
        if (bound > -infinity() && precedes(found, first)) first = found;
    }
    first = first_cut(first);
    __syncwarp();
    if (lane != 0) return;
    ((Cut*)cuts)[j] = cut;
    lead[j] = first.score > -infinity() ? first.column : -1;
}

// Nodes without a cut go on to their next column that may have one; `waiting` counts them.
extern "C" __global__ void __launch_bounds__(256) visit_further(
    i64 nodes, i64 columns, const double* best, const double* bounds, const i32* orders,
    const i64* cuts, i32* done, i32* upto, i32* waiting
) {
    const i64 j = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j >= nodes) return;
    i64 next = done[j] < columns ? upto[j] : columns;
    done[j] = i32(columns);
    if (((const Cut*)cuts)[j].score > -infinity()) return;
    for (; next < columns; ++next) {
        const i64 at = j * columns + orders[j * columns + next];
        if (best[at] > -infinity() || bounds[at] > -infinity()) break;
    }
    if (next >= columns) return;
    done[j] = i32(next);
    upto[j] = i32(next) + 1;
    atomicAdd(waiting, 1);
}

// The next value bin after b that has rows, or -1.
__device__ inline i64 next_filled(
    const Criterion& criterion, const Column& column, const Cell* cells, i64 channels, i64 b
) {
    for (i64 after = b + 1; after < column.value_bins; ++after)
        if (rows_in(criterion, cells + (column.first + after) * channels, channels) > 0)
            return after;
    return -1;
}

// One thread a node: its record, but for what partition adds.
extern "C" __global__ void __launch_bounds__(256) choose_splits(
    i64 n_classes, double unit, double scale, double min_decrease, i64 nodes, i64 columns,
    i64 channels, const i64* offset, const u8* missing, const Cell* histograms, const i64* slots,
    const i64* totals, const i64* cuts, i64* records
) {
    const i64 j = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j >= nodes) return;
    const Criterion criterion = {n_classes, unit, scale};
    const i64* total = totals + j * channels;
    const Cut cut = ((const Cut*)cuts)[j];
    Record record = {-1, 0, 0.0, 0, -1, 0, 0, 0, 0.0, 0, 0.0, 0.0};
    const bool found = cut.score > -infinity();
    const double decrease = found ? gain(criterion, cut.score, total) : 0.0;
    const i64 weight = weight_in(criterion, total);
    if (found && decrease * double(weight) >= min_decrease) {
        const Column column = column_of(offset, missing, cut.column);
        const Cell* cells = histograms + slots[j] * offset[columns] * channels;
        record.column = cut.column;
        record.weight = weight;
        record.gain = decrease;
        record.cut_bin = cut.place;
        if (cut.at_end) record.next_bin = next_filled(criterion, column, cells, channels, cut.place);
        record.inside = !cut.at_end;
        record.missing_left = cut.missing_left;
        record.seen_missing = missing_cell(column, cells, channels) != nullptr;
        record.threshold = cut.threshold;
    }
    ((Record*)records)[j] = record;
}
