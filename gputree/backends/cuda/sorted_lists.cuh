// The rows of some nodes, listed column by column in order of value; splits partition the lists.
//
// The rows of all nodes are stored one after another, `rows` in all. Each column lists them sorted
// by value, node by node; every split partitions the lists stably, so none is sorted again:
//
//   keys[f]    sorted keys of column f: of values, or codes where cuts are by code
//   items[f]   the places of their rows; items[columns] lists them in the order of entries
//
// A column that is constant in a node stays so below it, and is not partitioned.
struct Lists {
    Bits* keys;
    i32* items;
    Bits* key_spill;
    i32* item_spill;
    u8* sides;
    i64 rows, columns;
};

// First place among the sorted keys s .. t with a missing value.
__device__ inline i64 known_end(const Bits* keys, i64 s, i64 t) {
    return first_behind(s, t, [&](i64 i) { return keys[i] == MISSING_KEY; });
}

// Stable partition of places s .. t of one list by the sides of their rows. One lane.
__device__ void partition_list(const Lists& lists, i64 f, i64 s, i64 t) {
    const i64 base = f * lists.rows;
    i64 to_left = base + s, spilled = base + s;
    const bool keyed = f < lists.columns;
    for (i64 i = base + s; i < base + t; ++i) {
        const i32 item = lists.items[i];
        const bool left = lists.sides[item];
        const i64 to = left ? to_left++ : spilled++;
        (left ? lists.items : lists.item_spill)[to] = item;
        if (keyed) (left ? lists.keys : lists.key_spill)[to] = lists.keys[i];
    }
    for (i64 i = base + s; i < spilled; ++i, ++to_left) {
        lists.items[to_left] = lists.item_spill[i];
        if (keyed) lists.keys[to_left] = lists.key_spill[i];
    }
}

// Write the sides of the rows s .. t of a cut; the caller waits for all lanes.
__device__ void mark_rows(const Lists& lists, const Cut& cut, i64 s, i64 known, i64 t) {
    const i32* items = lists.items + cut.column * lists.rows;
    for (i64 i = s + threadIdx.x; i < t; i += 32)
        lists.sides[items[i]] = i < known ? i <= cut.place : cut.missing_left;
}

// Partition the lists of the columns `below`, which may split a child, by the sides of the rows,
// where a child may split further, except the one that is `done`; and the order of entries.
__device__ void split_lists(
    const Lists& lists, const auto& below, i64 done, i64 s, i64 t, bool further
) {
    for (i64 i = threadIdx.x; i <= below.number; i += 32) {
        const bool is_order = i == below.number;
        const i64 f = is_order ? lists.columns : below[i];
        const Bits* keys = lists.keys + f * lists.rows;
        if (is_order || (further && f != done && keys[s] != keys[t - 1]))
            partition_list(lists, f, s, t);
    }
    __syncwarp();
}

// Copy places s .. s + size of all lists to shared memory, with buffers to partition them.
__device__ Lists copy_lists(const Lists& lists, i64 s, i64 size, u64* memory) {
    const i64 columns = lists.columns;
    Bits* keys = (Bits*)memory;
    i32* items = (i32*)(keys + 2 * columns * size);
    for (i64 f = 0; f <= columns; ++f)
        for (i64 i = threadIdx.x; i < size; i += 32) {
            items[f * size + i] = lists.items[f * lists.rows + s + i];
            if (f < columns) keys[f * size + i] = lists.keys[f * lists.rows + s + i];
        }
    return {
        keys, items, keys + columns * size, items + (columns + 1) * size, lists.sides, size, columns
    };
}
