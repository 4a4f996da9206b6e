// The rows of a subtree, listed column by column in order of value; splits partition the lists.
//
// The rows of a subtree are numbered from 0 in the order of its root's entries. Each column lists
// them sorted by value, node by node; every split partitions the lists stably, so none is sorted
// again:
//
//   items[f]   rows of column f; items[columns] lists them in the order of entries
//   ranks[f]   of rows: the place of the first row of equal value in the root's list
//
// A column that is constant in a node stays so below it, and is not partitioned.
#if WIDE  // a subtree has more rows than 16 bits number
typedef u32 Item;
#define MISSING_RANK 0xffffffffu
#else
typedef u16 Item;
#define MISSING_RANK 0xffff
#endif
#define BLOCK_WARPS 8  // of a block

struct Lists {
    Item* ranks;  // (columns, rows)
    Item* items;  // (columns + 1, rows)
    Item* spill;  // (columns + 1, rows): rows that go right
    u8* sides;   // of rows
    i64 rows, columns;

    __device__ __forceinline__ const Item* list(i64 f) const { return items + f * rows; }
    __device__ __forceinline__ u32 rank(i64 f, i64 place) const {
        return ranks[f * rows + items[f * rows + place]];
    }

    // True if no two places of s .. t differ.
    __device__ __forceinline__ bool is_constant(i64 f, i64 s, i64 t) const {
        return rank(f, s) == rank(f, t - 1);
    }

    // First of the places s .. t of column f with a missing value.
    __device__ __forceinline__ i64 known_end(i64 f, i64 s, i64 t) const {
        return first_behind(s, t, [&](i64 i) { return rank(f, i) == MISSING_RANK; });
    }
};

// Warps that split a node: all of a block, or one.
struct Team {
    int warp, warps;

    __device__ __forceinline__ int thread() const { return warp * 32 + lane_of(); }
    __device__ __forceinline__ int threads() const { return warps * 32; }
    __device__ __forceinline__ void wait() const {
        if (warps > 1) __syncthreads();
        else __syncwarp();
    }
};

// Lanes of a warp, a power of two, that process one of the lists of a node together: as many as
// there are for each. `number` groups of a team process as many lists at once.
struct Group {
    int lanes, number, index, lane;

    __device__ Group(const Team& team, i64 lists) : lanes(32) {
        while (lanes > 1 && lanes * lists > team.threads()) lanes /= 2;
        number = team.threads() / lanes;
        index = team.thread() / lanes;
        lane = lane_of() & (lanes - 1);
    }

    // The lanes of the group where `value` is true; every lane of the warp takes part.
    __device__ __forceinline__ u32 ballot(bool value) const {
        const u32 votes = __ballot_sync(ALL_LANES, value) >> (lane_of() - lane);
        return lanes < 32 ? votes & ((1u << lanes) - 1u) : votes;
    }
};

// A group: stable partition of places s .. t of a list that is to be `moved`, by the sides of its
// rows; every lane of the warp takes part.
__device__ void partition_list(
    const Lists& lists, const Group& group, i64 f, bool moved, i64 s, i64 t
) {
    if (!__any_sync(ALL_LANES, moved)) return;
    Item *items = lists.items + f * lists.rows, *spill = lists.spill + f * lists.rows;
    const u32 before = (1u << group.lane) - 1u;
    i64 to_left = s, spilled = s;
    // Places before i0 are moved; those from to_left on, before i0, may be overwritten.
    for (i64 i0 = s; i0 < t; i0 += group.lanes) {
        const i64 i = i0 + group.lane;
        const bool exists = moved && i < t;
        const Item item = exists ? items[i] : 0;
        const bool goes_left = exists && lists.sides[item];
        const u32 lefts = group.ballot(goes_left), rights = group.ballot(exists && !goes_left);
        __syncwarp();
        if (goes_left) items[to_left + __popc(lefts & before)] = item;
        else if (exists) spill[spilled + __popc(rights & before)] = item;
        to_left += __popc(lefts);
        spilled += __popc(rights);
    }
    __syncwarp();
    for (i64 i = s + group.lane; i < spilled; i += group.lanes) items[to_left + i - s] = spill[i];
}

// A team: write the sides of the rows s .. t of a cut; the caller waits.
__device__ void mark_rows(
    const Lists& lists, const Team& team, const Cut& cut, i64 s, i64 known, i64 t
) {
    const Item* items = lists.list(cut.column);
    for (i64 i = s + team.thread(); i < t; i += team.threads())
        lists.sides[items[i]] = i < known ? i <= cut.place : cut.missing_left;
}

// A team: partition the lists of the columns `below`, which may split a child, by the sides of the
// rows, where a child may split further, except the one that is `done`; and the order of entries.
__device__ void split_lists(
    const Lists& lists, const Team& team, const auto& below, i64 done, i64 s, i64 t, bool further
) {
    const Group group(team, below.number + 1);
    for (i64 i0 = 0; i0 <= below.number; i0 += group.number) {
        const i64 i = i0 + group.index;
        const i64 f = i < below.number ? below[i] : lists.columns;
        const bool moved = i < below.number ? further && f != done && !lists.is_constant(f, s, t)
                                            : i == below.number;
        partition_list(lists, group, f, moved, s, t);
    }
}
