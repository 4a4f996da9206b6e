// What the parts of the emulator's runtime share.
#pragma once
#include "cuda.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace emulator {
#pragma GCC visibility push(hidden)
constexpr unsigned MOST_THREADS = 1024;  // of a block
constexpr unsigned MOST_FIBERS = 2048;   // of the blocks that run side by side
constexpr size_t STACK_BYTES = 64 * 1024;

struct Buffer {  // a device array passed to the kernel; laid out as in library.py
    void* begin;
    size_t bytes;
    uint32_t granule;  // bytes that one access touches
    int read_only;
    unsigned char* defined;  // a flag a byte: whether it was ever written; null where all were
};

enum State { NEW, READY, IN_COLLECTIVE, AT_BARRIER, ENDED };  // of a thread

struct Block {
    uint3 index;
    unsigned number;  // of those begun, from 1
    Thread* threads;
    char* shared;  // static variables, then dynamic memory
    bool has_stalled[MOST_THREADS / 32];  // warps of which no thread can go on
    // Order of accesses: barriers so far, and __syncwarp of each warp so far.
    unsigned barriers_passed, warp_barriers[MOST_THREADS / 32];
};

// ------------------------------------------------------------------ fibers.cpp
extern char* stacks;
void prepare_fibers(void (*kernel)(void**), void** arguments);  // all threads of a launch run it
void resume(Thread& thread);                                    // until it waits or ends
void yield();
[[noreturn]] void stop_thread();

// ------------------------------------------------------------------ faults.cpp
// A failed launch reports its first failure; the failing thread never goes on.
extern bool failed;
extern volatile bool inside_kernel;
void fail(const char* format, ...);
void forget_failure();
void catch_signals(int seconds);  // of processor time that the launch may take
void release_signals();

// ------------------------------------------------------------------ collectives.cpp
const char* name_of(int operation);
// Complete the collectives whose lanes have all arrived; returns true if there were any.
bool answer_collectives(Thread* warp, unsigned lanes);

// ------------------------------------------------------------------ scheduler.cpp
extern Block* block;  // the one that runs
// Shared memory of blocks that run side by side: where each one's begins, and its parts.
struct SharedMemory {
    char* begin;
    size_t bytes, static_bytes, dynamic_bytes;  // of a block, rounded up; of each part
    unsigned blocks;
};
extern SharedMemory shared;
constexpr size_t SHARED_ALIGNMENT = 256;
static inline size_t aligned(size_t bytes) {
    return (bytes + SHARED_ALIGNMENT - 1) & ~(SHARED_ALIGNMENT - 1);
}

// ------------------------------------------------------------------ checker.cpp
void begin_checks(const Buffer* buffers, int count);
void end_checks();
size_t static_shared_bytes();
#pragma GCC visibility pop
}  // namespace emulator
