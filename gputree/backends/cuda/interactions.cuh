// Interaction constraints: gputree/backends/interactions.py. Compiled for tasks that have them:
// INTERACTIONS is 1.
#ifndef INTERACTIONS
#define INTERACTIONS 0
#endif

// The columns that may split a node, ascending: all of them without constraints.
struct ColumnSet {
    i64 number;
#if INTERACTIONS
    const i64* column;
    const i64* below;  // set of the children of a cut by each

    __device__ __forceinline__ i64 operator[](i64 i) const { return column[i]; }

    // Place of column f in the set, or that of the next one.
    __device__ __forceinline__ i64 place_of(i64 f) const {
        return first_behind(0, number, [&](i64 i) { return column[i] >= f; });
    }

    __device__ __forceinline__ bool includes(i64 f) const {
        const i64 place = place_of(f);
        return place < number && column[place] == f;
    }
#else
    __device__ __forceinline__ i64 operator[](i64 i) const { return i; }
    __device__ __forceinline__ bool includes(i64) const { return true; }
#endif
};

// List the columns of a set in the first places of `order`.
__device__ inline void list_columns(const ColumnSet& set, i32* order) {
    for (i64 i = 0; i < set.number; ++i) order[i] = i32(set[i]);
}

struct Interactions {  // sets of columns; null without constraints
    const i64* first;
    const i64* column;
    const i64* below;

    // The columns that may split node j, of `columns`; `sets` has the number of its set.
    __device__ __forceinline__ ColumnSet of(const i64* sets, i64 j, i64 columns) const {
#if INTERACTIONS
        const i64 s = sets[j];
        return {first[s + 1] - first[s], column + first[s], below + first[s]};
#else
        return {columns};
#endif
    }
};
