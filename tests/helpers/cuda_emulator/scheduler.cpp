// Runs the threads of a launch, which are fibers, in turn.
//
//   thread   runs until it ends, waits at a barrier or in a warp collective, or pauses at an atomic
//   warp     its threads run in turn; a collective whose lanes have all arrived is answered
//   block    its warps run in turn; when all threads wait at one barrier, they go on
//
// In ascending or descending order a block runs to its end before the next one begins, and threads
// do not pause. In random order several blocks run side by side, in as many steps of warps as chance
// gives each before another goes on: what two blocks do between atomics comes in any order. A correct
// kernel gives the same result in each.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "runtime.h"

namespace emulator {
uint3 block_index;
dim3 block_size, grid_size;
int checking, interleaving;
Block* block;
SharedMemory shared;

namespace {
enum Order { ASCENDING, DESCENDING, RANDOM };
constexpr unsigned MOST_BLOCKS = 16;  // side by side

Block blocks[MOST_BLOCKS];
Thread threads[MOST_FIBERS];
unsigned thread_count, blocks_begun;  // of a block; of the launch
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

// Seeds that differ by one begin unlike each other (splitmix64).
static uint64_t mixed(uint64_t seed) {
    seed += 0x9E3779B97F4A7C15ull;
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9ull;
    seed = (seed ^ seed >> 27) * 0x94D049BB133111EBull;
    return (seed ^ seed >> 31) | 1;
}

static void fill_order(uint32_t* place, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) place[i] = order == DESCENDING ? count - 1 - i : i;
    if (order != RANDOM) return;
    for (uint32_t i = count; i > 1; --i) std::swap(place[i - 1], place[next_random() % i]);
}

// ------------------------------------------------------------------ shared memory
void* dynamic_shared() { return block->shared + aligned(shared.static_bytes); }

// The linker's word for "thread_local" variables of this library: those of the block that runs.
struct ThreadLocal {
    unsigned long library, offset;
};
extern "C" __attribute__((visibility("hidden"))) void* __tls_get_addr(ThreadLocal* variable) {
    return block->shared + variable->offset;
}

static void make_shared(unsigned blocks, size_t dynamic_bytes) {
    const size_t fixed = static_shared_bytes(), bytes = aligned(fixed) + aligned(dynamic_bytes);
    shared = {nullptr, bytes, fixed, dynamic_bytes, blocks};
    if (bytes) shared.begin = (char*)aligned_alloc(SHARED_ALIGNMENT, blocks * bytes);
}

// ------------------------------------------------------------------ blocks
int barrier(int operation, int predicate, int line) {
    Thread* thread = current;
    thread->operation = operation;
    thread->value = predicate;
    thread->line = line;
    thread->state = AT_BARRIER;
    yield();
    return int(thread->answer);
}

void pause() {
    current->state = READY;
    yield();
}

static unsigned warps() { return (thread_count + 31) / 32; }

static void turn_to(Block& next) {
    block = &next;
    block_index = next.index;
}

// Let the threads of a warp that can run, each until it waits, pauses or ends; returns whether any
// collective was answered.
static bool run_threads(unsigned number) {
    Thread* warp = block->threads + number * 32;
    const unsigned lanes = std::min(32u, thread_count - number * 32);
    uint32_t place[32];
    fill_order(place, lanes);
    for (unsigned i = 0; i < lanes && !failed; ++i)
        if (warp[place[i]].state <= READY) resume(warp[place[i]]);
    const bool any = !failed && answer_collectives(warp, lanes);
    bool& has_stalled = block->has_stalled[number] = true;
    for (unsigned i = 0; i < lanes; ++i) has_stalled = has_stalled && warp[i].state > READY;
    return any;
}

static void start_block(Block& next, uint32_t b) {
    const uint3 index = {b % grid_size.x, b / grid_size.x % grid_size.y,
                         b / grid_size.x / grid_size.y};
    const size_t slot = &next - blocks;
    next = {
        index, ++blocks_begun, threads + slot * thread_count, shared.begin + slot * shared.bytes
    };
    if (shared.bytes) memset(next.shared, fill, shared.bytes);  // a GPU does not initialise it
    for (unsigned i = 0; i < thread_count; ++i) {
        Thread& thread = next.threads[i] = Thread{};
        thread.index = {i % block_size.x, i / block_size.x % block_size.y,
                        i / block_size.x / block_size.y};
        thread.linear = i;
        thread.lane = i & 31;
        thread.warp = i >> 5;
    }
    turn_to(next);
}

static void report_deadlock(bool at_barrier) {
    for (unsigned i = 0; i < thread_count; ++i) {
        const Thread& thread = block->threads[i];
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
        const Thread& thread = block->threads[i];
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
        Thread& thread = block->threads[i];
        if (thread.state != AT_BARRIER) continue;
        thread.state = READY;
        thread.answer = thread.operation == BARRIER_COUNT ? count
                        : thread.operation == BARRIER_AND ? count == waiting
                                                          : count != 0;
    }
    memset(block->has_stalled, 0, sizeof block->has_stalled);
    ++block->barriers_passed;
    return true;
}

// ------------------------------------------------------------------ one after another
static void run_block(uint32_t b) {
    uint32_t place[MOST_THREADS / 32];
    start_block(blocks[0], b);
    do {
        fill_order(place, warps());
        for (unsigned i = 0; i < warps() && !failed; ++i)
            while (run_threads(place[i]) && !failed) {
            }
    } while (!failed && pass_barrier());
}

// ------------------------------------------------------------------ side by side
// Let one warp of the block go on for one step; false when the block is done.
static bool step() {
    const unsigned from = next_random() % warps();
    for (unsigned i = 0; i < warps(); ++i) {
        const unsigned number = (from + i) % warps();
        if (block->has_stalled[number]) continue;
        run_threads(number);
        return true;
    }
    return pass_barrier();
}

static void run_side_by_side(const std::vector<uint32_t>& place) {
    std::vector<Block*> running;
    const unsigned patience = 1 + next_random() % 6;  // of this launch; 1: switch at every step
    size_t begun = 0;
    for (; running.size() < shared.blocks; ++begun) {
        running.push_back(&blocks[begun]);
        start_block(blocks[begun], place[begun]);
    }
    while (!failed && !running.empty()) {
        Block*& chosen = running[next_random() % running.size()];
        turn_to(*chosen);
        bool live = true;
        for (unsigned steps = 1u << next_random() % patience; live && !failed && steps > 0; --steps)
            live = step();
        if (live) continue;
        if (begun < place.size()) {
            start_block(*chosen, place[begun++]);
        } else {
            chosen = running.back();
            running.pop_back();
        }
    }
}

static void run_grid() {
    std::vector<uint32_t> place(size_t(grid_size.x) * grid_size.y * grid_size.z);
    fill_order(place.data(), uint32_t(place.size()));
    if (interleaving) return run_side_by_side(place);
    for (size_t i = 0; i < place.size() && !failed; ++i) run_block(place[i]);
}

// So many blocks run at the same time: by chance, where order is.
static unsigned most_at_once() {
    if (!interleaving) return 1;
    const size_t all = size_t(grid_size.x) * grid_size.y * grid_size.z;
    const size_t most = std::min<size_t>({MOST_BLOCKS, all, MOST_FIBERS / thread_count});
    return std::min<size_t>(2 + next_random() % (MOST_BLOCKS - 1), most);
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
    interleaving = order == RANDOM;
    random_state = mixed(seed);
    forget_failure();
    blocks_begun = 0;
    checking = check;
    make_shared(most_at_once(), shared_bytes);
    if (check) begin_checks(buffers, n_buffers);
    catch_signals(seconds);
    run_grid();
    release_signals();
    current = nullptr;
    end_checks();
    free(shared.begin);
    return failed;
}
