// Boundaries of bins that nodes may be split at, and the arguments of the choice.
struct Boundaries {
    i64 is_first;     // True: nodes have no cut so far
    const i64* low;   // a single target may be true of all rows of node j where low[j] <= high[j];
    const i64* high;  // null for classes
    Scores scores;
    Visits visits;
    i64* cuts;
    i32* lead;  // the column to refine first: the one of the highest bound, -1 if none suffices

    // A warp: the best cut of node j, of boundaries of the columns it visits, and its leading
    // column. Where it has no cut before and all its targets are equal, it visits none.
    __device__ Cut choose(
        const Rules& rules, const Level& level, i64 j, i64 columns, i32& leading
    ) const {
        const int lane = threadIdx.x;
        const i64* total = level.totals + j * rules.channels;
        Cut cut = no_cut();
        i64 done = 0, upto = rules.max_features;
        if (!is_first) {
            cut = ((Cut*)cuts)[j];
            done = visits.done[j];
            upto = visits.upto[j];
        } else if (REGRESSION ? low[j] <= high[j] : is_pure(rules.criterion, total)) {
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
        const double needed = needed_bound(rules.criterion, cut, total);
        Cut first = no_cut();
        for (i64 f = lane; f < columns; f += 32) {
            const double bound = scores.bounds[j * columns + f];
            const i64 rank = visits.rank(j, f, columns);
            if (rank < done || rank >= upto || !(bound >= needed)) continue;
            const Cut found = {bound, i32(f), 0, 0, 1, 0.0, u64(f)};
            if (bound > -infinity() && precedes(found, first)) first = found;
        }
        first = warp_first(first);
        leading = first.score > -infinity() ? first.column : -1;
        __syncwarp();
        if (lane == 0) {
            visits.done[j] = i32(done);
            visits.upto[j] = i32(upto);
            ((Cut*)cuts)[j] = cut;
            lead[j] = leading;
        }
        return cut;
    }
};
