// Scores of bin boundaries, and bounds on cuts inside bins. One warp a node and column.

// cumulative[b] = sum of the bins up to b, channel by channel.
__device__ void accumulate(const Column& column, const Cell* cells, i64 channels, i64* cumulative) {
    const int lane = threadIdx.x & 31;
    for (i64 k = 0; k < channels; ++k) {
        i64 carry = 0;
        for (i64 b0 = 0; b0 < column.value_bins; b0 += 32) {
            const i64 b = b0 + lane;
            const i64 cell = (column.first + b) * channels + k;
            const i64 sum = carry + inclusive_sum(b < column.value_bins ? i64(cells[cell]) : 0);
            if (b < column.value_bins) cumulative[cell] = sum;
            carry = last_lane(sum);
        }
    }
    __syncwarp();
}

// Histograms that are differences: at slot s, that of whole[s] above less that of part[s], which may
// be in the place of its result.
struct Larger {
    const Cell* above;  // null without any
    const i64* whole;   // -1 of histograms that were counted
    const i64* part;
};

// A warp: set the cells of column f at slot s, which no other warp of the launch reads, if the
// histogram is a difference.
__device__ void subtract(
    const Larger& larger, const Table& table, i64 s, i64 f, i64 channels, Cell* histograms
) {
    if (!larger.above || larger.whole[s] < 0) return;
    const i64 width = table.offset[table.columns] * channels, end = table.offset[f + 1] * channels;
    const Cell* above = larger.above + larger.whole[s] * width;
    const Cell* part = histograms + larger.part[s] * width;
    for (i64 i = table.offset[f] * channels + threadIdx.x; i < end; i += 32)
        histograms[s * width + i] = above[i] - part[i];
    __syncwarp();
}

// Grid: nodes x columns; block: one warp. Node j has its histogram at its slot, or gets it there;
// `totals` is written by the first column. Columns that may not split their node are excluded.
// With `ranks` only those are counted that nodes visit first: others may have a cut. There are no
// nodes behind `number`.
extern "C" __global__ void __launch_bounds__(32, 1) score_columns(
    Rules rules, Table table, Cell* histograms, Larger larger, const i64* slots, i64* cumulatives,
    i64* totals, Monotonic monotonic, Interactions interactions, const i64* sets, Scores scores,
    const i32* ranks, const i64* number
) {
    const Criterion& criterion = rules.criterion;
    const i64 columns = table.columns, channels = rules.channels;
    const i64 f = blockIdx.x % columns, j = blockIdx.x / columns;
    if (is_behind(number, j)) return;
    const i64 slot = slot_of(slots, j), rank = ranks ? ranks[blockIdx.x] : f;
    if (ranks && rank >= rules.max_features) {
        if (threadIdx.x == 0) scores.leave_open(blockIdx.x);
        return;
    }
    subtract(larger, table, slot, f, channels, histograms);
    const bool may_split = interactions.of(sets, j, columns).includes(f);
    if (!may_split) {
        if (threadIdx.x == 0) scores.exclude(blockIdx.x);
        if (rank > 0) return;
    }
    const i64 width = table.offset[columns] * channels;
    const int lane = threadIdx.x;
    const Cell* cells = histograms + slot * width;
    i64* cumulative = cumulatives + j * width;
    const Column column = column_of(table, f);
    const Constraint constraint = monotonic.of(j, f);
    accumulate(column, cells, channels, cumulative);
    const Cell* missing = missing_cell(column, cells, channels);
    const i64 last = (column.first + column.value_bins - 1) * channels;
    const AfterBin total = {cumulative + last, missing};
    if (rank == 0)
        for (i64 k = lane; k < channels; k += 32) totals[j * channels + k] = total[k];
    if (!may_split) return;

    Cut cut = no_cut();
    double most = -infinity();
    // there are no cuts between categories
    const int sides_tried = table.categories[f] > 0 ? 0 : missing ? 2 : 1;
    for (int side = 0; side < sides_tried; ++side) {
        const Cell* to_left = side ? missing : nullptr;
        for (i64 b = lane; b < column.value_bins; b += 32) {
            const i64 offset = (column.first + b) * channels;
            const Cell* bin = cells + offset;
            const i64 n = rows_in(criterion, bin, channels);
            if (n == 0) continue;
            const BeforeBin before = {cumulative + offset, bin, to_left};
            const AfterBin left = {cumulative + offset, to_left};
            if (admissible(rules, constraint, left, total)) {
                const double value = score(criterion, begin(criterion, left, total), left, total);
                const Cut found = {value, 0, side, i32(b), 1, 0.0, 0};
                if (precedes(found, cut)) cut = found;
            }
            if (!table.single[column.first + b] &&
                cut_inside(rules, before, n, total))
                most = greater_of(most, bound(criterion, before, bin, total));
        }
    }
    cut = warp_first(cut);
    most = warp_greatest(most);
    if (lane != 0) return;
    const i64 pair = j * columns + f;
    scores.best[pair] = cut.score;
    scores.bins[pair] = cut.score > -infinity() ? cut.place : -1;
    scores.sides[pair] = u8(cut.missing_left);
    scores.bounds[pair] = most;
}
