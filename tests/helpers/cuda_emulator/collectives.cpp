// Warp collectives: lanes wait until all that the mask names have arrived, then each is answered.
#include <algorithm>

#include "runtime.h"

namespace emulator {
const char* name_of(int operation) {
    static const char* names[] = {"?",
                                  "__syncwarp",
                                  "__shfl_*_sync",
                                  "__ballot_sync",
                                  "__any_sync",
                                  "__all_sync",
                                  "__match_any_sync",
                                  "__reduce_add_sync",
                                  "__reduce_min_sync",
                                  "__reduce_max_sync",
                                  "__reduce_min_sync",
                                  "__reduce_max_sync"};
    return operation >= BARRIER ? "__syncthreads" : names[operation];
}

uint64_t collective(int operation, unsigned mask, uint64_t value, unsigned source, int line) {
    Thread* thread = current;
    if (!(mask >> thread->lane & 1)) {
        fail("line %d: %s: lane %u calls with mask 0x%08x that does not name it", line,
             name_of(operation), thread->lane, mask);
        stop_thread();
    }
    thread->operation = operation;
    thread->mask = mask;
    thread->value = value;
    thread->source = source;
    thread->line = line;
    thread->state = IN_COLLECTIVE;
    yield();
    return thread->answer;
}

static uint64_t start_value(int operation) {
    switch (operation) {
        case ALL:
        case REDUCE_MIN: return ~0ull;
        case REDUCE_SIGNED_MIN: return INT64_MAX;
        case REDUCE_SIGNED_MAX: return uint64_t(INT64_MIN);
        default: return 0;
    }
}

static uint64_t combine(int operation, uint64_t sum, uint64_t value, unsigned lane) {
    switch (operation) {
        case BALLOT: return sum | value << lane;
        case ANY: return sum | value;
        case ALL: return sum & value;
        case REDUCE_ADD: return sum + value;
        case REDUCE_MIN: return std::min(sum, value);
        case REDUCE_MAX: return std::max(sum, value);
        case REDUCE_SIGNED_MIN: return std::min(int64_t(sum), int64_t(value));
        case REDUCE_SIGNED_MAX: return std::max(int64_t(sum), int64_t(value));
        default: return 0;
    }
}

static uint64_t matching_lanes(const Thread* warp, unsigned group, uint64_t value) {
    unsigned lanes = 0;
    for (unsigned rest = group; rest; rest &= rest - 1) {
        const unsigned lane = __builtin_ctz(rest);
        lanes |= unsigned(warp[lane].value == value) << lane;
    }
    return lanes;
}

// Answer the collective that the lanes of `group` wait in.
static void answer(Thread* warp, unsigned group) {
    const int operation = warp[__builtin_ctz(group)].operation;
    uint64_t sum = start_value(operation);
    for (unsigned rest = group; rest; rest &= rest - 1) {
        const unsigned lane = __builtin_ctz(rest);
        sum = combine(operation, sum, warp[lane].value, lane);
    }
    for (unsigned rest = group; rest; rest &= rest - 1) {
        Thread& thread = warp[__builtin_ctz(rest)];
        if (operation == SHUFFLE) {  // the value of an absent lane is undefined on a GPU
            const bool present = group >> thread.source & 1;
            thread.answer = present ? warp[thread.source].value : 0xDEADBEEFDEADBEEFull;
        } else if (operation == MATCH_ANY) {
            thread.answer = matching_lanes(warp, group, thread.value);
        } else {
            thread.answer = sum;
        }
        thread.state = READY;
    }
    if (operation == SYNCWARP) ++block->warp_barriers[warp->warp];
}

static bool same_collective(const Thread& a, const Thread& b) {
    if (a.mask == b.mask && a.operation == b.operation && a.line == b.line) return true;
    fail("block (%u,%u,%u) warp %u: lanes of one mask in different collectives: "
         "lane %u %s line %d mask %08x, lane %u %s line %d mask %08x",
         block_index.x, block_index.y, block_index.z, a.warp, a.lane, name_of(a.operation), a.line,
         a.mask, b.lane, name_of(b.operation), b.line, b.mask);
    return false;
}

bool answer_collectives(Thread* warp, unsigned lanes) {
    unsigned live = 0, waiting = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        live |= unsigned(warp[lane].state != ENDED) << lane;
        waiting |= unsigned(warp[lane].state == IN_COLLECTIVE) << lane;
    }
    bool any = false;
    for (unsigned rest = waiting; rest;) {
        const Thread& thread = warp[__builtin_ctz(rest)];
        const unsigned group = thread.mask & live;
        rest &= ~(1u << thread.lane);
        if (group & ~waiting) continue;  // somebody has not arrived
        for (unsigned others = group; others; others &= others - 1)
            if (!same_collective(thread, warp[__builtin_ctz(others)])) return false;
        answer(warp, group);
        rest &= ~group;
        waiting &= ~group;
        any = true;
    }
    return any;
}
}  // namespace emulator
