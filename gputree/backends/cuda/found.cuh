// Cuts that the search inside bins has found, node by node.

// Counters of the search; the host reads them in front of the records. `OVERFLOWS`: slots or cuts do
// not suffice, or a candidate has more rows than a warp sorts; nothing is scanned then.
enum Tally { CELLS, PAIRS, SLOTS, CANDIDATES, OVERFLOWS, TALLY_WORDS };

// Cuts of a node are linked, the latest first: only those that were at least as good as any before.
struct Found {
    i64* tally;
    // Of nodes: orders (see order_of) of the best score of a boundary of bins or sub-bins, and of one
    // of a cut that may be chosen. The same cut has another score in its last bits in a scan.
    i64* best_boundaries;
    i64* best_scores;
    i32* latest;   // of nodes: a cut, or -1
    i32* earlier;  // of cuts: the one before in its node, or -1
    i64* cuts;

    // One lane of a node's warp: forget all but the best boundary.
    __device__ __forceinline__ void begin(i64 j, const Cut& boundary) const {
        best_boundaries[j] = best_scores[j] = order_of(boundary.score);
        latest[j] = -1;
        for (int i = 0; j == 0 && i < TALLY_WORDS; ++i) tally[i] = 0;
    }

    // One lane: add cut i of node j.
    __device__ __forceinline__ void add(i64 i, i64 j, const Cut& cut) const {
        const i64 order = order_of(cut.score);
        if (cut.score == -infinity() || order < atomicMax(best_scores + j, order)) return;
        ((Cut*)cuts)[i] = cut;
        earlier[i] = atomicExch(latest + j, i32(i));
    }

    // One lane: the better of `cut` and the cuts of node j.
    __device__ __forceinline__ Cut better(Cut cut, i64 j) const {
        for (i32 i = latest[j]; i >= 0; i = earlier[i]) {
            const Cut& found = ((const Cut*)cuts)[i];
            if (precedes(found, cut)) cut = found;
        }
        return cut;
    }
};
