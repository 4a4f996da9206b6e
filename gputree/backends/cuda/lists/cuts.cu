// The best cut of a numeric column in a node, by a CART criterion, from its sorted list.

// Statistics left of a cut behind each lane's row.
struct LeftOfRow {
    const i64* before;  // of the tile
    Row row;
    __device__ i64 operator[](i64 k) const { return before[k] + inclusive_sum(share_of(row, k)); }
};

struct Best {
    double score;
    i64 place;
};

__device__ Best warp_first(Best best) {
    for (int distance = 16; distance > 0; distance /= 2) {
        const Best other = {
            __shfl_xor_sync(ALL_LANES, best.score, distance),
            __shfl_xor_sync(ALL_LANES, best.place, distance)
        };
        if (other.score > best.score || (other.score == best.score && other.place < best.place))
            best = other;
    }
    return best;
}

// The first of the best cuts, missing values on one side; `left` is scratch.
__device__ Best scan_cuts(
    const Measure& measure, const Node& node, const Rows& rows, bool missing_left, i64* left
) {
    clear(left, measure.channels());
    if (missing_left) add_rows(node.list, rows, node.known, node.end, left);
    const i64 moved = missing_left ? node.end - node.known : 0;
    const i64 final = node.has_missing() && !missing_left ? node.known : node.known - 1;
    Best best = {-infinity(), -1};
    for (i64 i0 = node.begin; i0 < node.known; i0 += 32) {
        const i64 i = i0 + lane_of();
        const Row row = row_at(node.list, rows, i, node.known);
        const bool ends = i < final && node.list.code[i + 1] != row.code;
        const LeftOfRow view = {left, row};
        const double value =
            admitted_score(measure, node, view, i + 1 - node.begin + moved, ends);
        if (value > best.score) best = {value, i};
        __syncwarp();
        add_row(left, row);
        __syncwarp();
    }
    return warp_first(best);
}

__device__ i64 count_codes(const Node& node) {
    i64 count = 0;
    for (i64 i = node.begin + lane_of(); i < node.known; i += 32)
        count += i == node.begin || node.list.code[i] != node.list.code[i - 1];
    return warp_sum(count);
}

// Grid: pairs of nodes and columns, in turn; block: one warp, with a vector of statistics in
// `scratch`. The fields of `Cuts` to out[.][f][j]; of nominal columns, the number of categories.
// 16 blocks a multiprocessor: for more of them the compiler would spill registers.
extern "C" __global__ void __launch_bounds__(32, 16) score_cuts(
    i64 n_classes, double unit, double scale, i64 min_samples_leaf, i64 min_weight_leaf,
    const u8* nominal, i64 columns, i64 nodes, i64 n_entries, const i32* item, const u32* code,
    const Target* target, const i64* weight, const i64* begin, const i64* end, const i64* sums,
    i64 width, const u8* asked, i64* scratch, i64* out
) {
    const Measure measure = {{n_classes, unit, scale}, min_samples_leaf, min_weight_leaf};
    const Rows rows = {target, weight};
    for (i64 pair = blockIdx.x; pair < nodes * columns; pair += gridDim.x) {
        const i64 f = pair % columns, j = pair / columns, at = f * nodes + j;
        const List list = {item + f * n_entries, code + f * n_entries};
        const i64 known = asked[at] ? known_end(list.code, begin[j], end[j]) : end[j];
        const Node node = {list, begin[j], known, end[j], sums + j * width};
        const bool constant = asked[at] && list.code[begin[j]] == list.code[end[j] - 1];
        i64 fields[] = {__double_as_longlong(-infinity()), 0, 0, 0, 0, 0, constant};
        if (asked[at] && !constant && nominal[f]) fields[5] = count_codes(node);
        if (asked[at] && !constant && !nominal[f]) {
            Best best = {-infinity(), -1};
            for (int side = 0; side < (node.has_missing() ? 2 : 1); ++side) {
                const Best found =
                    scan_cuts(measure, node, rows, side, scratch + blockIdx.x * width);
                if (!(found.score > best.score)) continue;
                best = found;
                fields[1] = side;
            }
            if (best.place >= 0) {
                fields[0] = __double_as_longlong(best.score);
                fields[3] = list.code[best.place];
                fields[4] = list.code[best.place + 1];
            }
        }
        if (lane_of() != 0) continue;
        for (int field = 0; field < 7; ++field) out[field * columns * nodes + at] = fields[field];
    }
}
