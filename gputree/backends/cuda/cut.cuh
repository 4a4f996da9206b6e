// A cut, and the one tie rule of gputree/backends/cpu/cut.py.
struct Cut {
    double score;  // -infinity: no cut
    i32 column;
    i32 missing_left;
    i32 place;   // bin, or place in a sorted list
    i32 at_end;  // of the bin, else inside it
    double threshold;
    u64 rank;  // of the column
};

__device__ __forceinline__ Cut no_cut() { return {-infinity(), 0, 0, 0, 0, 0.0, 0}; }

// True if cut `a` is chosen before `b`.
__device__ __forceinline__ bool precedes(const Cut& a, const Cut& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.missing_left != b.missing_left) return !a.missing_left;
    if (a.place != b.place) return a.place < b.place;
    if (a.at_end != b.at_end) return b.at_end;
    return a.threshold < b.threshold;  // in one bin the lower cut
}

// Columns are visited in the order of their ranks (null: all at once): done <= rank < upto.
struct Visits {
    const i32* orders;  // (nodes, columns): columns by rank
    const i32* ranks;
    i32* done;
    i32* upto;

    __device__ __forceinline__ i64 rank(i64 node, i64 column, i64 columns) const {
        return ranks ? ranks[node * columns + column] : column;
    }

    __device__ __forceinline__ bool include(i64 node, i64 column, i64 columns) const {
        const i64 place = rank(node, column, columns);
        return done[node] <= place && place < upto[node];
    }
};

// Lowest bound with which a bin is a candidate.
__device__ double needed_bound(const Criterion& criterion, const Cut& cut, const auto& total) {
    if (cut.score == -infinity()) return cut.score;
    return cut.score - margin(criterion, cut.score, total);
}

#define MOST_CELLS (i64(1) << 20)  // counted into per bin
