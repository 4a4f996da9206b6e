// Runs the blocks of a launch one after another, and the threads of a block as fibers.
//
//   thread   runs until it ends, or waits at a barrier or in a warp collective
//   warp     its threads run in turn; a collective whose lanes have all arrived is answered
//   block    its warps run in turn; when all threads wait at one barrier, they go on
//
// The order of blocks, warps and lanes is ascending, descending or random: a correct kernel
// gives the same result in each.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "runtime.h"

namespace emulator {
uint3 block_index;
dim3 block_size, grid_size;
int checking;
unsigned barriers_passed, block_number;

namespace {
enum Order { ASCENDING, DESCENDING, RANDOM };

Thread threads[MOST_THREADS];
unsigned thread_count;
char* shared;
size_t shared_bytes;
int order, fill;
uint64_t random_state;
}  // namespace

// ------------------------------------------------------------------ order
static uint32_t next_random() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return uint32_t(random_state >> 32);
}

static void fill_order(uint32_t* place, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) place[i] = order == DESCENDING ? count - 1 - i : i;
    if (order != RANDOM) return;
    for (uint32_t i = count; i > 1; --i) std::swap(place[i - 1], place[next_random() % i]);
}

// ------------------------------------------------------------------ blocks
int barrier(int operation, int predicate, int line) {
    Thread* own = current;
    own->operation = operation;
    own->value = predicate;
    own->line = line;
    own->state = AT_BARRIER;
    yield();
    return int(own->answer);
}

void* dynamic_shared() { return shared; }

static void run_warp(unsigned number) {
    Thread* warp = threads + number * 32;
    const unsigned lanes = std::min(32u, thread_count - number * 32);
    uint32_t place[32];
    do {
        fill_order(place, lanes);
        for (unsigned i = 0; i < lanes && !failed; ++i)
            if (warp[place[i]].state <= READY) resume(warp[place[i]]);
    } while (!failed && answer_collectives(warp, lanes));
}

static void start_block() {
    if (shared) memset(shared, fill, shared_bytes);  // a GPU does not initialise it
    fill_static_shared(fill);
    for (unsigned i = 0; i < thread_count; ++i) {
        const uint3 index = {i % block_size.x, i / block_size.x % block_size.y,
                             i / block_size.x / block_size.y};
        threads[i] = Thread{};
        threads[i].index = index;
        threads[i].linear = i;
        threads[i].lane = i & 31;
        threads[i].warp = i >> 5;
    }
    ++block_number;
    barriers_passed = 0;
    memset(warp_barriers, 0, sizeof warp_barriers);
}

static void report_deadlock(bool at_barrier) {
    for (unsigned i = 0; i < thread_count; ++i) {
        const Thread& thread = threads[i];
        if (thread.state != IN_COLLECTIVE) continue;
        fail("block (%u,%u,%u): deadlock: thread %u waits in %s (line %d, mask %08x) for lanes that "
             "%s",
             block_index.x, block_index.y, block_index.z, thread.linear, name_of(thread.operation),
             thread.line, thread.mask, at_barrier ? "wait at a __syncthreads" : "never arrive");
        return;
    }
}

// Let the threads of the block pass the barrier they all wait at; false when the block is done.
static bool pass_barrier() {
    const Thread* first = nullptr;
    unsigned live = 0, waiting = 0, count = 0;
    for (unsigned i = 0; i < thread_count; ++i) {
        const Thread& thread = threads[i];
        live += thread.state != ENDED;
        if (thread.state != AT_BARRIER) continue;
        ++waiting;
        count += unsigned(thread.value);
        if (!first) first = &thread;
        if (first->line != thread.line || first->operation != thread.operation)
            fail("block (%u,%u,%u): divergent barrier: thread %u at line %d, thread %u at line %d",
                 block_index.x, block_index.y, block_index.z, first->linear, first->line,
                 thread.linear, thread.line);
    }
    if (waiting != live) report_deadlock(first != nullptr);
    if (failed || !live) return false;
    for (unsigned i = 0; i < thread_count; ++i) {
        Thread& thread = threads[i];
        if (thread.state != AT_BARRIER) continue;
        thread.state = READY;
        thread.answer = thread.operation == BARRIER_COUNT ? count
                        : thread.operation == BARRIER_AND ? count == waiting
                                                          : count != 0;
    }
    ++barriers_passed;
    return true;
}

static void run_block() {
    const unsigned warps = (thread_count + 31) / 32;
    uint32_t place[MOST_THREADS / 32];
    start_block();
    do {
        fill_order(place, warps);
        for (unsigned i = 0; i < warps && !failed; ++i) run_warp(place[i]);
    } while (!failed && pass_barrier());
}

static void run_grid() {
    const uint64_t blocks = uint64_t(grid_size.x) * grid_size.y * grid_size.z;
    std::vector<uint32_t> place(blocks);
    fill_order(place.data(), uint32_t(blocks));
    for (uint64_t i = 0; i < blocks && !failed; ++i) {
        const uint32_t b = place[i];
        block_index = {b % grid_size.x, b / grid_size.x % grid_size.y,
                       b / grid_size.x / grid_size.y};
        run_block();
    }
}
}  // namespace emulator

EMULATOR_API int emulator_launch(void (*kernel)(void**), const unsigned* sizes, size_t shared_bytes,
                                 void** arguments, int order, uint64_t seed, int fill, int check,
                                 const emulator::Buffer* buffers, int n_buffers, int seconds) {
    using namespace emulator;
    grid_size = {sizes[0], sizes[1], sizes[2]};
    block_size = {sizes[3], sizes[4], sizes[5]};
    thread_count = sizes[3] * sizes[4] * sizes[5];
    prepare_fibers(kernel, arguments);
    emulator::order = order;
    emulator::fill = fill;
    random_state = seed * 2654435761u + 88172645463325252ull;
    forget_failure();
    block_number = 0;
    checking = check;
    emulator::shared_bytes = shared_bytes;
    shared = shared_bytes ? (char*)aligned_alloc(256, (shared_bytes + 255) & ~size_t(255)) : nullptr;
    if (check) begin_checks(buffers, n_buffers, shared, shared_bytes);
    catch_signals(seconds);
    run_grid();
    release_signals();
    current = nullptr;
    end_checks();
    free(shared);
    return failed;
}
