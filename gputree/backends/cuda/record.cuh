// The chosen split of a node as the host reads it, 8 bytes a field.
#define WAITS (-2)
struct Record {
    i64 column;  // -1: no split, WAITS: not known yet
    i64 weight;  // of the node, in units
    double gain;
    i64 cut_bin, next_bin;     // the bin before the cut, and the next one with rows, or -1
    i64 inside;                // the cut is inside the bin, at the threshold
    i64 missing_left, seen_missing;
    double threshold;
    i64 middle;     // first entry of the second child; before partition, of the node
    u64 low, high;  // keys of the values next to a cut between bins, where codes do not decide
};
