// Runs the blocks of a launch one after another, and the threads of a block as fibers.
//
//   thread   runs until it ends, or waits at a barrier or in a warp collective
//   warp     its threads run in turn; a collective whose lanes have all arrived is answered
//   block    its warps run in turn; when all threads wait at one barrier, they go on
//
// The order of blocks, warps and lanes is ascending, descending or random: a correct kernel
// gives the same result in each.
#include "runtime.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#if !defined(__x86_64__)
#error "switch_stacks is written for x86-64"
#endif

namespace emulator {
Thread* current;
uint3 block_index;
dim3 block_size, grid_size;
int checking;
bool failed;
unsigned barriers_passed, block_number, warp_barriers[MOST_THREADS / 32];
char* stacks;

namespace {
enum State { NEW, READY, IN_COLLECTIVE, AT_BARRIER, ENDED };
enum Order { ASCENDING, DESCENDING, RANDOM };

Thread threads[MOST_THREADS];
unsigned thread_count;
std::vector<char*> free_stacks;
void* scheduler_stack;
char* shared;
size_t shared_bytes;
void (*kernel)(void**);
void** arguments;
int order;
uint64_t random_state;
std::string message;
}  // namespace

// ------------------------------------------------------------------ fibers
// Push what a call preserves, keep the stack pointer in *save, and go on where `to` stopped.
asm(R"(
    .text
    .globl emulator_switch_stacks
    .hidden emulator_switch_stacks
emulator_switch_stacks:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    pop %rcx
    jmp *%rcx
)");
extern "C" void emulator_switch_stacks(void** save, void* to);

static void yield() { emulator_switch_stacks(&current->stack_pointer, scheduler_stack); }

void stop_thread() {
    for (;;) yield();
}

void fail(const char* format, ...) {
    if (failed) return;
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    message = text;
    failed = true;
}

void trap(const char* why, int line) {
    fail("line %d: %s", line, why);
    stop_thread();
}

static void run_thread() {
    kernel(arguments);
    current->state = ENDED;
    stop_thread();
}

static void prepare_stack(Thread& thread) {
    thread.stack = free_stacks.back();
    free_stacks.pop_back();
    // Stacks that all begin at one offset would share the same few cache lines.
    const size_t offset = (thread.stack - stacks) / STACK_BYTES * 320 & 8191;
    void** top = (void**)(thread.stack + STACK_BYTES - offset);
    *--top = nullptr;
    *--top = (void*)run_thread;
    for (int i = 0; i < 6; ++i) *--top = nullptr;  // the registers that a switch restores
    thread.stack_pointer = top;
}

// ------------------------------------------------------------------ faults
static volatile bool inside_kernel;
static int caught;
static size_t caught_at;
static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGVTALRM};
static struct sigaction previous[5];

static const char* describe_fault() {
    switch (caught) {
        case SIGVTALRM: return "time limit (endless loop?)";
        case SIGFPE: return "integer division by zero";
        case SIGILL:
            return "undefined behaviour (shift, signed overflow, float to integer, array index)";
        default: return "illegal memory access";
    }
}

static void land() {
    inside_kernel = false;
    fail("pc 0x%zx: block (%u,%u,%u) thread %u: %s", caught_at + 1, block_index.x, block_index.y,
         block_index.z, current->linear, describe_fault());
    stop_thread();
}

// A fault of a kernel becomes a launch error: the thread goes on in `land`, on a fresh stack.
static void on_signal(int number, siginfo_t*, void* context) {
    if (!inside_kernel) {
        if (number != SIGVTALRM) signal(number, SIG_DFL);
        return;
    }
    auto* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    caught = number;
    caught_at = size_t(registers[REG_RIP]);
    registers[REG_RIP] = greg_t(land);
    registers[REG_RSP] = greg_t(size_t(current->stack + STACK_BYTES) & ~size_t(15)) - 8;
}

static void catch_signals(int seconds) {
    static char* own_stack = (char*)malloc(65536);
    stack_t alternative{};
    alternative.ss_sp = own_stack;
    alternative.ss_size = 65536;
    sigaltstack(&alternative, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 5; ++i) sigaction(SIGNALS[i], &action, &previous[i]);
    itimerval timer{{0, 50000}, {seconds, 0}};
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

static void release_signals() {
    itimerval timer{};
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
    for (int i = 0; i < 5; ++i) sigaction(SIGNALS[i], &previous[i], nullptr);
}

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

// ------------------------------------------------------------------ collectives
static const char* name_of(int operation) {
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
    Thread* own = current;
    if (!(mask >> own->lane & 1)) {
        fail("line %d: %s: lane %u calls with mask 0x%08x that does not name it", line,
             name_of(operation), own->lane, mask);
        stop_thread();
    }
    own->operation = operation;
    own->mask = mask;
    own->value = value;
    own->source = source;
    own->line = line;
    own->state = IN_COLLECTIVE;
    yield();
    return own->answer;
}

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
    if (operation == SYNCWARP) ++warp_barriers[warp->warp];
}

static bool same_collective(const Thread& a, const Thread& b) {
    if (a.mask == b.mask && a.operation == b.operation && a.line == b.line) return true;
    fail("block (%u,%u,%u) warp %u: lanes of one mask in different collectives: "
         "lane %u %s line %d mask %08x, lane %u %s line %d mask %08x",
         block_index.x, block_index.y, block_index.z, a.warp, a.lane, name_of(a.operation), a.line,
         a.mask, b.lane, name_of(b.operation), b.line, b.mask);
    return false;
}

// Answer the collectives whose lanes have all arrived; returns whether any was.
static bool answer_collectives(Thread* warp, unsigned lanes) {
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

// ------------------------------------------------------------------ blocks
static void resume(Thread& thread) {
    if (thread.state == NEW) prepare_stack(thread);
    thread.state = READY;
    current = &thread;
    inside_kernel = true;
    emulator_switch_stacks(&scheduler_stack, thread.stack_pointer);
    inside_kernel = false;
    if (thread.state == ENDED) free_stacks.push_back(thread.stack);
}

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
    if (shared) memset(shared, 0xCD, shared_bytes);  // a GPU does not initialise it
    poison_static_shared();
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

static void reserve_stacks() {
    if (!stacks)
        stacks = (char*)mmap(nullptr, MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    free_stacks.clear();
    for (unsigned i = MOST_THREADS; i-- > 0;) free_stacks.push_back(stacks + i * STACK_BYTES);
}
}  // namespace emulator

EMULATOR_API const char* emulator_message() { return emulator::message.c_str(); }

EMULATOR_API int emulator_launch(void (*kernel)(void**), const unsigned* sizes, size_t shared_bytes,
                                 void** arguments, int order, uint64_t seed, int check,
                                 const emulator::Buffer* buffers, int n_buffers, int seconds) {
    using namespace emulator;
    reserve_stacks();
    grid_size = {sizes[0], sizes[1], sizes[2]};
    block_size = {sizes[3], sizes[4], sizes[5]};
    thread_count = sizes[3] * sizes[4] * sizes[5];
    emulator::kernel = kernel;
    emulator::arguments = arguments;
    emulator::order = order;
    random_state = seed * 2654435761u + 88172645463325252ull;
    failed = false;
    message.clear();
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
