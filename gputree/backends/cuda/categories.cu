// The best subset of the categories of categorical columns, in nodes that have histograms.
//
//   few    a category is a bin: its run is a cell of the histogram
//   many   the rows of a node, sorted by category

struct Pair {  // a categorical column in a node, and memory for its runs
    const i64* total;
    Runs runs;
    u32* code;  // of each run
    u8* is_left;
};

struct Pairs {  // categorical columns in nodes, and the places of the sides of their categories
    const i64* node;
    const i64* column;
    const i64* code_at;
    u32* code;
    u8* is_left;
    i32* count;

    __device__ __forceinline__ Pair of(
        i64 p, const i64* totals, const RunMemory& memory, i64 channels, i64 width
    ) const {
        return {
            totals + node[p] * channels, memory.of(p, width), code + code_at[p],
            is_left + code_at[p]
        };
    }

    // The place of a pair's scores, read again where it is used: no search keeps it in registers.
    __device__ __forceinline__ i64 score_of(i64 p, i64 columns) const {
        return node[p] * columns + column[p];
    }
};

// Collect the runs of the categories that a node has, in order, from its histogram.
__device__ i64 collect_bins(
    const Criterion& criterion, const Column& column, const Cell* cells, i64 channels, i64 width,
    const Runs& runs, u32* code
) {
    i64 number = 0, rows = 0;
    for (i64 b0 = 0; b0 < column.value_bins; b0 += 32) {
        const i64 b = b0 + lane_of();
        const Cell* bin = cells + (column.first + b) * channels;
        const i64 n = b < column.value_bins ? rows_in(criterion, bin, channels) : 0;
        const u32 vote = __ballot_sync(ALL_LANES, n > 0);
        const i64 upto = rows + inclusive_sum(n);
        if (n > 0) {
            const i64 r = number + __popc(vote & ((1u << lane_of()) - 1u));
            runs.begin[r] = upto - n;
            code[r] = u32(b);
            for (i64 k = 0; k < width; ++k) runs.cells[r * width + k] = i64(bin[k]);
        }
        number += __popc(vote);
        rows = last_lane(upto);
    }
    const Cell* missing = missing_cell(column, cells, channels);
    for (i64 k = lane_of(); k < width; k += 32)
        runs.cells[number * width + k] = missing ? i64(missing[k]) : 0;
    if (lane_of() == 0) {
        runs.begin[number] = rows;
        runs.begin[number + 1] = rows + (missing ? rows_in(criterion, missing, channels) : 0);
    }
    __syncwarp();
    return number;
}

// One lane: write the subset that was found.
__device__ void write_subset(
    const Pairs& pairs, i64 p, i64 count, const Subset& best, i64 columns, const Scores& scores
) {
    if (lane_of() != 0) return;
    const i64 index = pairs.score_of(p, columns);
    scores.best[index] = best.score;
    scores.sides[index] = u8(best.missing_left);
    pairs.count[p] = i32(count);
}

// The best subset of a pair's runs, whose categories are marked; `source` has their statistics.
__device__ Subset find_subset(
    const Measure& measure, const Search& search, const Node& node, const auto& source,
    const Pair& pair
) {
    if (pair.runs.count == 0) return {-infinity(), 0, 0, 0};
    const i64 present = count_channels(measure, node);
    const int kind = choose_search(search, node, pair.runs.count, present);
    if (kind != ONE_VS_REST) sum_runs(source, node, pair.runs, measure.channels());
    const Subset best = best_subset(measure, search, node, source, pair.runs, kind, present);
    mark_subset(measure, node, pair.runs, kind, best.order, best.place, pair.is_left);
    return best;
}

// Grid: pairs of nodes and columns of few categories; block: one warp. The best subset of each to
// `scores`; codes and sides of its count[p] runs. Not of columns that are excluded.
extern "C" __global__ void __launch_bounds__(32, 16) score_bins(
    Rules rules, Search search, Table table, Level level, Pairs pairs, RunMemory memory,
    Scores scores
) {
    const Measure measure = {rules.criterion, rules.limits};
    const i64 p = blockIdx.x, width = measure.channels(), channels = rules.channels;
#if INTERACTIONS
    if (scores.excludes(pairs.score_of(p, table.columns))) return;
#endif
    Pair pair = pairs.of(p, level.totals, memory, channels, width);
    pair.runs.count = collect_bins(
        measure.criterion, column_of(table, pairs.column[p]),
        level.cells(table, pairs.node[p], channels), channels, width, pair.runs, pair.code
    );
    const Node node = {
        pair.runs.begin[pair.runs.count], pair.runs.begin[pair.runs.count + 1], pair.total
    };
    const Subset subset = find_subset(measure, search, node, Summed(), pair);
    write_subset(pairs, p, pair.runs.count, subset, table.columns, scores);
}

// Grid: chunks of entries. The rows of node j begin at start[j], each with the key of its value in
// a column, and its node.
extern "C" __global__ void __launch_bounds__(256) list_rows(
    const Bits* values, Table table, i64 column, const i32* entries, Chunks chunks,
    const i64* begin, const i64* start, u32* segment, Bits* keys, i32* items
) {
    const i64 c = blockIdx.x, j = chunks.owner[c];
    for (i64 i = chunks.first[c] + threadIdx.x; i < chunks.last[c]; i += blockDim.x) {
        const i64 position = start[j] + i - begin[j];
        segment[position] = u32(j);
        items[position] = entries[i];
        keys[position] = key_of(values[table.row_of(entries[i]) * table.columns + column]);
    }
}

// Like score_bins, for columns of many categories: the rows of pair p, sorted by category, are
// first[p] .. last[p] of keys and items; counts[p] categories.
extern "C" __global__ void __launch_bounds__(32, 16) score_rows(
    Rules rules, Search search, Table table, Level level, Pairs pairs, RunMemory memory,
    Scores scores, Rows of, const Bits* keys, const i32* items, const i64* first, const i64* last
) {
    const Measure measure = {rules.criterion, rules.limits};
    const i64 p = blockIdx.x, width = measure.channels();
#if INTERACTIONS
    if (scores.excludes(pairs.score_of(p, table.columns))) return;
#endif
    Pair pair = pairs.of(p, level.totals, memory, rules.channels, width);
    const Listed<const Bits*, i32> list = {
        keys + first[p], items + first[p], of.target, of.weight
    };
    const i64 rows = last[p] - first[p];
    const auto is_missing = [&](i64 i) { return list.keys[i] == MISSING_KEY; };
    const Node node = {first_behind(0, rows, is_missing), rows, pair.total};
    pair.runs.count = find_runs(list, node, pair.runs);
    const Subset subset = find_subset(measure, search, node, list, pair);
    for (i64 r = lane_of(); r < pair.runs.count; r += 32)
        pair.code[r] = u32(value_of(list.keys[pair.runs.begin[r]]));
    write_subset(pairs, p, pair.runs.count, subset, table.columns, scores);
}
