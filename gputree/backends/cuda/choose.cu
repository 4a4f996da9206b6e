// Choice of a node's cut: over the columns that it visits, then over the cuts that refinement
// found.

#if REGRESSION
// Grid: chunks of entries. A single target may be true of all rows of node j unless low[j] >
// high[j].
extern "C" __global__ void __launch_bounds__(256) narrow_targets(
    Rules rules, Rows rows, const i32* entries, Chunks chunks, i64* low, i64* high
) {
    const i64 c = blockIdx.x;
    if (chunks.lack(c)) return;
    double from = -infinity(), to = infinity();
#pragma unroll 1  // divisions bound the loop; unrolled, it spills registers on sm_120
    for (i64 i = chunks.first[c] + threadIdx.x; i < chunks.last[c]; i += blockDim.x) {
        const i64 row = entries[i];
        narrow(from, to, rows.target[row], weight_of(rows.weight, row), rules.rounded);
    }
    from = warp_greatest(from);
    to = -warp_greatest(-to);
    if ((threadIdx.x & 31) != 0) return;
    atomicMax(&low[chunks.owner[c]], order_of(from));
    atomicMin(&high[chunks.owner[c]], order_of(to));
}
#endif

// The order in which each node visits its columns, and the place of each column in it. Those that
// may not split the node are last.
extern "C" __global__ void __launch_bounds__(256) draw_orders(
    const u64* keys, i64 nodes, i64 columns, Interactions interactions, const i64* sets,
    i32* orders, i32* ranks
) {
    const i64 j = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j >= nodes) return;
    const ColumnSet allowed = interactions.of(sets, j, columns);
    i32* order = orders + j * columns;
    list_columns(allowed, order);
    if (INTERACTIONS) {
        i64 last = allowed.number, passed = 0;  // of the columns before f, as many are in the set
        for (i64 f = 0; f < columns; ++f)
            if (passed < allowed.number && allowed[passed] == f) ++passed;
            else order[last++] = i32(f);
    }
    draw_columns(keys[j], order, allowed.number);
    for (i64 i = 0; i < columns; ++i) ranks[j * columns + order[i]] = i32(i);
}

// Grid: nodes; block: one warp. Each node's best cut, of boundaries of the columns it visits. At
// the first visit (`is_first`) it has no cut before, and visits no column if it is pure: if it has
// one class, or a single target may be true of all its rows (low[j] <= high[j]; null for classes).
// Begins the search inside bins.
extern "C" __global__ void __launch_bounds__(32) choose_boundary(
    Rules rules, i64 columns, Level level, i64 is_first, const i64* low, const i64* high,
    Scores scores, Visits visits, i64* cuts, Found found
) {
    const i64 j = blockIdx.x;
    if (level.lacks(j)) return;
    const int lane = threadIdx.x;
    Cut cut = no_cut();
    i64 done = 0, upto = rules.max_features;
    if (!is_first) {
        cut = ((Cut*)cuts)[j];
        done = visits.done[j];
        upto = visits.upto[j];
    } else if (
        REGRESSION ? low[j] <= high[j]
                   : is_pure(rules.criterion, level.totals + j * rules.channels)
    ) {
        done = columns;
    }
    for (i64 f = lane; f < columns; f += 32) {
        const i64 pair = j * columns + f, rank = visits.rank(j, f, columns);
        if (rank < done || rank >= upto || scores.best[pair] == -infinity()) continue;
        const Cut found = {
            scores.best[pair], i32(f), scores.sides[pair], scores.bins[pair], 1, 0.0,
            level.rank(j, f)
        };
        if (precedes(found, cut)) cut = found;
    }
    cut = warp_first(cut);
    __syncwarp();
    if (lane != 0) return;
    visits.done[j] = i32(done);
    visits.upto[j] = i32(upto);
    ((Cut*)cuts)[j] = cut;
    found.begin(j, cut);
}

// Send a node without a cut to its next column that may have one; returns false if none has.
__device__ inline bool visit_further(
    const Scores& scores, const Visits& visits, const Cut& cut, i64 j, i64 columns
) {
    i64 next = visits.done[j] < columns ? visits.upto[j] : columns;
    visits.done[j] = i32(columns);
    if (cut.score > -infinity()) return false;
    for (; next < columns; ++next) {
        const i64 pair = j * columns + visits.orders[j * columns + next];
        if (scores.best[pair] > -infinity() || scores.bounds[pair] > -infinity()) break;
    }
    if (next >= columns) return false;
    visits.done[j] = i32(next);
    visits.upto[j] = i32(next) + 1;
    return true;
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

// Grid: nodes; block: one warp. Each node's best cut, including those `found` inside bins, and its
// record, except the fields that partition adds; node j begins at entry[j]. Records are behind the
// tally. Nodes that visit further columns wait; all wait where the search overflows.
extern "C" __global__ void __launch_bounds__(32) choose_splits(
    Rules rules, Table table, Level level, Scores scores, Visits visits, Found found,
    const i64* entry, i64* cuts
) {
    const i64 j = blockIdx.x, columns = table.columns;
    if (threadIdx.x != 0 || level.lacks(j)) return;
    const bool overflows = found.tally[OVERFLOWS] != 0;
    const Cut cut = found.better(((const Cut*)cuts)[j], j);
    ((Cut*)cuts)[j] = cut;
    const Criterion& criterion = rules.criterion;
    const i64 channels = rules.channels;
    const i64* total = level.totals + j * channels;
    Record record = {-1, 0, 0.0, 0, -1, 0, 0, 0, 0.0, entry[j], 0, ~u64(0)};
    const bool waits =
        overflows || (visits.orders && visit_further(scores, visits, cut, j, columns));
    const bool exists = !waits && cut.score > -infinity();
    const double decrease = exists ? gain(criterion, cut.score, total) : 0.0;
    const i64 weight = weight_in(criterion, total);
    if (waits) record.column = WAITS;
    if (exists && decrease * double(weight) >= rules.min_decrease) {
        const Column column = column_of(table, cut.column);
        const Cell* cells = level.cells(table, j, channels);
        record.column = cut.column;
        record.weight = weight;
        record.gain = decrease;
        const bool categorical = table.categories[cut.column] > 0;
        record.cut_bin = categorical ? 0 : cut.place;
        if (cut.at_end && !categorical)
            record.next_bin = next_filled(criterion, column, cells, channels, cut.place);
        record.inside = !cut.at_end;
        record.missing_left = cut.missing_left;
        record.seen_missing = missing_cell(column, cells, channels) != nullptr;
        record.threshold = cut.threshold;
    }
    ((Record*)(found.tally + TALLY_WORDS))[j] = record;
}
